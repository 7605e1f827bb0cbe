import type { SessionKey } from '../session/message.js'
import type { RunStore } from '../session/run-store.js'
import type { RunEvent } from './run-event.js'

/** Events that were stored together. Followers of one run in one process get the same lists. */
export type EventList = readonly RunEvent[]

/** Followers that need older events than these read the store. */
const MAXIMUM_LISTS = 256
const MAXIMUM_BYTES = 2 * 1024 * 1024

/**
 * The newest stored events of a running run, and the followers that wait for more. Every event in a feed is in
 * the store; a follower that needs older ones reads them there until it has caught up.
 */
export class RunFeed {
  #lists: { events: EventList; bytes: number }[] = []
  #bytes = 0
  #lastSeq: number
  #ended = false
  readonly #waiting = new Set<() => void>()
  #finishReason: string | undefined
  readonly runId: string
  readonly key: SessionKey
  followers = 0

  /** Events up to `lastSeq` are in the store only. */
  constructor(runId: string, key: SessionKey, lastSeq = 0) {
    this.runId = runId
    this.key = key
    this.#lastSeq = lastSeq
  }

  get lastSeq(): number {
    return this.#lastSeq
  }

  /** Whether the feed is complete. */
  get ended(): boolean {
    return this.#ended
  }

  /** Known after the last event. */
  get finishReason(): string | undefined {
    return this.#finishReason
  }

  /** Adds events that have been stored. Numbers that were added before are skipped. */
  add(events: readonly RunEvent[]): void {
    const fresh = events.filter(event => event.seq > this.#lastSeq)
    const last = fresh.at(-1)
    if (last === undefined) return
    // Events between those in memory and these are in the store only: followers read them there.
    if ((fresh[0]?.seq ?? 0) > this.#lastSeq + 1) this.#forget()
    const bytes = weightOf(fresh)
    this.#lists.push({ events: fresh, bytes })
    this.#bytes += bytes
    this.#lastSeq = last.seq
    this.#dropOldest()
    if (last.type === 'run-finish') {
      this.#ended = true
      this.#finishReason = last.finishReason
    }
    this.#wakeAll()
  }

  end(): void {
    this.#ended = true
    this.#wakeAll()
  }

  /** The number of the oldest event in memory, or of the next one when there is none. */
  get firstKept(): number {
    return this.#lists[0]?.events[0]?.seq ?? this.#lastSeq + 1
  }

  /** Whether every event after that number is in memory. */
  covers(after: number): boolean {
    return after >= this.firstKept - 1
  }

  /** The next events after that number, or `undefined` when there are none yet. */
  next(after: number): EventList | undefined {
    const events = this.#lists.find(list => lastSeqOf(list.events) > after)?.events
    const isWhole = events === undefined || after < (events[0]?.seq ?? 0)
    return isWhole ? events : events.filter(({ seq }) => seq > after)
  }

  /** Resolves when events were added, when the feed has ended, and when the signal fires. */
  wait(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve()
    return new Promise(resolve => {
      const wake = () => {
        this.#waiting.delete(wake)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      this.#waiting.add(wake)
      signal.addEventListener('abort', wake, { once: true })
    })
  }

  #forget(): void {
    this.#lists = []
    this.#bytes = 0
  }

  #dropOldest(): void {
    const isTooMuch = () => this.#lists.length > MAXIMUM_LISTS || this.#bytes > MAXIMUM_BYTES
    // The newest list is kept at any size: followers that are up to date wait for it.
    while (this.#lists.length > 1 && isTooMuch()) this.#bytes -= this.#lists.shift()?.bytes ?? 0
  }

  #wakeAll(): void {
    for (const wake of [...this.#waiting]) wake()
  }
}

function lastSeqOf(events: EventList): number {
  return events.at(-1)?.seq ?? 0
}

/** Approximate memory. Deltas are small; arguments and results of tools have any size. */
function weightOf(events: EventList): number {
  const isLarge = events.some(({ type }) => type === 'tool-result' || type === 'tool-call')
  return isLarge ? JSON.stringify(events).length : events.length * DELTA_BYTES
}

const DELTA_BYTES = 300

interface FollowParts {
  runs: RunStore
  runId: string
  /** The feed of a running run; without one, all events are in the store. */
  feed: RunFeed | undefined
  after: number
  signal: AbortSignal
}

/**
 * The events of a run after a number: each once, in order, without gaps. Events that are not in memory are read
 * from the store page by page. Only the cursor decides what comes next, so feed and store can alternate.
 */
export async function* followRun({
  runs,
  runId,
  feed,
  after,
  signal,
}: FollowParts): AsyncGenerator<EventList, void, undefined> {
  let cursor = after
  while (!signal.aborted) {
    const isNear = feed?.covers(cursor) === true
    const events = isNear ? feed.next(cursor) : await readList(runs, runId, cursor)
    if (events) {
      cursor = lastSeqOf(events)
      yield events
      if (events.at(-1)?.type === 'run-finish') return
    } else if (!feed) return
    // Events that were pruned from the store are skipped.
    else if (!isNear) cursor = Math.max(cursor, feed.firstKept - 1)
    else if (!feed.ended) await feed.wait(signal)
    else {
      // A run that could not store its end adds none to the feed; another process may have written one.
      const rest = await readList(runs, runId, cursor).catch(() => undefined)
      if (!rest) return
      cursor = lastSeqOf(rest)
      yield rest
    }
  }
}

/** Each follower that reads the store holds one page in memory, and events may be large. */
const EVENT_PAGE = 100

async function readList(runs: RunStore, runId: string, afterSeq: number): Promise<EventList | undefined> {
  const events = await runs.readEvents(runId, { afterSeq, limit: EVENT_PAGE })
  // The recorder of runs wrote them; a store returns what it was given.
  return events.length > 0 ? (events as unknown as RunEvent[]) : undefined
}
