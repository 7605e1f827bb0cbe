/** Runs that were accepted for later: outside the queue until they are due, and then released once. */
import { describe, expect, test, vi } from 'vitest'
import type { Message, SessionKey } from '../../../src/session/message.js'
import type { RunOpening } from '../../../src/session/run-store.js'
import type { SessionStore } from '../../../src/session/session-store.js'
import { openStore } from '../../../src/store/open-store.js'
import { DRIVERS, failureOf, newKey, SHARED_DRIVERS, useStore } from './drivers.js'

const HOUR_MS = 3_600_000
const FINISH = { seq: 2, type: 'run-finish', finishReason: 'aborted' }

function question(id: string): Message {
  return { role: 'user', author: 'user', content: `Question ${id}?`, timestamp: 1, id }
}

function opening(key: SessionKey, name: string, dueAt?: number): RunOpening {
  return {
    key,
    runId: `${name}-${key.appName}`,
    title: 'Later',
    message: question(name),
    events: [{ seq: 1, type: 'run-start' }],
    orQueue: { events: [{ seq: 1, type: 'run-scheduled', userId: 'ann', dueAt: dueAt ?? 0 }] },
    input: { model: name },
    ...(dueAt === undefined ? {} : { dueAt }),
  }
}

const START = Date.now() - HOUR_MS
const past = () => START
const future = () => Date.now() + HOUR_MS

async function release(store: SessionStore, { appName }: SessionKey, options: object = {}) {
  const released = await store.runs.releaseDue({ appName, ...options })
  return { ...released, ids: released.released.map(({ runId }) => runId.split('-')[0]) }
}

async function queue(store: SessionStore, key: SessionKey): Promise<(string | undefined)[]> {
  return (await store.runs.listQueued(key)).map(({ runId }) => runId.split('-')[0])
}

describe.each(DRIVERS)('runs for later in $name', driver => {
  const place = useStore(driver)

  test('a run that is not due is stored with its time, in a session that it may create, and in no queue', async () => {
    const key = newKey()
    const { store } = place
    const dueAt = future()
    const run = opening(key, 'later', dueAt)
    expect(await store.queueRun(run)).toEqual({ dueAt })
    expect(await store.queueRun(run)).toEqual({ known: true })
    const found = await store.runs.findRun(run.runId)
    expect(found).toMatchObject({ state: 'scheduled', dueAt, finished: false, lastSeq: 1, key })
    expect(found).not.toHaveProperty('place')
    expect(found).not.toHaveProperty('afterSeq')
    expect((await store.loadSession(key))?.title).toBe('Later')
    expect(await store.readMessages(key)).toEqual([])
    expect(await queue(store, key)).toEqual([])
    expect(await store.runs.listRuns(key)).toEqual([])
    const { appName } = key
    expect(await store.runs.listUnfinished({ appName })).toEqual([])
    expect(await store.runs.listUnfinished({ appName, abandoned: true, scheduled: 'also' })).toEqual([])
    expect(await store.runs.listUnfinished({ appName, scheduled: 'only' })).toMatchObject([{ dueAt }])
    const { ids, nextInMs = 0 } = await release(store, key)
    expect(ids).toEqual([])
    expect(nextInMs).toBeGreaterThan(HOUR_MS / 2)
    expect(nextInMs).toBeLessThan(HOUR_MS * 2)
    expect(await release(store, newKey())).toEqual({ released: [], ids: [] })
  })

  test('a run for later blocks nothing: a message is answered at once, and the run comes after it', async () => {
    const key = newKey()
    const { store } = place
    await store.queueRun(opening(key, 'due', past()))
    const opened = await store.openRun(opening(key, 'now'))
    if (!('lease' in opened)) throw new TypeError(`not opened: ${JSON.stringify(opened)}`)
    await store.queueRun(opening(key, 'second'))
    expect((await release(store, key)).ids).toEqual(['due'])
    expect(await queue(store, key)).toEqual(['second', 'due'])
    const found = await store.runs.findRun(opening(key, 'due').runId)
    expect(found).toMatchObject({ state: 'queued', place: 2 })
    expect(found?.dueAt).toBeLessThan(Date.now())
    const { appName } = key
    const open = await store.runs.listUnfinished({ appName, key })
    expect(open.map(({ runId }) => runId.split('-')[0])).toEqual(['now', 'second', 'due'])
    await opened.lease.release()
  })

  test('due runs are released in the order of their times, with their messages and inputs', async () => {
    const key = newKey()
    const { store } = place
    await store.queueRun(opening(key, 'third', past() + 2))
    await store.queueRun(opening(key, 'first', past() - 50))
    await store.queueRun(opening(key, 'fourth', past() + 3))
    await store.queueRun(opening({ ...key, sessionId: 'two' }, 'other', past() - 90))
    await store.queueRun(opening(key, 'later', future()))
    const some = await release(store, key, { limit: 2 })
    expect(some).toMatchObject({ ids: ['other', 'first'], nextInMs: 0 })
    expect(some.released[0]?.key).toEqual({ ...key, sessionId: 'two' })
    const rest = await release(store, key)
    expect(rest.ids).toEqual(['third', 'fourth'])
    expect(rest.nextInMs).toBeGreaterThan(0)
    expect(await queue(store, key)).toEqual(['first', 'third', 'fourth'])
    const [first] = await store.runs.listQueued(key)
    expect(first).toMatchObject({ message: question('first'), input: { model: 'first' } })
    const lease = await store.acquireLease(key)
    const begin = { key, runId: first?.runId ?? '', fence: lease.fence, message: question('first') }
    const events = [{ seq: 2, type: 'run-start' }]
    expect(await store.beginRun({ ...begin, runId: opening(key, 'later').runId, events })).toBeUndefined()
    expect(await store.beginRun({ ...begin, events })).toEqual({ seq: 1 })
    await lease.release()
  })

  test('a run for later can be released before its time, and ended before it', async () => {
    const key = newKey()
    const { store } = place
    const [early, ended] = [opening(key, 'early', future()), opening(key, 'ended', future())]
    await store.queueRun(early)
    await store.queueRun(ended)
    expect((await release(store, key, { runId: early.runId })).ids).toEqual(['early'])
    expect((await release(store, key, { runId: early.runId })).ids).toEqual([])
    expect(await store.runs.endQueued(ended.runId, [FINISH])).toBe(true)
    expect(await store.runs.endQueued(ended.runId, [FINISH])).toBe(false)
    expect(await store.runs.findRun(ended.runId)).toMatchObject({
      state: 'finished',
      finishReason: 'aborted',
    })
    expect((await release(store, key, { runId: ended.runId })).ids).toEqual([])
    expect(await queue(store, key)).toEqual(['early'])
  })

  test('retention keeps a run for later and its session; erasing deletes both', async () => {
    const key = newKey()
    const { store } = place
    const run = opening(key, 'kept', future())
    await store.queueRun(run)
    await store.runs.prune({ appName: key.appName, before: Date.now() + HOUR_MS })
    const { appName, userId } = key
    const since = Date.now()
    await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(since + 1))
    expect(await store.expire({ appName, sessionsMs: 1 })).toMatchObject({ sessions: 0 })
    expect(await store.runs.findRun(run.runId)).toMatchObject({ state: 'scheduled', lastSeq: 1 })
    expect(await store.erase({ appName, userId })).toMatchObject({ sessions: 1, runs: 1 })
    expect(await store.runs.findRun(run.runId)).toBeUndefined()
    expect(await release(store, key, { runId: run.runId })).toMatchObject({ released: [] })
    expect(await store.queueRun(run)).toEqual({ known: true })
  })

  test('a copy of a session has no runs for later', async () => {
    const key = newKey()
    await place.store.queueRun(opening(key, 'once', past()))
    await place.store.forkSession(key, 'copy')
    expect((await release(place.store, key)).released.map(run => run.key.sessionId)).toEqual(['one'])
  })

  test('invalid times and queries of runs for later are refused', async () => {
    const key = newKey()
    const { store } = place
    const refused = [
      store.queueRun({ ...opening(key, 'a'), dueAt: -1 }),
      store.queueRun({ ...opening(key, 'a'), dueAt: Number.NaN }),
      store.runs.releaseDue({ appName: '' }),
      store.runs.releaseDue({ appName: 'a', limit: 0 }),
      store.runs.listUnfinished({ appName: 'a', scheduled: true as unknown as 'also' }),
    ]
    for (const promise of refused) expect((await failureOf(promise)).code).toBe('invalid-argument')
  })
})

describe.each(SHARED_DRIVERS)('runs for later of two stores on one $name database', driver => {
  const place = useStore(driver)

  test('each due run is released once, and keeps its order', async () => {
    const other = await openStore(place.url)
    const key = newKey()
    const names = Array.from({ length: 12 }, (_, index) => `run${index}`)
    for (const [index, name] of names.entries())
      await place.store.queueRun(opening(key, name, past() + index))
    const both = await Promise.all([release(place.store, key), release(other, key)])
    const ids = both.flatMap(({ ids: some }) => some)
    expect(ids).toHaveLength(names.length)
    expect(new Set(ids)).toEqual(new Set(names))
    expect(await queue(other, key)).toEqual(names)
    await other.close()
  })
})
