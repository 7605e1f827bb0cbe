/** Long lists, page by page: messages of a session (read and appended), sessions of an app, events of a run. */
import { defined } from '../base/defined.js'
import { createPause } from '../base/pause.js'
import { readPages } from '../base/read-pages.js'
import type { Message, SessionKey, StoredMessage } from './message.js'
import type { RunEventRecord, RunStore } from './run-store.js'
import type { ListQuery, SessionStore, SessionSummary } from './session-store.js'

const PAGE = 1000
const ALL = Number.MAX_SAFE_INTEGER

export interface MessageRange {
  /** Only messages after this one. */
  afterSeq?: number
  /** Only messages before this one. */
  beforeSeq?: number
  /** At most so many messages over all pages. Default: all. */
  limit?: number
  /** Default 1000. */
  pageSize?: number
}

type Pages<Item> = AsyncGenerator<readonly Item[], void, undefined>

/** Messages in order, oldest first. No page is empty. */
export async function* messagePages(
  store: Pick<SessionStore, 'readMessages'>,
  key: SessionKey,
  { afterSeq = 0, beforeSeq, limit = ALL, pageSize = PAGE }: MessageRange = {},
): Pages<StoredMessage> {
  let left = limit
  if (left < 1) return
  const pages = readPages<StoredMessage, number>(async (after = afterSeq) => {
    const size = Math.min(pageSize, left)
    const items = await store.readMessages(key, { afterSeq: after, limit: size, ...defined({ beforeSeq }) })
    left -= items.length
    return { items, next: items.length < size || left < 1 ? undefined : items.at(-1)?.seq }
  })
  for await (const page of pages) if (page.length > 0) yield page
}

/** Messages that are handed to a store at once. */
const APPENDED = 500

/** Appends many messages in order, and returns their numbers. Other work of the process runs meanwhile. */
export async function appendAll(
  store: Pick<SessionStore, 'appendMessages'>,
  key: SessionKey,
  messages: readonly Message[],
): Promise<number[]> {
  const pause = createPause()
  const numbers: number[] = []
  for (let start = 0; start < messages.length; start += APPENDED) {
    const stored = await store.appendMessages(key, messages.slice(start, start + APPENDED))
    for (const { seq } of stored) numbers.push(seq)
    await pause()
  }
  return numbers
}

/** The newest page first; the messages of each page in order. No page is empty. */
export async function* newestMessagePages(
  store: Pick<SessionStore, 'readMessages'>,
  key: SessionKey,
  { beforeSeq = ALL, limit = ALL, pageSize = PAGE }: Omit<MessageRange, 'afterSeq'> = {},
): Pages<StoredMessage> {
  let left = limit
  if (left < 1) return
  const pages = readPages<StoredMessage, number>(async (before = beforeSeq) => {
    const items = await store.readMessages(key, { beforeSeq: before, limit: Math.min(pageSize, left) })
    left -= items.length
    const first = items[0]?.seq ?? 1
    return { items, next: first <= 1 || left < 1 ? undefined : first }
  })
  for await (const page of pages) if (page.length > 0) yield page
}

/** The sessions that a query finds, newest first. */
export function sessionPages(
  store: Pick<SessionStore, 'listSessions'>,
  query: Omit<ListQuery, 'cursor' | 'limit'>,
): Pages<SessionSummary> {
  return readPages<SessionSummary, string>(async cursor => {
    const { sessions, nextCursor } = await store.listSessions({
      ...query,
      limit: PAGE,
      ...defined({ cursor }),
    })
    // A page without sessions ends the list, whatever cursor comes with it.
    return { items: sessions, next: sessions.length === 0 ? undefined : nextCursor }
  })
}

/** A run of a million events is a loop that nothing has ended; reading stops there. */
const MAXIMUM_EVENT_PAGES = 1000

/** The stored events of a run, in order. */
export function runEventPages(runs: Pick<RunStore, 'readEvents'>, runId: string): Pages<RunEventRecord> {
  let pages = 0
  return readPages<RunEventRecord, number>(async (afterSeq = 0) => {
    const items = await runs.readEvents(runId, { afterSeq, limit: PAGE })
    pages += 1
    const isLast = items.length < PAGE || pages === MAXIMUM_EVENT_PAGES
    return { items, next: isLast ? undefined : items.at(-1)?.seq }
  })
}
