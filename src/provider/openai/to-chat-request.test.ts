import { expect, test } from 'vitest'
import { describeModel } from '../model-catalog.js'
import type { GenerationOptions, ProviderMessage, ProviderPart, ToolDeclaration } from '../provider.js'
import { PROFILES, type ProfileName } from '../repair/profile.js'
import { chatQuirks, toChatRequest } from './to-chat-request.js'

function write(
  messages: ProviderMessage[],
  options: GenerationOptions = {},
  {
    model = 'gpt-4.1',
    profile = 'openai-chat' as ProfileName,
    tools = [] as ToolDeclaration[],
    preset = undefined as string | undefined,
  } = {},
) {
  const info = describeModel('openai', model)
  return toChatRequest(
    { model, messages, tools, options, profile: PROFILES[profile], info, report: () => {} },
    chatQuirks(profile, preset),
  )
}

const text = (words: string): ProviderPart => ({ type: 'text', text: words })
const user = (words: string): ProviderMessage => ({ role: 'user', parts: [text(words)] })
const clock: ToolDeclaration = { name: 'clock', description: 'c', parameters: {} }

const CALLS: ProviderMessage[] = [
  user('hi'),
  {
    role: 'assistant',
    parts: [
      { type: 'reasoning', text: 'hm' },
      { type: 'tool-call', id: 'a', name: 'add', args: { x: 1 } },
      { type: 'tool-call', id: 'b', name: 'add', args: {} },
    ],
  },
  {
    role: 'tool',
    parts: [
      { type: 'tool-result', id: 'a', name: 'add', result: { sum: 1 } },
      { type: 'tool-result', id: 'b', name: 'add', result: '' },
    ],
  },
]

test('calls carry their arguments as text, and every result is a message with string content', () => {
  expect(write(CALLS).messages).toEqual([
    { role: 'user', content: 'hi' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: 'a', type: 'function', function: { name: 'add', arguments: '{"x":1}' } },
        { id: 'b', type: 'function', function: { name: 'add', arguments: '{}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'a', content: '{"sum":1}' },
    { role: 'tool', tool_call_id: 'b', content: '(no output)' },
  ])
})

const plain: ProviderMessage = { role: 'assistant', parts: [{ type: 'reasoning', text: 'hm' }, text('ho')] }
const silent: ProviderMessage = {
  role: 'assistant',
  parts: [{ type: 'tool-call', id: 'a', name: 'add', args: {} }],
}
test.each([
  ['deepseek-thinking', CALLS[1]!, { reasoning_content: 'hm' }],
  ['deepseek-thinking', silent, { reasoning_content: '' }],
  ['deepseek-thinking', plain, {}],
  ['ollama', plain, { reasoning: 'hm' }],
  ['ollama', silent, {}],
  ['groq', plain, {}],
  ['mistral', plain, {}],
  ['openai-chat', plain, {}],
] as [ProfileName, ProviderMessage, object][])(
  'earlier reasoning is sent to %s in the form that it accepts (row %#)',
  (profile, message, expected) => {
    const { reasoning_content, reasoning } = write([user('hi'), message], {}, { profile }).messages[1]!
    expect({
      ...(reasoning_content === undefined ? {} : { reasoning_content }),
      ...(reasoning === undefined ? {} : { reasoning }),
    }).toEqual(expected)
  },
)

test('several texts of one message are one string, and media make it a list', () => {
  const media: ProviderPart = { type: 'media', mimeType: 'image/png', data: 'AA==' }
  expect(write([{ role: 'user', parts: [text('a'), text('b')] }]).messages).toEqual([
    { role: 'user', content: 'a\nb' },
  ])
  expect(write([{ role: 'user', parts: [text('see'), media] }]).messages).toEqual([
    {
      role: 'user',
      content: [
        { type: 'text', text: 'see' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
      ],
    },
  ])
})

test.each([
  [
    'image by address',
    { mimeType: 'image/jpeg', url: 'https://x/y.jpg' },
    { type: 'image_url', image_url: { url: 'https://x/y.jpg' } },
  ],
  [
    'sound',
    { mimeType: 'audio/mpeg', data: 'AA==' },
    { type: 'input_audio', input_audio: { data: 'AA==', format: 'mp3' } },
  ],
  [
    'document',
    { mimeType: 'application/pdf', data: 'AA==', name: 'a.pdf' },
    { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA==' } },
  ],
  [
    'film, in words',
    { mimeType: 'video/mp4', data: 'AA==' },
    { type: 'text', text: expect.stringContaining('video/mp4') },
  ],
])('%s is written as a Chat Completions part', (_, media, wire) => {
  expect(write([{ role: 'user', parts: [{ type: 'media', ...media }] }]).messages[0]?.content).toEqual([wire])
})

test('options of OpenAI are written in its fields', () => {
  const options = { temperature: 0, topP: 0.9, topK: 3, seed: 7, maxOutputTokens: 9, stopSequences: ['X'] }
  expect(write([user('hi')], options)).toMatchObject({
    temperature: 0,
    top_p: 0.9,
    seed: 7,
    max_completion_tokens: 9,
    stop: ['X'],
    stream_options: { include_usage: true },
  })
  expect(write([user('hi')], options)).not.toHaveProperty('top_k')
})

test('options that a thinking model refuses are left out', () => {
  const body = write(
    [user('hi')],
    { temperature: 0, stopSequences: ['X'], thinking: { effort: 'low' } },
    { model: 'o4-mini' },
  )
  expect(body).toMatchObject({ reasoning_effort: 'low' })
  expect(body).not.toHaveProperty('temperature')
  expect(body).not.toHaveProperty('stop')
})

test('options of Mistral are written in its fields', () => {
  const body = write(
    [user('hi')],
    { seed: 7, maxOutputTokens: 9, toolChoice: 'required' },
    { profile: 'mistral', tools: [clock] },
  )
  expect(body).toMatchObject({ random_seed: 7, max_tokens: 9, tool_choice: 'any' })
  expect(body).not.toHaveProperty('stream_options')
})

test('effort is written in the field of OpenRouter', () => {
  const body = write(
    [user('hi')],
    { thinking: { budgetTokens: 5000 }, maxOutputTokens: 9 },
    { preset: 'openrouter' },
  )
  expect(body).toMatchObject({ reasoning: { effort: 'medium' }, max_tokens: 9 })
})

test.each([
  ['auto', 'auto'],
  ['none', 'none'],
  ['required', 'required'],
  [{ name: 'clock' }, { type: 'function', function: { name: 'clock' } }],
] as const)('tool choice %j is written as tool_choice', (toolChoice, wire) => {
  expect(write([user('hi')], { toolChoice }, { tools: [clock] }).tool_choice).toEqual(wire)
  expect(write([user('hi')], { toolChoice })).not.toHaveProperty('tool_choice')
})

test('a response schema is a response format, or an instruction where the server knows only JSON', () => {
  const responseSchema = { type: 'object' }
  expect(write([user('hi')], { responseSchema })).toMatchObject({
    response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: responseSchema } },
  })
  const body = write([user('hi')], { responseSchema }, { profile: 'deepseek-thinking' })
  expect(body).toMatchObject({ response_format: { type: 'json_object' } })
  expect(body.messages[0]).toMatchObject({ role: 'system', content: expect.stringContaining('JSON') })
})

test('a tool without parameters is declared as an object', () => {
  expect(write([user('hi')], {}, { tools: [clock] }).tools).toEqual([
    {
      type: 'function',
      function: { name: 'clock', description: 'c', parameters: { type: 'object', properties: {} } },
    },
  ])
})
