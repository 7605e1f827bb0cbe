import type { RunEvent } from '../../run/run-event.js'
import type { SessionKey } from '../../session/message.js'
import type { RunStore } from '../../session/run-store.js'
import { EventBatch } from './event-batch.js'

/** Followers that need older events than these read the store. */
const MAXIMUM_BATCHES = 256
const MAXIMUM_BYTES = 2 * 1024 * 1024

/**
 * The newest stored events of a running run, and the followers that wait for more. Every event in a feed is in
 * the store; a follower that needs older ones reads them there until it has caught up.
 */
export class RunFeed {
  #batches: EventBatch[] = []
  #bytes = 0
  #lastSeq: number
  #ended = false
  readonly #waiting = new Set<() => void>()
  #finishReason: string | undefined
  readonly runId: string
  readonly key: SessionKey
  readonly startedAt = Date.now()
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
    const batch = new EventBatch(events.filter(event => event.seq > this.#lastSeq))
    if (batch.events.length === 0) return
    this.#batches.push(batch)
    this.#bytes += batch.weightBytes
    this.#lastSeq = batch.lastSeq
    this.#dropOldest()
    const last = batch.events.at(-1)
    if (last?.type === 'run-finish') {
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
    return this.#batches[0]?.firstSeq ?? this.#lastSeq + 1
  }

  /** Whether every event after that number is in memory. */
  covers(after: number): boolean {
    return after >= this.firstKept - 1
  }

  /** The next events after that number, or `undefined` when there are none yet. */
  next(after: number): EventBatch | undefined {
    return this.#batches.find(batch => batch.lastSeq > after)?.after(after)
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

  #dropOldest(): void {
    const isTooMuch = () => this.#batches.length > MAXIMUM_BATCHES || this.#bytes > MAXIMUM_BYTES
    // The newest batch is kept at any size: followers that are up to date wait for it.
    while (this.#batches.length > 1 && isTooMuch()) this.#bytes -= this.#batches.shift()?.weightBytes ?? 0
  }

  #wakeAll(): void {
    for (const wake of [...this.#waiting]) wake()
  }
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
 * The events of a run after a number: each once, in order, without gaps. Events that are not in memory are read
 * from the store page by page. Only the cursor decides what comes next, so feed and store can alternate.
 */
export async function* followRun({
  runs,
  runId,
  feed,
  after,
  signal,
}: FollowParts): AsyncGenerator<EventBatch> {
  let cursor = after
  while (!signal.aborted) {
    const isNear = feed?.covers(cursor) === true
    const batch = isNear ? feed.next(cursor) : await readBatch(runs, runId, cursor)
    if (batch) {
      cursor = batch.lastSeq
      yield batch
      if (batch.endsRun) return
    } else if (!feed) return
    // Events that were pruned from the store are skipped.
    else if (!isNear) cursor = Math.max(cursor, feed.firstKept - 1)
    else if (!feed.ended) await feed.wait(signal)
    else {
      // A run that could not store its end adds none to the feed; another process may have written one.
      const rest = await readBatch(runs, runId, cursor).catch(() => undefined)
      if (!rest) return
      cursor = rest.lastSeq
      yield rest
    }
  }
}

/** Each follower that reads the store holds one page in memory, and events may be large. */
const EVENT_PAGE = 100

async function readBatch(runs: RunStore, runId: string, afterSeq: number): Promise<EventBatch | undefined> {
  const events = await runs.readEvents(runId, { afterSeq, limit: EVENT_PAGE })
  // The recorder of runs wrote them; a store returns what it was given.
  return events.length > 0 ? new EventBatch(events as unknown as RunEvent[]) : undefined
}
