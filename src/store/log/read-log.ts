/** Reading entries and the rows of runs. */
import type { EntryKind, ReadQuery, RunQuery, RunRow, RunRowState } from '../../session/log-store.js'
import type { Message, SessionKey } from '../../session/message.js'
import type { RunInputRecord } from '../../session/run-store.js'
import {
  type Dialect,
  namesOf,
  numberIn,
  type Row,
  type SqlValue,
  type Statement,
  sql,
  textIn,
} from '../sql-database.js'
import { storableText } from '../storable-text.js'
import { CONTENT_COLUMNS } from './log-rows.js'

/** `among`: a table that is read before the entries. */
function entries(among = ''): string {
  return `SELECT e.seq, e.at, e.message_seq, ${PREVIOUS} AS previous, s.session_id, r.run_id, n.app_name AS nested_app,
      n.user_id AS nested_user, n.session_id AS nested_id, ${CONTENT_COLUMNS.map(column => `e.${column}`).join(', ')}
    FROM lango_sessions s ${among} CROSS JOIN lango_entries e LEFT JOIN lango_runs r ON r.pk = e.run_pk
      LEFT JOIN lango_sessions n ON n.pk = e.message_pk AND n.pk <> s.pk
    WHERE e.session_pk = s.pk AND s.app_name = ? AND s.user_id = ? AND s.session_id = ?`
}

/** The text of the entry before the end of a run, which may repeat it. */
export const PREVIOUS = `CASE WHEN e.kind = 'ended' THEN (SELECT p.content FROM lango_entries p
  WHERE p.session_pk = e.session_pk AND p.seq = e.seq - 1) END`

const DEFAULT_LIMIT = 1000

export function readStatement(dialect: Dialect, key: SessionKey, query: ReadQuery): Statement {
  const { afterSeq = 0, runId, kinds, limit = DEFAULT_LIMIT } = query
  const ofRun = runId === undefined ? '' : 'AND r.run_id = ?'
  const ofKinds = kinds === undefined ? '' : `AND e.kind IN (SELECT value FROM ${dialect.eachValue})`
  const parameters: SqlValue[] = [
    ...namesOf(key),
    afterSeq,
    ...(runId === undefined ? [] : [runId]),
    ...(kinds === undefined ? [] : [JSON.stringify(kinds satisfies readonly EntryKind[])]),
    limit,
  ]
  return sql(`${entries()} AND e.seq > ? ${ofRun} ${ofKinds} ORDER BY e.seq LIMIT ?`, ...parameters)
}

export function findStatement(dialect: Dialect, key: SessionKey, keys: readonly string[]): Statement {
  const among = `CROSS JOIN (SELECT DISTINCT value FROM ${dialect.eachValue}) AS k`
  return sql(
    `${entries(among)} AND e.entry_key = k.value ORDER BY e.seq`,
    JSON.stringify(keys.map(storableText)),
    ...namesOf(key),
  )
}

const RUNS = `SELECT r.run_id, r.state, r.accepted_at, r.due_at, r.first_seq, r.last_seq, r.finish_reason, r.input,
    (SELECT count(*) FROM lango_entries p WHERE p.run_pk = r.pk AND p.pending IS NOT NULL) AS posts,
    s.app_name, s.user_id, s.session_id
  FROM lango_runs r JOIN lango_sessions s ON s.pk = r.session_pk WHERE r.deleted_at IS NULL`

export function runsByIds({ eachValue }: Dialect, runIds: readonly string[]): Statement {
  return sql(`${RUNS} AND r.run_id IN (SELECT value FROM ${eachValue})`, JSON.stringify(runIds))
}

/** A run `r` has a post that it has not recorded. */
const HAS_POSTS = 'EXISTS (SELECT 1 FROM lango_entries p WHERE p.run_pk = r.pk AND p.pending IS NOT NULL)'

/**
 * Runs `r` of sessions `s` that no process executes, and waiting ones only with a post. Its parameter: a JSON array of
 * holders that no longer exist. A lease that lasts for longer than its time was stored before the clock was set back.
 */
export function isAbandoned({ now, eachValue }: Dialect): string {
  return `(s.lease_until <= ${now} OR s.lease_until > ${now} + s.lease_ms
      OR s.holder IN (SELECT value FROM ${eachValue})) AND (r.state <> 'waiting' OR ${HAS_POSTS})`
}

/** `gone`: holders that no longer exist. */
export function runsByQuery(dialect: Dialect, query: RunQuery, gone: readonly string[]): Statement {
  const { appName, key, states, isAbandoned: isLeft = false, limit } = query
  const ofSession = key ? 'AND s.user_id = ? AND s.session_id = ?' : ''
  // The index has unfinished runs only.
  const ofIndex = states.includes('finished') ? '' : "AND r.state <> 'finished'"
  return sql(
    `${RUNS} AND r.app_name = ? ${ofSession} ${ofIndex} AND r.state IN (SELECT value FROM ${dialect.eachValue})
      ${isLeft ? `AND ${isAbandoned(dialect)}` : ''} ORDER BY r.place LIMIT ?`,
    ...[appName, ...(key ? [key.userId, key.sessionId] : []), JSON.stringify(states)],
    ...(isLeft ? [JSON.stringify(gone)] : []),
    limit,
  )
}

export function rowToRun(row: Row): RunRow {
  return {
    runId: textIn(row, 'run_id'),
    key: {
      appName: textIn(row, 'app_name'),
      userId: textIn(row, 'user_id'),
      sessionId: textIn(row, 'session_id'),
    },
    state: textIn(row, 'state') as RunRowState,
    acceptedAt: numberIn(row, 'accepted_at'),
    ...(row.due_at === null ? {} : { dueAt: numberIn(row, 'due_at') }),
    ...(row.first_seq === null ? {} : { firstSeq: numberIn(row, 'first_seq') }),
    ...(row.last_seq === null ? {} : { lastSeq: numberIn(row, 'last_seq') }),
    ...(row.finish_reason === null ? {} : { finishReason: textIn(row, 'finish_reason') }),
    isPosted: numberIn(row, 'posts') > 0,
    ...(row.input === null ? {} : inputIn(row)),
  }
}

/** What a run is begun with: its message while it is queued, and its input. */
export function inputIn(row: Row): { message?: Message; input?: RunInputRecord } {
  return row.input === null ? {} : (JSON.parse(textIn(row, 'input')) as ReturnType<typeof inputIn>)
}
