/** A run that is in progress: its transcript, and what only the page knows of it. */
import {
  applyRunEvent,
  isOpen,
  newRunTranscript,
  type RunTranscript,
} from '../../../src/transcript/from-events.js'
import { isWait, type ToolItem } from '../../../src/transcript/item.js'
import type { MediaPart, RunEvent } from './api.js'
import type { Entry } from './entry.js'

export interface LiveRun extends RunTranscript {
  /** Messages up to here were stored before the run. */
  readonly afterSeq: number
  readonly phase: 'starting' | 'running' | 'stopping' | 'finished'
  /** What this page sent; absent when another page, or this one before a reload, sent it. */
  readonly user?: { text: string; media: readonly MediaPart[] }
}

/** A run without events yet. */
export function newLiveRun(start: Pick<LiveRun, 'runId' | 'afterSeq' | 'user'>): LiveRun {
  return { ...newRunTranscript(start), ...start, phase: 'starting' }
}

/** The run after one more event; `now` as in `applyRunEvent`. */
export function applyLiveEvent(run: LiveRun, event: RunEvent, now?: number): LiveRun {
  const next = applyRunEvent(run, event, now)
  if (next === run) return run
  const started = run.phase === 'starting' ? 'running' : run.phase
  return { ...run, ...next, phase: event.type === 'run-finish' ? 'finished' : started }
}

/** Whether the run waits for a person because of this call. */
export function asksPerson({ status, outcome }: ToolItem): boolean {
  return status === 'waiting' || outcome?.asks === true
}

/** The entries of a live run, with what it is doing right now at the end. */
export function liveEntries(run: LiveRun): readonly Entry[] {
  const key = `live:${run.runId}`
  const user: Entry[] = run.user ? [{ kind: 'user', key: `${key}:user`, ...run.user }] : []
  const last = run.items.at(-1)
  const isQueued = last?.kind === 'mark' && isWait(last.mark) && run.phase !== 'stopping'
  const isSilent = !isQueued && last?.kind !== 'text' && last?.kind !== 'reasoning' && last?.kind !== 'tool'
  const isWorking = run.phase !== 'finished' && (isSilent || (last?.kind === 'tool' && !isOpen(last)))
  const label =
    run.phase === 'stopping' ? 'Stopping' : last?.kind === 'tool' ? 'Reading the result' : 'Thinking'
  const working: Entry[] = isWorking ? [{ kind: 'working', key: `${key}:working`, label }] : []
  return [...user, ...run.items, ...working]
}
