import type { RunEvent } from '../../run/run-event.js'
import type { SessionKey } from '../../session/message.js'
import type { RunStore } from '../../session/session-store.js'
import { EventBatch } from './event-batch.js'

/** How much of a run is kept in memory for those who follow closely; others read the store. */
const MAXIMUM_BATCHES = 256
const MAXIMUM_BYTES = 2 * 1024 * 1024

/**
 * The newest stored events of a run that goes on, and those who wait for more. What is in here is in the
 * store; a follower that falls behind what is kept reads there until it has caught up.
 */
export class RunFeed {
  #batches: EventBatch[] = []
  #bytes = 0
  #lastSeq: number
  #ended = false
  readonly #waiting = new Set<() => void>()
  #finishReason: string | undefined
  readonly startedAt = Date.now()
  followers = 0

  constructor(
    readonly runId: string,
    readonly key: SessionKey,
    /** Everything up to this number is in the store only. */
    lastSeq = 0,
  ) {
    this.#lastSeq = lastSeq
  }

  get lastSeq(): number {
    return this.#lastSeq
  }

  /** Nothing more will come. */
  get ended(): boolean {
    return this.#ended
  }

  /** Known once the last event has come. */
  get finishReason(): string | undefined {
    return this.#finishReason
  }

  /** Takes events that have been stored. Numbers that are known already are left out. */
  add(events: readonly RunEvent[]): void {
    const batch = new EventBatch(events.filter(event => event.seq > this.#lastSeq))
    if (batch.events.length === 0) return
    this.#batches.push(batch)
    this.#bytes += batch.weightBytes
    this.#lastSeq = batch.lastSeq
    this.#forgetOldest()
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

  /** The number of the oldest event that is kept, or that would be. */
  get firstKept(): number {
    return this.#batches[0]?.firstSeq ?? this.#lastSeq + 1
  }

  /** Whether all that comes after that number is kept here. */
  covers(after: number): boolean {
    return after >= this.firstKept - 1
  }

  /** The next events after that number; `undefined` when there are none yet. */
  next(after: number): EventBatch | undefined {
    return this.#batches.find(batch => batch.lastSeq > after)?.after(after)
  }

  /** Resolves when there may be more, or the signal fires. */
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

  #forgetOldest(): void {
    const isTooMuch = () => this.#batches.length > MAXIMUM_BATCHES || this.#bytes > MAXIMUM_BYTES
    // The newest batch stays, however large: those who follow closely are waiting for it.
    while (this.#batches.length > 1 && isTooMuch()) this.#bytes -= this.#batches.shift()?.weightBytes ?? 0
  }

  #wakeAll(): void {
    for (const wake of [...this.#waiting]) wake()
  }
}

/** A page is held in memory for each follower that is behind, and events may be large. */
const EVENT_PAGE = 100

interface FollowParts {
  runs: RunStore
  runId: string
  /** Of a run that goes on; without one everything is in the store. */
  feed: RunFeed | undefined
  after: number
  signal: AbortSignal
}

/**
 * The events of a run after a number: each once, in order, none left out. What is no longer in memory is read
 * from the store page by page; the cursor alone says what was seen, so it does not matter where a batch is from.
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
    // Events that the store has lost or pruned cannot be waited for.
    else if (!isNear) cursor = Math.max(cursor, feed.firstKept - 1)
    else if (!feed.ended) await feed.wait(signal)
    else {
      // A run that could not store its end has told none; another process may have ended it meanwhile.
      const rest = await readBatch(runs, runId, cursor).catch(() => undefined)
      if (!rest) return
      cursor = rest.lastSeq
      yield rest
    }
  }
}

async function readBatch(runs: RunStore, runId: string, afterSeq: number): Promise<EventBatch | undefined> {
  const events = await runs.readEvents(runId, { afterSeq, limit: EVENT_PAGE })
  // The recorder of runs wrote them; a store returns what it was given.
  return events.length > 0 ? new EventBatch(events as unknown as RunEvent[]) : undefined
}
