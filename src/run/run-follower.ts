/** Runs that have not ended: those of this process, and those of other processes as the store shows them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { AgentError, messageOf } from '../../errors.js'
import type { Logger } from '../../logger.js'
import type { RunEvent, RunEventBody } from '../../run/run-event.js'
import type { RunInput, Runtime } from '../../runtime/runtime.js'
import type { SessionKey } from '../../session/message.js'
import type { RunEventRecord, RunSummary } from '../../session/run-store.js'
import type { SessionStore } from '../../session/session-store.js'
import { emptyUsage } from '../../session/usage.js'
import type { ApprovalAnswer } from '../../tool.js'
import { markIfInterrupted } from './interrupted-runs.js'
import { RunFeed } from './run-feed.js'

interface LocalRunParts {
  runtime: Runtime
  runId: string
  key: SessionKey
  input: RunInput
  logger: Logger
}

/** A run of this process. It does not depend on its followers. */
export class LocalRun {
  readonly feed: RunFeed
  /** Resolves once the first event is stored; rejects with the error of a run that could not begin. */
  readonly begun: Promise<void>
  /** Resolves when the run has ended. Never rejects. */
  readonly over: Promise<void>
  readonly #parts: LocalRunParts
  readonly #abort = new AbortController()
  readonly #asked = new Map<string, (answer: ApprovalAnswer) => void>()
  #hasBegun = false
  #begin: () => void = () => {}
  #isAwaited = true

  constructor(parts: LocalRunParts) {
    this.#parts = parts
    this.feed = new RunFeed(parts.runId, parts.key)
    const first = new Promise<void>(resolve => {
      this.#begin = resolve
    })
    const run = this.#run()
    this.begun = Promise.race([first, run])
    this.begun.catch(() => {})
    this.over = run.catch(error => this.#neverBegan(error)).finally(() => this.feed.end())
  }

  /** Whether an event has been stored. */
  get hasBegun(): boolean {
    return this.#hasBegun
  }

  /** `begun` is no longer awaited: a run that then fails to begin reports it with events. */
  detach(): void {
    this.#isAwaited = false
  }

  stop(reason?: AgentError): void {
    this.#abort.abort(reason)
  }

  /** Answers an approval request of this run; `false` when there is none with that id. */
  answer(callId: string, answer: ApprovalAnswer): boolean {
    const resolve = this.#asked.get(callId)
    this.#asked.delete(callId)
    resolve?.(answer)
    return resolve !== undefined
  }

  async #run(): Promise<void> {
    const { runtime, key, runId, input } = this.#parts
    const events = runtime.run({
      ...input,
      userId: key.userId,
      sessionId: key.sessionId,
      runId,
      signal: this.#abort.signal,
      onApproval: ({ id }) => new Promise(resolve => this.#asked.set(id, resolve)),
      onStored: stored => this.#stored(stored),
    })
    for await (const event of events) {
      // It may have been answered through another process.
      if (event.type === 'approval-answer') this.#asked.delete(event.id)
    }
  }

  #stored(events: readonly RunEvent[]): void {
    this.#hasBegun = true
    this.feed.add(events)
    this.#begin()
  }

  /** The caller of a detached run was answered with its id, so its failure to begin is stored as events. */
  async #neverBegan(error: unknown): Promise<void> {
    const { key, runId, logger, runtime } = this.#parts
    if (this.#hasBegun) logger.error('A run failed outside its events', { runId, error: messageOf(error) })
    if (this.#hasBegun || this.#isAwaited) return
    const events = failedStart(key, runId, error)
    try {
      // Another process received the same request and started the run: its events are the run's.
      if (await runtime.store.runs.findRun(runId)) return
      await runtime.store.runs.appendEvents(key, runId, events as unknown as RunEventRecord[])
    } catch (failure) {
      logger.warn('The failed start of a run could not be stored', { runId, error: messageOf(failure) })
    }
    this.feed.add(events)
  }
}

function failedStart(key: SessionKey, runId: string, error: unknown): RunEvent[] {
  const isStopped = error instanceof AgentError && error.code === 'aborted'
  const known = error instanceof AgentError ? error : new AgentError('internal', messageOf(error))
  const finish: RunEventBody = {
    type: 'run-finish',
    finishReason: isStopped ? 'aborted' : 'error',
    text: '',
    turns: 0,
    delegations: 0,
    usage: emptyUsage(),
  }
  const bodies: RunEventBody[] = isStopped ? [finish] : [{ type: 'error', error: known.toJSON() }, finish]
  return bodies.map((body, index) => ({ ...body, sessionId: key.sessionId, runId, seq: index + 1 }))
}

const SHORTEST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 500
/** How often it is checked that the process of a run without new events still runs. */
const LIFE_CHECK_MS = 2000
const PAGE = 500

/**
 * A run of another process, read from the store. All followers in this process share one reader; it polls less
 * often while there are no new events, and stops when the last follower leaves.
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
      // Retried: to followers a store that is unavailable for a while is a pause.
      this.#logger.warn('The events of a run could not be read', {
        runId: this.#run.runId,
        error: messageOf(error),
      })
      return false
    }
  }

  async #checkLife(): Promise<void> {
    if (Date.now() - this.#lifeCheckedAt < LIFE_CHECK_MS) return
    this.#lifeCheckedAt = Date.now()
    try {
      const run = await this.#store.runs.findRun(this.#run.runId)
      // Deleted with its session, or pruned: no more events follow.
      if (!run || run.lastSeq === 0) this.feed.end()
      else await markIfInterrupted(this.#store, run)
    } catch (error) {
      this.#logger.warn('The state of a run could not be checked', {
        runId: this.#run.runId,
        error: messageOf(error),
      })
    }
  }
}
