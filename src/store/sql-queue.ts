/**
 * Runs between their acceptance and their end. The place of a run is the number of the ticket that was taken when it was
 * accepted: it grows with every run, and taking one orders the processes that accept runs of a session.
 */
import { isRecord } from '../base/is-record.js'
import type { Message, SessionKey } from '../session/message.js'
import type {
  AbandonedQuery,
  QueuedRun,
  RunBegin,
  RunEventRecord,
  RunInputRecord,
  RunOpening,
} from '../session/run-store.js'
import { storableJson } from './check-input.js'
import type { OpeningAttempt } from './hold-lease.js'
import { messageToRow } from './rows.js'
import type { AppendSql } from './sql-append.js'
import {
  type Dialect,
  numberIn,
  type Row,
  type SqlValue,
  type Statement,
  sql,
  type Task,
  textIn,
  touched,
} from './sql-database.js'
import { endedStatement, eventRows, insertEvents, withPlace } from './sql-event-rows.js'
import { ensureSession } from './sql-sessions.js'
import { isBelievable } from './sql-tickets.js'
import { leaseLost, sessionNotFound } from './store-errors.js'

/** The tasks that openings are made of. */
export interface QueueParts {
  dialect: Dialect
  append: AppendSql
  takeTicket(key: SessionKey, ttlMs: number): Task<number>
  isFirst(key: SessionKey, ticket: number): Task<boolean>
  /** Whether every ticket before this one has expired. Deletes none of them. */
  isFree(key: SessionKey, ticket: number): Task<boolean>
  giveBack(key: SessionKey, ticket: number): Statement
}

/** The ways to accept a run: serialized once, because a task may run again. */
export function openingTasks(parts: QueueParts, opening: RunOpening) {
  const { dialect } = parts
  const { key, runId, message, orQueue } = opening
  const names = namesOf(key)
  const row = messageToRow(message)
  const events = eventRows(opening.events)
  const input = opening.input === undefined ? null : storableJson('input', { input: opening.input })

  /** Opens the run of a ticket that was just taken, or says why not. */
  function* open(ticket: number): Task<OpeningAttempt> {
    if (yield* isKnown()) return yield* refused(ticket, { answer: { known: true } })
    const others = yield* unfinished()
    // The ticket of a late holder is deleted only when another run is granted the lease.
    const isFree = others.isEmpty || (yield* parts.isFree(key, ticket))
    const held = yield* heldBack(ticket, others, isFree)
    if (held !== undefined) return held
    if (isFree && (yield* parts.isFirst(key, ticket))) return yield* fill(ticket)
    return orQueue ? yield* queue(ticket) : { ticket }
  }

  /** Opens the run of a ticket that has become the first. */
  function* begin(ticket: number): Task<OpeningAttempt> {
    if (yield* isKnown()) return yield* refused(ticket, { answer: { known: true } })
    return (yield* heldBack(ticket, yield* unfinished(), true)) ?? (yield* fill(ticket))
  }

  function* unfinished(): Task<Unfinished> {
    const others = yield sql(UNFINISHED, ...names)
    const running = others.flatMap(other => (other.state === 'running' ? [textIn(other, 'run_id')] : []))
    const hasQueue = others.some(({ state }) => state === 'queued')
    return { running, hasQueue, isEmpty: others.length === 0 }
  }

  /** What other runs of the session lead to, if they do not let this one begin. */
  function* heldBack(
    ticket: number,
    { running, hasQueue }: Unfinished,
    isFree: boolean,
  ): Task<OpeningAttempt | undefined> {
    if (isFree && running.length > 0) return yield* refused(ticket, { answer: { unfinished: running } })
    if (orQueue && (hasQueue || !isFree)) return yield* queue(ticket)
    return isFree && hasQueue ? yield* refused(ticket, 'busy') : undefined
  }

  /** The run is stored before its message: it records how many messages came before. */
  function* fill(ticket: number): Task<OpeningAttempt> {
    yield* ensureSession(dialect, key, opening.title)
    const isNew = yield* accept({ state: 'running', place: ticket, input })
    if (!isNew) return yield* refused(ticket, { answer: { known: true } })
    yield* insertEvents(dialect, runId, events)
    return { ticket, seq: yield* parts.append.appendTask({ key, row, changes: [], fence: ticket }) }
  }

  /** Stores the run at the end of the queue, and gives the ticket back. */
  function* queue(ticket: number): Task<{ answer: { queued: number } | { known: true } }> {
    yield* ensureSession(dialect, key, opening.title)
    yield sql(`UPDATE lango_sessions SET ${touched(dialect)} WHERE ${SESSION_KEY}`, ...names)
    const kept = storableJson('input', { message, input: opening.input })
    const isNew = yield* accept({ state: 'queued', place: ticket, input: kept })
    yield parts.giveBack(key, ticket)
    if (!isNew) return { answer: { known: true } }
    const [line] = yield sql(QUEUE_LENGTH, ...names)
    const queued = numberIn(line, 'length')
    yield* insertEvents(dialect, runId, eventRows(withPlace(orQueue?.events ?? opening.events, queued)))
    return { answer: { queued } }
  }

  /** Accepts the run without a lease, always at the end of the queue. */
  function* queueOnly(): Task<{ answer: { queued: number } | { known: true } }> {
    const ticket = yield* parts.takeTicket(key, 1)
    if (!(yield* isKnown())) return yield* queue(ticket)
    yield parts.giveBack(key, ticket)
    return { answer: { known: true } }
  }

  function* refused(ticket: number, attempt: OpeningAttempt): Task<OpeningAttempt> {
    yield parts.giveBack(key, ticket)
    return attempt
  }

  function* isKnown(): Task<boolean> {
    return (yield sql('SELECT run_id FROM lango_runs WHERE run_id = ?', runId)).length > 0
  }

  /** `false` when another process has just stored a run with this id. */
  function* accept({ state, place, input: kept }: Accepted): Task<boolean> {
    const rows = yield sql(
      `INSERT INTO lango_runs (run_id, app_name, user_id, session_id, started_at, after_seq, state, place, input)
        SELECT CAST(? AS TEXT), app_name, user_id, session_id, ${dialect.now},
          CASE WHEN CAST(? AS TEXT) = 'queued' THEN NULL ELSE message_count END, CAST(? AS TEXT), CAST(? AS BIGINT),
          CAST(? AS TEXT) FROM lango_sessions WHERE ${SESSION_KEY}${dialect.forKeyShare}
        ON CONFLICT (run_id) DO NOTHING RETURNING run_id`,
      ...[runId, state, state, place, kept],
      ...names,
    )
    return rows.length > 0
  }

  return { row, events, input, open, begin, queue, queueOnly, refused }
}

/** Runs of a session that have not ended. */
interface Unfinished {
  running: string[]
  hasQueue: boolean
  isEmpty: boolean
}

interface Accepted {
  state: 'queued' | 'running'
  place: number
  input: string | null
}

/** Begins a queued run under a lease. Locks in the order of the steps: ticket, run, session. */
export function* beginTask(
  { dialect, append }: QueueParts,
  { key, runId, fence, message, events }: RunBegin,
): Task<number | undefined> {
  const names = namesOf(key)
  const [ticket] = yield sql(
    `SELECT id FROM lango_leases WHERE id = ? AND ${SESSION_KEY}${dialect.forKeyShare}`,
    fence,
    ...names,
  )
  if (ticket === undefined) {
    const sessions = yield sql(`SELECT pk FROM lango_sessions WHERE ${SESSION_KEY}`, ...names)
    throw sessions.length === 0 ? sessionNotFound(key) : leaseLost(key, fence)
  }
  const [run] = yield sql(
    `SELECT input FROM lango_runs WHERE run_id = ? AND ${SESSION_KEY} AND state = 'queued'${dialect.forUpdate}`,
    runId,
    ...names,
  )
  if (run === undefined) return undefined
  const { input } = inputIn(run)
  yield sql(
    `UPDATE lango_runs SET state = 'running', input = ?,
      after_seq = (SELECT message_count FROM lango_sessions WHERE ${SESSION_KEY}) WHERE run_id = ?`,
    input === undefined ? null : storableJson('input', { input }),
    ...names,
    runId,
  )
  yield* insertEvents(dialect, runId, eventRows(events))
  return yield* append.appendTask({ key, row: messageToRow(message), changes: [], fence })
}

/** Ends a run that is still queued. */
export function* endQueuedTask(
  dialect: Dialect,
  runId: string,
  events: readonly RunEventRecord[],
): Task<boolean> {
  const queued = yield sql(
    `SELECT run_id FROM lango_runs WHERE run_id = ? AND state = 'queued'${dialect.forUpdate}`,
    runId,
  )
  if (queued.length === 0) return false
  yield* insertEvents(dialect, runId, eventRows(events))
  yield endedStatement(runId)
  return true
}

export function queuedStatement(key: SessionKey, limit: number): Statement {
  return sql(
    `SELECT run_id, started_at, input FROM lango_runs WHERE ${SESSION_KEY} AND state <> 'finished' AND state = 'queued'
      ORDER BY place LIMIT ?`,
    ...namesOf(key),
    limit,
  )
}

export function rowToQueued(key: SessionKey, row: Row): QueuedRun[] {
  const { appName, userId, sessionId } = key
  const { message, input = {} } = inputIn(row)
  if (message === undefined) return []
  const queuedAt = numberIn(row, 'started_at')
  return [{ runId: textIn(row, 'run_id'), key: { appName, userId, sessionId }, message, input, queuedAt }]
}

/** The conditions of `listAbandoned`, for runs `r`. */
export function abandonedConditions(
  { now }: Dialect,
  { appName, key, limit = 100 }: AbandonedQuery,
): { text: string; parameters: SqlValue[] } {
  const ofSession = key ? ' AND r.user_id = ? AND r.session_id = ?' : ''
  return {
    text: `r.app_name = ?${ofSession} AND r.state <> 'finished' AND r.state IN ('queued', 'running')
      AND r.deleted_at IS NULL AND NOT EXISTS (
        SELECT 1 FROM lango_leases l WHERE l.app_name = r.app_name AND l.user_id = r.user_id
          AND l.session_id = r.session_id AND l.expires_at > ${now} AND l.${isBelievable(now)}
      ) ORDER BY COALESCE(r.place, 0), r.started_at, r.run_id LIMIT ?`,
    parameters: [appName, ...(key ? [key.userId, key.sessionId] : []), limit],
  }
}

/** The place of a queued run `r` in the queue of its session. */
export const QUEUE_PLACE = `CASE WHEN r.state = 'queued' THEN (
    SELECT count(*) FROM lango_runs q WHERE q.app_name = r.app_name AND q.user_id = r.user_id
      AND q.session_id = r.session_id AND q.state <> 'finished' AND q.state = 'queued' AND q.place <= r.place
  ) END`

function inputIn(row: Row): { message?: Message; input?: RunInputRecord } {
  const kept: unknown = row.input === null ? undefined : JSON.parse(textIn(row, 'input'))
  return isRecord(kept) ? kept : {}
}

function namesOf({ appName, userId, sessionId }: SessionKey): [string, string, string] {
  return [appName, userId, sessionId]
}

const SESSION_KEY = 'app_name = ? AND user_id = ? AND session_id = ?'

/** Running ones first: a queue may be long, and only whether there is one matters. */
const UNFINISHED = `SELECT run_id, state FROM lango_runs WHERE ${SESSION_KEY} AND state <> 'finished'
  ORDER BY CASE state WHEN 'running' THEN 0 WHEN 'queued' THEN 1 ELSE 2 END, place LIMIT 100`

const QUEUE_LENGTH = `SELECT count(*) AS length FROM lango_runs
  WHERE ${SESSION_KEY} AND state <> 'finished' AND state = 'queued'`
