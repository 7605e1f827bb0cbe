// A model that cannot answer is replaced by the next one, in the same run, and asked again after a pause.
import { expect, onTestFinished, test, vi } from 'vitest'
import { AgentError } from '../../src/errors.js'
import { ProviderHealth } from '../../src/money/provider-health.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { openStore } from '../../src/store/open-store.js'
import { openSqlStore } from '../../src/store/sql-store.js'
import { createMemoryDatabase } from '../../src/store/sqlite-memory.js'
import { ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { FAULT_KINDS, type Fault, type FaultKind, type Script } from '../../src/testing/strict/script.js'
import { defineTool } from '../../src/tool.js'
import { crashable } from '../support/crashable-store.js'
import { eventually } from '../support/eventually.js'
import { LONG } from '../support/tiers.js'

type Profile = Parameters<typeof startStrictProvider>[0]['profile']
type Type = 'gemini' | 'openai' | 'anthropic'

/** Two calls, each after a thought, then an answer. */
const think: Script = request => {
  const results = request.messages.flatMap(({ toolResults }) => toolResults)
  const lastUser = request.messages.findLastIndex(({ role }) => role === 'user')
  const ofTurn = request.messages.slice(lastUser).flatMap(({ toolResults }) => toolResults)
  if (ofTurn.length >= 2) return { thinking: 'Enough.', text: `Done after ${results.length}.` }
  return { thinking: `Step ${ofTurn.length}.`, toolCalls: [{ name: 'look', args: { at: ofTurn.length } }] }
}

interface Stage {
  runtime: Runtime
  faults: Fault[]
  violations(): unknown[]
  asked: [first: () => number, other: () => number]
  /** Called before each result. */
  onCall: { do?: (at: number) => void }
}

/** Tests set the date that models rest by; leases of the store go by the real time. */
const realNow = Date.now

async function stage(
  first: [Profile, Type, string],
  other: [Profile, Type, string],
  { idleTimeoutMs = 10_000, maxAttempts = 2 } = {},
): Promise<Stage> {
  const faults: Fault[] = []
  const servers = [
    await startStrictProvider({ profile: first[0], script: think, faults }),
    await startStrictProvider({ profile: other[0], script: think }),
  ] as const
  const retry = { maxAttempts, sleep: async () => {} }
  const onCall: Stage['onCall'] = {}
  let calls = 0
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    parameters: { type: 'object', properties: { at: { type: 'number' } } },
    effect: 'read',
    execute: () => {
      calls += 1
      onCall.do?.(((calls - 1) % 2) + 1)
      return { seen: calls }
    },
  })
  const [one, two] = servers
  const store = await openSqlStore((await createMemoryDatabase(realNow)).open())
  const runtime = await createRuntime({
    store,
    providers: {
      one: { type: first[1], apiKey: 'k', baseUrl: one.baseUrl, retry, idleTimeoutMs },
      two: { type: other[1], apiKey: 'k', baseUrl: two.baseUrl, retry },
    },
    agent: {
      name: 'root',
      model: `one/${first[2]}`,
      fallback: [`two/${other[2]}`],
      thinking: 'low',
      tools: [look],
    },
    limits: { loop: false },
  })
  onTestFinished(async () => {
    await runtime.close()
    await store.close()
    await Promise.all(servers.map(server => server.close()))
  })
  return {
    runtime,
    faults,
    violations: () => servers.flatMap(server => [...server.violations]),
    asked: [() => one.requests.length, () => two.requests.length],
    onCall,
  }
}

async function eventsOf(runtime: Runtime, text = 'go'): Promise<RunEvent[]> {
  const all: RunEvent[] = []
  for await (const event of runtime.run({ sessionId: 's', text })) all.push(event)
  return all
}

const switches = (events: readonly RunEvent[]) => events.filter(event => event.type === 'model-switch')
const finish = (events: readonly RunEvent[]) => events.at(-1)

const CODES: Partial<Record<FaultKind, string>> = {
  '429': 'provider-rate-limit',
  quota: 'provider-quota',
  '500': 'provider-unavailable',
  '503': 'provider-overloaded',
  '529': 'provider-overloaded',
  auth: 'provider-auth',
  'error-in-stream': 'provider-overloaded',
  cut: 'provider-stream',
  hang: 'provider-unavailable',
  garbage: 'provider-stream',
  'no-terminal': 'provider-stream',
}

/** Faults that the next model would share, or that are none. */
const OTHERS: readonly FaultKind[] = ['context-overflow', 'slow-drip', 'blocked', 'malformed-call']

test('the tables of this file have every fault of the strict servers', () => {
  expect([...Object.keys(CODES), ...OTHERS].sort()).toEqual([...FAULT_KINDS].sort())
})

const CLAUDE: [Profile, Type, string] = ['anthropic-4.6', 'anthropic', 'claude-sonnet-4-6']
const GEMINI: [Profile, Type, string] = ['gemini-3', 'gemini', 'gemini-3.5-flash']
const GPT: [Profile, Type, string] = ['openai-responses', 'openai', 'gpt-5.2']

const STEPS = [0, 1, 2]
const IDLE_MS = 60_000

interface Pair {
  first: [Profile, Type, string]
  other: [Profile, Type, string]
  stepsOf: (kind: FaultKind) => readonly number[]
}

/** Each fault meets one pair at one step, and each pair and each step meets several faults. */
const PAIRS: readonly Pair[] = [
  [CLAUDE, GEMINI] as const,
  [GEMINI, GPT] as const,
  [GPT, CLAUDE] as const,
].map(([first, other], pair) => ({
  first,
  other,
  stepsOf: kind => {
    const index = Object.keys(CODES).indexOf(kind)
    return index % 3 === pair ? [Math.floor(index / 3) % 3] : []
  },
}))

async function expectFallback({ first, other, stepsOf }: Pair): Promise<void> {
  onTestFinished(() => void vi.useRealTimers())
  for (const kind of (Object.keys(CODES) as FaultKind[]).filter(each => stepsOf(each).length > 0)) {
    const isHang = kind === 'hang'
    // A model rests by the clock; between two runs no lease is held.
    if (isHang) vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'], shouldAdvanceTime: true })
    else vi.useFakeTimers({ toFake: ['Date'] })
    const { runtime, faults, violations, asked, onCall } = await stage(
      first,
      other,
      isHang ? { idleTimeoutMs: IDLE_MS, maxAttempts: 1 } : {},
    )
    const expected = { from: `one/${first[2]}`, to: `two/${other[2]}` }
    for (const step of stepsOf(kind)) {
      const fail = () => void faults.push({ kind, afterEvents: 0 })
      onCall.do = at => at === step && fail()
      if (step === 0) fail()
      const before = asked[0]()
      const running = eventsOf(runtime)
      if (isHang) {
        await eventually(asked[0]).toBe(before + step + 1)
        await vi.advanceTimersByTimeAsync(IDLE_MS)
      }
      const events = await running
      expect(finish(events), `${kind} at ${step}`).toMatchObject({ finishReason: 'stop' })
      expect(switches(events), `${kind} at ${step}`).toMatchObject([expected])
      expect(events.find(event => event.type === 'model-switch')?.reason).toMatch(/^provider-/)
      faults.length = 0
      onCall.do = () => {}
      // While the first model rests, runs begin with the second; then they return.
      const [once, twice] = [asked[0](), asked[1]()]
      expect(finish(await eventsOf(runtime)), kind).toMatchObject({ finishReason: 'stop' })
      expect([asked[0]() - once, asked[1]() - twice], `${kind} at ${step}`).toEqual([0, 3])
      vi.setSystemTime(Date.now() + 10 * 60_000)
      expect(finish(await eventsOf(runtime)), kind).toMatchObject({ finishReason: 'stop' })
      expect([asked[0]() - once, asked[1]() - twice], `${kind} at ${step}`).toEqual([3, 3])
    }
    expect(violations(), kind).toEqual([])
  }
}

test.each(PAIRS)(
  '$first.2 falls back to $other.2 on a third of the faults, and the next run returns to the first model',
  expectFallback,
)

test.each(PAIRS.map(pair => ({ ...pair, stepsOf: () => STEPS })))(
  '$first.2 falls back to $other.2 on every fault at every step',
  { ...LONG, timeout: 600_000 },
  expectFallback,
)

test.each(OTHERS.filter(kind => kind !== 'slow-drip'))(
  'the fault %s does not switch to another model',
  async kind => {
    const { runtime, faults, asked } = await stage(CLAUDE, GEMINI)
    faults.push({ kind })
    const events = await eventsOf(runtime)
    expect(switches(events)).toEqual([])
    expect(asked[1]()).toBe(0)
  },
)

test('a stream that breaks off after visible output each time is taken back, and the next model answers', async () => {
  const { runtime, faults, violations } = await stage(CLAUDE, GEMINI)
  faults.push({ kind: 'cut', afterEvents: 4 })
  const events = await eventsOf(runtime)
  expect(finish(events)).toMatchObject({ finishReason: 'stop' })
  expect(switches(events)).toMatchObject([{ reason: 'provider-stream' }])
  const at = events.findIndex(({ type }) => type === 'model-switch')
  expect(events.slice(0, at).filter(({ type }) => type === 'step-restart')).toHaveLength(2)
  expect(violations()).toEqual([])
})

test('models of a provider whose key was refused are passed over; when all fail, the last error is the run’s', async () => {
  const { runtime, faults } = await stage(CLAUDE, GEMINI)
  faults.push({ kind: 'auth' })
  const fallback = ['one/claude-haiku-4-5', 'two/gemini-3.5-flash']
  const { finishReason } = await runtime.runAndCollect({ sessionId: 'a', text: 'go', fallback })
  expect(finishReason).toBe('stop')
  const failure = await runtime
    .runAndCollect({ sessionId: 'b', text: 'go', fallback: ['one/claude-haiku-4-5'] })
    .catch(error => error)
  expect(failure).toMatchObject({ code: 'provider-auth' })
})

test('a run that has switched is resumed where it was, without paying twice', async () => {
  const store = await openStore('memory:')
  onTestFinished(() => store.close())
  const dying = crashable(store)
  const asked: string[] = []
  let isDead = false
  const down = () => {
    asked.push('one')
    throw new AgentError('provider-overloaded', 'busy', { retryable: true })
  }
  const answer = (request: { messages: readonly { parts: readonly { type: string }[] }[] }): ScriptStep => {
    asked.push('two')
    const isCalled = request.messages.some(({ parts }) => parts.some(({ type }) => type === 'tool-result'))
    if (isCalled && !isDead) {
      isDead = true
      void dying.crash()
    }
    return isCalled ? { text: 'Done.' } : { toolCalls: [{ name: 'look', args: {} }] }
  }
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    parameters: { type: 'object' },
    execute: () => 1,
  })
  const open = (given: typeof store) =>
    createRuntime({
      store: given,
      providers: {
        one: new ScriptedProvider(down, { id: 'one' }),
        two: new ScriptedProvider(answer, { id: 'two' }),
      },
      agent: { name: 'root', model: 'one/m', fallback: ['two/m'], tools: [look] },
    })
  const runId = '00000000-0000-4000-8000-000000000010'
  await (await open(dying.store)).start({ sessionId: 's', text: 'go', runId })
  await eventually(() => isDead).toBe(true)
  const runtime = await open(store)
  onTestFinished(() => runtime.close())
  const paid = asked.filter(name => name === 'two').length
  await runtime.resume(runId)
  const events: RunEvent[] = []
  for await (const event of runtime.follow(runId)) events.push(event)
  expect(finish(events)).toMatchObject({ finishReason: 'stop', text: 'Done.' })
  expect(asked.filter(name => name === 'two').length).toBe(paid + 1)
})

const overloaded = new AgentError('provider-overloaded', 'busy', { retryable: true })
const refused = new AgentError('provider-auth', 'key')

test('a model rests longer with each failure, one request tries it, and an answer ends it', () => {
  let now = 0
  const health = new ProviderHealth(
    () => now,
    () => 0.99,
  )
  const provider = {}
  const rest = () => {
    const since = now
    while (health.reasonAgainst(provider, 'm') !== undefined) now += 100
    return now - since
  }
  expect(health.failed(provider, 'm', overloaded)).toBe(true)
  expect(health.reasonAgainst(provider, 'm')).toBe('provider-overloaded')
  expect(health.reasonAgainst(provider, 'other')).toBeUndefined()
  const first = rest()
  // Who was told that it may is the one that tries.
  expect(health.reasonAgainst(provider, 'm')).toBe('provider-overloaded')
  health.failed(provider, 'm', overloaded)
  expect(rest()).toBeGreaterThan(first * 1.5)
  health.answered(provider, 'm')
  expect(health.reasonAgainst(provider, 'm')).toBeUndefined()
})

test('a refused key is that of all models, a Retry-After is kept, and a wrong request is no failure', () => {
  let now = 0
  const health = new ProviderHealth(() => now)
  const provider = {}
  health.failed(provider, 'm', refused)
  expect(health.reasonAgainst(provider, 'other')).toBe('provider-auth')
  expect(health.reasonAgainst({}, 'm')).toBeUndefined()
  const later = new AgentError('provider-rate-limit', 'slow', { details: { retryAfterMs: 60_000 } })
  health.failed(provider, 'm', later)
  now = 59_000
  expect(health.reasonAgainst(provider, 'm')).toBe('provider-rate-limit')
  expect(health.failed(provider, 'm', new AgentError('provider-rejected', 'no'))).toBe(false)
  expect(health.failed(provider, 'm', new AgentError('context-overflow', 'long'))).toBe(false)
})

test('a model that asked for an hour is tried by one request a minute', () => {
  let now = 0
  const health = new ProviderHealth(
    () => now,
    () => 0,
  )
  const provider = {}
  const hour = new AgentError('provider-rate-limit', 'slow', { details: { retryAfterMs: 3_600_000 } })
  health.failed(provider, 'm', hour)
  now = 59_000
  expect(health.reasonAgainst(provider, 'm')).toBe('provider-rate-limit')
  now = 60_000
  expect(health.reasonAgainst(provider, 'm')).toBeUndefined()
  health.failed(provider, 'm', hour)
  now = 119_000
  expect(health.reasonAgainst(provider, 'm')).toBe('provider-rate-limit')
  now = 120_000
  expect(health.reasonAgainst(provider, 'm')).toBeUndefined()
  health.answered(provider, 'm')
  expect(health.reasonAgainst(provider, 'm')).toBeUndefined()
})
