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

test('413 is about the size of the request', () => {
  expect(refusalOf(facts('Request exceeds the maximum size', { status: 413 }))).toEqual({ isSize: true })
})

test('a message of a million characters is read at once', () => {
  const long = `messages.${'1.'.repeat(500_000)}`
  expect(refusalOf(facts(long))).toBeUndefined()
})
