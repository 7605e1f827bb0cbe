/**
 * The opening of a run and each of its steps as one statement, for PostgreSQL, which is a network away. A statement
 * stores everything or nothing: when something forbids it (a lost lease, a deleted session, a run that has ended), it
 * returns no row; when a row exists already, it violates a unique index. Both are left to the tasks, which replace
 * what may be replaced and report the reason of a refusal.
 *
 * Locks are acquired in the order of the tasks: ticket, then run, then session. Lists are JSON arrays, so that the
 * number of texts does not depend on their length; what they hold is text, NUL and lone surrogates escaped in it.
 */
import { tidyTitle } from '../base/title.js'
import type { SessionKey } from '../session/message.js'
import type { RunOpening, RunStep } from '../session/run-store.js'
import type { Observation } from '../session/session-store.js'
import type { JournalRow } from './journal.js'
import { titleColumns } from './listing.js'
import { addsCalls, CALLS_JSON, callConditions, callQuery, fitsOneStatement } from './postgres-calls.js'
import { LOCKS } from './postgres-dialect.js'
import { eachOf, type NamedQuery, Query } from './postgres-query.js'
import { CAST_PLACES, indexedId, MESSAGE_COLUMNS, type MessageRow, STARTS_TURN } from './rows.js'
import type { CallRow } from './sql-calls.js'
import {
  type Dialect,
  HOUR_MS,
  joined,
  namesOf,
  repeatableSql,
  SESSION_KEY,
  type SqlValue,
  type Statement,
  touched,
} from './sql-database.js'
import { type EventRow, FORGET_JOURNAL, UNSETTLED } from './sql-event-rows.js'
import { progressStatement } from './sql-journal.js'
import { LIST_MARKER, SESSION_PK, type SplitRequest } from './sql-requests.js'
import type { StepRows } from './sql-run-steps.js'
import { usageOfRun } from './sql-spending.js'
import { STATE_TABLES } from './sql-state.js'
import { deleteExpiredText, limitText } from './sql-tickets.js'
import type { StateChange, StateScope } from './state-scopes.js'
import { storableText } from './storable-text.js'

/**
 * Opens the run of a ticket that was taken in this transaction. Without `seq` the run exists, the session has runs that
 * have not ended, or the ticket is not the first. The number of tickets before it is read after those that expired were deleted, which waits for
 * the writes that were checked under them; adding to the session waits for writes that were checked without a lease.
 */
export function openStatement(
  dialect: Dialect,
  opening: RunOpening,
  ticket: number,
  { row, events, input }: { row: MessageRow; events: readonly EventRow[]; input: string | null },
): Statement {
  const { key, runId } = opening
  const names = namesOf(key)
  const query = new Query()
  query.with(
    'known AS MATERIALIZED',
    `SELECT run_id FROM lango_runs WHERE run_id = ? UNION ALL (SELECT run_id FROM lango_runs
      WHERE ${SESSION_KEY} AND state <> 'finished' AND state <> 'scheduled' LIMIT 1)`,
    runId,
    ...names,
  )
  query.with('limited AS', limitText(dialect), ...names, ticket)
  // The ticket of a late holder is deleted only when another run is granted the lease.
  const isNew = 'NOT EXISTS (SELECT 1 FROM known)'
  query.with('gone AS', `${deleteExpiredText(dialect)} AND ${isNew} RETURNING id`, ...names, ticket)
  query.with(
    'session AS',
    `INSERT INTO lango_sessions (app_name, user_id, session_id, title, search, message_count, token_total, turn_seq,
        created_at, updated_at, updated_hour)
      SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), 1, CAST(? AS BIGINT),
        CAST(? AS BIGINT), clock.now, clock.now, clock.now / ${HOUR_MS} FROM (SELECT ${dialect.now} AS now) AS clock
      WHERE ${isNew} AND (SELECT count(*) FROM gone) =
        (SELECT count(*) FROM lango_leases WHERE ${SESSION_KEY} AND id < ?)
      ON CONFLICT (app_name, user_id, session_id) DO UPDATE SET message_count = lango_sessions.message_count + 1,
        token_total = lango_sessions.token_total + excluded.token_total, turn_seq = CASE WHEN excluded.turn_seq = 0
          THEN lango_sessions.turn_seq ELSE lango_sessions.message_count + 1 END, ${touched(dialect)}
      RETURNING pk, message_count AS seq`,
    ...names,
    ...titleColumns(tidyTitle(opening.title), key.sessionId),
    row.tokens,
    (row.flags & STARTS_TURN) === 0 ? 0 : 1,
    ...names,
    ticket,
  )
  query.with(
    'run AS',
    `INSERT INTO lango_runs (run_id, app_name, user_id, session_id, place, input, started_at, after_seq, state)
      SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS TEXT),
        ${dialect.now}, seq - 1, 'running' FROM session`,
    runId,
    ...names,
    ticket,
    input,
  )
  addMessage(query, row)
  addEvents(query, dialect, runId, events)
  return query.select('SELECT (SELECT seq FROM session) AS seq')
}

/** A step under a valid lease, with its requests split. Returns `seq`, and the numbers of new parts as text. */
export function stepStatement(
  dialect: Dialect,
  step: RunStep,
  rows: StepRows,
  requests: readonly ({ step: number; json: string } & SplitRequest)[],
): Statement {
  const { key, runId, fence, calibration = [], at } = step
  const query = new Query()
  const missing = new Map(requests.flatMap(request => [...request.missing]))
  // Also after it has expired: the next holder deletes the ticket before it begins.
  const ticket = `SELECT id FROM lango_leases WHERE id = ? AND ${SESSION_KEY}${dialect.forKeyShare}`
  query.with('ticket AS MATERIALIZED', ticket, fence, ...namesOf(key))
  const conditions = [
    'ticket',
    ...addRun(query, step, rows),
    ...addKept(query, key, requests),
    ...addCallConditions(query, key, rows.calls),
    ...(at ? addNested(query, dialect, at) : []),
  ]
  const written = addWritten(query, dialect, step, rows, conditions)
  if (rows.row !== undefined) addMessage(query, rows.row, written)
  if (rows.changes.length > 0) addState(query, at ?? key, rows.changes, written)
  if (rows.events.length > 0) addEvents(query, dialect, runId, rows.events)
  addProgress(query, step, rows, written)
  if (rows.calls.length > 0) query.with(...callQuery(dialect, key, rows.calls))
  if (missing.size > 0) addParts(query, key, missing)
  if (requests.length > 0) addRequests(query, dialect, runId, requests, missing.size > 0)
  if (calibration.length > 0) addCalibration(query, calibration)
  if (step.release)
    query.with(
      'released AS',
      'DELETE FROM lango_leases WHERE id = ? AND EXISTS (SELECT 1 FROM session)',
      fence,
    )
  const parts = missing.size === 0 ? 'NULL' : "(SELECT string_agg(id || ' ' || digest, ',') FROM parts)"
  const calls = rows.calls.length === 0 ? 'NULL' : CALLS_JSON
  const statement = query.select(
    `SELECT (SELECT seq FROM ${written}) AS seq, ${parts} AS parts, ${calls} AS calls FROM session`,
  )
  // Stored twice, everything but a message without an id is what it was; counts are sums whose ratio matters.
  const sent = rows.row?.eventId === null ? statement : repeatableSql(statement.text, ...statement.parameters)
  return joinedStep(sent, step, rows)
}

/** A step that changes a nested session or shared state, or the counts of several models, is stored by itself. */
function joinedStep(
  statement: Statement,
  { key, fence, calibration = [], at }: RunStep,
  rows: StepRows,
): Statement {
  if (at || rows.changes.some(({ scope }) => isShared(scope))) return statement
  const [model, ...others] = new Set(calibration.map(observation => observation.model))
  if (others.length > 0) return statement
  return joined(statement, key, { ticket: fence, shared: model })
}

/**
 * The run, locked, if it may store what the step holds. Pruning excludes writers of requests: the run is read again
 * after waiting for it.
 */
function addRun(query: Query, { key, runId, pause }: RunStep, rows: StepRows): string[] {
  const { events, requests, journal } = rows
  const isOpen = journal.length > 0 || pause ? "AND r.state <> 'finished'" : ''
  if (events.length + requests.length === 0 && isOpen === '') return []
  const lock = requests.length > 0 ? ' CROSS JOIN pruning' : ''
  if (lock !== '') query.with('pruning AS MATERIALIZED', LOCKS.requests)
  const first = Math.min(...events.map(({ seq }) => seq))
  const parameters: SqlValue[] = [runId, ...namesOf(key)]
  if (events.length > 0) parameters.push(runId, first)
  query.with(
    'run AS MATERIALIZED',
    `SELECT r.run_id FROM lango_runs r${lock} WHERE r.run_id = ? AND r.app_name = ? AND r.user_id = ?
      AND r.session_id = ? AND r.deleted_at IS NULL AND EXISTS (SELECT 1 FROM ticket) ${isOpen}
      ${events.length > 0 ? `AND ${NOT_ENDED}` : ''} FOR UPDATE OF r`,
    ...parameters,
  )
  return ['run']
}

/** The last event has a lower number, and does not look like an end. */
const NOT_ENDED = `NOT EXISTS (SELECT 1 FROM (
    SELECT seq, event FROM lango_run_events WHERE run_id = ? ORDER BY seq DESC LIMIT 1
  ) AS last WHERE last.seq >= ? OR strpos(last.event, '"type":"run-finish"') > 0)`

/**
 * The parts of a session are pruned all at once, and later ones have higher numbers: when the lowest still exists after
 * waiting for pruning, all do.
 */
function addKept(query: Query, key: SessionKey, requests: readonly SplitRequest[]): string[] {
  const lowest = Math.min(...requests.map(request => request.lowest ?? Number.POSITIVE_INFINITY))
  if (lowest === Number.POSITIVE_INFINITY) return []
  query.with(
    'kept AS MATERIALIZED',
    `SELECT p.id FROM lango_request_parts p CROSS JOIN pruning WHERE p.id = ? AND p.session_pk = (${SESSION_PK})
      FOR KEY SHARE OF p`,
    lowest,
    ...namesOf(key),
  )
  return ['kept']
}

/** The changes of the ledger, and what has to hold for them. */
function addCallConditions(query: Query, key: SessionKey, calls: readonly CallRow[]): string[] {
  if (calls.length === 0) return []
  for (const each of callConditions(key, calls)) query.with(...each)
  return addsCalls(calls) ? [] : ['complete']
}

/** Nobody executes the run any more: its input is not needed. */
const ENDED = `UPDATE lango_runs SET state = 'finished', input = NULL
  WHERE run_id = ? AND EXISTS (SELECT 1 FROM session)`

/** The end of a run, or what its continuation needs. */
function addProgress(query: Query, step: RunStep, rows: StepRows, written: string): void {
  const { runId } = step
  const isStored = 'EXISTS (SELECT 1 FROM session)'
  if (rows.events.some(({ isEnd }) => isEnd)) {
    query.with('ended AS', ENDED, runId)
    query.with('forgotten AS', `${FORGET_JOURNAL} AND ${isStored}`, runId)
    // A row is changed once in a statement: a step that also changes calls settles them by itself.
    if (rows.calls.length === 0) query.with('unsettled AS', `${UNSETTLED} AND ${isStored}`, runId)
    return
  }
  if (rows.journal.length > 0) query.with(...journalQuery(runId, rows.journal, written))
  const progress = progressStatement(step, rows.isProgress)
  if (progress) query.with('progress AS', `${progress.text} AND ${isStored}`, ...progress.parameters)
}

/** Adds the entries for the row of `session`; `written` has the number of the message. */
function journalQuery(runId: string, rows: readonly JournalRow[], written: string): NamedQuery {
  const list = rows.map(({ id, seq, json, isOfMessage }) => [indexedId(id), seq, json, isOfMessage])
  return [
    'journal AS',
    `INSERT INTO lango_run_journal (run_id, entry_key, seq, entry)
      SELECT CAST(? AS TEXT), j ->> 0,
        CASE WHEN CAST(j ->> 3 AS BOOLEAN) THEN (SELECT seq FROM ${written}) ELSE CAST(j ->> 1 AS BIGINT) END, j ->> 2
      FROM session CROSS JOIN json_array_elements(CAST(? AS json)) WITH ORDINALITY AS each (j, place)
      ORDER BY place ON CONFLICT (run_id, entry_key) DO NOTHING`,
    runId,
    JSON.stringify(list),
  ]
}

/** The session that a nested agent keeps, locked. */
function addNested(query: Query, { forUpdate }: Dialect, at: SessionKey): string[] {
  const text = `SELECT pk FROM lango_sessions WHERE ${SESSION_KEY}${forUpdate}`
  query.with('nested AS MATERIALIZED', text, ...namesOf(at))
  return ['nested']
}

/** Numbers the message; returns the query whose row has its session and its number. */
function addWritten(
  query: Query,
  dialect: Dialect,
  { key, at }: RunStep,
  rows: StepRows,
  conditions: readonly string[],
): string {
  addSession(query, dialect, { name: 'session', key }, at ? { ...rows, ...NO_MESSAGE } : rows, conditions)
  if (at === undefined) return 'session'
  addSession(query, dialect, { name: 'written', key: at }, { ...rows, calls: [] }, ['session'])
  return 'written'
}

const NO_MESSAGE = { row: undefined, changes: [] }

/** Everything else is stored once for the row of this query. */
export function addSession(
  query: Query,
  dialect: Dialect,
  { name, key }: { name: string; key: SessionKey },
  { row, changes, calls }: Pick<StepRows, 'row' | 'changes' | 'calls'>,
  conditions: readonly string[],
): void {
  const added = addsCalls(calls) ? calls.length : 0
  if (row === undefined && changes.length === 0 && added === 0) {
    const sources = conditions.join(' CROSS JOIN ')
    query.with(`${name} AS MATERIALIZED`, `SELECT 0 AS pk, 0 AS seq FROM ${sources}`)
    return
  }
  const counters = `message_count = message_count + 1, token_total = token_total + ?,
    turn_seq = CASE WHEN CAST(? AS INTEGER) = 0 THEN turn_seq ELSE message_count + 1 END,`
  query.with(
    `${name} AS`,
    `UPDATE lango_sessions SET ${row === undefined ? '' : counters} ${added > 0 ? 'call_count = call_count + ?,' : ''}
      ${touched(dialect)} WHERE ${SESSION_KEY} AND ${added > 0 ? `${UNCHANGED_LEDGER} AND ` : ''}
      ${conditions.map(each => `EXISTS (SELECT 1 FROM ${each})`).join(' AND ')}
      RETURNING pk, message_count AS seq, call_count`,
    ...(row === undefined ? [] : [row.tokens, row.flags & STARTS_TURN]),
    ...(added > 0 ? [added] : []),
    ...namesOf(key),
    ...(added > 0 ? namesOf(key) : []),
  )
}

/** Ordinals are counted as of before any wait for the session's row: when calls were added meanwhile, they are wrong. */
const UNCHANGED_LEDGER =
  'call_count = (SELECT call_count FROM lango_sessions WHERE app_name = ? AND user_id = ? AND session_id = ?)'

export function addMessage(query: Query, row: MessageRow, written = 'session'): void {
  query.with(
    'message AS',
    `INSERT INTO lango_messages (session_pk, seq, ${MESSAGE_COLUMNS.join(', ')})
      SELECT pk, seq, ${CAST_PLACES} FROM ${written}`,
    ...row.values,
  )
}

export function addEvents(query: Query, dialect: Dialect, runId: string, events: readonly EventRow[]): void {
  const { now } = dialect
  for (const { seq, usage } of events) {
    const used = usage && usageOfRun(dialect, runId, seq, usage, 'session CROSS JOIN ')
    if (used) query.with('used AS', used.text, ...used.parameters)
  }
  query.with(
    'events AS',
    `INSERT INTO lango_run_events (run_id, seq, stored_at, event)
      SELECT CAST(? AS TEXT), CAST(e ->> 0 AS BIGINT), ${now}, e ->> 1 FROM session CROSS JOIN ${eachOf('e')}`,
    runId,
    JSON.stringify(events.map(({ seq, json }) => [seq, json])),
  )
}

function addParts(query: Query, key: SessionKey, missing: ReadonlyMap<string, string>): void {
  query.with(
    'parts AS',
    `INSERT INTO lango_request_parts (session_pk, digest, part)
      SELECT (${SESSION_PK}), p ->> 0, p ->> 1 FROM session CROSS JOIN ${eachOf('p')} RETURNING id, digest`,
    ...namesOf(key),
    JSON.stringify([...missing]),
  )
}

function addRequests(
  query: Query,
  { now }: Dialect,
  runId: string,
  requests: readonly ({ step: number; json: string } & SplitRequest)[],
  hasParts: boolean,
): void {
  // A digest stands for the number that its part has just been given.
  const join = hasParts ? 'LEFT JOIN parts ON parts.digest = item' : ''
  const item = hasParts ? 'COALESCE(CAST(parts.id AS TEXT), item)' : 'item'
  query.with(
    'requests AS',
    `INSERT INTO lango_run_requests (run_id, step, stored_at, record)
      SELECT CAST(? AS TEXT), CAST(r ->> 0 AS BIGINT), ${now}, COALESCE(r ->> 1, (
        SELECT '${LIST_MARKER}' || string_agg(${item}, ' ' ORDER BY place)
        FROM json_array_elements_text(r -> 2) WITH ORDINALITY AS items (item, place) ${join}
      )) FROM session CROSS JOIN ${eachOf('r')}
      ON CONFLICT (run_id, step) DO UPDATE SET record = excluded.record, stored_at = excluded.stored_at`,
    runId,
    JSON.stringify(requests.map(({ step, json, items }) => (items ? [step, null, items] : [step, json]))),
  )
}

function addCalibration(query: Query, observations: readonly Observation[]): void {
  query.with(
    'counts AS',
    `INSERT INTO lango_calibration (model, bytes, tokens)
      SELECT c ->> 0, sum(CAST(c ->> 1 AS BIGINT)), sum(CAST(c ->> 2 AS BIGINT)) FROM session CROSS JOIN ${eachOf('c')}
      GROUP BY c ->> 0 ORDER BY c ->> 0
      ON CONFLICT (model) DO UPDATE SET bytes = lango_calibration.bytes + excluded.bytes,
        tokens = lango_calibration.tokens + excluded.tokens`,
    JSON.stringify(observations.map(({ model, bytes, tokens }) => [model, bytes, tokens])),
  )
}

/**
 * Whether the step is one that a statement can store. Rows of state that other sessions share are locked in the order of
 * their keys, which a deletion of several does not keep.
 */
export function fitsStatement({ changes, requests, calls, events }: StepRows): boolean {
  const steps = new Set(requests.map(({ step }) => step))
  return (
    fitsOneStatement(calls) &&
    steps.size === requests.length &&
    !events.some(({ answered }) => answered !== undefined) &&
    events.filter(({ usage }) => usage !== undefined).length <= 1 &&
    !changes.some(({ scope, json }) => isShared(scope) && json === undefined)
  )
}

function isShared(scope: StateScope): boolean {
  return scope !== 'session'
}

/** App before user, as the tasks do: each waits for the count of the one before. */
function addState(query: Query, key: SessionKey, changes: readonly StateChange[], written: string): void {
  const owners: Record<StateScope, string[]> = {
    app: [key.appName],
    user: [key.appName, key.userId],
    session: [],
  }
  let after = ''
  for (const scope of ['app', 'user', 'session'] as const) {
    const own = changes.filter(change => change.scope === scope)
    const { table, columns } = STATE_TABLES[scope]
    const set = own.flatMap(({ key: name, json }) => (json === undefined ? [] : [[storableText(name), json]]))
    if (set.length === 0) continue
    const owner = isShared(scope) ? owners[scope].map(() => 'CAST(? AS TEXT)').join(', ') : `${written}.pk`
    query.with(
      `${scope}_state AS`,
      `INSERT INTO ${table} (${columns.join(', ')}, key, value)
        SELECT ${owner}, s ->> 0, s ->> 1 FROM ${written}${after} CROSS JOIN ${eachOf('s')}
        ON CONFLICT (${columns.join(', ')}, key) DO UPDATE SET value = excluded.value RETURNING 1`,
      ...owners[scope],
      JSON.stringify(set),
    )
    after = ` CROSS JOIN (SELECT count(*) FROM ${scope}_state) AS before`
  }
  const removed = changes.flatMap(({ key: name, json }) => (json === undefined ? [storableText(name)] : []))
  if (removed.length > 0)
    query.with(
      'removed AS',
      `DELETE FROM lango_session_state USING ${written} WHERE session_pk = ${written}.pk
        AND key IN (SELECT json_array_elements_text(CAST(? AS json)))`,
      JSON.stringify(removed),
    )
}
