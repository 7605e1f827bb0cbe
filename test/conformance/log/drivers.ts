import type {
  GrantedLease,
  LeaseRequest,
  LogStore,
  LogWrite,
  NewEntry,
} from '../../../src/session/log-store.js'
import type { Message, SessionKey } from '../../../src/session/message.js'
import { SqlLog } from '../../../src/store/log/sql-log.js'
import { migrate } from '../../../src/store/migrations.js'
import { VERSIONS } from '../../../src/store/schema.js'
import { type Row, type SqlDatabase, type SqlValue, sql } from '../../../src/store/sql-database.js'
import { type Driver, newKey, openDatabase, SHARED_DRIVERS } from '../store/drivers.js'
import { over, type Stores } from './cut-harness.js'

export const LOG_DRIVERS: readonly Driver[] = SHARED_DRIVERS

/** A log and the database below it. */
export interface LogPlace {
  readonly log: LogStore
  readonly database: SqlDatabase
  readonly url: string
  /** Another store on the same tables, as another process would open it. */
  another(): LogStore
  /** A store over the same database with other members. */
  over(members: (database: SqlDatabase) => Partial<SqlDatabase>): LogStore
}

export interface OpenLog extends LogPlace {
  /** For scenarios: the processes use several connections in turn. */
  readonly stores: Stores
  stop(): Promise<void>
}

/** A database with all tables. `schema` may change a statement that creates them. */
export async function openLog(driver: Driver, schema = (text: string) => text): Promise<OpenLog> {
  const { url, stop } = await driver.startEmpty()
  const [database, second] = [await openDatabase(url), await openDatabase(url)]
  let connected = 0
  const connect = () => (connected++ % 2 === 0 ? database : second)
  await migrate(
    database,
    VERSIONS.map(version => dialect => version(dialect).map(schema)),
  )
  return {
    log: new SqlLog(database),
    database,
    url,
    another: () => new SqlLog(second),
    over: members => new SqlLog(over(database, members(database))),
    stores: { database, connect },
    async stop() {
      await database.close()
      await second.close()
      await stop()
    },
  }
}

/** The store of a process on another machine: its leases last until they expire. */
export const LEASE: LeaseRequest = { ttlMs: 60_000, holder: 'elsewhere boot pid 7 7' }

/** A process of this machine that does not exist. */
export function goneHolder(machine: string): string {
  return `${machine}999999999 1`
}

export function message(content: string, id?: string): Message {
  return { role: 'user', content, timestamp: 1, ...(id === undefined ? {} : { id }) }
}

export function runOf(key: SessionKey, runId: string) {
  return {
    key,
    runId,
    message: message(`Message of ${runId}`),
    input: { model: 'm' },
    when: 'begin',
  } as const
}

/** A run that has begun, and the writes of its process. */
export interface RunAtWork {
  readonly key: SessionKey
  readonly runId: string
  readonly lease: GrantedLease
  write(number: number, entries: readonly NewEntry[], also?: LogWrite['also']): LogWrite
}

let runs = 0

/** An id that no other test uses. */
export function newRunId(): string {
  runs += 1
  return `run-${process.pid}-${runs}`
}

/** Begins a run in a session of its own. */
export async function beginRun(log: LogStore, key = newKey()): Promise<RunAtWork> {
  const runId = newRunId()
  const accepted = await log.accept(runOf(key, runId), LEASE)
  if (typeof accepted === 'string' || !('begun' in accepted))
    throw new TypeError(`the run did not begin: ${JSON.stringify(accepted)}`)
  return { key, runId, lease: accepted.begun, write: writesUnder(accepted.begun) }
}

export function writesUnder({ key, fence }: GrantedLease): RunAtWork['write'] {
  return (number, entries, also) => ({ key, under: { fence, number }, entries, ...(also ? { also } : {}) })
}

/** Acquires a lease that must be free. */
export async function acquired(log: LogStore, key: SessionKey, lease = LEASE): Promise<GrantedLease> {
  const granted = await log.acquire(key, lease)
  if (!('fence' in granted)) throw new TypeError(`the lease is not free: ${JSON.stringify(granted)}`)
  return granted
}

/** The last write of a run. */
export function ending({ runId, write }: RunAtWork, number: number): LogWrite {
  const run = { runId, state: 'finished', finishReason: 'stop' } as const
  return write(number, [{ kind: 'ended', runId }], { run, release: true })
}

const SESSION = 'app_name = ? AND user_id = ? AND session_id = ?'

export function names({ appName, userId, sessionId }: SessionKey): [string, string, string] {
  return [appName, userId, sessionId]
}

export async function sessionRow(database: SqlDatabase, key: SessionKey): Promise<Row> {
  const [row] = await database.run(sql(`SELECT * FROM lango_sessions WHERE ${SESSION}`, ...names(key)))
  return row ?? {}
}

/** The columns of a session's lease and of the writes under it. */
export async function leaseColumns(database: SqlDatabase, key: SessionKey): Promise<Row> {
  const { fence, holder, lease_until, lease_ms, write_number, write_digest, write_entry } = await sessionRow(
    database,
    key,
  )
  return { fence, holder, lease_until, lease_ms, write_number, write_digest, write_entry } as Row
}

/** Changes the row of a session. */
export async function setSession(
  database: SqlDatabase,
  key: SessionKey,
  set: string,
  ...values: SqlValue[]
): Promise<void> {
  await database.run(sql(`UPDATE lango_sessions SET ${set} WHERE ${SESSION}`, ...values, ...names(key)))
}

/** Lets the lease of a session expire, as the passing of its time does. */
export function expire(database: SqlDatabase, key: SessionKey): Promise<void> {
  return setSession(database, key, 'lease_until = 1')
}

/** Creates the row of a session without entries. */
export async function createSession(database: SqlDatabase, key: SessionKey): Promise<void> {
  await database.run(
    sql(
      `INSERT INTO lango_sessions (app_name, user_id, session_id, search, created_at, updated_at, updated_hour)
        VALUES (?, ?, ?, '', 1, 1, 1)`,
      ...names(key),
    ),
  )
}

/** Deletes a session with its entries and runs. */
export async function deleteSession(database: SqlDatabase, key: SessionKey): Promise<void> {
  const ofSession = `session_pk IN (SELECT pk FROM lango_sessions WHERE ${SESSION})`
  for (const table of ['lango_entries', 'lango_runs', 'lango_session_state', 'lango_tool_calls'])
    await database.run(sql(`DELETE FROM ${table} WHERE ${ofSession}`, ...names(key)))
  await database.run(sql(`DELETE FROM lango_sessions WHERE ${SESSION}`, ...names(key)))
}

const TABLES = {
  lango_sessions: 'pk',
  lango_leases: 'app_name, user_id, session_id',
  lango_entries: 'session_pk, seq',
  lango_runs: 'pk',
  lango_app_state: 'app_name, key',
  lango_user_state: 'app_name, user_id, key',
  lango_session_state: 'session_pk, key',
  lango_tool_calls: 'session_pk, number',
  lango_request_parts: 'session_pk, number',
  lango_calibration: 'model',
  lango_usage: 'id',
  lango_memory: 'session_pk',
}

/** All rows of all tables, a line each. The counter of fences may have gaps and is not among them. */
export async function dump(database: SqlDatabase): Promise<string> {
  const lines: string[] = []
  for (const [table, order] of Object.entries(TABLES))
    for (const row of await database.run(sql(`SELECT * FROM ${table} ORDER BY ${order}`)))
      lines.push(`${table} ${JSON.stringify(row)}`)
  return lines.join('\n')
}
