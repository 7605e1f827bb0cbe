/** Runs that have not ended: those of this process, and those of other processes as the store shows them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { AgentError, messageOf } from '../../errors.js'
import type { Logger } from '../../logger.js'
import type { RunEvent, RunEventBody } from '../../run/run-event.js'
import type { RunInput, Runtime } from '../../runtime/runtime.js'
import type { SessionKey } from '../../session/message.js'
import type { RunEventRecord, RunSummary, SessionStore } from '../../session/session-store.js'
import { emptyUsage } from '../../session/usage.js'
import { markIfInterrupted } from './interrupted-runs.js'
import { RunFeed } from './run-feed.js'

type Answer = 'once' | 'always' | 'no'

interface LocalRunParts {
  runtime: Runtime
  runId: string
  key: SessionKey
  input: RunInput
  logger: Logger
}

/** A run that goes on in this process, whoever watches. */
export class LocalRun {
  readonly feed: RunFeed
  /** Resolves once the first event is stored; rejects with what kept the run from beginning. */
  readonly begun: Promise<void>
  /** Resolves when nothing of the run goes on. Never rejects. */
  readonly over: Promise<void>
  readonly #parts: LocalRunParts
  readonly #abort = new AbortController()
  readonly #asked = new Map<string, (answer: Answer) => void>()
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

  /** Nobody waits for `begun` any more: should the run fail to begin, its events have to say so. */
  letGo(): void {
    this.#isAwaited = false
  }

  stop(reason?: AgentError): void {
    this.#abort.abort(reason)
  }

  /** Answers a request of this process; `false` when nobody asked. */
  answer(callId: string, answer: Answer): boolean {
    const tell = this.#asked.get(callId)
    this.#asked.delete(callId)
    tell?.(answer)
    return tell !== undefined
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
      // What an answer from elsewhere has settled is not waited for here any more.
      if (event.type === 'approval-answer') this.#asked.delete(event.id)
    }
  }

  #stored(events: readonly RunEvent[]): void {
    this.#hasBegun = true
    this.feed.add(events)
    this.#begin()
  }

  /** A run that waited in vain ends as a run: with events that tell why, for those who were promised one. */
  async #neverBegan(error: unknown): Promise<void> {
    const { key, runId, logger, runtime } = this.#parts
    if (this.#hasBegun) logger.error('A run failed outside its events', { runId, error: messageOf(error) })
    if (this.#hasBegun || this.#isAwaited) return
    const events = failedStart(key, runId, error)
    try {
      // Another process was sent the same request and was first: the run's events are its own.
      if (await runtime.store.runs.findRun(runId)) return
      await runtime.store.runs.appendEvents(key, runId, events as unknown as RunEventRecord[])
    } catch (failure) {
      logger.warn('The end of a run could not be stored', { runId, error: messageOf(failure) })
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
