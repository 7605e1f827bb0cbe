import { expect, test } from 'vitest'
import { judge } from '../../src/entries/testing.js'
import { post, serverPool, WEATHER_SCHEMA } from './support.js'

const pool = serverPool()

const user = { role: 'user', content: 'hi' }
const toolCall = (id: string, name = 'f', text: unknown = '{}') => ({
  id,
  type: 'function',
  function: { name, arguments: text },
})
const assistant = (...ids: string[]) => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map(id => toolCall(id)),
})
const tool = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'y' })
const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } }

interface Expected {
  message: string
  param: string | null
  code: string | null
}

const C2 =
  "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
const C1 = (ids: string) =>
  `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids}`
const C6 = "Invalid value for 'content': expected a string, got null."

const refused: [string, unknown[] | Record<string, unknown>, Expected][] = [
  [
    'C1 an unanswered call',
    [user, assistant('call_a'), user],
    { message: C1('call_a'), param: 'messages.[2].role', code: null },
  ],
  [
    'C1 one of two calls',
    [user, assistant('a', 'b'), tool('a'), user],
    { message: C1('b'), param: 'messages.[3].role', code: null },
  ],
  ['C1 a pending call', [user, assistant('a')], { message: C1('a'), param: 'messages.[1].role', code: null }],
  [
    'C1 a system note in between',
    [user, assistant('a'), { role: 'system', content: 'n' }, tool('a')],
    { message: C1('a'), param: 'messages.[2].role', code: null },
  ],
  ['C2 an orphan', [tool('a'), user], { message: C2, param: 'messages.[0].role', code: null }],
  [
    'C2 a result with another id',
    [user, assistant('a'), tool('b')],
    { message: C2, param: 'messages.[2].role', code: null },
  ],
  [
    'C2 a second result',
    [user, assistant('a'), tool('a'), tool('a')],
    { message: C2, param: 'messages.[3].role', code: null },
  ],
  [
    'C3 a result without id',
    [user, assistant('a'), { role: 'tool', content: 'y' }],
    {
      message: "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
      param: 'messages.[2].tool_call_id',
      code: null,
    },
  ],
  [
    'C4 a long id',
    [user, assistant('x'.repeat(51)), tool('x'.repeat(51))],
    {
      message:
        "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 51 instead.",
      param: 'messages[1].tool_calls[0].id',
      code: 'string_above_max_length',
    },
  ],
  [
    'C5 a tool name',
    { messages: [user], tools: [{ type: 'function', function: { name: 'a.b' } }] },
    {
      message:
        "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
      param: 'tools[0].function.name',
      code: 'invalid_value',
    },
  ],
  [
    'C6 no content',
    [user, { role: 'assistant', content: null }, user],
    { message: C6, param: 'messages.[1].content', code: null },
  ],
  [
    'C7 an empty list of calls',
    [user, { role: 'assistant', content: 'a', tool_calls: [] }, user],
    {
      message:
        "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.",
      param: 'messages[1].tool_calls',
      code: 'empty_array',
    },
  ],
  [
    'C8 a role',
    [{ role: 'model', content: 'a' }],
    {
      message:
        "Invalid value: 'model'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.",
      param: 'messages[0].role',
      code: 'invalid_value',
    },
  ],
  [
    'C9 an image in a result',
    [user, assistant('a'), { role: 'tool', tool_call_id: 'a', content: [image] }],
    {
      message:
        "Invalid 'messages[2]'. Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image URL.",
      param: 'messages[2]',
      code: 'invalid_value',
    },
  ],
  [
    'an unknown key',
    { messages: [user], thinking: {} },
    { message: "Unknown parameter: 'thinking'.", param: 'thinking', code: 'unknown_parameter' },
  ],
  [
    'an unknown key in a message',
    [user, { role: 'assistant', content: 'a', reasoning_content: 'b' }, user],
    {
      message: "Unknown parameter: 'messages[1].reasoning_content'.",
      param: 'messages[1].reasoning_content',
      code: 'unknown_parameter',
    },
  ],
  [
    'no messages',
    {},
    {
      message: "Missing required parameter: 'messages'.",
      param: 'messages',
      code: 'missing_required_parameter',
    },
  ],
  [
    'an empty list of messages',
    [],
    {
      message:
        "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
      param: 'messages',
      code: 'empty_array',
    },
  ],
  [
    'arguments as an object',
    [user, { role: 'assistant', content: null, tool_calls: [toolCall('a', 'f', {})] }, tool('a')],
    {
      message:
        "Invalid type for 'messages[1].tool_calls[0].function.arguments': expected a string, but got an object instead.",
      param: 'messages[1].tool_calls[0].function.arguments',
      code: 'invalid_type',
    },
  ],
  [
    'a temperature',
    { messages: [user], temperature: 3 },
    {
      message:
        "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.",
      param: 'temperature',
      code: 'decimal_above_max_value',
    },
  ],
  [
    'a tool choice without tools',
    { messages: [user], tool_choice: 'none' },
    {
      message: "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
      param: 'tool_choice',
      code: null,
    },
  ],
  [
    'a schema that is no object',
    {
      messages: [user],
      tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'string' } } }],
    },
    {
      message: `Invalid schema for function 'f': schema must be a JSON Schema of 'type: "object"', got 'type: "string"'.`,
      param: 'tools[0].function.parameters',
      code: 'invalid_function_parameters',
    },
  ],
  [
    'stream options without a stream',
    { messages: [user], stream_options: { include_usage: true } },
    {
      message: "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
      param: 'stream_options',
      code: null,
    },
  ],
]

test.each(refused)('OpenAI Chat Completions refuses %s', async (label, request, { message, param, code }) => {
  const server = await pool.shared('openai-chat')
  const body = Array.isArray(request)
    ? { model: 'gpt-4.1', messages: request }
    : { model: 'gpt-4.1', ...request }
  const posted = await post(server, body)
  expect(posted.status).toBe(400)
  expect(posted.body).toEqual({ error: { message, type: 'invalid_request_error', param, code } })
  const last = server.violations.at(-1)
  expect(last).toMatchObject({ message, requestIndex: server.requests.length - 1 })
  if (/^C\d/.test(label)) expect(last?.code).toBe(label.split(' ')[0])
})

test('OpenAI Chat Completions refuses a prompt over the window (C10)', async () => {
  const server = await pool.start({ profile: 'openai-chat', contextWindow: 50 })
  const { body } = await post(server, {
    model: 'm',
    messages: [{ role: 'user', content: 'x'.repeat(300) }],
  })
  expect(body).toEqual({
    error: {
      message:
        "This model's maximum context length is 50 tokens. However, your messages resulted in 89 tokens. Please reduce the length of the messages.",
      type: 'invalid_request_error',
      param: 'messages',
      code: 'context_length_exceeded',
    },
  })
})

test('OpenAI Chat Completions refuses a body that is not JSON, and records its text', async () => {
  const server = await pool.shared('openai-chat')
  const { status, body } = await post(server, '{"model": ')
  expect(status).toBe(400)
  expect(body).toMatchObject({
    error: { message: expect.stringContaining('We could not parse the JSON body') },
  })
  expect(server.requests.at(-1)?.body).toBe('{"model": ')
})

test('OpenAI Chat Completions refuses in the order of its validator: keys, types, roles, content, pairing', () => {
  const body = {
    model: 'm',
    messages: [
      { role: 'tool', content: null },
      { role: 'nobody', content: 5 },
    ],
    foo: 1,
  }
  expect(judge('openai-chat', body).map(violation => violation.code)).toEqual([
    'C-schema',
    'C-schema',
    'C8',
    'C6',
    'C3',
    'C2',
  ])
})

const legal: [string, Record<string, unknown>][] = [
  [
    'consecutive roles',
    {
      messages: [user, user, { role: 'assistant', content: 'a' }, { role: 'assistant', content: 'b' }, user],
    },
  ],
  ['an assistant first and last', { messages: [{ role: 'assistant', content: 'a' }] }],
  [
    'parallel calls with results in any order',
    { messages: [user, assistant('a', 'b'), tool('b'), tool('a')] },
  ],
  [
    'system notes between turns',
    { messages: [user, { role: 'system', content: 's' }, { role: 'developer', content: 'd' }, user] },
  ],
  ['empty text', { messages: [{ role: 'user', content: '' }] }],
  ['an image from the user', { messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }, image] }] }],
  ['its own refusal', { messages: [user, { role: 'assistant', content: null, refusal: 'no' }, user] }],
  [
    'tools',
    {
      messages: [user],
      tools: [{ type: 'function', function: { name: 'f', parameters: WEATHER_SCHEMA } }],
      tool_choice: 'auto',
    },
  ],
  [
    'the same ids in a later turn',
    { messages: [user, assistant('a'), tool('a'), user, assistant('a'), tool('a')] },
  ],
]
test.each(legal)('OpenAI Chat Completions accepts %s', (_label, body) => {
  expect(judge('openai-chat', { model: 'm', ...body })).toEqual([])
})

test('OpenAI Chat Completions accepts a repeated result in the lenient reading only', () => {
  const body = { model: 'm', messages: [user, assistant('a'), tool('a'), tool('a')] }
  expect(judge('openai-chat', body, { reading: 'lenient' })).toEqual([])
})
