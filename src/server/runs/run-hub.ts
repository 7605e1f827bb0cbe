import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { AgentError, messageOf } from '../../errors.js'
import type { Logger } from '../../logger.js'
import type { RunEvent } from '../../run/run-event.js'
import type { RunInput, Runtime } from '../../runtime/runtime.js'
import type { SessionKey } from '../../session/message.js'
import { runEventPages } from '../../session/session-pages.js'
import type { RunStore, RunSummary } from '../../session/session-store.js'
import type { RunItem, StartedRun } from '../chat-protocol.js'
import type { Metrics } from '../metrics.js'
import { notFound, Refusal } from '../refusal.js'
import type { RunHub } from '../server-context.js'
import type { EventBatch } from './event-batch.js'
import { markIfInterrupted } from './interrupted-runs.js'
import { LocalRun, WatchedRun } from './live-runs.js'
import { followRun, type RunFeed } from './run-feed.js'

export interface HubParts {
  runtime: Runtime
  appName: string
  logger: Logger
  metrics: Metrics
  /** Runs of one user that may go on here at the same time. */
  runsPerUser: number
}

/** The hub of one server process. */
export function createRunHub(parts: HubParts): RunHub {
  return new Hub(parts)
}

/** A run that waits longer than this for its session is answered before it begins. */
const PATIENCE_MS = 250
/** Somebody who looks after a dead run holds its session for a moment; that is no reason to refuse a new one. */
const BUSY_RETRIES = 5
const BUSY_PAUSE_MS = 60
/** How many of a session's newest runs are looked at for dead ones. */
const LOOKED_AFTER = 20

type StartInput = RunInput & { userId: string }

class Hub implements RunHub {
  readonly #parts: HubParts
  readonly #local = new Map<string, LocalRun>()
  readonly #starting = new Map<string, { key: SessionKey; started: Promise<StartedRun> }>()
  readonly #watched = new Map<string, { run: WatchedRun; stop: AbortController }>()
  readonly #followers = new Set<AbortController>()
  #closing = false

  constructor(parts: HubParts) {
    this.#parts = parts
  }

  async start(input: StartInput): Promise<StartedRun> {
    const key = this.#key(input.userId, input.sessionId ?? randomUUID())
    const runId = (input.runId ?? randomUUID()).toLowerCase()
    // The same request may come twice at once: the second hears what becomes of the first.
    const earlier = this.#starting.get(runId)
    if (earlier) {
      checkSameSession(earlier.key, key)
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

  async *follow(
    runId: string,
    options: { after?: number; signal?: AbortSignal } = {},
  ): AsyncGenerator<RunEvent, void, undefined> {
    for await (const batch of this.followBatches(runId, options)) yield* batch.events
  }

  async *followBatches(
    runId: string,
    options: { after?: number; signal?: AbortSignal } = {},
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

  async stop(runId: string): Promise<void> {
    const { runs } = this.#parts.runtime.store
    const local = this.#local.get(runId)
    local?.stop()
    if (local?.hasBegun) return
    // The same request may wait here and have begun in another process.
    const isElsewhere = !local || (await runs.findRun(runId))?.finished === false
    if (isElsewhere) await runs.sendSignal(runId, { type: 'stop' })
  }

  async approve(runId: string, callId: string, answer: 'once' | 'always' | 'no'): Promise<void> {
    if (this.#local.get(runId)?.answer(callId, answer)) return
    const { runs } = this.#parts.runtime.store
    if (!(await hasOpenRequest(runs, runId, callId))) throw notFound('tool call that waits for this answer')
    await runs.sendSignal(runId, { type: 'approval', callId, answer })
  }

  async find(runId: string): Promise<{ item: RunItem; key: SessionKey } | undefined> {
    const { store } = this.#parts.runtime
    const found = await store.runs.findRun(runId)
    const local = this.#local.get(runId)
    if (!found) return local && { item: waitingItem(local.feed), key: local.feed.key }
    return { item: toRunItem(await this.#lookAfter(found)), key: found.key }
  }

  async list(key: SessionKey, limit = 50): Promise<RunItem[]> {
    const runs = await this.#parts.runtime.store.runs.listRuns(key, { limit })
    const items: RunItem[] = []
    for (const run of runs) items.push(toRunItem(await this.#lookAfter(run)))
    const known = new Set(runs.map(({ runId }) => runId))
    const waiting = [...this.#local.values()].filter(
      ({ feed }) => isSameKey(feed.key, key) && !known.has(feed.runId),
    )
    return [...waiting.map(({ feed }) => waitingItem(feed)), ...items].slice(0, limit)
  }

  runningSessions(appName: string, userId: string): ReadonlySet<string> {
    const near = [...this.#local.values()].map(({ feed }) => feed)
    const far = [...this.#watched.values()].map(({ run }) => run.feed)
    const own = [...near, ...far].filter(
      ({ key, ended }) => !ended && key.appName === appName && key.userId === userId,
    )
    return new Set(own.map(({ key }) => key.sessionId))
  }

  running(userId?: string): number {
    const runs = [...this.#local.values()]
    return userId === undefined ? runs.length : runs.filter(({ feed }) => feed.key.userId === userId).length
  }

  async close(graceMs: number): Promise<void> {
    this.#closing = true
    for (const { stop } of this.#watched.values()) stop.abort()
    for (const { run } of this.#watched.values()) run.feed.end()
    const over = Promise.all([...this.#local.values()].map(({ over }) => over))
    await Promise.race([over, sleep(graceMs, undefined, { ref: false })])
    const message = 'The server was shut down while this run went on. Send a message to go on.'
    for (const run of this.#local.values())
      run.stop(new AgentError('run-interrupted', message, { retryable: true }))
    // Stopping is quick unless the store is gone; then the lease expires by itself.
    await Promise.race([over, sleep(STOP_MS, undefined, { ref: false })])
    for (const follower of this.#followers) follower.abort()
  }

  async #startOnce(runId: string, key: SessionKey, input: StartInput): Promise<StartedRun> {
    const isNew = !(await this.#isKnown(runId, key)) && (await this.#begin(runId, key, input)) === 'begun'
    if (isNew) this.#parts.metrics.runStarted()
    return { runId, sessionId: key.sessionId }
  }

  /** The same request sent twice is one run. */
  async #isKnown(runId: string, key: SessionKey): Promise<boolean> {
    const known = this.#local.get(runId)?.feed ?? (await this.#parts.runtime.store.runs.findRun(runId))
    if (known) checkSameSession(known.key, key)
    return known !== undefined
  }

  #checkRoom(userId: string): void {
    if (this.#closing) {
      throw new Refusal('shutting-down', 'The server is shutting down. Try again in a moment.', {
        retryAfterSeconds: 2,
      })
    }
    const running = this.running(userId)
    if (running < this.#parts.runsPerUser) return
    const message = `${running} runs go on already, and no more are allowed. Wait for one to finish, or stop one.`
    throw new Refusal('too-many', message, { retryAfterSeconds: 5 })
  }

  /** Starts the run. While the session is only being looked after, it tries again. */
  async #begin(runId: string, key: SessionKey, input: StartInput): Promise<'begun' | 'known'> {
    await this.#lookAfterSession(key)
    for (let attempt = 1; ; attempt++) {
      // Nothing may come between the count and the start, or many who ask at once would all find room.
      this.#checkRoom(input.userId)
      const run = this.#launch(runId, key, input)
      try {
        await this.#untilBegun(run, input.whenBusy)
        return 'begun'
      } catch (error) {
        if (await this.#isKnown(runId, key)) return 'known'
        const isBusy = error instanceof AgentError && error.code === 'session-busy'
        const isHopeless = !isBusy || attempt > BUSY_RETRIES || (await this.#hasRunningRun(key))
        if (isHopeless) throw asMistakeOf(input, error)
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
    if (whenBusy !== 'queue') return this.#failed(run, run.begun)
    const patience = new AbortController()
    const waited = sleep(PATIENCE_MS, 'waits' as const, { signal: patience.signal, ref: false }).catch(
      () => {},
    )
    try {
      if ((await this.#failed(run, Promise.race([run.begun, waited]))) === 'waits') run.letGo()
    } finally {
      patience.abort()
    }
  }

  /** A run that failed to begin is forgotten before anybody hears of it. */
  async #failed<T>(run: LocalRun, begun: Promise<T>): Promise<T> {
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

  async #lookAfterSession(key: SessionKey): Promise<void> {
    const runs = await this.#parts.runtime.store.runs.listRuns(key, { limit: LOOKED_AFTER })
    for (const run of runs) await this.#lookAfter(run)
  }

  /** The run as it is now: one whose process died is marked first. */
  async #lookAfter(run: RunSummary): Promise<RunSummary> {
    if (run.finished || this.#local.has(run.runId)) return run
    const { runtime, logger } = this.#parts
    try {
      if (!(await markIfInterrupted(runtime.store, run))) return run
      logger.warn('A run was interrupted: its process is gone', { runId: run.runId, ...run.key })
      return (await runtime.store.runs.findRun(run.runId)) ?? run
    } catch (error) {
      logger.warn('A run could not be looked after', { runId: run.runId, error: messageOf(error) })
      return run
    }
  }

  /** The feed of a run that goes on; `undefined` for one whose events are all in the store. */
  async #feedOf(runId: string): Promise<RunFeed | undefined> {
    const near = this.#nearFeed(runId)
    if (near) return near
    const run = await this.#parts.runtime.store.runs.findRun(runId)
    // A run that waits here may have begun in another process, which was sent the same request: the store knows.
    const waiting = this.#local.get(runId)?.feed
    if (!run && waiting) return waiting
    if (!run) throw notFound('such run')
    if (run.finished || this.#closing) return undefined
    // Two may come at once; the second takes what the first has made.
    return this.#nearFeed(runId) ?? this.#watch(run)
  }

  #nearFeed(runId: string): RunFeed | undefined {
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

  /** A signal of its own for each follower: many listeners on one that outlives them all would be a leak. */
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

const STOP_MS = 3000

/** A model that the server was not set up for is its caller's mistake, when the caller named it. */
function asMistakeOf({ model }: RunInput, error: unknown): unknown {
  const isOfModel = model !== undefined && error instanceof AgentError && error.code === 'invalid-config'
  return isOfModel ? new AgentError('invalid-argument', error.message, { cause: error }) : error
}

function checkSameSession(known: SessionKey, key: SessionKey): void {
  if (isSameKey(known, key)) return
  throw new AgentError('invalid-argument', 'There is a run with this id already. Take a new UUID.')
}

function isSameKey(one: SessionKey, other: SessionKey): boolean {
  return one.appName === other.appName && one.userId === other.userId && one.sessionId === other.sessionId
}

/** Whether a call of the run waits for somebody's word: it was asked for, and neither answered nor over. */
async function hasOpenRequest(runs: RunStore, runId: string, callId: string): Promise<boolean> {
  let open = false
  for await (const events of runEventPages(runs, runId)) {
    for (const event of events) {
      if (event.type === 'approval-request' && event.id === callId) open = true
      if (event.type === 'approval-answer' && event.id === callId) open = false
      if (event.type === 'run-finish') return false
    }
  }
  return open
}

/** A stored run as clients see it. */
function toRunItem(run: RunSummary): RunItem {
  return {
    runId: run.runId,
    sessionId: run.key.sessionId,
    startedAt: run.startedAt,
    ...(run.afterSeq === undefined ? {} : { afterSeq: run.afterSeq }),
    lastSeq: run.lastSeq,
    status: run.finished ? 'finished' : 'running',
    ...(run.finishReason === undefined ? {} : { finishReason: run.finishReason }),
  }
}

/** A run that waits for its turn: the store does not know it yet. */
function waitingItem(feed: RunFeed): RunItem {
  return {
    runId: feed.runId,
    sessionId: feed.key.sessionId,
    startedAt: feed.startedAt,
    lastSeq: 0,
    status: 'running',
  }
}
