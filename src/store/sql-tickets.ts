import type { SessionKey } from '../session/message.js'
import type { TicketStore } from './hold-lease.js'
import { isGone, thisProcess } from './lease-process.js'
import {
  type Dialect,
  joined,
  namesOf,
  numberIn,
  type Row,
  repeatableSql,
  type SessionNames,
  type SqlDatabase,
  type Statement,
  sql,
  type Task,
  type TicketLine,
  textIn,
} from './sql-database.js'

/** Tickets in a table; the database's clock decides when they expire. */
export class SqlTickets implements TicketStore {
  readonly #database: SqlDatabase
  readonly #line: TicketLine
  readonly #texts: ReturnType<typeof ticketTexts>

  constructor(database: SqlDatabase) {
    this.#database = database
    this.#line = database.dialect.tickets
    this.#texts = ticketTexts(database.dialect)
  }

  async take(key: SessionKey, ttlMs: number): Promise<number> {
    const [row] = await this.#database.run(joined(this.#line.take(namesOf(key), ttlMs), key, 'taking'))
    return numberIn(row, 'id')
  }

  *takeTask(key: SessionKey, ttlMs: number): Task<number> {
    const [row] = yield this.#line.take(namesOf(key), ttlMs)
    return numberIn(row, 'id')
  }

  isFirst(key: SessionKey, ticket: number, isNew: boolean): Promise<boolean> {
    return this.#line.isFirst(this.#database, key, ticket, isNew)
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

  async renew(tickets: readonly number[]): Promise<ReadonlySet<number>> {
    const rows = await this.#database.run(repeatableSql(this.#texts.renew, JSON.stringify(tickets)))
    return new Set(rows.map(row => numberIn(row, 'id')))
  }

  async giveBack(key: SessionKey, ticket: number): Promise<void> {
    await this.#database.run(joined(this.giveBackStatement(key, ticket), key, { ticket }))
  }

  /** As `isFirst`, within a transaction of the caller's. */
  *firstTask(key: SessionKey, ticket: number): Task<boolean> {
    return yield* firstTask(this.#line, namesOf(key), ticket)
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
}

/** Deletes tickets before one that have expired, or whose processes are gone. True if it is the first then. */
export function* firstTask(line: TicketLine, names: SessionNames, ticket: number): Task<boolean> {
  if (yield* line.succeed(names, ticket)) return true
  return (yield* dropGoneTask(names, ticket)) && (yield* line.succeed(names, ticket))
}

/** Deletes tickets before this one whose processes are gone; `false` when there are none. */
function* dropGoneTask(names: readonly string[], ticket: number): Task<boolean> {
  const gone = (yield holdersStatement(names, ticket)).filter(isOfGone)
  for (const row of gone) yield sql('DELETE FROM lango_leases WHERE id = ?', numberIn(row, 'id'))
  return gone.length > 0
}

/** The tickets before this one that other processes of this machine have taken. */
export function holdersStatement(names: readonly string[], ticket: number): Statement {
  const { holder, machine } = thisProcess()
  return sql(
    `SELECT id, holder FROM lango_leases WHERE ${OF_KEY} AND id < ? AND holder <> ? AND substr(holder, 1, ?) = ?
      ORDER BY id LIMIT 100`,
    ...[...names, ticket, holder, machine.length, machine],
  )
}

export function isOfGone(row: Row): boolean {
  return isGone(textIn(row, 'holder'))
}

/** The number of tickets of a session before one, those among them that are valid, and a process that has one. */
export function lineStatement(text: string, names: SessionNames, ticket: number): Statement {
  const { holder, machine } = thisProcess()
  return sql(text, ...[ticket, ticket, ticket, ticket, holder, machine.length, machine, ...names])
}

/** False while a ticket before it is valid and its process exists. */
export function mayBeFirst(line: Row | undefined): boolean {
  if (numberIn(line, 'own') === 0) return false
  return numberIn(line, 'alive') === 0 || isGone(textIn(line, 'other'))
}

export function isLowest(line: Row | undefined): boolean {
  return numberIn(line, 'before') === 0 && numberIn(line, 'own') === 1
}

const OF_KEY = 'app_name = ? AND user_id = ? AND session_id = ?'
export const TICKET = 'INSERT INTO lango_leases (app_name, user_id, session_id, expires_at, ttl_ms, holder)'

/** A ticket that is valid for longer than its time was stored before the clock was set back. */
export function isBelievable(now: string): string {
  return `expires_at <= ${now} + ttl_ms`
}

/** Limits tickets that were stored before the clock was set back: those of a key before a ticket. */
export function limitText({ now }: Pick<Dialect, 'now'>): string {
  return `UPDATE lango_leases SET expires_at = ${now} + ttl_ms
    WHERE ${OF_KEY} AND id < ? AND expires_at > ${now} + ttl_ms`
}

/** Deletes the expired tickets of a key before a ticket. */
export function deleteExpiredText({ now }: Pick<Dialect, 'now'>): string {
  return `DELETE FROM lango_leases WHERE ${OF_KEY} AND id < ? AND expires_at <= ${now}`
}

/** Reads the line of a session, for `lineStatement`. */
export function lineText({ now }: Pick<Dialect, 'now'>): string {
  return `SELECT count(CASE WHEN id = ? THEN 1 END) AS own, count(CASE WHEN id < ? THEN 1 END) AS before,
      count(CASE WHEN id < ? AND expires_at > ${now} AND expires_at <= ${now} + ttl_ms THEN 1 END) AS alive,
      min(CASE WHEN id < ? AND holder <> ? AND substr(holder, 1, ?) = ? THEN holder END) AS other
      FROM lango_leases WHERE ${OF_KEY}`
}

function ticketTexts(dialect: Dialect) {
  const { now, eachValue, forNoKeyUpdate } = dialect
  return {
    limit: limitText(dialect),
    validBefore: `SELECT id FROM lango_leases WHERE ${OF_KEY} AND id < ? AND expires_at > ${now} LIMIT 1`,
    // Locked in the order of groups of writes.
    renew: `UPDATE lango_leases SET expires_at = ${now} + ttl_ms WHERE id IN (
        SELECT id FROM lango_leases WHERE id IN (SELECT CAST(value AS BIGINT) FROM ${eachValue}) ORDER BY id${forNoKeyUpdate}
      ) RETURNING id`,
    giveBack: `DELETE FROM lango_leases WHERE id = ? AND ${OF_KEY}`,
  }
}
