/**
 * The same agent in bare ADK, with ADK's own Gemini model, and in Lango: what reaches a strict Gemini server is equal,
 * for every server tool and every option that ADK's `generateContentConfig` takes.
 */
import {
  type BaseAgent,
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
import { createRuntime } from '../../src/runtime/runtime.js'
import { type StrictProvider, startStrictProvider } from '../../src/testing/start-strict-provider.js'
import type { ScriptStep } from '../../src/testing/strict/script.js'
import { OPTION_EXAMPLES } from '../support/gemini-options.js'

let server: StrictProvider
const script: readonly ScriptStep[] = []
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

async function inBareAdk(agent: BaseAgent, texts: readonly string[]): Promise<unknown[]> {
  const sessionService = new InMemorySessionService()
  const session = { appName: 'app', userId: 'user', sessionId: 's' }
  await sessionService.createSession(session)
  const runner = new Runner({ appName: 'app', agent, sessionService })
  return bodiesOf(async () => {
    for (const text of texts) {
      const newMessage = { role: 'user', parts: [{ text }] }
      for await (const event of runner.runAsync({ ...session, newMessage }))
        if (event.errorMessage) throw new Error(event.errorMessage)
    }
  })
}

async function inLango(rootAgent: BaseAgent, texts: readonly string[]): Promise<unknown[]> {
  const runtime = await createRuntime({ store: 'memory:', rootAgent })
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

describe('tools that Google’s servers run', () => {
  test.each<[string, AgentOptions, string]>([
    ['Google Search', { tools: [GOOGLE_SEARCH] }, 'googleSearch'],
    ['URL context', { tools: [URL_CONTEXT] }, 'urlContext'],
    ['Google Maps', { tools: [GOOGLE_MAPS_GROUNDING] }, 'googleMaps'],
    ['code execution', { codeExecutor: new BuiltInCodeExecutor() }, 'codeExecution'],
  ])('%s', async (_name, options, key) => {
    const [body] = await sameBodies(options)
    expect(body).toMatchObject({ tools: [{ [key]: {} }] })
  })

  test('several of them around functions keep their order', async () => {
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
})

describe('options', () => {
  test.each(OPTION_EXAMPLES)('%s: %j', async (_name, generateContentConfig) => {
    await sameBodies({ generateContentConfig } as AgentOptions)
  })

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
  ])('calling mode %s of %j', async (mode, allowedFunctionNames) => {
    const functionCallingConfig = { mode, ...(allowedFunctionNames ? { allowedFunctionNames } : {}) }
    const generateContentConfig = { toolConfig: { functionCallingConfig } } as GenerateContentConfig
    const [body] = await sameBodies({ tools: [look(), listen()], generateContentConfig })
    expect(body).toMatchObject({ toolConfig: { functionCallingConfig } })
  })

  test('an output schema', async () => {
    await sameBodies({ outputSchema: z.object({ answer: z.string(), score: z.number().nullable() }) })
  })
})
