import type { RunEvent } from '../../run/run-event.js'
import { publicError } from '../error-response.js'

/** Events that were stored together, and their bytes on the wire, which are encoded once for all streams. */
export class EventBatch {
  #frames: Buffer | undefined
  readonly events: readonly RunEvent[]

  constructor(events: readonly RunEvent[]) {
    this.events = events.map(withoutInternals)
  }

  get firstSeq(): number {
    return this.events[0]?.seq ?? 0
  }

  get lastSeq(): number {
    return this.events.at(-1)?.seq ?? 0
  }

  get endsRun(): boolean {
    return this.events.at(-1)?.type === 'run-finish'
  }

  /** Server-sent events: the number as id, the event as JSON. */
  get frames(): Buffer {
    this.#frames ??= Buffer.from(this.events.map(frameOf).join(''))
    return this.#frames
  }

  /** Approximate memory. Deltas are small; arguments and results of tools have any size. */
  get weightBytes(): number {
    const isLarge = this.events.some(({ type }) => type === 'tool-result' || type === 'tool-call')
    return isLarge ? this.frames.length : this.events.length * DELTA_BYTES
  }

  /** The events after a number. The batch itself, when that is all of them. */
  after(seq: number): EventBatch {
    return seq < this.firstSeq ? this : new EventBatch(this.events.filter(event => event.seq > seq))
  }
}

const DELTA_BYTES = 300

/** Stored errors are complete; those that leave the server name no files, hosts or settings of the machine. */
function withoutInternals(event: RunEvent): RunEvent {
  return event.type === 'error' ? { ...event, error: publicError(event.error) } : event
}

function frameOf(event: RunEvent): string {
  return `id: ${event.seq}\ndata: ${JSON.stringify(event)}\n\n`
}
