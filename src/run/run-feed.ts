import type { SessionKey } from '../session/message.js'
import type { RunStore } from '../session/run-store.js'
import { eventsAfter, follows, isDelta, joinDeltas, seqBefore } from './event-numbers.js'
import type { RunEvent } from './run-event.js'

/** Events that were handed out together. Followers of one run in one process get the same lists. */
export type EventList = readonly RunEvent[]

/** Followers that need older events than these read the store. */
const MAXIMUM_LISTS = 256
const MAXIMUM_BYTES = 2 * 1024 * 1024

/** Events that no follower has taken yet are added to one list up to this weight. */
const OPEN_LIST_BYTES = 32 * 1024

interface KeptList {
  events: EventList
  bytes: number
  /** A follower has it: it does not change any more. */
  isTaken: boolean
}

/**
 * The newest events of a running run, and the followers that wait for more. Deltas are added before they are stored:
 * what is not stored yet stays in memory, so that a follower that needs older events finds them in the store until it
 * has caught up.
 */
export class RunFeed {
  #lists: KeptList[] = []
  #bytes = 0
  #lastSeq: number
  #storedSeq: number
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
    this.#storedSeq = lastSeq
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

  /** Adds events. What was added before is skipped. */
  add(events: readonly RunEvent[]): void {
    const fresh = eventsAfter(events, this.#lastSeq)
    const [first] = fresh
    const last = fresh.at(-1)
    if (!first || !last) return
    // Events between those in memory and these are in the store only: followers read them there.
    if (!follows(first, this.#lastSeq)) this.#forget()
    this.#push(fresh)
    this.#lastSeq = last.seq
    this.#dropOldest()
    if (last.type === 'run-finish') {
      this.#ended = true
      this.#finishReason = last.finishReason
    }
    this.#wakeAll()
  }

  /** Events up to this number are stored. */
  stored(seq: number): void {
    this.#storedSeq = Math.max(this.#storedSeq, seq)
    this.#dropOldest()
  }

  end(): void {
    this.#ended = true
    this.#wakeAll()
  }

  /** Every event after this number is in memory. */
  get keptAfter(): number {
    const first = this.#lists[0]?.events[0]
    return first ? seqBefore(first) : this.#lastSeq
  }

  /** Whether every event after that number is in memory. */
  covers(after: number): boolean {
    return after >= this.keptAfter
  }

  /** The next events after that number, or `undefined` when there are none yet. */
  next(after: number): EventList | undefined {
    if (after >= this.#lastSeq) return undefined
    let at = this.#lists.length - 1
    while (at > 0 && lastSeqOf(this.#lists[at - 1]?.events) > after) at -= 1
    const list = this.#lists[at]
    if (!list) return undefined
    list.isTaken = true
    return eventsAfter(list.events, after)
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

  #push(events: EventList): void {
    const last = this.#lists.at(-1)
    const open = last && !last.isTaken && last.bytes < OPEN_LIST_BYTES ? this.#lists.pop() : undefined
    const all = open ? joinDeltas([...open.events, ...events]) : events
    const bytes = weightOf(all)
    this.#lists.push({ events: all, bytes, isTaken: false })
    this.#bytes += bytes - (open?.bytes ?? 0)
  }

  /** The newest list is kept at any size: followers that are up to date wait for it. */
  #dropOldest(): void {
    const isTooMuch = () => this.#lists.length > MAXIMUM_LISTS || this.#bytes > MAXIMUM_BYTES
    while (this.#lists.length > 1 && isTooMuch()) {
      if (lastSeqOf(this.#lists[0]?.events) <= this.#storedSeq) this.#bytes -= this.#lists.shift()?.bytes ?? 0
      else if (this.#lists.length > MAXIMUM_LISTS) this.#joinOldest()
      else return
    }
  }

  /** Only the text of unfinished answers is not stored: its pieces become one. */
  #joinOldest(): void {
    const oldest = this.#lists.splice(0, 2)
    const events = joinDeltas(oldest.flatMap(list => list.events))
    const bytes = weightOf(events)
    this.#lists.unshift({ events, bytes, isTaken: true })
    this.#bytes += bytes - oldest.reduce((sum, list) => sum + list.bytes, 0)
  }

  #wakeAll(): void {
    for (const wake of [...this.#waiting]) wake()
  }
}

function lastSeqOf(events: EventList | undefined): number {
  return events?.at(-1)?.seq ?? 0
}

/** Approximate memory. Texts, arguments and results of tools have any size; other events are small. */
function weightOf(events: EventList): number {
  return events.reduce((sum, event) => sum + EVENT_BYTES + variableBytes(event), 0)
}

const EVENT_BYTES = 300

function variableBytes(event: RunEvent): number {
  if (isDelta(event)) return event.text.length
  return event.type === 'tool-result' || event.type === 'tool-call' ? JSON.stringify(event).length : 0
}

interface FollowParts {
  runs: RunStore
  runId: string
  /** The feed of a running run; without one, all events are in the store. */
  feed: RunFeed | undefined
  after: number
  signal: AbortSignal
}

/**
 * The events of a run after a number: each once, in order, without gaps. A delta that contains the number is cut. Events that are not in memory are read
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
    const keptAfter = feed?.keptAfter ?? cursor
    const events = isNear ? feed.next(cursor) : await readList(runs, runId, cursor)
    if (events) {
      cursor = lastSeqOf(events)
      yield events
      if (events.at(-1)?.type === 'run-finish') return
    } else if (!feed) return
    // Events that were pruned from the store are skipped.
    else if (!isNear) cursor = Math.max(cursor, keptAfter)
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
  return events.length > 0 ? eventsAfter(events as unknown as RunEvent[], afterSeq) : undefined
}
