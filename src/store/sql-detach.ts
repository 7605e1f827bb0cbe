/**
 * Taking sessions and runs away from their owner, in one transaction: from then on nobody can read them or write to
 * them, and their rows may be deleted at leisure.
 */
import type { EraseCounts, UserKey } from '../session/session-store.js'
import {
  DAY_MS,
  type Dialect,
  HOUR_MS,
  numberIn,
  type Statement,
  sql,
  type Task,
  textIn,
} from './sql-database.js'
import { variantOf } from './sql-variants.js'

/** Where data of a user is kept. A new table that holds any is added here, and nowhere else. */
export const PERSONAL_TABLES: readonly PersonalTable[] = [
  { kind: 'messages', table: 'lango_messages', belongsTo: 'session' },
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
  { kind: 'events', table: 'lango_run_events', belongsTo: 'run' },
  { kind: 'requests', table: 'lango_run_requests', belongsTo: 'run' },
  { kind: 'signals', table: 'lango_run_signals', belongsTo: 'run' },
  { kind: 'journal', table: 'lango_run_journal', belongsTo: 'run' },
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
  run: 'run_id = ?',
  user: 'app_name = ? AND user_id = ?',
} as const

/** The tables whose rows belong to a session or to a run. */
export function tablesOf(owner: keyof typeof OWNER): string[] {
  return PERSONAL_TABLES.filter(({ belongsTo }) => belongsTo === owner).map(({ table }) => table)
}

/** A session or some runs that no longer have an owner, and whose rows remain to be deleted. */
export interface Detached {
  /** 0 when there is no session. */
  pk: number
  runIds: readonly string[]
  leases: number
  /** The app of a session that was nested in another. */
  nestedApp: string
}

export const NOTHING: Detached = { pk: 0, runIds: [], leases: 0, nestedApp: '' }

/** The owner of a copy that is not complete yet. */
export const COPYING = { appName: '', userId: 'copying' }

/** Detaches a session and those nested in it. Tickets first: an append locks its ticket before the session. */
export function* detachSessionTask(
  dialect: Dialect,
  { appName, userId, sessionId }: UserKey & { sessionId: string },
): Task<Detached[]> {
  const names = [appName, userId, sessionId]
  yield sql(`DELETE FROM lango_leases WHERE ${SESSION_KEY}`, ...names)
  const [session] = yield sql(
    `SELECT pk FROM lango_sessions WHERE ${SESSION_KEY}${dialect.forUpdate}`,
    ...names,
  )
  const nested = yield* detachNested(dialect, names)
  if (session !== undefined) {
    return [yield* detachOne(dialect, names, numberIn(session, 'pk'), true), ...nested]
  }
  return [{ ...NOTHING, runIds: yield* detachRuns(dialect, SESSION_KEY, names) }, ...nested]
}

/** Detaches some sessions and runs of a user; none when there are no more. */
export function* detachUserTask(dialect: Dialect, appName: string, userId: string): Task<Detached[]> {
  const detached: Detached[] = []
  for (const condition of ['app_name = ?', 'nested_in = ?']) {
    const sessions = yield sql(
      `SELECT pk, app_name, session_id, nested_in FROM lango_sessions
        WHERE user_id = ? AND ${condition} ORDER BY pk LIMIT ${DETACHED_AT_ONCE}${dialect.forUpdate}`,
      userId,
      appName,
    )
    for (const row of sessions) {
      const pk = numberIn(row, 'pk')
      // A variant was detached with the session that it belongs to.
      if (detached.some(one => one.pk === pk)) continue
      const names = [textIn(row, 'app_name'), userId, textIn(row, 'session_id')]
      detached.push(yield* detachOne(dialect, names, pk, condition === 'app_name = ?'))
      detached.push(...(yield* detachNested(dialect, names)))
    }
  }
  const runIds = yield* detachRuns(
    dialect,
    `run_id IN (SELECT run_id FROM lango_runs WHERE ${OWNER.user} LIMIT ${RUNS_AT_ONCE})`,
    [appName, userId],
  )
  return runIds.length === 0 ? detached : [...detached, { ...NOTHING, runIds }]
}

const DETACHED_AT_ONCE = 50

/** Detaches a session and those nested in it, unless it was used after all. */
export function* detachIdleTask(
  dialect: Dialect,
  { appName, userId, sessionId }: UserKey & { sessionId: string },
  before: number,
): Task<Detached[]> {
  const names = [appName, userId, sessionId]
  // No ticket can be taken until the commit.
  yield* dialect.lockTickets(JSON.stringify(names))
  const [ticket] = yield sql(
    `SELECT id FROM lango_leases WHERE ${SESSION_KEY} AND expires_at > ${dialect.now} LIMIT 1`,
    ...names,
  )
  if (ticket !== undefined) return []
  const [session] = yield sql(
    `SELECT pk FROM lango_sessions s WHERE ${SESSION_KEY} AND updated_at < ? AND ${NOTHING_QUEUED}
      AND ${NO_VARIANT_USED}${dialect.forUpdate}`,
    ...names,
    before,
    before,
  )
  if (session === undefined) return []
  const outer = yield* detachOne(dialect, names, numberIn(session, 'pk'), true)
  return [outer, ...(yield* detachNested(dialect, names))]
}

function* detachNested(
  dialect: Dialect,
  [appName = '', userId = '', sessionId = '']: readonly string[],
): Task<Detached[]> {
  const inner = yield sql(
    `SELECT pk, app_name, session_id FROM lango_sessions
      WHERE user_id = ? AND session_id = ? AND nested_in = ?${dialect.forUpdate}`,
    ...[userId, sessionId, appName],
  )
  const variants = yield sql(
    `SELECT pk, app_name, session_id FROM lango_sessions
      WHERE user_id = ? AND app_name = ? AND nested_in = ? ORDER BY created_at, pk${dialect.forUpdate}`,
    ...[userId, appName, variantOf(sessionId)],
  )
  const detached: Detached[] = []
  for (const row of [...inner, ...variants]) {
    const names = [textIn(row, 'app_name'), userId, textIn(row, 'session_id')]
    detached.push(yield* detachOne(dialect, names, numberIn(row, 'pk'), false))
    detached.push(...(yield* detachNested(dialect, names)))
  }
  return detached
}

function* detachOne(
  dialect: Dialect,
  names: readonly string[],
  pk: number,
  isOuter: boolean,
): Task<Detached> {
  const tickets = yield sql(`DELETE FROM lango_leases WHERE ${SESSION_KEY} RETURNING id`, ...names)
  yield sql(
    `UPDATE lango_sessions SET app_name = '', user_id = '', session_id = ?, nested_in = NULL, title = NULL,
      search = '' WHERE pk = ?`,
    `erased-${pk}`,
    pk,
  )
  const runIds = yield* detachRuns(dialect, SESSION_KEY, names)
  return { pk, runIds, leases: tickets.length, nestedApp: isOuter ? '' : (names[0] ?? '') }
}

/**
 * A run may still be active when its session is deleted. Its id alone is kept for a day, so that what the run stores
 * afterwards is dropped.
 */
function* detachRuns({ now }: Dialect, condition: string, names: readonly string[]): Task<string[]> {
  const rows = yield sql(
    `UPDATE lango_runs SET deleted_at = ${now}, app_name = '', user_id = '', session_id = '', state = 'finished',
      input = NULL
      WHERE ${condition} RETURNING run_id`,
    ...names,
  )
  return rows.map(row => textIn(row, 'run_id'))
}

/** Forgets the ids of runs that were deleted more than a day ago. */
export function forgetRuns({ now }: Dialect): Statement {
  return sql(`DELETE FROM lango_runs WHERE deleted_at < ${now} - ${DAY_MS}`)
}

const RUNS_AT_ONCE = 200

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
        AND (updated_hour, pk) > (?, ?) AND NOT EXISTS (
          SELECT 1 FROM lango_leases l WHERE l.app_name = s.app_name AND l.user_id = s.user_id
            AND l.session_id = s.session_id AND l.expires_at > ${now}
        ) AND ${NOTHING_QUEUED} ORDER BY updated_hour, pk LIMIT 50`,
    appName,
    Math.floor(before / HOUR_MS),
    before,
    afterHour,
    afterPk,
  )
}

const SESSION_KEY = 'app_name = ? AND user_id = ? AND session_id = ?'

/** A chat is as old as the newest of its variants. */
const NO_VARIANT_USED = `NOT EXISTS (
  SELECT 1 FROM lango_sessions v WHERE v.user_id = s.user_id AND v.app_name = s.app_name
    AND v.nested_in = '${variantOf('')}' || s.session_id AND v.updated_at >= ?
)`

/** A run that was accepted is executed, however late. */
const NOTHING_QUEUED = `NOT EXISTS (
  SELECT 1 FROM lango_runs q WHERE q.app_name = s.app_name AND q.user_id = s.user_id AND q.session_id = s.session_id
    AND q.state <> 'finished' AND q.state IN ('queued', 'scheduled')
)`
