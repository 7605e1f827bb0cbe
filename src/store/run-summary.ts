import type { RunSummary } from '../session/session-store.js'
import { numberIn, type Row, type SqlValue, type Statement, sql, textIn } from './sql-database.js'

/** Whether a run is over, by its last event. One that has no events any more ended long ago. */
export function finishOf(lastEvent: unknown): Pick<RunSummary, 'finished' | 'finishReason'> {
  if (typeof lastEvent !== 'string') return { finished: true }
  const { type, finishReason } = JSON.parse(lastEvent) as { type?: unknown; finishReason?: unknown }
  if (type !== 'run-finish') return { finished: false }
  return { finished: true, ...(typeof finishReason === 'string' ? { finishReason } : {}) }
}

export function findRunStatement(runId: string): Statement {
  return sql(`${SUMMARY} WHERE r.run_id = ? AND r.deleted_at IS NULL`, runId)
}

export function listRunsStatement(names: readonly SqlValue[], limit: number): Statement {
  return sql(
    `${SUMMARY} WHERE r.app_name = ? AND r.user_id = ? AND r.session_id = ? AND r.deleted_at IS NULL
      ORDER BY r.started_at IS NULL, r.started_at DESC, r.run_id LIMIT ?`,
    ...names,
    limit,
  )
}

export function rowToSummary(row: Row): RunSummary {
  return {
    runId: textIn(row, 'run_id'),
    key: {
      appName: textIn(row, 'app_name'),
      userId: textIn(row, 'user_id'),
      sessionId: textIn(row, 'session_id'),
    },
    startedAt: numberIn(row, 'began'),
    ...(row.after_seq === null ? {} : { afterSeq: numberIn(row, 'after_seq') }),
    lastSeq: numberIn(row, 'last_seq'),
    ...finishOf(row.last_event),
  }
}

const EVENTS = 'FROM lango_run_events e WHERE e.run_id = r.run_id'

/** Runs of older releases do not say when they began; their first event does. */
const SUMMARY = `SELECT r.run_id, r.app_name, r.user_id, r.session_id, r.after_seq,
    COALESCE(r.started_at, (SELECT min(e.stored_at) ${EVENTS}), 0) AS began,
    COALESCE((SELECT max(e.seq) ${EVENTS}), 0) AS last_seq,
    (SELECT e.event ${EVENTS} ORDER BY e.seq DESC LIMIT 1) AS last_event
  FROM lango_runs r`
