import type { RunSummary } from '../../session/session-store.js'
import type { RunItem } from '../chat-protocol.js'
import type { RunFeed } from './run-feed.js'

/** A stored run as clients see it. */
export function toRunItem(run: RunSummary): RunItem {
  return {
    runId: run.runId,
    sessionId: run.key.sessionId,
    startedAt: run.startedAt,
    ...(run.afterSeq === undefined ? {} : { afterSeq: run.afterSeq }),
    lastSeq: run.lastSeq,
    status: run.finished ? 'finished' : 'running',
    ...(run.finishReason === undefined ? {} : { finishReason: run.finishReason }),
  }
}

/** A run that waits for its turn: the store does not know it yet. */
export function waitingItem(feed: RunFeed): RunItem {
  return {
    runId: feed.runId,
    sessionId: feed.key.sessionId,
    startedAt: feed.startedAt,
    lastSeq: 0,
    status: 'running',
  }
}
