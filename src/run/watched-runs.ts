/** Runs of other processes, and queued ones, as the store shows them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { RunSummary } from '../session/run-store.js'
import type { SessionStore } from '../session/session-store.js'
import type { RunEvent } from './run-event.js'
import { RunFeed } from './run-feed.js'

export interface WatcherParts {
  store: SessionStore
  logger: Logger
  /** Called now and then for a run without new events whose process may be gone. */
  checkLife(run: RunSummary): Promise<void>
}

interface WatchedRun {
  readonly feed: RunFeed
  pauseMs: number
  lookAt: number
  lifeCheckedAt: number
  /** Its events are being read, or its life is being checked. */
  isBusy: boolean
}

/**
 * Looks at all watched runs with one question to the store, and reads the events of those that have new ones. A run is
 * looked at less often while it has none. Its timer keeps the process alive: with SQLite nothing else may, and a caller
 * that awaits the run would never get its end.
 */
export class WatchedRuns {
  readonly #parts: WatcherParts
  readonly #runs = new Map<string, WatchedRun>()
  #wake: AbortController | undefined

  constructor(parts: WatcherParts) {
    this.#parts = parts
  }

  feedOf(runId: string): RunFeed | undefined {
    return this.#runs.get(runId)?.feed
  }

  feeds(): RunFeed[] {
    return [...this.#runs.values()].map(({ feed }) => feed)
  }

  /** Watches a run until its feed has ended or it is left. */
  add(run: RunSummary): RunFeed {
    const feed = new RunFeed(run.runId, run.key, run.lastSeq)
    const now = performance.now()
    const watched = { pauseMs: SHORTEST_PAUSE_MS, lookAt: now + SHORTEST_PAUSE_MS, lifeCheckedAt: 0 }
    this.#runs.set(run.runId, { ...watched, feed, isBusy: false })
    if (this.#wake) this.#wake.abort()
    else void this.#watch()
    return feed
  }

  /** Reads no more of a run. Returns its feed. */
  leave(runId: string): RunFeed | undefined {
    const watched = this.#runs.get(runId)
    this.#runs.delete(runId)
    this.#wake?.abort()
    return watched?.feed
  }

  /** Reads no more of any run; followers get what was read. */
  leaveAll(): void {
    for (const { feed } of this.#runs.values()) feed.end()
    this.#runs.clear()
    this.#wake?.abort()
  }

  async #watch(): Promise<void> {
    while (this.#runs.size > 0) {
      this.#wake = new AbortController()
      const next = Math.min(...[...this.#runs.values()].map(({ lookAt }) => lookAt))
      const pauseMs = Math.max(next - performance.now(), LEAST_PAUSE_MS)
      await sleep(pauseMs, undefined, { signal: this.#wake.signal }).catch(() => {})
      const now = performance.now()
      const due = [...this.#runs.values()].filter(({ isBusy, lookAt }) => !isBusy && lookAt <= now)
      for (let start = 0; start < due.length; start += RUNS_AT_ONCE)
        await this.#look(due.slice(start, start + RUNS_AT_ONCE))
    }
    this.#wake = undefined
  }

  async #look(due: readonly WatchedRun[]): Promise<void> {
    const found = await this.#find(due)
    for (const watched of due) {
      const run = found?.get(watched.feed.runId)
      // Deleted with its session, or pruned: no more events follow.
      if (found && (!run || run.lastSeq === 0)) this.#end(watched)
      else if (run) this.#follow(watched, run)
      watched.lookAt = performance.now() + watched.pauseMs
    }
  }

  async #find(due: readonly WatchedRun[]): Promise<Map<string, RunSummary> | undefined> {
    const { runs } = this.#parts.store
    const ids = due.map(({ feed }) => feed.runId)
    try {
      return new Map((await runs.findRuns(ids)).map(run => [run.runId, run]))
    } catch (error) {
      // Retried: to followers a store that is unavailable for a while is a pause.
      this.#warn('Runs could not be looked for', error, { runs: ids.length })
      for (const watched of due) slowDown(watched)
      return undefined
    }
  }

  #follow(watched: WatchedRun, run: RunSummary): void {
    const { feed } = watched
    if (run.lastSeq > feed.lastSeq) {
      watched.pauseMs = SHORTEST_PAUSE_MS
      this.#busy(watched, 'The events of a run could not be read', () => this.#read(watched))
      return
    }
    slowDown(watched)
    if (run.finished) this.#end(watched)
    else if (performance.now() - watched.lifeCheckedAt >= LIFE_CHECK_MS || watched.lifeCheckedAt === 0) {
      watched.lifeCheckedAt = performance.now()
      this.#busy(watched, 'The state of a run could not be checked', () => this.#parts.checkLife(run))
    }
  }

  /** Others are looked at meanwhile. */
  #busy(watched: WatchedRun, problem: string, work: () => Promise<void>): void {
    watched.isBusy = true
    const { runId } = watched.feed
    void work()
      .catch(error => this.#warn(problem, error, { runId }))
      .finally(() => {
        watched.isBusy = false
      })
  }

  async #read(watched: WatchedRun): Promise<void> {
    const { feed } = watched
    const { runs } = this.#parts.store
    const events = await runs.readEvents(feed.runId, { afterSeq: feed.lastSeq, limit: PAGE })
    if (this.#runs.get(feed.runId) !== watched) return
    feed.stored(events.at(-1)?.seq ?? 0)
    // The recorder of runs wrote them; a store returns what it was given.
    feed.add(events as unknown as RunEvent[])
    if (feed.ended) this.#runs.delete(feed.runId)
  }

  #end({ feed }: WatchedRun): void {
    feed.end()
    this.#runs.delete(feed.runId)
  }

  #warn(message: string, error: unknown, details: Record<string, unknown>): void {
    this.#parts.logger.warn(message, { ...details, error: messageOf(error) })
  }
}

function slowDown(watched: WatchedRun): void {
  watched.pauseMs = Math.min(watched.pauseMs * 1.5, LONGEST_PAUSE_MS)
}

const SHORTEST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 500
/** Runs that are due within this time are looked at together. */
const LEAST_PAUSE_MS = 25
/** How often it is checked that the process of a run without new events still runs. */
const LIFE_CHECK_MS = 2000
const RUNS_AT_ONCE = 500
const PAGE = 500
