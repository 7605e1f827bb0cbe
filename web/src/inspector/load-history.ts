/** Reads the stored side of a run: page by page, from the newest message that belongs to it backwards. */
import type { LangoClient } from '../../../src/client/client.js'
import { cutsOf } from './step-facts.js'
import type { InspectedStep, StoredMessage } from './types.js'

export interface HistoryRange {
  fromSeq: number
  throughSeq: number
}

/** The messages of a range, in order. */
export async function loadHistory(
  client: Pick<LangoClient, 'messages'>,
  sessionId: string,
  { fromSeq, throughSeq }: HistoryRange,
): Promise<StoredMessage[]> {
  const pages: StoredMessage[][] = []
  let beforeSeq = throughSeq + 1
  for (let page = 0; page < MAXIMUM_PAGES && beforeSeq > fromSeq; page++) {
    const limit = Math.min(PAGE, beforeSeq - fromSeq)
    const { messages } = await client.messages(sessionId, { beforeSeq, limit })
    const first = messages[0]
    if (!first || first.seq >= beforeSeq) break
    pages.push(messages)
    beforeSeq = first.seq
  }
  return pages
    .reverse()
    .flat()
    .filter(message => message.seq >= fromSeq)
}

/** The newest message of a run: the one before the next run began, or the newest of all. */
export async function lastSeqOfRun(
  client: Pick<LangoClient, 'runs' | 'session'>,
  sessionId: string,
  runId: string,
): Promise<number> {
  const [{ runs }, { totalMessages }] = await Promise.all([client.runs(sessionId), client.session(sessionId)])
  const own = runs.find(run => run.runId === runId)?.afterSeq
  if (own === undefined) return totalMessages
  const later = runs.flatMap(run => (run.afterSeq !== undefined && run.afterSeq > own ? [run.afterSeq] : []))
  return later.length > 0 ? Math.min(...later) : totalMessages
}

/** Where to begin: a little before the first message that was kept. */
export function firstSeqOf(step: InspectedStep): number {
  const kept = cutsOf(step).atLoad?.messages ?? 0
  return Math.max(1, kept + 1 - SHOWN_BEFORE)
}

/** So many messages that were cut are shown without being asked for. */
const SHOWN_BEFORE = 20
/** As much as the server gives at once. */
const PAGE = 500
/** 10,000 messages: more than any window takes. */
const MAXIMUM_PAGES = 20
