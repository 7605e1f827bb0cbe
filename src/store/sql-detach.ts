/**
 * Taking sessions and their runs away from their owner, in one transaction: from then on they can neither be read nor be
 * written to, and their rows may be deleted at leisure.
 */
import type { SessionKey } from '../session/message.js'
import type { EraseCounts } from '../session/session-store.js'
import {
  DAY_MS,
  type Dialect,
  HOUR_MS,
  namesOf,
  numberIn,
  type Row,
  SESSION_KEY,
  type SessionNames,
  type Statement,
  sql,
  type Task,
  textIn,
} from './sql-database.js'
import { keyLockTask } from './sql-sessions.js'
import { variantOf } from './sql-variants.js'

/** Where data of a user is kept. A new table that holds any is added here, and nowhere else. */
export const PERSONAL_TABLES: readonly PersonalTable[] = [
  { kind: 'entries', table: 'lango_entries', belongsTo: 'session' },
  { kind: 'stateKeys', table: 'lango_session_state', belongsTo: 'session' },
  { kind: 'toolCalls', table: 'lango_tool_calls', belongsTo: 'session' },
  { kind: 'observations', table: 'lango_observations', belongsTo: 'session' },
  { kind: 'indexed', table: 'lango_memory_documents', belongsTo: 'session' },
  { kind: 'indexed', table: 'lango_memory_terms', belongsTo: 'session' },
  { kind: 'indexed', table: 'lango_memory', belongsTo: 'session' },
  { kind: 'requestParts', table: 'lango_request_parts', belongsTo: 'session' },
  // Those of users have no session.
  { kind: 'artifacts', table: 'lango_artifacts', belongsTo: 'session' },
  { kind: 'artifactPieces', table: 'lango_artifact_pieces', belongsTo: 'session' },
  { kind: 'artifacts', table: 'lango_artifacts', belongsTo: 'user' },
  { kind: 'artifactPieces', table: 'lango_artifact_pieces', belongsTo: 'user' },
  // Of keys that have no session: the lease of a session is in its row.
  { kind: 'leases', table: 'lango_leases', belongsTo: 'user' },
  { kind: 'stateKeys', table: 'lango_user_state', belongsTo: 'user' },
  // A deleted session leaves what it cost: the budget of the day must not grow by deleting.
  { kind: 'usage', table: 'lango_usage', belongsTo: 'user' },
  { kind: 'usage', table: 'lango_spend', belongsTo: 'user' },
  { kind: 'usage', table: 'lango_reservations', belongsTo: 'user' },
]

interface PersonalTable {
  kind: keyof EraseCounts
  table: string
  belongsTo: keyof typeof OWNER
}

/** The columns that name the owner of a row. */
export const OWNER = {
  session: 'session_pk = ?',
  user: 'app_name = ? AND user_id = ?',
} as const

/** A session that no longer has an owner, and whose rows remain to be deleted. */
export interface Detached {
  pk: number
  /** The sessions whose logs have messages of this one, because it is nested in them. */
  logs: readonly number[]
  runs: number
  /** Events in the rows of its runs. */
  events: number
  leases: number
  /** The app of a session that was nested in another. */
  nestedApp: string
}

export const NOTHING: Omit<Detached, 'pk'> = { logs: [], runs: 0, events: 0, leases: 0, nestedApp: '' }

/** The owner of a copy that is not complete yet. */
export const COPYING = { appName: '', userId: 'copying' }

/** Detaches a session and those nested in it, and ends a lease of its key. */
export function* detachSessionTask(dialect: Dialect, key: SessionKey): Task<Detached[]> {
  const names = namesOf(key)
  // The key gets no session, and no other lease, until the commit.
  yield* keyLockTask(dialect, key)
  const [session] = yield sql(
    `SELECT ${COLUMNS} FROM lango_sessions WHERE ${SESSION_KEY}${dialect.forUpdate}`,
    ...names,
  )
  yield sql(`DELETE FROM lango_leases WHERE ${SESSION_KEY}`, ...names)
  return session === undefined ? [] : yield* detachWithNested(dialect, session, true)
}

/** Detaches some sessions of a user; none when there are no more. */
export function* detachUserTask(dialect: Dialect, appName: string, userId: string): Task<Detached[]> {
  const detached: Detached[] = []
  // Nested ones go with those that they are nested in. What is left is nested in none that exists.
  for (const condition of ['app_name = ?', 'nested_in = ?']) {
    if (detached.length > 0) break
    const sessions = yield sql(
      `SELECT ${COLUMNS} FROM lango_sessions
        WHERE user_id = ? AND ${condition} ORDER BY pk LIMIT ${DETACHED_AT_ONCE}${dialect.forUpdate}`,
      userId,
      appName,
    )
    for (const row of sessions) {
      // A variant was detached with the session that it belongs to.
      if (detached.some(({ pk }) => pk === numberIn(row, 'pk'))) continue
      detached.push(...(yield* detachWithNested(dialect, row, condition === 'app_name = ?')))
    }
  }
  return detached
}

const DETACHED_AT_ONCE = 50

/** Detaches a session and those nested in it, unless it was used after all. */
export function* detachIdleTask(dialect: Dialect, key: SessionKey, before: number): Task<Detached[]> {
  const names = namesOf(key)
  const [session] = yield sql(
    `SELECT ${COLUMNS} FROM lango_sessions WHERE ${SESSION_KEY}${dialect.forUpdate}`,
    ...names,
  )
  if (session === undefined) return []
  // By a statement of its own: what others stored before the row was locked must be seen.
  const [idle] = yield sql(
    `SELECT pk FROM lango_sessions s WHERE pk = ? AND updated_at < ? AND lease_until <= ${dialect.now}
      AND ${NOTHING_QUEUED} AND ${NO_VARIANT_USED}`,
    ...[numberIn(session, 'pk'), before, before],
  )
  return idle === undefined ? [] : yield* detachWithNested(dialect, session, true)
}

function* detachWithNested(dialect: Dialect, row: Row, isOuter: boolean): Task<Detached[]> {
  const logs = yield* outerLogs(row)
  const nestedApp = isOuter ? '' : textIn(row, 'app_name')
  const outer = yield* detachOne(dialect, row, { logs, nestedApp })
  return [outer, ...(yield* detachNested(dialect, namesIn(row), logs))]
}

/** `logs`: those that the outer session is nested in. Its own log is deleted with it. */
function* detachNested(
  dialect: Dialect,
  [appName, userId, sessionId]: SessionNames,
  logs: readonly number[],
): Task<Detached[]> {
  const inner = yield sql(
    `SELECT ${COLUMNS} FROM lango_sessions
      WHERE user_id = ? AND session_id = ? AND nested_in = ?${dialect.forUpdate}`,
    ...[userId, sessionId, appName],
  )
  const variants = yield sql(
    `SELECT ${COLUMNS} FROM lango_sessions
      WHERE user_id = ? AND app_name = ? AND nested_in = ? ORDER BY created_at, pk${dialect.forUpdate}`,
    ...[userId, appName, variantOf(sessionId)],
  )
  const detached: Detached[] = []
  for (const row of [...inner, ...variants]) {
    detached.push(yield* detachOne(dialect, row, { logs, nestedApp: textIn(row, 'app_name') }))
    detached.push(...(yield* detachNested(dialect, namesIn(row), logs)))
  }
  return detached
}

const COLUMNS = 'pk, app_name, user_id, session_id, nested_in, fence'

function namesIn(row: Row): SessionNames {
  return [textIn(row, 'app_name'), textIn(row, 'user_id'), textIn(row, 'session_id')]
}

/**
 * `row` is locked. Processes know it by its number, so it refuses writes under a lease and without one: no lease has the
 * fence 0, and no write without a lease is allowed before `lease_until`. It keeps the logs, so that an erasure that is
 * interrupted can be finished.
 */
function* detachOne(
  dialect: Dialect,
  row: Row,
  { logs, nestedApp }: Pick<Detached, 'logs' | 'nestedApp'>,
): Task<Detached> {
  const pk = numberIn(row, 'pk')
  yield sql(
    `UPDATE lango_sessions SET app_name = '', user_id = '', session_id = ?, nested_in = ?, title = NULL, search = '',
      fence = 0, holder = '', lease_until = ${NEVER} WHERE pk = ?`,
    `erased-${pk}`,
    logs.length === 0 ? null : JSON.stringify(logs),
    pk,
  )
  const leases = numberIn(row, 'fence') === 0 ? 0 : 1
  return { pk, logs, ...(yield* detachRuns(dialect, pk)), leases, nestedApp }
}

/** The largest integer that is exact in JavaScript. */
const NEVER = Number.MAX_SAFE_INTEGER

/** The sessions that a session is nested in, from the next one to the outermost. */
function* outerLogs(row: Row): Task<number[]> {
  const logs: number[] = []
  let app = row.nested_in
  while (typeof app === 'string' && logs.length < MOST_NESTED) {
    const [outer] = yield sql(
      `SELECT pk, nested_in FROM lango_sessions WHERE ${SESSION_KEY}`,
      ...[app, textIn(row, 'user_id'), textIn(row, 'session_id')],
    )
    if (outer !== undefined) logs.push(numberIn(outer, 'pk'))
    app = outer?.nested_in ?? null
  }
  return logs
}

const MOST_NESTED = 32

/** The logs that have messages of a detached session, as its row names them. */
export function logsIn(row: Row): number[] {
  return typeof row.nested_in === 'string' ? (JSON.parse(row.nested_in) as number[]) : []
}

/**
 * A run may still be active when its session is deleted. Its id alone is kept for a day, so that what the run stores
 * afterwards is dropped.
 */
function* detachRuns({ now }: Dialect, pk: number): Task<{ runs: number; events: number }> {
  const held = yield sql('SELECT events FROM lango_runs WHERE session_pk = ? AND events IS NOT NULL', pk)
  const runs = yield sql(
    `UPDATE lango_runs SET deleted_at = ${now}, app_name = '', state = 'finished', input = NULL, events = NULL
      WHERE session_pk = ? AND deleted_at IS NULL RETURNING pk`,
    pk,
  )
  return { runs: runs.length, events: held.reduce((all, row) => all + eventsIn(row), 0) }
}

/** How many events the row of a run holds. */
export function eventsIn(row: Row): number {
  const events: unknown = typeof row.events === 'string' ? JSON.parse(row.events) : []
  return Array.isArray(events) ? events.length : 0
}

/** Forgets the ids of runs that were deleted more than a day ago. */
export function forgetRuns({ now }: Dialect): Statement {
  return sql(`DELETE FROM lango_runs WHERE deleted_at < ${now} - ${DAY_MS}`)
}

interface IdlePage {
  appName: string
  before: number
  afterHour: number
  afterPk: number
}

export function idleStatement(
  { now }: Dialect,
  { appName, before, afterHour, afterPk }: IdlePage,
): Statement {
  return sql(
    `SELECT pk, user_id, session_id, updated_hour FROM lango_sessions s
      WHERE app_name = ? AND updated_hour <= ? AND updated_at < ? AND nested_in IS NULL
        AND (updated_hour, pk) > (?, ?) AND lease_until <= ${now} AND ${NOTHING_QUEUED}
      ORDER BY updated_hour, pk LIMIT 50`,
    appName,
    Math.floor(before / HOUR_MS),
    before,
    afterHour,
    afterPk,
  )
}

/** A chat is as old as the newest of its variants. */
const NO_VARIANT_USED = `NOT EXISTS (
  SELECT 1 FROM lango_sessions v WHERE v.user_id = s.user_id AND v.app_name = s.app_name
    AND v.nested_in = '${variantOf('')}' || s.session_id AND v.updated_at >= ?
)`

/** A run that was accepted is executed, however late. */
const NOTHING_QUEUED = `NOT EXISTS (
  SELECT 1 FROM lango_runs q WHERE q.session_pk = s.pk AND q.state IN ('queued', 'scheduled')
)`
