/** Following runs: those of this process by their feeds, those of other processes as the store shows them. */
import { AgentError } from '../errors.js'
import type { SessionKey } from '../session/message.js'
import { type EventList, followRun, RunFeed } from './run-feed.js'
import { WatchedRuns, type WatcherParts } from './watched-runs.js'

export interface FollowOptions {
  /** Only events after this number. Default 0: all. */
  afterSeq?: number | undefined
  /** Ends also when the run waits for a person, or only when it does so between two rounds. Default: only with the run. */
  untilWaiting?: boolean | 'round' | undefined
  /** Ends following; the run goes on. */
  signal?: AbortSignal | undefined
}

/** The followers of runs in this process. Text of runs that it executes reaches them before it is stored, other events after. */
export class RunFollower {
  readonly #parts: WatcherParts
  readonly #local = new Map<string, RunFeed>()
  readonly #watched: WatchedRuns
  readonly #followers = new Set<AbortController>()
  #isClosing = false

  constructor(parts: WatcherParts) {
    this.#parts = parts
    this.#watched = new WatchedRuns(parts)
  }

  /** The feed of a run that this process executes. Followers that watched the store get its events from now on. */
  open(runId: string, key: SessionKey, lastSeq: number): RunFeed {
    const feed = this.#watched.leave(runId) ?? new RunFeed(runId, key, lastSeq)
    this.#local.set(runId, feed)
    return feed
  }

  /** The run has ended in this process. */
  close(feed: RunFeed): void {
    feed.end()
    if (this.#local.get(feed.runId) === feed) this.#local.delete(feed.runId)
  }

  /** The events of a run after a number: stored ones, then live ones as they come. Ends after `run-finish`. */
  async *follow(runId: string, options: FollowOptions = {}): AsyncGenerator<EventList, void, undefined> {
    const { signal, unlink } = this.#linked(options.signal)
    let after = options.afterSeq ?? 0
    let isOver = false
    try {
      // A run that could not store its end is ended by another process: it is followed from the store then.
      while (!isOver && !signal.aborted) {
        const feed = await this.#enter(runId)
        try {
          const { runs } = this.#parts.store
          for await (const events of followRun({ runs, runId, feed, after, signal })) {
            const last = events.at(-1)
            after = last?.seq ?? after
            isOver = last?.type === 'run-finish'
            yield events
          }
        } finally {
          if (feed) this.#leave(feed)
        }
        isOver ||= feed === undefined || this.#isClosing || !(await this.#isUnfinished(runId))
      }
    } finally {
      unlink()
    }
  }

  async #isUnfinished(runId: string): Promise<boolean> {
    const run = await this.#parts.store.runs.findRun(runId)
    return run !== undefined && !run.finished && run.lastSeq > 0
  }

  /** The sessions whose runs are followed here and executed elsewhere. */
  watchedKeys(): SessionKey[] {
    return this.#watched.feeds().flatMap(({ ended, key }) => (ended ? [] : [key]))
  }

  /** Stops reading the runs of other processes; followers get what was read. */
  stopWatching(): void {
    this.#isClosing = true
    this.#watched.leaveAll()
  }

  /** Ends all followers. */
  endAll(): void {
    this.stopWatching()
    for (const follower of this.#followers) follower.abort()
  }

  /**
   * The feed of a run that has not ended, with one more follower; `undefined` for one whose events are all in the store.
   * The follower is counted in the tick in which the feed is found: a feed without followers is closed.
   */
  async #enter(runId: string): Promise<RunFeed | undefined> {
    const known = this.#knownFeed(runId)
    if (known) return entered(known)
    const run = await this.#parts.store.runs.findRun(runId)
    if (!run) throw unknownRun(runId)
    // Checked again: another follower may have created the feed during the await.
    const feed =
      this.#knownFeed(runId) ?? (run.finished || this.#isClosing ? undefined : this.#watched.add(run))
    return feed && entered(feed)
  }

  #knownFeed(runId: string): RunFeed | undefined {
    return this.#local.get(runId) ?? this.#watched.feedOf(runId)
  }

  /** A signal for each follower: listeners on a shared one that outlives them would leak. */
  #linked(outer: AbortSignal | undefined): { signal: AbortSignal; unlink(): void } {
    const own = new AbortController()
    const abort = () => own.abort()
    this.#followers.add(own)
    if (outer?.aborted) abort()
    outer?.addEventListener('abort', abort, { once: true })
    const unlink = () => {
      this.#followers.delete(own)
      outer?.removeEventListener('abort', abort)
    }
    return { signal: own.signal, unlink }
  }

  #leave(feed: RunFeed): void {
    feed.followers -= 1
    if (feed.followers === 0 && this.#watched.feedOf(feed.runId) === feed) this.#watched.leave(feed.runId)
  }
}

function entered(feed: RunFeed): RunFeed {
  feed.followers += 1
  return feed
}

/** No run has this id. */
export function unknownRun(runId: string): AgentError {
  return new AgentError('run-not-found', `There is no run "${runId}", or its records were pruned.`)
}
