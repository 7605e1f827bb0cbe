/** Runs in memory that were accepted for later, and the order in which runs are listed. */
import type { DueQuery, ReleasedRuns, RunSummary, UnfinishedQuery } from '../session/run-store.js'
import type { UserKey } from '../session/session-store.js'
import type { MemoryRun } from './memory-sessions.js'
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

export function newestFirst(runs: readonly RunSummary[]): RunSummary[] {
  return runs.toReversed().sort((one, other) => other.startedAt - one.startedAt)
}

/** Whether it is a run of a session, or of any session of a user. */
export function isOf({ key }: MemoryRun, owner: UserKey & { sessionId?: string }): boolean {
  const isOurs = key?.appName === owner.appName && key.userId === owner.userId
  return isOurs && key.sessionId === (owner.sessionId ?? key.sessionId)
}
