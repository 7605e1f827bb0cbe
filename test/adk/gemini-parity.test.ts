/**
 * The same agent in bare ADK, with ADK's own Gemini model, and in Lango: what reaches a strict Gemini server is equal,
 * for every server tool and every option that ADK's `generateContentConfig` takes.
 */
import {
  type BaseAgent,
  type BaseSessionService,
  BuiltInCodeExecutor,
  FunctionTool,
  GOOGLE_MAPS_GROUNDING,
  GOOGLE_SEARCH,
  InMemorySessionService,
  LlmAgent,
  LogLevel,
  Runner,
  setLogLevel,
  URL_CONTEXT,
} from '@google/adk'
import type { GenerateContentConfig } from '@google/genai'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { SessionServiceAdapter } from '../../src/adk/session/session-service-adapter.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { type StrictProvider, startStrictProvider } from '../../src/testing/start-strict-provider.js'
import type { ScriptStep } from '../../src/testing/strict/script.js'
import { OPTION_EXAMPLES } from '../support/gemini-options.js'

let server: StrictProvider
let script: readonly ScriptStep[] = []
let answered = 0

beforeAll(async () => {
  setLogLevel(LogLevel.ERROR)
  server = await startStrictProvider({
    profile: 'gemini-2',
    script: () => script[answered++] ?? { text: 'Fine.' },
  })
  vi.stubEnv('GOOGLE_GEMINI_BASE_URL', server.baseUrl)
  vi.stubEnv('GEMINI_API_KEY', 'key')
})

afterAll(async () => {
  vi.unstubAllEnvs()
  await server.close()
})

const SESSION = { appName: 'app', userId: 'user', sessionId: 's' }

async function inBareAdk(
  agent: BaseAgent,
  texts: readonly string[],
  sessionService: BaseSessionService = new InMemorySessionService(),
): Promise<unknown[]> {
  await sessionService.createSession(SESSION)
  const runner = new Runner({ appName: 'app', agent, sessionService })
  return bodiesOf(async () => {
    for (const text of texts) {
      const newMessage = { role: 'user', parts: [{ text }] }
      for await (const event of runner.runAsync({ ...SESSION, newMessage }))
        if (event.errorMessage) throw new Error(event.errorMessage)
    }
  })
}

async function inLango(
  rootAgent: BaseAgent,
  texts: readonly string[],
  store: 'memory:' | SessionStore = 'memory:',
): Promise<unknown[]> {
  const runtime = await createRuntime({ store, rootAgent })
  try {
    return await bodiesOf(async () => {
      for (const text of texts) await runtime.runAndCollect({ sessionId: 's', text })
    })
  } finally {
    await runtime.close()
  }
}

async function bodiesOf(run: () => Promise<void>): Promise<unknown[]> {
  const before = server.requests.length
  answered = 0
  await run()
  expect(server.violations).toEqual([])
  return server.requests.slice(before).map(({ body }) => body)
}

type AgentOptions = Partial<ConstructorParameters<typeof LlmAgent>[0]>

/** Runs the agent both ways and returns the bodies, which are equal. */
async function sameBodies(options: AgentOptions, texts: readonly string[] = ['Hello']): Promise<unknown[]> {
  const make = () => new LlmAgent({ name: 'root', model: 'gemini-2.5-flash', ...options } as never)
  const bare = await inBareAdk(make(), texts)
  expect(bare.length).toBeGreaterThanOrEqual(texts.length)
  expect(await inLango(make(), texts)).toEqual(bare)
  return bare
}

const look = () =>
  new FunctionTool({
    name: 'look',
    description: 'Looks.',
    parameters: z.object({ at: z.string().optional(), times: z.number().int() }),
    execute: () => 'seen',
  })
const listen = () =>
  new FunctionTool({
    name: 'listen',
    description: 'Listens.',
    parameters: z.object({ to: z.enum(['birds', 'rain']) }),
    execute: () => 'heard',
  })

test.each<[string, AgentOptions, string]>([
  ['Google Search', { tools: [GOOGLE_SEARCH] }, 'googleSearch'],
  ['URL context', { tools: [URL_CONTEXT] }, 'urlContext'],
  ['Google Maps', { tools: [GOOGLE_MAPS_GROUNDING] }, 'googleMaps'],
  ['code execution', { codeExecutor: new BuiltInCodeExecutor() }, 'codeExecution'],
])('the server tool %s is declared as in bare ADK', async (_name, options, key) => {
  const [body] = await sameBodies(options)
  expect(body).toMatchObject({ tools: [{ [key]: {} }] })
})

test('server tools of Google between functions keep their order', async () => {
  const [body] = await sameBodies({
    tools: [GOOGLE_SEARCH, look(), URL_CONTEXT, listen()],
    codeExecutor: new BuiltInCodeExecutor(),
  })
  const { tools } = body as { tools: object[] }
  expect(tools.map(tool => Object.keys(tool)[0])).toEqual([
    'codeExecution',
    'googleSearch',
    'functionDeclarations',
    'urlContext',
  ])
})

const SOURCES = [
  { url: 'https://example.com/a', title: 'Page A', text: 'The sky' },
  { url: 'https://example.com/b', title: 'Page B' },
]
const CODE = { code: 'print(6 * 7)', output: '42\n' }

test('grounding, citations and fetched pages are those of bare ADK, in the events and after a restart', async () => {
  const urlContextMetadata = {
    urlMetadata: [
      { retrievedUrl: 'https://example.com/a', urlRetrievalStatus: 'URL_RETRIEVAL_STATUS_SUCCESS' },
    ],
  }
  const citationMetadata = { citations: [{ startIndex: 0, endIndex: 7, uri: 'https://example.com/book' }] }
  script = [
    { text: 'The sky is blue.', sources: SOURCES, metadata: { urlContextMetadata, citationMetadata } },
  ]
  const agent = () => new LlmAgent({ name: 'root', model: 'gemini-2.5-flash', tools: [GOOGLE_SEARCH] })
  const sessionService = new InMemorySessionService()
  await inBareAdk(agent(), ['Why?'], sessionService)
  const bare = (await sessionService.getSession(SESSION))?.events.at(-1)
  expect(bare?.groundingMetadata?.groundingChunks).toHaveLength(2)
  const store = await openStore('memory:')
  await inLango(agent(), ['Why?'], store)
  const restored = await new SessionServiceAdapter(store).getSession({ ...SESSION, appName: 'lango' })
  await store.close()
  const stored = restored?.events.at(-1)
  expect(stored?.groundingMetadata).toEqual(bare?.groundingMetadata)
  // The SDK renames a field of it.
  expect(stored?.citationMetadata).toEqual(bare?.citationMetadata)
  expect(stored).toMatchObject({ urlContextMetadata })
  script = []
})

test('code that ran, and its output, are sent with the next message as bare ADK sends them', async () => {
  script = [{ text: 'It is 42.', code: CODE }]
  const bodies = await sameBodies({ codeExecutor: new BuiltInCodeExecutor() }, ['What is 6 * 7?', 'Sure?'])
  script = []
  expect(bodies[1]).toMatchObject({
    contents: [
      { role: 'user' },
      {
        role: 'model',
        parts: [
          { executableCode: { code: 'print(6 * 7)' } },
          { codeExecutionResult: { output: '42\n' } },
          { text: 'It is 42.' },
        ],
      },
      { role: 'user' },
    ],
  })
})

test('Gemini 3 gets its signed code in its place', async () => {
  const strict = await startStrictProvider({
    profile: 'gemini-3-strict',
    script: [{ text: 'It is 42.', code: CODE }, { text: 'Yes.' }],
  })
  const rootAgent = new LlmAgent({
    name: 'root',
    model: 'gemini/gemini-3.6-pro',
    codeExecutor: new BuiltInCodeExecutor(),
  })
  const providers = { gemini: { type: 'gemini', apiKey: 'k', baseUrl: strict.baseUrl } } as const
  const runtime = await createRuntime({ store: 'memory:', rootAgent, providers })
  for (const text of ['What is 6 * 7?', 'Sure?']) await runtime.runAndCollect({ sessionId: 's', text })
  await runtime.close()
  await strict.close()
  expect(strict.violations).toEqual([])
  const code = { executableCode: { code: CODE.code }, thoughtSignature: expect.any(String) }
  expect(strict.requests[1]?.body).toMatchObject({
    contents: [{}, { parts: [code, { codeExecutionResult: {} }, {}, {}] }, {}],
  })
})

describe('options', () => {
  test.each(OPTION_EXAMPLES)(
    'the option %s is sent as in bare ADK: %j',
    async (_name, generateContentConfig) => {
      await sameBodies({ generateContentConfig } as AgentOptions)
    },
  )

  test('a header of httpOptions reaches the server', async () => {
    await sameBodies({ generateContentConfig: { httpOptions: { headers: { 'x-own': 'yes' } } } })
    expect(server.requests.slice(-2).map(({ headers }) => headers['x-own'])).toEqual(['yes', 'yes'])
  })

  test.each([
    ['ANY', undefined],
    ['ANY', ['look']],
    ['ANY', ['look', 'listen']],
    ['AUTO', undefined],
    ['NONE', undefined],
    ['VALIDATED', ['listen']],
  ])('the calling mode %s of %j is sent as in bare ADK', async (mode, allowedFunctionNames) => {
    const functionCallingConfig = { mode, ...(allowedFunctionNames ? { allowedFunctionNames } : {}) }
    const generateContentConfig = { toolConfig: { functionCallingConfig } } as GenerateContentConfig
    const [body] = await sameBodies({ tools: [look(), listen()], generateContentConfig })
    expect(body).toMatchObject({ toolConfig: { functionCallingConfig } })
  })

  test('an output schema is sent as in bare ADK', async () => {
    await sameBodies({ outputSchema: z.object({ answer: z.string(), score: z.number().nullable() }) })
  })
})
