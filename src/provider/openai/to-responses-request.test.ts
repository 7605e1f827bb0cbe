import { expect, test } from 'vitest'
import { describeModel } from '../model-catalog.js'
import type { GenerationOptions, ProviderMessage, ProviderPart, ToolDeclaration } from '../provider.js'
import { PROFILES } from '../repair/profile.js'
import { VENDORS } from '../vendors.js'
import { effortFor, isReasoningModel, toResponsesRequest } from './to-responses-request.js'

function write(
  messages: ProviderMessage[],
  options: GenerationOptions = {},
  model = 'gpt-5.2',
  tools: ToolDeclaration[] = [],
) {
  const info = describeModel('openai', model)
  return toResponsesRequest({
    model,
    messages,
    tools,
    options,
    profile: PROFILES['openai-responses'],
    info,
    report: () => {},
  })
}

const text = (words: string): ProviderPart => ({ type: 'text', text: words })
const user = (words: string): ProviderMessage => ({ role: 'user', parts: [text(words)] })

test('items keep the order in which the model made them, and none has an id', () => {
  const origin = { vendor: 'openai' } as const
  const body = write([
    { role: 'system', parts: [text('Be brief.')] },
    user('hi'),
    {
      role: 'assistant',
      parts: [
        { type: 'reasoning', text: 'hm', signature: 'enc1', origin },
        { type: 'tool-call', id: 'call_a', name: 'add', args: { x: 1 } },
        { type: 'reasoning', text: '', signature: 'enc2', origin },
        text('so'),
      ],
    },
    { role: 'tool', parts: [{ type: 'tool-result', id: 'call_a', name: 'add', result: { sum: 1 } }] },
  ])
  expect(body.instructions).toBe('Be brief.')
  expect(body.input).toEqual([
    { role: 'user', content: [{ type: 'input_text', text: 'hi' }] },
    { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: 'enc1' },
    { type: 'function_call', call_id: 'call_a', name: 'add', arguments: '{"x":1}' },
    { type: 'reasoning', summary: [], encrypted_content: 'enc2' },
    { role: 'assistant', content: [{ type: 'output_text', text: 'so' }] },
    { type: 'function_call_output', call_id: 'call_a', output: '{"sum":1}' },
  ])
  expect(body).toMatchObject({ store: false, stream: true, include: ['reasoning.encrypted_content'] })
})

test('reasoning without its encrypted content is left out: it could not be verified', () => {
  expect(
    write([user('hi'), { role: 'assistant', parts: [{ type: 'reasoning', text: 'hm' }, text('ho')] }]).input,
  ).toHaveLength(2)
})

test('models that do not think are not asked for encrypted thoughts, and accept a temperature', () => {
  const body = write([user('hi')], { temperature: 0.5 }, 'gpt-4.1')
  expect(body).not.toHaveProperty('include')
  expect(body).toMatchObject({ temperature: 0.5 })
  expect(write([user('hi')], { temperature: 0.5 })).not.toHaveProperty('temperature')
})

test('images and files are sent in results and in user messages', () => {
  const media: ProviderPart = { type: 'media', mimeType: 'image/png', data: 'AA==' }
  const body = write([
    { role: 'user', parts: [media, { type: 'media', mimeType: 'application/pdf', url: 'https://x/a.pdf' }] },
    { role: 'tool', parts: [{ type: 'tool-result', id: 'a', name: 'shot', result: 'ok', media: [media] }] },
  ])
  const image = { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'auto' }
  expect(body.input).toEqual([
    { role: 'user', content: [image, { type: 'input_file', file_url: 'https://x/a.pdf' }] },
    { type: 'function_call_output', call_id: 'a', output: [{ type: 'input_text', text: 'ok' }, image] },
  ])
})

test('options and tools are written in the fields of Responses', () => {
  const tools = [{ name: 'clock', description: 'c', parameters: {} }]
  const options: GenerationOptions = {
    maxOutputTokens: 9,
    toolChoice: { name: 'clock' },
    responseSchema: { type: 'object' },
    thinking: { effort: 'low', includeThoughts: true },
  }
  expect(write([user('hi')], options, 'gpt-5.2', tools)).toMatchObject({
    max_output_tokens: 9,
    tools: [
      {
        type: 'function',
        name: 'clock',
        description: 'c',
        parameters: { type: 'object', properties: {} },
        strict: false,
      },
    ],
    tool_choice: { type: 'function', name: 'clock' },
    reasoning: { effort: 'low', summary: 'auto' },
    text: { format: { type: 'json_schema', name: 'answer', schema: { type: 'object' }, strict: false } },
  })
})

test.each([
  ['gpt-5', { effort: 'minimal' }, 'minimal'],
  ['gpt-5-mini', { effort: 'minimal' }, 'minimal'],
  ['gpt-5.2', { effort: 'minimal' }, 'low'],
  ['gpt-5.2', { budgetTokens: 0 }, 'none'],
  ['o3', { budgetTokens: 0 }, 'low'],
  ['o3', { budgetTokens: 4000 }, 'low'],
  ['gpt-5.2', { budgetTokens: 16_000 }, 'medium'],
  ['gpt-5.2', { budgetTokens: 30_000 }, 'high'],
  ['gpt-5.2', { effort: 'high', budgetTokens: 1 }, 'high'],
  ['gpt-5.2', { includeThoughts: true }, undefined],
  ['gpt-5.2', undefined, undefined],
] as const)('%s with thinking %j has the effort %s', (model, thinking, effort) => {
  expect(effortFor(model, thinking)).toBe(effort)
})

test.each([
  ['gpt-5.2', true, true],
  ['o4-mini', true, true],
  ['codex-mini-latest', true, true],
  ['gpt-5-chat-latest', true, false],
  ['gpt-4.1', true, false],
  ['chatgpt-4o-latest', true, false],
  ['gpt-oss-120b', false, false],
  ['mistral-large-latest', false, false],
])('%s is one of OpenAI’s models: %s, and reasons: %s', (model, own, thinks) => {
  expect([VENDORS.openai.names.test(model), isReasoningModel(model)]).toEqual([own, thinks])
})
