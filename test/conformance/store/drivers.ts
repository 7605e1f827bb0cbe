import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, vi } from 'vitest'
import type { SessionKey } from '../../../src/session/message.js'
import type { SessionStore } from '../../../src/session/session-store.js'
import { openStore, parseStoreUrl } from '../../../src/store/open-store.js'
import { openPostgres } from '../../../src/store/postgres.js'
import type { SqlDatabase } from '../../../src/store/sql-database.js'
import { openSqlite } from '../../../src/store/sqlite.js'
import { createDatabase, createStoreDatabase, type TestDatabase } from '../../support/postgres.js'
import { type FolderOptions, makeFolder, removeFolder } from '../../support/temporary-folder.js'

interface Started {
  url: string
  stop(): Promise<void>
}

/** One kind of store. */
export interface Driver {
  name: 'memory' | 'sqlite' | 'postgres'
  /** A place for a store without data. It may have the tables of the newest schema. */
  start(): Promise<Started>
  /** The same without tables. */
  startEmpty(): Promise<Started>
}

/** Every store that Lango has: the suite runs over all of them. */
export const DRIVERS: readonly Driver[] = [
  { name: 'memory', start: startMemory, startEmpty: startMemory },
  { name: 'sqlite', start: () => startSqlite(), startEmpty: () => startSqlite() },
  {
    name: 'postgres',
    start: () => startPostgres(createStoreDatabase()),
    startEmpty: () => startPostgres(createDatabase()),
  },
]

async function startMemory(): Promise<Started> {
  return { url: 'memory:', stop: async () => {} }
}

async function startSqlite(options?: FolderOptions): Promise<Started> {
  const folder = await makeFolder(options)
  return { url: `sqlite:${join(folder, 'store.db')}`, stop: () => removeFolder(folder) }
}

async function startPostgres(created: Promise<TestDatabase>): Promise<Started> {
  const { url, drop } = await created
  return { url, stop: drop }
}

/** Those that several processes can open at once. */
export const SHARED_DRIVERS: readonly Driver[] = DRIVERS.filter(({ name }) => name !== 'memory')

/** The same with the SQLite file on the disk, also where folders for tests are in memory. */
export const DISK_DRIVERS: readonly Driver[] = SHARED_DRIVERS.map(driver => {
  const start = () => startSqlite({ on: 'disk' })
  return driver.name === 'sqlite' ? { ...driver, start, startEmpty: start } : driver
})

/** Every store for tests that write thousands of messages: SQLite without waiting for the disk each time. */
export const FAST_DRIVERS: readonly Driver[] = DRIVERS.map(driver => ({
  ...driver,
  start: async () => {
    const { url, stop } = await driver.start()
    return { url: driver.name === 'sqlite' ? `${url}?sync=normal` : url, stop }
  },
}))

export interface Place {
  url: string
  store: SessionStore
}

/** One store for all tests of a describe block; every test uses keys of its own. */
export function useStore(driver: Driver): Place {
  const place = {} as Place
  let stop: () => Promise<void> = async () => {}
  beforeAll(async () => {
    const started = await driver.start()
    stop = started.stop
    place.url = started.url
    place.store = await openStore(started.url)
  })
  afterAll(async () => {
    await place.store?.close()
    await stop()
  })
  return place
}

/** The database itself, below the store. */
export async function openDatabase(url: string): Promise<SqlDatabase> {
  const location = parseStoreUrl(url)
  if (location.driver === 'sqlite') return openSqlite(location)
  if (location.driver === 'postgres') return openPostgres(location)
  throw new Error('memory has no database')
}

/** The work of a database for one call. */
export interface Cost {
  /** Batches and single statements: each is one round trip. */
  trips: number
  /** Transactions that wait for the answer to each of their statements. */
  tasks: number
  statements: number
  /** Transactions of writes. */
  commits: number
}

/** Measures what a call costs the database of a store. Nothing else may use the store meanwhile. */
export function measureCost(
  database: SqlDatabase,
): <T>(work: () => Promise<T>) => Promise<readonly [result: T, cost: Cost]> {
  const spies = {
    trips: [vi.spyOn(database, 'batch'), vi.spyOn(database, 'run'), vi.spyOn(database, 'search')],
    tasks: [vi.spyOn(database, 'write'), vi.spyOn(database, 'read')],
  }
  const callsOf = (kind: keyof typeof spies) =>
    spies[kind].reduce((all, { mock }) => all + mock.calls.length, 0)
  const now = (): Cost => {
    const { statements, commits } = database.work
    return { trips: callsOf('trips'), tasks: callsOf('tasks'), statements, commits }
  }
  return async work => {
    const before = now()
    const result = await work()
    const after = now()
    const cost = {
      trips: after.trips - before.trips,
      tasks: after.tasks - before.tasks,
      statements: after.statements - before.statements,
      commits: after.commits - before.commits,
    }
    return [result, cost]
  }
}

/** A key that no other test uses. */
export function newKey(): SessionKey {
  return { appName: `app-${randomUUID()}`, userId: 'ann', sessionId: 'one' }
}

/** The code and the message of what a promise rejects with, and whether it may be retried. */
export async function failureOf(
  promise: Promise<unknown>,
): Promise<{ code: string; message: string; retryable: boolean }> {
  const outcome = await promise.then(
    value => ({ value }),
    (error: unknown) => ({ error }),
  )
  if ('value' in outcome) throw new Error(`expected a failure, but got ${JSON.stringify(outcome.value)}`)
  const { code, message, retryable } = outcome.error as { code: string; message: string; retryable: boolean }
  return { code, message, retryable }
}

/** Waits for a signal, also one that has fired already. */
export function fired(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
}
