import { FunctionTool, LlmAgent, type LlmRequest, type LlmResponse } from '@google/adk'
import type { Content, FunctionDeclaration } from '@google/genai'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { convertMessages } from '../../src/adk/model/convert-messages.js'
import { overflowCounts } from '../../src/adk/model/fit-request.js'
import {
  type Calibration,
  ModelAdapter,
  type ModelAdapterOptions,
} from '../../src/adk/model/model-adapter.js'
import { type ModelReport, onModelRequest } from '../../src/adk/model/model-reports.js'

import { SessionServiceAdapter } from '../../src/adk/session/session-service-adapter.js'
import { AgentError } from '../../src/errors.js'
import { openSignature, type ProviderMessage, sealSignature } from '../../src/provider/provider.js'
import type { FinishReason, StreamEvent } from '../../src/provider/stream-event.js'
import {
  type Script,
  ScriptedProvider,
  type ScriptedProviderOptions,
} from '../../src/testing/scripted-provider.js'
import { openTestStore, runTurn } from '../support/adk-run.js'

const user = (text: string): Content => ({ role: 'user', parts: [{ text }] })

function request(contents: Content[], fields: Partial<LlmRequest> = {}): LlmRequest {
  return { contents, toolsDict: {}, liveConnectConfig: {}, ...fields }
}

interface AskOptions extends Partial<ModelAdapterOptions> {
  stream?: boolean
  providerOptions?: ScriptedProviderOptions
  llmRequest?: LlmRequest
}

async function ask(script: Script, { stream, providerOptions, llmRequest, ...options }: AskOptions = {}) {
  const provider = new ScriptedProvider(script, providerOptions)
  const adapter = new ModelAdapter({ provider, model: 'm', ...options })
  const reports: ModelReport[] = []
  const asked = llmRequest ?? request([user('hi')])
  onModelRequest(asked, report => reports.push(report))
  const responses: LlmResponse[] = []
  let error: unknown
  try {
    for await (const response of adapter.generateContentAsync(asked, stream)) responses.push(response)
  } catch (thrown) {
    error = thrown
  }
  return { provider, responses, reports, error, last: responses.at(-1), asked }
}

const events = (...list: StreamEvent[]): Script => [
  { events: [...list, { type: 'done', finishReason: 'stop' }] },
]

test('calls stand in the last answer only', async () => {
  const { responses } = await ask([{ text: 'look', toolCalls: [{ id: 'c', name: 't' }] }], { stream: true })
  const withCalls = responses.map(response => response.content?.parts?.some(part => part.functionCall))
  expect(withCalls).toEqual([false, true])
})

test('empty deltas make neither a partial answer nor a part', async () => {
  const { responses } = await ask([{ deltas: ['', 'a', ''], toolCalls: [{ id: 'c', name: 't' }] }], {
    stream: true,
  })
  expect(responses.map(response => response.content?.parts?.map(part => part.text))).toEqual([
    ['a'],
    ['a', undefined],
  ])
})

test('thoughts come as thoughts, in partial answers too', async () => {
  const { responses } = await ask([{ reasoning: 'hm', text: 'so' }], { stream: true })
  expect(responses.map(response => response.content?.parts)).toEqual([
    [{ text: 'hm', thought: true }],
    [{ text: 'so' }],
    [{ text: 'hm', thought: true }, { text: 'so' }],
  ])
})

test('deltas of one block are one part, and a signature belongs to its block', async () => {
  const { last } = await ask(
    events(
      { type: 'reasoning-delta', text: 'one ', block: 0 },
      { type: 'reasoning-delta', text: 'thought', block: 0 },
      {
        type: 'reasoning-delta',
        text: '',
        block: 0,
        signature: 'c2ln',
        origin: { vendor: 'anthropic', model: 'c' },
      },
      { type: 'reasoning-delta', text: 'another', block: 1 },
      { type: 'text-delta', text: 'a', block: 2 },
      { type: 'text-delta', text: 'b', block: 3 },
    ),
  )
  const parts = last?.content?.parts ?? []
  expect(parts.map(part => part.text)).toEqual(['one thought', 'another', 'a', 'b'])
  expect(openSignature(parts[0]?.thoughtSignature ?? '')).toEqual({
    signature: 'c2ln',
    origin: { vendor: 'anthropic', model: 'c' },
    redacted: false,
  })
})

test("Gemini's signatures stay as they are", async () => {
  const { last } = await ask([
    { toolCalls: [{ id: 'c', name: 't', signature: 'R2Vt', origin: { vendor: 'gemini' } }] },
  ])
  expect(last?.content?.parts?.[0]?.thoughtSignature).toBe('R2Vt')
})

test('what was withheld has no text, so that ADK does not drop it', async () => {
  const withheld: StreamEvent = {
    type: 'reasoning-delta',
    text: '',
    redacted: true,
    signature: 'b3BhcXVl',
    origin: { vendor: 'anthropic' },
  }
  const { last } = await ask(events(withheld, { type: 'text-delta', text: 'answer' }))
  expect(last?.content?.parts?.[0]).not.toHaveProperty('text')
  expect(convertMessages([last?.content as Content])[0]?.parts[0]).toEqual({
    type: 'reasoning',
    text: '',
    signature: 'b3BhcXVl',
    origin: { vendor: 'anthropic' },
    redacted: true,
  })
})

test('text after a signed text is a part of its own', async () => {
  const { last } = await ask(
    events(
      { type: 'text-delta', text: 'a', signature: 'c2ln', origin: { vendor: 'gemini' } },
      { type: 'text-delta', text: 'b' },
    ),
  )
  expect(last?.content?.parts).toEqual([{ text: 'a', thoughtSignature: 'c2ln' }, { text: 'b' }])
})

test('media and parts of one vendor survive the way through ADK', async () => {
  const value = { type: 'server_tool_use', id: 'x' }
  const { last } = await ask(
    events(
      { type: 'media', mimeType: 'image/png', data: 'AAAA' },
      { type: 'vendor', vendor: 'gemini', value: { executableCode: { code: '1+1' } }, text: '1+1' },
      { type: 'vendor', vendor: 'anthropic', value, text: 'searched' },
    ),
  )
  const [message] = convertMessages([last?.content as Content])
  expect(message?.parts).toEqual([
    { type: 'media', mimeType: 'image/png', data: 'AAAA' },
    { type: 'vendor', vendor: 'gemini', value: { executableCode: { code: '1+1' } }, text: '```\n1+1\n```' },
    { type: 'vendor', vendor: 'anthropic', value, text: 'searched' },
  ])
})

test("usage and the reason for stopping are reported in ADK's words", async () => {
  const usage = { inputTokens: 10, outputTokens: 7, reasoningTokens: 3, cachedInputTokens: 4 }
  const { last } = await ask([{ text: 'x', usage, finishReason: 'length' }])
  expect(last).toMatchObject({
    finishReason: 'MAX_TOKENS',
    usageMetadata: {
      promptTokenCount: 10,
      candidatesTokenCount: 4,
      thoughtsTokenCount: 3,
      cachedContentTokenCount: 4,
      totalTokenCount: 17,
    },
  })
})

test('tokens written to a cache are reported in addition to those that ADK knows', async () => {
  const { last } = await ask([{ text: 'x', usage: { inputTokens: 10, cacheWriteTokens: 6 } }])
  expect(last?.usageMetadata).toMatchObject({ promptTokenCount: 10, cacheWriteTokenCount: 6 })
  const { last: without } = await ask([{ text: 'x', usage: { inputTokens: 10 } }])
  expect(without?.usageMetadata).not.toHaveProperty('cacheWriteTokenCount')
})

test('every answer of the model adapter is an object of its own', async () => {
  const args = { q: 1 }
  const { last } = await ask([{ toolCalls: [{ id: 'c', name: 't', args }] }])
  const call = last?.content?.parts?.[0]?.functionCall
  expect(call?.args).toEqual(args)
  expect(call?.args).not.toBe(args)
})

describe('call ids', () => {
  const idsOf = (response: LlmResponse | undefined) =>
    response?.content?.parts?.map(part => part.functionCall?.id ?? '')

  test("call ids are the provider's own", async () => {
    const { last } = await ask([{ toolCalls: [{ id: 'toolu_1', name: 't' }] }])
    expect(idsOf(last)).toEqual(['toolu_1'])
  })

  test('call ids are made up when missing, and when ADK would strip them', async () => {
    const { last } = await ask([{ toolCalls: [{ name: 't' }, { id: 'adk-7', name: 't' }] }])
    const ids = idsOf(last) ?? []
    expect(new Set(ids).size).toBe(2)
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9]{9}$/)
  })

  test('call ids are unique in the conversation', async () => {
    const contents = [
      user('q'),
      { role: 'model', parts: [{ functionCall: { id: 'call_0', name: 't', args: {} } }] },
      { role: 'user', parts: [{ functionResponse: { id: 'call_0', name: 't', response: {} } }] },
    ]
    const script: Script = [
      {
        toolCalls: [
          { id: 'call_0', name: 't' },
          { id: 'call_0', name: 't' },
        ],
      },
    ]
    const { last } = await ask(script, { llmRequest: request(contents) })
    expect(idsOf(last)).toEqual(['call_0_2', 'call_0_3'])
  })
})

describe('what is sent', () => {
  test("ADK's declarations become JSON schema", async () => {
    const gemini = {
      name: 'a',
      description: 'A',
      parameters: {
        type: 'OBJECT',
        properties: {
          list: { type: 'ARRAY', items: { type: 'STRING', format: 'enum', enum: ['x'] }, minItems: '1' },
          note: { type: 'STRING', nullable: true, description: 'n' },
          either: { anyOf: [{ type: 'NUMBER' }, { type: 'BOOLEAN' }] },
        },
        required: ['list'],
        propertyOrdering: ['list'],
      },
    } as unknown as FunctionDeclaration
    const plain: FunctionDeclaration = {
      name: 'b',
      description: 'B',
      parametersJsonSchema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: { q: { type: 'string' } },
      },
    }
    const config = { tools: [{ functionDeclarations: [gemini, plain, { name: 'c' }] }, { googleSearch: {} }] }
    const { provider } = await ask([{ text: 'x' }], { llmRequest: request([user('hi')], { config }) })
    expect(provider.requests[0]?.serverTools).toEqual([{ name: 'googleSearch', config: {} }])
    const declared = provider.requests[0]?.tools ?? []
    // Gemini gets what ADK wrote, unless it says the same.
    expect(declared.map(tool => tool.gemini)).toEqual([gemini, undefined, { name: 'c' }])
    expect(declared.map(({ gemini: _own, ...tool }) => tool)).toEqual([
      {
        name: 'a',
        description: 'A',
        parameters: {
          type: 'object',
          properties: {
            list: { type: 'array', items: { type: 'string', enum: ['x'] }, minItems: 1 },
            note: { type: ['string', 'null'], description: 'n' },
            either: { anyOf: [{ type: 'number' }, { type: 'boolean' }] },
          },
          required: ['list'],
        },
      },
      { name: 'b', description: 'B', parameters: { type: 'object', properties: { q: { type: 'string' } } } },
      { name: 'c', description: '', parameters: { type: 'object', properties: {} } },
    ])
  })

  test('generation options are passed on in neutral words', async () => {
    const config = {
      temperature: 0,
      maxOutputTokens: 100,
      stopSequences: ['END'],
      responseSchema: { type: 'OBJECT', properties: { a: { type: 'STRING' } } },
      toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['t'] } },
      thinkingConfig: { thinkingBudget: 512, includeThoughts: true },
    } as unknown as LlmRequest['config']
    const llmRequest = request([user('hi')], { ...(config ? { config } : {}) })
    const { provider } = await ask([{ text: 'x' }], { llmRequest, repairMode: 'strict' })
    expect(provider.requests[0]).toMatchObject({
      model: 'm',
      repairMode: 'strict',
      options: {
        temperature: 0,
        maxOutputTokens: 100,
        stopSequences: ['END'],
        responseSchema: { type: 'object', properties: { a: { type: 'string' } } },
        toolChoice: { name: 't' },
        thinking: { budgetTokens: 512, includeThoughts: true },
      },
    })
  })

  test.each<[string, Content[], ProviderMessage[]]>([
    [
      'ids are given where ADK took them, the same to call and result',
      [
        {
          role: 'model',
          parts: [
            { functionCall: { name: 's', args: { n: 1 } } },
            { functionCall: { name: 's', args: { n: 2 } } },
          ],
        },
        {
          role: 'user',
          parts: [
            { functionResponse: { name: 's', response: { r: 1 } } },
            { functionResponse: { name: 's', response: { r: 2 } } },
          ],
        },
        { role: 'model', parts: [{ functionCall: { name: 's', args: {} } }] },
        { role: 'user', parts: [{ functionResponse: { name: 's', response: { error: 'no' } } }] },
      ],
      [
        {
          role: 'assistant',
          parts: [
            { type: 'tool-call', id: 'call_s', name: 's', args: { n: 1 } },
            { type: 'tool-call', id: 'call_s_2', name: 's', args: { n: 2 } },
          ],
        },
        {
          role: 'tool',
          parts: [
            { type: 'tool-result', id: 'call_s', name: 's', result: { r: 1 } },
            { type: 'tool-result', id: 'call_s_2', name: 's', result: { r: 2 } },
          ],
        },
        { role: 'assistant', parts: [{ type: 'tool-call', id: 'call_s_3', name: 's', args: {} }] },
        {
          role: 'tool',
          parts: [{ type: 'tool-result', id: 'call_s_3', name: 's', result: { error: 'no' }, isError: true }],
        },
      ],
    ],
    [
      'results beside a text are messages of their own',
      [
        {
          role: 'user',
          parts: [{ functionResponse: { id: 'a', name: 's', response: {} } }, { text: 'and' }],
        },
      ],
      [
        { role: 'tool', parts: [{ type: 'tool-result', id: 'a', name: 's', result: {} }] },
        { role: 'user', parts: [{ type: 'text', text: 'and' }] },
      ],
    ],
    [
      'media by value and by reference',
      [
        {
          role: 'user',
          parts: [
            { inlineData: { mimeType: 'image/png', data: 'AA' } },
            { fileData: { mimeType: 'application/pdf', fileUri: 'gs://x', displayName: 'x.pdf' } },
          ],
        },
      ],
      [
        {
          role: 'user',
          parts: [
            { type: 'media', mimeType: 'image/png', data: 'AA' },
            { type: 'media', mimeType: 'application/pdf', url: 'gs://x', name: 'x.pdf' },
          ],
        },
      ],
    ],
    [
      'signatures of other vendors are opened',
      [
        {
          role: 'model',
          parts: [
            {
              text: 'hm',
              thought: true,
              thoughtSignature: sealSignature('s', { vendor: 'openai', model: 'o' }),
            },
          ],
        },
      ],
      [
        {
          role: 'assistant',
          parts: [
            { type: 'reasoning', text: 'hm', signature: 's', origin: { vendor: 'openai', model: 'o' } },
          ],
        },
      ],
    ],
    [
      'a content without parts stays empty',
      [{ role: 'model', parts: [] }],
      [{ role: 'assistant', parts: [] }],
    ],
  ])('a request of ADK as provider messages: %s', (_, contents, expected) => {
    expect(convertMessages(contents)).toEqual(expected)
  })
})

describe('the budget', () => {
  /** A question, then many steps of a call and a result of about 260 tokens each. */
  const longTurn = (steps: number): Content[] => [
    user('old question'),
    { role: 'model', parts: [{ text: 'old answer' }] },
    user('the current question'),
    ...Array.from({ length: steps }, (_, index) => [
      { role: 'model', parts: [{ functionCall: { id: `c${index}`, name: 't', args: { index } } }] },
      {
        role: 'user',
        parts: [{ functionResponse: { id: `c${index}`, name: 't', response: { out: 'word '.repeat(200) } } }],
      },
    ]).flat(),
  ]
  const idsIn = (messages: readonly ProviderMessage[], type: 'tool-call' | 'tool-result') =>
    messages.flatMap(message => message.parts.flatMap(part => (part.type === type ? [part.id] : [])))

  test('a run of a hundred calls stays within the token budget, keeps its question, and splits no pair', async () => {
    const { provider, reports } = await ask([{ text: 'x' }], {
      llmRequest: request(longTurn(100)),
      budgetTokens: 4000,
    })
    const messages = provider.requests[0]?.messages ?? []
    const words = JSON.stringify(messages)
    expect(words.length / 4).toBeLessThan(4600)
    expect(words).toContain('the current question')
    expect(idsIn(messages, 'tool-call')).toEqual(idsIn(messages, 'tool-result'))
    expect(idsIn(messages, 'tool-call').at(-1)).toBe('c99')
    expect(reports.find(report => report.type === 'cut')).toMatchObject({ cut: { reason: 'token-budget' } })
  })

  test('an account by ADK of other agents is not taken for the question', async () => {
    const told = {
      role: 'user',
      parts: [{ text: 'For context:' }, { text: `[root] said: ${'word '.repeat(300)}` }],
    }
    const contents = [user(`the question ${'word '.repeat(300)}`), told, told, told, told]
    const { provider } = await ask([{ text: 'x' }], { llmRequest: request(contents), budgetTokens: 1000 })
    expect(JSON.stringify(provider.requests[0]?.messages)).toContain('the question')
  })

  test.each([
    ['begins as an account by ADK does', { parts: [{ text: 'For context: the question' }] }],
    ['begins as a correction by Lango does', { parts: [{ text: '[System: the question]' }] }],
    [
      'cannot be told from an account by ADK, and is the only one',
      { parts: [{ text: 'For context:' }, { text: '[root] said: the question' }] },
    ],
  ])('a first question that %s stays in the request', async (_, content) => {
    const [, , , ...steps] = longTurn(40)
    const { provider } = await ask([{ text: 'x' }], {
      llmRequest: request([{ role: 'user', ...content }, ...steps]),
      budgetTokens: 1000,
    })
    expect(JSON.stringify(provider.requests[0]?.messages)).toContain('the question')
  })

  test('the window of the model limits the request, with room for the answer and the tools', async () => {
    const model = { contextWindow: 6000, outputLimit: 2000 }
    const config = { systemInstruction: 'x'.repeat(4000) }
    const llmRequest = request(longTurn(100), { config })
    const { provider } = await ask([{ text: 'x' }], {
      llmRequest,
      budgetTokens: 'off',
      providerOptions: { model },
    })
    const sent = JSON.stringify(provider.requests[0]?.messages)
    expect(sent.length / 4).toBeLessThan(4600)
    expect(idsIn(provider.requests[0]?.messages ?? [], 'tool-call').length).toBeGreaterThan(3)
  })

  test('without a budget the default of 32,000 tokens holds', async () => {
    const turns = Array.from({ length: 200 }, (_, index) => [
      user(`q${index} ${'word '.repeat(200)}`),
      { role: 'model', parts: [{ text: `a${index}` }] },
    ]).flat()
    const { provider } = await ask([{ text: 'x' }], { llmRequest: request([...turns, user('now')]) })
    const kept = (provider.requests[0]?.messages.length ?? 0) / 2
    // A turn is about 215 tokens: 32,000 hold 148, and the steady cut may leave a quarter free.
    expect(kept).toBeGreaterThan(85)
    expect(kept).toBeLessThan(150)
  })

  test('the beginning of a turn that is over the budget changes rarely while the turn grows', async () => {
    const beginnings: string[] = []
    for (let steps = 40; steps < 80; steps += 1) {
      const { provider } = await ask([{ text: 'x' }], {
        llmRequest: request(longTurn(steps)),
        budgetTokens: 4000,
      })
      beginnings.push(JSON.stringify(provider.requests[0]?.messages.slice(0, 5)))
    }
    const changes = beginnings.filter((beginning, index) => beginning !== beginnings[index - 1]).length
    expect(changes).toBeLessThan(12)
  })

  test('the cut stays where it is while the history grows, and is reported once per change', async () => {
    const provider = new ScriptedProvider(() => ({ text: 'x' }))
    const adapter = new ModelAdapter({ provider, model: 'm', budgetTokens: 8000 })
    const firsts: (string | undefined)[] = []
    const cuts: ModelReport[] = []
    const listener = (report: ModelReport) => {
      if (report.type === 'cut') cuts.push(report)
    }
    const turns = Array.from({ length: 60 }, (_, index) => [
      user(`q${index} ${'word '.repeat(200)}`),
      { role: 'model', parts: [{ text: `a${index}` }] },
    ]).flat()
    for (let length = 41; length < turns.length; length += 2) {
      const llmRequest = request(turns.slice(0, length))
      onModelRequest(llmRequest, report => listener(report), cuts)
      for await (const _ of adapter.generateContentAsync(llmRequest));
      const [first] = provider.requests.at(-1)?.messages ?? []
      firsts.push(first?.parts[0]?.type === 'text' ? first.parts[0].text.split(' ')[0] : undefined)
    }
    const changes = firsts.filter((first, index) => first !== firsts[index - 1]).length
    expect(firsts.length).toBe(40)
    expect(changes).toBeLessThan(10)
    expect(cuts.length).toBeLessThan(10)
    expect(cuts.length).toBeGreaterThan(0)
  })

  test('counts of earlier answers scale the token estimate', async () => {
    const seen: unknown[] = []
    const calibration: Calibration = { scale: () => 2, observe: (...facts) => seen.push(facts) }
    const llmRequest = request(longTurn(100))
    const { provider } = await ask([{ text: 'x', usage: { inputTokens: 9 } }], {
      llmRequest,
      budgetTokens: 8000,
      calibration,
    })
    expect(JSON.stringify(provider.requests[0]?.messages).length / 4).toBeLessThan(4600)
    expect(seen).toEqual([['m', expect.any(Number), 9]])
  })

  test('an overflow is fitted to 70 percent and sent once more', async () => {
    const overflow = new AgentError('context-overflow', 'too long')
    const { provider, reports, last, error } = await ask([{ error: overflow }, { text: 'fits' }], {
      llmRequest: request(longTurn(20)),
    })
    const sizes = provider.requests.map(sent => JSON.stringify(sent.messages).length)
    expect(sizes[1]).toBeLessThan((sizes[0] ?? 0) * 0.75)
    expect(last?.content?.parts?.[0]?.text).toBe('fits')
    expect(reports.map(report => report.type)).toEqual(['request', 'resend', 'cut', 'request'])
    expect(error).toBeUndefined()
  })

  test('the counts in an overflow decide what is sent next, at most three times', async () => {
    const overflow = (counted: number) =>
      new AgentError('context-overflow', `prompt is too long: ${counted} tokens > 2000 maximum`)
    const seen: unknown[] = []
    const calibration: Calibration = { scale: () => 1, observe: (...facts) => seen.push(facts) }
    const { provider, last } = await ask([{ error: overflow(10_000) }, { text: 'fits' }], {
      llmRequest: request(longTurn(20)),
      calibration,
    })
    const sizes = provider.requests.map(sent => JSON.stringify(sent.messages).length)
    expect(sizes[1]).toBeLessThan((sizes[0] ?? 0) * 0.2)
    expect(last?.content?.parts?.[0]?.text).toBe('fits')
    expect(seen).toContainEqual(['m', expect.any(Number), 10_000])
    const never = await ask(
      [
        { error: overflow(9000) },
        { error: overflow(4000) },
        { error: overflow(3000) },
        { error: overflow(2500) },
        { text: 'x' },
      ],
      {
        llmRequest: request(longTurn(40)),
      },
    )
    expect(never.provider.requests.length).toBeLessThanOrEqual(4)
    expect(never.error).toMatchObject({ code: 'context-overflow' })
  })

  test.each([
    [
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 160008 tokens.",
      { counted: 160_008, limit: 128_000 },
    ],
    [
      "This model's maximum context length is 8192 tokens. However, you requested 9216 tokens (8192 in the messages, 1024 in the completion).",
      { counted: 8192, limit: 7168 },
    ],
    [
      'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
      { counted: 1_200_000, limit: 1_048_576 },
    ],
    ['prompt is too long: 210,000 tokens > 200,000 maximum', { counted: 210_000, limit: 200_000 }],
    [
      'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length',
      { counted: 190_000, limit: 180_000 },
    ],
    [
      'Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length',
      { counted: 140_000, limit: 131_072 },
    ],
    ['the request exceeds the available context size (8192 tokens), try increasing it', { limit: 8192 }],
    ['Your input exceeds the context window of this model.', {}],
  ])('the counts of an overflow error are read: %s', (message, counts) => {
    expect(overflowCounts(message)).toEqual(counts)
  })

  test('a second overflow of the context is the error of the run', async () => {
    const overflow = new AgentError('context-overflow', 'too long')
    const { provider, error, reports } = await ask([{ error: overflow }, { error: overflow }])
    expect(provider.requests).toHaveLength(2)
    expect(error).toBe(overflow)
    expect(reports.at(-1)).toEqual({ type: 'error', error: overflow })
  })

  test('after visible output a request is not sent again', async () => {
    const overflow = new AgentError('context-overflow', 'too long')
    const { provider, error } = await ask([{ text: 'half', error: overflow }, { text: 'x' }], {
      stream: true,
    })
    expect(provider.requests).toHaveLength(1)
    expect(error).toBe(overflow)
  })
})

describe('faults', () => {
  test('a stream without its end is an error', async () => {
    const { error } = await ask([{ events: [{ type: 'text-delta', text: 'half' }] }])
    expect(error).toMatchObject({ code: 'provider-stream', retryable: true })
  })

  test('a malformed call is asked for once more, and nothing of it is seen', async () => {
    const { responses, reports } = await ask([{ finishReason: 'malformed-call' }, { text: 'better' }])
    expect(responses.map(response => response.content?.parts?.[0]?.text)).toEqual(['better'])
    expect(reports.map(report => report.type)).toEqual(['request', 'resend', 'request'])
  })

  test('a second malformed call is an error', async () => {
    const { error } = await ask([{ finishReason: 'malformed-call' }, { finishReason: 'malformed-call' }])
    expect(error).toMatchObject({ code: 'provider-stream' })
  })

  const silent = (finishReason: FinishReason, message?: string): Script => [
    { events: [{ type: 'done', finishReason, ...(message === undefined ? {} : { message }) }] },
  ]

  test.each<[FinishReason, string | undefined, object]>([
    ['blocked', undefined, { code: 'provider-blocked', message: expect.stringContaining('scripted/m') }],
    ['blocked', 'PROHIBITED', { code: 'provider-blocked', message: expect.stringContaining('PROHIBITED') }],
    [
      'length',
      undefined,
      {
        code: 'provider-stream',
        details: { reason: 'length' },
        message: expect.stringMatching(/maxOutputTokens.*thinking/),
      },
    ],
    [
      'other',
      'pause_turn',
      {
        code: 'provider-stream',
        details: { reason: 'other' },
        message: expect.stringContaining('pause_turn'),
      },
    ],
  ])(
    'an answer without content that ends as %s (%s) is an error that says why',
    async (reason, message, expected) => {
      const { error, reports, responses, provider } = await ask(silent(reason, message))
      expect(error).toBeInstanceOf(AgentError)
      expect(error).toMatchObject(expected)
      expect(reports.at(-1)).toEqual({ type: 'error', error })
      expect(responses).toEqual([])
      expect(provider.requests).toHaveLength(1)
    },
  )

  test('what was paid for an answer without content is reported with the error', async () => {
    const usage = { inputTokens: 10, outputTokens: 7, totalTokens: 17 }
    const { error } = await ask([{ finishReason: 'length', usage }])
    expect(error).toMatchObject({ details: { usage } })
  })

  test('an answer that is only cut or blocked after its beginning is an answer', async () => {
    for (const finishReason of ['length', 'blocked', 'other'] as const) {
      const { error, last } = await ask([{ text: 'half', finishReason }])
      expect(error).toBeUndefined()
      expect(last?.content?.parts).toEqual([{ text: 'half' }])
    }
  })

  test('an answer without text or calls is resampled once, and both attempts are counted', async () => {
    const usage = { inputTokens: 10, outputTokens: 2 }
    for (const empty of [{}, { reasoning: 'Hm.' }, { text: '' }]) {
      const { last, responses, reports, provider } = await ask([
        { ...empty, usage },
        { text: 'Yes.', usage },
      ])
      expect(last?.content?.parts).toEqual([{ text: 'Yes.' }])
      expect(responses.filter(({ partial }) => !partial)).toHaveLength(1)
      expect(last?.usageMetadata).toMatchObject({ promptTokenCount: 20, candidatesTokenCount: 4 })
      expect(reports).toContainEqual({ type: 'resend', reason: 'empty-answer' })
      expect(provider.requests).toHaveLength(2)
      expect(provider.requests[1]).toEqual(provider.requests[0])
    }
  })

  test('an answer that is empty twice is an empty answer', async () => {
    const { error, last, provider } = await ask([{}, {}])
    expect(provider.requests).toHaveLength(2)
    expect(error).toBeUndefined()
    expect(last).toMatchObject({ partial: false, turnComplete: true, finishReason: 'STOP' })
    expect(last).not.toHaveProperty('content')
    expect(last).not.toHaveProperty('errorCode')
  })

  test('what is thrown without being an AgentError becomes one', async () => {
    const { error } = await ask(() => Promise.reject(new TypeError('oops')))
    expect(error).toMatchObject({ code: 'internal', message: 'The provider failed: oops' })
  })

  test('live connections are refused', async () => {
    const adapter = new ModelAdapter({ provider: new ScriptedProvider([]), model: 'm' })
    await expect(adapter.connect()).rejects.toMatchObject({ code: 'invalid-argument' })
  })
})

describe('in a run', () => {
  const echo = new FunctionTool({
    name: 'echo',
    description: 'Repeats',
    parameters: z.object({ v: z.number() }),
    execute: args => args.v,
  })

  test('an unknown tool answers with the list of those that exist, and good calls of the same step keep their results', async () => {
    const store = await openTestStore('memory')
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'echo', args: { v: 1 } }, { name: 'constructor' }, { name: 'ecko', args: {} }] },
      { text: 'sorry' },
    ])
    const agent = new LlmAgent({
      name: 'agent',
      model: new ModelAdapter({ provider, model: 'm' }),
      tools: [echo],
    })
    await runTurn({ agent, sessions: new SessionServiceAdapter(store), message: 'hi' })
    const results = provider.requests[1]?.messages
      .at(-1)
      ?.parts.map(part => (part.type === 'tool-result' ? part.result : part))
    expect(results).toEqual([
      { result: 1 },
      { error: 'Tool "constructor" does not exist. Available tools: echo.' },
      { error: 'Tool "ecko" does not exist. Available tools: echo.' },
    ])
    expect(provider.requests).toHaveLength(2)
    await store.close()
  })

  test.each([
    ['without a runtime, unknown tools five times in a row are an error', 5, ['ghost', 'phantom']],
    ['a good call in between begins the count anew', 8, ['ghost', 'ghost', 'ghost', 'echo']],
  ])('in a run of bare ADK: %s', async (_title, requests, names) => {
    const store = await openTestStore('memory')
    const provider = new ScriptedProvider((_request, index) =>
      index === 7
        ? { text: 'Enough.' }
        : { toolCalls: [{ name: names[index % names.length] ?? '', args: { v: 1 } }] },
    )
    const model = new ModelAdapter({ provider, model: 'm' })
    const agent = new LlmAgent({ name: 'agent', model, tools: [echo] })
    const events = await runTurn({ agent, sessions: new SessionServiceAdapter(store), message: 'hi' })
    expect(provider.requests).toHaveLength(requests)
    const isError = requests === 5
    expect(events.at(-1)?.errorMessage ?? '').toContain(isError ? 'do not exist 5 times in a row' : '')
    expect(events.at(-1)?.errorMessage !== undefined).toBe(isError)
    await store.close()
  })

  test('a call that names no tool is answered like one to an unknown tool', async () => {
    const store = await openTestStore('memory')
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'echo', args: { v: 1 } }, { name: '' }] },
      { text: 'sorry' },
    ])
    const model = new ModelAdapter({ provider, model: 'm' })
    const agent = new LlmAgent({ name: 'agent', model, tools: [echo] })
    await runTurn({ agent, sessions: new SessionServiceAdapter(store), message: 'hi' })
    const [calls, results] = provider.requests[1]?.messages.slice(-2) ?? []
    expect(calls?.parts).toMatchObject([{ name: 'echo' }, { name: 'unknown_tool' }])
    expect(results?.parts).toMatchObject([
      { name: 'echo', result: { result: 1 } },
      { name: 'unknown_tool', result: { error: 'The call names no tool. Available tools: echo.' } },
    ])
    await store.close()
  })

  test('a call that names no tool never reaches a tool that has the stand-in for its name', async () => {
    const unknown = new FunctionTool({ name: 'unknown_tool', description: 'Ours', execute: () => 'run' })
    const llmRequest = request([user('hi')], { toolsDict: { unknown_tool: unknown } })
    const { last } = await ask([{ toolCalls: [{ name: '' }] }], { llmRequest })
    const name = last?.content?.parts?.[0]?.functionCall?.name ?? ''
    expect(name).toBe('unknown_tool_2')
    expect(llmRequest.toolsDict[name]).not.toBe(unknown)
  })

  test('call ids of the provider are sent to it unchanged, after a reload too', async () => {
    const store = await openTestStore('sqlite')
    const provider = new ScriptedProvider([
      { toolCalls: [{ id: 'toolu_x', name: 'echo', args: { v: 1 } }] },
      { text: 'a' },
      { text: 'b' },
    ])
    for (const message of ['one', 'two']) {
      const agent = new LlmAgent({
        name: 'agent',
        model: new ModelAdapter({ provider, model: 'm' }),
        tools: [echo],
      })
      await runTurn({ agent, sessions: new SessionServiceAdapter(store), message })
    }
    const ids = (index: number) =>
      provider.requests[index]?.messages.flatMap(message =>
        message.parts.flatMap(part => ('id' in part ? [part.id] : [])),
      )
    expect(ids(1)).toEqual(['toolu_x', 'toolu_x'])
    expect(ids(2)).toEqual(['toolu_x', 'toolu_x'])
    await store.close()
  })
})
