/** The SQL store over PostgreSQL, which is a network away: a session is loaded in one round trip. */
import { effectiveLimits } from '../session/budget.js'
import type { Session, SessionKey, State } from '../session/message.js'
import type { LoadOptions } from '../session/session-store.js'
import { MESSAGE_COLUMNS, MESSAGES, STARTS_TURN } from './rows.js'
import {
  type Row,
  SESSION_KEY,
  type SqlDatabase,
  type SqlValue,
  type Statement,
  sql,
} from './sql-database.js'
import { LARGEST_PAGE, sourceOf, Tail, toSession } from './sql-load.js'
import { SHARED_STATE } from './sql-state.js'
import { SqlStore } from './sql-store.js'
import { joinState, type StateScope } from './state-scopes.js'
import { restoreText } from './storable-text.js'

export class PostgresStore extends SqlStore {
  readonly #database: SqlDatabase

  constructor(database: SqlDatabase) {
    super(database)
    this.#database = database
  }

  override async loadSession(key: SessionKey, options: LoadOptions = {}): Promise<Session | undefined> {
    const loaded = readLoaded(key, await this.#database.run(loadStatement(key, options)), options)
    return loaded === 'more' ? super.loadSession(key, options) : loaded
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
        SELECT CAST(COALESCE(sum(tokens), 0) AS BIGINT) FROM ${MESSAGES} AS lango_messages WHERE session_pk = pk AND seq > ?
      ) END AS token_total,
      CASE WHEN turn_seq <= CAST(? AS BIGINT) THEN turn_seq ELSE COALESCE((
        SELECT seq FROM ${MESSAGES} AS lango_messages WHERE session_pk = pk AND seq <= ? AND flags & ${STARTS_TURN} <> 0
        ORDER BY seq DESC LIMIT 1
      ), 0) END AS turn_seq
    FROM lango_sessions WHERE ${SESSION_KEY} OFFSET 0
  ) AS s LEFT JOIN LATERAL (
    SELECT seq, ${MESSAGE_COLUMNS.join(', ')} FROM ${MESSAGES} AS lango_messages
    WHERE session_pk = s.pk AND seq <= s.message_count ORDER BY seq DESC LIMIT LEAST(GREATEST(
      LEAST(
        ceil(CAST(? AS DOUBLE PRECISION) * GREATEST(s.message_count, 1) / GREATEST(s.token_total, s.message_count, 1) * 1.1),
        CAST(? AS DOUBLE PRECISION)
      ) + 8,
      CASE WHEN s.turn_seq = 0 THEN 0 ELSE s.message_count - s.turn_seq + 1 END
    ), ${LARGEST_PAGE})
  ) AS m ON true ORDER BY m.seq DESC`
