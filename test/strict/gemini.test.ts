import { expect, test } from 'vitest'
import { judge, mintSignature, type StrictProfile } from '../../src/entries/testing.js'
import { post, serverPool } from './support.js'

const pool = serverPool()

const user = { role: 'user', parts: [{ text: 'hi' }] }
const model = { role: 'model', parts: [{ text: 'hello' }] }
const args = { q: 'x' }
const signed = (name = 'f', id?: string) => ({
  functionCall: { ...(id === undefined ? {} : { id }), name, args },
  thoughtSignature: mintSignature('gemini', { name, args, ...(id === undefined ? {} : { id }) }),
})
const unsigned = (name = 'f') => ({ functionCall: { name, args } })
const result = (name = 'f', id?: string) => ({
  functionResponse: { ...(id === undefined ? {} : { id }), name, response: { output: 'y' } },
})
const call = { role: 'model', parts: [signed()] }
const answer = { role: 'user', parts: [result()] }

const G1 =
  'Please ensure that function call turn comes immediately after a user turn or after a function response turn.'
const G2 = 'Please ensure that function response turn comes immediately after a function call turn.'
const G3 =
  'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.'
const G4 = 'Please use a valid role: user, model.'
const G13 =
  'Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.'
const missingSignature = (name: string, position: number) =>
  `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${name}\` , position ${position}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.`

const refused: [string, StrictProfile, unknown[] | Record<string, unknown>, string][] = [
  ['G1 a leading call', 'gemini-3', [call, answer], G1],
  ['G1 a call after model text', 'gemini-3', [user, model, call, answer], G1],
  ['G2 a leading response', 'gemini-2', [answer, user], G2],
  ['G2 a response after text', 'gemini-3', [user, call, answer, model, user, answer], G2],
  ['G3 a call without response', 'gemini-3', [user, call, user], G3],
  [
    'G3 two calls, one response',
    'gemini-3',
    [user, { role: 'model', parts: [signed(), unsigned()] }, answer],
    G3,
  ],
  [
    'G3 responses split over contents',
    'gemini-3',
    [user, { role: 'model', parts: [signed(), unsigned()] }, answer, answer],
    G3,
  ],
  ['G3 a pending call', 'gemini-2', [user, call], G3],
  ['G4 role function', 'gemini-2', [user, call, { ...answer, role: 'function' }], G4],
  ['G4 role tool', 'gemini-3', [user, call, { ...answer, role: 'tool' }], G4],
  ['G4 no role', 'gemini-3', [{ parts: [{ text: 'hi' }] }], G4],
  [
    'G4 role function, newest models',
    'gemini-3-strict',
    [user, call, { ...answer, role: 'function' }],
    "Role 'function' is not supported. Please use a valid role: SYSTEM, SYSTEM_1, USER, ASSISTANT, DEVELOPER, CONTEXT, USER_CONTEXT, MODEL, USER.",
  ],
  [
    'G5 empty parts',
    'gemini-2',
    [user, { role: 'model', parts: [] }, user],
    '* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.',
  ],
  [
    'G6 an empty part',
    'gemini-2',
    [user, { role: 'model', parts: [{}] }, user],
    "* GenerateContentRequest.contents[1].parts[0].data: required oneof field 'data' must have one initialized field",
  ],
  [
    'G7 a response without name',
    'gemini-3',
    [user, call, { role: 'user', parts: [{ functionResponse: { name: '', response: {} } }] }],
    '* GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty.',
  ],
  [
    'G8 a string as response',
    'gemini-3',
    [user, call, { role: 'user', parts: [{ functionResponse: { name: 'f', response: 'text' } }] }],
    'Invalid value at \'contents[2].parts[0].function_response.response\' (type.googleapis.com/google.protobuf.Struct), "text"',
  ],
  [
    'G8 a list as response',
    'gemini-3',
    [user, call, { role: 'user', parts: [{ functionResponse: { name: 'f', response: [1] } }] }],
    'Invalid JSON payload received. Unknown name "response" at \'contents[2].parts[0].function_response\': Proto field is not repeating, cannot start list.',
  ],
  [
    'G9 an unsigned call',
    'gemini-3',
    [user, { role: 'model', parts: [unsigned('search')] }, answer],
    missingSignature('search', 2),
  ],
  [
    'G9 an unsigned second step',
    'gemini-3-strict',
    [user, call, answer, { role: 'model', parts: [unsigned('f')] }, answer],
    missingSignature('f', 4),
  ],
  [
    'G9 the second parallel call is signed instead of the first',
    'gemini-3',
    [user, { role: 'model', parts: [unsigned(), signed()] }, { role: 'user', parts: [result(), result()] }],
    missingSignature('f', 2),
  ],
  [
    'G10 a foreign signature',
    'gemini-3',
    [user, { role: 'model', parts: [{ ...unsigned(), thoughtSignature: 'bm90LW91cnM=' }] }, answer],
    'Corrupted thought signature.',
  ],
  [
    'G10 an altered signature',
    'gemini-3',
    [
      user,
      {
        role: 'model',
        parts: [{ ...unsigned(), thoughtSignature: altered(mintSignature('gemini', { name: 'f', args })) }],
      },
      answer,
    ],
    'Corrupted thought signature.',
  ],
  [
    'G10 a signature of another call',
    'gemini-3',
    [
      user,
      {
        role: 'model',
        parts: [{ ...unsigned(), thoughtSignature: mintSignature('gemini', { name: 'g', args }) }],
      },
      answer,
    ],
    'Invalid thought signature.',
  ],
  [
    'G10 the signature of another vendor',
    'gemini-2',
    [
      user,
      {
        role: 'model',
        parts: [{ text: 'a', thoughtSignature: mintSignature('anthropic', { thinking: 'a' }) }],
      },
      user,
    ],
    'Corrupted thought signature.',
  ],
  [
    'G11 a trailing model turn',
    'gemini-3-strict',
    [user, model],
    'Requests ending with a model turn are not supported.',
  ],
  [
    'G11 a pending call',
    'gemini-3-strict',
    [user, call],
    'Requests ending with a model turn are not supported.',
  ],
  [
    'G11 text beside a response',
    'gemini-3-strict',
    [user, call, { role: 'user', parts: [result(), { text: 'and now?' }] }],
    'Requests ending with a model turn are not supported unless the last part is a function response.',
  ],
  [
    'G13 a declared name',
    'gemini-2',
    { contents: [user], tools: [{ functionDeclarations: [{ name: '1 bad' }] }] },
    `* GenerateContentRequest.tools[0].function_declarations[0].name: ${G13}`,
  ],
  [
    'G13 a name that is too long',
    'gemini-2',
    { contents: [user], tools: [{ functionDeclarations: [{ name: 'a'.repeat(65) }] }] },
    `* GenerateContentRequest.tools[0].function_declarations[0].name: ${G13}`,
  ],
  [
    'G15 a leading model turn',
    'gemini-3',
    [model, user],
    'Please ensure that multiturn requests alternate between user and model',
  ],
  [
    'G16 media in a response',
    'gemini-2',
    [
      user,
      { role: 'model', parts: [unsigned()] },
      {
        role: 'user',
        parts: [
          {
            functionResponse: {
              name: 'f',
              response: {},
              parts: [{ inlineData: { mimeType: 'image/png', data: 'aGk=' } }],
            },
          },
        ],
      },
    ],
    'Unable to submit request because `function_response.parts` is not supported for this model. Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling',
  ],
  ['no contents', 'gemini-3', [], '* GenerateContentRequest.contents: contents is not specified'],
  [
    'an unknown field',
    'gemini-3',
    { contents: [user], foo: 1 },
    'Invalid JSON payload received. Unknown name "foo": Cannot find field.',
  ],
  [
    'a keyword that the schema subset does not know',
    'gemini-3',
    {
      contents: [user],
      tools: [{ functionDeclarations: [{ name: 'f', parameters: { type: 'OBJECT', $schema: 'x' } }] }],
    },
    'Invalid JSON payload received. Unknown name "$schema" at \'tools[0].function_declarations[0].parameters\': Cannot find field.',
  ],
  [
    'a schema type as a list',
    'gemini-3',
    {
      contents: [user],
      tools: [{ functionDeclarations: [{ name: 'f', parameters: { type: ['STRING', 'NULL'] } }] }],
    },
    'Invalid JSON payload received. Unknown name "type" at \'tools[0].function_declarations[0].parameters\': Proto field is not repeating, cannot start list.',
  ],
  [
    'text that is not a string',
    'gemini-3',
    [{ role: 'user', parts: [{ text: 5 }] }],
    "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 5",
  ],
  [
    'arguments as a string',
    'gemini-3',
    [user, { role: 'model', parts: [{ functionCall: { name: 'f', args: '{}' } }] }, answer],
    'Invalid value at \'contents[1].parts[0].function_call.args\' (type.googleapis.com/google.protobuf.Struct), "{}"',
  ],
  [
    'JSON answers together with tools',
    'gemini-2',
    {
      contents: [user],
      tools: [{ functionDeclarations: [{ name: 'f' }] }],
      generationConfig: { responseMimeType: 'application/json' },
    },
    "Function calling with a response mime type: 'application/json' is unsupported",
  ],
  [
    'a forced call without declarations',
    'gemini-3',
    { contents: [user], toolConfig: { functionCallingConfig: { mode: 'ANY' } } },
    'Function calling config is set without function_declarations.',
  ],
]

function altered(signature: string): string {
  return `${signature.slice(0, 20)}${signature[20] === 'A' ? 'B' : 'A'}${signature.slice(21)}`
}

test.each(refused)('Gemini refuses %s', async (label, profile, request, message) => {
  const server = await pool.shared(profile)
  const body = Array.isArray(request) ? { contents: request } : request
  const { status, body: answered } = await post(server, body)
  expect({ status, answered }).toMatchObject({
    status: 400,
    answered: { error: { code: 400, message, status: 'INVALID_ARGUMENT' } },
  })
  const last = server.violations.at(-1)
  expect(last).toMatchObject({ message, status: 400, requestIndex: server.requests.length - 1 })
  if (label.startsWith('G')) expect(last?.code).toBe(label.split(' ')[0])
  expect(server.requests.at(-1)?.body).toEqual(body)
})

test('Gemini refuses ids where Vertex did not know them yet (G12)', async () => {
  const server = await pool.start({ profile: 'gemini-3', quirks: ['old-vertex'] })
  const { body } = await post(server, {
    contents: [user, { role: 'model', parts: [{ text: 'a' }, signed('f', 'abc12345')] }, answer],
  })
  expect(body).toMatchObject({
    error: {
      message:
        'Invalid JSON payload received. Unknown name "id" at \'contents[1].parts[1].function_call\': Cannot find field.',
    },
  })
  expect(server.violations[0]?.code).toBe('G12')
})

test('Gemini refuses a prompt over the window (G14)', async () => {
  const server = await pool.start({ profile: 'gemini-3', contextWindow: 100 })
  const { body } = await post(server, { contents: [{ role: 'user', parts: [{ text: 'x'.repeat(400) }] }] })
  expect(body).toMatchObject({
    error: { message: 'The input token count (113) exceeds the maximum number of tokens allowed (100).' },
  })
})

test('Gemini refuses with an array around the error when the stream is not SSE', async () => {
  const server = await pool.shared('gemini-3')
  const path = '/v1beta/models/m:streamGenerateContent'
  const { body } = await post(server, { contents: [] }, { path })
  expect(body).toMatchObject([{ error: { code: 400 } }])
})

test.each([
  ['G17', [user, call, { role: 'user', parts: [result(), { text: 'and?' }] }]],
  [
    'G18',
    [
      user,
      { role: 'model', parts: [{ ...signed('f', 'abcd1234'), functionCall: { name: 'f', args } }] },
      answer,
    ],
  ],
  ['G18', [user, { role: 'model', parts: [signed('f', 'abcd1234')] }, answer]],
])('Gemini answers with an empty text when a request breaks %s (row %#)', async (code, contents) => {
  const server = await pool.shared('gemini-3')
  const { status, body } = await post(server, { contents })
  expect(status).toBe(200)
  expect(body).toMatchObject({
    candidates: [{ content: { parts: [{ text: '' }] }, finishReason: 'STOP' }],
  })
  expect(server.violations.at(-1)).toMatchObject({ code, status: 200 })
})

const legal: [string, StrictProfile, unknown[]][] = [
  ['seven user contents in a row', 'gemini-3', Array(7).fill(user)],
  ['a response content and then a user text', 'gemini-3-strict', [user, call, answer, user]],
  [
    'parallel calls with only the first signed',
    'gemini-3-strict',
    [
      user,
      { role: 'model', parts: [signed(), unsigned(), unsigned()] },
      { role: 'user', parts: [result(), result(), result()] },
    ],
  ],
  [
    'text and a call in one content',
    'gemini-3',
    [user, { role: 'model', parts: [{ text: 'let me see' }, signed()] }, answer],
  ],
  [
    'unsigned calls of an earlier turn',
    'gemini-3',
    [user, { role: 'model', parts: [unsigned()] }, answer, model, user],
  ],
  [
    'the documented dummies',
    'gemini-3',
    [
      user,
      { role: 'model', parts: [{ ...unsigned(), thoughtSignature: 'skip_thought_signature_validator' }] },
      answer,
    ],
  ],
  [
    'the other dummy',
    'gemini-3',
    [
      user,
      {
        role: 'model',
        parts: [{ ...unsigned(), thoughtSignature: 'context_engineering_is_the_way_to_go' }],
      },
      answer,
    ],
  ],
  [
    'two call contents that are answered together',
    'gemini-2',
    [user, call, call, { role: 'user', parts: [result(), result()] }],
  ],
  [
    'media beside a response',
    'gemini-2',
    [
      user,
      call,
      { role: 'user', parts: [result(), { inlineData: { mimeType: 'image/png', data: 'aGk=' } }] },
    ],
  ],
  [
    'ids',
    'gemini-2',
    [
      user,
      { role: 'model', parts: [signed('f', 'a1b2c3d4')] },
      { role: 'user', parts: [result('f', 'a1b2c3d4')] },
    ],
  ],
  [
    'a part that holds only a signature',
    'gemini-3',
    [user, { role: 'model', parts: [{ text: 'a' }, { thoughtSignature: mintSignature('gemini') }] }, user],
  ],
  [
    'an empty signed text part',
    'gemini-3-strict',
    [
      user,
      { role: 'model', parts: [{ text: 'a' }, { text: '', thoughtSignature: mintSignature('gemini') }] },
      user,
    ],
  ],
  ['a trailing model turn on older models', 'gemini-3', [user, model]],
  ['consecutive model texts', 'gemini-3-strict', [user, model, model, user]],
  [
    'media inside a response',
    'gemini-3',
    [
      user,
      call,
      {
        role: 'user',
        parts: [
          {
            functionResponse: {
              name: 'f',
              response: {},
              parts: [{ inlineData: { mimeType: 'image/png', data: 'aGk=' } }],
            },
          },
        ],
      },
    ],
  ],
  [
    'snake case',
    'gemini-3',
    [
      user,
      {
        role: 'model',
        parts: [
          {
            function_call: { name: 'f', args },
            thought_signature: mintSignature('gemini', { name: 'f', args }),
          },
        ],
      },
      { role: 'user', parts: [{ function_response: { name: 'f', response: { a: 1 } } }] },
    ],
  ],
]
test.each(legal)('Gemini accepts %s', async (_label, profile, contents) => {
  const server = await pool.shared(profile)
  const before = server.violations.length
  const { status } = await post(server, { contents, tools: [{ functionDeclarations: [{ name: 'f' }] }] })
  expect(server.violations.slice(before)).toEqual([])
  expect(status).toBe(200)
})

const lenient: [string, StrictProfile, unknown[]][] = [
  ['role function', 'gemini-3', [user, call, { ...answer, role: 'function' }]],
  ['a leading model text', 'gemini-3', [model, user]],
  ['model text and then a call', 'gemini-2', [user, model, call, answer]],
  [
    'responses split over contents',
    'gemini-2',
    [user, { role: 'model', parts: [signed(), unsigned()] }, answer, answer],
  ],
  [
    'text beside a response',
    'gemini-3-strict',
    [user, call, { role: 'user', parts: [result(), { text: 'and?' }] }],
  ],
  ['a missing role', 'gemini-2', [{ parts: [{ text: 'hi' }] }]],
]
test.each(lenient)('Gemini accepts %s in the lenient reading only', (_label, profile, contents) => {
  expect(judge(profile, { contents }, { reading: 'lenient' })).toEqual([])
  expect(judge(profile, { contents })).not.toEqual([])
})
