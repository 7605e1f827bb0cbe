// A stream that breaks off after visible output: the half answer is taken back, and the model is asked again.
import { LlmAgent, ParallelAgent, Workflow } from '@google/adk'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { RunEvent } from '../../src/run/run-event.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import type { Fault } from '../../src/testing/strict/script.js'
import { applyRunEvent, newRunTranscript } from '../../src/transcript/from-events.js'

type Profile = Parameters<typeof startStrictProvider>[0]['profile']
type Type = 'gemini' | 'openai' | 'anthropic'

const MODELS: [Profile, Type, string][] = [
  ['anthropic-4.6', 'anthropic', 'claude-sonnet-4-6'],
  ['gemini-3', 'gemini', 'gemini-3.5-flash'],
  ['openai-responses', 'openai', 'gpt-5.2'],
]

const ANSWER = 'Lisbon is mild in spring, Porto is wet.'

async function stage(
  [profile, type, model]: [Profile, Type, string],
  faults: readonly Fault[],
  { maxAttempts = 3, providers = {}, ...options }: Partial<RuntimeOptions> & { maxAttempts?: number } = {},
) {
  const deltas = ANSWER.match(/.{1,5}/g) ?? []
  const server = await startStrictProvider({
    profile,
    script: () => ({ text: ANSWER, deltas }),
    faults: [...faults],
  })
  const retry = { maxAttempts, sleep: async () => {} }
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { one: { type, apiKey: 'k', baseUrl: server.baseUrl, retry }, ...providers },
    agent: { name: 'root', model: `one/${model}` },
    ...options,
  })
  onTestFinished(async () => {
    await runtime.close()
    await server.close()
  })
  return { runtime, server }
}

async function eventsOf(runtime: Runtime): Promise<RunEvent[]> {
  const all: RunEvent[] = []
  for await (const event of runtime.run({ sessionId: 's', text: 'go' })) all.push(event)
  return all
}

/** The text as a client shows it that takes back what is void. */
function shown(events: readonly RunEvent[]): string {
  let text = ''
  for (const event of events) {
    if (event.type === 'text-delta') text += event.text
    if (event.type === 'step-restart') text = ''
  }
  return text
}

const restarts = (events: readonly RunEvent[]) => events.filter(({ type }) => type === 'step-restart')
const CUT: Fault = { kind: 'cut', afterEvents: 8, at: 0 }

test.each(MODELS)(
  'a stream of %s cut in mid-text is taken back with step-restart, and the model is asked again',
  async (...model) => {
    const { runtime, server } = await stage(model, [CUT])
    const events = await eventsOf(runtime)
    expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop', text: ANSWER })
    expect(restarts(events)).toMatchObject([{ step: 1, author: 'root' }])
    const at = events.findIndex(({ type }) => type === 'step-restart')
    expect(events.slice(0, at).some(({ type }) => type === 'text-delta')).toBe(true)
    expect(shown(events)).toBe(ANSWER)
    expect(server.requests).toHaveLength(2)
    const messages = await runtime.store.readMessages({ appName: 'lango', userId: 'user', sessionId: 's' })
    expect(messages.map(({ content }) => content)).toEqual(['go', ANSWER])
  },
)

const [CLAUDE] = MODELS as [(typeof MODELS)[0]]
const [, , GPT] = MODELS as [unknown, unknown, (typeof MODELS)[0]]
const ALWAYS: Fault = { kind: 'cut', afterEvents: 8 }

test('a stream that is cut each time ends the run with provider-stream after the last attempt', async () => {
  const { runtime, server } = await stage(CLAUDE, [ALWAYS])
  const events = await eventsOf(runtime)
  expect(events.at(-1)).toMatchObject({ finishReason: 'error', text: '' })
  expect(events.find(({ type }) => type === 'error')).toMatchObject({ error: { code: 'provider-stream' } })
  expect(restarts(events)).toHaveLength(2)
  expect(server.requests).toHaveLength(3)
})

test('with maxAttempts 1 a cut stream ends the run at once', async () => {
  const { runtime, server } = await stage(CLAUDE, [ALWAYS], { maxAttempts: 1 })
  const events = await eventsOf(runtime)
  expect(events.at(-1)).toMatchObject({ finishReason: 'error' })
  expect(restarts(events)).toEqual([])
  expect(server.requests).toHaveLength(1)
})

test('after the last attempt of a model its text is taken back, and the next model answers', async () => {
  const other = await startStrictProvider({ profile: CLAUDE[0], script: () => ({ text: 'From the other.' }) })
  onTestFinished(() => other.close())
  const two = { type: CLAUDE[1], apiKey: 'k', baseUrl: other.baseUrl }
  const { runtime } = await stage(GPT, [ALWAYS], {
    providers: { two },
    agent: { name: 'root', model: `one/${GPT[2]}`, fallback: [`two/${CLAUDE[2]}`] },
  })
  const events = await eventsOf(runtime)
  expect(events.at(-1)).toMatchObject({ finishReason: 'stop', text: 'From the other.' })
  expect(restarts(events)).toHaveLength(3)
  expect(shown(events)).toBe('From the other.')
})

test('the answer of a parallel agent that was cut is taken back, and that of the other agent stays', async () => {
  const { runtime } = await stage(CLAUDE, [CUT], {
    agent: undefined,
    rootAgent: new ParallelAgent({
      name: 'both',
      subAgents: ['a', 'b'].map(name => new LlmAgent({ name, model: `one/${CLAUDE[2]}` })),
    }),
  })
  const events = await eventsOf(runtime)
  expect(restarts(events)).toHaveLength(1)
  let run = newRunTranscript({ runId: events[0]?.runId ?? '', afterSeq: 0 })
  for (const event of events) run = applyRunEvent(run, event)
  const texts = run.items.flatMap(item => (item.kind === 'text' ? [[item.author, item.text]] : []))
  expect(Object.fromEntries(texts)).toEqual({ a: ANSWER, b: ANSWER })
  expect(texts).toHaveLength(2)
})

test('the answer of a node of a workflow that was cut is taken back, also while its reader is slow', async () => {
  // ADK keeps the events of nodes in a queue: the model goes on while they wait there.
  const a = new LlmAgent({ name: 'a', model: `one/${CLAUDE[2]}` })
  const rootAgent = new Workflow({ name: 'flow', edges: [['START', a]] })
  const { runtime, server } = await stage(CLAUDE, [CUT], { agent: undefined, rootAgent })
  const events: RunEvent[] = []
  for await (const event of runtime.run({ sessionId: 's', text: 'go' })) {
    if (event.type === 'text-delta') await vi.waitUntil(() => server.requests.length === 2)
    events.push(event)
  }
  expect(restarts(events)).toMatchObject([{ step: 1, author: 'a' }])
  expect(shown(events)).toBe(ANSWER)
  expect(events.at(-1)).toMatchObject({ finishReason: 'stop', text: ANSWER })
})

test('callbacks of an agent get no answer for what is taken back', async () => {
  const given: unknown[] = []
  const { runtime } = await stage(CLAUDE, [CUT], {
    agent: undefined,
    rootAgent: new LlmAgent({
      name: 'root',
      model: `one/${CLAUDE[2]}`,
      afterModelCallback: ({ response }) => {
        given.push(response.content?.parts?.[0]?.text)
        return undefined
      },
    }),
  })
  const events = await eventsOf(runtime)
  expect(restarts(events)).toHaveLength(1)
  expect(given).not.toContain('')
})

test('a half answer is spent: what the budget leaves is the limit of the next request', async () => {
  const { runtime } = await stage(CLAUDE, [CUT], { budget: { perRunUsd: 0.05 } })
  const events = await eventsOf(runtime)
  expect(restarts(events)).toHaveLength(1)
  expect(events.find(({ type }) => type === 'wrap-up')).toMatchObject({ reason: 'budget' })
  expect(events.at(-1)).toMatchObject({ finishReason: 'budget' })
  expect(shown(events)).not.toMatch(/^Lisbon is mLisbon/)
})
