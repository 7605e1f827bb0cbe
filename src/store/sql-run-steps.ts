/**
 * What a run writes, in as few transactions as its promises allow: one that opens it and one for each step. The
 * tasks are those of the single writes, joined.
 */
import type { SessionKey } from '../session/message.js'
import type { RunOpening, RunRequest, RunStep } from '../session/run-store.js'
import type { Observation } from '../session/session-store.js'
import { storableJson } from './check-input.js'
import { messageToRow } from './rows.js'
import type { AppendSql } from './sql-append.js'
import {
  type Dialect,
  numberIn,
  type SqlDatabase,
  type Statement,
  sql,
  type Task,
  textIn,
} from './sql-database.js'
import { type EventRow, eventRows } from './sql-event-rows.js'
import { isLongRequest, KnownParts, partsOfRun, saveRequestTask, splitAgainst } from './sql-requests.js'
import { observationStatement } from './sql-runs.js'
import { ensureSession } from './sql-sessions.js'
import { fitsStatement, openStatement, type StepRows, stepStatement } from './sql-step-statements.js'
import { splitDelta } from './state-scopes.js'

/** The tasks that openings and steps are made of. */
export interface StepParts {
  dialect: Dialect
  append: AppendSql
  takeTicket(key: SessionKey, ttlMs: number): Task<number>
  isFirst(key: SessionKey, ticket: number): Task<boolean>
  giveBack(key: SessionKey, ticket: number): Statement
  /** Stores events, and the run itself with its first ones. */
  storeEvents(key: SessionKey, runId: string, rows: readonly EventRow[]): Task<void>
}

/** The outcome of opening a run: without `seq` it waits for the lease. */
export type Opening = { known: true } | { ticket: number; seq?: number }

/** A function that opens a run: serialized once, because a task may run again. */
function openingTasks(parts: StepParts, opening: RunOpening) {
  const { key, runId } = opening
  const row = messageToRow(opening.message)
  const events = eventRows(opening.events)

  /** Takes a ticket and, if it is the first, opens the run. */
  function* open(ttlMs: number): Task<Opening> {
    const ticket = yield* parts.takeTicket(key, ttlMs)
    if (yield* isKnown()) {
      yield parts.giveBack(key, ticket)
      return { known: true }
    }
    return (yield* parts.isFirst(key, ticket)) ? { ticket, seq: yield* fill(ticket) } : { ticket }
  }

  /** The same in two statements, for PostgreSQL. The second sees every ticket, because the first waited for its turn. */
  function* openInOneTrip(ttlMs: number): Task<Opening> {
    const ticket = yield* parts.takeTicket(key, ttlMs)
    const [opened] = yield openStatement(parts.dialect, opening, ticket, row, events)
    if (numberIn(opened, 'known') > 0) {
      yield parts.giveBack(key, ticket)
      return { known: true }
    }
    return opened?.seq === null ? { ticket } : { ticket, seq: numberIn(opened, 'seq') }
  }

  /** Opens the run of a ticket that has become the first. */
  function* begin(ticket: number): Task<number | undefined> {
    return (yield* isKnown()) ? undefined : yield* fill(ticket)
  }

  function* isKnown(): Task<boolean> {
    return (yield sql('SELECT run_id FROM lango_runs WHERE run_id = ?', runId)).length > 0
  }

  /** The run is stored before its message: it records how many messages came before. */
  function* fill(fence: number): Task<number> {
    yield* ensureSession(parts.dialect, key, opening.title)
    yield* parts.storeEvents(key, runId, events)
    return yield* parts.append.appendTask({ key, row, changes: [], fence })
  }

  return { open, openInOneTrip, begin }
}

/** Opens runs and stores their steps. */
export class RunWriter {
  readonly #database: SqlDatabase
  readonly #parts: StepParts
  readonly #knownParts = new KnownParts()
  readonly #isRemote: boolean

  constructor(database: SqlDatabase, parts: StepParts) {
    this.#database = database
    this.#parts = parts
    this.#isRemote = database.dialect.name === 'postgres'
  }

  /** The two ways to open a run: with a new ticket, and with one that had to wait. */
  opening(opening: RunOpening): {
    open(ttlMs: number): Promise<Opening>
    begin(ticket: number): Promise<number | undefined>
  } {
    const { open, openInOneTrip, begin } = openingTasks(this.#parts, opening)
    const write = async <T>(task: () => Task<T>, orElse?: () => Task<T>): Promise<T> => {
      try {
        return await this.#database.write(task)
      } catch (error) {
        // The message replaces another one, or another process has just stored a run with this id.
        if (orElse === undefined || !this.#database.isDuplicate(error)) throw error
        return this.#database.write(orElse)
      }
    }
    return {
      open: async ttlMs => {
        const task = () => open(ttlMs)
        const opened = await (this.#isRemote ? write(() => openInOneTrip(ttlMs), task) : write(task))
        // A new run has no parts yet.
        if (this.#isRemote && 'seq' in opened) this.#knownParts.add(opening.runId, [])
        return opened
      },
      begin: ticket => write(() => begin(ticket)),
    }
  }

  async save(step: RunStep): Promise<{ seq?: number }> {
    const rows: StepRows = {
      row: step.message && messageToRow(step.message),
      changes: splitDelta('stateDelta', step.stateDelta),
      events: eventRows(step.events ?? [], step.message),
      requests: (step.requests ?? []).map(requestRow),
    }
    const { runId } = step
    try {
      const stored = this.#isRemote ? await this.#saveInOneTrip(step, rows) : undefined
      if (stored !== undefined) return stored
      this.#knownParts.forget(runId)
      return await this.#database.write(() => saveTask(this.#parts, step, rows))
    } catch (error) {
      this.#knownParts.forget(runId)
      throw error
    } finally {
      if (step.release) this.#knownParts.forget(runId)
    }
  }

  /** The common step over a network. `undefined` leaves it to the transaction. */
  async #saveInOneTrip(step: RunStep, rows: StepRows): Promise<{ seq?: number } | undefined> {
    const { runId } = step
    if (!fitsStatement(rows)) return undefined
    const isLong = rows.requests.some(({ json }) => isLongRequest(json))
    const known = isLong ? await this.#partsOf(runId) : new Map<string, number>()
    const requests = rows.requests.map(request => ({ ...request, ...splitAgainst(known, request.json) }))
    try {
      const [row] = await this.#database.run(stepStatement(this.#database.dialect, step, rows, requests))
      if (row === undefined) return undefined
      if (row.parts !== null) this.#knownParts.add(runId, readNewParts(textIn(row, 'parts')))
      return rows.row === undefined ? {} : { seq: numberIn(row, 'seq') }
    } catch (error) {
      if (this.#database.isDuplicate(error)) return undefined
      throw error
    }
  }

  /** Read once: while the run holds the lease, nobody else stores parts for it. */
  async #partsOf(runId: string): Promise<ReadonlyMap<string, number>> {
    const known = this.#knownParts.get(runId)
    if (known !== undefined) return known
    const rows = await this.#database.run(partsOfRun(runId))
    const parts = new Map(rows.map(row => [textIn(row, 'digest'), numberIn(row, 'id')]))
    this.#knownParts.add(runId, parts)
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

function* saveTask(parts: StepParts, step: RunStep, rows: StepRows): Task<{ seq?: number }> {
  const { key, runId, fence, calibration = [] } = step
  const { row, changes, events, requests } = rows
  let seq: number | undefined
  if (row !== undefined) seq = yield* parts.append.appendTask({ key, row, changes, fence })
  else if (changes.length > 0) yield* parts.append.updateStateTask(key, changes, fence)
  if (events.length > 0) yield* parts.storeEvents(key, runId, events)
  for (const request of requests) yield* saveRequestTask(parts.dialect, runId, request.step, request.json)
  for (const observation of byModel(calibration)) yield observationStatement(observation)
  if (step.release) yield parts.giveBack(key, fence)
  return seq === undefined ? {} : { seq }
}

/** In a fixed order: two transactions that change the same rows would otherwise wait for each other. */
function byModel(observations: readonly Observation[]): Observation[] {
  return observations.toSorted((one, other) => (one.model < other.model ? -1 : 1))
}
