import { isDeepStrictEqual } from 'node:util'
import { defined } from '../base/defined.js'
import { toJsonData } from '../base/json.js'
import type { Turns } from '../base/pause.js'
import { AgentError, invariant, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { SessionKey } from '../session/message.js'
import type {
  JournalEntry,
  RunEventRecord,
  RunRequest,
  RunStep,
  SavedStep,
  ToolCallChange,
  ToolCallPlace,
} from '../session/run-store.js'
import type { Lease, Observation, SessionStore } from '../session/session-store.js'
import { isDelta, joinDeltas, numbered } from './event-numbers.js'
import { HandedEvents } from './handed-events.js'
import type { RunEvent, RunEventBody, SentRequest } from './run-event.js'
import { ToolClock } from './run-limits.js'

/** Followers in other processes get deltas after this time: at most five writes a second store deltas alone. */
const DELTA_MS = 200

/** A request waits this long for the answer of the model, so that both are stored in one write. */
const REQUEST_MS = 1000

/** How long a write is repeated while the store is away: as long as a lease lasts that is not renewed. */
const OUTAGE_MS = 10_000
const FIRST_PAUSE_MS = 20
const MOST_PAUSE_MS = 500

/** Events that a store refuses are kept and retried; beyond this number the oldest are dropped. Every failed write is logged. */
const MAXIMUM_WAITING = 10_000

export interface RecorderParts {
  store: SessionStore
  key: SessionKey
  runId: string
  lease: Lease
  logger: Logger
  turns: Turns
  /** Called with every event as it happens. */
  observe?: ((event: RunEvent) => void) | undefined
  /** Called with events once they are stored, in order, as they were stored. */
  onStored?: ((events: readonly RunEvent[]) => void) | undefined
  /** Called with events in order: with a delta at once if everything before it was handed out, with any other once it is stored. */
  handOut?: ((events: readonly RunEvent[]) => void) | undefined
}

/** What a write of the run holds besides the events and requests that wait for it. */
type StepWrite = Pick<
  RunStep,
  'message' | 'stateDelta' | 'calibration' | 'release' | 'calls' | 'at' | 'journal' | 'pause'
>

/** A message that waits for the end of the run. */
interface HeldWrite {
  write: StepWrite
  resolve(saved: SavedStep): void
  reject(error: unknown): void
}

/** Changes of the ledger of tool calls that wait for a write. */
interface WaitingChanges {
  calls: readonly ToolCallChange[]
  resolve(places: readonly ToolCallPlace[]): void
  reject(error: unknown): void
}

/**
 * Numbers the events of one run and stores them with the messages that they report, step by step. A delta is handed out
 * before it is stored, and waits for the next write, joined with its neighbours; every other event is stored before it
 * is handed out, and no event is handed out before an earlier one. A write is repeated while the store is away and the
 * lease cannot be lost. After that a store that fails on events alone does not fail the run: the messages are what must
 * not be lost.
 */
export class RunRecorder {
  readonly runId: string
  readonly #parts: RecorderParts
  readonly #clock = new ToolClock()
  #seq = 0
  #step = 0
  /** Numbered events that no write has yet. */
  #batch: RunEvent[] = []
  /** Deltas up to this number are not joined with later ones: a write has them that may be stored, or waits with them. */
  #closedSeq = 0
  readonly #handed = new HandedEvents(events => this.#notify(this.#parts.handOut, events))
  #requests: RunRequest[] = []
  #observations: Observation[] = []
  #changes: WaitingChanges[] = []
  #held: HeldWrite | undefined
  /** The numbers of its first and last event. */
  #heldFrom = 0
  #heldTo = 0
  #lettingGo: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #requestTimer: NodeJS.Timeout | undefined
  /** The last write, while it is under way. */
  #writing: Promise<unknown> | undefined

  constructor(parts: RecorderParts) {
    this.runId = parts.runId
    this.#parts = parts
  }

  /** Takes the first events of the run, or of this attempt: they have their numbers and are stored. */
  began(first: readonly RunEvent[], step = 0): void {
    this.#seq = first.at(-1)?.seq ?? 0
    this.#step = step
    this.#observe(first)
    this.#stored(first)
  }

  /** Gives events their numbers. They are stored with the next write, at the latest after 200 ms unless it is to be awaited. */
  prepare(bodies: readonly RunEventBody[], awaitsWrite = false): RunEvent[] {
    const events = this.#number(bodies)
    this.#observe(events)
    if (events.length === 0) return events
    this.#keep(events)
    if (!awaitsWrite) this.#timer ??= setTimeout(() => void this.flush(), DELTA_MS).unref()
    this.#handed.numbered(events)
    return events
  }

  /** Gives events their numbers and stores them, at once or, when all are deltas, with the next write. */
  async record(bodies: readonly RunEventBody[]): Promise<RunEvent[]> {
    const events = this.prepare(bodies)
    if (!events.every(isDelta)) await this.flush()
    return events
  }

  /** Keeps a request for the next write and returns its number, above `last`. The model call does not wait. */
  saveRequest(request: SentRequest, last = 0): number {
    this.#step = Math.max(this.#step, last) + 1
    this.#requests.push({ step: this.#step, record: toJsonData(request) as Record<string, unknown> })
    this.#requestTimer ??= setTimeout(() => void this.flush(), REQUEST_MS).unref()
    return this.#step
  }

  /** Keeps a count of tokens for the end of the run. */
  counted(observation: Observation): void {
    this.#observations.push(observation)
  }

  /** Stores what is waiting. */
  flush(): Promise<unknown> {
    return this.#inTurn(() => this.#writeWaiting({}))
  }

  /** Stores a message or a change of state together with what is waiting. Fails when it cannot be stored. */
  append(write: StepWrite): Promise<SavedStep> {
    return this.#inTurn(() => this.#write(write))
  }

  /**
   * Stores the message that ends a run together with that end. Whatever is written before it, or a turn of the event loop
   * without an end, stores the message by itself. Its events are handed out when it is stored.
   */
  hold(write: StepWrite): Promise<SavedStep> {
    invariant(!this.isUnstored, 'one message is held at a time')
    this.#heldFrom = this.#batch[0]?.seq ?? Number.POSITIVE_INFINITY
    this.#heldTo = this.#seq
    this.#closedSeq = this.#seq
    setImmediate(() => void this.letGo())
    return new Promise((resolve, reject) => {
      this.#held = { write, resolve, reject }
    })
  }

  get isHolding(): boolean {
    return this.#held !== undefined
  }

  /** Whether a message is held, or was and is not stored yet. */
  get isUnstored(): boolean {
    return this.#held !== undefined || this.#lettingGo !== undefined
  }

  /** The first event that belongs to such a message. */
  get heldFrom(): number {
    return this.isUnstored ? this.#heldFrom : Number.POSITIVE_INFINITY
  }

  /** The write of a message that was held, while it is under way. */
  get lettingGo(): Promise<void> | undefined {
    return this.#lettingGo
  }

  /** Stores a message that is held. Resolves when it is stored, or cannot be. */
  letGo(): Promise<void> | undefined {
    const held = this.#held
    if (!held) return this.#lettingGo
    this.#held = undefined
    const ended = (report: () => void) => {
      this.#lettingGo = undefined
      report()
    }
    this.#lettingGo = this.#inTurn(() => this.#write(held.write, this.#heldTo)).then(
      saved => ended(() => held.resolve(saved)),
      error => ended(() => held.reject(error)),
    )
    return this.#lettingGo
  }

  /** Stores changes of the ledger of tool calls. Those that come during a write are stored together by the next one. */
  change(calls: readonly ToolCallChange[]): Promise<readonly ToolCallPlace[]> {
    return new Promise((resolve, reject) => {
      this.#changes.push({ calls, resolve, reject })
      if (this.#changes.length > 1) return
      // A failure is reported to those who wait for the changes.
      this.#inTurn(async () => this.#changes.length > 0 && this.#write({})).catch(() => {})
    })
  }

  /**
   * Stores the last events and ends the lease in the same write. Fails when the message that
   * was held for this write cannot be stored: the run has another end then.
   */
  async finish(bodies: readonly RunEventBody[]): Promise<RunEvent[]> {
    const held = this.#held
    this.#held = undefined
    this.#handed.end()
    const lastSeq = this.#seq
    const events = this.#number(bodies)
    this.#keep(events)
    const { lease } = this.#parts
    const release = !lease.lost.aborted
    const write = { calibration: sumByModel(this.#observations), release }
    const isStored = held
      ? await this.#finishWith(held, write, { events, lastSeq })
      : await this.#inTurn(() => this.#writeWaiting(write))
    this.#observations = []
    this.#observe(events)
    if (isStored && release) lease.released()
    return events
  }

  /** `lastSeq`: the number before the events. */
  async #finishWith(
    held: HeldWrite,
    end: StepWrite,
    { events, lastSeq }: { events: readonly RunEvent[]; lastSeq: number },
  ): Promise<true> {
    // A run that has ended is not continued: it needs no entry in its journal.
    const { journal: _, ...write } = held.write
    try {
      held.resolve(await this.#inTurn(() => this.#write({ ...write, ...end })))
      return true
    } catch (error) {
      if (await this.#hasStored(events.at(-1))) {
        this.#stored(toJsonData(this.#batch.splice(0)) as unknown as RunEvent[])
        held.resolve({})
        return true
      }
      this.#batch = this.#batch.filter(event => !events.includes(event))
      // The other end takes their numbers, unless later events have theirs.
      if (this.#seq === events.at(-1)?.seq) this.#seq = lastSeq
      held.reject(error)
      throw error
    }
  }

  /** Whether a write that failed is stored: an acknowledgement can be lost, and sent again the write finds no lease. */
  async #hasStored(event: RunEvent | undefined): Promise<boolean> {
    if (!event) return false
    try {
      const query = { afterSeq: event.seq - 1, limit: 1 }
      const [stored] = await this.#parts.store.runs.readEvents(this.runId, query)
      return isDeepStrictEqual(stored, toJsonData(event))
    } catch {
      return false
    }
  }

  /** Stores what is waiting, and leaves the run to another attempt. `false` when that could not be stored. */
  async pause(pause: 'waiting' | 'handover', journal?: readonly JournalEntry[]): Promise<boolean> {
    this.#handed.end()
    const write = { release: true, pause, ...defined({ journal }) }
    const isStored = await this.#inTurn(() => this.#writeWaiting(write))
    if (isStored) this.#parts.lease.released()
    return isStored
  }

  /** Gives the last events their numbers and stores nothing more: another process ends the run. */
  async leaveUnfinished(bodies: readonly RunEventBody[]): Promise<RunEvent[]> {
    await this.letGo()
    this.#handed.end()
    const events = this.#number(bodies)
    this.#observe(events)
    clearTimeout(this.#timer)
    clearTimeout(this.#requestTimer)
    this.#batch = []
    this.#requests = []
    return events
  }

  #number(bodies: readonly RunEventBody[]): RunEvent[] {
    const { sessionId } = this.#parts.key
    const timed = bodies.map(body => this.#clock.timed(body))
    const events = numbered(timed, { sessionId, runId: this.runId }, this.#seq)
    this.#seq = events.at(-1)?.seq ?? this.#seq
    return events
  }

  #keep(events: readonly RunEvent[]): void {
    const last = this.#batch.at(-1)
    const open = last && last.seq > this.#closedSeq ? this.#batch.splice(-1) : []
    this.#batch.push(...joinDeltas([...open, ...events]))
  }

  #observe(events: readonly RunEvent[]): void {
    for (const event of events) this.#notify(this.#parts.observe, event)
  }

  /** A listener that fails does not fail the run. */
  #notify<T>(listener: ((value: T) => void) | undefined, value: T): void {
    try {
      listener?.(value)
    } catch (error) {
      this.#parts.logger.warn('A listener of a run failed', { runId: this.runId, error: messageOf(error) })
    }
  }

  #stored(events: readonly RunEvent[]): void {
    if (events.length === 0) return
    this.#notify(this.#parts.onStored, events)
    this.#handed.stored(events, this.#batch)
  }

  /** One write at a time, so that messages and events are stored in order. */
  #inTurn<T>(write: () => Promise<T>): Promise<T> {
    void this.letGo()
    const turn = this.#writing ? this.#writing.then(write) : write()
    const ended = () => {
      if (this.#writing === writing) this.#writing = undefined
    }
    const writing = turn.then(ended, ended)
    this.#writing = writing
    return turn
  }

  /** As `#write`, for events alone: a failure is logged, and the events wait for the next write. */
  async #writeWaiting(write: StepWrite): Promise<boolean> {
    const isEmpty = this.#batch.length + this.#requests.length === 0
    if (isEmpty && !write.release && !write.calibration?.length) return true
    try {
      await this.#write(write)
      return true
    } catch (error) {
      this.#parts.logger.warn('The events of a run could not be stored', {
        runId: this.runId,
        error: messageOf(error),
      })
      return false
    }
  }

  /** `through`: later events wait for a write of their own. */
  async #write(write: StepWrite, through = Number.POSITIVE_INFINITY): Promise<SavedStep> {
    clearTimeout(this.#timer)
    clearTimeout(this.#requestTimer)
    this.#timer = undefined
    this.#requestTimer = undefined
    const later = this.#batch.findIndex(({ seq }) => seq > through)
    const events = later < 0 ? this.#batch : this.#batch.slice(0, later)
    const [requests, changes] = [this.#requests, this.#changes]
    this.#batch = later < 0 ? [] : this.#batch.slice(later)
    if (later >= 0) this.#timer = setTimeout(() => void this.flush(), DELTA_MS).unref()
    this.#requests = []
    this.#changes = []
    // Converted to JSON data, so that stored events equal those that a client in another process receives.
    const records = toJsonData(events) as RunEventRecord[]
    const { key, lease, turns } = this.#parts
    const pause = turns.pause()
    if (pause) await pause
    const calls = [...(write.calls ?? []), ...changes.flatMap(change => change.calls)]
    const step = { key, runId: this.runId, fence: lease.fence, events: records, requests, ...write }
    try {
      const saved = await this.#save(calls.length > 0 ? { ...step, calls } : step)
      this.#stored(records as unknown as RunEvent[])
      answerChanges(changes, saved.calls?.slice(write.calls?.length ?? 0) ?? [])
      return saved
    } catch (error) {
      for (const change of changes) change.reject(error)
      this.#closedSeq = Math.max(this.#closedSeq, events.at(-1)?.seq ?? 0)
      this.#batch = [...events, ...this.#batch].slice(-MAXIMUM_WAITING)
      this.#requests = [...requests, ...this.#requests].slice(-MAXIMUM_WAITING)
      throw error
    }
  }

  /** Repeats the write of a step while the store is away. */
  async #save(step: RunStep): Promise<SavedStep> {
    const { store, lease, logger } = this.#parts
    const startedAt = performance.now()
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MOST_PAUSE_MS)) {
      try {
        return await store.runs.saveStep(step)
      } catch (error) {
        const isOver = lease.lost.aborted || performance.now() - startedAt >= OUTAGE_MS
        if (isOver || !isAway(error) || !isRepeatable(step)) throw error
        const facts = { runId: this.runId, error: messageOf(error) }
        if (pauseMs === FIRST_PAUSE_MS)
          logger.warn('The store does not answer: the write of a run is repeated', facts)
        await new Promise(resolve => setTimeout(resolve, pauseMs))
      }
    }
  }
}

/**
 * Whether a step that arrives twice is stored once. Messages and events have numbers; executions of calls are counted, and
 * the store recognises a repeated count by the last event of its step.
 */
function isRepeatable({ events = [], calls = [] }: RunStep): boolean {
  return events.length > 0 || !calls.some(({ status, isTakenBack }) => status === 'started' || isTakenBack)
}

/** True if the store may take the same write later. */
function isAway(error: unknown): boolean {
  return error instanceof AgentError && error.code === 'store-unavailable' && error.retryable
}

/** Hands out the places of changes that were stored together. */
function answerChanges(changes: readonly WaitingChanges[], places: readonly ToolCallPlace[]): void {
  let first = 0
  for (const { calls, resolve } of changes) {
    resolve(places.slice(first, first + calls.length))
    first += calls.length
  }
}

function sumByModel(observations: readonly Observation[]): Observation[] {
  const sums = new Map<string, Observation>()
  for (const { model, bytes, tokens } of observations) {
    const sum = sums.get(model) ?? { model, bytes: 0, tokens: 0 }
    sums.set(model, { model, bytes: sum.bytes + bytes, tokens: sum.tokens + tokens })
  }
  return [...sums.values()]
}
