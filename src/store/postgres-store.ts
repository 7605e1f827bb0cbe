/**
 * The SQL store over PostgreSQL, which is a network away: what is done most often takes one round trip. A statement that
 * does not suffice, or that something forbids, leaves the operation to the tasks of the SQL store.
 */
import { effectiveLimits } from '../session/budget.js'
import type { Session, SessionKey, State } from '../session/message.js'
import type { LoadOptions } from '../session/session-store.js'
import { CAST_PLACES, MESSAGE_COLUMNS, STARTS_TURN } from './rows.js'
import type { Append } from './sql-append.js'
import {
  type Dialect,
  namesOf,
  numberIn,
  type Row,
  repeatableSql,
  SESSION_KEY,
  type SqlDatabase,
  type SqlValue,
  type Statement,
  sql,
  touched,
} from './sql-database.js'
import { LARGEST_PAGE, sourceOf, Tail, toSession } from './sql-load.js'
import type { RunWriter, StepParts } from './sql-run-steps.js'
import { SHARED_STATE } from './sql-state.js'
import { SqlStore } from './sql-store.js'
import { joinState, type StateScope } from './state-scopes.js'
import { restoreText } from './storable-text.js'

export class PostgresStore extends SqlStore {
  readonly #database: SqlDatabase
  readonly #texts: ReturnType<typeof appendTexts>

  constructor(database: SqlDatabase) {
    super(database)
    this.#database = database
    this.#texts = appendTexts(database.dialect)
  }

  override async loadSession(key: SessionKey, options: LoadOptions = {}): Promise<Session | undefined> {
    const loaded = readLoaded(key, await this.#database.run(loadStatement(key, options)), options)
    return loaded === 'more' ? super.loadSession(key, options) : loaded
  }

  protected override async append(append: Append): Promise<number> {
    return (await this.#appendInOneTrip(append)) ?? super.append(append)
  }

  /** `undefined` leaves the rest (state, a replaced message, the reason of a refusal) to the transaction. */
  async #appendInOneTrip(append: Append): Promise<number | undefined> {
    if (append.changes.length > 0) return undefined
    try {
      const [row] = await this.#database.run(appendStatement(this.#texts, append))
      return row === undefined ? undefined : numberIn(row, 'seq')
    } catch (error) {
      if (this.#database.isDuplicate(error)) return undefined
      throw error
    }
  }

  protected override async newWriter(parts: StepParts): Promise<RunWriter> {
    const { PostgresRunWriter } = await import('./postgres-run-writer.js')
    return new PostgresRunWriter(this.#database, parts)
  }
}

/** The append of a new message without state; no row means that something forbids it. */
function appendStatement(texts: ReturnType<typeof appendTexts>, { key, row, fence }: Append): Statement {
  const names = namesOf(key)
  const counters = [row.tokens, row.flags & STARTS_TURN]
  // A message with an id replaces itself when it arrives twice.
  const statement = row.eventId === null ? sql : repeatableSql
  return fence === undefined
    ? statement(texts.unfenced, ...counters, ...names, ...names, ...names, ...row.values)
    : statement(texts.fenced, fence, ...names, ...counters, ...names, ...row.values)
}

/**
 * Updating the session's row numbers the message and makes other appends to the session wait. The ticket is
 * locked against deletion until the commit, and the next holder of a lease first deletes the expired tickets
 * before its own: so an append that was checked under a lease is committed before the next holder begins.
 */
function appendTexts(dialect: Dialect) {
  const { forKeyShare } = dialect
  const numbered = (condition: string) => `session AS (
      UPDATE lango_sessions SET message_count = message_count + 1, token_total = token_total + ?,
        turn_seq = CASE WHEN CAST(? AS INTEGER) = 0 THEN turn_seq ELSE message_count + 1 END, ${touched(dialect)}
      WHERE ${SESSION_KEY} AND ${condition}
      RETURNING pk, message_count
    )
    INSERT INTO lango_messages (session_pk, seq, ${MESSAGE_COLUMNS.join(', ')})
      SELECT pk, message_count, ${CAST_PLACES} FROM session RETURNING seq`
  return {
    // Tickets are those from before any wait for the session's row: when it has changed meanwhile, a run may have begun.
    unfenced: `WITH ${numbered(`NOT EXISTS (SELECT 1 FROM lango_leases WHERE ${SESSION_KEY})
        AND message_count = (SELECT message_count FROM lango_sessions WHERE ${SESSION_KEY})`)}`,
    fenced: `WITH ticket AS MATERIALIZED (
      SELECT id FROM lango_leases WHERE id = ? AND ${SESSION_KEY}${forKeyShare}
    ), ${numbered('EXISTS (SELECT 1 FROM ticket)')}`,
  }
}

/**
 * Session, state and the newest messages in one statement: one view of the data without a transaction.
 * The number of messages is that of `firstPage`.
 */
function loadStatement(key: SessionKey, options: LoadOptions): Statement {
  const { appName, userId, sessionId } = key
  const { budgetTokens, maxMessages = MOST } = effectiveLimits(options.budgetTokens, options.maxMessages)
  const through = options.throughSeq ?? MOST
  return sql(
    LOAD,
    ...[appName, appName, userId],
    ...[through, through, through, through, through],
    ...[appName, userId, sessionId],
    ...[Math.min(budgetTokens, MOST), Math.min(maxMessages, MOST)],
  )
}

/** Reads the rows of `loadStatement`; `'more'` when it returned too few messages. */
function readLoaded(
  key: SessionKey,
  rows: readonly Row[],
  options: LoadOptions,
): Session | undefined | 'more' {
  const [row] = rows
  if (row === undefined) return undefined
  const source = sourceOf(row)
  const { budgetTokens, maxMessages = Number.POSITIVE_INFINITY } = effectiveLimits(
    options.budgetTokens,
    options.maxMessages,
  )
  const tail = new Tail(source)
  // A session without messages is one row without a number.
  tail.add(row.seq === null ? [] : rows)
  if (tail.hasMore() && !tail.isEnough(budgetTokens, maxMessages)) return 'more'
  const fitted = tail.fit(options)
  if (fitted.missesCall && tail.hasMore()) return 'more'
  return toSession(key, row, {
    state: readStateJson(row.state),
    totalMessages: source.totalMessages,
    ...fitted,
  })
}

/** The reverse of `STATE_JSON`. */
function readStateJson(json: SqlValue | undefined): State {
  const entries = typeof json === 'string' ? (JSON.parse(json) as [StateScope, string, string][]) : []
  return joinState(entries.map(([scope, key, value]) => ({ scope, key: restoreText(key), json: value })))
}

/** The state of the session in `s` as one JSON text; values are texts in it. */
const STATE_JSON = `SELECT CAST(json_agg(json_build_array(scope, key, value)) AS TEXT) FROM (${SHARED_STATE} s.pk) AS state`

/** More than any session has, and an exact number in both languages. */
const MOST = 1e15

/** The state is in the first row only. The inner query is not merged into the outer one, so its sums are computed once. */
const LOAD = `SELECT s.*, m.*, CASE WHEN row_number() OVER (ORDER BY m.seq DESC) = 1 THEN (${STATE_JSON}) END AS state
  FROM (
    SELECT pk, created_at, updated_at, title, LEAST(message_count, CAST(? AS BIGINT)) AS message_count,
      token_total - CASE WHEN message_count <= CAST(? AS BIGINT) THEN 0 ELSE (
        SELECT CAST(COALESCE(sum(tokens), 0) AS BIGINT) FROM lango_messages WHERE session_pk = pk AND seq > ?
      ) END AS token_total,
      CASE WHEN turn_seq <= CAST(? AS BIGINT) THEN turn_seq ELSE COALESCE((
        SELECT seq FROM lango_messages WHERE session_pk = pk AND seq <= ? AND flags & ${STARTS_TURN} <> 0
        ORDER BY seq DESC LIMIT 1
      ), 0) END AS turn_seq
    FROM lango_sessions WHERE ${SESSION_KEY} OFFSET 0
  ) AS s LEFT JOIN LATERAL (
    SELECT seq, ${MESSAGE_COLUMNS.join(', ')} FROM lango_messages
    WHERE session_pk = s.pk AND seq <= s.message_count ORDER BY seq DESC LIMIT LEAST(GREATEST(
      LEAST(
        ceil(CAST(? AS DOUBLE PRECISION) * GREATEST(s.message_count, 1) / GREATEST(s.token_total, s.message_count, 1) * 1.1),
        CAST(? AS DOUBLE PRECISION)
      ) + 8,
      CASE WHEN s.turn_seq = 0 THEN 0 ELSE s.message_count - s.turn_seq + 1 END
    ), ${LARGEST_PAGE})
  ) AS m ON true ORDER BY m.seq DESC`
