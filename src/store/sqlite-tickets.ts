/** Tickets in SQLite. A write transaction runs alone, so reading the line of a session is enough to keep its order. */
import type { SessionKey } from '../session/message.js'
import { thisProcess } from './lease-process.js'
import { LOCKED_COLUMNS } from './sql-append.js'
import {
  namesOf,
  numberIn,
  type Row,
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
  isLowest,
  limitText,
  lineStatement,
  lineText,
  mayBeFirst,
  TICKET,
} from './sql-tickets.js'

export class SqliteTickets implements TicketLine {
  readonly #take: string
  readonly #line: string
  readonly #limit: string
  readonly #deleteExpired: string

  constructor(now: string) {
    this.#take = `${TICKET} VALUES (?, ?, ?, ${now} + CAST(? AS BIGINT), CAST(? AS BIGINT), ?) RETURNING id`
    this.#line = lineText({ now })
    this.#limit = limitText({ now })
    this.#deleteExpired = deleteExpiredText({ now })
  }

  take(session: SessionNames, ttlMs: number): Statement {
    return sql(this.#take, ...session, ttlMs, ttlMs, thisProcess().holder)
  }

  /** Most polls find a holder that is on time: reading first avoids the write lock. */
  async isFirst(database: SqlDatabase, key: SessionKey, ticket: number): Promise<boolean> {
    const names = namesOf(key)
    const [line] = await database.run(lineStatement(this.#line, names, ticket))
    if (!mayBeFirst(line)) return false
    return numberIn(line, 'before') === 0 || database.write(() => firstTask(this, names, ticket))
  }

  *succeed(session: SessionNames, ticket: number): Task<boolean> {
    const [found] = yield lineStatement(this.#line, session, ticket)
    if (numberIn(found, 'before') === 0) return isLowest(found)
    yield sql(this.#limit, ...session, ticket)
    yield sql(this.#deleteExpired, ...session, ticket)
    const [line] = yield lineStatement(this.#line, session, ticket)
    return isLowest(line)
  }

  *lockSession(session: SessionNames, ticket: number, ticketOf: SessionNames): Task<Row | undefined> {
    const [row] = yield sql(SESSION_UNDER, ticket, ...ticketOf, ...session)
    return row
  }
}

const SESSION_UNDER = `SELECT ${LOCKED_COLUMNS}, (SELECT id FROM lango_leases WHERE id = ? AND ${SESSION_KEY})
  AS ticket FROM lango_sessions WHERE ${SESSION_KEY}`
