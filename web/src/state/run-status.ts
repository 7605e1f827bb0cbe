import type { RunNotes, ShownError } from '../../../src/transcript/item.js'
import { asksPerson } from './live-run.js'
import type { ThreadState } from './thread-state.js'

/** The state of one run of a chat. A failed run has its error, unless that could not be read. */
export type RunStatus =
  | { readonly type: 'running' | 'waiting' | 'stopped' | 'answered' }
  | { readonly type: 'failed'; readonly error?: ShownError }

/** The status of a run that this page started: from its events while it is live, afterwards from what was stored. */
export function runStatus({ live, lastRun, notes }: ThreadState, runId: string): RunStatus {
  const isLive = live?.runId === runId
  const known = isLive ? live.notes : notes.find(note => note.runId === runId)
  const stored = lastRun?.runId === runId ? lastRun : undefined
  const finishReason = isLive ? live.finishReason : stored?.finishReason
  if (known?.error) return { type: 'failed', error: known.error }
  if (finishReason === 'error') return { type: 'failed' }
  if (finishReason === 'aborted' || isStopped(known)) return { type: 'stopped' }
  if (isLive && finishReason === undefined) {
    const isWaiting = live.items.some(item => item.kind === 'tool' && asksPerson(item))
    return { type: isWaiting ? 'waiting' : 'running' }
  }
  return { type: stored?.status === 'waiting' ? 'waiting' : 'answered' }
}

function isStopped(notes: RunNotes | undefined): boolean {
  return notes?.marks.some(({ mark }) => mark.type === 'stopped') ?? false
}
