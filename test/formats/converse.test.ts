import { expect, test } from 'vitest'
import { readHistoryText } from '../../src/formats/history-files.js'
import { checkText } from '../../src/runtime/check/check-text.js'
import { judge } from '../../src/testing/strict/judge.js'

const PIXEL = 'iVBORw0KGgo='
const say = (role: string, ...content: unknown[]) => ({ role, content })
const text = (words: string) => ({ text: words })
const call = (toolUseId: string, name = 'weather', input: unknown = { city: 'Rome' }) => ({
  toolUse: { toolUseId, name, input },
})
const result = (toolUseId: string, ...content: unknown[]) => ({
  toolResult: { toolUseId, content: content.length > 0 ? content : [text('rain')] },
})
const toolConfig = {
  tools: [{ toolSpec: { name: 'weather', inputSchema: { json: { type: 'object' } } } }],
}
const question = say('user', text('Weather?'))

test.each([
  ['a text', { messages: [question] }],
  ['an instruction', { system: [text('Be brief.')], messages: [question] }],
  ['what the SDK takes', { modelId: 'us.amazon.nova-pro-v1:0', messages: [question], inferenceConfig: {} }],
  ['a log of a request', { request: { body: JSON.stringify({ messages: [question] }) } }],
  ['calls', { messages: [question, say('assistant', call('a')), say('user', result('a'))], toolConfig }],
  [
    'a result that is an object',
    {
      messages: [question, say('assistant', call('a')), say('user', result('a', { json: { sky: 'rain' } }))],
      toolConfig,
    },
  ],
  ['a picture', { messages: [say('user', { image: { format: 'png', source: { bytes: PIXEL } } })] }],
])('a Converse request with %s is recognized and accepted', async (_, body) => {
  const { format, histories } = await checkText(JSON.stringify(body))
  expect(format?.format).toBe('converse')
  expect(histories[0]?.problems).toEqual([])
})

test('a Converse request is read without loss', async () => {
  const thinking = { reasoningContent: { reasoningText: { text: 'Rome.', signature: 'c2ln' } } }
  const failed = { toolResult: { toolUseId: 'b', content: [text('no'), text('sky')], status: 'error' } }
  const picture = { image: { format: 'jpeg', source: { bytes: PIXEL } } }
  const body = {
    system: [text('Be brief.')],
    messages: [
      say('user', text('Weather?'), { document: { format: 'pdf', name: 'map', source: { bytes: PIXEL } } }),
      say('assistant', thinking, text('I look.'), call('a'), call('b')),
      say('user', result('a', { json: { sky: 'rain' } }, picture), failed, {
        cachePoint: { type: 'default' },
      }),
    ],
  }
  const { histories } = await readHistoryText(JSON.stringify(body), 'it')
  expect(histories[0]?.messages.map(message => 'parts' in message && message.parts)).toEqual([
    [{ type: 'text', text: 'Be brief.' }],
    [
      { type: 'text', text: 'Weather?' },
      { type: 'media', mimeType: 'application/pdf', data: PIXEL, name: 'map' },
    ],
    [
      { type: 'reasoning', text: 'Rome.', signature: 'c2ln', origin: { vendor: 'anthropic' } },
      { type: 'text', text: 'I look.' },
      { type: 'tool-call', id: 'a', name: 'weather', args: { city: 'Rome' } },
      { type: 'tool-call', id: 'b', name: 'weather', args: { city: 'Rome' } },
    ],
    [
      {
        ...{ type: 'tool-result', id: 'a', name: 'weather', result: '{"sky":"rain"}' },
        media: [{ type: 'media', mimeType: 'image/jpeg', data: PIXEL }],
      },
      { type: 'tool-result', id: 'b', name: 'weather', result: 'no\nsky', isError: true },
      expect.objectContaining({ type: 'vendor', vendor: 'bedrock' }),
    ],
  ])
})

test.each([
  ['a call without a result', 'call-without-result', [question, say('assistant', call('a')), question]],
  [
    'a result without a call',
    'orphan-result',
    [question, say('assistant', text('So.')), say('user', result('z'))],
  ],
  ['two messages of the user', 'repeated-role', [question, question]],
  ['an answer last', 'assistant-last', [question, say('assistant', text('Rain.'))]],
  ['an answer first', 'no-user-first', [say('assistant', text('Hello.')), question]],
  ['an empty text', 'empty-part', [say('user', text('Weather?'), text(' '))]],
  [
    'one id twice',
    'duplicate-id',
    [question, say('assistant', call('a'), call('a')), say('user', result('a'), result('a'))],
  ],
  [
    'a message of the tool',
    'unknown-role',
    [question, say('assistant', call('a')), say('tool', result('a'))],
  ],
])(
  'a Converse request with %s: lint names the cause once, and repair makes it valid',
  async (_, code, messages) => {
    const { format, histories } = await checkText(JSON.stringify({ messages, toolConfig }))
    expect(format?.format).toBe('converse')
    const [checked] = histories
    expect(checked?.problems.map(problem => problem.code)).toEqual([code])
    expect(checked?.healed).toMatchObject({ profile: 'converse', left: [] })
    expect(judge('converse', JSON.parse(checked?.healed?.text ?? '{}'))).toEqual([])
  },
)

test.each([
  [
    'blocks of Converse and of Anthropic',
    [
      question,
      say('assistant', call('a')),
      say('user', { type: 'tool_result', tool_use_id: 'a', content: 'x' }),
    ],
    ['converse', 'anthropic'],
  ],
  [
    'calls of OpenAI and results of Converse',
    [
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{}' } }],
      },
      say('user', result('a')),
    ],
    ['converse', 'openai-chat'],
  ],
])('a file with %s is refused as ambiguous', async (_, messages, candidates) => {
  const reading = readHistoryText(JSON.stringify({ messages }), 'it')
  await expect(reading).rejects.toThrow(/not sure, it could be a Bedrock Converse request or/)
  await expect(reading).rejects.toMatchObject({ details: { candidates } })
})

test('a Claude request with an instruction is recognized as Anthropic’s', async () => {
  const body = { system: 'Be brief.', messages: [{ role: 'user', content: 'hi' }], max_tokens: 10 }
  expect((await readHistoryText(JSON.stringify(body), 'it')).format).toBe('anthropic')
})
