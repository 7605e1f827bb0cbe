import type { RunEvent } from '../../run/run-event.js'
import type { RunStore } from '../../session/session-store.js'
import { EventBatch } from './event-batch.js'
import type { RunFeed } from './run-feed.js'

/** A page is held in memory for each follower that is behind, and events may be large. */
const PAGE = 100

export interface FollowParts {
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
  const events = await runs.readEvents(runId, { afterSeq, limit: PAGE })
  // The recorder of runs wrote them; a store returns what it was given.
  return events.length > 0 ? new EventBatch(events as unknown as RunEvent[]) : undefined
}
