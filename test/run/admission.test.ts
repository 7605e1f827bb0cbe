/** Accepting runs: what was accepted is on disk, in order, once, and executed by whichever process. */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { AgentError } from '../../src/errors.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { gapsIn, inOnePiece } from '../support/event-numbers.js'
import { eventually } from '../support/eventually.js'
import { faultyStore } from '../support/faulty-store.js'
import { dangerTool, obedientProvider } from '../support/obedient-provider.js'
import { createStoreDatabase, type TestDatabase } from '../support/postgres.js'
import { createTestRuntime } from '../support/start-server.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { longUnless } from '../support/tiers.js'

let database: TestDatabase
beforeAll(async () => {
  database = await createStoreDatabase()
})
afterAll(() => database.drop())

/** Where two runtimes meet: processes would open the same URL. */
const PLACES: Record<string, () => Promise<string>> = {
  SQLite: async () => `sqlite:${join(await temporaryFolder(), 'runs.db')}`,
  PostgreSQL: async () => database.url,
}

async function open(url: string): Promise<Runtime> {
  const runtime = await createTestRuntime(url)
  onTestFinished(() => runtime.close())
  return runtime
}

async function collect(events: AsyncIterable<RunEvent>): Promise<RunEvent[]> {
  const all: RunEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

async function userTexts(store: SessionStore, sessionId: string): Promise<(string | undefined)[]> {
  const messages = await store.readMessages({ appName: 'lango', userId: 'user', sessionId })
  return messages
    .filter(({ role, extra }) => role === 'user' && !extra?.synthetic)
    .map(({ content }) => content)
}

async function untilStarted(runtime: Runtime, runId: string): Promise<void> {
  for await (const { type } of runtime.follow(runId)) if (type === 'text-delta') return
}

describe.each(Object.keys(PLACES))('on %s', place => {
  async function twoRuntimes(): Promise<[Runtime, Runtime, string]> {
    const url = (await PLACES[place]?.()) ?? ''
    return [await open(url), await open(url), randomUUID()]
  }

  test('a run that was started is followed to its end in its own process and in another', async () => {
    const [near, far, sessionId] = await twoRuntimes()
    const { runId } = await near.start({ sessionId, text: 'slow 20 2' })
    const [here, there] = await Promise.all([collect(near.follow(runId)), collect(far.follow(runId))])
    expect(gapsIn(here)).toEqual([])
    expect(inOnePiece(there)).toEqual(inOnePiece(here))
    expect(here.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
    const late = await collect(far.follow(runId, { afterSeq: here.at(-2)?.seq ?? 0 }))
    expect(late).toEqual(here.slice(-1))
    await expect(collect(near.follow(randomUUID()))).rejects.toMatchObject({ code: 'run-not-found' })
  })

  test('queued runs are stored with their place and executed in order', async () => {
    const [near, far, sessionId] = await twoRuntimes()
    const first = await near.start({ sessionId, text: 'hang' })
    await untilStarted(near, first.runId)
    const second = await far.start({ sessionId, text: 'say 2' })
    const third = await near.start({ sessionId, text: 'say 3', stateDelta: { mood: 'good' } })
    expect(await near.findRun(second.runId)).toMatchObject({ state: 'queued', place: 1, finished: false })
    expect(await far.findRun(third.runId)).toMatchObject({ state: 'queued', place: 2 })
    expect(await userTexts(near.store, sessionId)).toEqual(['hang'])
    await far.stop(first.runId)
    const events = await collect(far.follow(third.runId))
    expect(events.map(({ type }) => type).slice(0, 2)).toEqual(['run-queued', 'run-start'])
    expect(events[0]).toMatchObject({ place: 2 })
    expect(await userTexts(near.store, sessionId)).toEqual(['hang', 'say 2', 'say 3'])
    const { state } = (await near.store.loadSession({ appName: 'lango', userId: 'user', sessionId })) ?? {}
    expect(state).toMatchObject({ mood: 'good' })
  })

  test('a queued run whose process is gone is executed by another one, before later ones', async () => {
    const [near, far, sessionId] = await twoRuntimes()
    const first = await near.start({ sessionId, text: 'hang' })
    await untilStarted(near, first.runId)
    // A process that accepts and ends at once: its runtime executes nothing.
    const gone = await createTestRuntime((await PLACES[place]?.()) ?? '')
    const orphan = await accept(near.store, sessionId, 'say 2')
    await gone.close()
    const last = await far.start({ sessionId, text: 'say 3' })
    await near.stop(first.runId)
    expect((await collect(far.follow(orphan))).at(-1)).toMatchObject({ finishReason: 'stop' })
    await collect(far.follow(last.runId))
    expect(await userTexts(near.store, sessionId)).toEqual(['hang', 'say 2', 'say 3'])
  })

  test('a runtime that is ready executes runs that were left queued', async () => {
    const url = (await PLACES[place]?.()) ?? ''
    const sessionId = randomUUID()
    const store = await openStore(url)
    onTestFinished(() => store.close())
    const orphan = await accept(store, sessionId, 'say 2')
    const runtime = await open(url)
    await runtime.ready()
    expect((await collect(runtime.follow(orphan))).at(-1)).toMatchObject({ finishReason: 'stop' })
    expect(await userTexts(store, sessionId)).toEqual(['say 2'])
  })

  test('the same run id at once from two processes is one run', async () => {
    const [near, far, sessionId] = await twoRuntimes()
    const runId = randomUUID()
    const started = await Promise.all(
      [near, far, near, far].map(runtime => runtime.start({ sessionId, runId, text: 'say 3' })),
    )
    expect(new Set(started.map(({ runId: id }) => id))).toEqual(new Set([runId]))
    await collect(near.follow(runId))
    const again = await collect(far.run({ sessionId, runId, text: 'say 3' }))
    expect(again.at(-1)).toMatchObject({ type: 'run-finish', text: expect.stringContaining('word1') })
    expect(await userTexts(near.store, sessionId)).toEqual(['say 3'])
    const other = near.start({ sessionId: randomUUID(), runId, text: 'say 3' })
    await expect(other).rejects.toMatchObject({ code: 'invalid-argument' })
  })

  test('a queued run is stopped by any process and never begins', async () => {
    const [near, far, sessionId] = await twoRuntimes()
    const first = await near.start({ sessionId, text: 'hang' })
    await untilStarted(near, first.runId)
    const second = await near.start({ sessionId, text: 'say 2' })
    await far.stop(second.runId)
    const events = await collect(near.follow(second.runId))
    expect(events.map(({ type }) => type)).toEqual(['run-queued', 'run-finish'])
    expect(events.at(-1)).toMatchObject({ finishReason: 'aborted' })
    await near.stop(first.runId)
    await eventually(() => near.active()).toEqual([])
    expect(await userTexts(near.store, sessionId)).toEqual(['hang'])
  })

  test('the same run id without a session is the run that has it', async () => {
    const [near, far] = await twoRuntimes()
    const runId = randomUUID()
    const first = await near.start({ runId, text: 'say 2' })
    expect(await far.start({ runId, text: 'say 2' })).toEqual(first)
    const foreign = far.start({ runId, text: 'say 2', userId: 'bob' })
    await expect(foreign).rejects.toMatchObject({ code: 'invalid-argument' })
    await collect(far.follow(runId))
    expect(await userTexts(near.store, first.sessionId)).toEqual(['say 2'])
  })

  test('a caller that follows a known run leaves it by its signal, and when its runtime is closed', async () => {
    const [near, far, sessionId] = await twoRuntimes()
    const { runId } = await near.start({ sessionId, text: 'hang' })
    await untilStarted(near, runId)
    const abort = new AbortController()
    const followed = collect(far.run({ sessionId, runId, text: 'hang', signal: abort.signal }))
    const again = collect(far.run({ sessionId, runId, text: 'hang' }))
    abort.abort()
    expect((await followed)[0]).toMatchObject({ type: 'run-start' })
    await far.close()
    await again
    expect(await near.findRun(runId)).toMatchObject({ state: 'running' })
    await near.stop(runId)
  })

  test('a busy session takes no slot of other sessions, and refuses a run with whenBusy: reject', async () => {
    const url = (await PLACES[place]?.()) ?? ''
    const near = await createRuntime({
      store: url,
      agent: { name: 'root', model: 'play/model' },
      providers: { play: obedientProvider },
      runs: { maxRunning: 2 },
    })
    onTestFinished(() => near.close())
    const [busy, free] = [randomUUID(), randomUUID()]
    const first = await near.start({ sessionId: busy, text: 'hang' })
    await untilStarted(near, first.runId)
    const second = await near.start({ sessionId: busy, text: 'say 2' })
    expect((await near.runAndCollect({ sessionId: free, text: 'say 1' })).finishReason).toBe('stop')
    await near.stop(second.runId)
    const refused = near.start({ sessionId: busy, text: 'say 3', whenBusy: 'reject' })
    await expect(refused).rejects.toMatchObject({ code: 'session-busy' })
    await near.stop(first.runId)
  })

  test('many sessions that wait for a slot emit no warning of leaking listeners', async () => {
    const near = await createRuntime({
      store: (await PLACES[place]?.()) ?? '',
      agent: { name: 'root', model: 'play/model' },
      providers: { play: obedientProvider },
      runs: { maxRunning: 1 },
    })
    onTestFinished(() => near.close())
    const warnings: string[] = []
    const warned = (warning: Error) => warnings.push(`${warning.name}: ${warning.message}`)
    process.on('warning', warned)
    onTestFinished(() => void process.off('warning', warned))
    const first = await near.start({ sessionId: randomUUID(), text: 'hang' })
    await untilStarted(near, first.runId)
    const sessions = Array.from({ length: 12 }, () => randomUUID())
    const runs = await Promise.all(sessions.map(sessionId => near.start({ sessionId, text: 'say 1' })))
    await near.stop(first.runId)
    for (const { runId } of runs)
      expect((await collect(near.follow(runId))).at(-1)).toMatchObject({ finishReason: 'stop' })
    expect(warnings).toEqual([])
  })

  const onOneStore = longUnless(place === 'SQLite')

  test('a worker tries again after the store has failed', onOneStore, async () => {
    const url = (await PLACES[place]?.()) ?? ''
    const store = await openStore(url)
    onTestFinished(() => store.close())
    let failures = 0
    let isRefused = false
    const failing = faultyStore(store, {
      acquireLease: (acquireLease, ...args) => {
        if (isRefused) return acquireLease(...args)
        isRefused = true
        return Promise.reject(new AgentError('store-unavailable', 'Not now.'))
      },
      runs: {
        listQueued: (listQueued, ...args) => {
          failures += 1
          if (failures > 1) return listQueued(...args)
          return Promise.reject(new AgentError('store-unavailable', 'Not now.'))
        },
      },
    })
    const near = await createRuntime({
      store: failing,
      agent: { name: 'root', model: 'play/model' },
      providers: { play: obedientProvider },
      runs: { maxRunning: 2 },
    })
    onTestFinished(() => near.close())
    const sessionId = randomUUID()
    const first = await near.start({ sessionId, text: 'hang' })
    await untilStarted(near, first.runId)
    const second = near.runAndCollect({ sessionId, text: 'say 2' })
    await eventually(() => near.active().length).toBe(2)
    await near.stop(first.runId)
    expect((await second).finishReason).toBe('stop')
    expect(failures).toBeGreaterThan(1)
    expect(isRefused).toBe(true)
    // A worker that fails gives its slot back: both are free again.
    const third = await near.start({ sessionId: randomUUID(), text: 'hang' })
    expect((await near.runAndCollect({ sessionId: randomUUID(), text: 'say 1' })).finishReason).toBe('stop')
    await near.stop(third.runId)
  })

  test('a run that another process executes asks the caller who queued it for approval', async () => {
    const url = (await PLACES[place]?.()) ?? ''
    const sessionId = randomUUID()
    const far = await open(url)
    const options = { providers: { play: obedientProvider }, runs: { maxRunning: 1 } }
    const agent = { name: 'root', model: 'play/model', tools: [dangerTool] }
    const near = await createRuntime({ store: url, agent, ...options })
    onTestFinished(() => near.close())
    // Its only slot is taken, so another process takes over what it queues.
    const hanging = await near.start({ sessionId: randomUUID(), text: 'hang' })
    await untilStarted(near, hanging.runId)
    const asked: string[] = []
    const running = near.runAndCollect({
      sessionId,
      text: 'danger',
      onApproval: ({ name }) => {
        asked.push(name)
        return true
      },
    })
    await far.ready()
    await eventually(async () => {
      const [run] = await far.listRuns({ appName: 'lango', userId: 'user', sessionId })
      return run?.state ?? 'queued'
    }).not.toBe('queued')
    expect((await running).finishReason).toBe('stop')
    expect(asked).toEqual(['danger'])
    await near.stop(hanging.runId)
  })
})

/** Accepts a run as a process does that ends before it begins it. */
async function accept(store: SessionStore, sessionId: string, text: string): Promise<string> {
  const runId = randomUUID()
  const key = { appName: 'lango', userId: 'user', sessionId }
  const message = { role: 'user', author: 'user', content: text, id: randomUUID(), timestamp: Date.now() }
  const event = { type: 'run-queued', userId: 'user', place: 1, sessionId, runId, seq: 1 }
  await store.queueRun({
    key,
    runId,
    message,
    events: [],
    input: { invocationId: `e-${randomUUID()}` },
    orQueue: { events: [event] },
  })
  return runId
}
