import { tidyTitle } from '../base/title.js'
import type { Session, SessionKey, StoredMessage } from '../session/message.js'
import type {
  CreateOptions,
  ListQuery,
  ReadOptions,
  SessionPage,
  SessionSummary,
} from '../session/session-store.js'
import {
  type PageCursor,
  PREVIEW_WINDOW,
  previewOf,
  readCursor,
  searchPattern,
  titleColumns,
  titleIn,
  writeCursor,
} from './listing.js'
import { keyText } from './log/log-rows.js'
import { MESSAGE_COLUMNS, MESSAGES, READABLE, rowToMessage } from './rows.js'
import {
  type Dialect,
  HOUR_MS,
  namesOf,
  numberIn,
  type Row,
  SESSION_KEY,
  type SqlValue,
  type Statement,
  sql,
  type Task,
  textIn,
} from './sql-database.js'
import { findSession, viewSession } from './sql-load.js'
import { applyState } from './sql-state.js'
import type { StateChange } from './state-scopes.js'
import { restoreText } from './storable-text.js'
import { leaseLost, sessionExists } from './store-errors.js'

export function* createTask(
  dialect: Dialect,
  key: SessionKey,
  changes: readonly StateChange[],
  options: CreateOptions = {},
): Task<Session> {
  yield* checkMayCreate(dialect, key, options)
  const pk = yield* insertSession(dialect, key, options)
  yield* applyState(key, pk, changes)
  return yield* viewSession(key, yield* findSession(key), {})
}

/**
 * What a run creates must not outlive the deletion of what the run belongs to: the lease, or the outer session. Both
 * are locked until the commit.
 */
function* checkMayCreate(dialect: Dialect, key: SessionKey, { fence, nestedIn }: CreateOptions): Task<void> {
  if (fence !== undefined) {
    const names = namesOf(key)
    yield* keyLockTask(dialect, key)
    // A session that exists has the lease in its row; it is found when it is to be created.
    const [lease] = yield sql(
      `SELECT fence FROM lango_leases WHERE ${SESSION_KEY}${dialect.forUpdate}`,
      ...names,
    )
    const [session] = yield sql(`SELECT fence FROM lango_sessions WHERE ${SESSION_KEY}`, ...names)
    if (numberIn(session ?? lease, 'fence') !== fence) throw leaseLost(key, fence)
  }
  if (nestedIn !== undefined) yield* findSession({ ...key, appName: nestedIn }, dialect.forKeyShare)
}

export function renameStatement(key: SessionKey, title: string): Statement {
  return sql(
    `UPDATE lango_sessions SET title = ?, search = ? WHERE ${SESSION_KEY} RETURNING pk`,
    ...titleColumns(tidyTitle(title), key.sessionId),
    key.appName,
    key.userId,
    key.sessionId,
  )
}

export function readStatement(
  key: SessionKey,
  { afterSeq, beforeSeq, limit = 1000 }: ReadOptions,
): Statement {
  const names = namesOf(key)
  // With beforeSeq alone the last ones are meant; `readRows` puts them into order again.
  if (beforeSeq !== undefined && afterSeq === undefined) return sql(READ_BACKWARD, ...names, beforeSeq, limit)
  return sql(READ_FORWARD, ...names, afterSeq ?? 0, beforeSeq ?? Number.MAX_SAFE_INTEGER, limit)
}

export function readRows(rows: readonly Row[]): StoredMessage[] {
  return rows.map(rowToMessage).sort((one, other) => one.seq - other.seq)
}

export function listStatement(query: ListQuery & { limit: number }): Statement {
  const { appName, userId, cursor, limit, search } = query
  const conditions = ['app_name = ?', 'nested_in IS NULL']
  const parameters: SqlValue[] = [appName]
  if (userId !== undefined) {
    conditions.push('user_id = ?')
    parameters.push(userId)
  }
  if (search !== undefined && search !== '') {
    conditions.push("search LIKE ? ESCAPE '!'")
    parameters.push(searchPattern(search))
  }
  if (cursor !== undefined) {
    const { updatedAt, pk } = readCursor(cursor)
    conditions.push('updated_hour <= ? AND (updated_at, pk) < (?, ?)')
    parameters.push(Math.floor(updatedAt / HOUR_MS), updatedAt, pk)
  }
  // One row more than the limit shows whether there is a next page.
  return sql(LIST.replace('$conditions', conditions.join(' AND ')), '\u0001', ...parameters, limit + 1)
}

export function describeStatement({ appName, userId, sessionId }: SessionKey): Statement {
  return sql(LIST.replace('$conditions', SESSION_KEY), '\u0001', appName, userId, sessionId, 1)
}

export function toPage(rows: readonly Row[], appName: string, limit: number): SessionPage {
  const shown = rows.slice(0, limit)
  const last = rows.length > limit ? shown.at(-1) : undefined
  const sessions = shown.map(row => toSummary(row, appName))
  return { sessions, ...(last === undefined ? {} : { nextCursor: writeCursor(toCursor(last)) }) }
}

const READ_RANGE = `SELECT seq, ${MESSAGE_COLUMNS.join(', ')} FROM ${MESSAGES} AS lango_messages
  WHERE session_pk = (SELECT pk FROM lango_sessions WHERE ${SESSION_KEY})`
const READ_BACKWARD = `${READ_RANGE} AND seq < ? ORDER BY seq DESC LIMIT ?`
const READ_FORWARD = `${READ_RANGE} AND seq > ? AND seq < ? ORDER BY seq LIMIT ?`

/** Text after a marker must be read whole to be restored; of all other text the beginning is enough. */
const LIST = `SELECT pk, user_id, session_id, message_count, token_total, created_at, updated_at, title, (
    SELECT timestamp FROM ${MESSAGES} AS lango_messages WHERE session_pk = pk AND seq = message_count
  ) AS last_at, (
    SELECT CASE WHEN substr(content, 1, 1) = ? THEN content ELSE substr(content, 1, 500) END
    FROM ${MESSAGES} AS lango_messages WHERE session_pk = pk AND seq > message_count - ${PREVIEW_WINDOW} AND flags & ${READABLE} <> 0
    ORDER BY seq DESC LIMIT 1
  ) AS preview
  FROM lango_sessions WHERE $conditions ORDER BY updated_hour DESC, updated_at DESC, pk DESC LIMIT ?`

export function* insertSession(dialect: Dialect, key: SessionKey, options: CreateOptions): Task<number> {
  yield* keyLockTask(dialect, key)
  const [insert, ...further] = createSessionStatements(dialect, key, options)
  const [row] = yield insert
  if (row === undefined) throw sessionExists(key)
  for (const statement of further) yield statement
  return numberIn(row, 'pk')
}

/** Until the commit, the key gets neither a session nor a lease from others. */
export function* keyLockTask(dialect: Dialect, key: SessionKey): Task<void> {
  for (const statement of dialect.keyLock(keyText(key))) yield statement
}

/**
 * Creates a session if there is none, and the condition holds, which may name the lease of the key `l`. A new session
 * takes over that lease. The rows of the first statement: the session, if it is new. The clock is read once: a new
 * session must not look modified.
 */
export function createSessionStatements(
  { now }: Dialect,
  key: SessionKey,
  { title, nestedIn }: Pick<CreateOptions, 'title' | 'nestedIn'>,
  condition: { text: string; parameters: readonly SqlValue[] } = { text: 'true', parameters: [] },
): readonly [insert: Statement, move: Statement] {
  const names = namesOf(key)
  const insert = sql(
    `INSERT INTO lango_sessions (app_name, user_id, session_id, nested_in, title, search, created_at, updated_at,
        updated_hour, fence, holder, lease_until, lease_ms)
      SELECT ${'CAST(? AS TEXT), '.repeat(6)} clock.now, clock.now, clock.now / ${HOUR_MS},
        COALESCE(l.fence, 0), COALESCE(l.holder, ''), COALESCE(l.lease_until, 0), COALESCE(l.lease_ms, 0)
      FROM (SELECT ${now} AS now) AS clock
        LEFT JOIN lango_leases l ON l.app_name = ? AND l.user_id = ? AND l.session_id = ?
      WHERE ${condition.text} ON CONFLICT (app_name, user_id, session_id) DO NOTHING RETURNING pk`,
    ...[...names, nestedIn ?? null, ...titleColumns(tidyTitle(title), key.sessionId)],
    ...[...names, ...condition.parameters],
  )
  const move = sql(
    `DELETE FROM lango_leases WHERE ${SESSION_KEY} AND EXISTS (SELECT 1 FROM lango_sessions WHERE ${SESSION_KEY})`,
    ...[...names, ...names],
  )
  return [insert, move]
}

function toSummary(row: Row, appName: string): SessionSummary {
  const preview = row.preview
  return {
    key: { appName, userId: textIn(row, 'user_id'), sessionId: textIn(row, 'session_id') },
    totalMessages: numberIn(row, 'message_count'),
    totalTokens: numberIn(row, 'token_total'),
    createdAt: numberIn(row, 'created_at'),
    updatedAt: numberIn(row, 'updated_at'),
    ...(row.last_at === null ? {} : { lastMessageAt: numberIn(row, 'last_at') }),
    ...titleIn(row.title),
    ...(typeof preview === 'string' ? { preview: previewOf(restoreText(preview)) } : {}),
  }
}

function toCursor(row: Row): PageCursor {
  return { updatedAt: numberIn(row, 'updated_at'), pk: numberIn(row, 'pk') }
}
