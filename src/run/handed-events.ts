import { eventsAfter, follows, mayPrecedeStoring } from './event-numbers.js'
import type { RunEvent } from './run-event.js'

/**
 * The order in which the events of a run are handed out: a delta at once if everything before it was handed out, any
 * other event once it is stored, and nothing before an earlier event.
 */
export class HandedEvents {
  readonly #handOut: (events: readonly RunEvent[]) => void
  #lastSeq = 0
  #storedSeq = 0
  #isOver = false

  constructor(handOut: (events: readonly RunEvent[]) => void) {
    this.#handOut = handOut
  }

  /** These events are stored. `waiting`: the events after them, as far as they have numbers. */
  stored(events: readonly RunEvent[], waiting: readonly RunEvent[]): void {
    this.#storedSeq = events.at(-1)?.seq ?? this.#storedSeq
    this.#hand(eventsAfter(events, this.#lastSeq))
    this.numbered(eventsAfter(waiting, this.#lastSeq))
  }

  /** These events have got their numbers: those are handed out that need not be stored first. */
  numbered(events: readonly RunEvent[]): void {
    const [first] = events
    if (this.#isOver || !first || !follows(first, this.#lastSeq)) return
    const end = events.findIndex(event => !mayPrecedeStoring(event, this.#storedSeq))
    this.#hand(end < 0 ? events : events.slice(0, end))
  }

  /** The last write has begun: what it does not store is not handed out. */
  end(): void {
    this.#isOver = true
  }

  #hand(events: readonly RunEvent[]): void {
    this.#lastSeq = events.at(-1)?.seq ?? this.#lastSeq
    if (events.length > 0) this.#handOut(events)
  }
}
