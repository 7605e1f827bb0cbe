import { toJsonData } from '../base/json.js'
import { AgentError, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { SessionKey } from '../session/message.js'
import type { RunEventRecord, RunStore, SessionStore } from '../session/session-store.js'
import type { RunEvent, RunEventBody, SentRequest } from './run-event.js'

const BATCH_MS = 50
const BATCH_EVENTS = 64

/** Events that a store refuses are kept and retried; beyond this number the oldest are dropped. Every failed write is logged. */
const MAXIMUM_WAITING = 10_000

export interface RecorderParts {
  runs: RunStore
  key: SessionKey
  runId: string
  logger: Logger
  /** Called with every event as it happens. */
  observe?: (event: RunEvent) => void
  /** Called with events once they are stored, in order, as they were stored. */
  onStored?: ((events: readonly RunEvent[]) => void) | undefined
}

/**
 * Numbers the events of one run and keeps them in the store. Deltas are stored in batches, at the latest after
 * 50 ms; every other event is stored before it is handed out. A store that fails here does not fail the run:
 * the messages are what must not be lost, and they have their own writes.
 */
export class RunRecorder {
  readonly runId: string
  readonly #runs: RunStore
  readonly #key: SessionKey
  readonly #logger: Logger
  readonly #observe: (event: RunEvent) => void
  readonly #onStored: (events: readonly RunEvent[]) => void
  readonly #clock = new ToolClock()
  #seq = 0
  #step = 0
  #batch: RunEvent[] = []
  #batchStarted = 0
  #timer: NodeJS.Timeout | undefined
  #flushing: Promise<void> = Promise.resolve()
  readonly #saving = new Set<Promise<void>>()

  constructor({ runs, key, runId, logger, observe, onStored }: RecorderParts) {
    this.#runs = runs
    this.#key = key
    this.runId = runId
    this.#logger = logger
    this.#observe = observe ?? (() => {})
    this.#onStored = onStored ?? (() => {})
  }

  /** Gives an event its number and stores it, at once or with the next batch. */
  async record(body: RunEventBody): Promise<RunEvent> {
    this.#seq += 1
    const event: RunEvent = {
      ...this.#clock.timed(body),
      sessionId: this.#key.sessionId,
      runId: this.runId,
      seq: this.#seq,
    }
    this.#guard(() => this.#observe(event))
    if (this.#batch.length === 0) this.#batchStarted = Date.now()
    this.#batch.push(event)
    // Flushed by a timer too: when a model pauses, followers of the run still get the last delta.
    this.#timer ??= setTimeout(() => void this.flush(), BATCH_MS).unref()
    const isDelta = body.type === 'text-delta' || body.type === 'reasoning-delta'
    const isFull = this.#batch.length >= BATCH_EVENTS || Date.now() - this.#batchStarted >= BATCH_MS
    if (!isDelta || isFull) await this.flush()
    return event
  }

  /** A listener that fails does not fail the run. */
  #guard(notify: () => void): void {
    try {
      notify()
    } catch (error) {
      this.#logger.warn('A listener of a run failed', { runId: this.runId, error: messageOf(error) })
    }
  }

  /** Stores the request of one model step and returns its number. The end of the run waits for the write; the model call does not. */
  saveRequest(request: SentRequest): number {
    this.#step += 1
    const step = this.#step
    const saved = this.#guarded('request', () =>
      this.#runs.saveRequest(this.runId, step, toJsonData(request) as Record<string, unknown>),
    ).then(() => {})
    this.#saving.add(saved)
    void saved.then(() => this.#saving.delete(saved))
    return step
  }

  /** Resolves when every request has been stored. */
  async settled(): Promise<void> {
    await Promise.all(this.#saving)
  }

  /** Stores the batch. One write at a time, so that `onStored` is called in order. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#writeBatch())
    return this.#flushing
  }

  async #writeBatch(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const events = this.#batch
    this.#batch = []
    if (events.length === 0) return
    // Converted to JSON data, so that stored events equal those that a client in another process receives.
    const records = toJsonData(events) as RunEventRecord[]
    const isStored = await this.#guarded('events', () =>
      this.#runs.appendEvents(this.#key, this.runId, records),
    )
    if (isStored) {
      this.#guard(() => this.#onStored(records as unknown as RunEvent[]))
    } else this.#batch = [...events, ...this.#batch].slice(-MAXIMUM_WAITING)
  }

  async #guarded(what: string, write: () => Promise<void>): Promise<boolean> {
    try {
      await write()
      return true
    } catch (error) {
      this.#logger.warn(`The ${what} of a run could not be stored`, {
        runId: this.runId,
        error: messageOf(error),
      })
      return false
    }
  }
}

/** How long tools took: from call to result, without the wait for a person's approval. */
export class ToolClock {
  readonly #started = new Map<string, number>()
  readonly #asked = new Map<string, number>()

  readonly #now: () => number

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** The event, with the time that its tool took where it is a result. */
  timed(body: RunEventBody): RunEventBody {
    switch (body.type) {
      case 'tool-call':
        this.#started.set(body.id, this.#now())
        return body
      case 'approval-request':
        this.#asked.set(body.id, this.#now())
        return body
      case 'approval-answer': {
        const [started, asked] = [this.#started.get(body.id), this.#asked.get(body.id)]
        if (started !== undefined && asked !== undefined)
          this.#started.set(body.id, started + this.#now() - asked)
        return body
      }
      case 'tool-result': {
        const started = this.#started.get(body.id)
        if (started === undefined) return body
        this.#started.delete(body.id)
        return { ...body, durationMs: Math.max(0, Math.round(this.#now() - started)) }
      }
      case 'run-start':
      case 'text-delta':
      case 'reasoning-delta':
      case 'agent-transfer':
      case 'turn-warning':
      case 'wrap-up':
      case 'repair':
      case 'history-cut':
      case 'usage':
      case 'error':
      case 'run-finish':
        return body
    }
  }
}

/** Events that arise outside the main loop, such as a repair reported while a model call is under way. */
export class Outbox<T> {
  #items: T[] = []
  #wake: () => void = () => {}

  put(item: T): void {
    this.#items.push(item)
    this.#wake()
  }

  /** Resolves `ready` although there is nothing to take. */
  wakeUp(): void {
    this.#wake()
  }

  /** Takes everything that has arrived. */
  take(): T[] {
    const taken = this.#items
    this.#items = []
    return taken
  }

  /** Resolves as soon as there is something to take. */
  ready(): Promise<void> {
    if (this.#items.length > 0) return Promise.resolve()
    return new Promise(resolve => {
      this.#wake = resolve
    })
  }
}

/**
 * A store whose writes can be closed. When a run is stopped, a tool that ignores its signal may still finish, and
 * ADK would store its late result; after `seal` further writes fail, and writes under way have completed.
 */
export interface AppendGate {
  readonly store: SessionStore
  /** Whether anything of the run has reached the store. */
  readonly hasAppended: boolean
  seal(): Promise<void>
}

export function gateAppends(store: SessionStore): AppendGate {
  const underWay = new Set<Promise<unknown>>()
  let sealed = false
  let hasAppended = false
  const pass = async <T>(write: () => Promise<T>): Promise<T> => {
    if (sealed) throw new AgentError('aborted', 'The run has ended: it cannot write to the store any more.')
    const writing = write()
    underWay.add(writing)
    try {
      return await writing
    } finally {
      underWay.delete(writing)
    }
  }
  return {
    store: {
      createSession: (key, state, options) => pass(() => store.createSession(key, state, options)),
      loadSession: (key, options) => store.loadSession(key, options),
      readMessages: (key, options) => store.readMessages(key, options),
      appendMessage: (key, message, options) =>
        pass(async () => {
          const place = await store.appendMessage(key, message, options)
          hasAppended = true
          return place
        }),
      updateState: (key, delta, options) => pass(() => store.updateState(key, delta, options)),
      forkSession: (key, newSessionId, options) => store.forkSession(key, newSessionId, options),
      describeSession: key => store.describeSession(key),
      renameSession: (key, title) => store.renameSession(key, title),
      listSessions: query => store.listSessions(query),
      deleteSession: key => store.deleteSession(key),
      acquireLease: (key, options) => store.acquireLease(key, options),
      runs: store.runs,
      calibration: store.calibration,
      close: () => store.close(),
    },
    get hasAppended() {
      return hasAppended
    },
    async seal() {
      sealed = true
      await Promise.allSettled(underWay)
    },
  }
}
