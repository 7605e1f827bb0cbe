import { describe, expect, test, vi } from 'vitest'
import type { Message, SessionKey } from '../../../src/session/message.js'
import type { RunOpening } from '../../../src/session/run-store.js'
import type { Lease, SessionStore } from '../../../src/session/session-store.js'
import { openStore } from '../../../src/store/open-store.js'
import { runScript } from '../../support/child.js'
import { DRIVERS, failureOf, newKey, SHARED_DRIVERS, useStore } from './drivers.js'

const START = { seq: 1, type: 'run-start' }
const QUEUED = { seq: 1, type: 'run-queued', userId: 'ann', place: 0 }
const FINISH = { seq: 9, type: 'run-finish', finishReason: 'stop' }

function question(id: string): Message {
  return { role: 'user', author: 'user', content: `Question ${id}?`, timestamp: 1, id }
}

function opening(key: SessionKey, name = 'first'): RunOpening {
  return {
    key,
    runId: `${name}-${key.appName}`,
    title: 'Why?',
    message: question(name),
    events: [START],
    input: { model: `model of ${name}` },
  }
}

function orQueue(key: SessionKey, name = 'first'): RunOpening {
  return { ...opening(key, name), orQueue: { events: [QUEUED] } }
}

async function opened(store: SessionStore, toOpen: RunOpening): Promise<{ lease: Lease; seq: number }> {
  const outcome = await store.openRun(toOpen)
  if (!('lease' in outcome)) throw new TypeError(`not opened: ${JSON.stringify(outcome)}`)
  return outcome
}

/** Stores the end of a run and releases its lease in one step. */
async function finish(store: SessionStore, { key, runId }: RunOpening, lease: Lease): Promise<void> {
  await store.runs.saveStep({ key, runId, fence: lease.fence, events: [FINISH], release: true })
  lease.released()
}

async function begin(
  store: SessionStore,
  { key, runId, message, input }: RunOpening,
  fence: number,
  { alone = false } = {},
) {
  const started = { ...START, seq: 2 }
  return store.beginRun({ key, runId, fence, message, events: [started], ...(input && { input }), alone })
}

async function queuedIds(store: SessionStore, key: SessionKey): Promise<string[]> {
  return (await store.runs.listQueued(key)).map(({ runId }) => runId)
}

describe.each(DRIVERS)('queued runs in $name', driver => {
  const place = useStore(driver)

  test('a run is running from its opening to its run-finish', async () => {
    const key = newKey()
    const run = opening(key)
    const { lease } = await opened(place.store, run)
    expect(await place.store.runs.findRun(run.runId)).toMatchObject({ state: 'running', finished: false })
    await finish(place.store, run, lease)
    const found = await place.store.runs.findRun(run.runId)
    expect(found).toMatchObject({ state: 'finished', finished: true, finishReason: 'stop' })
    expect(found).not.toHaveProperty('place')
  })

  test('run-finish that is appended without a lease also ends the state', async () => {
    const key = newKey()
    await place.store.createSession(key)
    const { runId } = opening(key)
    await place.store.runs.appendEvents(key, runId, [START])
    expect(await place.store.runs.findRun(runId)).toMatchObject({ state: 'running', finished: false })
    await place.store.runs.appendEvents(key, runId, [FINISH])
    expect(await place.store.runs.findRun(runId)).toMatchObject({ state: 'finished', finished: true })
  })

  test('orQueue opens the run at once in a free session, and queues it in a busy one', async () => {
    const key = newKey()
    const { lease, seq } = await opened(place.store, orQueue(key))
    expect(seq).toBe(1)
    expect(await place.store.runs.readEvents(orQueue(key).runId)).toEqual([START])
    expect(await place.store.openRun(orQueue(key, 'second'))).toEqual({ queued: 1 })
    expect(await place.store.openRun(orQueue(key, 'third'), { waitMs: 60_000 })).toEqual({ queued: 2 })
    expect(await place.store.runs.readEvents(orQueue(key, 'third').runId)).toEqual([{ ...QUEUED, place: 2 }])
    const messages = await place.store.readMessages(key)
    expect(messages.map(({ id }) => id)).toEqual(['first'])
    const found = await place.store.runs.findRun(orQueue(key, 'third').runId)
    expect(found).toMatchObject({ state: 'queued', place: 2, finished: false, key })
    expect(found).not.toHaveProperty('afterSeq')
    const listed = await place.store.runs.listRuns(key)
    expect(listed.find(({ runId }) => runId.startsWith('second'))).toMatchObject({
      state: 'queued',
      place: 1,
    })
    await lease.release()
  })

  test('the queue keeps message and input of each run, in the order of acceptance', async () => {
    const key = newKey()
    const odd = { ...question('odd'), content: 'nul \0 half \ud83d' }
    const { lease } = await opened(place.store, opening(key))
    await place.store.openRun({ ...orQueue(key, 'second'), message: odd, input: { text: 'a\0b\ud800' } })
    const { input, ...bare } = orQueue(key, 'third')
    expect(input).toBeDefined()
    await place.store.openRun(bare)
    const queued = await place.store.runs.listQueued(key)
    expect(queued).toMatchObject([
      { runId: `second-${key.appName}`, key, message: odd, input: { text: 'a\0b\ud800' } },
      { runId: `third-${key.appName}`, key, message: question('third'), input: {} },
    ])
    for (const { queuedAt } of queued) expect(queuedAt).toBeGreaterThan(0)
    expect(await place.store.runs.listQueued(key, { limit: 1 })).toHaveLength(1)
    await lease.release()
  })

  test('a queued run creates the session if it is new, and is found by its id afterwards', async () => {
    const key = newKey()
    const run = opening(key)
    expect(await place.store.queueRun({ ...run, events: [QUEUED] })).toEqual({ queued: 1 })
    expect(await place.store.queueRun({ ...run, events: [QUEUED] })).toEqual({ known: true })
    expect(await place.store.openRun(orQueue(key))).toEqual({ known: true })
    expect(await place.store.queueRun(orQueue(key, 'second'))).toEqual({ queued: 2 })
    expect((await place.store.loadSession(key))?.title).toBe('Why?')
    expect(await place.store.runs.readEvents(run.runId)).toEqual([{ ...QUEUED, place: 1 }])
    expect(await place.store.readMessages(key)).toEqual([])
    // The session is free.
    await (await place.store.acquireLease(key)).release()
  })

  test('the position in the queue is added to the event, whatever its texts say', async () => {
    const key = newKey()
    const event = { ...QUEUED, userId: '"place":-1, "place":0', note: { place: -1 } }
    const run = { ...opening(key), events: [event] }
    expect(await place.store.queueRun(run)).toEqual({ queued: 1 })
    const [stored] = await place.store.runs.readEvents(run.runId)
    expect(stored).toMatchObject({ place: 1, userId: event.userId })
  })

  test('many runs are found at once, without those that are unknown', async () => {
    const { runs } = place.store
    const [one, other] = [newKey(), newKey()]
    const { lease } = await opened(place.store, opening(one))
    await place.store.queueRun(orQueue(one, 'second'))
    await place.store.queueRun(orQueue(other))
    const ids = [opening(one).runId, orQueue(one, 'second').runId, orQueue(other).runId]
    const found = await runs.findRuns(['unknown', ...ids])
    expect(new Map(found.map(run => [run.runId, run]))).toEqual(
      new Map(await Promise.all(ids.map(async id => [id, await runs.findRun(id)] as const))),
    )
    expect(found).toHaveLength(3)
    expect(await runs.findRuns([])).toEqual([])
    expect((await failureOf(runs.findRuns([''])).catch(error => error)).code).toBe('invalid-argument')
    await lease.release()
  })

  test('a run that is to begin alone does not while another one has begun and not ended', async () => {
    const key = newKey()
    const { lease } = await opened(place.store, opening(key))
    const run = orQueue(key, 'second')
    await place.store.queueRun(run)
    expect(await begin(place.store, run, lease.fence, { alone: true })).toBeUndefined()
    expect(await place.store.runs.findRun(run.runId)).toMatchObject({ state: 'queued', lastSeq: 1 })
    await finish(place.store, opening(key), lease)
    const next = await place.store.acquireLease(key)
    expect(await begin(place.store, run, next.fence, { alone: true })).toEqual({ seq: 2 })
    await next.release()
  })

  test.each([
    ['with the input that was listed', true],
    ['with the input that is stored', false],
  ])(
    'a queued run that begins %s stores its message and events, and is no longer queued',
    async (_, isGiven) => {
      const key = newKey()
      await place.store.createSession(key)
      await place.store.appendMessage(key, question('before'))
      const run = orQueue(key, 'second')
      await place.store.queueRun(run)
      const lease = await place.store.acquireLease(key)
      const { input, ...bare } = run
      expect(await begin(place.store, isGiven ? run : bare, lease.fence)).toEqual({ seq: 2 })
      expect(await begin(place.store, run, lease.fence)).toBeUndefined()
      expect(await place.store.runs.readResumable(run.runId)).toMatchObject({ input, message: run.message })
      const found = await place.store.runs.findRun(run.runId)
      expect(found).toMatchObject({ state: 'running', afterSeq: 1, lastSeq: 2 })
      expect(found).not.toHaveProperty('place')
      expect(await queuedIds(place.store, key)).toEqual([])
      expect((await place.store.readMessages(key)).map(({ id }) => id)).toEqual(['before', 'second'])
      expect(await place.store.runs.readEvents(run.runId)).toEqual([
        { ...QUEUED, place: 1 },
        { ...START, seq: 2 },
      ])
      await finish(place.store, run, lease)
    },
  )

  test('a run begins only under the lease of its session', async () => {
    const key = newKey()
    const run = orQueue(key)
    await place.store.queueRun(run)
    const old = await place.store.acquireLease(key)
    await old.release()
    const failure = await failureOf(begin(place.store, run, old.fence))
    expect(failure.code).toBe('lease-lost')
    expect(await place.store.runs.findRun(run.runId)).toMatchObject({ state: 'queued', lastSeq: 1 })
    expect(await place.store.readMessages(key)).toEqual([])
    const lease = await place.store.acquireLease(key)
    expect(await begin(place.store, { ...run, runId: 'unknown' }, lease.fence)).toBeUndefined()
    expect(await begin(place.store, run, lease.fence)).toEqual({ seq: 1 })
    await lease.release()
  })

  test('a free session with a run that was begun and not ended reports it, and stores nothing', async () => {
    const key = newKey()
    const { lease } = await opened(place.store, opening(key))
    await lease.release()
    const unfinished = { unfinished: [opening(key).runId] }
    expect(await place.store.openRun(opening(key, 'second'))).toEqual(unfinished)
    expect(await place.store.openRun(orQueue(key, 'second'), { waitMs: 60_000 })).toEqual(unfinished)
    expect(await place.store.runs.findRun(opening(key, 'second').runId)).toBeUndefined()
    expect((await place.store.readMessages(key)).length).toBe(1)
    await place.store.runs.appendEvents(key, opening(key).runId, [FINISH])
    const next = await opened(place.store, opening(key, 'second'))
    expect(next.seq).toBe(2)
    await next.lease.release()
  })

  test('a run that waited for the lease of an unfinished run reports it', async () => {
    const key = newKey()
    const { lease } = await opened(place.store, opening(key))
    const waiting = place.store.openRun(opening(key, 'second'), { waitMs: 60_000 })
    await lease.release()
    expect(await waiting).toEqual({ unfinished: [opening(key).runId] })
    await (await place.store.acquireLease(key)).release()
  })

  test('queued runs come before a run that does not queue', async () => {
    const key = newKey()
    const first = orQueue(key)
    await place.store.queueRun(first)
    expect((await failureOf(place.store.openRun(opening(key, 'second')))).code).toBe('session-busy')
    expect((await failureOf(place.store.openRun(opening(key, 'second'), { waitMs: 30 }))).code).toBe(
      'session-busy',
    )
    expect(await place.store.runs.findRun(opening(key, 'second').runId)).toBeUndefined()
    const waiting = place.store.openRun(opening(key, 'second'), { waitMs: 60_000 })
    const lease = await place.store.acquireLease(key, { waitMs: 60_000 })
    await begin(place.store, first, lease.fence)
    await finish(place.store, first, lease)
    const outcome = await waiting
    expect(outcome).toMatchObject({ seq: 2 })
    if ('lease' in outcome) await outcome.lease.release()
  })

  test('waiting for queued runs ends with the abort signal', async () => {
    const key = newKey()
    await place.store.queueRun(orQueue(key))
    const stop = new AbortController()
    const waiting = place.store.openRun(opening(key, 'second'), { waitMs: 60_000, signal: stop.signal })
    stop.abort()
    expect((await failureOf(waiting)).code).toBe('aborted')
    await (await place.store.acquireLease(key)).release()
  })

  test('a run that is still queued is ended with its events; one that has begun is not', async () => {
    const key = newKey()
    const [first, second] = [orQueue(key), orQueue(key, 'second')]
    for (const run of [first, second]) await place.store.queueRun(run)
    const end = { ...FINISH, seq: 2 }
    expect(await place.store.runs.endQueued(first.runId, [end])).toBe(true)
    expect(await place.store.runs.endQueued(first.runId, [end])).toBe(false)
    expect(await place.store.runs.endQueued('unknown', [end])).toBe(false)
    expect(await place.store.runs.findRun(first.runId)).toMatchObject({ state: 'finished', lastSeq: 2 })
    expect(await place.store.runs.findRun(second.runId)).toMatchObject({ state: 'queued', place: 1 })
    const lease = await place.store.acquireLease(key)
    expect(await begin(place.store, first, lease.fence)).toBeUndefined()
    await begin(place.store, second, lease.fence)
    expect(await place.store.runs.endQueued(second.runId, [end])).toBe(false)
    await lease.release()
  })

  test('events can be appended to a queued run', async () => {
    const key = newKey()
    const run = orQueue(key)
    await place.store.queueRun(run)
    await place.store.runs.appendEvents(key, run.runId, [{ seq: 2, type: 'status' }])
    expect(await place.store.runs.findRun(run.runId)).toMatchObject({ state: 'queued', lastSeq: 2 })
    await place.store.runs.appendEvents(key, run.runId, [{ ...FINISH, seq: 3 }])
    expect(await place.store.runs.findRun(run.runId)).toMatchObject({ state: 'finished' })
    expect(await queuedIds(place.store, key)).toEqual([])
  })

  test('abandoned runs are those that nobody holds a lease for, oldest first', async () => {
    const { appName } = newKey()
    const keyOf = (sessionId: string) => ({ appName, userId: 'ann', sessionId })
    const [one, two, held] = ['one', 'two', 'held'].map(keyOf) as [SessionKey, SessionKey, SessionKey]
    const names = ['a', 'b', 'c', 'd'].map(name => `${name}-${appName}`)
    const run = (key: SessionKey, index: number) => ({ ...orQueue(key), runId: names[index] ?? '' })
    const first = await opened(place.store, run(two, 0))
    await place.store.queueRun(run(two, 1))
    await place.store.queueRun(run(one, 2))
    const other = await opened(place.store, run(held, 3))
    await first.lease.release()
    const listed = async (query: { key?: SessionKey; limit?: number } = {}) =>
      (await place.store.runs.listUnfinished({ abandoned: true, appName, ...query })).map(
        ({ runId }) => runId,
      )
    expect(await listed()).toEqual(names.slice(0, 3))
    expect(await listed({ limit: 2 })).toEqual(names.slice(0, 2))
    expect(await listed({ key: one })).toEqual([names[2]])
    expect(await place.store.runs.listUnfinished({ abandoned: true, appName, key: two })).toMatchObject([
      { state: 'running', key: two },
      { state: 'queued', place: 1 },
    ])
    await finish(place.store, run(held, 3), other.lease)
    expect(await listed({ key: held })).toEqual([])
    const lease = await place.store.acquireLease(one)
    expect(await listed({ key: one })).toEqual([])
    await lease.release()
  })

  test('a queued run is deleted with its session, and its id is not used again', async () => {
    const key = newKey()
    const run = orQueue(key)
    await place.store.queueRun(run)
    expect(await place.store.deleteSession(key)).toBe(true)
    expect(await place.store.runs.findRun(run.runId)).toBeUndefined()
    expect(await place.store.runs.listUnfinished({ abandoned: true, appName: key.appName })).toEqual([])
    expect(await place.store.queueRun(run)).toEqual({ known: true })
  })

  test('erasing a user counts and deletes queued runs', async () => {
    const key = newKey()
    for (const name of ['first', 'second']) await place.store.queueRun(orQueue(key, name))
    expect(await place.store.erase(key)).toMatchObject({ sessions: 1, runs: 2, events: 2 })
    expect(await queuedIds(place.store, key)).toEqual([])
  })

  test('pruning keeps queued and running runs, and queued sessions do not expire', async () => {
    const key = newKey()
    const run = orQueue(key)
    await place.store.queueRun(run)
    const before = Date.now() + 60_000
    await place.store.runs.prune({ appName: key.appName, before })
    expect(await place.store.runs.findRun(run.runId)).toMatchObject({
      state: 'queued',
      finished: false,
      lastSeq: 1,
    })
    expect(await place.store.runs.readEvents(run.runId)).toEqual([{ ...QUEUED, place: 1 }])
    const since = Date.now()
    await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(since + 1))
    const { appName } = key
    expect(await place.store.expire({ appName, sessionsMs: 1 })).toMatchObject({ sessions: 0 })
    expect(await queuedIds(place.store, key)).toEqual([run.runId])
    await place.store.runs.endQueued(run.runId, [FINISH])
    await vi.waitFor(async () =>
      expect(await place.store.expire({ appName, sessionsMs: 1 })).toMatchObject({ sessions: 1 }),
    )
  })

  test('a copy of a session has no queue', async () => {
    const key = newKey()
    await place.store.queueRun(orQueue(key))
    await place.store.forkSession(key, 'copy')
    expect(await queuedIds(place.store, { ...key, sessionId: 'copy' })).toEqual([])
  })

  test('invalid openings of runs and queries are refused', async () => {
    const key = newKey()
    const { store } = place
    const input = [] as unknown as Record<string, unknown>
    const refused = [
      store.queueRun({ ...opening(key), input }),
      store.queueRun({ ...opening(key), runId: '' }),
      store.openRun({ ...opening(key), orQueue: { events: [{ seq: -1 }] } }),
      store.beginRun({ key, runId: 'r', fence: 0, message: question('q'), events: [] }),
      store.runs.listUnfinished({ abandoned: true, appName: '' }),
      store.runs.listQueued(key, { limit: 0 }),
      store.runs.endQueued('', []),
    ]
    for (const promise of refused) expect((await failureOf(promise)).code).toBe('invalid-argument')
    expect(await store.loadSession(key)).toBeUndefined()
  })

  test('of several openings with orQueue at the same time, one begins and the others queue in order', async () => {
    const key = newKey()
    const names = Array.from({ length: 8 }, (_, index) => `run${index}`)
    const outcomes = await Promise.all(names.map(name => place.store.openRun(orQueue(key, name))))
    const begun = outcomes.filter(outcome => 'lease' in outcome)
    expect(begun).toHaveLength(1)
    const places = outcomes.flatMap(outcome => ('queued' in outcome ? [outcome.queued] : []))
    expect(places.toSorted((one, other) => one - other)).toEqual([1, 2, 3, 4, 5, 6, 7])
    const queued = await queuedIds(place.store, key)
    for (const [index, outcome] of outcomes.entries())
      if ('queued' in outcome) expect(queued[outcome.queued - 1]).toBe(orQueue(key, names[index]).runId)
    for (const outcome of begun) if ('lease' in outcome) await outcome.lease.release()
  })
})

describe.each(SHARED_DRIVERS)('queued runs of two stores on one $name database', driver => {
  const place = useStore(driver)

  test('one run id that is opened or queued twice at the same time is one run', async () => {
    const other = await openStore(place.url)
    for (let round = 0; round < 20; round++) {
      const key = newKey()
      const apart = round % 2 === 0 ? key : { ...key, sessionId: 'two' }
      const run = { ...orQueue(key), runId: `run-${key.appName}` }
      const outcomes = await Promise.all([
        round % 4 < 2 ? place.store.openRun(run) : place.store.queueRun(run),
        other.openRun({ ...run, key: apart }),
      ])
      expect(outcomes.filter(outcome => 'known' in outcome)).toHaveLength(1)
      expect(await other.runs.readEvents(run.runId)).toHaveLength(1)
      for (const outcome of outcomes) if ('lease' in outcome) await outcome.lease.release()
    }
    await other.close()
  })

  test('of two stores that open a run at the same time, one begins and the other queues', async () => {
    const other = await openStore(place.url)
    for (let round = 0; round < 20; round++) {
      const key = newKey()
      const outcomes = await Promise.all([
        place.store.openRun(orQueue(key)),
        other.openRun(orQueue(key, 'second')),
      ])
      expect(outcomes.filter(outcome => 'lease' in outcome)).toHaveLength(1)
      expect(outcomes.filter(outcome => 'queued' in outcome)).toEqual([{ queued: 1 }])
      expect((await place.store.readMessages(key)).length).toBe(1)
      for (const outcome of outcomes) if ('lease' in outcome) await outcome.lease.release()
    }
    await other.close()
  })

  test('of two stores that begin the same run, one does', async () => {
    const other = await openStore(place.url)
    for (let round = 0; round < 10; round++) {
      const key = newKey()
      const run = orQueue(key)
      await place.store.queueRun(run)
      const lease = await place.store.acquireLease(key)
      const begun = await Promise.all([begin(place.store, run, lease.fence), begin(other, run, lease.fence)])
      expect(begun.filter(outcome => outcome !== undefined)).toEqual([{ seq: 1 }])
      expect(await place.store.runs.readEvents(run.runId)).toHaveLength(2)
      await lease.release()
    }
    await other.close()
  })

  test('a run is ended while queued, or it begins, and never both', async () => {
    const other = await openStore(place.url)
    for (let round = 0; round < 10; round++) {
      const key = newKey()
      const run = orQueue(key)
      await place.store.queueRun(run)
      const lease = await place.store.acquireLease(key)
      const [begun, isEnded] = await Promise.all([
        begin(place.store, run, lease.fence),
        other.runs.endQueued(run.runId, [{ ...FINISH, seq: 2 }]),
      ])
      expect(isEnded).toBe(begun === undefined)
      expect((await other.runs.findRun(run.runId))?.state).toBe(isEnded ? 'finished' : 'running')
      await lease.release()
    }
    await other.close()
  })

  test('runs that a killed process had accepted are abandoned, and can be begun', async () => {
    const key = newKey()
    const { appName, sessionId } = key
    const child = runScript('store-child.ts', ['accept', place.url, appName, sessionId, '2000'])
    await child.untilLines(1)
    expect(child.lines, child.errors()).toEqual(['accepted'])
    expect(await place.store.runs.listUnfinished({ abandoned: true, appName })).toEqual([])
    child.process.kill('SIGKILL')
    await child.ended
    await vi.waitFor(
      async () =>
        expect(await place.store.runs.listUnfinished({ abandoned: true, appName })).toMatchObject([
          { runId: `begun-${appName}`, state: 'running' },
          { runId: `queued-${appName}`, state: 'queued', place: 1 },
        ]),
      { timeout: 60_000 },
    )
    const later = await place.store.openRun(orQueue(key, 'later'))
    expect(later).toEqual({ unfinished: [`begun-${appName}`] })
    const lease = await place.store.acquireLease(key)
    await place.store.runs.appendEvents(key, `begun-${appName}`, [FINISH])
    const [queued] = await place.store.runs.listQueued(key)
    expect(queued).toMatchObject({ message: { content: 'Still there?' }, input: { model: 'm' } })
    if (queued) expect(await begin(place.store, { ...queued, events: [] }, lease.fence)).toEqual({ seq: 2 })
    await lease.release()
  })
})
