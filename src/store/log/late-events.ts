/** Events and requests that are stored without a lease: the end that another process gives to a run, and imports. */

import { stableJson } from '../../base/stable-json.js'
import type { LogWrite, NewEntry, NewParts } from '../../session/log-store.js'
import type { SessionKey } from '../../session/message.js'
import type { RunEventRecord } from '../../session/run-store.js'
import { eventsStatement, readEventRows } from '../run-entries.js'
import { type Dialect, namesOf, numberIn, type Row, sql, type Task } from '../sql-database.js'
import { reasonOf } from '../step-entries.js'
import { runHasEnded } from '../store-errors.js'
import { recordStatements } from './also-written.js'
import { prepareWrite } from './prepared-write.js'
import { COUNTERS, counted, entryStatements } from './write-entries.js'

interface LateEvents {
  readonly key: SessionKey
  readonly runId: string
  readonly events: readonly RunEventRecord[]
  /** The mark of the write. */
  readonly id: string
}

/**
 * Stores events by their numbers, and the run itself with its first ones. Numbers that are stored already change nothing.
 * Nothing is stored of a run whose session was deleted.
 */
export function* appendEventsTask(
  dialect: Dialect,
  { key, runId, events, id }: LateEvents,
): Task<'stored' | 'nothing' | 'another-session'> {
  if (events.length === 0) return 'nothing'
  const session = yield* lockTask(dialect, key)
  const [run] = yield sql('SELECT pk, session_pk, state, deleted_at FROM lango_runs WHERE run_id = ?', runId)
  if (run && (run.deleted_at ?? null) !== null) return 'nothing'
  if (run && numberIn(run, 'session_pk') !== numberIn(session, 'pk')) return 'another-session'
  if (!session) return 'nothing'
  const pk = numberIn(session, 'pk')
  if (!run) yield* insertRunTask(dialect, pk, runId)
  const known = run
    ? yield* knownTask(runId, Math.min(...events.map(({ seq }) => seq)))
    : new Map<number, string>()
  const fresh = events.filter(({ seq }) => !known.has(seq))
  const isOther = ({ seq, ...event }: RunEventRecord) => known.get(seq) !== stableJson({ ...event, seq })
  // An ended run accepts its own events again, and no others: another process may have written its end.
  if (run?.state === 'finished' && events.some(isOther)) throw runHasEnded(runId)
  if (fresh.length === 0) return 'nothing'
  const finish = fresh.find(({ type }) => type === 'run-finish')
  yield* writeTask(dialect, pk, id, {
    key,
    runId,
    entries: [{ kind: finish ? 'ended' : 'notice', runId, events: fresh }],
  })
  if (finish) yield* finishTask(pk, runId, run, reasonOf(finish))
  return 'stored'
}

function* lockTask({ forUpdate }: Dialect, key: SessionKey): Task<Row | undefined> {
  const [session] = yield sql(
    `SELECT pk FROM lango_sessions WHERE app_name = ? AND user_id = ? AND session_id = ?${forUpdate}`,
    ...namesOf(key),
  )
  return session
}

function* insertRunTask(dialect: Dialect, pk: number, runId: string): Task<void> {
  for (const statement of dialect.fences.take) yield statement
  yield sql(
    `INSERT INTO lango_runs (run_id, session_pk, app_name, state, place, accepted_at, after_seq, first_seq)
      SELECT CAST(? AS TEXT), s.pk, s.app_name, 'running', ${dialect.fences.next}, ${dialect.now}, s.message_count,
        s.entry_count + 1 FROM lango_sessions s WHERE s.pk = ?`,
    ...[runId, pk],
  )
  yield sql('UPDATE lango_sessions SET open_runs = open_runs + 1 WHERE pk = ?', pk)
}

/** The stored events of a run from a number on, as JSON by their numbers. */
function* knownTask(runId: string, first: number): Task<Map<number, string>> {
  const query = { runId, afterSeq: first - 1, limit: MOST_EVENTS }
  const rows = yield eventsStatement(query.runId, query.afterSeq, query.limit)
  return new Map(readEventRows(rows, query).map(event => [event.seq, stableJson(event)]))
}

/** More than any run has after a number that it stores again. */
const MOST_EVENTS = 100_000

function* finishTask(
  pk: number,
  runId: string,
  run: Row | undefined,
  reason: string | undefined,
): Task<void> {
  const isCounted = run === undefined || run.state !== 'scheduled'
  yield sql(
    `UPDATE lango_runs SET state = 'finished', finish_reason = ?, input = NULL,
      last_seq = (SELECT s.entry_count FROM lango_sessions s WHERE s.pk = ?) WHERE run_id = ?`,
    ...[reason ?? null, pk, runId],
  )
  if (isCounted) yield sql('UPDATE lango_sessions SET open_runs = open_runs - 1 WHERE pk = ?', pk)
  yield sql("UPDATE lango_tool_calls SET status = 'unknown' WHERE run_id = ? AND status = 'started'", runId)
}

/** Writes entries to a session that is locked. */
function* writeTask(dialect: Dialect, pk: number, id: string, write: LogWrite): Task<void> {
  const prepared = prepareWrite(pk, id, write)
  const [own] = prepared.sessions
  const mark = { text: 's.pk = ? AND s.write_id = ?', parameters: [pk, id] }
  if (own) yield sql(`UPDATE lango_sessions SET ${COUNTERS} WHERE pk = ?`, ...counted(prepared, own), pk)
  // The first entry of a run that has not begun.
  yield sql(
    `UPDATE lango_runs SET first_seq = (SELECT s.entry_count FROM lango_sessions s WHERE s.pk = ?) - CAST(? AS BIGINT)
      WHERE run_id = ? AND first_seq IS NULL`,
    ...[pk, prepared.rows.length - 1, write.runId ?? ''],
  )
  for (const statement of entryStatements(dialect, prepared, mark)) yield statement
  for (const statement of recordStatements(dialect, prepared, mark)) yield statement
}

interface LateRequest {
  readonly key: SessionKey
  readonly runId: string
  readonly id: string
  readonly entries: readonly NewEntry[]
  readonly parts?: NewParts
}

/** Stores a request; `false` when the session has other parts than the request says. */
export function* countRequestTask(
  dialect: Dialect,
  { key, runId, id, entries, parts }: LateRequest,
): Task<boolean> {
  const session = yield* lockTask(dialect, key)
  if (!session) return true
  const pk = numberIn(session, 'pk')
  if (parts) {
    const counts = yield sql(
      'UPDATE lango_sessions SET part_count = part_count + ? WHERE pk = ? AND part_count = ? RETURNING part_count',
      ...[parts.added.length, pk, parts.before],
    )
    if (counts.length === 0) return false
  }
  yield* writeTask(dialect, pk, id, { key, runId, entries, also: parts ? { parts } : {} })
  return true
}
