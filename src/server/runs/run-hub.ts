import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { defined } from '../../base/defined.js'
import { AgentError } from '../../errors.js'
import { isDelta, isWithin, joinDeltas } from '../../run/event-numbers.js'
import { OpenQuestions, type RunQuestion } from '../../run/open-questions.js'
import type { RunEvent } from '../../run/run-event.js'
import type { RunInput, Runtime } from '../../runtime/runtime.js'
import type { SessionKey } from '../../session/message.js'
import type { RunSummary } from '../../session/run-store.js'
import { runEventPages } from '../../session/session-pages.js'
import type { RunAnswer } from '../../tool.js'
import type { RunItem, StartedRun } from '../chat-protocol.js'
import type { Metrics } from '../metrics.js'
import { handedOver, Refusal } from '../refusal.js'
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
  /** For protocols that cannot take back text: without the half answers that a restart had made void by now. */
  withoutVoid?: boolean
  /** Ends also when the run waits for a person. */
  untilWaiting?: boolean
}

/**
 * The runs of a server: limits for each user, metrics, and what clients see of them. A run that was accepted continues
 * when its followers disconnect, and can be followed from any event number and from any process.
 */
export class RunHub {
  readonly #parts: HubParts
  readonly #starting = new Map<string, number>()
  readonly #stopCounting: () => void
  readonly #followers = new Set<AbortController>()
  #closing = false

  constructor(parts: HubParts) {
    this.#parts = parts
    const { runtime, metrics } = parts
    this.#stopCounting = runtime.observe(
      event => this.#count(event),
      call => metrics.modelCalled(call),
    )
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

  /** The events after number `after`: stored ones, then live ones as they come. Ends after `run-finish`. */
  async *follow(runId: string, options: FollowOptions = {}): AsyncGenerator<RunEvent, void, undefined> {
    for await (const batch of this.followBatches(runId, options)) yield* batch.events
  }

  /**
   * As `follow`, in the batches in which the events were handed out, with their bytes on the wire. Throws when the server
   * closes before the end of the run.
   */
  async *followBatches(
    runId: string,
    { after, signal, withoutVoid, untilWaiting }: FollowOptions = {},
  ): AsyncGenerator<EventBatch, void, undefined> {
    const { runtime } = this.#parts
    const linked = linkedSignal(signal)
    this.#followers.add(linked.own)
    try {
      const voided = withoutVoid ? await this.#voided(runId) : []
      const lists = runtime.followLists(runId, { afterSeq: after, signal: linked.own.signal, untilWaiting })
      let hasEnded = false
      for await (const events of lists) {
        hasEnded = events.at(-1)?.type === 'run-finish'
        const isVoid = (event: RunEvent) => voided.some(range => isWithin(event, range))
        yield toBatch(events.some(isVoid) ? events.filter(event => !isVoid(event)) : events)
      }
      if (!hasEnded && linked.own.signal.aborted && !signal?.aborted) throw handedOver()
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
  approve(runId: string, callId: string, answer: RunAnswer): Promise<void> {
    return this.#parts.runtime.answer(runId, callId, answer)
  }

  /** Continues a run that no process works on. */
  async resume(runId: string): Promise<void> {
    await this.#parts.runtime.resume(runId)
  }

  /** What a run waits for, from its stored events. */
  async questions(runId: string): Promise<RunQuestion[]> {
    const questions = new OpenQuestions()
    for await (const event of this.stored(runId)) questions.add(event)
    return questions.list
  }

  /** The run with what it waits for, if it does. */
  async withQuestions(run: RunItem): Promise<RunItem> {
    return run.status === 'waiting' ? { ...run, waitsFor: await this.questions(run.runId) } : run
  }

  /** The run and its session. */
  async find(runId: string): Promise<{ item: RunItem; key: SessionKey } | undefined> {
    const run = await this.#parts.runtime.findRun(runId)
    return run && { item: toRunItem(run), key: run.key }
  }

  /**
   * The session of a run, and the number of its last event once it has ended. A run that this process executes is not
   * read from the store.
   */
  async placeOf(runId: string): Promise<{ key: SessionKey; endSeq?: number } | undefined> {
    const active = this.#parts.runtime.active().find(run => run.runId === runId)
    if (active) return { key: active.key }
    const run = await this.#parts.runtime.findRun(runId)
    return run && { key: run.key, ...(run.finished ? { endSeq: run.lastSeq } : {}) }
  }

  /** The runs of a session that are not due yet, the next one first. */
  async scheduled(key: SessionKey, limit = 50): Promise<RunItem[]> {
    const { runs } = this.#parts.runtime.store
    const { appName } = key
    return (await runs.listUnfinished({ appName, key, scheduled: 'only', limit })).map(toRunItem)
  }

  /** Those that are due, newest first. */
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

  /** The runs of the app that wait for a person, as the store has them: at most the oldest thousand unfinished ones are read. */
  async waiting(): Promise<RunSummary[]> {
    const { runtime, appName } = this.#parts
    const runs = await runtime.store.runs.listUnfinished({ appName, limit: MOST_UNFINISHED })
    return runs.filter(({ state }) => state === 'waiting')
  }

  /** The number of runs of this process, all or those of one user. */
  running(userId?: string): number {
    const runs = this.#parts.runtime.active()
    return userId === undefined ? runs.length : runs.filter(({ key }) => key.userId === userId).length
  }

  /**
   * Refuses new runs, waits for running ones up to `graceMs`, and ends all followers. Runs that are not over then are left
   * to the runtime, which hands them over when it closes.
   */
  async close(graceMs: number): Promise<void> {
    this.#closing = true
    const deadline = performance.now() + graceMs
    while (this.#isWorking() && performance.now() < deadline) await sleep(CLOSE_POLL_MS)
    for (const follower of this.#followers) follower.abort()
    this.#stopCounting()
  }

  /** Whether this process executes a run that it has accepted. Queued ones are not waited for. */
  #isWorking(): boolean {
    return this.#parts.runtime.active().some(({ loop, isForeign }) => loop !== undefined && !isForeign)
  }

  async #startOnce(input: StartInput & { runId: string }): Promise<StartedRun> {
    const { runtime } = this.#parts
    const { userId, runId } = input
    // A request that is sent again is not refused because of the run that it started.
    const isActive = runtime.active().some(run => run.runId === runId)
    if (!isActive) this.#checkAdmission(userId)
    this.#starting.set(userId, (this.#starting.get(userId) ?? 0) + 1)
    try {
      return await runtime.start(input)
    } finally {
      this.#release(userId)
    }
  }

  #release(userId: string): void {
    const left = (this.#starting.get(userId) ?? 0) - 1
    if (left > 0) this.#starting.set(userId, left)
    else this.#starting.delete(userId)
  }

  #count(event: RunEvent): void {
    const { metrics } = this.#parts
    if (event.type === 'run-start') metrics.runStarted()
    if (event.type === 'run-resumed') void this.#countResumed(event.runId)
    // An answer belongs to a call that was counted when it was asked.
    if (event.type === 'tool-unknown' && event.answer === undefined) metrics.callUnknown()
    if (event.type === 'run-finish' && event.finishReason !== 'waiting')
      metrics.runFinished(event.finishReason)
  }

  /** The model is in the first event of the run, which another process may have stored. */
  async #countResumed(runId: string): Promise<void> {
    const { metrics, runtime } = this.#parts
    const first = await runtime.store.runs.readEvents(runId, { limit: 2 }).catch(() => [])
    const start = first.find(({ type }) => type === 'run-start')
    metrics.runResumed(typeof start?.model === 'string' ? start.model : '')
  }

  /** The events that are stored so far. */
  async *stored(runId: string): AsyncGenerator<RunEvent> {
    const { runs } = this.#parts.runtime.store
    // The recorder of runs wrote them; a store returns what it was given.
    for await (const page of runEventPages(runs, runId)) yield* page as unknown as readonly RunEvent[]
  }

  /** The deltas that are void because their step was restarted, and the restarts. A feed has the same texts in other pieces. */
  async #voided(runId: string): Promise<readonly RunEvent[]> {
    const voided: RunEvent[] = []
    const drafts = new Map<string, RunEvent[]>()
    for await (const event of this.stored(runId)) {
      if (isDelta(event)) drafts.set(event.author, [...(drafts.get(event.author) ?? []), event])
      else if (event.type === 'usage' || event.type === 'tool-call') drafts.delete(event.author)
      else if (event.type === 'step-restart') {
        voided.push(event)
        for (const [author, texts] of drafts) {
          if (event.author !== undefined && author !== event.author) continue
          voided.push(...texts)
          drafts.delete(author)
        }
      }
    }
    return joinDeltas(voided.sort((one, other) => one.seq - other.seq))
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
    return (await runs.listUnfinished({ appName: key.appName, key, limit: 1 })).length > 0
  }
}

/** A process that looks after the runs of a session holds its lease for a moment; a new run waits for that. */
const BUSY_RETRIES = 5
const BUSY_PAUSE_MS = 60
const CLOSE_POLL_MS = 10
const MOST_UNFINISHED = 1000

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
  const { runId, key, startedAt, dueAt, afterSeq, lastSeq, finishReason, state, place } = run
  return {
    runId,
    sessionId: key.sessionId,
    startedAt,
    ...defined({ dueAt, afterSeq }),
    lastSeq,
    status: state,
    ...defined({ finishReason, place }),
  }
}
