/** Lets an engine execute the runs of the store, in the order of their sessions. */
import { AgentError, messageOf } from '../errors.js'
import type { SessionKey } from '../session/message.js'
import type { QueuedRun, RunSummary } from '../session/run-store.js'
import type { Lease } from '../session/session-store.js'
import { once, type RunSlots, sessionName } from './run-admission.js'
import type { DispatchedRun, EngineWork, Executed, RunEngine } from './run-engine.js'
import type { RunHost } from './run-host.js'
import { BeginningRuns, type OwnQueue, type OwnRun, type Workers } from './run-queue.js'
import type { Held, RunResumer } from './run-resume.js'
import { isSignalled } from './run-signals.js'

interface EngineParts {
  host: RunHost
  engine: RunEngine
  slots: RunSlots
  resumer: RunResumer
  /** The runs that this process has accepted and that are queued. */
  own: Pick<OwnQueue<OwnRun>, 'keep' | 'take' | 'values'>
  /** Executes a queued run to its end; `false` when it has to wait for an earlier one. */
  execute(next: QueuedRun, held: Held): Promise<boolean>
}

/**
 * Only the first run of a session is given to the engine: one that waits for its turn takes no place there. Its end lets
 * the next one be dispatched; what a process that ends leaves undone is found by the sweep of another.
 */
export class EngineWorkers extends BeginningRuns implements Workers, EngineWork {
  readonly #parts: EngineParts

  constructor(parts: EngineParts) {
    super()
    this.#parts = parts
  }

  /** Dispatches the first run of a session, if nobody works on the session. */
  work(key: SessionKey): void {
    void this.#dispatchOf(key)
  }

  /** A run that was stopped before it began lets the next one of its session begin. */
  async stopped(runId: string): Promise<void> {
    const run = await this.#parts.host.store.runs.findRun(runId)
    if (run) this.work(run.key)
  }

  override async close(): Promise<void> {
    this.#parts.engine.pause()
    await super.close()
  }

  /** Dispatches every run that no process works on. */
  async sweep(): Promise<void> {
    await this.#leaveOthers()
    await this.#dispatchOf(undefined)
    await this.#parts.engine.sweep()
  }

  /** Runs that this process accepted and that are executed elsewhere, or were stopped, are no longer its own. */
  async #leaveOthers(): Promise<void> {
    const { host, own } = this.#parts
    const waiting = own.values()
    if (waiting.length === 0) return
    const { appName, store } = host
    const unfinished = await store.runs.listUnfinished({ appName, limit: LISTED })
    const queued = new Set(unfinished.flatMap(({ runId, state }) => (state === 'queued' ? [runId] : [])))
    const left = unfinished.length < LISTED ? waiting.filter(({ runId }) => !queued.has(runId)) : []
    for (const { runId } of left) own.take(runId)?.onEnd()
  }

  async execute(runId: string): Promise<Executed> {
    const { runs } = this.#parts.host.store
    for (let round = 0; round < MOST_ROUNDS && !this.isClosing; round++) {
      const run = await runs.findRun(runId)
      if (!run || run.finished) return 'ended'
      if (run.state === 'waiting' && !(await isSignalled(this.#parts.host.store, runId))) return 'waiting'
      if (!(await this.#executeOnce(run))) return 'later'
    }
    return 'later'
  }

  async modelOf(runId: string): Promise<string> {
    const { store, models } = this.#parts.host
    const run = await store.runs.findRun(runId)
    const queued = run?.state === 'queued' ? await store.runs.listQueued(run.key) : []
    const { input } =
      queued.find(each => each.runId === runId) ?? (await store.runs.readResumable(runId)) ?? {}
    const model: unknown = input?.model
    return typeof model === 'string' ? model : models.rootReference
  }

  async stateOf(runId: string): Promise<'queued' | 'begun' | undefined> {
    const run = await this.#parts.host.store.runs.findRun(runId)
    if (!run || run.finished) return undefined
    return run.state === 'queued' ? 'queued' : 'begun'
  }

  async #dispatchOf(key: SessionKey | undefined): Promise<void> {
    const { host, engine } = this.#parts
    if (this.isClosing) return
    try {
      const { appName, store } = host
      const due = await store.runs.listUnfinished({ appName, abandoned: true, ...(key ? { key } : {}) })
      if (due.length > 0) await engine.dispatch(firstOfSessions(due))
    } catch (error) {
      host.logger.warn('Runs could not be dispatched', { ...key, error: messageOf(error) })
    }
  }

  /** `false` when the run has to wait. */
  async #executeOnce(run: RunSummary): Promise<boolean> {
    const { slots } = this.#parts
    const leaveSlot = once(await slots.enter(this.closing))
    let lease: Lease | undefined
    try {
      lease = await this.#acquire(run.key)
      return lease !== undefined && (await this.#executeUnder(run, { lease, leaveSlot }))
    } finally {
      await lease?.release().catch(() => {})
      leaveSlot()
    }
  }

  async #executeUnder({ runId, key }: RunSummary, held: Held): Promise<boolean> {
    const { host, resumer, own, execute } = this.#parts
    const { runs } = host.store
    const run = await runs.findRun(runId)
    if (!run || run.finished) return true
    if (run.state !== 'queued') return (await resumer.takeOver(run, held, true)) !== 'later'
    const queued = await runs.listQueued(key)
    own.keep(key, queued)
    const [next] = queued
    return next !== undefined && !this.isClosing && execute(next, held)
  }

  /** A process that is gone keeps its session until its lease expires. */
  async #acquire(key: SessionKey): Promise<Lease | undefined> {
    try {
      return await this.#parts.host.store.acquireLease(key, { waitMs: LEASE_WAIT_MS, signal: this.closing })
    } catch (error) {
      if (error instanceof AgentError && error.code === 'session-busy') return undefined
      throw error
    }
  }
}

/** Longer than a lease. */
const LEASE_WAIT_MS = 15_000
/** How many unfinished runs of an app are read to find those that this process accepted. */
const LISTED = 1000
/** How many runs of a session may come before the one that was dispatched. */
const MOST_ROUNDS = 1000

/** They are listed in the order of their acceptance. */
function firstOfSessions(runs: readonly RunSummary[]): DispatchedRun[] {
  const first = new Map<string, RunSummary>()
  for (const run of runs) {
    const name = sessionName(run.key)
    if (!first.has(name)) first.set(name, run)
  }
  return [...first.values()].map(({ runId, key, state }) => ({
    runId,
    userId: key.userId,
    isBegun: state !== 'queued',
  }))
}
