/** Steps of runs as writes of the log. */
import { defined } from '../base/defined.js'
import type { AlsoWritten, EntryData, EntryKind, NewEntry, RunChange } from '../session/log-store.js'
import { type RunStatus, transition } from '../session/run-status.js'
import type { JournalEntry, RunEventRecord, RunStep } from '../session/run-store.js'
import { packJournal } from './log/stored-events.js'

/** True if the step is about tool calls only. A person may settle a call after its run has ended. */
export function changesCallsAlone({
  message,
  events = [],
  journal = [],
  calls = [],
  pause,
}: RunStep): boolean {
  return calls.length > 0 && !message && !pause && events.length + journal.length === 0
}

/** The entry of a step, and one for the end of the run. Requests are entries of their own, before these. */
export function stepEntries(step: RunStep): NewEntry[] {
  const { runId, message, at, events = [], calls = [] } = step
  const end = events.findIndex(({ type }) => type === 'run-finish')
  const data = dataOf(step, end >= 0)
  const isAlone = message === undefined && data === undefined
  const own = end < 0 ? events : isAlone ? [] : events.slice(0, end)
  const ending = end < 0 ? [] : isAlone ? events : events.slice(end)
  const entries: NewEntry[] = []
  if (!isAlone || own.length > 0 || (calls.length > 0 && ending.length === 0))
    entries.push({
      kind: kindOf(step, own),
      runId,
      ...defined({ message, data, nested: message && at }),
      events: own,
    })
  if (ending.length > 0) entries.push({ kind: 'ended', runId, events: ending })
  return entries
}

/** A run that has ended is not continued: its last step needs no journal. */
function dataOf(
  { journal = [], message, at, calls = [], stateDelta, pause }: RunStep,
  isEnd: boolean,
): EntryData | undefined {
  const kept = isEnd ? [] : journal
  const isBare = message === undefined && kept.length === 0
  const changes = calls.map(({ id, status, isTakenBack }) =>
    isTakenBack ? [id, status, true] : [id, status],
  )
  const data = {
    ...(kept.length > 0 ? { journal: packJournal(kept, message, message && at) } : {}),
    // The calls of a message are in it, and a change of state is in the journal.
    ...(message === undefined && changes.length > 0 ? { calls: changes } : {}),
    ...(isBare && stateDelta ? stateData(stateDelta) : {}),
    ...(pause ? { pause: pause === 'waiting' && isWaitBetween(journal) ? 'between' : pause } : {}),
  }
  return Object.keys(data).length > 0 ? data : undefined
}

/** JSON has no `undefined`. */
function stateData(state: Readonly<Record<string, unknown>>): EntryData {
  const removed = Object.keys(state).filter(key => state[key] === undefined)
  return { state, ...(removed.length > 0 ? { removed } : {}) }
}

function kindOf(
  { message, journal = [], calls = [] }: RunStep,
  events: readonly RunEventRecord[],
): EntryKind {
  if (message) {
    if (journal.some(({ kind }) => kind === 'model')) return 'answer'
    return message.role === 'tool' ? 'result' : 'event'
  }
  if (calls.length > 0) return calls.some(({ status }) => status === 'started') ? 'call' : 'result'
  if (events.some(({ type }) => type === 'approval-request')) return 'question'
  return journal.length > 0 ? 'event' : 'notice'
}

/** The changes that come with the entries of a step. `status`: where the run was before it. */
export function alsoOf(
  step: RunStep,
  entries: readonly NewEntry[],
  { status, isSettled }: WorkingRun,
): AlsoWritten {
  const { stateDelta, at, calibration, calls, release, runId } = step
  const run = runChange(runId, status, entries.reduce(transition, status), isSettled)
  return {
    ...defined({ run, state: stateDelta, stateOf: stateDelta && at, calibration, calls }),
    ...(release ? { release } : {}),
  }
}

/** A run that this process works on. */
export interface WorkingRun {
  readonly status: RunStatus
  /** It began here, and none of its calls has begun. */
  readonly isSettled: boolean
}

/** The change of a run's row from one status to another; `undefined` when the row stays as it is. */
export function runChange(
  runId: string,
  before: RunStatus,
  after: RunStatus,
  isSettled = false,
): RunChange | undefined {
  if (before.state === 'finished') return undefined
  if (after.state === 'finished')
    return { runId, state: after.state, isSettled, ...defined({ finishReason: after.reason }) }
  if (!('attempt' in after)) return undefined
  const known = 'attempt' in before ? before.attempt : undefined
  const attempt = after.attempt === known ? undefined : after.attempt
  if (after.state === before.state && attempt === undefined) return undefined
  const isBetween = after.state === 'waiting' && after.isBetween
  return { runId, state: after.state, isBetween, ...defined({ attempt }) }
}

function isWaitBetween(journal: readonly JournalEntry[]): boolean {
  return journal.some(({ kind }) => kind === 'wait')
}

export function reasonOf({ finishReason }: RunEventRecord): string | undefined {
  return typeof finishReason === 'string' ? finishReason : undefined
}
