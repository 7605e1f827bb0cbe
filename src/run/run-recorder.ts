import { messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import { toJsonData } from '../session/json.js'
import type { SessionKey } from '../session/message.js'
import type { RunEventRecord, RunStore } from '../session/session-store.js'
import type { RunEvent, RunEventBody } from './run-event.js'
import type { SentRequest } from './run-scope.js'

const BATCH_MS = 50
const BATCH_EVENTS = 64

/**
 * Numbers the events of one run and keeps them in the store. Deltas are stored in batches; every other event
 * is stored before it is handed out. A store that fails here does not fail the run: the messages are what
 * must not be lost, and they have their own writes.
 */
export class RunRecorder {
  private seq = 0
  private step = 0
  private batch: RunEvent[] = []
  private batchStarted = 0
  private readonly saving = new Set<Promise<void>>()

  constructor(
    private readonly runs: RunStore,
    private readonly key: SessionKey,
    readonly runId: string,
    private readonly logger: Logger,
    private readonly observe: (event: RunEvent) => void = () => {},
  ) {}

  /** Gives an event its number and stores it, at once or with the next batch. */
  async record(body: RunEventBody): Promise<RunEvent> {
    this.seq += 1
    const event: RunEvent = { ...body, sessionId: this.key.sessionId, runId: this.runId, seq: this.seq }
    this.tell(event)
    if (this.batch.length === 0) this.batchStarted = Date.now()
    this.batch.push(event)
    const isDelta = body.type === 'text-delta' || body.type === 'reasoning-delta'
    const isFull = this.batch.length >= BATCH_EVENTS || Date.now() - this.batchStarted >= BATCH_MS
    if (!isDelta || isFull) await this.flush()
    return event
  }

  /** A listener that fails does not fail the run. */
  private tell(event: RunEvent): void {
    try {
      this.observe(event)
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
    )
    this.saving.add(saved)
    void saved.then(() => this.saving.delete(saved))
    return step
  }

  /** Resolves when every request has been stored. */
  async settled(): Promise<void> {
    await Promise.all(this.saving)
  }

  async flush(): Promise<void> {
    const events = this.batch
    this.batch = []
    if (events.length === 0) return
    // Through JSON, so that what is stored is what a client in another process would be sent.
    const records = toJsonData(events) as RunEventRecord[]
    await this.guarded('events', () => this.runs.appendEvents(this.key, this.runId, records))
  }

  private async guarded(what: string, write: () => Promise<void>): Promise<void> {
    try {
      await write()
    } catch (error) {
      this.logger.warn(`The ${what} of a run could not be stored`, {
        runId: this.runId,
        error: messageOf(error),
      })
    }
  }
}
