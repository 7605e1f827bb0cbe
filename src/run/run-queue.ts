/** Lines in which runs wait: in this process for a free slot, in the store for their session. */
import { availableParallelism, totalmem } from 'node:os'
import { AgentError, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { SessionKey } from '../session/message.js'
import type { QueuedRun, RunStore } from '../session/run-store.js'
import type { Lease, SessionStore } from '../session/session-store.js'
import { runScope } from './run-scope.js'

/** Gives the turn to the next in the queue. */
export type Leave = () => void

/**
 * One run per session within this process: first come, first served. The lease in the store does this across
 * processes; the queue avoids polling for it within one.
 */
export class SessionQueue {
  /** The sessions that have a run, and the runs that wait for them. */
  readonly #lines = new Map<string, Set<() => void>>()

  /** Waits for the turn of this session. With `reject`, fails at once when another run is queued. */
  async enter(key: SessionKey, whenBusy: 'queue' | 'reject', signal?: AbortSignal): Promise<Leave> {
    if (signal?.aborted) throw aborted()
    const name = sessionName(key)
    const line = this.#lines.get(name)
    if (line && whenBusy === 'reject') throw busy(key)
    if (line) await turnIn(line, signal, () => this.#pass(name))
    else this.#lines.set(name, new Set())
    return once(() => this.#pass(name))
  }

  #pass(name: string): void {
    const [next] = this.#lines.get(name) ?? []
    if (next) next()
    else this.#lines.delete(name)
  }
}

function once(leave: Leave): Leave {
  let isLeft = false
  return () => {
    if (!isLeft) leave()
    isLeft = true
  }
}

/** How many runs of this process may work at once; the others wait, first come, first served. */
export class RunSlots {
  readonly #waiting = new Set<() => void>()
  #free: number

  constructor(count: number) {
    this.#free = count
  }

  /** A run that a tool of another run starts does not wait: the two would wait for each other. */
  async enter(signal: AbortSignal | undefined): Promise<Leave> {
    const entered = this.tryEnter()
    if (entered) return entered
    await turnIn(this.#waiting, signal, () => this.#pass())
    return once(() => this.#pass())
  }

  /** A slot, if one is free now. */
  tryEnter(): Leave | undefined {
    if (runScope.getStore()) return () => {}
    if (this.#free <= 0) return undefined
    this.#free -= 1
    return once(() => this.#pass())
  }

  /** A slot that becomes free is passed on, so that no later run takes it first. */
  #pass(): void {
    const [next] = this.#waiting
    if (next) next()
    else this.#free += 1
  }
}

/** Waits in a line until it is called, or until the signal fires. */
async function turnIn(line: Set<() => void>, signal: AbortSignal | undefined, pass: Leave): Promise<void> {
  let called = () => {}
  const turn = new Promise<void>(resolve => {
    called = resolve
  })
  const next = () => {
    line.delete(next)
    called()
  }
  line.add(next)
  try {
    await raceAbort(turn, signal)
  } catch (error) {
    // A turn that was passed on in the same moment is passed further.
    if (!line.delete(next)) pass()
    throw error
  }
}

/** Runs mostly wait for their models: many per core, as long as there is memory for what they hold. */
export function defaultMaxRunning(): number {
  const byMemory = Math.floor(totalmem() / 2 / MEMORY_PER_RUN)
  return Math.max(LEAST_RUNNING, Math.min(availableParallelism() * RUNS_PER_CORE, byMemory))
}

const RUNS_PER_CORE = 128
const MEMORY_PER_RUN = 8 * 1024 * 1024
const LEAST_RUNNING = 8

export function busy(key: SessionKey): AgentError {
  return new AgentError(
    'session-busy',
    `Session "${key.sessionId}" is busy with another run. Wait for it to finish, or run with whenBusy: 'queue'.`,
    { retryable: true, details: { ...key } },
  )
}

async function raceAbort(waiting: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted) throw aborted()
  if (!signal) return waiting
  let stop = () => {}
  const stopped = new Promise<never>((_resolve, reject) => {
    stop = () => reject(aborted())
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    await Promise.race([waiting, stopped])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

function aborted(): AgentError {
  return new AgentError('aborted', 'The run was stopped while it waited for its session.')
}

/** A session as one text. */
export function sessionName({ appName, userId, sessionId }: SessionKey): string {
  return `${appName}\0${userId}\0${sessionId}`
}

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
      // The runs stay in the store: they are looked for again.
      if (!this.#closing.signal.aborted)
        this.#parts.logger.warn('The queue of a session could not be worked on', {
          ...key,
          error: messageOf(error),
        })
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

/** How long a run waits for a session that another process is busy with, before it is looked at again. */
export const WAIT_FOR_SESSION_MS = 600_000
