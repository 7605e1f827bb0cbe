/** Where a run is: a function of the entries of its log. A run that has not begun has none, and is where its row says. */
import { answeredCalls } from './answered-calls.js'
import type { NewEntry } from './log-store.js'

/** `attempt`: how often the run was begun or continued since it last made progress. */
export type RunStatus =
  | { readonly state: 'scheduled' | 'queued' }
  | { readonly state: 'running' | 'handover'; readonly attempt: number }
  | { readonly state: 'waiting'; readonly attempt: number; readonly isBetween: boolean }
  | { readonly state: 'finished'; readonly reason?: string }

/**
 * The process leaves the run without ending it: until a person answers, inside a round (`waiting`) or `between` two
 * rounds, or to any other process (`handover`).
 */
export type RunPause = 'waiting' | 'between' | 'handover'

const PAUSES: readonly unknown[] = ['waiting', 'between', 'handover'] satisfies RunPause[]

/** Where a run is after an entry. Entries after the end of a run change nothing. */
export function transition(
  status: RunStatus,
  entry: Pick<NewEntry, 'kind' | 'message' | 'events' | 'data'>,
): RunStatus {
  if (status.state === 'finished') return status
  if (entry.kind === 'ended') return finished(entry)
  if (entry.kind === 'begun') return { state: 'running', attempt: 1 }
  if (entry.kind === 'attempt') return continued(status)
  const attempt = isProgress(entry) ? 1 : attemptOf(status)
  const pause = entry.data?.pause
  if (isPause(pause)) return paused(pause, attempt)
  return 'attempt' in status ? { ...status, attempt } : status
}

/** A run that was left without a pause has lost its process. */
function continued(status: RunStatus): RunStatus {
  return { state: 'running', attempt: attemptOf(status) + (status.state === 'running' ? 1 : 0) }
}

function paused(pause: RunPause, attempt: number): RunStatus {
  if (pause === 'handover') return { state: 'handover', attempt }
  return { state: 'waiting', attempt, isBetween: pause === 'between' }
}

function finished({ events = [] }: Pick<NewEntry, 'events'>): RunStatus {
  const reason = events.find(({ type }) => type === 'run-finish')?.finishReason
  return { state: 'finished', ...(typeof reason === 'string' ? { reason } : {}) }
}

function attemptOf(status: RunStatus): number {
  return 'attempt' in status ? status.attempt : 1
}

/** A message, or the answer to a question: attempts count from here. */
function isProgress({ message, events = [] }: Pick<NewEntry, 'message' | 'events'>): boolean {
  return message !== undefined || answeredCalls(events).length > 0
}

function isPause(value: unknown): value is RunPause {
  return PAUSES.includes(value)
}
