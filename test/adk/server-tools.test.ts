/**
 * An agent with ADK's tools for what Gemini's servers do, on models of other vendors: the vendor's own tool with its
 * sources in Gemini's form, or an error before anything is stored.
 */
import {
  BuiltInCodeExecutor,
  FunctionTool,
  GOOGLE_MAPS_GROUNDING,
  GOOGLE_SEARCH,
  LlmAgent,
  SequentialAgent,
  URL_CONTEXT,
  VertexAiSearchTool,
} from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { SessionServiceAdapter } from '../../src/adk/session/session-service-adapter.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { openStore } from '../../src/store/open-store.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import type { ScriptStep } from '../../src/testing/strict/script.js'

const SOURCES = [
  { url: 'https://example.com/a', title: 'Page A' },
  { url: 'https://example.com/b', title: 'Page B' },
]
const CODE = { code: 'print(6 * 7)', output: '42\n' }

const WIRES = {
  anthropic: { profile: 'anthropic-4.6', type: 'anthropic', model: 'claude-sonnet-4-6' },
  openai: { profile: 'openai-responses', type: 'openai', model: 'gpt-5.2' },
} as const

type AgentOptions = Partial<ConstructorParameters<typeof LlmAgent>[0]>

async function talk(
  vendor: keyof typeof WIRES,
  options: AgentOptions,
  script: readonly ScriptStep[],
  texts: readonly string[] = ['Why?'],
) {
  const { profile, type, model } = WIRES[vendor]
  const server = await startStrictProvider({ profile, script })
  const store = await openStore('memory:')
  const rootAgent = new LlmAgent({ name: 'root', model: `own/${model}`, ...options } as never)
  const providers = { own: { type, apiKey: 'key', baseUrl: server.baseUrl } }
  const runtime = await createRuntime({ store, rootAgent, providers })
  const answers: string[] = []
  for (const text of texts) answers.push((await runtime.runAndCollect({ sessionId: 's', text })).text)
  const key = { appName: 'lango', userId: 'user', sessionId: 's' }
  const session = await new SessionServiceAdapter(store).getSession(key)
  await runtime.close()
  await store.close()
  await server.close()
  expect(server.violations).toEqual([])
  const bodies = server.requests.map(({ body }) => body as Record<string, unknown>)
  return { answers, bodies, events: session?.events ?? [], state: session?.state ?? {} }
}

test.each(['anthropic', 'openai'] as const)('%s searches the web and cites its sources', async vendor => {
  const step = { text: 'The sky is blue.', sources: SOURCES }
  const { answers, events, state, bodies } = await talk(
    vendor,
    { tools: [GOOGLE_SEARCH], outputKey: 'answer' },
    [step, { text: 'Yes.' }],
    ['Why?', 'Sure?'],
  )
  expect(answers).toEqual(['The sky is blue.', 'Yes.'])
  const [, answer] = events
  expect(answer?.groundingMetadata).toMatchObject({
    groundingChunks: [
      { web: { uri: 'https://example.com/a', title: 'Page A' } },
      { web: { uri: 'https://example.com/b', title: 'Page B' } },
    ],
    webSearchQueries: ['Why?'],
  })
  expect(answer?.groundingMetadata?.groundingSupports?.[0]).toMatchObject({
    segment: { text: 'The sky is blue.' },
    groundingChunkIndices: [0],
  })
  // What the tool did is no part of the answer.
  expect(state.answer).toBe('Yes.')
  expect(JSON.stringify(bodies[1])).toContain('The sky is blue.')
})

test.each(['anthropic', 'openai'] as const)('%s runs code', async vendor => {
  const { answers, bodies } = await talk(
    vendor,
    { codeExecutor: new BuiltInCodeExecutor() },
    [{ text: 'It is 42.', code: CODE }, { text: 'Yes.' }],
    ['What is 6 * 7?', 'Sure?'],
  )
  expect(answers).toEqual(['It is 42.', 'Yes.'])
  // The code and its output stay in the conversation: as blocks of the vendor, or in words.
  expect(JSON.stringify(bodies[1])).toContain('print(6 * 7)')
  expect(JSON.stringify(bodies[1])).toContain('42\\n')
})

test('code that waits for a tool of the client goes on in its container, and another model reads that it ran', async () => {
  const look = new FunctionTool({
    name: 'look',
    description: 'Looks.',
    parameters: z.object({}),
    execute: () => 'rain',
  })
  const found = { type: 'code_execution_result', stdout: 'rain', stderr: '', return_code: 0, content: [] }
  const claude = await startStrictProvider({
    profile: 'anthropic-4.6',
    script: [
      {
        serverTool: { name: 'code_execution', input: { code: 'print(look())' } },
        toolCalls: [{ name: 'look' }],
      },
      { serverTool: { name: 'code_execution', result: found }, text: 'It rains.' },
      { text: 'Yes.' },
    ],
  })
  const other = await startStrictProvider({ profile: 'gemini-3', script: () => ({ text: 'I see.' }) })
  const rootAgent = new LlmAgent({
    name: 'root',
    model: 'own/claude-sonnet-4-6',
    tools: [look],
    codeExecutor: new BuiltInCodeExecutor(),
  } as never)
  const runtime = await createRuntime({
    store: 'memory:',
    rootAgent,
    providers: {
      own: { type: 'anthropic', apiKey: 'key', baseUrl: claude.baseUrl },
      other: { type: 'gemini', apiKey: 'key', baseUrl: other.baseUrl },
    },
  })
  const say = (text: string, model = 'own/claude-sonnet-4-6') =>
    runtime.runAndCollect({ sessionId: 's', text, model })
  expect(await say('How is it?')).toMatchObject({ text: 'It rains.', finishReason: 'stop' })
  expect(await say('Sure?')).toMatchObject({ text: 'Yes.' })
  expect(await say('And you?', 'other/gemini-3.5-flash')).toMatchObject({ text: 'I see.' })
  await runtime.close()
  await claude.close()
  await other.close()
  expect([...claude.violations, ...other.violations]).toEqual([])
  const bodies = claude.requests.map(({ body }) => body as { container?: string })
  expect(bodies.map(({ container }) => typeof container)).toEqual(['undefined', 'string', 'string'])
  for (const { body } of [...claude.requests, ...other.requests])
    expect(JSON.stringify(body)).not.toContain('did not run')
  expect(JSON.stringify(other.requests[0]?.body)).toContain('print(look())')
})

test('a function is declared and called in a request with a server tool', async () => {
  const look = new FunctionTool({
    name: 'look',
    description: 'Looks.',
    parameters: z.object({}),
    execute: () => 'seen',
  })
  const { answers, bodies } = await talk('anthropic', { tools: [look, GOOGLE_SEARCH, URL_CONTEXT] }, [
    { toolCalls: [{ name: 'look' }] },
    { text: 'Seen.' },
  ])
  expect(answers).toEqual(['Seen.'])
  expect(bodies[0]).toMatchObject({
    tools: [{ name: 'web_search' }, { name: 'web_fetch' }, { name: 'look' }],
  })
})

test.each<[string, AgentOptions, string, string]>([
  ['Google Search', { tools: [GOOGLE_SEARCH] }, 'openai-chat/gpt-4o', 'googleSearch'],
  ['URL context', { tools: [URL_CONTEXT] }, 'openai/gpt-5.2', 'urlContext'],
  ['Google Maps', { tools: [GOOGLE_MAPS_GROUNDING] }, 'anthropic/claude-sonnet-4-6', 'googleMaps'],
  ['code execution', { codeExecutor: new BuiltInCodeExecutor() }, 'mistral/mistral-large', 'codeExecution'],
  [
    'Vertex AI Search',
    { tools: [new VertexAiSearchTool({ dataStoreId: 'store' })] },
    'anthropic/claude-sonnet-4-6',
    'retrieval',
  ],
])(
  'an agent with %s on a model without it is refused before anything is stored',
  async (_name, options, model, tool) => {
    const inner = new LlmAgent({ name: 'finder', model, ...options } as never)
    const rootAgent = new SequentialAgent({ name: 'line', subAgents: [inner] })
    const store = await openStore('memory:')
    const key = { apiKey: 'key', baseUrl: 'http://127.0.0.1:9' }
    const runtime = await createRuntime({
      store,
      rootAgent,
      providers: {
        'openai-chat': { type: 'openai', api: 'chat', ...key },
        anthropic: key,
        openai: key,
        mistral: { type: 'openai-compatible', preset: 'mistral', ...key },
      },
    })
    const run = runtime.runAndCollect({ sessionId: 's', text: 'Find it.' })
    await expect(run).rejects.toMatchObject({
      code: 'invalid-config',
      details: { tool, agent: 'finder', model },
    })
    await expect(run).rejects.toThrow(
      `Agent "finder" uses the server tool ${tool}, which ${model} does not have. Use `,
    )
    expect(await store.loadSession({ appName: 'lango', userId: 'user', sessionId: 's' })).toBeUndefined()
    await runtime.close()
    await store.close()
  },
)

test('a run whose own model lacks the tool is refused, and one whose own model has it is not', async () => {
  const server = await startStrictProvider({ profile: 'gemini-2', script: [{ text: 'Found.' }] })
  const rootAgent = new LlmAgent({ name: 'root', model: 'mistral/mistral-large', tools: [GOOGLE_SEARCH] })
  const runtime = await createRuntime({
    store: 'memory:',
    rootAgent,
    providers: {
      gemini: { apiKey: 'key', baseUrl: server.baseUrl },
      mistral: { type: 'openai-compatible', preset: 'mistral', apiKey: 'key' },
    },
  })
  await expect(runtime.runAndCollect({ text: 'Find it.' })).rejects.toMatchObject({ code: 'invalid-config' })
  const { text } = await runtime.runAndCollect({ text: 'Find it.', model: 'gemini/gemini-2.5-flash' })
  expect(text).toBe('Found.')
  expect(server.requests[0]?.body).toMatchObject({ tools: [{ googleSearch: {} }] })
  await runtime.close()
  await server.close()
})

test('code of Gemini in a history that goes to Claude becomes text, with a receipt', async () => {
  const gemini = await startStrictProvider({
    profile: 'gemini-2',
    script: [{ text: 'It is 42.', code: CODE }],
  })
  const claude = await startStrictProvider({ profile: 'anthropic-4.6', script: [{ text: 'Yes.' }] })
  const rootAgent = new LlmAgent({
    name: 'root',
    model: 'gemini/gemini-2.5-flash',
    codeExecutor: new BuiltInCodeExecutor(),
  })
  const runtime = await createRuntime({
    store: 'memory:',
    rootAgent,
    providers: {
      gemini: { apiKey: 'key', baseUrl: gemini.baseUrl },
      anthropic: { apiKey: 'key', baseUrl: claude.baseUrl },
    },
  })
  await runtime.runAndCollect({ sessionId: 's', text: 'What is 6 * 7?' })
  const model = 'anthropic/claude-sonnet-4-6'
  const { repairs } = await runtime.runAndCollect({ sessionId: 's', text: 'Sure?', model })
  expect(repairs).toContainEqual(
    expect.objectContaining({ step: 'translate-vendor-parts', kind: 'translate' }),
  )
  expect(JSON.stringify(claude.requests[0]?.body)).toContain('print(6 * 7)')
  expect(claude.violations).toEqual([])
  await runtime.close()
  await gemini.close()
  await claude.close()
})
