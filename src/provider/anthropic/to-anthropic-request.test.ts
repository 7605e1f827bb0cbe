import { expect, test } from 'vitest'
import { describeModel } from '../model-catalog.js'
import type { GenerationOptions, ProviderMessage, ProviderPart, ToolDeclaration } from '../provider.js'
import { PROFILES } from '../repair/profile.js'
import { toAnthropicRequest } from './to-anthropic-request.js'

function write(
  messages: ProviderMessage[],
  options: GenerationOptions = {},
  model = 'claude-haiku-4-5',
  tools: ToolDeclaration[] = [],
) {
  const info = describeModel('anthropic', model)
  const profile = PROFILES[info.profile as 'anthropic-4.5']
  return toAnthropicRequest({ model, messages, tools, options, profile, info, report: () => {} })
}

const text = (words: string): ProviderPart => ({ type: 'text', text: words })
const user = (words: string): ProviderMessage => ({ role: 'user', parts: [text(words)] })
const clock: ToolDeclaration = { name: 'clock', description: 'c', parameters: {} }
const MARK = { cache_control: { type: 'ephemeral' } }
const origin = { vendor: 'anthropic' } as const

const CALLED: ProviderMessage[] = [
  user('hi'),
  {
    role: 'assistant',
    parts: [
      { type: 'reasoning', text: 'hm', signature: 'sig', origin },
      { type: 'reasoning', text: '', signature: 'hidden', origin, redacted: true },
      text('Let me see.'),
      { type: 'tool-call', id: 'toolu_a', name: 'clock', args: {} },
    ],
  },
  {
    role: 'tool',
    parts: [{ type: 'tool-result', id: 'toolu_a', name: 'clock', result: { time: 1 }, isError: true }],
  },
]

test('thinking is sent back unchanged, with calls and results by id', () => {
  expect(write(CALLED, {}, 'claude-haiku-4-5', [clock]).messages).toEqual([
    { role: 'user', content: [{ type: 'text', text: 'hi' }] },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'hm', signature: 'sig' },
        { type: 'redacted_thinking', data: 'hidden' },
        { type: 'text', text: 'Let me see.' },
        { type: 'tool_use', id: 'toolu_a', name: 'clock', input: {} },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_a', content: '{"time":1}', is_error: true, ...MARK },
      ],
    },
  ])
})

test('three cache marks are set: after the system prompt, the tools and the last turn', () => {
  const body = write(
    [{ role: 'system', parts: [text('a'), text('b')] }, user('hi')],
    {},
    'claude-haiku-4-5',
    [clock, { ...clock, name: 'c2' }],
  )
  expect(body.system).toEqual([
    { type: 'text', text: 'a' },
    { type: 'text', text: 'b', ...MARK },
  ])
  expect(body.tools?.map(tool => tool.cache_control)).toEqual([undefined, { type: 'ephemeral' }])
  expect(JSON.stringify(body).match(/cache_control/g)).toHaveLength(3)
})

test('the cache mark is not set on thinking or blank text', () => {
  const last = (part: ProviderPart) =>
    JSON.stringify(write([user('hi'), { role: 'assistant', parts: [part] }]).messages)
  expect(last({ type: 'reasoning', text: 'hm', signature: 's', origin })).not.toContain('cache_control')
  expect(last(text(' '))).not.toContain('cache_control')
})

test('a history with calls declares their tools even when the request has none, and forbids them', () => {
  const body = write(CALLED)
  expect(body.tools?.map(tool => tool.name)).toEqual(['clock'])
  expect(body.tool_choice).toEqual({ type: 'none' })
  expect(write([user('hi')])).not.toHaveProperty('tools')
})

test('max_tokens is always set: the requested limit, or the most that the model allows', () => {
  expect(write([user('hi')]).max_tokens).toBe(64_000)
  expect(write([user('hi')], { maxOutputTokens: 9 }).max_tokens).toBe(9)
})

test('thinking up to Claude 4.5 is a token budget below max_tokens, without a temperature', () => {
  const body = write([user('hi')], {
    thinking: { budgetTokens: 2000 },
    maxOutputTokens: 1000,
    temperature: 0.5,
  })
  expect(body.thinking).toEqual({ type: 'enabled', budget_tokens: 2000 })
  expect(body.max_tokens).toBe(3000)
  expect(body).not.toHaveProperty('temperature')
})

test('thinking from Claude 4.6 on is adaptive with an effort', () => {
  const body = write(
    [user('hi')],
    { thinking: { effort: 'minimal', includeThoughts: true } },
    'claude-opus-4-8',
  )
  expect(body.thinking).toEqual({ type: 'adaptive', display: 'summarized' })
  expect(body.output_config).toEqual({ effort: 'low' })
})

test('thinking is not requested within a turn that began without it', () => {
  const withoutThinking: ProviderMessage[] = [
    CALLED[0]!,
    { role: 'assistant', parts: [{ type: 'tool-call', id: 'toolu_a', name: 'clock', args: {} }] },
    CALLED[2]!,
  ]
  const options: GenerationOptions = { thinking: { effort: 'low' } }
  expect(write(withoutThinking, options)).not.toHaveProperty('thinking')
  expect(write(CALLED, options)).toHaveProperty('thinking')
  // A user's text after results is one message with them.
  expect(write([...withoutThinking, user('next')], options)).not.toHaveProperty('thinking')
  const answered: ProviderMessage = { role: 'assistant', parts: [text('noon')] }
  expect(write([...withoutThinking, answered, user('next')], options)).toHaveProperty('thinking')
  expect(write([user('hi'), answered], options)).not.toHaveProperty('thinking')
})

test('thinking is not requested together with a forced tool', () => {
  const body = write(
    [user('hi')],
    { thinking: { effort: 'low' }, toolChoice: 'required' },
    'claude-haiku-4-5',
    [clock],
  )
  expect(body).not.toHaveProperty('thinking')
  expect(body.tool_choice).toEqual({ type: 'any' })
})

test('a request has temperature or top_p, not both', () => {
  const body = write([user('hi')], { temperature: 0.5, topP: 0.9, topK: 3 })
  expect(body).toMatchObject({ temperature: 0.5, top_k: 3 })
  expect(body).not.toHaveProperty('top_p')
  expect(write([user('hi')], { topP: 0.9 })).toMatchObject({ top_p: 0.9 })
})

test.each(['claude-opus-4-7', 'claude-opus-4-8', 'claude-sonnet-5', 'claude-fable-5'])(
  'the temperature is left out for %s, which refuses it',
  model => {
    expect(write([user('hi')], { temperature: 0.5 }, model)).not.toHaveProperty('temperature')
  },
)

test.each(['claude-sonnet-4-20250514', 'claude-3-5-haiku-20241022', 'claude-opus-4-6'])(
  'the temperature is sent to %s',
  model => {
    expect(write([user('hi')], { temperature: 0.5 }, model)).toHaveProperty('temperature', 0.5)
  },
)

test.each([
  [
    { mimeType: 'image/png', data: 'AA==' },
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } },
  ],
  [
    { mimeType: 'image/png', url: 'https://x/y' },
    { type: 'image', source: { type: 'url', url: 'https://x/y' } },
  ],
  [
    { mimeType: 'application/pdf', data: 'AA==' },
    { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AA==' } },
  ],
  [
    { mimeType: 'text/plain', data: btoa('hi') },
    { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'hi' } },
  ],
  [
    { mimeType: 'audio/wav', data: 'AA==' },
    { type: 'text', text: expect.stringContaining('audio/wav') },
  ],
])('media of row %# are written as Anthropic blocks', (media, block) => {
  const body = write([{ role: 'user', parts: [{ type: 'media', ...media }, text('see')] }])
  expect(body.messages[0]?.content[0]).toEqual(block)
})

test('a response schema closes every object', () => {
  const responseSchema = { type: 'object', properties: { a: { type: 'object', properties: {} } } }
  expect(write([user('hi')], { responseSchema }).output_config).toEqual({
    format: {
      type: 'json_schema',
      schema: {
        type: 'object',
        properties: { a: { type: 'object', properties: {}, additionalProperties: false } },
        additionalProperties: false,
      },
    },
  })
})
