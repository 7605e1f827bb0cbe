/**
 * Emptying old records of runs, of one app or of all. Given an app, rows of another app are never changed, whatever their
 * age: apps that share a database keep their records for different times.
 *
 * - Only runs that have ended are pruned: any other may be continued, and needs what it has stored.
 * - An entry keeps its header and its message, so that the numbers of the log have no gap. Rows of the ledger stay, too:
 *   the ordinals of later calls depend on them.
 * - What is to be emptied is looked for without a lock, and emptied in small transactions that lock the session.
 */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { EntryKind } from '../session/log-store.js'
import type { PrunedCounts, PruneOptions } from '../session/run-store.js'
import {
  type Dialect,
  numberIn,
  type Row,
  type SqlDatabase,
  type Statement,
  sql,
  type Task,
  textIn,
} from './sql-database.js'
import { eventsIn } from './sql-detach.js'

/** Empties old entries of runs that have ended, and then deletes runs and parts of requests that nothing refers to. */
export async function pruneRuns(
  database: SqlDatabase,
  { appName, before }: PruneOptions,
): Promise<PrunedCounts> {
  const pruned = { events: 0, requests: 0, signals: 0 }
  for (let afterPk = 0; ; ) {
    const page = await database.run(sessionsWithOldRuns(appName, before, afterPk))
    for (const row of page) {
      afterPk = numberIn(row, 'session_pk')
      await pruneSession(database, { pk: afterPk, before, pruned })
    }
    if (page.length < SESSIONS_AT_ONCE) return pruned
  }
}

const SESSIONS_AT_ONCE = 50

/** No entry of a run is older than the run's acceptance. A run that was pruned has no row any more. */
const IS_OLD = `deleted_at IS NULL AND state = 'finished' AND accepted_at < ?`

/** The next sessions that have runs to be pruned, perhaps. */
function sessionsWithOldRuns(appName: string | undefined, before: number, afterPk: number): Statement {
  const ofApp = appName === undefined ? '' : 'AND app_name = ?'
  return sql(
    `SELECT DISTINCT session_pk FROM lango_runs WHERE session_pk > ? AND ${IS_OLD} ${ofApp}
      ORDER BY session_pk LIMIT ${SESSIONS_AT_ONCE}`,
    ...[afterPk, before, ...(appName === undefined ? [] : [appName])],
  )
}

/** A session that is pruned. */
interface Pruning {
  readonly pk: number
  readonly before: number
  readonly pruned: PrunedCounts
}

/** Entries of one session from the first to the last, and then what no entry refers to. */
async function pruneSession(database: SqlDatabase, { pk, before, pruned }: Pruning): Promise<void> {
  const { dialect } = database
  const [session] = await database.run(sql('SELECT entry_count FROM lango_sessions WHERE pk = ?', pk))
  const kept: Kept = { throughSeq: numberIn(session, 'entry_count'), runs: new Set(), requests: false }
  let afterSeq = 0
  for (let count = SCANNED_AT_ONCE; count === SCANNED_AT_ONCE; ) {
    const rows = await database.run(scanStatement(pk, before, { afterSeq, ...kept }))
    const old = rows.filter(row => numberIn(row, 'is_old') === 1)
    if (old.length > 0) {
      const seqs = old.map(row => numberIn(row, 'seq'))
      const emptied = new Set(await database.write(() => emptyTask(dialect, pk, seqs)))
      for (const row of old) if (emptied.has(numberIn(row, 'seq'))) add(pruned, row)
    }
    for (const row of rows) if (numberIn(row, 'is_old') === 0) keep(kept, row)
    afterSeq = numberIn(rows.at(-1), 'seq')
    count = rows.length
    await yieldToEventLoop()
  }
  await database.write(() => deletePartsTask(dialect, pk, kept))
  await forgetRuns(database, { pk, before, pruned }, kept)
}

const SCANNED_AT_ONCE = 500

/** What entries that are not pruned refer to. Those after `throughSeq` came later and were not looked at. */
interface Kept {
  readonly throughSeq: number
  readonly runs: Set<number>
  requests: boolean
}

/** Entries of runs that have ended: they go together, by the time of that end, because requests are stored as changes. */
const IS_OVER = `r.state = 'finished' AND COALESCE(l.at, e.at) < ?`

/** Entries that have content, or are too young to be pruned. `is_old`: to be emptied. */
function scanStatement(
  pk: number,
  before: number,
  { afterSeq, throughSeq }: { afterSeq: number; throughSeq: number },
): Statement {
  return sql(
    `SELECT e.seq, e.kind, e.run_pk, e.events, CASE WHEN ${IS_OVER} THEN 1 ELSE 0 END AS is_old,
        CASE WHEN e.data IS NULL THEN 0 ELSE 1 END AS has_data
      FROM lango_entries e JOIN lango_runs r ON r.pk = e.run_pk
        LEFT JOIN lango_entries l ON l.session_pk = e.session_pk AND l.seq = r.last_seq
      WHERE e.session_pk = ? AND e.seq > ? AND e.seq <= ?
        AND (e.data IS NOT NULL OR e.pending IS NOT NULL OR NOT (${IS_OVER}))
      ORDER BY e.seq LIMIT ${SCANNED_AT_ONCE}`,
    ...[before, pk, afterSeq, throughSeq, before],
  )
}

const HAS_CONTENT = '(data IS NOT NULL OR pending IS NOT NULL)'

function keep(kept: Kept, row: Row): void {
  kept.runs.add(numberIn(row, 'run_pk'))
  if (textIn(row, 'kind') === 'request' && numberIn(row, 'has_data') === 1) kept.requests = true
}

function add(pruned: PrunedCounts, row: Row): void {
  const kind = textIn(row, 'kind') as EntryKind
  pruned.events += numberIn(row, 'events')
  if (kind === 'request') pruned.requests += 1
  if (kind === 'reply' || kind === 'stop' || kind === 'steer') pruned.signals += 1
}

/** Returns the numbers of the entries that had content until now. */
function* emptyTask(dialect: Dialect, pk: number, seqs: readonly number[]): Task<number[]> {
  yield* lockTask(dialect, pk)
  const rows = yield sql(
    `UPDATE lango_entries SET data = NULL, salt = NULL, events = NULL, event_seq = NULL, pending = NULL
      WHERE session_pk = ? AND seq ${dialect.among('BIGINT')} AND ${HAS_CONTENT} RETURNING seq`,
    pk,
    JSON.stringify(seqs),
  )
  return rows.map(row => numberIn(row, 'seq'))
}

function* lockTask({ forUpdate }: Dialect, pk: number): Task<void> {
  yield sql(`SELECT pk FROM lango_sessions WHERE pk = ?${forUpdate}`, pk)
}

/**
 * The parts of a session go together, with its last request. Its count of parts grows, so that a writer who knows some of
 * them finds that they have changed.
 */
function* deletePartsTask(dialect: Dialect, pk: number, kept: Kept): Task<void> {
  if (kept.requests) return
  yield* lockTask(dialect, pk)
  const [unused] = yield sql(
    `SELECT 1 AS unused FROM lango_request_parts WHERE session_pk = ? AND NOT EXISTS (SELECT 1 FROM lango_entries e
      WHERE e.session_pk = ? AND e.seq > ? AND e.kind = 'request' AND e.data IS NOT NULL) LIMIT 1`,
    ...[pk, pk, kept.throughSeq],
  )
  if (unused === undefined) return
  yield sql('DELETE FROM lango_request_parts WHERE session_pk = ?', pk)
  yield sql('UPDATE lango_sessions SET part_count = part_count + 1 WHERE pk = ?', pk)
}

/** Empties the old runs of a session, and deletes those that have nothing left. */
async function forgetRuns(database: SqlDatabase, { pk, before, pruned }: Pruning, kept: Kept): Promise<void> {
  for (let afterPk = 0, count = RUNS_AT_ONCE; count === RUNS_AT_ONCE; ) {
    const rows = await database.run(
      sql(
        `SELECT pk, events FROM lango_runs WHERE session_pk = ? AND pk > ? AND ${IS_OLD} ORDER BY pk LIMIT ${RUNS_AT_ONCE}`,
        ...[pk, afterPk, before],
      ),
    )
    const held = new Map(rows.map(row => [numberIn(row, 'pk'), eventsIn(row)]))
    const emptied = await database.write(() => forgetRunsTask(database.dialect, pk, [...held.keys()], kept))
    for (const run of emptied) pruned.events += held.get(run) ?? 0
    afterPk = numberIn(rows.at(-1), 'pk')
    count = rows.length
    await yieldToEventLoop()
  }
}

/** Returns the runs that had events until now. */
function* forgetRunsTask(dialect: Dialect, pk: number, runs: readonly number[], kept: Kept): Task<number[]> {
  yield* lockTask(dialect, pk)
  const emptied = yield sql(
    `UPDATE lango_runs SET events = NULL WHERE pk ${dialect.among('BIGINT')} AND events IS NOT NULL RETURNING pk`,
    JSON.stringify(runs),
  )
  const gone = yield sql(
    `DELETE FROM lango_runs WHERE pk ${dialect.among('BIGINT')} AND NOT EXISTS (SELECT 1 FROM lango_entries e
      WHERE e.session_pk = ? AND e.seq > ? AND e.run_pk = lango_runs.pk) RETURNING run_id`,
    JSON.stringify(runs.filter(run => !kept.runs.has(run))),
    pk,
    kept.throughSeq,
  )
  if (gone.length > 0) {
    yield sql(
      `UPDATE lango_tool_calls SET result = NULL, actions = NULL
        WHERE run_id ${dialect.among('TEXT')} AND (result IS NOT NULL OR actions IS NOT NULL)`,
      JSON.stringify(gone.map(row => textIn(row, 'run_id'))),
    )
  }
  return emptied.map(row => numberIn(row, 'pk'))
}

const RUNS_AT_ONCE = 200
