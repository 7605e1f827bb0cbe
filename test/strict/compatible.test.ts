import { expect, test } from 'vitest'
import { judge, type StrictProfile } from '../../src/entries/testing.js'
import { post, serverPool } from './support.js'

const pool = serverPool()

const user = { role: 'user', content: 'hi' }
const said = { role: 'assistant', content: 'ok' }
const call = (id = 'abcdefgh1', text = '{}') => ({
  id,
  type: 'function',
  function: { name: 'f', arguments: text },
})
const calling = (...ids: string[]) => ({
  role: 'assistant',
  content: '',
  tool_calls: ids.map(id => call(id)),
})
const tool = (id = 'abcdefgh1') => ({ role: 'tool', tool_call_id: id, content: 'y' })
const thinking = (...ids: string[]) => ({ ...calling(...ids), reasoning_content: '' })

const order = (message: string) => ({
  object: 'error',
  message,
  type: 'invalid_request_message_order',
  param: null,
  code: '3230',
  raw_status_code: 400,
})
const mistralCall = (message: string) => ({ ...order(message), type: 'invalid_function_call', code: '3280' })
const deepseek = (message: string) => ({
  error: { message, type: 'invalid_request_error', param: null, code: 'invalid_request_error' },
})
const groq = (message: string) => ({ error: { message, type: 'invalid_request_error' } })
const vllm = (message: string) => ({
  object: 'error',
  message,
  type: 'BadRequestError',
  param: null,
  code: 400,
})
const ollama = (message: string) => ({
  error: { message, type: 'invalid_request_error', param: null, code: null },
})

const refused: [string, StrictProfile, unknown[], unknown][] = [
  [
    'M1 a foreign id',
    'mistral',
    [user, calling('toolu_01abc'), tool('toolu_01abc')],
    mistralCall('Tool call id was toolu_01abc but must be a-z, A-Z, 0-9, with a length of 9.'),
  ],
  [
    'M2 an unanswered call',
    'mistral',
    [user, calling('abcdefgh1'), user, said, user],
    order('Not the same number of function calls and responses'),
  ],
  [
    'M2 a call first',
    'mistral',
    [calling('abcdefgh1'), tool(), user],
    order('Not the same number of function calls and responses'),
  ],
  [
    'M3 an assistant last',
    'mistral',
    [user, said],
    order('Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant'),
  ],
  [
    'M4 a tool after a system message',
    'mistral',
    [{ role: 'system', content: 's' }, tool()],
    order("Unexpected role 'tool' after role 'system'"),
  ],
  [
    'M4 a system message after a tool',
    'mistral',
    [user, calling('abcdefgh1'), tool(), { role: 'system', content: 's' }, user],
    order("Unexpected role 'system' after role 'tool'"),
  ],
  [
    'M5 an empty assistant message',
    'mistral',
    [user, { role: 'assistant', content: '' }, user],
    {
      ...order('Assistant message must have either content or tool_calls, but not none.'),
      type: 'invalid_request_assistant_message',
      code: '3240',
    },
  ],
  [
    'M6 a duplicate id',
    'mistral',
    [user, calling('abcdefgh1', 'abcdefgh1'), tool(), tool()],
    order('Duplicate tool call id abcdefgh1 in assistant message'),
  ],
  [
    'M6 an unexpected id',
    'mistral',
    [user, calling('abcdefgh1'), tool('zzzzzzzz9')],
    order('Unexpected tool call id zzzzzzzz9 in tool results'),
  ],
  [
    'M7 a name',
    'mistral',
    [
      user,
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id: 'abcdefgh1', type: 'function', function: { name: 'a.b', arguments: '{}' } }],
      },
      tool(),
    ],
    mistralCall(
      'Function name was a.b but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.',
    ),
  ],
  [
    'X1 no reasoning with a call',
    'deepseek-thinking',
    [user, calling('a'), tool('a')],
    deepseek('The `reasoning_content` in the thinking mode must be passed back to the API.'),
  ],
  [
    'X2 an unanswered call',
    'deepseek-thinking',
    [user, thinking('a'), user],
    deepseek(
      "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. (insufficient tool messages following tool_calls message)",
    ),
  ],
  [
    'X3 an orphan',
    'deepseek-thinking',
    [tool('a'), user],
    deepseek("Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"),
  ],
  [
    'X4 reasoning_content',
    'groq',
    [{ role: 'system', content: 's' }, user, { ...said, reasoning_content: 'r' }, user],
    groq(
      "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]",
    ),
  ],
  [
    'X5 half an argument',
    'vllm',
    [user, { role: 'assistant', content: '', tool_calls: [call('a', '{"location": "Par')] }, tool('a')],
    vllm('Unterminated string starting at: line 1 column 14 (char 13)'),
  ],
  [
    'X6 two users',
    'vllm',
    [user, user],
    vllm('Conversation roles must alternate user/assistant/user/assistant/...'),
  ],
  [
    'X6 an assistant first',
    'vllm',
    [said, user],
    vllm('Conversation roles must alternate user/assistant/user/assistant/...'),
  ],
  [
    'X7 no content',
    'ollama',
    [user, { role: 'assistant', content: null }, user],
    ollama('invalid message content type: <nil>'),
  ],
  [
    'X8 arguments that are no object',
    'ollama',
    [user, { role: 'assistant', content: '', tool_calls: [call('a', '{"a": ')] }, tool('a')],
    ollama('invalid tool call arguments'),
  ],
  [
    'a remote image',
    'ollama',
    [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://e.com/a.png' } }] }],
    ollama('image URLs are not currently supported, please use base64 encoded data instead'),
  ],
  [
    'a result without id',
    'groq',
    [user, calling('a'), { role: 'tool', content: 'y' }],
    groq(
      "'messages.2' : for 'role:tool' the following must be satisfied[('messages.2.tool_call_id' : property 'tool_call_id' is missing)]",
    ),
  ],
]

test.each(refused)('a compatible server refuses %s (%s)', async (label, profile, messages, expected) => {
  const server = await pool.shared(profile)
  const { status, body } = await post(server, { model: 'm', messages })
  expect(status).toBe(400)
  expect(body).toEqual(expected)
  if (/^[MX]\d/.test(label)) expect(server.violations.at(-1)?.code).toBe(label.split(' ')[0])
})

test.each([
  ['M8', 'mistral', order('Prompt contains 91 tokens, too large for model with 50 maximum context length')],
  ['X9', 'ollama', ollama('the input length exceeds the context length')],
] as const)('%s: a prompt over the window is refused by %s', async (code, profile, expected) => {
  const server = await pool.start({ profile, contextWindow: 50 })
  const { body } = await post(server, {
    model: 'm',
    messages: [{ role: 'user', content: 'x'.repeat(306) }],
  })
  expect(body).toMatchObject(code === 'M8' ? { message: expected.message } : expected)
  expect(server.violations[0]?.code).toBe(code)
})

test('Mistral refuses unknown fields and names their path', async () => {
  const server = await pool.shared('mistral')
  const messages = [user, { ...said, reasoning_content: 'r' }, user]
  const posted = await post(server, { model: 'm', messages })
  expect(posted.status).toBe(422)
  expect(posted.body).toEqual({
    detail: [
      {
        type: 'extra_forbidden',
        loc: ['body', 'messages', 1, 'assistant', 'reasoning_content'],
        msg: 'Extra inputs are not permitted',
        input: 'r',
      },
    ],
  })
  expect(judge('mistral', { model: 'm', messages: [user], seed: 1 })[0]?.code).toBe('M-schema')
})

test('DeepSeek refuses roles that its parser does not know', () => {
  const body = { model: 'm', messages: [{ role: 'developer', content: 'd' }] }
  expect(judge('deepseek-thinking', body)[0]?.message).toMatch(
    /^Failed to deserialize the JSON body into the target type: messages\[0\]\.role: unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool` at line 1 column \d+$/,
  )
})

const legal: [string, StrictProfile, unknown[]][] = [
  ['a user after a tool', 'mistral', [user, calling('abcdefgh1'), tool(), user]],
  ['a tool last', 'mistral', [user, calling('abcdefgh1', 'abcdefgh2'), tool('abcdefgh2'), tool('abcdefgh1')]],
  ['a prefix', 'mistral', [user, { ...said, prefix: true }]],
  ['empty reasoning with a call', 'deepseek-thinking', [user, thinking('a'), tool('a'), said, user]],
  ['reasoning under its own name', 'groq', [user, { ...said, reasoning: 'r' }, user]],
  ['orphans and unanswered calls', 'ollama', [tool('a'), user, calling('b'), user]],
  ['a user after a tool', 'vllm', [user, calling('b'), tool('b'), user]],
  ['orphans and unanswered calls', 'vllm', [user, calling('b'), user]],
]
test.each(legal)('a compatible server accepts %s (%s)', (_label, profile, messages) => {
  expect(judge(profile, { model: 'm', messages })).toEqual([])
})

test('the lenient reading accepts what only some templates and models refuse', () => {
  const lenient = { reading: 'lenient' } as const
  expect(judge('vllm', { model: 'm', messages: [user, user] }, lenient)).toEqual([])
  expect(judge('groq', { model: 'm', messages: [user, calling('a')] }, lenient)).toEqual([])
  expect(judge('mistral', { model: 'm', messages: [user], stream_options: {} }, lenient)).toEqual([])
})

test('Ollama accepts a list as tool content and loses its id', async () => {
  const server = await pool.shared('ollama')
  const content = [{ type: 'text', text: 'y' }]
  const messages = [user, calling('a'), { role: 'tool', tool_call_id: 'a', content }]
  const { status, body } = await post(server, { model: 'm', messages })
  expect(status).toBe(200)
  expect(body).toMatchObject({ choices: [{ message: { content: 'The tool returned: y' } }] })
  expect(server.violations.at(-1)).toMatchObject({ code: 'X10', status: 200 })
})
