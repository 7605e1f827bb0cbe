import { expect, test } from 'vitest'
import type { ErrorFacts } from './error-facts.js'
import { refusalOf } from './refusal-cause.js'

const facts = (message: string, more: Partial<ErrorFacts> = {}): ErrorFacts => ({
  message,
  status: 400,
  codes: ['invalid_request_error'],
  names: [],
  ...more,
})

test.each([
  [
    'messages.13.content.10.image.source.base64.data: At least one of the image dimensions exceed max allowed size',
    ['messages', '13', 'content', '10', 'image', 'source', 'base64', 'data'],
  ],
  [
    'The model returned the following errors: messages.0.content.1.image.source.base64: image exceeds 5 MB maximum',
    ['messages', '0', 'content', '1', 'image', 'source', 'base64'],
  ],
])('"%s" names a place', (message, place) => {
  expect(refusalOf(facts(message))).toEqual({ cause: 'media', place, isSize: false })
})

test('a field of the error names a place', () => {
  const refusal = refusalOf(facts('Invalid.', { param: 'messages[3].content[1].image_url.url' }))
  expect(refusal).toEqual({ place: ['messages', '3', 'content', '1', 'image_url', 'url'], isSize: false })
})

test("Google's message names a place", () => {
  const refusal = refusalOf(facts("Invalid value at 'contents[0].parts[1].inline_data.data' (TYPE_BYTES)"))
  expect(refusal?.place).toEqual(['contents', '0', 'parts', '1', 'inline_data', 'data'])
})

test.each(['Could not process image', 'Unable to process input image. Please retry', 'invalid image input'])(
  '"%s" is about media and names no place',
  message => {
    expect(refusalOf(facts(message))).toEqual({ cause: 'media', isSize: false })
  },
)

/** As they stand in public threads, with the words of the gateways before them. */
const REAL: readonly (readonly [cause: 'media' | 'seal', message: string])[] = [
  // anthropics/claude-code issues 15478, 42399 and 2130 of llxprt-code
  ['media', 'Could not process image'],
  ['media', 'messages.11.content.8.image.source.base64.data: Image format image/png not supported'],
  [
    'media',
    'messages.83.content.0.tool_result.content.1.image.source.base64: The image was specified using the image/jpeg media type, but the image appears to be a image/png image',
  ],
  // BerriAI/litellm issue 16123, heyhuynhgiabuu/proxypal issue 120
  [
    'media',
    'Vertex_aiException BadRequestError - {"type":"error","error":{"type":"invalid_request_error","message":"messages.0.content.1.image.source.base64.media_type: Input should be \'image/jpeg\'"}}',
  ],
  [
    'media',
    '{"type":"error","error":{"type":"invalid_request_error","message":"messages.10.content.0.image.source.base64.data: Image does not match the provided media type image/png"},"request_id":"req_vrtx_1"}',
  ],
  // pollinations issue 4157, chatwise-releases issue 799, gemini-cli issue 27244, crush issue 995
  [
    'media',
    'openai error: Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting',
  ],
  ['media', 'Provided image is not valid.'],
  ['media', 'Unsupported MIME type: png'],
  // musistudio/claude-code-router issue 845
  [
    'media',
    `Error from provider(openrouter,google/gemini-2.5-pro: 400): ${JSON.stringify({
      error: {
        message: 'Provider returned error',
        code: 400,
        metadata: {
          raw: JSON.stringify({
            error: {
              code: 400,
              message: "Invalid value at 'contents[0].parts[2].inline_data.data' (TYPE_BYTES)",
              status: 'INVALID_ARGUMENT',
            },
          }),
        },
      },
    })}`,
  ],
  // simple-openai issue 36, opencode issue 23983, refly issue 647, ollama issue 7388, qwen-code issue 2505
  ['media', 'Invalid image.'],
  [
    'media',
    "Invalid 'input[101].content[1].image_url'. Expected a base64-encoded data URL with an image MIME type, but got empty base64-encoded bytes.",
  ],
  ['media', 'invalid image input'],
  ['media', 'invalid image type: application/octet-stream'],
  [
    'media',
    '<400> InternalError.Algo.InvalidParameter: The image length and width do not meet the model restrictions. [height:1 or width:1 must be larger than 10]',
  ],
  ['media', 'messages.4.content.1.pdf.source.base64.data: The PDF specified is password protected'],
  // cc-connect issue 897, nagobot issue 21, Antigravity-Manager issues 498 and 3342, claude-code-hub issue 518
  [
    'seal',
    'messages.1.content.0: Invalid signature in thinking block (Service: BedrockRuntime, Status Code: 400',
  ],
  [
    'seal',
    'Provider returned error: {"message":"messages.7.content.2: Invalid signature in thinking block"}',
  ],
  [
    'seal',
    '{"type":"request_fail","upstream_error":{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}}',
  ],
  ['seal', 'Invalid thought signature.'],
  // gemini-cli issue 13467, 9router issue 301, opencode issue 4832
  [
    'seal',
    '{\n  "error": {\n    "code": 400,\n    "message": "Corrupted thought signature.",\n    "status": "INVALID_ARGUMENT"\n  }\n}\n',
  ],
  [
    'seal',
    '[gemini-cli/gemini-3-flash-preview] [400]: Unable to submit request because Thought signature is not valid.. Learn more: https://cloud.google.com',
  ],
  // openai/codex issues 8145 and 2863 of sub2api
  ['seal', 'The encrypted content gAAA...DQ== could not be verified.'],
  [
    'seal',
    'The encrypted content for item rs_1 could not be verified. Reason: Encrypted content could not be decrypted or parsed.',
  ],
]

test.each(REAL)('%s: "%s" is read through what a gateway puts around it', (cause, message) => {
  const refusal = refusalOf(facts(message))
  const names = refusal?.place?.join(' ') ?? ''
  expect(refusal?.cause ?? (/image|inline_data|pdf/.test(names) ? 'media' : undefined)).toBe(cause)
})

test.each([
  'Invalid prompt: your text says "Invalid thought signature."',
  'I cannot help with {"message":"Could not process image"}',
  'Your request was blocked: Error: Provided image is not valid',
])('"%s" quotes somebody, and is no refusal of a part', message => {
  expect(refusalOf(facts(message))).toBeUndefined()
})

test('wrapped errors of thousands of layers are read at once', () => {
  const message = `${'Error: '.repeat(100_000)}Could not process image`
  expect(refusalOf(facts(message))).toBeUndefined()
  expect(refusalOf(facts(`${'{"error":'.repeat(1000)}"x"${'}'.repeat(1000)}`))).toBeUndefined()
})

test('a code says that a refusal is about media', () => {
  expect(refusalOf(facts('No.', { codes: ['invalid_base64_image'] }))).toEqual({
    cause: 'media',
    isSize: false,
  })
})

test.each<[string, ErrorFacts]>([
  ['a word of a user', facts('I cannot do that: "Could not process image" is what you said')],
  ['a place that is a whole message', facts('messages.5: `tool_use` ids were found without results')],
  ['an option', facts('temperature: range: 0..1')],
  ['an overloaded server', facts('Could not process image', { status: 529 })],
  ['a wrong key', facts('Could not process image', { status: 401 })],
  ['a rate limit', facts('Could not process image', { status: 429 })],
])('%s is no refusal of a part', (_, given) => {
  expect(refusalOf(given)).toBeUndefined()
})

test('a code says that a refusal is about what is sealed', () => {
  const refusal = refusalOf(facts('No.', { codes: ['invalid_encrypted_content'] }))
  expect(refusal).toEqual({ cause: 'seal', isSize: false })
})

test('413 is about the size of the request', () => {
  expect(refusalOf(facts('Request exceeds the maximum size', { status: 413 }))).toEqual({ isSize: true })
})

test('a message of a million characters is read at once', () => {
  const long = `messages.${'1.'.repeat(500_000)}`
  expect(refusalOf(facts(long))).toBeUndefined()
})
