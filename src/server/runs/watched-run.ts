import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../errors.js'
import type { Logger } from '../../logger.js'
import type { RunEvent } from '../../run/run-event.js'
import type { RunSummary, SessionStore } from '../../session/session-store.js'
import { markIfInterrupted } from './interrupted-runs.js'
import { RunFeed } from './run-feed.js'

const SHORTEST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 500
/** How often a silent run's process is asked after. */
const LIFE_CHECK_MS = 2000
const PAGE = 500

/**
 * A run of another process, seen through the store. However many follow it here, the store is asked once; it
 * is asked rarely while nothing happens, and not at all while nobody follows.
 */
export class WatchedRun {
  readonly feed: RunFeed
  readonly #store: SessionStore
  readonly #run: RunSummary
  readonly #logger: Logger
  #lifeCheckedAt = 0

  constructor(store: SessionStore, run: RunSummary, logger: Logger) {
    this.#store = store
    this.#run = run
    this.#logger = logger
    this.feed = new RunFeed(run.runId, run.key, run.lastSeq)
  }

  /** Reads until the run ends or the signal fires. */
  async watch(signal: AbortSignal): Promise<void> {
    let pauseMs = SHORTEST_PAUSE_MS
    while (!signal.aborted && !this.feed.ended) {
      const found = await this.#read()
      pauseMs = found ? SHORTEST_PAUSE_MS : Math.min(pauseMs * 1.5, LONGEST_PAUSE_MS)
      if (!found) await this.#checkLife()
      if (!this.feed.ended) await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => {})
    }
  }

  async #read(): Promise<boolean> {
    try {
      const { runId } = this.#run
      const events = await this.#store.runs.readEvents(runId, { afterSeq: this.feed.lastSeq, limit: PAGE })
      // The recorder of runs wrote them; a store returns what it was given.
      this.feed.add(events as unknown as RunEvent[])
      return events.length > 0
    } catch (error) {
      // The store may be back soon; followers only see a pause.
      this.#logger.warn('A run could not be followed', { runId: this.#run.runId, error: messageOf(error) })
      return false
    }
  }

  async #checkLife(): Promise<void> {
    if (Date.now() - this.#lifeCheckedAt < LIFE_CHECK_MS) return
    this.#lifeCheckedAt = Date.now()
    try {
      const run = await this.#store.runs.findRun(this.#run.runId)
      // Deleted with its session, or pruned: there will be nothing to read.
      if (!run || run.lastSeq === 0) this.feed.end()
      else await markIfInterrupted(this.#store, run)
    } catch (error) {
      this.#logger.warn('A run could not be looked after', {
        runId: this.#run.runId,
        error: messageOf(error),
      })
    }
  }
}
