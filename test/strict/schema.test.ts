// The shape of the JSON: what is refused before anyone looks at the conversation.
import { expect, test } from 'vitest'
import { judge, type StrictProfile } from '../../src/entries/testing.js'
import { post, serverPool } from './support.js'

const pool = serverPool()

const user = { role: 'user', content: 'hi' }
const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } }
const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }
const chat = (...messages: unknown[]) => ({ model: 'm', messages })
const input = (rest: object) => ({ model: 'm', input: 'hi', ...rest })
const claude = (rest: object) => ({ model: 'm', max_tokens: 9, messages: [user], ...rest })

const table: [StrictProfile, unknown, string][] = [
  ['openai-chat', { messages: [user] }, 'you must provide a model parameter'],
  ['openai-chat', [], 'We could not parse the JSON body of your request.'],
  ['groq', { model: 'm' }, "property 'messages' is missing"],
  ['groq', chat(), "'messages' : minimum number of items is 1"],
  [
    'groq',
    chat(user, { role: 'assistant', content: '', tool_calls: [call] }, user),
    'An assistant message with',
  ],
  ['groq', chat({ role: 'model', content: 'a' }), "'messages.0' : discriminator property 'role'"],
  ['vllm', { model: 'm' }, "[{'type': 'missing', 'loc': ('body', 'messages'), 'msg': 'Field required'}]"],
  ['vllm', chat(user, { role: 'tool', content: [image] }), 'Only user messages can contain images'],
  ['ollama', chat(), "[] is too short - 'messages'"],
  ['ollama', { messages: [user] }, 'model is required'],
  ['ollama', chat({ role: 'user', content: 5 }), 'invalid message content type: float64'],
  ['mistral', { model: 'm' }, 'body.messages: Field required'],
  [
    'mistral',
    chat({ role: 'developer', content: 'a' }),
    "body.messages.0: Input tag 'developer' found using",
  ],
  [
    'deepseek-thinking',
    { messages: [user] },
    'Failed to deserialize the JSON body into the target type: missing field `model`',
  ],
  [
    'deepseek-thinking',
    chat({ role: 'user', content: [image] }),
    'Failed to deserialize the JSON body into the target type: messages[0]: unknown variant `image_url`, expected `text`',
  ],
  ['openai-responses', { input: 'hi' }, "Missing required parameter: 'model'."],
  ['openai-responses', { model: 'm' }, 'One of "input" or "previous_response_id"'],
  ['openai-responses', input({ messages: [] }), "Unknown parameter: 'messages'."],
  ['openai-responses', input({ input: [] }), "Invalid 'input': empty array."],
  [
    'openai-responses',
    input({ input: [{ type: 'tool_use' }] }),
    "Invalid value: 'tool_use'. Supported values are:",
  ],
  [
    'openai-responses',
    input({ input: [{ role: 'tool', content: 'a' }] }),
    "Invalid value: 'tool'. Supported values are:",
  ],
  [
    'openai-responses',
    input({ max_output_tokens: 1 }),
    "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 1 instead.",
  ],
  ['openai-responses', input({ include: ['everything'] }), "Invalid value: 'everything'."],
  [
    'openai-responses',
    input({ tools: [{ type: 'function', function: { name: 'f' } }] }),
    "Missing required parameter: 'tools[0].name'.",
  ],
  [
    'openai-responses',
    input({ tools: [{ type: 'function', name: 'f', strict: true, parameters: { type: 'object' } }] }),
    "Invalid schema for function 'f': In context=(), 'additionalProperties' is required to be supplied and to be false.",
  ],
  [
    'openai-responses',
    input({ tool_choice: { type: 'function', name: 'g' } }),
    "Tool choice 'function' not found in 'tools' parameter.",
  ],
  ['anthropic-4.6', claude({ messages: [] }), 'messages: at least one message is required'],
  ['anthropic-4.6', claude({ max_tokens: 0 }), 'max_tokens: Input should be greater than or equal to 1'],
  [
    'anthropic-4.6',
    claude({ messages: [{ role: 'tool', content: 'a' }] }),
    "messages.0.role: Input should be 'user' or 'assistant'",
  ],
  [
    'anthropic-4.6',
    claude({ messages: [{ role: 'user', content: [image] }] }),
    "messages.0.content.0: Input tag 'image_url' found using 'type' does not match",
  ],
  [
    'anthropic-4.6',
    claude({ tool_choice: { type: 'tool', name: 'f' } }),
    "tool_choice: Tool 'f' not found in provided tools",
  ],
  [
    'anthropic-4.6',
    claude({ thinking: { type: 'enabled', budget_tokens: 100 } }),
    'thinking.enabled.budget_tokens: Input should be greater than or equal to 1024',
  ],
  [
    'anthropic-4.5',
    claude({ thinking: { type: 'enabled', budget_tokens: 1024 } }),
    '`max_tokens` must be greater than `thinking.budget_tokens`.',
  ],
]

test.each(table)('%s refuses %j', (profile, body, message) => {
  const [first] = judge(profile, body)
  expect(first?.message.slice(0, message.length)).toBe(message)
  expect(first?.status).toBeGreaterThanOrEqual(400)
})

test('Anthropic refuses a request without a version', async () => {
  const server = await pool.shared('anthropic-4.5')
  const response = await fetch(`${server.baseUrl}/v1/messages`, {
    method: 'POST',
    body: JSON.stringify(claude({})),
  })
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: { message: 'anthropic-version: header is required' } })
})

test('Anthropic accepts temperature or top_p, not both, in its older version', async () => {
  const server = await pool.shared('anthropic-4.5')
  expect((await post(server, claude({ temperature: 0.5 }))).status).toBe(200)
  expect((await post(server, claude({ temperature: 0.5, top_p: 0.5 }))).body).toMatchObject({
    error: {
      message: '`temperature` and `top_p` cannot both be specified for this model. Please use only one.',
    },
  })
})
