import type { SessionKey } from '../session/message.js'
import type { TicketStore } from './hold-lease.js'
import { isGone, thisProcess } from './lease-process.js'
import {
  type Dialect,
  joined,
  numberIn,
  type Row,
  repeatableSql,
  type SqlDatabase,
  type Statement,
  sql,
  type Task,
  textIn,
} from './sql-database.js'

/** Tickets in a table; the database's clock decides when they expire. */
export class SqlTickets implements TicketStore {
  readonly #database: SqlDatabase
  readonly #texts: ReturnType<typeof ticketTexts>

  constructor(database: SqlDatabase) {
    this.#database = database
    this.#texts = ticketTexts(database.dialect)
  }

  async take(key: SessionKey, ttlMs: number): Promise<number> {
    const [row] = await this.#database.run(joined(this.#takeStatement(key, ttlMs), key, 'taking'))
    return numberIn(row, 'id')
  }

  *takeTask(key: SessionKey, ttlMs: number): Task<number> {
    const [row] = yield this.#takeStatement(key, ttlMs)
    return numberIn(row, 'id')
  }

  async isFirst(key: SessionKey, ticket: number, isNew: boolean): Promise<boolean> {
    const names = namesOf(key)
    const isConcurrent = this.#database.dialect.name === 'postgres'
    if (!isConcurrent || !isNew) {
      // Most polls find a holder that is on time: reading first avoids the locks.
      const [line] = await this.#database.run(lineStatement(this.#texts.line, names, ticket))
      if (numberIn(line, 'own') === 0) return false
      if (numberIn(line, 'alive') > 0 && !isGone(textIn(line, 'other'))) return false
      if (!isConcurrent && numberIn(line, 'before') === 0) return true
    }
    if (!isConcurrent) return this.#database.write(() => this.firstTask(key, ticket))
    const [row] = await this.#database.run(joined(this.#succeedStatement(names, ticket), key, { ticket }))
    if (isLowest(row)) return true
    const others = await this.#database.run(holdersStatement(names, ticket))
    return others.some(isOfGone) && this.#database.write(() => this.firstTask(key, ticket))
  }

  /** Processes of this machine that have tickets and no longer exist. */
  async goneHolders(): Promise<string[]> {
    const { holder, machine } = thisProcess()
    const rows = await this.#database.run(
      sql(
        'SELECT DISTINCT holder FROM lango_leases WHERE holder <> ? AND substr(holder, 1, ?) = ?',
        ...[holder, machine.length, machine],
      ),
    )
    return rows.filter(isOfGone).map(row => textIn(row, 'holder'))
  }

  #takeStatement(key: SessionKey, ttlMs: number): Statement {
    const names = namesOf(key)
    const { holder } = thisProcess()
    return this.#database.dialect.name === 'sqlite'
      ? sql(this.#texts.take, ...names, ttlMs, ttlMs, holder)
      : sql(this.#texts.takeInOrder, JSON.stringify(names), ...names, ttlMs, ttlMs, holder)
  }

  #succeedStatement(names: readonly string[], ticket: number): Statement {
    const of = [...names, ticket]
    return repeatableSql(this.#texts.succeed, ...of, ...of, ...names, ...of, ...of, ...of)
  }

  async renew(tickets: readonly number[]): Promise<ReadonlySet<number>> {
    const rows = await this.#database.run(repeatableSql(this.#texts.renew, JSON.stringify(tickets)))
    return new Set(rows.map(row => numberIn(row, 'id')))
  }

  async giveBack(key: SessionKey, ticket: number): Promise<void> {
    await this.#database.run(joined(this.giveBackStatement(key, ticket), key, { ticket }))
  }

  /** As `isFirst`, within a transaction of the caller's. */
  *firstTask(key: SessionKey, ticket: number): Task<boolean> {
    const names = namesOf(key)
    if (yield* this.#succeedTask(names, ticket)) return true
    return (yield* dropGoneTask(names, ticket)) && (yield* this.#succeedTask(names, ticket))
  }

  /** Whether every ticket before this one has expired, or its process is gone. */
  *freeTask(key: SessionKey, ticket: number): Task<boolean> {
    const names = namesOf(key)
    yield sql(this.#texts.limit, ...names, ticket)
    const validBefore = sql(this.#texts.validBefore, ...names, ticket)
    if ((yield validBefore).length === 0) return true
    return (yield* dropGoneTask(names, ticket)) && (yield validBefore).length === 0
  }

  giveBackStatement(key: SessionKey, ticket: number): Statement {
    return repeatableSql(this.#texts.giveBack, ticket, ...namesOf(key))
  }

  /** Limits tickets that were stored before the clock was set back. */
  async limit(key: SessionKey): Promise<void> {
    await this.#database.run(repeatableSql(this.#texts.limit, ...namesOf(key), Number.MAX_SAFE_INTEGER))
  }

  *#succeedTask(names: readonly string[], ticket: number): Task<boolean> {
    if (this.#database.dialect.name === 'postgres') {
      const [row] = yield this.#succeedStatement(names, ticket)
      return isLowest(row)
    }
    const [found] = yield lineStatement(this.#texts.line, names, ticket)
    if (numberIn(found, 'before') === 0) return isLowest(found)
    yield sql(this.#texts.limit, ...names, ticket)
    yield sql(this.#texts.deleteExpired, ...names, ticket)
    const [line] = yield lineStatement(this.#texts.line, names, ticket)
    return isLowest(line)
  }
}

/** Deletes tickets before this one whose processes are gone; `false` when there are none. */
function* dropGoneTask(names: readonly string[], ticket: number): Task<boolean> {
  const gone = (yield holdersStatement(names, ticket)).filter(isOfGone)
  for (const row of gone) yield sql('DELETE FROM lango_leases WHERE id = ?', numberIn(row, 'id'))
  return gone.length > 0
}

/** The tickets before this one that other processes of this machine have taken. */
function holdersStatement(names: readonly string[], ticket: number): Statement {
  const { holder, machine } = thisProcess()
  return sql(
    `SELECT id, holder FROM lango_leases WHERE ${OF_KEY} AND id < ? AND holder <> ? AND substr(holder, 1, ?) = ?
      ORDER BY id LIMIT 100`,
    ...[...names, ticket, holder, machine.length, machine],
  )
}

function isOfGone(row: Row): boolean {
  return isGone(textIn(row, 'holder'))
}

function lineStatement(text: string, names: readonly string[], ticket: number): Statement {
  const { holder, machine } = thisProcess()
  return sql(text, ...[ticket, ticket, ticket, ticket, holder, machine.length, machine, ...names])
}

function isLowest(line: Row | undefined): boolean {
  return numberIn(line, 'before') === 0 && numberIn(line, 'own') === 1
}

const OF_KEY = 'app_name = ? AND user_id = ? AND session_id = ?'
/** Tickets of older releases have no time of their own: they had the default. */
const TTL = 'COALESCE(ttl_ms, 10000)'
const TICKET = 'INSERT INTO lango_leases (app_name, user_id, session_id, expires_at, ttl_ms, holder)'

/** A ticket that is valid for longer than its time was stored before the clock was set back. */
export function isBelievable(now: string): string {
  return `expires_at <= ${now} + ${TTL}`
}

/** Limits tickets that were stored before the clock was set back: those of a key before a ticket. */
export function limitText({ now }: Dialect): string {
  return `UPDATE lango_leases SET expires_at = ${now} + ${TTL}
    WHERE ${OF_KEY} AND id < ? AND expires_at > ${now} + ${TTL}`
}

/** Deletes the expired tickets of a key before a ticket. */
export function deleteExpiredText({ now }: Dialect): string {
  return `DELETE FROM lango_leases WHERE ${OF_KEY} AND id < ? AND expires_at <= ${now}`
}

function ticketTexts(dialect: Dialect) {
  const { name, now, eachValue } = dialect
  const [limit, deleteExpired] = [limitText(dialect), deleteExpiredText(dialect)]
  // As groups of writes do.
  const inOrder = name === 'postgres' ? ' ORDER BY id FOR NO KEY UPDATE' : ''
  return {
    limit,
    deleteExpired,
    validBefore: `SELECT id FROM lango_leases WHERE ${OF_KEY} AND id < ? AND expires_at > ${now} LIMIT 1`,
    take: `${TICKET} VALUES (?, ?, ?, ${now} + CAST(? AS BIGINT), CAST(? AS BIGINT), NULLIF(?, '')) RETURNING id`,
    line: `SELECT count(CASE WHEN id = ? THEN 1 END) AS own, count(CASE WHEN id < ? THEN 1 END) AS before,
      count(CASE WHEN id < ? AND expires_at > ${now} AND expires_at <= ${now} + ${TTL} THEN 1 END) AS alive,
      min(CASE WHEN id < ? AND holder <> ? AND substr(holder, 1, ?) = ? THEN holder END) AS other
      FROM lango_leases WHERE ${OF_KEY}`,
    renew: `UPDATE lango_leases SET expires_at = ${now} + ${TTL} WHERE id IN (
        SELECT id FROM lango_leases WHERE id IN (SELECT CAST(value AS BIGINT) FROM ${eachValue})${inOrder}
      ) RETURNING id`,
    giveBack: `DELETE FROM lango_leases WHERE id = ? AND ${OF_KEY}`,
    ...(name === 'postgres' ? concurrentTexts(now, limit, deleteExpired) : { takeInOrder: '', succeed: '' }),
  }
}

/**
 * Where writers run concurrently. Numbers must become visible in order, so taking another one for the same key waits
 * for the commit. An append that was checked under an older lease, or before there was any, may not be committed yet:
 * deleting the older tickets waits for the former, locking the session for the latter. While an older ticket is alive,
 * the session is not locked, because its holder writes.
 */
function concurrentTexts(now: string, limit: string, deleteExpired: string) {
  return {
    takeInOrder: `WITH turn AS MATERIALIZED (SELECT pg_advisory_xact_lock(hashtextextended(?, 1280329301)))
      ${TICKET} SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), ${now} + CAST(? AS BIGINT), CAST(? AS BIGINT),
        NULLIF(CAST(? AS TEXT), '') FROM turn RETURNING id`,
    succeed: `WITH limited AS (${limit}), gone AS (${deleteExpired} RETURNING id), locked AS MATERIALIZED (
        SELECT pk FROM lango_sessions WHERE ${OF_KEY} AND NOT EXISTS (
          SELECT 1 FROM lango_leases WHERE ${OF_KEY} AND id < ? AND expires_at > ${now}
        ) FOR UPDATE
      ) SELECT (SELECT count(*) FROM lango_leases WHERE ${OF_KEY} AND id < ?) - (SELECT count(*) FROM gone) AS before,
        (SELECT count(*) FROM lango_leases WHERE ${OF_KEY} AND id = ?) AS own, (SELECT count(*) FROM locked) AS locked`,
  }
}

function namesOf({ appName, userId, sessionId }: SessionKey): [string, string, string] {
  return [appName, userId, sessionId]
}
