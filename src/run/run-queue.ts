/** Executes the runs that wait in the queues of the store. */
import { setMaxListeners } from 'node:events'
import { AgentError, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { SessionKey } from '../session/message.js'
import type { QueuedRun } from '../session/run-store.js'
import type { Lease, SessionStore } from '../session/session-store.js'
import { type Leave, type RunSlots, sessionName, WAIT_FOR_SESSION_MS } from './run-admission.js'

interface WorkerParts {
  host: { store: SessionStore; logger: Logger }
  slots: RunSlots
  /** The runs that this process has accepted and that are queued. */
  own: Pick<OwnQueue<OwnRun>, 'hasIn' | 'keep'>
  /** Executes a run to its end; `false` when it has to wait for an earlier one. */
  execute(next: QueuedRun, held: { lease: Lease; leaveSlot: Leave }): Promise<boolean>
}

/** What brings the queued runs of sessions to their execution. */
export interface Workers {
  readonly isClosing: boolean
  /** Runs of a session may be due. */
  work(key: SessionKey): void
  /** Begins a run, unless the workers are closing; closing waits for it. */
  begin<T>(begin: () => Promise<T>): Promise<T | undefined>
  /** Begins no further run. Resolves when no run is about to begin. */
  close(): Promise<void>
}

/** Runs that are about to begin while the process may be about to end. */
export class BeginningRuns {
  readonly #closing = new AbortController()
  readonly #beginning = new Set<Promise<unknown>>()

  constructor() {
    // Every session that waits for a slot or a lease listens to it until its turn comes.
    setMaxListeners(0, this.#closing.signal)
  }

  get isClosing(): boolean {
    return this.#closing.signal.aborted
  }

  protected get closing(): AbortSignal {
    return this.#closing.signal
  }

  async begin<T>(begin: () => Promise<T>): Promise<T | undefined> {
    if (this.isClosing) return undefined
    const beginning = begin()
    this.#beginning.add(beginning)
    try {
      return await beginning
    } finally {
      this.#beginning.delete(beginning)
    }
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.allSettled([...this.#beginning])
  }
}

/**
 * Executes the queued runs of sessions in order, one worker per session. A worker executes the runs of other processes
 * that are before its own, and those that no process looks after; later ones are left to the processes that accepted them.
 */
export class QueueWorkers extends BeginningRuns implements Workers {
  readonly #parts: WorkerParts
  /** The sessions that are worked on, and whether there may be more to do. */
  readonly #working = new Map<string, { again: boolean }>()
  readonly #retries = new Map<string, NodeJS.Timeout>()

  constructor(parts: WorkerParts) {
    super()
    this.#parts = parts
  }

  /** Executes queued runs of a session: own ones whenever their turn comes, others if the session is free now. */
  work(key: SessionKey): void {
    if (this.isClosing) return
    const name = sessionName(key)
    const working = this.#working.get(name)
    if (working) working.again = true
    else void this.#run(name, key)
  }

  override async close(): Promise<void> {
    const closed = super.close()
    for (const timer of this.#retries.values()) clearTimeout(timer)
    await closed
  }

  async #run(name: string, key: SessionKey): Promise<void> {
    const worker = { again: true }
    this.#working.set(name, worker)
    try {
      while (worker.again && !this.isClosing) {
        worker.again = false
        while (await this.#executeFirst(key));
      }
    } catch (error) {
      if (this.isClosing) return
      this.#parts.host.logger.warn('The queue of a session could not be worked on', {
        ...key,
        error: messageOf(error),
      })
      // The runs stay in the store. Those of other processes are looked for from time to time.
      if (this.#parts.own.hasIn(key)) this.#retry(name, key)
    } finally {
      this.#working.delete(name)
    }
  }

  #retry(name: string, key: SessionKey): void {
    if (this.#retries.has(name)) return
    const again = () => {
      this.#retries.delete(name)
      this.work(key)
    }
    this.#retries.set(name, setTimeout(again, RETRY_MS))
  }

  /** `false` when there is nothing to execute. */
  async #executeFirst(key: SessionKey): Promise<boolean> {
    const { slots, own } = this.#parts
    const leaveSlot = await slots.enter(this.closing)
    const lease = await this.#acquire(key, 0).catch(error => {
      leaveSlot()
      throw error
    })
    if (lease) return this.#executeUnder(key, lease, leaveSlot)
    // Another run works on the session: waiting for it takes no slot.
    leaveSlot()
    if (!own.hasIn(key)) return false
    const late = await this.#acquire(key, WAIT_FOR_SESSION_MS)
    const lateSlot = late && slots.tryEnter()
    if (late && lateSlot) return this.#executeUnder(key, late, lateSlot)
    await late?.release().catch(() => {})
    return own.hasIn(key)
  }

  /** The lease of a session, or `undefined` when it is busy for longer than that. */
  async #acquire(key: SessionKey, waitMs: number): Promise<Lease | undefined> {
    try {
      return await this.#parts.host.store.acquireLease(key, { waitMs, signal: this.closing })
    } catch (error) {
      if (error instanceof AgentError && error.code === 'session-busy') return undefined
      throw error
    }
  }

  async #executeUnder(key: SessionKey, lease: Lease, leaveSlot: Leave): Promise<boolean> {
    const { host, execute, own } = this.#parts
    try {
      const queued = await host.store.runs.listQueued(key)
      own.keep(key, queued)
      const [next] = queued
      if (!next || this.isClosing) return false
      if (await execute(next, { lease, leaveSlot })) return own.hasIn(key)
      if (own.hasIn(key)) this.#retry(sessionName(key), key)
      return false
    } finally {
      await lease.release().catch(() => {})
      leaveSlot()
    }
  }
}

/** A store that is unavailable, or a run that only another process can execute, is tried again after this time. */
const RETRY_MS = 1000

/** A run that this process has accepted and that is queued. */
export interface OwnRun {
  readonly runId: string
  readonly key: SessionKey
  onEnd(): void
  /** Its signal is no longer listened to. */
  left(): void
}

/** The queued runs that this process has accepted. */
export class OwnQueue<Run extends OwnRun> {
  readonly #runs = new Map<string, Run>()
  /** Their ids, by session. */
  readonly #ids = new Map<string, Set<string>>()

  add(run: Run): void {
    this.#runs.set(run.runId, run)
    const name = sessionName(run.key)
    this.#ids.set(name, (this.#ids.get(name) ?? new Set()).add(run.runId))
  }

  get(runId: string): Run | undefined {
    return this.#runs.get(runId)
  }

  values(): Run[] {
    return [...this.#runs.values()]
  }

  hasIn(key: SessionKey): boolean {
    return this.#ids.has(sessionName(key))
  }

  /** Takes a run out of the queue: it begins, or nothing is left to do for it here. */
  take(runId: string): Run | undefined {
    const run = this.#runs.get(runId)
    if (!run) return undefined
    this.#runs.delete(runId)
    const name = sessionName(run.key)
    const own = this.#ids.get(name)
    own?.delete(runId)
    if (own?.size === 0) this.#ids.delete(name)
    run.left()
    return run
  }

  /** Keeps those that are in the store's queue: the others were begun or stopped by other processes. */
  keep(key: SessionKey, queued: readonly QueuedRun[]): void {
    if (queued.length >= LISTED_RUNS) return
    const ids = new Set(queued.map(({ runId }) => runId))
    for (const runId of this.#ids.get(sessionName(key)) ?? []) if (!ids.has(runId)) this.take(runId)?.onEnd()
  }
}

/** How many queued runs a store lists at once. */
const LISTED_RUNS = 100

/** Since when the first run of a queue, which this process may not be able to execute, is the first. */
export class FirstRuns {
  readonly #seen = new Map<string, { runId: string; at: number }>()

  /** Whether a run of another process has been the first of its queue for too long. */
  isOverdue({ key, runId }: QueuedRun): boolean {
    const name = sessionName(key)
    const seen = this.#seen.get(name)
    if (seen?.runId === runId) return Date.now() - seen.at > UNKNOWN_MODEL_MS
    this.#seen.set(name, { runId, at: Date.now() })
    return false
  }

  /** The first run of the queue has begun. */
  forget(key: SessionKey): void {
    this.#seen.delete(sessionName(key))
  }
}

/** How long the first run of a queue waits for a process that knows its model. */
const UNKNOWN_MODEL_MS = 600_000
