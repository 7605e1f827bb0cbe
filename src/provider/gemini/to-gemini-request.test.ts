import { expect, test } from 'vitest'
import { describeModel } from '../model-catalog.js'
import type { GenerationOptions, ProviderMessage, ProviderPart, ToolDeclaration } from '../provider.js'
import { PROFILES, type ProfileName } from '../repair/profile.js'
import { toGeminiRequest } from './to-gemini-request.js'

function write(
  messages: ProviderMessage[],
  options: GenerationOptions = {},
  { model = 'gemini-3.5-flash', profile = 'gemini-3' as ProfileName, tools = [] as ToolDeclaration[] } = {},
) {
  const info = describeModel('gemini', model)
  return toGeminiRequest({
    model,
    messages,
    tools,
    options,
    profile: PROFILES[profile],
    info,
    report: () => {},
  })
}

const text = (words: string): ProviderPart => ({ type: 'text', text: words })
const user = (words: string): ProviderMessage => ({ role: 'user', parts: [text(words)] })

test('leading system messages become the instruction, everything else a turn', () => {
  const body = write([
    { role: 'system', parts: [text('Be brief.')] },
    user('hi'),
    { role: 'assistant', parts: [text('ho')] },
  ])
  expect(body).toEqual({
    systemInstruction: { role: 'user', parts: [{ text: 'Be brief.' }] },
    contents: [
      { role: 'user', parts: [{ text: 'hi' }] },
      { role: 'model', parts: [{ text: 'ho' }] },
    ],
  })
})

test('signatures sit on the part they came with, the empty last text included', () => {
  const origin = { vendor: 'gemini' } as const
  const body = write([
    user('hi'),
    {
      role: 'assistant',
      parts: [
        { type: 'reasoning', text: 'hm', signature: 'r', origin },
        { type: 'tool-call', id: 'a', name: 'add', args: { x: 1 }, signature: 's', origin },
        { type: 'tool-call', id: 'b', name: 'add', args: { x: 2 } },
      ],
    },
    {
      role: 'tool',
      parts: [
        { type: 'tool-result', id: 'a', name: 'add', result: { sum: 1 } },
        { type: 'tool-result', id: 'b', name: 'add', result: 'two' },
      ],
    },
    { role: 'assistant', parts: [text('done'), { type: 'text', text: '', signature: 't', origin }] },
  ])
  expect(body.contents.slice(1)).toEqual([
    {
      role: 'model',
      parts: [
        { text: 'hm', thought: true, thoughtSignature: 'r' },
        { functionCall: { id: 'a', name: 'add', args: { x: 1 } }, thoughtSignature: 's' },
        { functionCall: { id: 'b', name: 'add', args: { x: 2 } } },
      ],
    },
    {
      role: 'user',
      parts: [
        { functionResponse: { id: 'a', name: 'add', response: { sum: 1 } } },
        { functionResponse: { id: 'b', name: 'add', response: { output: 'two' } } },
      ],
    },
    { role: 'model', parts: [{ text: 'done' }, { text: '', thoughtSignature: 't' }] },
  ])
})

test('Gemini 2 gets no ids, and media after a response instead of inside it', () => {
  const media = [{ type: 'media', mimeType: 'image/png', data: 'AA==' }] as const
  const messages: ProviderMessage[] = [
    { role: 'tool', parts: [{ type: 'tool-result', id: 'a', name: 'shot', result: { ok: true }, media }] },
  ]
  const inline = { inlineData: { mimeType: 'image/png', data: 'AA==' } }
  expect(write(messages, {}, { profile: 'gemini-2' }).contents[0]?.parts).toEqual([
    { functionResponse: { name: 'shot', response: { ok: true } } },
    inline,
  ])
  expect(write(messages).contents[0]?.parts).toEqual([
    { functionResponse: { id: 'a', name: 'shot', response: { ok: true }, parts: [inline] } },
  ])
})

test.each([
  [
    { type: 'media', mimeType: 'image/png', data: 'AA==' },
    { inlineData: { mimeType: 'image/png', data: 'AA==' } },
  ],
  [
    { type: 'media', mimeType: 'video/mp4', url: 'gs://b/v' },
    { fileData: { mimeType: 'video/mp4', fileUri: 'gs://b/v' } },
  ],
  [
    { type: 'vendor', vendor: 'gemini', value: { executableCode: { code: '1' } }, text: 't' },
    { executableCode: { code: '1' } },
  ],
  [{ type: 'vendor', vendor: 'anthropic', value: { type: 'x' }, text: 'said' }, { text: 'said' }],
] as [ProviderPart, unknown][])('part %# is written as Gemini knows it', (part, wire) => {
  expect(write([{ role: 'user', parts: [part] }]).contents[0]?.parts).toEqual([wire])
})

test('tools are declared by JSON schema, and without one when they take nothing', () => {
  const schema = { type: 'object', properties: { city: { type: 'string' } }, additionalProperties: false }
  const tools = [
    { name: 'weather', description: 'w', parameters: schema },
    { name: 'clock', description: 'c', parameters: { type: 'object' } },
  ]
  expect(write([user('hi')], {}, { tools }).tools).toEqual([
    {
      functionDeclarations: [
        { name: 'weather', description: 'w', parametersJsonSchema: schema },
        { name: 'clock', description: 'c' },
      ],
    },
  ])
})

const tools = [{ name: 'clock', description: 'c', parameters: {} }]
test.each([
  ['auto', { mode: 'AUTO' }],
  ['none', { mode: 'NONE' }],
  ['required', { mode: 'ANY' }],
  [{ name: 'clock' }, { mode: 'ANY', allowedFunctionNames: ['clock'] }],
] as const)('tool choice %j is written as a function calling config', (toolChoice, functionCallingConfig) => {
  expect(write([user('hi')], { toolChoice }, { tools }).toolConfig).toEqual({ functionCallingConfig })
})

test('sampling, limits and a response schema are written to the generation config', () => {
  const options = {
    temperature: 0,
    topP: 0.9,
    topK: 5,
    seed: 7,
    maxOutputTokens: 9,
    stopSequences: ['X'],
    responseSchema: { type: 'object' },
  }
  expect(write([user('hi')], options).generationConfig).toEqual({
    temperature: 0,
    topP: 0.9,
    topK: 5,
    seed: 7,
    maxOutputTokens: 9,
    stopSequences: ['X'],
    responseMimeType: 'application/json',
    responseJsonSchema: { type: 'object' },
  })
})

test.each([
  ['gemini-2.5-pro', { effort: 'low' }, { thinkingBudget: 1024 }],
  [
    'gemini-3.5-flash',
    { effort: 'high', includeThoughts: true },
    { includeThoughts: true, thinkingLevel: 'HIGH' },
  ],
  ['gemini-3.5-flash', { budgetTokens: 0 }, { thinkingBudget: 0 }],
  ['gemini-3.5-flash', { effort: 'minimal' }, { thinkingLevel: 'MINIMAL' }],
  ['gemini-3.8-flash', { effort: 'minimal' }, { thinkingLevel: 'LOW' }],
  ['gemini-3-pro-preview', { effort: 'medium' }, { thinkingLevel: 'HIGH' }],
] as const)('thinking of %s given as %j becomes a thinking config', (model, thinking, thinkingConfig) => {
  expect(write([user('hi')], { thinking }, { model }).generationConfig).toEqual({ thinkingConfig })
})
