/** Hands out the events of a run in the order of their numbers: those that are stored with messages, and the others. */
import type { Event } from '../adk/sdk.js'
import type { EventReader } from './event-reader.js'
import type { ResumedRun } from './resumed-run.js'
import type { RunEvent, RunEventBody, RunFinishReason } from './run-event.js'
import type { RunLimits } from './run-limits.js'
import type { RunRecorder } from './run-recorder.js'
import type { Outbox } from './run-scope.js'

export interface OutputParts {
  outbox: Outbox<RunEventBody>
  recorder: RunRecorder
  reader: EventReader
  resumed: ResumedRun | undefined
}

export class RunOutput {
  readonly #parts: OutputParts
  /** Events that are stored with a message and not handed out yet. */
  #ready: RunEvent[] = []
  /** The number of the last event that was stored with an event of ADK's. */
  readonly #lastSeqOf = new WeakMap<Event, number>()

  constructor(parts: OutputParts) {
    this.#parts = parts
  }

  /** Prepares the events of the run that report an event of ADK's: they are stored in one write with its message. */
  appending(event: Event): void {
    if (event.author === 'user') return
    const { recorder, outbox, reader } = this.#parts
    const events = recorder.prepare([...outbox.take(), ...reader.read(event)])
    this.#ready.push(...events)
    this.#lastSeqOf.set(event, events.at(-1)?.seq ?? 0)
  }

  /** The events that report an event of ADK's: stored with it, or recorded now. Those of a replayed event were reported. */
  async report(event: Event): Promise<RunEvent[]> {
    const { reader, resumed } = this.#parts
    const lastSeq = this.#lastSeqOf.get(event)
    if (lastSeq !== undefined) return this.upTo(lastSeq)
    if (!resumed?.replay.has(event)) return this.emit(reader.read(event))
    reader.replay(event)
    return []
  }

  /** Records events and returns them, after those that were stored before them. */
  async emit(bodies: readonly RunEventBody[]): Promise<RunEvent[]> {
    const fresh = this.#notEmitted(bodies)
    if (fresh.length === 0) return []
    const events = await this.#parts.recorder.record(fresh)
    return [...this.upTo(events[0]?.seq ?? 0), ...events]
  }

  /** The last event of the run. */
  finish(finishReason: RunFinishReason, { turns, delegations }: RunLimits): RunEventBody {
    const { answer, usage } = this.#parts.reader
    const { text, lastText } = answer
    return { type: 'run-finish', finishReason, text, lastText, turns, delegations, usage }
  }

  /** Adds events that are stored. */
  add(events: readonly RunEvent[]): void {
    this.#ready.push(...events)
  }

  /** The events up to that number that were stored with messages. */
  upTo(lastSeq: number): RunEvent[] {
    const taken = this.#ready.filter(({ seq }) => seq <= lastSeq)
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
