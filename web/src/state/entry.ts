import type { TranscriptItem } from '../../../src/transcript/item.js'

/** What the chat shows: the transcript, what a live run is doing right now, and the runs that wait for it. */
export type Entry = TranscriptItem | WorkingEntry | QueuedEntry

export interface WorkingEntry {
  readonly kind: 'working'
  readonly key: string
  readonly label: string
}

/** A run that waits until others have ended, or until it is due. Its message is stored when it begins. */
export interface QueuedEntry {
  readonly kind: 'queued'
  readonly key: string
  readonly runId: string
  readonly place: number
  /** Not before this time, in milliseconds since 1970. */
  readonly dueAt?: number
}
