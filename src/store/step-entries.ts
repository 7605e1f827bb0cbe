/** Steps of runs as writes of the log. */
import { defined } from '../base/defined.js'
import type { AlsoWritten, EntryData, EntryKind, NewEntry, RunChange } from '../session/log-store.js'
import type { JournalEntry, RunEventRecord, RunStep } from '../session/run-store.js'
import { answeredCalls } from './log/answered-calls.js'
import { packJournal } from './log/stored-events.js'

/** True if a run has made progress with the step, so that its attempts count from here. */
export function isProgress({ message, events = [] }: RunStep): boolean {
  return message !== undefined || answeredCalls(events).length > 0
}

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
  { journal = [], message, at, calls = [], stateDelta }: RunStep,
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

/** What the process knows of the run that a step belongs to. */
export interface RunFacts {
  /** It was continued here after a crash, and has made no progress since. */
  readonly isRetried: boolean
  /** It began here, and none of its calls has begun. */
  readonly isSettled: boolean
}

/** What the step changes besides. */
export function alsoOf(step: RunStep, facts: RunFacts): AlsoWritten {
  const { stateDelta, at, calibration, calls, release } = step
  const run = runChange(step, facts)
  return {
    ...defined({ run, state: stateDelta, stateOf: stateDelta && at, calibration, calls }),
    ...(release ? { release } : {}),
  }
}

function runChange(step: RunStep, { isRetried, isSettled }: RunFacts): RunChange | undefined {
  const { runId, events = [], pause, journal = [] } = step
  const finish = events.find(({ type }) => type === 'run-finish')
  if (finish) return { runId, state: 'finished', isSettled, ...defined({ finishReason: reasonOf(finish) }) }
  const progress = isRetried && isProgress(step) ? ({ attempts: 'reset' } as const) : {}
  if (pause) return { runId, state: pause, isBetween: isWaitBetween(journal), ...progress }
  return isRetried && isProgress(step) ? { runId, state: 'running', ...progress } : undefined
}

function isWaitBetween(journal: readonly JournalEntry[]): boolean {
  return journal.some(({ kind }) => kind === 'wait')
}

export function reasonOf({ finishReason }: RunEventRecord): string | undefined {
  return typeof finishReason === 'string' ? finishReason : undefined
}
