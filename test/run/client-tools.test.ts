// Tools that the caller of a run executes: declared beside the agent's own, answered by the caller.
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import type { ScriptStep } from '../../src/testing/strict/script.js'
import type { ClientTools } from '../../src/tool.js'
import { createStoreDatabase } from '../support/postgres.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { searchTool } from '../support/tools.js'

const WEATHER = {
  name: 'get_weather',
  description: 'The weather in a city.',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
}
const CLOCK = { name: 'get_time', description: 'The time.' }
const clientTools: ClientTools = { tools: [WEATHER, CLOCK] }

async function start(script: readonly ScriptStep[], store = 'memory:') {
  const provider = await startStrictProvider({ profile: 'openai-chat', script })
  const wire = { apiKey: 'k', baseUrl: provider.baseUrl }
  const open = () =>
    createRuntime({
      store,
      providers: { strict: { type: 'openai', api: 'chat', ...wire } },
      agent: { name: 'root', model: 'strict/gpt-4.1', instruction: 'Help.', tools: [searchTool] },
    })
  const runtime = await open()
  onTestFinished(async () => {
    await runtime.close()
    await provider.close()
  })
  return { provider, runtime, open }
}

function bodies(provider: { requests: readonly { body: unknown }[] }): Body[] {
  return provider.requests.map(({ body }) => body as Body)
}

interface Body {
  messages: { role: string; content: unknown; tool_call_id?: string }[]
  tools: { function: { name: string } }[]
  tool_choice?: unknown
  temperature?: number
}

async function waiting(runtime: Runtime, runId: string): Promise<void> {
  await expect.poll(async () => (await runtime.findRun(runId))?.state).toBe('waiting')
}

const STORES = {
  sqlite: async () => `sqlite:${join(await temporaryFolder(), 'lango.db')}`,
  postgres: async () => {
    const database = await createStoreDatabase()
    onTestFinished(() => database.drop())
    return database.url
  },
}

describe.each(Object.entries(STORES))('on %s', (name, newStore) => {
  test(`a call of each side in one answer on ${name}: the run waits for the caller, and another process continues it`, async () => {
    const url = await newStore()
    const { provider, runtime, open } = await start(
      [
        {
          text: 'Let me look.',
          toolCalls: [
            { name: 'search', args: { query: 'rain' } },
            { name: 'get_weather', args: { city: 'Rome' } },
          ],
        },
        { text: 'It rains.' },
      ],
      url,
    )
    const first = await runtime.runAndCollect({ sessionId: 's', text: 'Rain?', clientTools })
    expect(first.finishReason).toBe('waiting')
    expect(provider.requests).toHaveLength(1)
    expect(bodies(provider)[0]?.tools.map(tool => tool.function.name)).toEqual([
      'search',
      'get_weather',
      'get_time',
    ])
    const [run] = await runtime.listRuns({ appName: 'lango', userId: 'user', sessionId: 's' })
    const runId = run?.runId ?? ''
    await waiting(runtime, runId)
    await runtime.close()
    const other = await open()
    onTestFinished(() => other.close())
    await other.ready()
    const call = (await other.store.runs.readEvents(runId)).find(
      event => event.type === 'tool-call' && event.name === 'get_weather',
    )
    await other.answer(runId, String(call?.id), { weather: 'rain' })
    const events = []
    for await (const event of other.follow(runId)) events.push(event)
    expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
    expect(events.at(-1)).toHaveProperty('text', expect.stringContaining('It rains.'))
    expect(provider.violations).toEqual([])
    const [before, after] = bodies(provider)
    expect(after?.messages.slice(0, before?.messages.length)).toEqual(before?.messages)
    expect(after?.tools).toEqual(before?.tools)
    expect(after?.messages.filter(({ role }) => role === 'tool')).toHaveLength(2)
    expect(await other.store.listSessions({ appName: 'lango' })).toMatchObject({ sessions: [{}] })
  })
})

test('options of the run are those of its model calls', async () => {
  const { provider, runtime } = await start([{ text: 'Hi.' }])
  await runtime.runAndCollect({ text: 'Hello', generation: { topP: 0.2, stopSequences: ['X'] } })
  expect(bodies(provider)[0]).toMatchObject({ top_p: 0.2, stop: ['X'] })
})

test('a required tool is required once in each round', async () => {
  const { provider, runtime } = await start([{ toolCalls: [{ name: 'get_time' }] }, { text: 'Noon.' }])
  const run = { text: 'Time?', clientTools: { ...clientTools, choice: { names: ['get_time'] } } }
  const { sessionId } = await runtime.runAndCollect(run)
  const [{ runId = '' } = {}] = await runtime.listRuns({ appName: 'lango', userId: 'user', sessionId })
  expect(bodies(provider)[0]?.tool_choice).toEqual({ type: 'function', function: { name: 'get_time' } })
  expect(runId).not.toBe('')
})

test('arguments that a strict schema refuses, and calls beyond the only one, do not reach the caller', async () => {
  const { provider, runtime } = await start([
    { toolCalls: [{ name: 'get_weather', args: { town: 'Rome' } }] },
    { toolCalls: [{ name: 'get_weather', args: { city: 'Rome' } }, { name: 'get_time' }] },
  ])
  const tools = [{ ...WEATHER, strict: true }, CLOCK]
  const events = []
  for await (const event of runtime.run({ text: 'Hi', clientTools: { tools, parallel: false } }))
    events.push(event)
  const results = events.filter(({ type }) => type === 'tool-result')
  expect(results).toMatchObject([
    { name: 'get_weather', result: { error: expect.stringContaining('Invalid arguments') } },
    { name: 'get_time', result: { error: expect.stringContaining('one call at a time') } },
  ])
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'waiting' })
  expect(provider.requests).toHaveLength(2)
})

test.each([
  ['the name of an agent’s tool', { tools: [{ name: 'search' }] }, 'runs itself'],
  ['a name twice', { tools: [CLOCK, CLOCK] }, 'declared twice'],
  ['a choice of an unknown tool', { tools: [CLOCK], choice: { names: ['x'] } }, 'not declared'],
  ['an unknown key', { tools: [CLOCK], all: true }, 'clientTools'],
  ['a name that no vendor takes', { tools: [{ name: 'a b' }] }, 'clientTools'],
])('%s is refused before anything is stored', async (_name, wrong, words) => {
  const { runtime } = await start([])
  // The input is wrong on purpose.
  const run = runtime.runAndCollect({ text: 'Hi', clientTools: wrong as ClientTools })
  await expect(run).rejects.toThrow(words)
  expect((await runtime.store.listSessions({ appName: 'lango' })).sessions).toEqual([])
})
