/** Runs in memory that were accepted for later, and the order in which runs are listed. */
import type { SessionKey } from '../session/message.js'
import type { DueQuery, QueuedRun, ReleasedRuns, UnfinishedQuery } from '../session/run-store.js'
import { inputOf, type MemoryRun } from './memory-sessions.js'
import { keyText } from './memory-tickets.js'

type Entry = [runId: string, run: MemoryRun]

/** Whether a run is not due yet. */
export function isLater({ state }: Pick<MemoryRun, 'state'>): boolean {
  return state === 'scheduled'
}

/** Those that have not ended, in the order of `listUnfinished`. `isLeft`: whether a process should look after a run. */
export function unfinishedRuns(
  runs: Iterable<Entry>,
  { appName, key, abandoned, scheduled, limit = 100 }: UnfinishedQuery,
  isLeft: (run: MemoryRun) => boolean,
): Entry[] {
  const owner = key && keyText(key)
  const isListed = (run: MemoryRun) =>
    abandoned ? isLeft(run) : isLater(run) ? scheduled !== undefined : scheduled !== 'only'
  return [...runs]
    .filter(([, { state = 'finished' }]) => state !== 'finished')
    .filter(([, run]) => run.key?.appName === appName && (owner ?? run.owner) === run.owner)
    .filter(([, run]) => isListed(run))
    .sort(byTime)
    .slice(0, limit)
}

/** The runs to release, and how long it takes until the next one is due. */
export function dueRuns(
  runs: Iterable<Entry>,
  { appName, runId, limit = 100 }: DueQuery,
  now: number,
): Pick<ReleasedRuns, 'nextInMs'> & { due: Entry[] } {
  const later = [...runs]
    .filter(([id, run]) => isLater(run) && run.key?.appName === appName && (runId ?? id) === id)
    .sort(byTime)
  const isDue = ([, run]: Entry) => runId !== undefined || laterMs(run) <= now
  const due = later.filter(isDue).slice(0, limit)
  const [, next] = later[due.length] ?? []
  return { due, ...(next ? { nextInMs: Math.max(0, laterMs(next) - now) } : {}) }
}

/** Puts a run at the end of the queue of its session: after all that were accepted before. */
export function toEnd(
  [runId, run]: Entry,
  unfinished: Set<string> | undefined,
  changes: Pick<MemoryRun, 'place' | 'startedAt'>,
): void {
  Object.assign(run, { state: 'queued', ...changes })
  unfinished?.delete(runId)
  unfinished?.add(runId)
}

function byTime([, one]: Entry, [, other]: Entry): number {
  return laterMs(one) - laterMs(other) || one.place - other.place
}

/** When a run that is not due yet is; 0 for others. */
function laterMs(run: MemoryRun): number {
  return isLater(run) ? (run.dueAt ?? 0) : 0
}

/** The runs of a session, a user or an app, the last accepted first. */
export function newestRuns(runs: Iterable<Entry>, owner: RunOwner, limit = 50): Entry[] {
  return [...runs]
    .filter(([, run]) => isOf(run, owner))
    .reverse()
    .sort(([, one], [, other]) => other.startedAt - one.startedAt)
    .slice(0, limit)
}

/** A session, all sessions of a user, or all sessions of an app. */
type RunOwner = Pick<SessionKey, 'appName'> & Partial<SessionKey>

export function isOf({ key }: MemoryRun, owner: RunOwner): boolean {
  const isOurs = key?.appName === owner.appName && key.userId === (owner.userId ?? key.userId)
  return isOurs && key.sessionId === (owner.sessionId ?? key.sessionId)
}

/** A run as `listQueued` returns it. */
export function queuedRun(runId: string, run: MemoryRun | undefined): QueuedRun[] {
  if (run?.key === undefined) return []
  const { message, input = {} } = inputOf(run)
  return message ? [{ runId, key: { ...run.key }, message, input, queuedAt: run.startedAt }] : []
}
