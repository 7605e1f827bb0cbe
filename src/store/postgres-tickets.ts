/**
 * Tickets in PostgreSQL, where writers run concurrently. Numbers must become visible in order, so taking another one for
 * the same key waits for the commit. An append that was checked under an older lease, or before there was any, may not be
 * committed yet: deleting the older tickets waits for the former, locking the session for the latter. While an older
 * ticket is alive, the session is not locked, because its holder writes.
 */
import type { SessionKey } from '../session/message.js'
import { thisProcess } from './lease-process.js'
import { LOCKED_COLUMNS } from './sql-append.js'
import {
  joined,
  namesOf,
  type Row,
  repeatableSql,
  SESSION_KEY,
  type SessionNames,
  type SqlDatabase,
  type Statement,
  sql,
  type Task,
  type TicketLine,
} from './sql-database.js'
import {
  deleteExpiredText,
  firstTask,
  holdersStatement,
  isLowest,
  isOfGone,
  limitText,
  lineStatement,
  lineText,
  mayBeFirst,
  TICKET,
} from './sql-tickets.js'

export class PostgresTickets implements TicketLine {
  readonly #take: string
  readonly #line: string
  readonly #succeed: string

  constructor(now: string) {
    this.#take = `WITH turn AS MATERIALIZED (${TICKET_LOCK})
      ${TICKET} SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), ${now} + CAST(? AS BIGINT), CAST(? AS BIGINT),
        CAST(? AS TEXT) FROM turn RETURNING id`
    this.#line = lineText({ now })
    this.#succeed = `WITH limited AS (${limitText({ now })}), gone AS (${deleteExpiredText({ now })} RETURNING id),
      locked AS MATERIALIZED (
        SELECT pk FROM lango_sessions WHERE ${SESSION_KEY} AND NOT EXISTS (
          SELECT 1 FROM lango_leases WHERE ${SESSION_KEY} AND id < ? AND expires_at > ${now}
        ) FOR UPDATE
      ) SELECT (SELECT count(*) FROM lango_leases WHERE ${SESSION_KEY} AND id < ?) - (SELECT count(*) FROM gone) AS before,
        (SELECT count(*) FROM lango_leases WHERE ${SESSION_KEY} AND id = ?) AS own, (SELECT count(*) FROM locked) AS locked`
  }

  take(session: SessionNames, ttlMs: number): Statement {
    return sql(this.#take, JSON.stringify(session), ...session, ttlMs, ttlMs, thisProcess().holder)
  }

  async isFirst(database: SqlDatabase, key: SessionKey, ticket: number, isNew: boolean): Promise<boolean> {
    const names = namesOf(key)
    if (!isNew) {
      // Most polls find a holder that is on time: reading first avoids the locks.
      const [line] = await database.run(lineStatement(this.#line, names, ticket))
      if (!mayBeFirst(line)) return false
    }
    const [row] = await database.run(joined(this.#succeedStatement(names, ticket), key, { ticket }))
    if (isLowest(row)) return true
    const others = await database.run(holdersStatement(names, ticket))
    return others.some(isOfGone) && database.write(() => firstTask(this, names, ticket))
  }

  *succeed(session: SessionNames, ticket: number): Task<boolean> {
    const [row] = yield this.#succeedStatement(session, ticket)
    return isLowest(row)
  }

  #succeedStatement(session: SessionNames, ticket: number): Statement {
    const of = [...session, ticket]
    return repeatableSql(this.#succeed, ...of, ...of, ...session, ...of, ...of, ...of)
  }

  /** The ticket is locked first, as in deleting a session. */
  *lockSession(session: SessionNames, ticket: number, ticketOf: SessionNames): Task<Row | undefined> {
    const [own] = yield sql(OWN_TICKET, ticket, ...ticketOf)
    const [row] = yield sql(SESSION, ...session)
    return row && { ...row, ticket: own === undefined ? null : ticket }
  }
}

/** Released when the transaction ends. */
export const TICKET_LOCK = 'SELECT pg_advisory_xact_lock(hashtextextended(?, 1280329301))'

// Also after it has expired: the next holder deletes the ticket before it begins.
const OWN_TICKET = `SELECT id FROM lango_leases WHERE id = ? AND ${SESSION_KEY} FOR KEY SHARE`
const SESSION = `SELECT ${LOCKED_COLUMNS} FROM lango_sessions WHERE ${SESSION_KEY} FOR UPDATE`
