/** Runs that were accepted for later: put into the queues of their sessions when they are due. */
import { readDueTime } from '../base/due-time.js'
import { messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { SessionKey } from '../session/message.js'
import type { SessionStore } from '../session/session-store.js'
import type { PreparedRun } from './run-opening.js'
import { isInterruption } from './run-signals.js'

interface DueRunParts {
  store: SessionStore
  appName: string
  logger: Logger
  /** Executes the queued runs of a session. */
  work(key: SessionKey): void
  stop(runId: string): void
}

/**
 * The first process that looks puts a run into its queue. When a run is due is decided by the store's clock, for all processes
 * alike: the store says how long it takes until the next one, and a timer fires then. Runs of other processes are found
 * when abandoned runs are looked for.
 */
export class DueRuns {
  readonly #parts: DueRunParts
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> | undefined
  #isClosed = false

  constructor(parts: DueRunParts) {
    this.#parts = parts
  }

  /** A run was accepted. Its caller may abort it before it is due; a process that ends leaves it in the store. */
  keep({ runId, input: { signal, at } }: PreparedRun, onEnd: () => void = () => {}): void {
    const aborted = () => {
      if (!isInterruption(signal?.reason)) this.#parts.stop(runId)
      onEnd()
    }
    signal?.addEventListener('abort', aborted, { once: true })
    if (signal?.aborted) aborted()
    this.expect(readDueTime(at) ?? 0)
  }

  /** A run is due at that time. */
  expect(dueAt: number): void {
    if (dueAt - Date.now() < LOOK_AHEAD_MS) void this.release()
  }

  /** Releases what is due; one look at a time. */
  release(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  /** Releases a run before its time. Returns whether this process did. */
  async releaseNow(runId: string): Promise<boolean> {
    const { store, appName, work } = this.#parts
    const { released } = await store.runs.releaseDue({ appName, runId })
    for (const { key } of released) work(key)
    return released.length > 0
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  async #look(): Promise<void> {
    const { store, appName, logger, work } = this.#parts
    if (this.#isClosed) return
    try {
      const { released, nextInMs } = await store.runs.releaseDue({ appName })
      for (const { key } of released) work(key)
      if (nextInMs !== undefined && nextInMs < LOOK_AHEAD_MS) this.#wakeIn(nextInMs)
    } catch (error) {
      logger.warn('Runs that are due could not be looked for', { error: messageOf(error) })
    }
  }

  #wakeIn(ms: number): void {
    if (this.#isClosed) return
    clearTimeout(this.#timer)
    // Waiting for a run that is not due keeps no process alive: another one executes it.
    this.#timer = setTimeout(() => void this.release(), Math.max(1, ms)).unref()
  }
}

/** Longer than the time between two looks for abandoned runs: what is due later is found by the next one. */
const LOOK_AHEAD_MS = 15_000
