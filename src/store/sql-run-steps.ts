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
import type { OpeningAttempt, OpeningAttempts } from './hold-lease.js'
import { journalRows } from './journal.js'
import { messageToRow } from './rows.js'
import { callRows, changeCallsTask, readPlaces } from './sql-calls.js'
import { numberIn, type SqlDatabase, type Task, textIn } from './sql-database.js'
import { type EventRow, eventRows } from './sql-event-rows.js'
import { checkTicketTask, progressStatement, resumeTask, storeJournalTask } from './sql-journal.js'
import { beginTask, dueStatement, OpeningTasks, type QueueParts, releaseTask } from './sql-queue.js'
import { beginStatement, queueStatement } from './sql-queue-statements.js'
import { isLongRequest, KnownParts, partsOfRequest, saveRequestTask, splitAgainst } from './sql-requests.js'
import { observationStatement } from './sql-runs.js'
import { fitsStatement, openStatement, type StepRows, stepStatement } from './sql-step-statements.js'
import { splitDelta } from './state-scopes.js'

/** The tasks that openings and steps are made of. */
export interface StepParts extends QueueParts {
  /** Stores events, and the run itself with its first ones. */
  storeEvents(key: SessionKey, runId: string, rows: readonly EventRow[]): Task<void>
}

/** Opens runs and stores their steps. */
export class RunWriter {
  readonly #database: SqlDatabase
  readonly #parts: StepParts
  readonly #knownParts = new KnownParts()
  /** Runs that were resumed here after a crash and have not stored a message since: their next one resets the attempts. */
  readonly #retried = new Set<string>()
  readonly #isRemote: boolean

  constructor(database: SqlDatabase, parts: StepParts) {
    this.#database = database
    this.#parts = parts
    this.#isRemote = database.dialect.name === 'postgres'
  }

  opening(opening: RunOpening): OpeningAttempts {
    const tasks = new OpeningTasks(this.#parts, opening)
    const open = async (ttlMs: number) => {
      const task = () => tasks.take(ttlMs)
      if (!this.#isRemote) return this.#database.write(task)
      const opened = await this.#orElse(() => openInOneTrip(this.#parts, opening, ttlMs, tasks), task)
      // A new session has no parts yet.
      if (opened !== 'busy' && 'seq' in opened && opened.seq === 1) this.#knownParts.add(opening.key, [])
      return opened
    }
    return { open, begin: ticket => this.#database.write(() => tasks.begin(ticket)) }
  }

  async queue(opening: RunOpening): Promise<AcceptedRun> {
    const tasks = new OpeningTasks(this.#parts, opening)
    const inSteps = () => tasks.queueOnly()
    if (!this.#isRemote) return this.#database.write(inSteps)
    return this.#orElse(() => queueInOneTrip(this.#parts, opening), inSteps)
  }

  async begin(begin: RunBegin): Promise<{ seq: number } | undefined> {
    const seq =
      (await this.#beginInOneTrip(begin)) ?? (await this.#database.write(() => beginTask(this.#parts, begin)))
    return seq === undefined ? undefined : { seq }
  }

  /** `undefined` leaves the rest (a replaced message, the reason of a refusal) to the transaction. */
  async #beginInOneTrip(begin: RunBegin): Promise<number | undefined> {
    if (!this.#isRemote || begin.input === undefined) return undefined
    try {
      const [row] = await this.#database.run(beginStatement(this.#parts.dialect, begin))
      return row === undefined ? undefined : numberIn(row, 'seq')
    } catch (error) {
      if (this.#database.isDuplicate(error)) return undefined
      throw error
    }
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
    this.#knownParts.forget(resume.key)
    if (attempt > 1) this.#retried.add(resume.runId)
    return { attempt }
  }

  /** A duplicate: the message replaces another one, or another process has just stored a run with this id. */
  async #orElse<T>(task: () => Task<T>, orElse: () => Task<T>): Promise<T> {
    try {
      return await this.#database.write(task)
    } catch (error) {
      if (!this.#database.isDuplicate(error)) throw error
      return this.#database.write(orElse)
    }
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
    const { key, runId } = step
    try {
      let stored = this.#isRemote ? await this.#saveInOneTrip(step, rows) : undefined
      if (stored === undefined) {
        this.#knownParts.forget(key)
        stored = await this.#database.write(() => saveTask(this.#parts, step, rows))
      }
      if (rows.isProgress || step.release) this.#retried.delete(runId)
      return stored
    } catch (error) {
      this.#knownParts.forget(key)
      throw error
    }
  }

  /** The common step over a network. `undefined` leaves it to the transaction. */
  async #saveInOneTrip(step: RunStep, rows: StepRows): Promise<SavedStep | undefined> {
    if (!fitsStatement(rows)) return undefined
    const long = rows.requests.find(({ json }) => isLongRequest(json))
    const known = long ? await this.#partsOf(step, long.json) : new Map<string, number>()
    const requests = rows.requests.map(request => ({ ...request, ...splitAgainst(known, request.json) }))
    try {
      const [row] = await this.#database.run(stepStatement(this.#database.dialect, step, rows, requests))
      if (row === undefined) return undefined
      if (row.parts !== null) this.#knownParts.add(step.key, readNewParts(textIn(row, 'parts')))
      return {
        ...(rows.row === undefined ? {} : { seq: numberIn(row, 'seq') }),
        ...(step.calls
          ? { calls: row.calls === null ? [] : readPlaces(textIn(row, 'calls'), rows.calls) }
          : {}),
      }
    } catch (error) {
      if (this.#database.isDuplicate(error)) return undefined
      throw error
    }
  }

  /**
   * Read once, for the first request of a session that this process stores: later ones repeat it. What another process
   * has stored meanwhile is a duplicate.
   */
  async #partsOf({ key }: RunStep, json: string): Promise<ReadonlyMap<string, number>> {
    const known = this.#knownParts.get(key)
    if (known !== undefined) return known
    const rows = await this.#database.run(partsOfRequest(this.#database.dialect, key, json))
    const parts = new Map(rows.map(row => [textIn(row, 'digest'), numberIn(row, 'id')]))
    this.#knownParts.add(key, parts)
    return parts
  }
}

function readNewParts(text: string): [digest: string, id: number][] {
  return text.split(',').map(entry => {
    const [id = '', digest = ''] = entry.split(' ')
    return [digest, Number(id)]
  })
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

/** Takes a ticket and opens the run in two statements, for PostgreSQL. The second sees every ticket, because the first waited for its turn. */
function* openInOneTrip(
  parts: StepParts,
  opening: RunOpening,
  ttlMs: number,
  tasks: OpeningTasks,
): Task<OpeningAttempt> {
  const ticket = yield* parts.takeTicket(opening.key, ttlMs)
  const [opened] = yield openStatement(parts.dialect, opening, ticket, tasks)
  if (opened?.seq !== null) return { ticket, seq: numberIn(opened, 'seq') }
  return yield* tasks.open(ticket)
}

/** Takes a ticket for the place of a run, and stores it in its queue or for later. */
function* queueInOneTrip({ dialect, takeTicket }: StepParts, opening: RunOpening): Task<AcceptedRun> {
  const ticket = yield* takeTicket(opening.key, 1)
  const [accepted] = yield queueStatement(dialect, opening, ticket)
  if (numberIn(accepted, 'stored') === 0) return { known: true }
  return opening.dueAt === undefined ? { queued: numberIn(accepted, 'queued') } : { dueAt: opening.dueAt }
}

/** In a fixed order: two transactions that change the same rows would otherwise wait for each other. */
function byModel(observations: readonly Observation[]): Observation[] {
  return observations.toSorted((one, other) => (one.model < other.model ? -1 : 1))
}
