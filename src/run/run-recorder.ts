import { toJsonData } from '../base/json.js'
import { messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { SessionKey } from '../session/message.js'
import type { RunEventRecord, RunStore } from '../session/session-store.js'
import type { RunEvent, RunEventBody } from './run-event.js'
import type { SentRequest } from './run-scope.js'

const BATCH_MS = 50
const BATCH_EVENTS = 64

/** Events that a store refuses are kept and tried again; a run that fills this much memory lets the oldest go. */
const MAXIMUM_WAITING = 10_000

export interface RecorderParts {
  runs: RunStore
  key: SessionKey
  runId: string
  logger: Logger
  /** Hears every event as it happens. */
  observe?: (event: RunEvent) => void
  /** Hears events once they are stored, in order, as they were stored. */
  onStored?: ((events: readonly RunEvent[]) => void) | undefined
}

/**
 * Numbers the events of one run and keeps them in the store. Deltas are stored in batches, at the latest after
 * 50 ms; every other event is stored before it is handed out. A store that fails here does not fail the run:
 * the messages are what must not be lost, and they have their own writes.
 */
export class RunRecorder {
  readonly runId: string
  private readonly runs: RunStore
  private readonly key: SessionKey
  private readonly logger: Logger
  private readonly observe: (event: RunEvent) => void
  private readonly onStored: (events: readonly RunEvent[]) => void
  private readonly clock = new ToolClock()
  private seq = 0
  private step = 0
  private batch: RunEvent[] = []
  private batchStarted = 0
  private timer: NodeJS.Timeout | undefined
  private flushing: Promise<void> = Promise.resolve()
  private readonly saving = new Set<Promise<void>>()

  constructor({ runs, key, runId, logger, observe, onStored }: RecorderParts) {
    this.runs = runs
    this.key = key
    this.runId = runId
    this.logger = logger
    this.observe = observe ?? (() => {})
    this.onStored = onStored ?? (() => {})
  }

  /** Gives an event its number and stores it, at once or with the next batch. */
  async record(body: RunEventBody): Promise<RunEvent> {
    this.seq += 1
    const event: RunEvent = {
      ...this.clock.timed(body),
      sessionId: this.key.sessionId,
      runId: this.runId,
      seq: this.seq,
    }
    this.guard(() => this.observe(event))
    if (this.batch.length === 0) this.batchStarted = Date.now()
    this.batch.push(event)
    // A model that falls silent in mid-sentence must not keep the last words from whoever follows the run.
    this.timer ??= setTimeout(() => void this.flush(), BATCH_MS).unref()
    const isDelta = body.type === 'text-delta' || body.type === 'reasoning-delta'
    const isFull = this.batch.length >= BATCH_EVENTS || Date.now() - this.batchStarted >= BATCH_MS
    if (!isDelta || isFull) await this.flush()
    return event
  }

  /** A listener that fails does not fail the run. */
  private guard(tell: () => void): void {
    try {
      tell()
    } catch (error) {
      this.logger.warn('A listener of a run failed', { runId: this.runId, error: messageOf(error) })
    }
  }

  /** Keeps the request of one model step and returns its number. The model call does not wait for it; the end of the run does. */
  saveRequest(request: SentRequest): number {
    this.step += 1
    const step = this.step
    const saved = this.guarded('request', () =>
      this.runs.saveRequest(this.runId, step, toJsonData(request) as Record<string, unknown>),
    ).then(() => {})
    this.saving.add(saved)
    void saved.then(() => this.saving.delete(saved))
    return step
  }

  /** Resolves when every request has been stored. */
  async settled(): Promise<void> {
    await Promise.all(this.saving)
  }

  /** Stores what waits. One write at a time, so that whoever hears of stored events hears them in order. */
  flush(): Promise<void> {
    this.flushing = this.flushing.then(() => this.writeBatch())
    return this.flushing
  }

  private async writeBatch(): Promise<void> {
    clearTimeout(this.timer)
    this.timer = undefined
    const events = this.batch
    this.batch = []
    if (events.length === 0) return
    // Through JSON, so that what is stored is what a client in another process would be sent.
    const records = toJsonData(events) as RunEventRecord[]
    const isStored = await this.guarded('events', () => this.runs.appendEvents(this.key, this.runId, records))
    if (isStored) {
      this.guard(() => this.onStored(records as unknown as RunEvent[]))
    } else this.batch = [...events, ...this.batch].slice(-MAXIMUM_WAITING)
  }

  private async guarded(what: string, write: () => Promise<void>): Promise<boolean> {
    try {
      await write()
      return true
    } catch (error) {
      this.logger.warn(`The ${what} of a run could not be stored`, {
        runId: this.runId,
        error: messageOf(error),
      })
      return false
    }
  }
}

/** How long tools took: from call to result, without the time that a person took to allow the call. */
export class ToolClock {
  private readonly started = new Map<string, number>()
  private readonly asked = new Map<string, number>()

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** The event, with the time that its tool took where it is a result. */
  timed(body: RunEventBody): RunEventBody {
    switch (body.type) {
      case 'tool-call':
        this.started.set(body.id, this.now())
        return body
      case 'approval-request':
        this.asked.set(body.id, this.now())
        return body
      case 'approval-answer': {
        const [started, asked] = [this.started.get(body.id), this.asked.get(body.id)]
        if (started !== undefined && asked !== undefined)
          this.started.set(body.id, started + this.now() - asked)
        return body
      }
      case 'tool-result': {
        const started = this.started.get(body.id)
        if (started === undefined) return body
        this.started.delete(body.id)
        return { ...body, durationMs: Math.max(0, Math.round(this.now() - started)) }
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

/** Events that arise beside the main loop, such as a repair reported while a model call is under way. */
export class Outbox<T> {
  private items: T[] = []
  private wake: () => void = () => {}

  put(item: T): void {
    this.items.push(item)
    this.wake()
  }

  /** Lets whoever waits look around, although nothing has come. */
  wakeUp(): void {
    this.wake()
  }

  /** Takes everything that has arrived. */
  take(): T[] {
    const taken = this.items
    this.items = []
    return taken
  }

  /** Resolves as soon as there is something to take. */
  ready(): Promise<void> {
    if (this.items.length > 0) return Promise.resolve()
    return new Promise(resolve => {
      this.wake = resolve
    })
  }
}
