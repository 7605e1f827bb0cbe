/** Accepting, beginning, ending and posting to runs. */
import { defined } from '../../base/defined.js'
import { invariant } from '../../errors.js'
import type { LeaseRequest, NewEntry, NewRun, Post } from '../../session/log-store.js'
import type { SessionKey } from '../../session/message.js'
import type { RunEventRecord } from '../../session/run-store.js'
import { storableJson } from '../check-input.js'
import {
  type Dialect,
  type Mark,
  namesOf,
  type SqlValue,
  type Statement,
  sql,
  touched,
} from '../sql-database.js'
import { createSessionStatements } from '../sql-sessions.js'
import { storableText } from '../storable-text.js'
import { CONTENT_COLUMNS, CONTENT_PLACES, entryToRow, keyText } from './log-rows.js'
import type { PreparedWrite } from './prepared-write.js'
import { packEvents } from './stored-events.js'
import { COUNTERS, counted, entryStatements } from './write-entries.js'
import { granted, isFree } from './write-lease.js'

/** A session by its names, marked by a write. */
function markOfKey(key: SessionKey, id: string): Mark {
  return {
    text: 's.app_name = ? AND s.user_id = ? AND s.session_id = ? AND s.write_id = ?',
    parameters: [...namesOf(key), id],
  }
}

const ENTRY = `INSERT INTO lango_entries (session_pk, seq, at, run_pk, ${CONTENT_COLUMNS.join(', ')})`

/**
 * Begins the run if its session is free and has no other run. The rows of the statement at `session` are its session.
 * `isKnown`: the session exists, or did.
 */
export function acceptBatch(
  dialect: Dialect,
  run: NewRun,
  write: PreparedWrite,
  { holder, ttlMs, gone = '' }: LeaseRequest,
  { isKnown }: { isKnown: boolean },
): { statements: readonly Statement[]; session: number } {
  const { key, runId } = run
  const names = namesOf(key)
  const mark = markOfKey(key, write.id)
  const [own] = write.sessions
  invariant(own, 'a run has a message of its own session')
  const counters = counted(write, own)
  const create = [
    ...dialect.keyLock(keyText(key)),
    ...createSessionStatements(dialect, key, defined({ title: run.title }), {
      text: `(l.fence IS NULL OR ${isFree(dialect, 'l')})`,
      parameters: [gone],
    }),
  ]
  const before = [...(isKnown ? [] : create), ...dialect.fences.take]
  const statements = [
    ...before,
    sql(
      `UPDATE lango_sessions SET ${COUNTERS}, open_runs = 1, ${granted(dialect)}, ${touched(dialect)}
        WHERE app_name = ? AND user_id = ? AND session_id = ? AND open_runs = 0 AND ${isFree(dialect)}
        RETURNING pk, fence, entry_count, message_count, post_count, part_count, ${NEWEST_RUN} AS previous_run`,
      ...[...counters, holder, ttlMs, ttlMs, ...names, gone],
    ),
    sql(
      `INSERT INTO lango_runs (run_id, session_pk, app_name, state, place, accepted_at, first_seq, after_seq)
        SELECT CAST(? AS TEXT), s.pk, s.app_name, 'running', s.fence, ${dialect.now}, s.entry_count,
          s.message_count - CAST(? AS BIGINT) FROM lango_sessions s WHERE ${mark.text}`,
      ...[runId, counters[1] ?? 0, ...mark.parameters],
    ),
    ...entryStatements(dialect, write, mark),
  ]
  return { statements, session: before.length }
}

/** Before a run is added. */
const NEWEST_RUN = `(SELECT r.run_id FROM lango_runs r WHERE r.session_pk = lango_sessions.pk
  AND r.state <> 'scheduled' AND r.deleted_at IS NULL ORDER BY r.place DESC LIMIT 1)`

/** Stores a run that does not begin yet. The last statement has its place in the queue. */
export function queueBatch(dialect: Dialect, run: NewRun, id: string): readonly Statement[] {
  const { key, runId, message, input = {}, when, events } = run
  const dueAt = typeof when === 'object' ? when.dueAt : null
  const mark = markOfKey(key, id)
  return [
    ...dialect.keyLock(keyText(key)),
    ...createSessionStatements(dialect, key, defined({ title: run.title })),
    ...dialect.fences.take,
    sql(
      `UPDATE lango_sessions SET open_runs = open_runs + ?, write_id = ?, ${touched(dialect)}
        WHERE app_name = ? AND user_id = ? AND session_id = ?`,
      ...[dueAt === null ? 1 : 0, id, ...namesOf(key)],
    ),
    sql(
      `INSERT INTO lango_runs (run_id, session_pk, app_name, state, place, queue_place, accepted_at, due_at, events, input)
        SELECT CAST(? AS TEXT), s.pk, s.app_name, CAST(? AS TEXT), ${dialect.fences.next}, 1 + (${QUEUE_LENGTH}),
          ${dialect.now}, CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT) FROM lango_sessions s WHERE ${mark.text}`,
      ...[runId, dueAt === null ? 'queued' : 'scheduled', dueAt, eventsJson(events?.accepted ?? [], run)],
      ...[storableJson('input', { message, input }), ...mark.parameters],
    ),
    sql('SELECT queue_place FROM lango_runs WHERE run_id = ?', runId),
  ]
}

const QUEUE_LENGTH = "SELECT count(*) FROM lango_runs q WHERE q.session_pk = s.pk AND q.state = 'queued'"

/** The events of an acceptance as they are kept in the row of the run. */
function eventsJson(
  events: readonly RunEventRecord[],
  { runId, key }: { runId: string; key: { sessionId: string } },
): string | null {
  if (events.length === 0) return null
  return storableJson('events', packEvents(events, { runId, sessionId: key.sessionId }, undefined))
}

/** Locks a session, so that conditions on its runs are read after those who changed them. */
export function lockSession({ forUpdate }: Dialect, pk: number): Statement {
  return sql(`SELECT pk FROM lango_sessions WHERE pk = ?${forUpdate}`, pk)
}

/** The run is queued, and its turn has come. Parameter: its id. */
export function isNext(alone: boolean): string {
  return `EXISTS (SELECT 1 FROM lango_runs r WHERE r.run_id = ? AND r.session_pk = lango_sessions.pk
    AND r.state = 'queued' AND ${alone ? IS_ALONE : NOT_HELD_UP})`
}

/** A run waits for its turn while an earlier run of its session waits for a person, unless that one waits between rounds. */
export const NOT_HELD_UP = `NOT EXISTS (SELECT 1 FROM lango_runs w WHERE w.session_pk = r.session_pk
  AND w.state = 'waiting' AND w.is_between = 0 AND w.place < r.place)`

/** No other run of the session of a queued run `r` has begun and not ended. */
const IS_ALONE = `NOT EXISTS (SELECT 1 FROM lango_runs w WHERE w.session_pk = r.session_pk
  AND w.state IN ('running', 'waiting', 'handover'))`

/** Follows the write that begins a queued run. `write`: that write. */
export function begunStatement(
  runId: string,
  { pk, id, rows, sessions, replaced }: PreparedWrite,
): Statement {
  const added = (sessions[0]?.count ?? 0) - replaced.filter(({ nested }) => !nested).length
  return sql(
    `UPDATE lango_runs SET state = 'running', input = NULL,
        first_seq = COALESCE(first_seq, (SELECT s.entry_count FROM lango_sessions s WHERE s.pk = ?) - CAST(? AS BIGINT)),
        after_seq = (SELECT s.message_count FROM lango_sessions s WHERE s.pk = ?) - CAST(? AS BIGINT)
      WHERE run_id = ? AND EXISTS (SELECT 1 FROM lango_sessions s WHERE s.pk = ? AND s.write_id = ?)`,
    ...[pk, rows.length - 1, pk, added, runId, pk, id],
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
  { runId, sessionId }: { runId: string; sessionId: string },
  id: string,
  entries: readonly NewEntry[],
): readonly Statement[] {
  invariant(
    entries.every(({ message }) => !message),
    'a message is stored under a lease only',
  )
  const finish = entries.flatMap(({ events = [] }) => events).find(({ type }) => type === 'run-finish')
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
    ...entries.map((entry, index) => {
      const after = entries.length - 1 - index
      return runEntry(dialect, { runId, id, after }, entryToRow(entry, { sessionId }).values)
    }),
    sql(
      `UPDATE lango_runs SET state = 'finished', finish_reason = ?, input = NULL,
          first_seq = COALESCE(first_seq, (SELECT s.entry_count - CAST(? AS BIGINT) ${ITS_MARKED})),
          last_seq = (SELECT s.entry_count ${ITS_MARKED}) WHERE run_id = ? AND EXISTS (SELECT 1 ${ITS_MARKED})`,
      ...[typeof finish?.finishReason === 'string' ? finish.finishReason : 'aborted', entries.length - 1],
      ...[id, id, runId, id],
    ),
  ]
}

/** Stores a post. Rows of the second statement: its number. */
export function postBatch(
  dialect: Dialect,
  { runId, kind, key, about = '', data }: Post,
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
    runEntry(dialect, { runId, id, after: 0 }, entryToRow(entry, { about }).values),
  ]
}

const NO_SUCH_KEY =
  'NOT EXISTS (SELECT 1 FROM lango_entries e WHERE e.session_pk = lango_sessions.pk AND e.entry_key = ?)'

/** An entry without a message: a message needs a lease. `after`: how many entries of the write come after this one. */
function runEntry(
  dialect: Dialect,
  { runId, id, after }: { runId: string; id: string; after: number },
  values: readonly SqlValue[],
): Statement {
  return sql(
    `${ENTRY} SELECT s.pk, s.entry_count - CAST(? AS BIGINT), ${dialect.now}, r.pk, ${CONTENT_PLACES}
      FROM lango_runs r JOIN lango_sessions s ON s.pk = r.session_pk WHERE r.run_id = ? AND s.write_id = ?`,
    ...[after, ...values, runId, id],
  )
}
