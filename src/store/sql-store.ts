import type { Message, Session, SessionKey, State, StoredMessage } from '../session/message.js'
import type {
  AppendOptions,
  CreateOptions,
  Lease,
  LeaseOptions,
  ListQuery,
  LoadOptions,
  ReadOptions,
  SessionPage,
  SessionStore,
  SessionSummary,
} from '../session/session-store.js'
import { LeaseHolder, type TicketStore } from './hold-lease.js'
import { migrate } from './migrations.js'
import { type MessageRow, messageToRow } from './rows.js'
import { type Append, type AppendSql, appendSql } from './sql-append.js'
import { type Dialect, numberIn, repeatableSql, type SqlDatabase, sql, type Task } from './sql-database.js'
import { SqlCalibration, SqlRuns } from './sql-runs.js'
import {
  createTask,
  deleteTask,
  describeStatement,
  forkTask,
  listStatement,
  loadTask,
  readRows,
  readStatement,
  renameStatement,
  toPage,
} from './sql-sessions.js'
import { splitDelta } from './state-scopes.js'
import { sessionNotFound } from './store-errors.js'

/** Migrates the database and returns a store over it. Closes the database when that fails. */
export async function openSqlStore(database: SqlDatabase): Promise<SessionStore> {
  try {
    await migrate(database)
  } catch (error) {
    await database.close()
    throw error
  }
  return new SqlStore(database)
}

class SqlStore implements SessionStore {
  readonly runs: SqlRuns
  readonly calibration: SqlCalibration
  readonly #database: SqlDatabase
  readonly #append: AppendSql
  readonly #leases: LeaseHolder
  #closing: Promise<void> | undefined

  constructor(database: SqlDatabase) {
    this.#database = database
    this.#append = appendSql(database.dialect)
    this.#leases = new LeaseHolder(new SqlTickets(database))
    this.runs = new SqlRuns(database)
    this.calibration = new SqlCalibration(database)
  }

  async createSession(key: SessionKey, state: State = {}, options: CreateOptions = {}): Promise<Session> {
    const changes = splitDelta('state', state)
    return this.#database.write(() => createTask(this.#database.dialect, key, changes, options))
  }

  async loadSession(key: SessionKey, options: LoadOptions = {}): Promise<Session | undefined> {
    return this.#database.read(() => loadTask(key, options))
  }

  async readMessages(key: SessionKey, options: ReadOptions = {}): Promise<StoredMessage[]> {
    return readRows(await this.#database.run(readStatement(key, options)))
  }

  async appendMessage(
    key: SessionKey,
    message: Message,
    options: AppendOptions = {},
  ): Promise<{ seq: number }> {
    const { stateDelta, fence } = options
    const append = { key, row: messageToRow(message), changes: splitDelta('stateDelta', stateDelta), fence }
    const seq = await this.#appendInOneTrip(append)
    return { seq: seq ?? (await this.#database.write(() => this.#append.appendTask(append))) }
  }

  async appendMessages(
    key: SessionKey,
    messages: readonly Message[],
    options: AppendOptions = {},
  ): Promise<{ seq: number }[]> {
    const { stateDelta, fence } = options
    const appended: { seq: number }[] = []
    for (let start = 0; start < messages.length; start = appended.length) {
      const rows = firstRows(messages, start)
      const isLast = start + rows.length === messages.length
      const changes = splitDelta('stateDelta', isLast ? stateDelta : undefined)
      const append = { key, rows, changes, fence }
      const seqs = await this.#database.write(() => this.#append.appendAllTask(append))
      appended.push(...seqs.map(seq => ({ seq })))
      if (!isLast) await new Promise(resume => setImmediate(resume))
    }
    return appended
  }

  async updateState(key: SessionKey, delta: State, options: { fence?: number } = {}): Promise<void> {
    const changes = splitDelta('delta', delta)
    await this.#database.write(() => this.#append.updateStateTask(key, changes, options.fence))
  }

  async forkSession(
    key: SessionKey,
    newSessionId: string,
    options: { throughSeq?: number } = {},
  ): Promise<Session> {
    const { throughSeq } = options
    const newKey = { ...key, sessionId: newSessionId }
    return this.#database.write(() => forkTask(this.#database.dialect, key, newKey, throughSeq))
  }

  async describeSession(key: SessionKey): Promise<SessionSummary | undefined> {
    const rows = await this.#database.run(describeStatement(key))
    return toPage(rows, key.appName, 1).sessions[0]
  }

  async renameSession(key: SessionKey, title: string): Promise<void> {
    const [session] = await this.#database.run(renameStatement(key, title))
    if (session === undefined) throw sessionNotFound(key)
  }

  async listSessions(query: ListQuery): Promise<SessionPage> {
    const limit = Math.min(query.limit ?? 50, 1000)
    return toPage(await this.#database.run(listStatement({ ...query, limit })), query.appName, limit)
  }

  async deleteSession(key: SessionKey): Promise<boolean> {
    return this.#database.write(() => deleteTask(this.#database.dialect, key))
  }

  async acquireLease(key: SessionKey, options: LeaseOptions = {}): Promise<Lease> {
    return this.#leases.acquire(key, options)
  }

  close(): Promise<void> {
    this.#closing ??= this.#leases.close().then(() => this.#database.close())
    return this.#closing
  }

  /**
   * The common append over a network, in one round trip. `undefined` leaves the rest (state, a replaced
   * message, the reason of a refusal) to the transaction.
   */
  async #appendInOneTrip(append: Append): Promise<number | undefined> {
    if (this.#database.dialect.name === 'sqlite' || append.changes.length > 0) return undefined
    try {
      const [row] = await this.#database.run(this.#append.appendStatement(append))
      return row === undefined ? undefined : numberIn(row, 'seq')
    } catch (error) {
      if (this.#database.isDuplicate(error)) return undefined
      throw error
    }
  }
}

/** The rows of one transaction: few enough that other writers and the event loop wait for milliseconds only. */
function firstRows(messages: readonly Message[], start: number): MessageRow[] {
  const rows: MessageRow[] = []
  for (let length = 0; rows.length < MOST_ROWS && length < MOST_LENGTH; ) {
    const message = messages[start + rows.length]
    if (message === undefined) break
    const row = messageToRow(message)
    length += row.values.reduce<number>(
      (all, value) => all + (typeof value === 'string' ? value.length : 8),
      0,
    )
    rows.push(row)
  }
  return rows
}

const MOST_ROWS = 128
const MOST_LENGTH = 500_000

/** Tickets in a table; the database's clock decides when they expire. */
class SqlTickets implements TicketStore {
  readonly #database: SqlDatabase
  readonly #texts: ReturnType<typeof ticketTexts>

  constructor(database: SqlDatabase) {
    this.#database = database
    this.#texts = ticketTexts(database.dialect)
  }

  async take(key: SessionKey, ttlMs: number): Promise<number> {
    return this.#database.write(() => this.#takeTask(key, ttlMs))
  }

  async isFirst(key: SessionKey, ticket: number): Promise<boolean> {
    const [first] = await this.#database.run(sql(this.#texts.first, ...namesOf(key)))
    if (numberIn(first, 'id') !== ticket) return false
    return (
      this.#database.dialect.name === 'sqlite' || this.#database.write(() => this.#succeedTask(key, ticket))
    )
  }

  async renew(key: SessionKey, ticket: number, ttlMs: number): Promise<boolean> {
    const rows = await this.#database.run(repeatableSql(this.#texts.renew, ttlMs, ticket, ...namesOf(key)))
    return rows.length > 0
  }

  async giveBack(key: SessionKey, ticket: number): Promise<void> {
    await this.#database.run(repeatableSql(this.#texts.giveBack, ticket, ...namesOf(key)))
  }

  /** Numbers must become visible in order, so taking another one for the same key waits for the commit. */
  *#takeTask(key: SessionKey, ttlMs: number): Task<number> {
    const { ticketLock } = this.#database.dialect
    if (ticketLock !== '') yield sql(ticketLock, JSON.stringify(namesOf(key)))
    yield sql(this.#texts.deleteExpired, ...namesOf(key))
    const [row] = yield sql(this.#texts.take, ...namesOf(key), ttlMs)
    return numberIn(row, 'id')
  }

  /**
   * Where writers run concurrently, an append that was checked under an older lease, or before there was any,
   * may not be committed yet. Deleting the older tickets waits for the former, locking the session for the latter.
   */
  *#succeedTask(key: SessionKey, ticket: number): Task<boolean> {
    yield sql(this.#texts.deleteOlder, ticket, ...namesOf(key))
    yield sql(this.#texts.lockSession, ...namesOf(key))
    const [first] = yield sql(this.#texts.first, ...namesOf(key))
    return numberIn(first, 'id') === ticket
  }
}

const OF_KEY = 'app_name = ? AND user_id = ? AND session_id = ?'

function ticketTexts({ now, forUpdate }: Dialect) {
  return {
    first: `SELECT id FROM lango_leases WHERE ${OF_KEY} AND expires_at > ${now} ORDER BY id LIMIT 1`,
    deleteExpired: `DELETE FROM lango_leases WHERE ${OF_KEY} AND expires_at <= ${now}`,
    deleteOlder: `DELETE FROM lango_leases WHERE id < ? AND ${OF_KEY}`,
    take: `INSERT INTO lango_leases (app_name, user_id, session_id, expires_at)
      VALUES (?, ?, ?, ${now} + CAST(? AS BIGINT)) RETURNING id`,
    renew: `UPDATE lango_leases SET expires_at = ${now} + CAST(? AS BIGINT)
      WHERE id = ? AND ${OF_KEY} AND expires_at > ${now} RETURNING id`,
    giveBack: `DELETE FROM lango_leases WHERE id = ? AND ${OF_KEY}`,
    lockSession: `SELECT pk FROM lango_sessions WHERE ${OF_KEY}${forUpdate}`,
  }
}

function namesOf({ appName, userId, sessionId }: SessionKey): [string, string, string] {
  return [appName, userId, sessionId]
}
