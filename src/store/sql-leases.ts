import type { SessionKey } from '../session/message.js'
import type { TicketDesk } from './hold-lease.js'
import { type Dialect, numberIn, repeatableSql, type SqlDatabase, sql, type Task } from './sql-database.js'

/** Tickets in a table, judged by the database's clock. */
export class SqlTickets implements TicketDesk {
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

  /** Numbers must become visible in their order, so whoever takes one for the same key waits for the commit. */
  *#takeTask(key: SessionKey, ttlMs: number): Task<number> {
    const { ticketLock } = this.#database.dialect
    if (ticketLock !== '') yield sql(ticketLock, JSON.stringify(namesOf(key)))
    yield sql(this.#texts.deleteExpired, ...namesOf(key))
    const [row] = yield sql(this.#texts.take, ...namesOf(key), ttlMs)
    return numberIn(row, 'id')
  }

  /**
   * Where writers run side by side, an append that was checked under an older lease, or before there was any,
   * may still be on its way. Deleting the older tickets waits for the former, locking the session for the latter.
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
