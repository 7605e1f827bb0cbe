import type { Event } from '../adk/sdk.js'
import { defined } from '../base/defined.js'
import { isSyntheticMetadata } from '../session/turn.js'
import type { EventReader, Outbox } from './event-reader.js'
import type { ResumedRun } from './resumed-run.js'
import type { RunEvent, RunEventBody, RunFinishReason } from './run-event.js'
import type { RunLimits } from './run-limits.js'
import type { RunRecorder } from './run-recorder.js'

interface OutputParts {
  outbox: Outbox<RunEventBody>
  recorder: RunRecorder
  reader: EventReader
  resumed: ResumedRun | undefined
}

/** Hands out the events of a run in the order of their numbers: those that are stored with messages, and the others. */
export class RunOutput {
  readonly #parts: OutputParts
  /** Events that are stored with a message and not handed out yet. */
  #ready: RunEvent[] = []
  /** The number of the last event that the next write stores, and that is handed out then. */
  #preparedSeq: number | undefined
  /** As `#preparedSeq`, of a message that is held for the end of the run. */
  #heldSeq: number | undefined
  /** The number of the last event that was stored with an event of ADK's. */
  readonly #lastSeqOf = new WeakMap<Event, number>()

  constructor(parts: OutputParts) {
    this.#parts = parts
  }

  /** Prepares the events of the run that report an event of ADK's: they are stored in one write with its message. */
  appending(event: Event): void {
    if (event.author === 'user' || isSyntheticMetadata(event.customMetadata)) return
    const { recorder, outbox, reader } = this.#parts
    const events = recorder.prepare([...outbox.take(), ...reader.read(event)])
    this.#ready.push(...events)
    this.#lastSeqOf.set(event, events.at(-1)?.seq ?? 0)
  }

  /** An event that is stored with the next write of the run, or before it: what follows relies on it. */
  prepare(body: RunEventBody): void {
    const { recorder, outbox } = this.#parts
    const events = recorder.prepare([...outbox.take(), body])
    this.#ready.push(...events)
    this.#preparedSeq = events.at(-1)?.seq
    outbox.wakeUp()
  }

  /** An event that is stored with the next write, and handed out with the next event. */
  defer(body: RunEventBody): void {
    const { recorder, outbox } = this.#parts
    this.#ready.push(...recorder.prepare([...outbox.take(), body], true))
  }

  /** The events that were prepared, once they are stored. */
  async prepared(): Promise<RunEvent[]> {
    const lastSeq = this.#preparedSeq
    if (lastSeq === undefined) return []
    this.#preparedSeq = undefined
    await this.#parts.recorder.flush()
    return this.upTo(lastSeq)
  }

  /** Whether there is nothing to store or to hand out, beside these. */
  isQuiet(bodies: readonly RunEventBody[]): boolean {
    return bodies.length === 0 && this.#preparedSeq === undefined
  }

  /** The events that report an event of ADK's, if they were stored with it. */
  storedWith(event: Event): RunEvent[] | undefined {
    const lastSeq = this.#lastSeqOf.get(event)
    if (lastSeq !== undefined && lastSeq >= this.#parts.recorder.heldFrom) this.#heldSeq = lastSeq
    return lastSeq === undefined ? undefined : this.upTo(lastSeq)
  }

  /** A message that was held is stored: its events are handed out. */
  handOutHeld(): void {
    if (this.#heldSeq === undefined) return
    this.#preparedSeq = this.#heldSeq
    this.#heldSeq = undefined
    this.#parts.outbox.wakeUp()
  }

  /** The events that report an event of ADK's that is not stored: recorded now. Those of a replayed event were reported. */
  async report(event: Event): Promise<RunEvent[]> {
    const { reader, resumed } = this.#parts
    if (!resumed?.replay.has(event)) return this.emit(reader.read(event))
    reader.replay(event)
    return []
  }

  /** Records events and returns them, after those that were stored before them. */
  async emit(bodies: readonly RunEventBody[]): Promise<RunEvent[]> {
    const fresh = this.#notEmitted(bodies)
    if (fresh.length === 0) return []
    const { recorder } = this.#parts
    const events = await recorder.record(fresh)
    const held = recorder.letGo()
    if (held) await held
    return [...this.upTo(events[0]?.seq ?? 0), ...events]
  }

  /** The last event of the run. */
  finish(
    finishReason: RunFinishReason,
    { turns, delegations }: RunLimits,
    output: unknown = undefined,
  ): RunEventBody {
    const { answer, usage } = this.#parts.reader
    const { text, lastText } = answer
    const found = finishReason === 'error' ? {} : defined({ output })
    return { type: 'run-finish', finishReason, text, lastText, ...found, turns, delegations, usage }
  }

  /** Adds events that are stored. */
  add(events: readonly RunEvent[]): void {
    this.#ready.push(...events)
  }

  /** The events up to that number that were stored with messages. Those of a message that is held have to wait. */
  upTo(lastSeq: number): RunEvent[] {
    const { heldFrom } = this.#parts.recorder
    const taken = this.#ready.filter(({ seq }) => seq <= lastSeq && seq < heldFrom)
    this.#ready = this.#ready.slice(taken.length)
    return taken
  }

  /** Without the notices that earlier attempts of the run have emitted. */
  #notEmitted(bodies: readonly RunEventBody[]): readonly RunEventBody[] {
    const notices = this.#parts.resumed?.progress.notices
    if (!notices) return bodies
    return bodies.filter(({ type }) => {
      if ((type !== 'turn-warning' && type !== 'wrap-up') || notices[type] === 0) return true
      notices[type] -= 1
      return false
    })
  }
}
