/** Accepting, ending and posting to runs. */
import { tidyTitle } from '../../base/title.js'
import { invariant } from '../../errors.js'
import type { LeaseRequest, NewEntry, NewRun, Post } from '../../session/log-store.js'
import { storableJson } from '../check-input.js'
import { titleColumns } from '../listing.js'
import { STARTS_TURN } from '../rows.js'
import {
  type Dialect,
  HOUR_MS,
  namesOf,
  SESSION_KEY,
  type SqlValue,
  type Statement,
  sql,
  touched,
} from '../sql-database.js'
import { storableText } from '../storable-text.js'
import { CONTENT_COLUMNS, CONTENT_PLACES, entryToRow, keyText } from './log-rows.js'
import { granted, isFree } from './write-lease.js'

/** The session of a marked write, by its names. */
const MARKED_KEY = `FROM lango_sessions s WHERE s.app_name = ? AND s.user_id = ? AND s.session_id = ? AND s.write_id = ?`

const ENTRY = `INSERT INTO lango_entries (session_pk, seq, at, run_pk, nested_pk, message_seq, ${CONTENT_COLUMNS.join(', ')})`

/** A session that is new takes over the lease of its key, which the condition may name `l`. */
function ensureSession(
  { now }: Dialect,
  { key, title }: NewRun,
  condition: { text: string; parameters: readonly SqlValue[] },
): readonly Statement[] {
  const names = namesOf(key)
  const create = sql(
    `INSERT INTO lango_sessions (app_name, user_id, session_id, title, search, created_at, updated_at, updated_hour,
        fence, holder, lease_until, lease_ms)
      SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), clock.now, clock.now,
        clock.now / ${HOUR_MS}, COALESCE(l.fence, 0), COALESCE(l.holder, ''), COALESCE(l.lease_until, 0),
        COALESCE(l.lease_ms, 0)
      FROM (SELECT ${now} AS now) AS clock
        LEFT JOIN lango_leases l ON l.app_name = ? AND l.user_id = ? AND l.session_id = ?
      WHERE ${condition.text} ON CONFLICT (app_name, user_id, session_id) DO NOTHING`,
    ...names,
    ...titleColumns(tidyTitle(title), key.sessionId),
    ...names,
    ...condition.parameters,
  )
  const move = sql(
    `DELETE FROM lango_leases WHERE ${SESSION_KEY} AND EXISTS (SELECT 1 FROM lango_sessions WHERE ${SESSION_KEY})`,
    ...[...names, ...names],
  )
  return [create, move]
}

/** Begins the run if its session is free and has no other run. The last three statements: session, run, entry. */
export function acceptBatch(
  dialect: Dialect,
  run: NewRun,
  id: string,
  { holder, ttlMs, gone = '' }: LeaseRequest,
): readonly Statement[] {
  const { key, runId, message, input } = run
  const names = namesOf(key)
  const { message: row, values } = entryToRow({ kind: 'begun', runId, message, data: { input } })
  const turn = ((row?.flags ?? 0) & STARTS_TURN) === 0 ? 0 : 1
  return [
    ...dialect.keyLock(keyText(key)),
    ...ensureSession(dialect, run, {
      text: `(l.fence IS NULL OR ${isFree(dialect, 'l')})`,
      parameters: [gone],
    }),
    ...dialect.fences.take,
    sql(
      `UPDATE lango_sessions SET entry_count = entry_count + 1, message_count = message_count + 1,
          token_total = token_total + ?, turn_seq = CASE WHEN CAST(? AS BIGINT) = 0 THEN turn_seq
            ELSE message_count + 1 END, open_runs = 1, write_id = ?, ${granted(dialect)}, ${touched(dialect)}
        WHERE ${SESSION_KEY} AND open_runs = 0 AND ${isFree(dialect)}
        RETURNING pk, fence, entry_count, message_count, post_count`,
      ...[row?.tokens ?? 0, turn, id, holder, ttlMs, ttlMs, ...names, gone],
    ),
    sql(
      `INSERT INTO lango_runs (run_id, session_pk, app_name, state, accepted_at, first_seq)
        SELECT CAST(? AS TEXT), s.pk, s.app_name, 'running', ${dialect.now}, s.entry_count ${MARKED_KEY}`,
      ...[runId, ...names, id],
    ),
    sql(
      `${ENTRY} SELECT s.pk, s.entry_count, ${dialect.now}, (SELECT r.pk FROM lango_runs r WHERE r.run_id = ?), 0,
        s.message_count, ${CONTENT_PLACES} ${MARKED_KEY}`,
      ...[runId, ...values, ...names, id],
    ),
  ]
}

/** Stores a run that does not begin yet. The last statement has its place in the queue. */
export function queueBatch(dialect: Dialect, run: NewRun, id: string): readonly Statement[] {
  const { key, runId, message, input, when } = run
  const names = namesOf(key)
  const dueAt = typeof when === 'object' ? when.dueAt : null
  return [
    ...dialect.keyLock(keyText(key)),
    ...ensureSession(dialect, run, { text: 'true', parameters: [] }),
    sql(
      `UPDATE lango_sessions SET open_runs = open_runs + ?, write_id = ?, ${touched(dialect)} WHERE ${SESSION_KEY}`,
      ...[dueAt === null ? 1 : 0, id, ...names],
    ),
    sql(
      `INSERT INTO lango_runs (run_id, session_pk, app_name, state, accepted_at, due_at, input)
        SELECT CAST(? AS TEXT), s.pk, s.app_name, CAST(? AS TEXT), ${dialect.now}, CAST(? AS BIGINT), CAST(? AS TEXT)
        ${MARKED_KEY}`,
      ...[runId, dueAt === null ? 'queued' : 'scheduled', dueAt],
      ...[storableJson('input', { message, input }), ...names, id],
    ),
    sql(
      `SELECT count(*) AS place FROM lango_runs r JOIN lango_sessions s ON s.pk = r.session_pk
        WHERE s.app_name = ? AND s.user_id = ? AND s.session_id = ? AND r.state = 'queued'`,
      ...names,
    ),
  ]
}

/** Locks a session, so that conditions on its runs are read after those who changed them. */
export function lockSession({ forUpdate }: Dialect, pk: number): Statement {
  return sql(`SELECT pk FROM lango_sessions WHERE pk = ?${forUpdate}`, pk)
}

export const IS_QUEUED = `EXISTS (SELECT 1 FROM lango_runs q WHERE q.run_id = ? AND q.session_pk = lango_sessions.pk
  AND q.state = 'queued')`

/** Follows the write that begins a queued run: its row knows the first entry of that write, and has no input any more. */
export function begunStatement(runId: string, pk: number, id: string): Statement {
  return sql(
    `UPDATE lango_runs SET state = 'running', input = NULL,
        first_seq = (SELECT s.write_entry FROM lango_sessions s WHERE s.pk = ?)
      WHERE run_id = ? AND EXISTS (SELECT 1 FROM lango_sessions s WHERE s.pk = ? AND s.write_id = ?)`,
    ...[pk, runId, pk, id],
  )
}

/** The session of a run. It never changes. */
const ITS_SESSION = '(SELECT x.session_pk FROM lango_runs x WHERE x.run_id = ? AND x.deleted_at IS NULL)'

/** The session of a run, which a write has marked. */
const ITS_MARKED = 'FROM lango_sessions s WHERE s.pk = lango_runs.session_pk AND s.write_id = ?'

function lockItsSession({ forUpdate }: Dialect, runId: string): Statement {
  return sql(`SELECT pk FROM lango_sessions WHERE pk = ${ITS_SESSION}${forUpdate}`, runId)
}

/** Ends a run that has not begun. Rows of the second statement: the session's row, if it did. */
export function endQueuedBatch(
  dialect: Dialect,
  runId: string,
  id: string,
  entries: readonly NewEntry[],
): readonly Statement[] {
  return [
    lockItsSession(dialect, runId),
    sql(
      `UPDATE lango_sessions SET entry_count = entry_count + ?, write_id = ?, open_runs = open_runs - (
          SELECT count(*) FROM lango_runs r WHERE r.run_id = ? AND r.state = 'queued')
        WHERE pk = ${ITS_SESSION} AND EXISTS (
          SELECT 1 FROM lango_runs q WHERE q.run_id = ? AND q.state IN ('queued', 'scheduled'))
        RETURNING entry_count`,
      ...[entries.length, id, runId, runId, runId],
    ),
    ...entries.map((entry, index) => runEntry(dialect, runId, id, entry, entries.length - 1 - index)),
    sql(
      `UPDATE lango_runs SET state = 'finished', finish_reason = 'aborted', input = NULL,
          last_seq = (SELECT s.entry_count ${ITS_MARKED}) WHERE run_id = ? AND EXISTS (SELECT 1 ${ITS_MARKED})`,
      ...[id, runId, id],
    ),
  ]
}

/** Stores a post. Rows of the second statement: its number. */
export function postBatch(
  dialect: Dialect,
  { runId, kind, key, data }: Post,
  id: string,
): readonly Statement[] {
  const isNew = key === undefined ? '' : `AND ${NO_SUCH_KEY}`
  const entry = { kind, ...(key === undefined ? {} : { key }), ...(data ? { data } : {}) }
  return [
    lockItsSession(dialect, runId),
    sql(
      `UPDATE lango_sessions SET entry_count = entry_count + 1, post_count = post_count + 1, write_id = ?
        WHERE pk = ${ITS_SESSION} AND EXISTS (
          SELECT 1 FROM lango_runs r WHERE r.run_id = ? AND r.state <> 'finished') ${isNew}
        RETURNING entry_count`,
      ...[id, runId, runId, ...(key === undefined ? [] : [storableText(key)])],
    ),
    runEntry(dialect, runId, id, entry, 0),
    sql(
      `UPDATE lango_runs SET posted_seq = (SELECT s.entry_count ${ITS_MARKED})
        WHERE run_id = ? AND EXISTS (SELECT 1 ${ITS_MARKED})`,
      ...[id, runId, id],
    ),
  ]
}

const NO_SUCH_KEY =
  'NOT EXISTS (SELECT 1 FROM lango_entries e WHERE e.session_pk = lango_sessions.pk AND e.entry_key = ?)'

/** An entry without a message. `entriesAfter`: how many entries of the write come after this one. */
function runEntry(
  dialect: Dialect,
  runId: string,
  id: string,
  entry: NewEntry,
  entriesAfter: number,
): Statement {
  invariant(!entry.message, 'a message needs a lease: another run may be at work')
  return sql(
    `${ENTRY} SELECT s.pk, s.entry_count - CAST(? AS BIGINT), ${dialect.now}, r.pk, 0, CAST(NULL AS BIGINT),
        ${CONTENT_PLACES}
      FROM lango_runs r JOIN lango_sessions s ON s.pk = r.session_pk WHERE r.run_id = ? AND s.write_id = ?`,
    ...[entriesAfter, ...entryToRow(entry).values, runId, id],
  )
}
