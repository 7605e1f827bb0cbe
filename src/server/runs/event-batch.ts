import type { RunEvent } from '../../run/run-event.js'
import { publicError } from '../error-response.js'

/** Events that were handed out together, and their bytes on the wire, which are encoded once for all streams. */
export class EventBatch {
  #frames: Buffer | undefined
  readonly events: readonly RunEvent[]

  constructor(events: readonly RunEvent[]) {
    this.events = events.map(withoutInternals)
  }

  get endsRun(): boolean {
    return this.events.at(-1)?.type === 'run-finish'
  }

  /** Server-sent events: the number as id, the event as JSON. */
  get frames(): Buffer {
    this.#frames ??= Buffer.from(this.events.map(frameOf).join(''))
    return this.#frames
  }
}

const batches = new WeakMap<readonly RunEvent[], EventBatch>()

/** The batch of a list of events. Followers get the same lists, so that each list is encoded once. */
export function toBatch(events: readonly RunEvent[]): EventBatch {
  const known = batches.get(events)
  if (known) return known
  const batch = new EventBatch(events)
  batches.set(events, batch)
  return batch
}

/** Stored errors are complete; those that leave the server name no files, hosts or settings of the machine. */
function withoutInternals(event: RunEvent): RunEvent {
  return event.type === 'error' ? { ...event, error: publicError(event.error) } : event
}

function frameOf(event: RunEvent): string {
  return `id: ${event.seq}\ndata: ${JSON.stringify(event)}\n\n`
}
