/** Executes the runs that wait in the queues of the store. */
import { AgentError, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { SessionKey } from '../session/message.js'
import type { QueuedRun, RunStore } from '../session/run-store.js'
import type { Lease, SessionStore } from '../session/session-store.js'
import { type Leave, type RunSlots, sessionName, WAIT_FOR_SESSION_MS } from './run-admission.js'

interface WorkerParts {
  store: SessionStore & { runs: Required<Pick<RunStore, 'listQueued'>> }
  logger: Logger
  slots: RunSlots
  /** Called with the queue of a session, under its lease. */
  listed(key: SessionKey, queued: readonly QueuedRun[]): void
  /** Whether a run that this process accepted waits in the queue of a session. */
  hasOwn(key: SessionKey): boolean
  /** Executes a run to its end. */
  execute(next: QueuedRun, held: { lease: Lease; leaveSlot: Leave }): Promise<void>
}

/**
 * Executes the queued runs of sessions in order, one worker per session. A worker executes the runs of other processes
 * that are before its own, and those that no process looks after; later ones are left to the processes that accepted them.
 */
export class QueueWorkers {
  readonly #parts: WorkerParts
  /** The sessions that are worked on, and whether there may be more to do. */
  readonly #working = new Map<string, { again: boolean }>()
  readonly #closing = new AbortController()

  constructor(parts: WorkerParts) {
    this.#parts = parts
  }

  /** Executes queued runs of a session: own ones whenever their turn comes, others if the session is free now. */
  work(key: SessionKey): void {
    if (this.#closing.signal.aborted) return
    const name = sessionName(key)
    const working = this.#working.get(name)
    if (working) working.again = true
    else void this.#run(name, key)
  }

  /** Begins no further run. */
  close(): void {
    this.#closing.abort()
  }

  async #run(name: string, key: SessionKey): Promise<void> {
    const worker = { again: true }
    this.#working.set(name, worker)
    try {
      while (worker.again && !this.#closing.signal.aborted) {
        worker.again = false
        while (await this.#executeFirst(key));
      }
    } catch (error) {
      if (this.#closing.signal.aborted) return
      this.#parts.logger.warn('The queue of a session could not be worked on', {
        ...key,
        error: messageOf(error),
      })
      // The runs stay in the store. Those of other processes are looked for from time to time.
      if (this.#parts.hasOwn(key)) setTimeout(() => this.work(key), RETRY_MS)
    } finally {
      this.#working.delete(name)
    }
  }

  /** `false` when there is nothing to execute. */
  async #executeFirst(key: SessionKey): Promise<boolean> {
    const { store, slots, listed, execute, hasOwn } = this.#parts
    const { signal } = this.#closing
    const leaveSlot = await slots.enter(signal)
    let lease: Lease | undefined
    try {
      const waitMs = hasOwn(key) ? WAIT_FOR_SESSION_MS : 0
      lease = await store.acquireLease(key, { waitMs, signal })
      const queued = await store.runs.listQueued(key)
      listed(key, queued)
      const [next] = queued
      if (!next || signal.aborted) return false
      await execute(next, { lease, leaveSlot })
      return hasOwn(key)
    } catch (error) {
      // Another process works on the session.
      if (!(error instanceof AgentError) || error.code !== 'session-busy') throw error
      return hasOwn(key)
    } finally {
      await lease?.release().catch(() => {})
      leaveSlot()
    }
  }
}

/** A store that is unavailable, or a run that only another process can execute, is tried again after this time. */
const RETRY_MS = 1000
