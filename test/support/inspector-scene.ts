/**
 * A session with everything that an inspector can show: too long for its budget, an open call with an id that
 * some providers refuse, an orphaned result, and then one run on each family of wires, so that every request
 * holds calls, signatures and ids of the others. The servers are strict: what is shown was accepted.
 */
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import {
  type StrictProvider,
  type StrictProviderOptions,
  startStrictProvider,
} from '../../src/testing/start-strict-provider.js'
import { searchTool } from './tools.js'

export const SCENE_KEY = { appName: 'lango', userId: 'user', sessionId: 'scene' }

/** How the providers of the scene are called, in the order of its runs, and their models. */
const SCENE_MODELS = {
  gemini: 'gemini/gemini-3-pro-preview',
  chat: 'chat/gpt-4.1',
  responses: 'responses/gpt-5.2',
  anthropic: 'anthropic/claude-sonnet-4-6',
} as const

export type SceneFamily = keyof typeof SCENE_MODELS

export interface Scene {
  runtime: Runtime
  servers: Record<SceneFamily, StrictProvider>
  /** One run per family. */
  runs: Record<SceneFamily, string>
  close(): Promise<void>
}

const PROFILES = {
  gemini: 'gemini-3',
  chat: 'openai-chat',
  responses: 'openai-responses',
  anthropic: 'anthropic-4.6',
} as const satisfies Record<SceneFamily, StrictProviderOptions['profile']>

/** Fills the session and runs it through all four families. */
export async function openScene(budgetTokens = 2000): Promise<Scene> {
  const servers = await startServers()
  const key = { apiKey: 'a-secret-key' }
  const runtime = await createRuntime({
    store: 'memory:',
    providers: {
      gemini: { type: 'gemini', ...key, baseUrl: servers.gemini.baseUrl },
      chat: { type: 'openai', api: 'chat', ...key, baseUrl: servers.chat.baseUrl },
      responses: { type: 'openai', api: 'responses', ...key, baseUrl: servers.responses.baseUrl },
      anthropic: { type: 'anthropic', ...key, baseUrl: servers.anthropic.baseUrl },
    },
    agent: {
      name: 'guide',
      model: SCENE_MODELS.gemini,
      instruction: 'You plan journeys. Answer briefly and name your sources.',
      tools: [searchTool],
    },
    history: { maxMessageTokenBudget: budgetTokens },
  })
  await fillSession(runtime.store)
  const runs = {} as Record<SceneFamily, string>
  for (const family of Object.keys(SCENE_MODELS) as SceneFamily[]) {
    const text = `Which train is the fastest to ${CITIES[family]}?`
    const { runId } = await runtime.runAndCollect({ sessionId: 'scene', text, model: SCENE_MODELS[family] })
    runs[family] = runId
  }
  const close = async () => {
    await runtime.close()
    await Promise.all(Object.values(servers).map(server => server.close()))
  }
  return { runtime, servers, runs, close }
}

const CITIES: Record<SceneFamily, string> = {
  gemini: 'Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch',
  chat: '京都',
  responses: 'القاهرة',
  anthropic: 'Lisbon',
}

async function startServers(): Promise<Scene['servers']> {
  const started = Object.entries(PROFILES).map(async ([family, profile]) => {
    const city = CITIES[family as SceneFamily]
    const script = [
      {
        toolCalls: [
          { name: 'search', args: { query: `trains to ${city}` } },
          { name: 'search', args: { query: `${city} timetable` } },
        ],
        usage: { input: 1900, output: 42 },
      },
      { text: `The night train reaches ${city} first.`, usage: { input: 1980, output: 11 } },
    ]
    return [family, await startStrictProvider({ profile, script })] as const
  })
  return Object.fromEntries(await Promise.all(started)) as Scene['servers']
}

/** Twelve long turns, a lost call and a result without a call. */
async function fillSession(store: Runtime['store']): Promise<void> {
  await store.createSession(SCENE_KEY)
  const add = (message: Omit<Parameters<typeof store.appendMessage>[1], 'timestamp'>) =>
    store.appendMessage(SCENE_KEY, { ...message, timestamp: 1_760_000_000_000 })
  for (let turn = 1; turn <= 12; turn++) {
    const question = `Day ${turn}: where shall I go, and what should I see there? ${'I like old harbours. '.repeat(20)}`
    const answer = `On day ${turn} take the coast line and stay near the harbour. ${'The market opens early. '.repeat(20)}`
    await add({ role: 'user', author: 'user', content: question })
    await add({ role: 'assistant', author: 'guide', content: answer })
  }
  await add({ role: 'user', author: 'user', content: 'Look up the ferries, please.' })
  await add({
    role: 'assistant',
    author: 'guide',
    content: '',
    toolCalls: [{ id: 'lost call/1', name: 'search', input: '{"query":"ferries"}' }],
  })
  await add({
    role: 'tool',
    author: 'guide',
    content: '',
    toolCalls: [{ id: 'nobody', name: 'search', output: '{"found":"an old timetable"}' }],
  })
}

/** One request of two thousand messages and about a megabyte. Returns its run. */
export async function runLongSession({ runtime }: Scene): Promise<string> {
  const key = { ...SCENE_KEY, sessionId: 'long' }
  await runtime.store.createSession(key)
  for (let turn = 1; turn <= 1000; turn++) {
    const words = `${turn} ${'All of this is sent. '.repeat(22)}`
    const timestamp = 1_760_000_000_000
    await runtime.store.appendMessage(key, { role: 'user', author: 'user', content: `Q${words}`, timestamp })
    await runtime.store.appendMessage(key, {
      role: 'assistant',
      author: 'guide',
      content: `A${words}`,
      timestamp,
    })
  }
  const input = { sessionId: 'long', text: 'And now?', model: SCENE_MODELS.gemini }
  return (await runtime.runAndCollect(input)).runId
}
