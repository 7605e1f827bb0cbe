import { expect, test } from 'vitest'
import { judge, mintReasoningId, mintSignature } from '../../src/entries/testing.js'
import { post, serverPool } from './support.js'

const pool = serverPool()

const user = { role: 'user', content: 'hi' }
const call = (id: string, extra: object = {}) => ({
  type: 'function_call',
  call_id: id,
  name: 'f',
  arguments: '{}',
  ...extra,
})
const output = (id: string) => ({ type: 'function_call_output', call_id: id, output: 'y' })
const reasoning = (extra: object = {}) => ({ type: 'reasoning', summary: [], ...extra })
const blob = mintSignature('openai')

interface Expected {
  status?: number
  message: string
  param: string | null
  code: string | null
}

const R3 = (id: string) =>
  `Item '${id}' of type 'reasoning' was provided without its required following item.`
const unverified = (blob: string) =>
  `The encrypted content ${blob.slice(0, 4)}...${blob.slice(-4)} could not be verified. Reason: Encrypted content could not be decrypted or parsed.`
const rsId = mintReasoningId(true)
const early = mintSignature('openai', { stage: 'added' })
const foreign = 'gAAAAABfromanotherorganization=='

const refused: [string, unknown, Expected][] = [
  [
    'R1 an unanswered call',
    [user, call('call_x'), user],
    { message: 'No tool output found for function call call_x.', param: 'input', code: null },
  ],
  [
    'R2 an orphan',
    [output('call_x'), user],
    {
      message: 'No tool call found for function call output with call_id call_x.',
      param: 'input',
      code: null,
    },
  ],
  [
    'R2 an output before its call',
    [user, output('call_x'), call('call_x')],
    {
      message: 'No tool call found for function call output with call_id call_x.',
      param: 'input',
      code: null,
    },
  ],
  [
    'R3 reasoning before a user',
    [user, reasoning({ id: rsId }), user],
    { message: R3(rsId), param: 'input', code: null },
  ],
  [
    'R3 reasoning at the end',
    [user, reasoning({ id: rsId })],
    { message: R3(rsId), param: 'input', code: null },
  ],
  [
    'R3 a follower that lost its id',
    [user, reasoning({ id: rsId }), call('a'), output('a')],
    { message: R3(rsId), param: 'input', code: null },
  ],
  [
    'R5 reasoning that was not stored',
    [user, reasoning({ id: 'rs_x' }), { role: 'assistant', content: 'a', type: 'message', id: 'msg_1' }],
    {
      status: 404,
      message:
        "Item with id 'rs_x' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.",
      param: 'input',
      code: null,
    },
  ],
  [
    'R6 a foreign blob',
    [user, reasoning({ encrypted_content: foreign }), call('a'), output('a')],
    { message: unverified(foreign), param: null, code: 'invalid_encrypted_content' },
  ],
  [
    'R6 the blob of the added event',
    [user, reasoning({ encrypted_content: early }), call('a'), output('a')],
    { message: unverified(early), param: null, code: 'invalid_encrypted_content' },
  ],
  [
    'R6 a blob of another item',
    [user, reasoning({ id: 'rs_other', encrypted_content: blob }), call('a', { id: 'fc_1' }), output('a')],
    {
      message:
        'The encrypted content for item rs_other could not be verified. Reason: Encrypted content item_id did not match the target item id.',
      param: null,
      code: 'invalid_encrypted_content',
    },
  ],
  [
    'R7 an item id of another kind',
    [user, call('a', { id: 'call_1' }), output('a')],
    {
      message: "Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'fc'.",
      param: 'input[1].id',
      code: 'invalid_value',
    },
  ],
  [
    'R8 a long call id',
    [user, call('c'.repeat(65)), output('c'.repeat(65))],
    {
      message:
        "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.",
      param: 'input[1].call_id',
      code: 'string_above_max_length',
    },
  ],
  [
    'R10 an item twice',
    [user, call('a', { id: 'fc_1' }), output('a'), call('b', { id: 'fc_1' }), output('b')],
    {
      message: 'Duplicate item found with id fc_1. Remove duplicate items from your input and try again.',
      param: 'input',
      code: null,
    },
  ],
  [
    'a text part of Chat Completions',
    [{ role: 'user', content: [{ type: 'text', text: 'a' }] }],
    {
      message:
        "Invalid value: 'text'. Supported values are: 'input_text', 'input_image', 'input_file', and 'input_audio'.",
      param: 'input[0].content[0]',
      code: 'invalid_value',
    },
  ],
  [
    'input text from the assistant',
    [{ role: 'assistant', content: [{ type: 'input_text', text: 'a' }] }],
    {
      message: "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
      param: 'input[0].content[0]',
      code: 'invalid_value',
    },
  ],
  [
    'reasoning without a summary',
    [user, { type: 'reasoning', encrypted_content: blob }],
    {
      message: "Missing required parameter: 'input[1].summary'.",
      param: 'input[1].summary',
      code: 'missing_required_parameter',
    },
  ],
]

test.each(refused)(
  'OpenAI Responses refuses %s',
  async (label, input, { status = 400, message, param, code }) => {
    const server = await pool.shared('openai-responses')
    const posted = await post(server, { model: 'gpt-5.6', input, store: false })
    expect(posted.body).toEqual({ error: { message, type: 'invalid_request_error', param, code } })
    expect(posted.status).toBe(status)
    if (/^R\d/.test(label)) expect(server.violations.at(-1)?.code).toBe(label.split(' ')[0])
  },
)

test('OpenAI Responses refuses a call without the reasoning that led to it (R4)', async () => {
  const server = await pool.start({
    profile: 'openai-responses',
    script: [{ thinking: 'hm', toolCalls: [{ name: 'f', args: {} }] }],
  })
  const first = (await post(server, { model: 'm', input: [user] })).body as {
    output: { id: string; call_id?: string }[]
  }
  const [thought, called] = first.output
  const { body } = await post(server, { model: 'm', input: [user, called, output(called?.call_id ?? '')] })
  expect(body).toMatchObject({
    error: {
      message: `Item '${called?.id}' of type 'function_call' was provided without its required 'reasoning' item: '${thought?.id}'.`,
    },
  })
  expect(server.violations.map(violation => violation.code)).toEqual(['R4'])
})

test('OpenAI Responses refuses input over the window (R9)', async () => {
  const server = await pool.start({ profile: 'openai-responses', contextWindow: 20 })
  const { body } = await post(server, { model: 'm', input: 'x'.repeat(200) })
  expect(body).toEqual({
    error: {
      message: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
      type: 'invalid_request_error',
      param: 'input',
      code: 'context_length_exceeded',
    },
  })
})

test('OpenAI Responses refuses the id of an unknown response', () => {
  const body = { model: 'm', input: 'a', previous_response_id: 'resp_x' }
  expect(judge('openai-responses', body)).toMatchObject([
    { message: "Previous response with id 'resp_x' not found.", errorCode: 'previous_response_not_found' },
  ])
})

test('OpenAI Responses accepts reasoning without an id but with its encrypted content', () => {
  const input = [user, reasoning({ encrypted_content: blob }), call('a'), output('a')]
  expect(judge('openai-responses', { model: 'm', input, store: false })).toEqual([])
})

test.each([true, false])(
  'OpenAI Responses accepts its own output sent back unchanged, with store %s',
  async store => {
    const server = await pool.start({
      profile: 'openai-responses',
      script: [
        {
          thinking: 'hm',
          text: 'let me see',
          toolCalls: [{ name: 'f' }, { name: 'f' }],
        },
      ],
    })
    const include = ['reasoning.encrypted_content']
    const first = (await post(server, { model: 'm', input: [user], store, include })).body as {
      output: { type: string; call_id?: string }[]
    }
    expect(first.output.map(item => item.type)).toEqual([
      'reasoning',
      'message',
      'function_call',
      'function_call',
    ])
    const outputs = first.output.flatMap(item => (item.call_id === undefined ? [] : [output(item.call_id)]))
    const input = [user, ...first.output, ...outputs]
    expect((await post(server, { model: 'm', input, store, include })).status).toBe(200)
    expect(server.violations).toEqual([])
  },
)

test('OpenAI Responses accepts the output of a call that a stored response made', async () => {
  const server = await pool.start({
    profile: 'openai-responses',
    script: [{ toolCalls: [{ name: 'f', args: {} }] }],
  })
  const first = (await post(server, { model: 'm', input: 'go' })).body as {
    id: string
    output: { call_id: string }[]
  }
  const input = [output(first.output[0]?.call_id ?? '')]
  expect((await post(server, { model: 'm', input, previous_response_id: first.id })).status).toBe(200)
  expect(
    (await post(server, { model: 'm', input: 'again', previous_response_id: first.id })).body,
  ).toMatchObject({
    error: { message: `No tool output found for function call ${first.output[0]?.call_id}.` },
  })
})

test('OpenAI Responses accepts dangling reasoning without an id and early encrypted content in the lenient reading only', () => {
  const dangling = { model: 'm', input: [user, reasoning({ encrypted_content: blob }), user] }
  const soon = {
    model: 'm',
    input: [user, reasoning({ encrypted_content: early }), call('a'), output('a')],
  }
  for (const body of [dangling, soon]) {
    expect(judge('openai-responses', body, { reading: 'lenient' })).toEqual([])
    expect(judge('openai-responses', body)).toHaveLength(1)
  }
})
