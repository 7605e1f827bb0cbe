import type { TranscriptItem } from '../../../src/transcript/item.js'

/** What the chat shows: the transcript, and what a live run is doing right now. */
export type Entry = TranscriptItem | WorkingEntry

export interface WorkingEntry {
  readonly kind: 'working'
  readonly key: string
  readonly label: string
}
