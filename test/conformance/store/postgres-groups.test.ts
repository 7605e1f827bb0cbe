// Writes of different sessions that come together are one transaction on PostgreSQL.
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import type { SessionKey } from '../../../src/session/message.js'
import type { RunStep } from '../../../src/session/run-store.js'
import type { Lease, SessionStore } from '../../../src/session/session-store.js'
import { checkedStore } from '../../../src/store/checked-store.js'
import { PostgresStore } from '../../../src/store/postgres-store.js'
import type { SqlDatabase } from '../../../src/store/sql-database.js'
import { openSqlStore } from '../../../src/store/sql-store.js'
import { createStoreDatabase, type TestDatabase } from '../../support/postgres.js'
import { measureCost, newKey, openDatabase } from './drivers.js'

interface OpenedRun {
  key: SessionKey
  runId: string
  fence: number
  lease: Lease
}

async function open(
  query = '',
): Promise<{ place: TestDatabase; database: SqlDatabase; store: SessionStore }> {
  const place = await createStoreDatabase()
  const database = await openDatabase(`${place.url}${query}`)
  const store = checkedStore(await openSqlStore(database, PostgresStore))
  onTestFinished(async () => {
    await store.close()
    await place.drop()
  })
  return { place, database, store }
}

async function openRuns(store: SessionStore, count: number): Promise<OpenedRun[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const key = newKey()
      const runId = randomUUID()
      const events = [{ seq: 1, type: 'run-start' }]
      const opened = await store.openRun({ key, runId, message: text('question'), events })
      if (!('lease' in opened)) throw new TypeError('the run was not opened')
      return { key, runId, fence: opened.lease.fence, lease: opened.lease }
    }),
  )
}

function text(id: string) {
  return { role: 'user', content: `The text of ${id}`, timestamp: 1, id } as const
}

function save(store: SessionStore, { key, runId, fence }: OpenedRun, step: Partial<RunStep>) {
  return (store.runs as Required<SessionStore['runs']>).saveStep({ key, runId, fence, ...step })
}

test('steps in PostgreSQL at the same time share commits, and each fails by itself', async () => {
  const { database, store } = await open()
  const runs = await openRuns(store, 80)
  await Promise.all(runs.map((run, index) => save(store, run, { message: text(`first-${index}`) })))
  const before = database.work.commits
  const outcomes = await Promise.allSettled(
    runs.map((run, index) => {
      // A lost lease; a message that replaces another one, which violates an index first; an ordinary step.
      if (index % 20 === 3)
        return save(store, { ...run, fence: 1_000_000 }, { message: text(`next-${index}`) })
      const id = index % 20 === 4 ? `first-${index}` : `next-${index}`
      return save(store, run, { message: text(id), events: [{ seq: 2, type: 'usage' }] })
    }),
  )
  expect(database.work.commits - before).toBeLessThan(60)
  for (const [index, outcome] of outcomes.entries()) {
    const messages = await store.readMessages((runs[index] as OpenedRun).key)
    const ids = messages.map(({ id }) => id)
    if (index % 20 === 3) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'lease-lost' } })
      expect(ids).toEqual(['question', `first-${index}`])
    } else if (index % 20 === 4) {
      expect(outcome).toMatchObject({ status: 'fulfilled', value: { seq: 2 } })
      expect(ids).toEqual(['question', `first-${index}`])
    } else {
      expect(outcome).toMatchObject({ status: 'fulfilled', value: { seq: 3 } })
      expect(ids).toEqual(['question', `first-${index}`, `next-${index}`])
    }
  }
})

test('a single step in PostgreSQL is two statements in one transaction and one round trip', async () => {
  const { database, store } = await open()
  const [run] = await openRuns(store, 1)
  const costOf = measureCost(database)
  const [, cost] = await costOf(() => save(store, run as OpenedRun, { message: text('answer') }))
  expect(cost).toEqual({ trips: 1, tasks: 0, statements: 2, commits: 1 })
})

test('PostgreSQL connections that break during group commits lose no step and double none', async () => {
  const { place, store } = await open()
  const runs = await openRuns(store, 60)
  const stored = runs.map(() => new Set<string>())
  for (let round = 0; round < 5; round++) {
    const writes = runs.map((run, index) =>
      save(store, run, {
        message: text(`${round}`),
        events: [{ seq: round + 2, type: 'usage' }],
      }).then(
        () => stored[index]?.add(`${round}`),
        error => expect(error).toMatchObject({ code: 'store-unavailable', retryable: true }),
      ),
    )
    await place.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    )
    await Promise.all(writes)
  }
  for (const [index, { key }] of runs.entries()) {
    const messages = await store.readMessages(key)
    const ids = messages.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(messages.map(({ seq }) => seq)).toEqual(ids.map((_, at) => at + 1))
    for (const id of stored[index] ?? []) expect(ids).toContain(id)
  }
})

test('a session that is locked for long in PostgreSQL delays no other one', async () => {
  // Without a limit for groups, they would wait until a statement has taken too long.
  const { place, store } = await open('?query_timeout=600000')
  const runs = await openRuns(store, 40)
  const other = new pg.Client(place.url)
  await other.connect()
  onTestFinished(() => other.end())
  await other.query('BEGIN')
  const { key } = runs[7] as OpenedRun
  await other.query('SELECT 1 FROM lango_sessions WHERE app_name = $1 AND session_id = $2 FOR UPDATE', [
    key.appName,
    key.sessionId,
  ])
  let isStored = false
  const steps = runs.map((run, index) =>
    save(store, run, { message: text('answer') }).then(() => {
      if (index === 7) isStored = true
    }),
  )
  await Promise.all(steps.filter((_, index) => index !== 7))
  expect(isStored).toBe(false)
  await other.query('COMMIT')
  await Promise.all(steps)
  for (const run of runs) expect(await store.readMessages(run.key)).toHaveLength(2)
})

test('runs that end together in PostgreSQL, with counts of two models and waiting leases, do not block each other', async () => {
  const { store } = await open()
  const runs = await openRuns(store, 120)
  const ends = runs.map((run, index) =>
    save(store, run, {
      message: text('answer'),
      events: [{ seq: 2, type: 'run-finish' }],
      calibration: [{ model: `model-${index % 2}`, bytes: 4, tokens: 1 }],
      release: true,
    }).then(() => run.lease.released()),
  )
  const leases = runs.map(({ key }) => store.acquireLease(key, { waitMs: 60_000 }))
  await Promise.all(ends)
  for (const lease of await Promise.all(leases)) await lease.release()
  for (const model of ['model-0', 'model-1'])
    expect(await store.calibration.read(model)).toEqual({ bytes: 240, tokens: 60 })
})
