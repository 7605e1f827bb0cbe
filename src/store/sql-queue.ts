/**
 * Runs between their acceptance and their end. The place of a run is the number of the ticket that was taken when it was
 * accepted: it grows with every run, and taking one orders the processes that accept runs of a session.
 */
import type { SessionKey } from '../session/message.js'
import type {
  AcceptedRun,
  DueQuery,
  QueuedPlace,
  QueuedRun,
  RunBegin,
  RunEventRecord,
  RunOpening,
  UnfinishedQuery,
} from '../session/run-store.js'
import { storableJson } from './check-input.js'
import type { OpeningAttempt } from './hold-lease.js'
import { type MessageRow, messageToRow } from './rows.js'
import type { AppendSql } from './sql-append.js'
import {
  type Dialect,
  namesOf,
  numberIn,
  type Row,
  SESSION_KEY,
  type SqlValue,
  type Statement,
  sql,
  type Task,
  textIn,
  touched,
} from './sql-database.js'
import { type EventRow, endedStatement, eventRows, insertEvents, withPlace } from './sql-event-rows.js'
import { begunInput, checkTicketTask, inputIn } from './sql-journal.js'
import { ensureSession } from './sql-sessions.js'
import { isBelievable } from './sql-tickets.js'

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
export class OpeningTasks {
  readonly row: MessageRow
  readonly events: readonly EventRow[]
  /** What is kept of the input of a run that begins at once. */
  readonly input: string | null
  readonly #parts: QueueParts
  readonly #opening: RunOpening
  readonly #names: readonly [string, string, string]

  constructor(parts: QueueParts, opening: RunOpening) {
    this.#parts = parts
    this.#opening = opening
    this.#names = namesOf(opening.key)
    this.row = messageToRow(opening.message)
    this.events = eventRows(opening.events, opening)
    this.input = begunInput(opening)
  }

  /** Takes a ticket and opens the run, or says why not. */
  *take(ttlMs: number): Task<OpeningAttempt> {
    return yield* this.open(yield* this.#parts.takeTicket(this.#opening.key, ttlMs))
  }

  /** Opens the run of a ticket that was just taken, or says why not. */
  *open(ticket: number): Task<OpeningAttempt> {
    const { key, orQueue } = this.#opening
    let others = yield* this.#unfinished()
    if (others.isKnown) return yield* this.#refused(ticket, { answer: { known: true } })
    // The ticket of a late holder is deleted only when another run is granted the lease.
    const isFree = others.isEmpty || (yield* this.#parts.isFree(key, ticket))
    // A run that was still running may have ended before its ticket was looked for.
    if (isFree && others.running.length > 0) others = yield* this.#unfinished()
    const held = yield* this.#heldBack(ticket, others, isFree)
    if (held !== undefined) return held
    if (isFree && (yield* this.#parts.isFirst(key, ticket))) return yield* this.#fill(ticket)
    return orQueue ? yield* this.#queue(ticket) : { ticket }
  }

  /** Opens the run of a ticket that has become the first. */
  *begin(ticket: number): Task<OpeningAttempt> {
    const others = yield* this.#unfinished()
    if (others.isKnown) return yield* this.#refused(ticket, { answer: { known: true } })
    const held = yield* this.#heldBack(ticket, others, true)
    return held ?? (yield* this.#fill(ticket))
  }

  /** Accepts the run without a lease, always at the end of the queue, or for later. */
  *queueOnly(): Task<AcceptedRun> {
    const { key, dueAt } = this.#opening
    const ticket = yield* this.#parts.takeTicket(key, 1)
    if (!(yield* this.#isKnown()))
      return dueAt === undefined ? (yield* this.#queue(ticket)).answer : yield* this.#keep(ticket, dueAt)
    yield this.#parts.giveBack(key, ticket)
    return { known: true }
  }

  *#unfinished(): Task<Unfinished> {
    const found = yield sql(UNFINISHED, this.#opening.runId, ...this.#names)
    const isKnown = found.some(({ known }) => Number(known) === 1)
    const others = found.filter(({ known }) => Number(known) === 0)
    const isBegun = ({ state }: Row) => state === 'running' || state === 'handover'
    const running = others.flatMap(other => (isBegun(other) ? [textIn(other, 'run_id')] : []))
    const comesLater = others.some(({ state }) => state === 'queued' || state === 'waiting')
    return { isKnown, running, comesLater, isEmpty: others.length === 0 }
  }

  /** What other runs of the session lead to, if they do not let this one begin. */
  *#heldBack(
    ticket: number,
    { running, comesLater }: Unfinished,
    isFree: boolean,
  ): Task<OpeningAttempt | undefined> {
    if (isFree && running.length > 0) return yield* this.#refused(ticket, { answer: { unfinished: running } })
    if (this.#opening.orQueue && (comesLater || !isFree)) return yield* this.#queue(ticket)
    return isFree && comesLater ? yield* this.#refused(ticket, 'busy') : undefined
  }

  /** The run is stored before its message: it records how many messages came before. */
  *#fill(ticket: number): Task<OpeningAttempt> {
    const { dialect, append } = this.#parts
    const { key, runId, title } = this.#opening
    yield* ensureSession(dialect, key, title)
    const isNew = yield* this.#accept('running', ticket, this.input)
    if (!isNew) return yield* this.#refused(ticket, { answer: { known: true } })
    yield* insertEvents(dialect, runId, this.events)
    return { ticket, seq: yield* append.appendTask({ key, row: this.row, changes: [], fence: ticket }) }
  }

  /** Stores the run at the end of the queue, and gives the ticket back. */
  *#queue(ticket: number): Task<QueueAnswer> {
    const { key, runId, orQueue, events } = this.#opening
    if (!(yield* this.#store(ticket, 'queued'))) return { answer: { known: true } }
    const [line] = yield sql(QUEUE_LENGTH, ...this.#names)
    const queued = numberIn(line, 'length')
    const rows = eventRows(withPlace(orQueue?.events ?? events, queued), { key, runId })
    yield* insertEvents(this.#parts.dialect, runId, rows)
    return { answer: { queued } }
  }

  /** Stores the run outside the queue until it is due, and gives the ticket back. */
  *#keep(ticket: number, dueAt: number): Task<AcceptedRun> {
    const { key, runId, orQueue, events } = this.#opening
    if (!(yield* this.#store(ticket, 'scheduled', dueAt))) return { known: true }
    yield* insertEvents(this.#parts.dialect, runId, eventRows(orQueue?.events ?? events, { key, runId }))
    return { dueAt }
  }

  /** Stores a run that does not begin yet. `false` when another process has just stored a run with this id. */
  *#store(ticket: number, state: 'queued' | 'scheduled', dueAt?: number): Task<boolean> {
    const { dialect, giveBack } = this.#parts
    const { key, title, message, input } = this.#opening
    yield* ensureSession(dialect, key, title)
    yield sql(`UPDATE lango_sessions SET ${touched(dialect)} WHERE ${SESSION_KEY}`, ...this.#names)
    const isNew = yield* this.#accept(state, ticket, storableJson('input', { message, input }), dueAt)
    yield giveBack(key, ticket)
    return isNew
  }

  *#refused(ticket: number, attempt: OpeningAttempt): Task<OpeningAttempt> {
    yield this.#parts.giveBack(this.#opening.key, ticket)
    return attempt
  }

  *#isKnown(): Task<boolean> {
    return (yield sql('SELECT run_id FROM lango_runs WHERE run_id = ?', this.#opening.runId)).length > 0
  }

  /** `false` when another process has just stored a run with this id. */
  *#accept(
    state: 'scheduled' | 'queued' | 'running',
    place: number,
    input: string | null,
    dueAt?: number,
  ): Task<boolean> {
    const { now, forKeyShare } = this.#parts.dialect
    const rows = yield sql(
      `INSERT INTO lango_runs
          (run_id, app_name, user_id, session_id, started_at, after_seq, state, place, input, due_at)
        SELECT CAST(? AS TEXT), app_name, user_id, session_id, ${now},
          CASE WHEN CAST(? AS TEXT) = 'running' THEN message_count END, CAST(? AS TEXT), CAST(? AS BIGINT),
          CAST(? AS TEXT), CAST(? AS BIGINT) FROM lango_sessions WHERE ${SESSION_KEY}${forKeyShare}
        ON CONFLICT (run_id) DO NOTHING RETURNING run_id`,
      ...[this.#opening.runId, state, state, place, input, dueAt ?? null],
      ...this.#names,
    )
    return rows.length > 0
  }
}

interface QueueAnswer {
  answer: QueuedPlace | { known: true }
}

/** Runs of a session that have not ended. */
interface Unfinished {
  /** The id of the opening belongs to a run of any session. */
  isKnown: boolean
  /** Those that a process executes, or should continue at once. */
  running: string[]
  /** Whether some are queued, or wait for a person: a new run comes after them. */
  comesLater: boolean
  isEmpty: boolean
}

/** Begins a queued run under a lease. Locks in the order of the steps: ticket, run, session. */
export function* beginTask(
  { dialect, append }: QueueParts,
  { key, runId, fence, message, events, alone }: RunBegin,
): Task<number | undefined> {
  const names = namesOf(key)
  yield* checkTicketTask(dialect, key, fence)
  const [run] = yield sql(
    `SELECT r.input FROM lango_runs r WHERE r.run_id = ? AND r.app_name = ? AND r.user_id = ? AND r.session_id = ?
      AND r.state = 'queued' AND ${alone ? ALONE : NOT_HELD_UP}${dialect.forUpdate}`,
    runId,
    ...names,
  )
  if (run === undefined) return undefined
  const { input } = inputIn(run)
  yield sql(
    `UPDATE lango_runs SET state = 'running', input = ?,
      after_seq = (SELECT message_count FROM lango_sessions WHERE ${SESSION_KEY}) WHERE run_id = ?`,
    begunInput({ input, message }),
    ...names,
    runId,
  )
  yield* insertEvents(dialect, runId, eventRows(events, { key, runId }))
  return yield* append.appendTask({ key, row: messageToRow(message), changes: [], fence })
}

/** Puts a run that was accepted for later at the end of the queue; `false` when another process was faster. */
export function* releaseTask(
  { dialect, takeTicket, giveBack }: QueueParts,
  key: SessionKey,
  runId: string,
): Task<boolean> {
  const ticket = yield* takeTicket(key, 1)
  const released = yield sql(
    `UPDATE lango_runs SET state = 'queued', place = ?, started_at = ${dialect.now}
      WHERE run_id = ? AND state = 'scheduled' RETURNING run_id`,
    ticket,
    runId,
  )
  const isReleased = released.length > 0
  if (isReleased)
    yield sql(`UPDATE lango_sessions SET ${touched(dialect)} WHERE ${SESSION_KEY}`, ...namesOf(key))
  yield giveBack(key, ticket)
  return isReleased
}

/** The runs that are due first, and in how many milliseconds they are. */
export function dueStatement({ now }: Dialect, { appName, runId, limit = 100 }: DueQuery): Statement {
  return sql(
    `SELECT run_id, user_id, session_id, due_at - ${now} AS due_in FROM lango_runs
      WHERE app_name = ? AND state = 'scheduled'${runId === undefined ? '' : ' AND run_id = ?'}
      ORDER BY due_at, place, run_id LIMIT ?`,
    ...[appName, ...(runId === undefined ? [] : [runId]), limit + 1],
  )
}

/** Ends a run that is still queued, or not due yet. */
export function* endQueuedTask(
  dialect: Dialect,
  runId: string,
  events: readonly RunEventRecord[],
): Task<boolean> {
  const [queued] = yield sql(
    `SELECT session_id FROM lango_runs WHERE run_id = ? AND state IN ('queued', 'scheduled')${dialect.forUpdate}`,
    runId,
  )
  if (queued === undefined) return false
  const key = { sessionId: textIn(queued, 'session_id') }
  yield* insertEvents(dialect, runId, eventRows(events, { key, runId }))
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

/** The conditions of `listUnfinished`, for runs `r`. `gone`: holders of leases that no longer exist. */
export function unfinishedConditions(
  { now, eachValue }: Dialect,
  { appName, key, abandoned = false, scheduled, limit = 100 }: UnfinishedQuery,
  gone: readonly string[],
): { text: string; parameters: SqlValue[] } {
  const ofSession = key ? ' AND r.user_id = ? AND r.session_id = ?' : ''
  const isDue = { also: '', only: " AND r.state = 'scheduled'", none: " AND r.state <> 'scheduled'" }
  const isHeld = gone.length > 0 ? ` AND l.holder NOT IN (SELECT value FROM ${eachValue})` : ''
  const isLeft = abandoned
    ? ` AND NOT EXISTS (SELECT 1 FROM lango_leases l WHERE l.app_name = r.app_name AND l.user_id = r.user_id
          AND l.session_id = r.session_id AND l.expires_at > ${now} AND l.${isBelievable(now)}${isHeld})
        AND (r.state <> 'queued' OR ${NOT_HELD_UP}) AND (r.state <> 'waiting' OR ${SIGNALLED})`
    : ''
  return {
    text: `r.app_name = ?${ofSession} AND r.state <> 'finished'${isDue[(!abandoned && scheduled) || 'none']} AND r.deleted_at IS NULL${isLeft}
      ORDER BY ${LATER}, r.place, r.started_at, r.run_id LIMIT ?`,
    parameters: [
      appName,
      ...(key ? [key.userId, key.sessionId] : []),
      ...(gone.length > 0 ? [JSON.stringify(gone)] : []),
      limit,
    ],
  }
}

/** Runs that are not due yet come last, by the time at which they are. */
const LATER = "CASE WHEN r.state = 'scheduled' THEN r.due_at ELSE 0 END"

/** The place of a queued run `r` in the queue of its session. */
export const QUEUE_PLACE = `CASE WHEN r.state = 'queued' THEN (
    SELECT count(*) FROM lango_runs q WHERE q.app_name = r.app_name AND q.user_id = r.user_id
      AND q.session_id = r.session_id AND q.state <> 'finished' AND q.state = 'queued' AND q.place <= r.place
  ) END`

/** A run waits for its turn while an earlier run of its session waits for a person, unless that one waits between rounds. */
export const NOT_HELD_UP = `NOT EXISTS (SELECT 1 FROM lango_runs w WHERE w.app_name = r.app_name AND w.user_id = r.user_id
  AND w.session_id = r.session_id AND w.state <> 'finished' AND w.state = 'waiting'
  AND w.place < r.place
  AND NOT EXISTS (SELECT 1 FROM lango_run_journal j WHERE j.run_id = w.run_id AND j.entry_key LIKE 'wait:%'))`

/** No other run of the session of a queued run `r` has begun and not ended. */
export const ALONE = `NOT EXISTS (SELECT 1 FROM lango_runs w WHERE w.app_name = r.app_name AND w.user_id = r.user_id
  AND w.session_id = r.session_id AND w.state <> 'finished' AND w.state IN ('running', 'waiting', 'handover'))`

const SIGNALLED = 'EXISTS (SELECT 1 FROM lango_run_signals s WHERE s.run_id = r.run_id)'

/** The run itself if it is known, then the others, running ones first: a queue may be long, and only whether there is one matters. */
const UNFINISHED = `SELECT run_id, state, 1 AS known FROM lango_runs WHERE run_id = ?
  UNION ALL SELECT run_id, state, 0 FROM (
    SELECT run_id, state FROM lango_runs WHERE ${SESSION_KEY} AND state <> 'finished' AND state <> 'scheduled'
    ORDER BY CASE state WHEN 'queued' THEN 2 WHEN 'waiting' THEN 1 ELSE 0 END, place LIMIT 100
  ) AS others`

/** How many runs of a session are queued. */
export const QUEUE_LENGTH = `SELECT count(*) AS length FROM lango_runs
  WHERE ${SESSION_KEY} AND state <> 'finished' AND state = 'queued'`
