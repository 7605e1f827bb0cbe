/**
 * Deleting old run records, of one app or of all. Given an app, rows of another app are never deleted, whatever their age:
 * apps that share a database keep their records for different times.
 */
import type { PrunedCounts, PruneOptions } from '../session/run-store.js'
import {
  type Dialect,
  numberIn,
  type SqlDatabase,
  type Statement,
  sql,
  type Task,
  textIn,
} from './sql-database.js'

/** Deletes old events, requests and signals, and then runs and parts of requests that nothing refers to. */
export async function pruneRuns(
  database: SqlDatabase,
  { appName, before }: PruneOptions,
): Promise<PrunedCounts> {
  const pruned = { events: 0, requests: 0, signals: 0 }
  const found = await database.run(runsWithOldRows(appName, before))
  for (const runIds of chunksOf(found.map(row => textIn(row, 'run_id'))))
    for (const { kind, table, number } of PRUNED_TABLES)
      pruned[kind] += await deleteOld(database, oldRows(database.dialect, { table, number, runIds, before }))
  await forgetEmpty(database, appName)
  return pruned
}

const PRUNED_TABLES = [
  { kind: 'events', table: 'lango_run_events', number: 'seq' },
  { kind: 'requests', table: 'lango_run_requests', number: 'step' },
  { kind: 'signals', table: 'lango_run_signals', number: 'id' },
] as const

/**
 * Runs of the app that have old rows, and run ids of old requests and signals that no app has. Starting from the runs
 * makes the cost independent of what other apps keep; events are stored in the order of their numbers, so the first one
 * of a run is its oldest.
 */
function runsWithOldRows(appName: string | undefined, before: number): Statement {
  const old = (table: string) => `SELECT 1 FROM ${table} o WHERE o.run_id = r.run_id AND o.stored_at < ?`
  const ownerless = (table: string) =>
    `SELECT run_id FROM ${table} o WHERE stored_at < ?
      AND NOT EXISTS (SELECT 1 FROM lango_runs r WHERE r.run_id = o.run_id)`
  const app = ofApp(appName)
  return sql(
    `SELECT run_id FROM lango_runs r WHERE ${app.condition} AND (
        (SELECT stored_at FROM lango_run_events e WHERE e.run_id = r.run_id ORDER BY seq LIMIT 1) < ?
        OR EXISTS (${old('lango_run_requests')}) OR EXISTS (${old('lango_run_signals')}))
      UNION ${ownerless('lango_run_requests')} UNION ${ownerless('lango_run_signals')}`,
    ...app.values,
    ...[before, before, before, before, before],
  )
}

/** Rows of an app; without a name, of every app. */
function ofApp(appName: string | undefined): { condition: string; values: readonly string[] } {
  return appName === undefined
    ? { condition: 'TRUE', values: [] }
    : { condition: 'app_name = ?', values: [appName] }
}

interface OldRows {
  table: string
  /** The column that numbers the rows of a run. */
  number: string
  runIds: readonly string[]
  before: number
}

function oldRows({ eachValue }: Dialect, { table, number, runIds, before }: OldRows): Statement {
  return sql(
    `DELETE FROM ${table} WHERE (run_id, ${number}) IN
      (SELECT run_id, ${number} FROM ${table} WHERE run_id IN (SELECT value FROM ${eachValue})
        AND stored_at < ? AND ${NOT_PAUSED} LIMIT ${PRUNED_AT_ONCE})
      RETURNING 1 AS gone`,
    JSON.stringify(runIds),
    before,
  )
}

/** A limited number of rows at a time, so that concurrent writers wait only briefly. */
async function deleteOld(database: SqlDatabase, statement: Statement): Promise<number> {
  for (let pruned = 0; ; ) {
    const rows = await database.run(statement)
    pruned += rows.length
    if (rows.length < PRUNED_AT_ONCE) return pruned
  }
}

const PRUNED_AT_ONCE = 500

/** A run that waits for a person needs its events when it is continued; one that is not due yet is all there is of it. */
const NOT_PAUSED = `run_id NOT IN (
  SELECT run_id FROM lango_runs WHERE state <> 'finished' AND state IN ('waiting', 'handover', 'scheduled')
)`

/**
 * Deletes runs that have nothing left and have ended, and parts that no request refers to. Tool calls of those runs stay
 * without their results: the ordinals of later calls depend on them. Rows to delete are looked for without a lock, and then
 * deleted in small transactions that look again, so that writers wait for milliseconds only.
 */
async function forgetEmpty(database: SqlDatabase, appName: string | undefined): Promise<void> {
  const { dialect } = database
  const app = ofApp(appName)
  const unused = await database.run(
    sql(
      `SELECT DISTINCT session_pk FROM lango_request_parts p
        WHERE session_pk IN (SELECT pk FROM lango_sessions WHERE ${app.condition}) AND ${WITHOUT_REQUESTS}`,
      ...app.values,
    ),
  )
  for (const some of chunksOf(unused.map(row => numberIn(row, 'session_pk'))))
    await database.write(() => deletePartsTask(dialect, some))
  const empty = await database.run(
    sql(`SELECT run_id FROM lango_runs WHERE ${app.condition} AND ${IS_EMPTY}`, ...app.values),
  )
  for (const some of chunksOf(empty.map(row => textIn(row, 'run_id'))))
    await database.write(() => deleteRunsTask(dialect, some))
}

/** The parts of a session go together, with its last request. Writers of requests are kept away meanwhile. */
function* deletePartsTask(dialect: Dialect, sessions: readonly number[]): Task<void> {
  yield* dialect.lock('pruning')
  yield sql(
    `DELETE FROM lango_request_parts AS p WHERE p.session_pk IN (SELECT CAST(value AS BIGINT) FROM ${dialect.eachValue})
      AND ${WITHOUT_REQUESTS}`,
    JSON.stringify(sessions),
  )
}

function* deleteRunsTask({ eachValue }: Dialect, runIds: readonly string[]): Task<void> {
  const gone = yield sql(
    `DELETE FROM lango_runs WHERE run_id IN (SELECT value FROM ${eachValue}) AND ${IS_EMPTY} RETURNING run_id`,
    JSON.stringify(runIds),
  )
  if (gone.length === 0) return
  yield sql(
    `UPDATE lango_tool_calls SET result = NULL, actions = NULL
      WHERE run_id IN (SELECT value FROM ${eachValue}) AND (result IS NOT NULL OR actions IS NOT NULL)`,
    JSON.stringify(gone.map(row => textIn(row, 'run_id'))),
  )
}

const WITHOUT_REQUESTS = `NOT EXISTS (SELECT 1 FROM lango_sessions s
  JOIN lango_runs a ON a.app_name = s.app_name AND a.user_id = s.user_id AND a.session_id = s.session_id
  JOIN lango_run_requests r ON r.run_id = a.run_id WHERE s.pk = p.session_pk)`

const IS_EMPTY = `deleted_at IS NULL AND state = 'finished'
  AND NOT EXISTS (SELECT 1 FROM lango_run_events e WHERE e.run_id = lango_runs.run_id)
  AND NOT EXISTS (SELECT 1 FROM lango_run_requests r WHERE r.run_id = lango_runs.run_id)
  AND NOT EXISTS (SELECT 1 FROM lango_run_signals s WHERE s.run_id = lango_runs.run_id)`

function chunksOf<T>(values: readonly T[]): T[][] {
  const count = Math.ceil(values.length / DELETED_AT_ONCE)
  return Array.from({ length: count }, (_, index) =>
    values.slice(index * DELETED_AT_ONCE, (index + 1) * DELETED_AT_ONCE),
  )
}

const DELETED_AT_ONCE = 200
