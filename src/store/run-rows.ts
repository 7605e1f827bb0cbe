/** The rows of runs: finding and listing them, and the queue of each session. */
import type { SessionKey } from '../session/message.js'
import type {
  AppRunsQuery,
  DueQuery,
  QueuedRun,
  RunState,
  RunSummary,
  UnfinishedQuery,
} from '../session/run-store.js'
import { inputIn, isAbandoned } from './log/read-log.js'
import { NOT_HELD_UP } from './log/write-runs.js'
import {
  type Dialect,
  namesOf,
  numberIn,
  type Row,
  type SqlValue,
  type Statement,
  sql,
  type Task,
  textIn,
  touched,
} from './sql-database.js'

/** The place of a queued run `r` in the queue of its session. */
const QUEUE_PLACE = `CASE WHEN r.state = 'queued' THEN (
    SELECT count(*) FROM lango_runs q WHERE q.session_pk = r.session_pk AND q.state = 'queued' AND q.place <= r.place
  ) END`

/** The number of the last event. Entries of other runs may come after those of a run that has not ended. */
const LAST_EVENT = `(SELECT e.event_seq FROM lango_entries e WHERE e.session_pk = r.session_pk AND e.run_pk = r.pk
  AND e.event_seq IS NOT NULL AND e.seq >= r.first_seq AND (r.last_seq IS NULL OR e.seq <= r.last_seq)
  ORDER BY e.seq DESC LIMIT 1)`

const SUMMARY = `SELECT r.run_id, s.app_name, s.user_id, s.session_id, r.accepted_at, r.after_seq, r.state, r.due_at,
    r.finish_reason, r.events, ${QUEUE_PLACE} AS queue_place, ${LAST_EVENT} AS last_event
  FROM lango_runs r JOIN lango_sessions s ON s.pk = r.session_pk`

const NEWEST_FIRST = 'r.accepted_at DESC, r.place DESC, r.run_id'

export function findRunsStatement({ eachValue }: Dialect, runIds: readonly string[]): Statement {
  const [only = ''] = runIds
  if (runIds.length === 1) return sql(`${SUMMARY} WHERE r.run_id = ? AND r.deleted_at IS NULL`, only)
  return sql(
    `${SUMMARY} WHERE r.run_id IN (SELECT value FROM ${eachValue}) AND r.deleted_at IS NULL`,
    JSON.stringify(runIds),
  )
}

export function listRunsStatement(key: SessionKey, limit: number): Statement {
  return sql(
    `${SUMMARY} WHERE s.app_name = ? AND s.user_id = ? AND s.session_id = ? AND r.deleted_at IS NULL
        AND r.state <> 'scheduled' ORDER BY ${NEWEST_FIRST} LIMIT ?`,
    ...namesOf(key),
    limit,
  )
}

/** The rows are chosen before their entries are read: an app may have many runs. */
export function appRunsStatement({ appName, userId, limit = 50 }: AppRunsQuery): Statement {
  const ofUser = userId === undefined ? '' : 'AND s.user_id = ?'
  return sql(
    `${SUMMARY} WHERE r.pk IN (SELECT r.pk FROM lango_runs r JOIN lango_sessions s ON s.pk = r.session_pk
        WHERE r.app_name = ? ${ofUser} AND r.deleted_at IS NULL ORDER BY ${NEWEST_FIRST} LIMIT ?) ORDER BY ${NEWEST_FIRST}`,
    ...[appName, ...(userId === undefined ? [] : [userId]), limit],
  )
}

/** `gone`: holders of leases that no longer exist. */
export function unfinishedStatement(
  dialect: Dialect,
  { appName, key, abandoned = false, scheduled, limit = 100 }: UnfinishedQuery,
  gone: readonly string[],
): Statement {
  const ofSession = key ? ' AND s.user_id = ? AND s.session_id = ?' : ''
  const isDue = { also: '', only: " AND r.state = 'scheduled'", none: " AND r.state <> 'scheduled'" }
  const isLeft = abandoned ? ` AND ${isAbandoned(dialect)} AND (r.state <> 'queued' OR ${NOT_HELD_UP})` : ''
  return sql(
    `${SUMMARY} WHERE r.app_name = ?${ofSession} AND r.state <> 'finished'${isDue[(!abandoned && scheduled) || 'none']}
      AND r.deleted_at IS NULL${isLeft} ORDER BY ${LATER}, r.place, r.accepted_at, r.run_id LIMIT ?`,
    ...[appName, ...(key ? [key.userId, key.sessionId] : [])],
    ...(abandoned ? [JSON.stringify(gone)] : []),
    limit,
  )
}

/** Runs that are not due yet come last, by the time at which they are. */
const LATER = "CASE WHEN r.state = 'scheduled' THEN r.due_at ELSE 0 END"

export function rowToSummary(row: Row): RunSummary {
  const stored = textIn(row, 'state') as RunState | 'handover'
  const state = stored === 'handover' ? 'running' : stored
  const isFinished = state === 'finished'
  return {
    runId: textIn(row, 'run_id'),
    key: {
      appName: textIn(row, 'app_name'),
      userId: textIn(row, 'user_id'),
      sessionId: textIn(row, 'session_id'),
    },
    startedAt: numberIn(row, 'accepted_at'),
    ...(row.due_at === null ? {} : { dueAt: numberIn(row, 'due_at') }),
    ...(row.after_seq === null ? {} : { afterSeq: numberIn(row, 'after_seq') }),
    lastSeq: lastEventOf(row),
    finished: isFinished,
    ...(isFinished && row.finish_reason !== null ? { finishReason: textIn(row, 'finish_reason') } : {}),
    state,
    ...(row.queue_place === null ? {} : { place: numberIn(row, 'queue_place') }),
  }
}

/** A run that has not begun has events of its acceptance at most. */
function lastEventOf(row: Row): number {
  if (row.last_event !== null && row.last_event !== undefined) return numberIn(row, 'last_event')
  const accepted = row.events === null ? [] : (JSON.parse(textIn(row, 'events')) as { seq: number }[])
  return accepted.at(-1)?.seq ?? 0
}

export function queuedStatement(key: SessionKey, limit: number): Statement {
  return sql(
    `SELECT r.run_id, r.accepted_at, r.input FROM lango_runs r JOIN lango_sessions s ON s.pk = r.session_pk
      WHERE s.app_name = ? AND s.user_id = ? AND s.session_id = ? AND r.state = 'queued' ORDER BY r.place LIMIT ?`,
    ...namesOf(key),
    limit,
  )
}

export function rowToQueued(key: SessionKey, row: Row): QueuedRun[] {
  const { appName, userId, sessionId } = key
  const { message, input = {} } = inputIn(row)
  if (message === undefined) return []
  const queuedAt = numberIn(row, 'accepted_at')
  return [{ runId: textIn(row, 'run_id'), key: { appName, userId, sessionId }, message, input, queuedAt }]
}

/** The runs that are due first, and in how many milliseconds they are. */
export function dueStatement({ now }: Dialect, { appName, runId, limit = 100 }: DueQuery): Statement {
  return sql(
    `SELECT r.run_id, r.session_pk, s.user_id, s.session_id, r.due_at - ${now} AS due_in
      FROM lango_runs r JOIN lango_sessions s ON s.pk = r.session_pk
      WHERE r.app_name = ? AND r.state = 'scheduled'${runId === undefined ? '' : ' AND r.run_id = ?'}
      ORDER BY r.due_at, r.place, r.run_id LIMIT ?`,
    ...[appName, ...(runId === undefined ? [] : [runId]), limit + 1],
  )
}

/** Puts a run that was accepted for later at the end of the queue; `false` when another process was faster. */
export function* releaseTask(dialect: Dialect, runId: string, sessionPk: number): Task<boolean> {
  const { now, fences, forUpdate } = dialect
  const values: SqlValue[] = [sessionPk]
  yield sql(`SELECT pk FROM lango_sessions WHERE pk = ?${forUpdate}`, ...values)
  for (const statement of fences.take) yield statement
  const released = yield sql(
    `UPDATE lango_runs SET state = 'queued', place = ${fences.next}, accepted_at = ${now}
      WHERE run_id = ? AND state = 'scheduled' RETURNING run_id`,
    runId,
  )
  if (released.length === 0) return false
  yield sql(
    `UPDATE lango_sessions SET open_runs = open_runs + 1, ${touched(dialect)} WHERE pk = ?`,
    sessionPk,
  )
  return true
}
