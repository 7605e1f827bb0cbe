import { defined } from '../base/defined.js'
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
import { MESSAGE_COLUMNS, READABLE, rowToMessage } from './rows.js'
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
 * are locked against deletion until the commit.
 */
function* checkMayCreate(
  { forKeyShare }: Dialect,
  key: SessionKey,
  { fence, nestedIn }: CreateOptions,
): Task<void> {
  if (fence !== undefined) {
    const [ticket] = yield sql(
      `SELECT id FROM lango_leases WHERE id = ? AND ${SESSION_KEY}${forKeyShare}`,
      fence,
      key.appName,
      key.userId,
      key.sessionId,
    )
    if (ticket === undefined) throw leaseLost(key, fence)
  }
  if (nestedIn !== undefined) yield* findSession({ ...key, appName: nestedIn }, forKeyShare)
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

const READ_RANGE = `SELECT seq, ${MESSAGE_COLUMNS.join(', ')} FROM lango_messages
  WHERE session_pk = (SELECT pk FROM lango_sessions WHERE ${SESSION_KEY})`
const READ_BACKWARD = `${READ_RANGE} AND seq < ? ORDER BY seq DESC LIMIT ?`
const READ_FORWARD = `${READ_RANGE} AND seq > ? AND seq < ? ORDER BY seq LIMIT ?`

/** Text after a marker must be read whole to be restored; of all other text the beginning is enough. */
const LIST = `SELECT pk, user_id, session_id, message_count, token_total, created_at, updated_at, title, (
    SELECT timestamp FROM lango_messages WHERE session_pk = pk AND seq = message_count
  ) AS last_at, (
    SELECT CASE WHEN substr(content, 1, 1) = ? THEN content ELSE substr(content, 1, 500) END
    FROM lango_messages WHERE session_pk = pk AND seq > message_count - ${PREVIEW_WINDOW} AND flags & ${READABLE} <> 0
    ORDER BY seq DESC LIMIT 1
  ) AS preview
  FROM lango_sessions WHERE $conditions ORDER BY updated_hour DESC, updated_at DESC, pk DESC LIMIT ?`

export function* insertSession(dialect: Dialect, key: SessionKey, options: CreateOptions): Task<number> {
  const [row] = yield insertStatement(dialect, key, options)
  if (row === undefined) throw sessionExists(key)
  return numberIn(row, 'pk')
}

/** Creates the session if there is none. */
export function* ensureSession(dialect: Dialect, key: SessionKey, title: string | undefined): Task<void> {
  yield insertStatement(dialect, key, defined({ title }))
}

/** The clock is read once: a new session must not look modified. */
function insertStatement({ now }: Dialect, key: SessionKey, options: CreateOptions): Statement {
  return sql(
    `INSERT INTO lango_sessions
      (app_name, user_id, session_id, nested_in, title, search, message_count, token_total, turn_seq, created_at, updated_at,
        updated_hour)
      SELECT ?, ?, ?, ?, ?, ?, 0, 0, 0, clock.now, clock.now, clock.now / ${HOUR_MS} FROM (SELECT ${now} AS now) AS clock
      WHERE true ON CONFLICT DO NOTHING RETURNING pk`,
    key.appName,
    key.userId,
    key.sessionId,
    options.nestedIn ?? null,
    ...titleColumns(tidyTitle(options.title), key.sessionId),
  )
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
