import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { defined } from '../../base/defined.js'
import { AgentError } from '../../errors.js'
import type { RunEvent } from '../../run/run-event.js'
import type { RunInput, Runtime } from '../../runtime/runtime.js'
import type { SessionKey } from '../../session/message.js'
import type { RunSummary } from '../../session/run-store.js'
import type { ApprovalAnswer, OutcomeAnswer } from '../../tool.js'
import type { RunItem, StartedRun } from '../chat-protocol.js'
import type { Metrics } from '../metrics.js'
import { Refusal } from '../refusal.js'
import { type EventBatch, toBatch } from './event-batch.js'

export interface HubParts {
  runtime: Runtime
  appName: string
  metrics: Metrics
  /** Concurrent runs of one user in this process. */
  runsPerUser: number
}

type StartInput = RunInput & { userId: string }

interface FollowOptions {
  after?: number
  signal?: AbortSignal
}

/**
 * The runs of a server: limits for each user, metrics, and what clients see of them. A run that was accepted continues
 * when its followers disconnect, and can be followed from any event number and from any process.
 */
export class RunHub {
  readonly #parts: HubParts
  readonly #starting = new Map<string, number>()
  /** Runs that were started here and have not ended. */
  readonly #own = new Map<string, AbortController>()
  readonly #followers = new Set<AbortController>()
  #closing = false

  constructor(parts: HubParts) {
    this.#parts = parts
  }

  /** Accepts a run: resolves when it is on disk. The same run id twice is one run. */
  async start(input: StartInput): Promise<StartedRun> {
    const sessionId = input.sessionId ?? randomUUID()
    const runId = (input.runId ?? randomUUID()).toLowerCase()
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#startOnce({ ...input, sessionId, runId })
      } catch (error) {
        const isBusy = error instanceof AgentError && error.code === 'session-busy'
        const key = { appName: this.#parts.appName, userId: input.userId, sessionId }
        if (!isBusy || attempt > BUSY_RETRIES || (await this.#hasRunningRun(key)))
          throw asInvalidModel(input, error)
        await sleep(BUSY_PAUSE_MS)
      }
    }
  }

  /** The events after number `after`: stored ones, then live ones as they are stored. Ends after `run-finish`. */
  async *follow(runId: string, options: FollowOptions = {}): AsyncGenerator<RunEvent, void, undefined> {
    for await (const batch of this.followBatches(runId, options)) yield* batch.events
  }

  /** As `follow`, in the batches in which the events were stored, with their bytes on the wire. */
  async *followBatches(
    runId: string,
    { after, signal }: FollowOptions = {},
  ): AsyncGenerator<EventBatch, void, undefined> {
    const { runtime } = this.#parts
    const linked = linkedSignal(signal)
    this.#followers.add(linked.own)
    try {
      const lists = runtime.followLists(runId, { afterSeq: after, signal: linked.own.signal })
      for await (const events of lists) yield toBatch(events)
    } finally {
      linked.unlink()
      this.#followers.delete(linked.own)
    }
  }

  /** Stops a run, in whichever process it is. */
  stop(runId: string): Promise<void> {
    return this.#parts.runtime.stop(runId)
  }

  /** Answers a call that waits for a person. `run-not-found` when none waits under that id. */
  approve(runId: string, callId: string, answer: ApprovalAnswer | OutcomeAnswer): Promise<void> {
    return this.#parts.runtime.answer(runId, callId, answer)
  }

  /** The run and its session. */
  async find(runId: string): Promise<{ item: RunItem; key: SessionKey } | undefined> {
    const run = await this.#parts.runtime.findRun(runId)
    return run && { item: toRunItem(run), key: run.key }
  }

  /** Newest first. */
  async list(key: SessionKey, limit = 50): Promise<RunItem[]> {
    return (await this.#parts.runtime.listRuns(key, { limit })).map(toRunItem)
  }

  /** The sessions of a user with a run that has not ended, as far as this process knows: the store is not read. */
  runningSessions(appName: string, userId: string): ReadonlySet<string> {
    const { runtime } = this.#parts
    const keys = [...runtime.active().map(({ key }) => key), ...runtime.watchedSessions()]
    const own = keys.filter(key => key.appName === appName && key.userId === userId)
    return new Set(own.map(({ sessionId }) => sessionId))
  }

  /** The number of runs of this process, all or those of one user. */
  running(userId?: string): number {
    const runs = this.#parts.runtime.active()
    return userId === undefined ? runs.length : runs.filter(({ key }) => key.userId === userId).length
  }

  /** Refuses new runs, waits for running ones up to `graceMs`, then interrupts them and ends all followers. */
  async close(graceMs: number): Promise<void> {
    this.#closing = true
    await this.#untilOver(graceMs)
    for (const run of this.#own.values()) run.abort(shutDown())
    // Stopping takes longer only when the store is unavailable; then the lease expires.
    await this.#untilOver(STOP_MS)
    for (const follower of this.#followers) follower.abort()
  }

  /** Waits until no run that was started here is executed. Queued ones are not waited for. */
  async #untilOver(ms: number): Promise<void> {
    const deadline = performance.now() + ms
    const isWorking = () =>
      this.#parts.runtime.active().some(({ runId, loop }) => loop !== undefined && this.#own.has(runId))
    while (isWorking() && performance.now() < deadline) await sleep(CLOSE_POLL_MS)
  }

  async #startOnce(input: StartInput & { runId: string }): Promise<StartedRun> {
    const { runtime } = this.#parts
    const { userId, runId } = input
    // A request that is sent again is not refused because of the run that it started.
    const isActive = runtime.active().some(run => run.runId === runId)
    if (!isActive) this.#checkAdmission(userId)
    this.#starting.set(userId, (this.#starting.get(userId) ?? 0) + 1)
    const stop = new AbortController()
    if (this.#own.size > MOST_OWN) this.#forgetEnded()
    if (!isActive) this.#own.set(runId, stop)
    try {
      return await runtime.start({
        ...input,
        signal: stop.signal,
        onStored: events => this.#stored(events, input.onStored),
      })
    } catch (error) {
      if (this.#own.get(runId) === stop) this.#own.delete(runId)
      throw error
    } finally {
      this.#release(userId)
    }
  }

  /** Runs that another process has executed end without a word here. */
  #forgetEnded(): void {
    const active = new Set(this.#parts.runtime.active().map(({ runId }) => runId))
    for (const runId of this.#own.keys()) if (!active.has(runId)) this.#own.delete(runId)
  }

  #release(userId: string): void {
    const left = (this.#starting.get(userId) ?? 0) - 1
    if (left > 0) this.#starting.set(userId, left)
    else this.#starting.delete(userId)
  }

  #stored(events: readonly RunEvent[], onStored: RunInput['onStored']): void {
    const { metrics } = this.#parts
    for (const event of events) {
      if (event.type === 'run-start') metrics.runStarted()
      // An answer belongs to a call that was counted when it was asked.
      if (event.type === 'tool-unknown' && event.answer === undefined) metrics.callUnknown()
      if (event.type !== 'run-finish') continue
      metrics.runFinished(event.finishReason)
      this.#own.delete(event.runId)
    }
    onStored?.(events)
  }

  #checkAdmission(userId: string): void {
    if (this.#closing) {
      throw new Refusal('shutting-down', 'The server is shutting down. Try again in a moment.', {
        retryAfterSeconds: 2,
      })
    }
    const running = this.running(userId) + (this.#starting.get(userId) ?? 0)
    if (running < this.#parts.runsPerUser) return
    const message = `Too many concurrent runs (limit ${this.#parts.runsPerUser}). Wait for one to finish, or stop one.`
    throw new Refusal('too-many', message, { retryAfterSeconds: 5 })
  }

  /** A session that is held without an unfinished run is retried: another process looks after its runs. */
  async #hasRunningRun(key: SessionKey): Promise<boolean> {
    const { runs } = this.#parts.runtime.store
    const [newest] =
      (await runs.listUnfinished?.({ appName: key.appName, key, limit: 1 })) ??
      (await runs.listRuns(key, { limit: 1 }))
    return newest !== undefined && !newest.finished
  }
}

/** A process that looks after the runs of a session holds its lease for a moment; a new run waits for that. */
const BUSY_RETRIES = 5
const BUSY_PAUSE_MS = 60
const STOP_MS = 3000
/** Beyond this number it is checked whether runs have ended elsewhere. */
const MOST_OWN = 10_000
const CLOSE_POLL_MS = 10

function shutDown(): AgentError {
  const message = 'The server was shut down during this run. Send a message to continue.'
  return new AgentError('run-interrupted', message, { retryable: true })
}

/** A signal for each follower: listeners on a shared one that outlives them would leak. */
function linkedSignal(outer: AbortSignal | undefined): { own: AbortController; unlink(): void } {
  const own = new AbortController()
  const abort = () => own.abort()
  if (outer?.aborted) abort()
  outer?.addEventListener('abort', abort, { once: true })
  return { own, unlink: () => outer?.removeEventListener('abort', abort) }
}

/** A model that is not configured is an invalid argument when the caller named it. */
function asInvalidModel({ model }: RunInput, error: unknown): unknown {
  const isOfModel = model !== undefined && error instanceof AgentError && error.code === 'invalid-config'
  return isOfModel ? new AgentError('invalid-argument', error.message, { cause: error }) : error
}

/** A stored run as clients see it. */
function toRunItem(run: RunSummary): RunItem {
  const { runId, key, startedAt, afterSeq, lastSeq, finished, finishReason, state, place } = run
  return {
    runId,
    sessionId: key.sessionId,
    startedAt,
    ...defined({ afterSeq }),
    lastSeq,
    status: finished ? 'finished' : (state ?? 'running'),
    ...defined({ finishReason, place }),
  }
}
