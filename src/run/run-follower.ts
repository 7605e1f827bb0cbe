/** Following runs: those of this process by their feeds, those of other processes as the store shows them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { AgentError, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { SessionKey } from '../session/message.js'
import type { RunSummary } from '../session/run-store.js'
import type { SessionStore } from '../session/session-store.js'
import type { RunEvent } from './run-event.js'
import { type EventList, followRun, RunFeed } from './run-feed.js'

export interface FollowOptions {
  /** Only events after this number. Default 0: all. */
  afterSeq?: number | undefined
  /** Ends also when the run waits for a person, or only when it does so between two rounds. Default: only with the run. */
  untilWaiting?: boolean | 'round' | undefined
  /** Ends following; the run goes on. */
  signal?: AbortSignal | undefined
}

export interface FollowerParts {
  store: SessionStore
  logger: Logger
  /** Called now and then for a run without new events whose process may be gone. */
  checkLife(run: RunSummary): Promise<void>
}

/** The followers of runs in this process. Every event that they get is in the store. */
export class RunFollower {
  readonly #parts: FollowerParts
  readonly #local = new Map<string, RunFeed>()
  readonly #watched = new Map<string, { run: WatchedRun; stop: AbortController }>()
  readonly #followers = new Set<AbortController>()
  #isClosing = false

  constructor(parts: FollowerParts) {
    this.#parts = parts
  }

  /** The feed of a run that this process executes. Followers that watched the store get its events from now on. */
  open(runId: string, key: SessionKey, lastSeq: number): RunFeed {
    const watched = this.#watched.get(runId)
    watched?.stop.abort()
    this.#watched.delete(runId)
    const feed = watched?.run.feed ?? new RunFeed(runId, key, lastSeq)
    this.#local.set(runId, feed)
    return feed
  }

  /** The run has ended in this process. */
  close(feed: RunFeed): void {
    feed.end()
    if (this.#local.get(feed.runId) === feed) this.#local.delete(feed.runId)
  }

  /** The events of a run after a number: stored ones, then live ones as they are stored. Ends after `run-finish`. */
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
    return [...this.#watched.values()].filter(({ run }) => !run.feed.ended).map(({ run }) => run.feed.key)
  }

  /** Stops reading the runs of other processes; followers get what was read. */
  stopWatching(): void {
    this.#isClosing = true
    for (const { run, stop } of this.#watched.values()) {
      stop.abort()
      run.feed.end()
    }
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
    const feed = this.#knownFeed(runId) ?? (run.finished || this.#isClosing ? undefined : this.#watch(run))
    return feed && entered(feed)
  }

  #knownFeed(runId: string): RunFeed | undefined {
    return this.#local.get(runId) ?? this.#watched.get(runId)?.run.feed
  }

  #watch(run: RunSummary): RunFeed {
    const watched = new WatchedRun(this.#parts, run)
    const stop = new AbortController()
    this.#watched.set(run.runId, { run: watched, stop })
    void watched.watch(stop.signal).finally(() => {
      if (this.#watched.get(run.runId)?.run === watched) this.#watched.delete(run.runId)
    })
    return watched.feed
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
    const watched = this.#watched.get(feed.runId)
    if (feed.followers > 0 || watched?.run.feed !== feed) return
    watched.stop.abort()
    this.#watched.delete(feed.runId)
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

const SHORTEST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 500
/** How often it is checked that the process of a run without new events still runs. */
const LIFE_CHECK_MS = 2000
const PAGE = 500

/**
 * A run of another process, read from the store. All followers in this process share one reader; it polls less
 * often while there are no new events, and stops when the last follower leaves. Its timer keeps the process alive:
 * with SQLite nothing else may, and a caller that awaits the run would never get its end.
 */
class WatchedRun {
  readonly feed: RunFeed
  readonly #parts: FollowerParts
  readonly #runId: string
  #lifeCheckedAt = 0

  constructor(parts: FollowerParts, run: RunSummary) {
    this.#parts = parts
    this.#runId = run.runId
    this.feed = new RunFeed(run.runId, run.key, run.lastSeq)
  }

  /** Reads until the run ends or the signal fires. */
  async watch(signal: AbortSignal): Promise<void> {
    let pauseMs = SHORTEST_PAUSE_MS
    while (!signal.aborted && !this.feed.ended) {
      const found = await this.#read(signal)
      pauseMs = found ? SHORTEST_PAUSE_MS : Math.min(pauseMs * 1.5, LONGEST_PAUSE_MS)
      if (!found && !signal.aborted) await this.#checkLife()
      if (!this.feed.ended) await sleep(pauseMs, undefined, { signal }).catch(() => {})
    }
  }

  async #read(signal: AbortSignal): Promise<boolean> {
    try {
      const { runs } = this.#parts.store
      const events = await runs.readEvents(this.#runId, { afterSeq: this.feed.lastSeq, limit: PAGE })
      if (signal.aborted) return false
      // The recorder of runs wrote them; a store returns what it was given.
      this.feed.add(events as unknown as RunEvent[])
      return events.length > 0
    } catch (error) {
      // Retried: to followers a store that is unavailable for a while is a pause.
      this.#warn('The events of a run could not be read', error)
      return false
    }
  }

  async #checkLife(): Promise<void> {
    if (Date.now() - this.#lifeCheckedAt < LIFE_CHECK_MS) return
    this.#lifeCheckedAt = Date.now()
    try {
      const run = await this.#parts.store.runs.findRun(this.#runId)
      // Deleted with its session, or pruned: no more events follow.
      if (!run || run.lastSeq === 0) this.feed.end()
      else if (!run.finished) await this.#parts.checkLife(run)
    } catch (error) {
      this.#warn('The state of a run could not be checked', error)
    }
  }

  #warn(message: string, error: unknown): void {
    this.#parts.logger.warn(message, { runId: this.#runId, error: messageOf(error) })
  }
}
