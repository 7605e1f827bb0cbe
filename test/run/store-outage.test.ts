// The store fails while a tool has run and its result is not stored: the ledger does not lose the call.
import { expect, onTestFinished, test, vi } from 'vitest'
import { AgentError } from '../../src/errors.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { openSqlStore } from '../../src/store/sql-store.js'
import { createMemoryDatabase } from '../../src/store/sqlite-memory.js'
import { ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'
import { defineTool } from '../../src/tool.js'
import { crashable } from '../support/crashable-store.js'
import { faultyStore } from '../support/faulty-store.js'
import { createStoreDatabase } from '../support/postgres.js'
import { startTcpProxy } from '../support/tcp-proxy.js'
import { LONG } from '../support/tiers.js'

/** A port that no server listens on. */
const UNUSED_PORT = 1

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }
const PAY = { name: 'pay', args: { amount: 5 } }

/** A store whose steps cannot be saved while it is down. `retryable`: it says that it may be back in a moment. */
function failing(
  store: SessionStore,
  { retryable }: { retryable: boolean },
): {
  store: SessionStore
  failNext(count: number): void
  failed(): number
} {
  let left = 0
  let failed = 0
  const down = faultyStore(store, {
    runs: {
      saveStep: (saveStep, step) => {
        if (left <= 0) return saveStep(step)
        left -= 1
        failed += 1
        return Promise.reject(new AgentError('store-unavailable', 'down', { retryable }))
      },
    },
  })
  return {
    store: down,
    failNext: count => {
      left = count
    },
    failed: () => failed,
  }
}

async function payDuringOutage(failures: number, retryable = false) {
  const opened = await openStore('memory:')
  onTestFinished(() => opened.close())
  const { store, failNext, failed } = failing(opened, { retryable })
  let paid = 0
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: { type: 'object' },
    execute: () => {
      paid += 1
      if (paid === 1) failNext(failures)
      return { paid }
    },
  })
  const read = defineTool({
    name: 'read',
    description: 'Reads.',
    parameters: { type: 'object' },
    effect: 'read',
    execute: () => ({ balance: 1 }),
  })
  const steps = [
    {
      toolCalls: [
        { id: 'c1', ...PAY },
        { id: 'c2', name: 'read', args: {} },
      ],
    },
    { toolCalls: [{ id: 'c3', ...PAY }] },
    { text: 'Done.' },
  ]
  const provider = new ScriptedProvider(steps, { id: 'play' })
  const runtime = await createRuntime({
    store,
    runs: { resume: false },
    providers: { play: provider },
    agent: { name: 'root', model: 'play/m', tools: [pay, read] },
  })
  onTestFinished(() => runtime.close())
  const run = async () => {
    const events: RunEvent[] = []
    for await (const event of runtime.run({ sessionId: 's', text: 'Pay.' })) events.push(event)
    return events
  }
  return { run, store, failNext, failed, paid: () => paid }
}

/** The end of `pay`, the end of `read`, and the answer of both. */
const UNTIL_ANSWERED = 3

test('a result is stored in the ledger and in the history when the store is back before the run ends', async () => {
  const { run, store, failed } = await payDuringOutage(UNTIL_ANSWERED)
  const events = await run()
  expect(failed()).toBe(UNTIL_ANSWERED)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'error' })
  const rows = await store.runs.readCalls(events[0]?.runId ?? '')
  expect(rows.map(({ tool, status }) => `${tool} ${status}`)).toEqual(['pay done', 'read done'])
  const messages = await store.readMessages(KEY)
  expect(messages.at(-1)?.toolCalls?.map(({ output }) => output)).toEqual(['{"paid":1}', '{"balance":1}'])
})

test('a store that is away for a few writes does not end the run, and every call is stored once', async () => {
  const { run, store, failed, paid } = await payDuringOutage(4, true)
  const events = await run()
  expect(failed()).toBe(4)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop', text: 'Done.' })
  expect(paid()).toBe(2)
  const rows = await store.runs.readCalls(events[0]?.runId ?? '')
  expect(rows.map(({ tool, status }) => `${tool} ${status}`)).toEqual(['pay done', 'read done', 'pay done'])
  expect(await store.readMessages(KEY)).toHaveLength(6)
})

test('the start of a call whose acknowledgement was lost is counted once', async () => {
  const opened = await openStore('memory:')
  onTestFinished(() => opened.close())
  let lost = 0
  const store = faultyStore(opened, {
    runs: {
      saveStep: async (saveStep, step) => {
        const saved = await saveStep(step)
        if (lost > 0 || !step.calls?.some(({ status }) => status === 'started')) return saved
        lost += 1
        throw new AgentError('store-unavailable', 'The acknowledgement was lost.', { retryable: true })
      },
    },
  })
  let paid = 0
  const execute = () => ({ paid: ++paid })
  const pay = defineTool({ name: 'pay', description: 'Pays.', parameters: { type: 'object' }, execute })
  const steps = [{ toolCalls: [{ id: 'c1', ...PAY }] }, { text: 'Done.' }]
  const runtime = await createRuntime({
    store,
    providers: { play: new ScriptedProvider(steps, { id: 'play' }) },
    agent: { name: 'root', model: 'play/m', tools: [pay] },
  })
  onTestFinished(() => runtime.close())
  const runId = '00000000-0000-4000-8000-00000000000a'
  await runtime.runAndCollect({ sessionId: 's', text: 'Pay.', runId }).catch(() => undefined)
  const [row] = await opened.runs.readCalls(runId)
  expect(lost).toBe(1)
  expect(row).toMatchObject({ attempt: 1 })
  expect(paid).toBeLessThanOrEqual(1)
})

test('a run continues after PostgreSQL was away for a second', () => expectContinuedAfterOutage(1000))

test('a run continues after PostgreSQL was away for six seconds', LONG, () =>
  expectContinuedAfterOutage(6000),
)

async function expectContinuedAfterOutage(awayMs: number): Promise<void> {
  const database = await createStoreDatabase()
  onTestFinished(() => database.drop())
  const url = new URL(database.url)
  const port = Number(url.port)
  const proxy = await startTcpProxy(port)
  onTestFinished(() => proxy.close())
  url.port = String(proxy.port)
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    parameters: { type: 'object' },
    effect: 'read',
    execute: () => {
      proxy.leadTo(UNUSED_PORT)
      proxy.disconnect()
      setTimeout(() => proxy.leadTo(port), awayMs)
      return { seen: 1 }
    },
  })
  const steps = [{ toolCalls: [{ id: 'c1', name: 'look', args: {} }] }, { text: 'Done.' }]
  const runtime = await createRuntime({
    store: String(url),
    providers: { play: new ScriptedProvider(steps, { id: 'play' }) },
    agent: { name: 'root', model: 'play/m', tools: [look] },
  })
  onTestFinished(() => runtime.close())
  const { finishReason, text } = await runtime.runAndCollect({ sessionId: 's', text: 'Look.' })
  expect({ finishReason, text }).toEqual({ finishReason: 'stop', text: 'Done.' })
  expect(await runtime.store.readMessages(KEY)).toHaveLength(4)
}

test('a call is unknown, and a repeated one not executed, when the store is not back before the run ends', async () => {
  const { run, store, failNext, paid } = await payDuringOutage(Number.POSITIVE_INFINITY)
  const events = await run()
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'error' })
  failNext(0)
  const again = await run()
  expect(again.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  expect(paid()).toBe(1)
  const rows = await store.runs.readCalls(events[0]?.runId ?? '')
  expect(rows.find(({ tool }) => tool === 'pay')?.status).toBe('unknown')
})

test('a call does not stay open when the store is back between the last message and the last event', async () => {
  // One failure more: the answers of the end cannot be stored either, and the last event could.
  const { run, store, paid } = await payDuringOutage(UNTIL_ANSWERED + 1)
  const events = await run()
  await run()
  expect(paid()).toBe(1)
  const rows = await store.runs.readCalls(events[0]?.runId ?? '')
  expect(rows.find(({ tool }) => tool === 'pay')?.status).toBe('unknown')
})

test('a call is unknown, and a repeated one not executed, when the lease is lost while its tool runs', async () => {
  const opened = await openStore('memory:')
  onTestFinished(() => opened.close())
  const losing = new AbortController()
  const store = faultyStore(opened, {
    openRun: async (openRun, ...args) => {
      const run = await openRun(...args)
      if (losing.signal.aborted || !('lease' in run)) return run
      const release = () => run.lease.release()
      const released = () => run.lease.released()
      return { ...run, lease: { key: KEY, fence: run.lease.fence, lost: losing.signal, release, released } }
    },
  })
  let paid = 0
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: { type: 'object' },
    execute: async () => {
      paid += 1
      if (paid === 1) losing.abort(new AgentError('lease-lost', 'another writer took it'))
      return { paid }
    },
  })
  const steps = [{ toolCalls: [PAY] }, { toolCalls: [PAY] }, { text: 'Done.' }]
  const runtime = await createRuntime({
    runs: { resume: false },
    store,
    providers: { play: new ScriptedProvider(steps, { id: 'play' }) },
    agent: { name: 'root', model: 'play/m', tools: [pay] },
  })
  onTestFinished(() => runtime.close())
  const events: RunEvent[] = []
  for await (const event of runtime.run({ sessionId: 's', text: 'Pay.' })) events.push(event)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'error' })
  await runtime.runAndCollect({ sessionId: 's', text: 'Pay.' })
  expect(paid).toBe(1)
  const [row] = await store.runs.readCalls(events[0]?.runId ?? '')
  expect(row?.status).toBe('unknown')
})

test('a tool is not called when its process was frozen after the start was stored and lost its lease meanwhile', async () => {
  let frozenMs = 0
  const database = await createMemoryDatabase(() => Date.now() + frozenMs)
  const [opened, other] = [await openSqlStore(database.open()), await openSqlStore(database.open())]
  const steady = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => steady() + frozenMs)
  onTestFinished(async () => {
    vi.restoreAllMocks()
    await Promise.all([opened.close(), other.close()])
  })
  const store = faultyStore(opened, {
    runs: {
      saveStep: async (saveStep, step) => {
        const saved = await saveStep(step)
        if (frozenMs > 0 || !step.calls?.some(({ status }) => status === 'started')) return saved
        frozenMs = 60_000
        await other.acquireLease(KEY, { ttlMs: 600_000 })
        return saved
      },
    },
  })
  const execute = vi.fn(() => ({ paid: true }))
  const pay = defineTool({ name: 'pay', description: 'Pays.', parameters: { type: 'object' }, execute })
  const steps = [{ toolCalls: [{ id: 'c1', ...PAY }] }, { text: 'Done.' }]
  const runtime = await createRuntime({
    runs: { resume: false },
    store,
    providers: { play: new ScriptedProvider(steps, { id: 'play' }) },
    agent: { name: 'root', model: 'play/m', tools: [pay] },
  })
  onTestFinished(() => runtime.close())
  await expect(runtime.runAndCollect({ sessionId: 's', text: 'Pay.' })).rejects.toMatchObject({
    code: 'lease-lost',
  })
  expect(execute).not.toHaveBeenCalled()
})

test.each([
  ['the calls', 1],
  ['their results', 2],
])(
  'every call has one answer when the acknowledgement of the message with %s is lost',
  async (_name, nth) => {
    const opened = await openStore('memory:')
    onTestFinished(() => opened.close())
    let messages = 0
    const store = faultyStore(opened, {
      runs: {
        saveStep: async (saveStep, step) => {
          const saved = await saveStep(step)
          if (step.message !== undefined) messages += 1
          if (step.message !== undefined && messages === nth)
            throw new AgentError('store-unavailable', 'no answer')
          return saved
        },
      },
    })
    const pay = defineTool({
      name: 'pay',
      description: 'Pays.',
      parameters: { type: 'object' },
      execute: () => ({ paid: 1 }),
    })
    const provider = new ScriptedProvider([{ toolCalls: [{ id: 'c1', ...PAY }] }, { text: 'Done.' }], {
      id: 'play',
    })
    const runtime = await createRuntime({
      store,
      providers: { play: provider },
      agent: { name: 'root', model: 'play/m', tools: [pay] },
    })
    onTestFinished(() => runtime.close())
    await runtime.runAndCollect({ sessionId: 's', text: 'Pay.' }).catch(() => {})
    const stored = (await opened.readMessages(KEY)).flatMap(({ toolCalls = [] }) => toolCalls)
    expect(stored.map(({ id, kind }) => `${id} ${kind === 'response' ? 'answer' : 'call'}`)).toEqual([
      'c1 call',
      'c1 answer',
    ])
  },
)

test('a repeated call is not executed when a resumed run cannot store that its outcome is unknown', async () => {
  const opened = await openStore('memory:')
  onTestFinished(() => opened.close())
  let paid = 0
  let begun = () => {}
  const isPaid = new Promise<void>(resolve => {
    begun = resolve
  })
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: { type: 'object' },
    execute: () => {
      paid += 1
      begun()
      return new Promise(() => {})
    },
  })
  const start = (store: SessionStore, steps: readonly ScriptStep[]) =>
    createRuntime({
      store,
      providers: { play: new ScriptedProvider(steps, { id: 'play' }) },
      agent: { name: 'root', model: 'play/m', tools: [pay] },
    })
  const first = crashable(opened)
  const killed = await start(first.store, [{ toolCalls: [{ id: 'c1', ...PAY }] }])
  const { runId } = await killed.start({ sessionId: 's', text: 'Pay.' })
  await isPaid
  await first.crash()
  const { store, failNext, failed } = failing(opened, { retryable: false })
  const runtime = await start(store, [
    { text: 'Failed.' },
    { toolCalls: [{ id: 'c2', ...PAY }] },
    { text: 'Done.' },
  ])
  onTestFinished(() => runtime.close())
  failNext(1)
  await runtime.ready()
  for await (const _event of runtime.follow(runId));
  expect(failed()).toBe(1)
  await runtime.runAndCollect({ sessionId: 's', text: 'Pay.' })
  expect(paid).toBe(1)
  const [row] = await store.runs.readCalls(runId)
  expect(row?.status).toBe('unknown')
})
