/** Transactions that meet on PostgreSQL. One is left open by a raw connection while the other waits for it. */
import pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { LeaseRequest, LogStore, NewRun } from '../../../src/session/log-store.js'
import type { SessionKey } from '../../../src/session/message.js'
import { prepareWrite } from '../../../src/store/log/prepared-write.js'
import { SqlLog } from '../../../src/store/log/sql-log.js'
import { appendBatch } from '../../../src/store/log/write-entries.js'
import { acquireBatch } from '../../../src/store/log/write-lease.js'
import { acceptBatch, endQueuedBatch, postBatch } from '../../../src/store/log/write-runs.js'
import { type Statement, sql } from '../../../src/store/sql-database.js'
import { newKey } from '../store/drivers.js'
import { type Defect, rewrite } from './broken-stores.js'
import {
  beginRun,
  dump,
  ending,
  LEASE,
  LOG_DRIVERS,
  message,
  newRunId,
  type OpenLog,
  openLog,
  type RunAtWork,
  runOf,
  sessionRow,
} from './drivers.js'

const OTHER: LeaseRequest = { ...LEASE, holder: 'elsewhere boot pid 8 8' }

let place: OpenLog
beforeAll(async () => {
  const driver = LOG_DRIVERS.find(({ name }) => name === 'postgres')
  if (driver) place = await openLog(driver)
})
afterAll(() => place?.stop())

/** A transaction of another process that is not committed yet. */
async function leaveOpen(statements: readonly Statement[]): Promise<{ commit(): Promise<void> }> {
  const client = new pg.Client({ connectionString: place.url })
  await client.connect()
  let isOpen = true
  const end = async (text: string) => {
    if (!isOpen) return
    isOpen = false
    await client.query(text)
    await client.end()
  }
  onTestFinished(() => end('ROLLBACK'))
  await client.query('BEGIN')
  for (const { text, parameters } of statements) {
    let number = 0
    await client.query(
      text.replaceAll('?', () => `$${++number}`),
      [...parameters],
    )
  }
  return { commit: () => end('COMMIT') }
}

/** Starts work that must wait for a lock, commits what it waits for, and returns its answer. */
async function afterWaiting<Answer>(
  work: Promise<Answer>,
  open: { commit(): Promise<void> },
): Promise<Answer> {
  let isSettled = false
  const settled = work.finally(() => {
    isSettled = true
  })
  settled.catch(() => {})
  await expect.poll(waiting).toBeGreaterThan(0)
  expect(isSettled).toBe(false)
  await open.commit()
  return settled
}

/** Counts the transactions that wait for a lock. */
async function waiting(): Promise<number> {
  const [row] = await place.database.run(
    sql(
      `SELECT count(*) AS waiting FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    ),
  )
  return Number(row?.waiting)
}

function broken({ database }: Defect): LogStore {
  return new SqlLog(database?.(place.database) ?? place.database)
}

function posting(runId: string): readonly Statement[] {
  return postBatch(place.database.dialect, { runId, kind: 'reply', data: { yes: true } }, `raw.${runId}`)
}

function accepting(run: NewRun): readonly Statement[] {
  const { key, runId, message: text } = run
  const entries = [{ kind: 'begun', runId, message: text }] as const
  const write = prepareWrite(0, `raw.${runId}`, { key, runId, entries, under: { fence: 0 } })
  return acceptBatch(place.database.dialect, run, write, LEASE, { isKnown: false }).statements
}

function endingQueued({ key: { sessionId }, runId }: NewRun): readonly Statement[] {
  const entries = [{ kind: 'ended', runId }] as const
  return endQueuedBatch(place.database.dialect, { runId, sessionId }, 'raw', entries)
}

async function ended({ key, runId, lease, write }: RunAtWork): Promise<readonly Statement[]> {
  const { pk } = await sessionRow(place.database, key)
  const last = {
    ...ending({ key, runId, lease, write }, 1),
    also: { run: { runId, state: 'finished' } },
  } as const
  return appendBatch(place.database.dialect, prepareWrite(Number(pk), `raw.${runId}`, last)).statements
}

function waitingRun(runId: string) {
  return { run: { runId, state: 'waiting' }, release: true } as const
}

async function abandoned({ appName }: SessionKey): Promise<string[]> {
  const states = ['running', 'waiting'] as const
  const runs = await place.log.listRuns({ appName, states, isAbandoned: true, limit: 10 })
  return runs.map(({ runId }) => runId)
}

test('a pause waits for a post that is being stored, and is refused', async () => {
  const { log } = place
  const { key, runId, write } = await beginRun(log)
  await log.append(write(1, [{ kind: 'question', runId }]))
  const post = await leaveOpen(posting(runId))
  expect(await afterWaiting(log.pause(write(2, [], waitingRun(runId)), 0), post)).toEqual({ unread: 1 })
  expect((await log.findRuns([runId]))[0]).toMatchObject({ state: 'running', isPosted: true })
  expect((await log.read(key)).map(({ kind }) => kind)).toEqual(['begun', 'question', 'reply'])
})

test('a pause that counts posts by a sub-select of its statement overlooks one that is being stored', async () => {
  const subselect = `AND (SELECT count(*) FROM lango_entries e WHERE e.session_pk = lango_sessions.pk
    AND e.kind IN ('reply', 'stop', 'steer')) = ?`
  const defect = rewrite(/AND post_count = \?/, subselect)
  const log = broken(defect)
  const { key, runId, write } = await beginRun(log)
  await log.append(write(1, [{ kind: 'question', runId }]))
  const post = await leaveOpen(posting(runId))
  // It waits for the row as well, but reads entries as they were before.
  expect(await afterWaiting(log.pause(write(2, [], waitingRun(runId)), 0), post)).toMatchObject({ seq: 4 })
  expect(defect.changed.count).toBeGreaterThan(0)
  expect((await log.read(key)).map(({ kind }) => kind)).toEqual(['begun', 'question', 'reply'])
  // The reply is pending, so that the run is continued nevertheless.
  expect((await log.findRuns([runId]))[0]).toMatchObject({ state: 'waiting', isPosted: true })
  expect(await abandoned(key)).toEqual([runId])
})

test('a post waits for a pause that is being stored, and wakes the run up', async () => {
  const { log } = place
  const { key, runId, write } = await beginRun(log)
  const { pk } = await sessionRow(place.database, key)
  const pause = prepareWrite(Number(pk), `raw.${runId}`, write(1, [], waitingRun(runId)))
  const open = await leaveOpen(appendBatch(place.database.dialect, pause, { posts: 0 }).statements)
  expect(await afterWaiting(log.post({ runId, kind: 'reply' }), open)).toEqual({ seq: 2 })
  expect((await log.findRuns([runId]))[0]).toMatchObject({ state: 'waiting', isPosted: true })
  expect(await abandoned(key)).toEqual([runId])
})

test('a post waits for the end of its run that is being stored, and is refused', async () => {
  const run = await beginRun(place.log)
  const open = await leaveOpen(await ended(run))
  const post = place.log.post({ runId: run.runId, kind: 'stop' })
  await expect(afterWaiting(post, open)).rejects.toMatchObject({ code: 'run-interrupted' })
  expect((await place.log.read(run.key)).map(({ kind }) => kind)).toEqual(['begun', 'ended'])
})

test('a post that does not lock its session first is stored after the end of its run', async () => {
  const defect = rewrite(/(SELECT pk FROM lango_sessions WHERE pk = [\s\S]*) FOR UPDATE/, '$1')
  const run = await beginRun(place.log)
  const open = await leaveOpen(await ended(run))
  expect(await afterWaiting(broken(defect).post({ runId: run.runId, kind: 'stop' }), open)).toEqual({
    seq: 3,
  })
  expect(defect.changed.count).toBeGreaterThan(0)
})

test('a queued run does not begin while its end is being stored', async () => {
  const { log } = place
  const { key, write } = await beginRun(log)
  const next = { ...runOf(key, newRunId()), when: 'queue' } as const
  await log.accept(next, OTHER)
  const open = await leaveOpen(endingQueued(next))
  const begun = [{ kind: 'begun', runId: next.runId, message: next.message }] as const
  expect(await afterWaiting(log.begin(next.runId, write(1, begun)), open)).toBeUndefined()
  expect((await log.findRuns([next.runId]))[0]).toMatchObject({ state: 'finished' })
  expect((await log.read(key)).map(({ kind }) => kind)).toEqual(['begun', 'ended'])
})

test('a begin that does not lock its session first begins a run that has ended', async () => {
  const defect = rewrite(/(SELECT pk FROM lango_sessions WHERE pk = \?) FOR UPDATE/, '$1')
  const log = broken(defect)
  const { key, write } = await beginRun(log)
  const next = { ...runOf(key, newRunId()), when: 'queue' } as const
  await log.accept(next, OTHER)
  const open = await leaveOpen(endingQueued(next))
  const begun = [{ kind: 'begun', runId: next.runId, message: next.message }] as const
  expect(await afterWaiting(log.begin(next.runId, write(1, begun)), open)).toMatchObject({ seq: 3 })
  expect(defect.changed.count).toBeGreaterThan(0)
})

test('a write and a renewal wait for a process that is taking the lease over, and are refused', async () => {
  const { log, database } = place
  const takeOver = ({ key }: RunAtWork) =>
    leaveOpen(acquireBatch(database.dialect, key, { ...OTHER, gone: LEASE.holder }))
  const [writing, renewing] = [await beginRun(log), await beginRun(log)]
  const write = writing.write(1, [{ kind: 'notice', runId: writing.runId }])
  const first = await takeOver(writing)
  await expect(afterWaiting(log.append(write), first)).rejects.toMatchObject({ code: 'lease-lost' })
  const second = await takeOver(renewing)
  expect(await afterWaiting(log.renew([renewing.lease]), second)).toEqual(new Set())
  for (const { key } of [writing, renewing]) {
    expect(await log.read(key)).toHaveLength(1)
    expect(await sessionRow(database, key)).toMatchObject({ holder: OTHER.holder, write_number: 0 })
  }
})

test('a run waits for another one that begins in the same new session', async () => {
  const { log, database } = place
  for (const [when, answer] of [
    ['begin', 'busy'],
    ['begin-or-queue', { queued: 1 }],
  ] as const) {
    const key = newKey()
    const first = runOf(key, newRunId())
    const open = await leaveOpen(accepting(first))
    expect(await afterWaiting(log.accept({ ...runOf(key, newRunId()), when }, OTHER), open)).toEqual(answer)
    expect(await log.read(key)).toMatchObject([{ runId: first.runId, kind: 'begun' }])
    expect(await sessionRow(database, key)).toMatchObject({ holder: LEASE.holder, message_count: 1 })
  }
})

test('of runs that are accepted at once in a new session one begins, and the others are queued in order', async () => {
  const key = newKey()
  const accepted = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      (index % 2 === 0 ? place.log : place.another()).accept(
        { ...runOf(key, newRunId()), when: 'begin-or-queue' },
        OTHER,
      ),
    ),
  )
  const places = accepted.map(each => (typeof each === 'object' && 'queued' in each ? each.queued : 0))
  expect(places.sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
  expect(await sessionRow(place.database, key)).toMatchObject({ open_runs: 8, entry_count: 1 })
})

test('a run waits for a lease of its key that is being granted, and is busy', async () => {
  const { log, database } = place
  const key = newKey()
  const open = await leaveOpen(acquireBatch(database.dialect, key, LEASE))
  expect(await afterWaiting(log.accept(runOf(key, newRunId()), OTHER), open)).toBe('busy')
  expect(await sessionRow(database, key)).toEqual({})
})

test('a run that is queued waits for a lease of its key, and its session takes the lease over', async () => {
  const { log, database } = place
  const key = newKey()
  const open = await leaveOpen(acquireBatch(database.dialect, key, LEASE))
  const run = { ...runOf(key, newRunId()), when: 'queue' } as const
  expect(await afterWaiting(log.accept(run, OTHER), open)).toEqual({ queued: 1 })
  expect(await sessionRow(database, key)).toMatchObject({ holder: LEASE.holder, lease_ms: LEASE.ttlMs })
})

test('a lease of a key waits for a run that begins in its new session, and is refused', async () => {
  const { log, database } = place
  const run = runOf(newKey(), newRunId())
  const open = await leaveOpen(accepting(run))
  expect(await afterWaiting(log.acquire(run.key, OTHER), open)).toEqual({ holder: LEASE.holder })
  expect(await dump(database)).not.toContain(`lango_leases {"app_name":"${run.key.appName}"`)
})

test('without the lock of its key a run begins while the lease is being granted to another process', async () => {
  const defect = rewrite(
    /SELECT pg_advisory_xact_lock\(hashtextextended\(\?, \d+\)\)/,
    'SELECT CAST(? AS TEXT)',
  )
  const key = newKey()
  const open = await leaveOpen(acquireBatch(place.database.dialect, key, LEASE))
  expect(await broken(defect).accept(runOf(key, newRunId()), OTHER)).toMatchObject({ seq: 1 })
  await open.commit()
  expect(defect.changed.count).toBeGreaterThan(0)
})

test('writes of many sessions at once share commits, and each is refused by itself', async () => {
  const { log, database } = place
  const runs = await Promise.all(Array.from({ length: 60 }, () => beginRun(log)))
  for (const { write, runId } of runs) await log.append(write(1, [{ kind: 'call', runId, key: 'once' }]))
  const { commits } = database.work
  const outcomes = await Promise.allSettled(
    runs.map(({ runId, write, lease }, index) => {
      const answer = { kind: 'answer', runId, message: message('one') } as const
      if (index % 20 === 3)
        return log.append({ ...write(2, [answer]), under: { fence: lease.fence + 1_000_000, number: 2 } })
      if (index % 20 === 4) return log.append(write(2, [answer, { kind: 'call', runId, key: 'once' }]))
      return log.append(write(2, [answer]))
    }),
  )
  expect(database.work.commits - commits).toBeLessThan(45)
  for (const [index, outcome] of outcomes.entries()) {
    const code = new Map([
      [3, 'lease-lost'],
      [4, 'internal'],
    ]).get(index % 20)
    expect(outcome).toMatchObject(
      code ? { status: 'rejected', reason: { code } } : { status: 'fulfilled', value: { seq: 3 } },
    )
    expect(await log.read(runs[index]?.key ?? newKey())).toHaveLength(code ? 2 : 3)
  }
})

test('connections that break during writes lose no write and store none twice', async () => {
  const { log, database } = place
  const runs = await Promise.all(Array.from({ length: 30 }, () => beginRun(log)))
  for (let round = 1; round <= 5; round++) {
    const writes = runs.map(({ runId, write }) =>
      log.append(write(round, [{ kind: 'notice', runId, data: { round } }], { state: { round } })),
    )
    await place.another().read(newKey())
    await database
      .run(
        sql(
          'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
        ),
      )
      .catch(() => {})
    for (const appended of await Promise.all(writes))
      expect(appended).toEqual({ seq: round + 1, messageSeqs: [], posts: 0 })
  }
  for (const { key } of runs)
    expect((await log.read(key)).map(({ seq, data }) => [seq, data?.round])).toEqual([
      [1, undefined],
      ...[1, 2, 3, 4, 5].map(round => [round + 1, round]),
    ])
})
