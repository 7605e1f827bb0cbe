/**
 * What a run writes, in as few transactions as its promises allow: one that opens it and one for each step. The
 * tasks are those of the single writes, joined.
 */
import { defined } from '../base/defined.js'
import type { SessionKey } from '../session/message.js'
import type {
  AcceptedRun,
  DueQuery,
  ReleasedRuns,
  RunBegin,
  RunOpening,
  RunRequest,
  RunResume,
  RunStep,
  SavedStep,
} from '../session/run-store.js'
import type { Observation } from '../session/session-store.js'
import { storableJson } from './check-input.js'
import type { OpeningAttempts } from './hold-lease.js'
import { type JournalRow, journalRows } from './journal.js'
import { type MessageRow, messageToRow } from './rows.js'
import { type CallRow, callRows, changeCallsTask } from './sql-calls.js'
import { numberIn, type SqlDatabase, type Task, textIn } from './sql-database.js'
import { type EventRow, eventRows } from './sql-event-rows.js'
import { checkTicketTask, progressStatement, resumeTask, storeJournalTask } from './sql-journal.js'
import { beginTask, dueStatement, OpeningTasks, type QueueParts, releaseTask } from './sql-queue.js'
import { saveRequestTask } from './sql-requests.js'
import { observationStatement } from './sql-runs.js'
import { type StateChange, splitDelta } from './state-scopes.js'

/** The tasks that openings and steps are made of. */
export interface StepParts extends QueueParts {
  /** Stores events, and the run itself with its first ones. */
  storeEvents(key: SessionKey, runId: string, rows: readonly EventRow[]): Task<void>
}

/** A step as rows. */
export interface StepRows {
  row: MessageRow | undefined
  changes: readonly StateChange[]
  events: readonly EventRow[]
  requests: readonly { step: number; json: string }[]
  calls: readonly CallRow[]
  journal: readonly JournalRow[]
  /** The run has stored a message after it was resumed: its attempts count from here. */
  isProgress: boolean
}

/** Opens runs and stores their steps. */
export class RunWriter {
  readonly #database: SqlDatabase
  readonly #parts: StepParts
  /** Runs that were resumed here after a crash and have not stored a message since: their next one resets the attempts. */
  readonly #retried = new Set<string>()

  constructor(database: SqlDatabase, parts: StepParts) {
    this.#database = database
    this.#parts = parts
  }

  opening(opening: RunOpening): OpeningAttempts {
    const tasks = new OpeningTasks(this.#parts, opening)
    return {
      open: ttlMs => this.#database.write(() => tasks.take(ttlMs)),
      begin: ticket => this.#database.write(() => tasks.begin(ticket)),
    }
  }

  async queue(opening: RunOpening): Promise<AcceptedRun> {
    const tasks = new OpeningTasks(this.#parts, opening)
    return this.#database.write(() => tasks.queueOnly())
  }

  async begin(begin: RunBegin): Promise<{ seq: number } | undefined> {
    const seq = await this.#database.write(() => beginTask(this.#parts, begin))
    return seq === undefined ? undefined : { seq }
  }

  /** One write for each run: its ticket gives it its place in the queue. */
  async release(query: DueQuery): Promise<ReleasedRuns> {
    const { appName, runId, limit = 100 } = query
    const released: { runId: string; key: SessionKey }[] = []
    const found = await this.#database.run(dueStatement(this.#parts.dialect, query))
    for (const [index, row] of found.entries()) {
      const dueInMs = numberIn(row, 'due_in')
      const isDue = runId !== undefined || dueInMs <= 0
      if (!isDue || index >= limit) return { released, nextInMs: Math.max(0, dueInMs) }
      const run = {
        runId: textIn(row, 'run_id'),
        key: { appName, userId: textIn(row, 'user_id'), sessionId: textIn(row, 'session_id') },
      }
      if (await this.#database.write(() => releaseTask(this.#parts, run.key, run.runId))) released.push(run)
    }
    return { released }
  }

  async resume(resume: RunResume): Promise<{ attempt: number } | undefined> {
    const attempt = await this.#database.write(() => resumeTask(this.#parts.dialect, resume))
    if (attempt === undefined) return undefined
    if (attempt > 1) this.#retried.add(resume.runId)
    return { attempt }
  }

  async save(step: RunStep): Promise<SavedStep> {
    // Events refer to messages of the run's own session only.
    const events = eventRows(step.events ?? [], step, step.at ? undefined : step.message)
    const isProgress = step.message !== undefined || events.some(({ answered }) => answered !== undefined)
    const rows: StepRows = {
      row: step.message && messageToRow(step.message),
      changes: splitDelta('stateDelta', step.stateDelta),
      events,
      journal: journalRows(step),
      isProgress: isProgress && this.#retried.has(step.runId),
      requests: (step.requests ?? []).map(requestRow),
      calls: callRows(step),
    }
    const stored = await this.store(step, rows)
    if (rows.isProgress || step.release) this.#retried.delete(step.runId)
    return stored
  }

  protected store(step: RunStep, rows: StepRows): Promise<SavedStep> {
    return this.#database.write(() => saveTask(this.#parts, step, rows))
  }
}

function requestRow({ step, record }: RunRequest): { step: number; json: string } {
  return { step, json: storableJson('record', record) }
}

function* saveTask(parts: StepParts, step: RunStep, rows: StepRows): Task<SavedStep> {
  const { key, runId, fence, calibration = [], at = key } = step
  const { row, changes, events, requests, journal } = rows
  const append = { key: at, changes, fence, leaseOf: key }
  let seq: number | undefined
  // With calls and a message the session is locked once, for both. A nested one is locked before that of the run.
  let locked = rows.calls.length > 0 && !step.at ? yield* parts.append.lockTask(key, fence) : undefined
  if (row !== undefined) seq = yield* parts.append.appendTask({ ...append, row, locked })
  else if (changes.length > 0) yield* parts.append.updateStateTask(append)
  // Events alone need the lease as well: another attempt of the run may have gone on with their numbers.
  else if (!locked) yield* checkTicketTask(parts.dialect, key, fence)
  if (rows.calls.length > 0) locked ??= yield* parts.append.lockTask(key, fence)
  const lastEvent = [runId, events.at(-1)?.seq ?? -1] as const
  const calls = locked
    ? yield* changeCallsTask(parts.dialect, locked, rows.calls, lastEvent)
    : step.calls && []
  if (events.length > 0) yield* parts.storeEvents(key, runId, events)
  for (const request of requests) yield* saveRequestTask(parts.dialect, runId, request.step, request.json)
  yield* storeJournalTask(parts.dialect, runId, journal, seq)
  const progress = progressStatement(step, rows.isProgress)
  if (progress) yield progress
  for (const observation of byModel(calibration)) yield observationStatement(observation)
  if (step.release) yield parts.giveBack(key, fence)
  return defined({ seq, calls })
}

/** In a fixed order: two transactions that change the same rows would otherwise wait for each other. */
function byModel(observations: readonly Observation[]): Observation[] {
  return observations.toSorted((one, other) => (one.model < other.model ? -1 : 1))
}
