/**
 * What a run writes, in as few transactions as its promises allow: one that opens it and one for each step. The
 * tasks are those of the single writes, joined.
 */
import type { SessionKey } from '../session/message.js'
import type { Observation, RunOpening, RunRequest, RunStep } from '../session/session-store.js'
import { storableJson } from './check-input.js'
import { type MessageRow, messageToRow } from './rows.js'
import type { AppendSql } from './sql-append.js'
import { type Dialect, type Statement, sql, type Task } from './sql-database.js'
import { saveRequestTask } from './sql-requests.js'
import { type EventRow, eventRows, observationStatement } from './sql-runs.js'
import { ensureSession } from './sql-sessions.js'
import { type StateChange, splitDelta } from './state-scopes.js'

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
export function openingTasks(parts: StepParts, opening: RunOpening) {
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

  return { open, begin }
}

/** A step as rows. */
interface StepRows {
  row: MessageRow | undefined
  changes: readonly StateChange[]
  events: readonly EventRow[]
  requests: readonly { step: number; json: string }[]
}

/** A function that stores the step. */
export function stepTask(parts: StepParts, step: RunStep): () => Task<{ seq?: number }> {
  const rows: StepRows = {
    row: step.message && messageToRow(step.message),
    changes: splitDelta('stateDelta', step.stateDelta),
    events: eventRows(step.events ?? []),
    requests: (step.requests ?? []).map(requestRow),
  }
  return () => saveTask(parts, step, rows)
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
