import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { defined } from '../../base/defined.js'
import { orTimeout } from '../../base/pause.js'
import { AgentError, messageOf } from '../../errors.js'
import type { Logger } from '../../logger.js'
import type { RunEvent } from '../../run/run-event.js'
import type { RunInput, Runtime } from '../../runtime/runtime.js'
import type { SessionKey } from '../../session/message.js'
import type { RunStore, RunSummary } from '../../session/run-store.js'
import type { ApprovalAnswer } from '../../tool.js'
import type { RunItem, StartedRun } from '../chat-protocol.js'
import type { Metrics } from '../metrics.js'
import { notFound, Refusal } from '../refusal.js'
import type { EventBatch } from './event-batch.js'
import { markIfInterrupted, storedEvents } from './interrupted-runs.js'
import { LocalRun, WatchedRun } from './live-runs.js'
import { followRun, type RunFeed } from './run-feed.js'

export interface HubParts {
  runtime: Runtime
  appName: string
  logger: Logger
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
 * Runs, independent of the connections that follow them. A run that was started here continues when its followers
 * disconnect, and can be followed from any event number and from any process: every event is read from the store
 * or was stored before it is handed out.
 */
export class RunHub {
  readonly #parts: HubParts
  readonly #local = new Map<string, LocalRun>()
  readonly #starting = new Map<string, { key: SessionKey; started: Promise<StartedRun> }>()
  readonly #watched = new Map<string, { run: WatchedRun; stop: AbortController }>()
  readonly #followers = new Set<AbortController>()
  #closing = false

  constructor(parts: HubParts) {
    this.#parts = parts
  }

  /** Starts a run and resolves once its first event is stored. Throws what `runtime.run` throws before that. */
  async start(input: StartInput): Promise<StartedRun> {
    const key = this.#key(input.userId, input.sessionId ?? randomUUID())
    const runId = (input.runId ?? randomUUID()).toLowerCase()
    // The same request may arrive twice at once: both get the outcome of the first.
    const earlier = this.#starting.get(runId)
    if (earlier) {
      checkSameSession(runId, earlier.key, key)
      return earlier.started
    }
    const started = this.#startOnce(runId, key, input)
    this.#starting.set(runId, { key, started })
    try {
      return await started
    } finally {
      this.#starting.delete(runId)
    }
  }

  /** The events after number `after`: stored ones, then live ones as they are stored. Ends after `run-finish`. */
  async *follow(runId: string, options: FollowOptions = {}): AsyncGenerator<RunEvent, void, undefined> {
    for await (const batch of this.followBatches(runId, options)) yield* batch.events
  }

  /** As `follow`, in the batches in which the events were stored, with their bytes on the wire. */
  async *followBatches(
    runId: string,
    options: FollowOptions = {},
  ): AsyncGenerator<EventBatch, void, undefined> {
    const feed = await this.#feedOf(runId)
    const { runs } = this.#parts.runtime.store
    const { signal, unlink } = this.#linked(options.signal)
    if (feed) feed.followers += 1
    try {
      yield* followRun({ runs, runId, feed, after: options.after ?? 0, signal })
    } finally {
      unlink()
      if (feed) this.#leave(feed)
    }
  }

  /** Requests a run to stop, in whichever process it is. */
  async stop(runId: string): Promise<void> {
    const { runs } = this.#parts.runtime.store
    const local = this.#local.get(runId)
    local?.stop()
    if (local?.hasBegun) return
    // The same request may be queued here and have begun in another process.
    const isElsewhere = !local || (await runs.findRun(runId))?.finished === false
    if (isElsewhere) await runs.sendSignal(runId, { type: 'stop' })
  }

  /** Answers an approval request. Fails with `not-found` when none is open under that id. */
  async approve(runId: string, callId: string, answer: ApprovalAnswer): Promise<void> {
    if (this.#local.get(runId)?.answer(callId, answer)) return
    const { runs } = this.#parts.runtime.store
    if (!(await hasOpenRequest(runs, runId, callId))) throw notFound('tool call that waits for this answer')
    await runs.sendSignal(runId, { type: 'approval', callId, answer })
  }

  /** The run and its session. A run whose process is gone is first marked as interrupted. */
  async find(runId: string): Promise<{ item: RunItem; key: SessionKey } | undefined> {
    const { store } = this.#parts.runtime
    const found = await store.runs.findRun(runId)
    const local = this.#local.get(runId)
    if (!found) return local && { item: queuedItem(local.feed), key: local.feed.key }
    return { item: toRunItem(await this.#checkLife(found)), key: found.key }
  }

  /** Newest first. */
  async list(key: SessionKey, limit = 50): Promise<RunItem[]> {
    const runs = await this.#parts.runtime.store.runs.listRuns(key, { limit })
    const items: RunItem[] = []
    for (const run of runs) items.push(toRunItem(await this.#checkLife(run)))
    const known = new Set(runs.map(({ runId }) => runId))
    const queued = [...this.#local.values()].filter(
      ({ feed }) => isSameKey(feed.key, key) && !known.has(feed.runId),
    )
    return [...queued.map(({ feed }) => queuedItem(feed)), ...items].slice(0, limit)
  }

  /** The sessions of a user with a running run, as far as this process knows: the store is not read. */
  runningSessions(appName: string, userId: string): ReadonlySet<string> {
    const near = [...this.#local.values()].map(({ feed }) => feed)
    const far = [...this.#watched.values()].map(({ run }) => run.feed)
    const own = [...near, ...far].filter(
      ({ key, ended }) => !ended && key.appName === appName && key.userId === userId,
    )
    return new Set(own.map(({ key }) => key.sessionId))
  }

  /** The number of runs of this process, all or those of one user. */
  running(userId?: string): number {
    const runs = [...this.#local.values()]
    return userId === undefined ? runs.length : runs.filter(({ feed }) => feed.key.userId === userId).length
  }

  /** Refuses new runs, waits for running ones up to `graceMs`, then interrupts them and ends all followers. */
  async close(graceMs: number): Promise<void> {
    this.#closing = true
    for (const { stop } of this.#watched.values()) stop.abort()
    for (const { run } of this.#watched.values()) run.feed.end()
    const over = Promise.all([...this.#local.values()].map(({ over }) => over))
    await Promise.race([over, sleep(graceMs, undefined, { ref: false })])
    const message = 'The server was shut down during this run. Send a message to continue.'
    for (const run of this.#local.values())
      run.stop(new AgentError('run-interrupted', message, { retryable: true }))
    // Stopping takes longer only when the store is unavailable; then the lease expires.
    await Promise.race([over, sleep(STOP_MS, undefined, { ref: false })])
    for (const follower of this.#followers) follower.abort()
  }

  async #startOnce(runId: string, key: SessionKey, input: StartInput): Promise<StartedRun> {
    const isNew = !(await this.#isKnown(runId, key)) && (await this.#begin(runId, key, input)) === 'begun'
    if (isNew) this.#parts.metrics.runStarted()
    return { runId, sessionId: key.sessionId }
  }

  /** Whether the run exists: the same request sent twice is one run. */
  async #isKnown(runId: string, key: SessionKey): Promise<boolean> {
    const known = this.#local.get(runId)?.feed ?? (await this.#parts.runtime.store.runs.findRun(runId))
    if (known) checkSameSession(runId, known.key, key)
    return known !== undefined
  }

  #checkAdmission(userId: string): void {
    if (this.#closing) {
      throw new Refusal('shutting-down', 'The server is shutting down. Try again in a moment.', {
        retryAfterSeconds: 2,
      })
    }
    const running = this.running(userId)
    if (running < this.#parts.runsPerUser) return
    const message = `Too many concurrent runs (limit ${this.#parts.runsPerUser}). Wait for one to finish, or stop one.`
    throw new Refusal('too-many', message, { retryAfterSeconds: 5 })
  }

  /** Starts the run. A session that is held without a running run is retried: another process checks its runs. */
  async #begin(runId: string, key: SessionKey, input: StartInput): Promise<'begun' | 'known'> {
    await this.#markInterrupted(key)
    for (let attempt = 1; ; attempt++) {
      // No await between the check and the start: concurrent requests would all pass the check.
      this.#checkAdmission(input.userId)
      const run = this.#launch(runId, key, input)
      try {
        await this.#untilBegun(run, input.whenBusy)
        return 'begun'
      } catch (error) {
        if (await this.#isKnown(runId, key)) return 'known'
        const isBusy = error instanceof AgentError && error.code === 'session-busy'
        const isFinal = !isBusy || attempt > BUSY_RETRIES || (await this.#hasRunningRun(key))
        if (isFinal) throw asInvalidModel(input, error)
        await sleep(BUSY_PAUSE_MS)
      }
    }
  }

  #launch(runId: string, key: SessionKey, input: StartInput): LocalRun {
    const { runtime, logger, metrics } = this.#parts
    const run = new LocalRun({ runtime, runId, key, input, logger })
    this.#local.set(runId, run)
    void run.over.then(() => {
      if (this.#local.get(runId) === run) this.#local.delete(runId)
      const reason = run.feed.finishReason ?? (run.hasBegun ? 'error' : undefined)
      if (reason !== undefined) metrics.runFinished(reason)
    })
    return run
  }

  async #untilBegun(run: LocalRun, whenBusy: RunInput['whenBusy']): Promise<void> {
    if (whenBusy !== 'queue') return this.#removeOnFailure(run, run.begun)
    const begun = orTimeout(run.begun, QUEUE_ANSWER_MS)
    if ((await this.#removeOnFailure(run, begun)) === 'timeout') run.detach()
  }

  /** A run that failed to begin is removed before the error is reported. */
  async #removeOnFailure<T>(run: LocalRun, begun: Promise<T>): Promise<T> {
    try {
      return await begun
    } catch (error) {
      if (this.#local.get(run.feed.runId) === run) this.#local.delete(run.feed.runId)
      throw error
    }
  }

  async #hasRunningRun(key: SessionKey): Promise<boolean> {
    const [newest] = await this.#parts.runtime.store.runs.listRuns(key, { limit: 1 })
    const isLocal = [...this.#local.values()].some(({ feed }) => isSameKey(feed.key, key))
    return isLocal || (newest !== undefined && !newest.finished)
  }

  async #markInterrupted(key: SessionKey): Promise<void> {
    const { runs } = this.#parts.runtime.store
    // Runs of a session are sequential: when the newest has ended, so have the others.
    const [newest] = await runs.listRuns(key, { limit: 1 })
    if (!newest || newest.finished) return
    for (const run of await runs.listRuns(key, { limit: CHECKED_RUNS })) await this.#checkLife(run)
  }

  /** The current state of a run: one whose process is gone is marked as interrupted first. */
  async #checkLife(run: RunSummary): Promise<RunSummary> {
    if (run.finished || this.#local.has(run.runId)) return run
    const { runtime, logger } = this.#parts
    try {
      if (!(await markIfInterrupted(runtime.store, run))) return run
      logger.warn('A run was marked as interrupted: its process is gone', { runId: run.runId, ...run.key })
      return (await runtime.store.runs.findRun(run.runId)) ?? run
    } catch (error) {
      logger.warn('The state of a run could not be checked', { runId: run.runId, error: messageOf(error) })
      return run
    }
  }

  /** The feed of a running run; `undefined` for one whose events are all in the store. */
  async #feedOf(runId: string): Promise<RunFeed | undefined> {
    const known = this.#knownFeed(runId)
    if (known) return known
    const run = await this.#parts.runtime.store.runs.findRun(runId)
    // A run that is queued here may have begun in another process that received the same request.
    const queued = this.#local.get(runId)?.feed
    if (!run && queued) return queued
    if (!run) throw notFound('such run')
    if (run.finished || this.#closing) return undefined
    // Checked again: another follower may have created the feed during the await.
    return this.#knownFeed(runId) ?? this.#watch(run)
  }

  #knownFeed(runId: string): RunFeed | undefined {
    const local = this.#local.get(runId)
    return local?.hasBegun ? local.feed : this.#watched.get(runId)?.run.feed
  }

  #watch(run: RunSummary): RunFeed {
    const { runtime, logger } = this.#parts
    const watched = new WatchedRun(runtime.store, run, logger)
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

  #key(userId: string, sessionId: string): SessionKey {
    return { appName: this.#parts.appName, userId, sessionId }
  }
}

/** A run that waits longer than this for its session is answered with 202 before it begins. */
const QUEUE_ANSWER_MS = 250
/** A process that checks the runs of a session holds its lease for a moment; a new run waits for that. */
const BUSY_RETRIES = 5
const BUSY_PAUSE_MS = 60
/** The newest runs of a session that are checked before a new one starts. */
const CHECKED_RUNS = 20
const STOP_MS = 3000

/** A model that is not configured is an invalid argument when the caller named it. */
function asInvalidModel({ model }: RunInput, error: unknown): unknown {
  const isOfModel = model !== undefined && error instanceof AgentError && error.code === 'invalid-config'
  return isOfModel ? new AgentError('invalid-argument', error.message, { cause: error }) : error
}

function checkSameSession(runId: string, known: SessionKey, key: SessionKey): void {
  if (isSameKey(known, key)) return
  throw new AgentError(
    'invalid-argument',
    `Run "${runId}" already exists in another session. Use a new UUID.`,
  )
}

function isSameKey(one: SessionKey, other: SessionKey): boolean {
  return one.appName === other.appName && one.userId === other.userId && one.sessionId === other.sessionId
}

/** Whether a call of the run waits for approval: it was requested, and neither answered nor ended with the run. */
async function hasOpenRequest(runs: RunStore, runId: string, callId: string): Promise<boolean> {
  let isOpen = false
  for await (const event of storedEvents(runs, runId)) {
    if (event.type === 'approval-request' && event.id === callId) isOpen = true
    if (event.type === 'approval-answer' && event.id === callId) isOpen = false
    if (event.type === 'run-finish') return false
  }
  return isOpen
}

/** A stored run as clients see it. */
function toRunItem(run: RunSummary): RunItem {
  return {
    runId: run.runId,
    sessionId: run.key.sessionId,
    startedAt: run.startedAt,
    ...defined({ afterSeq: run.afterSeq }),
    lastSeq: run.lastSeq,
    status: run.finished ? 'finished' : 'running',
    ...defined({ finishReason: run.finishReason }),
  }
}

/** A queued run, which is not in the store yet. */
function queuedItem(feed: RunFeed): RunItem {
  return {
    runId: feed.runId,
    sessionId: feed.key.sessionId,
    startedAt: feed.startedAt,
    lastSeq: 0,
    status: 'running',
  }
}
