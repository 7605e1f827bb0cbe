import { copyJsonData } from '../base/json.js'
import type { SessionKey, StoredMessage } from '../session/message.js'
import type { EraseCounts, SessionSummary } from '../session/session-store.js'
import { storableJson } from './check-input.js'
import { isReadable, type PageCursor, PREVIEW_WINDOW, previewOf } from './listing.js'

/** A session in memory. */
export interface MemorySession {
  key: SessionKey
  nestedIn?: string | undefined
  title?: string | undefined
  pk: number
  state: Map<string, string>
  messages: StoredMessage[]
  /** The number of each message id, so that an append need not search. */
  seqById: Map<string, number>
  createdAt: number
  updatedAt: number
}

export function titled({ title }: MemorySession): { title?: string } {
  return title === undefined ? {} : { title }
}

export function summarize(session: MemorySession): SessionSummary {
  const { key, messages, createdAt, updatedAt } = session
  const last = messages.slice(-PREVIEW_WINDOW).findLast(isReadable)
  return {
    key: { ...key },
    totalMessages: messages.length,
    totalTokens: messages.reduce((all, message) => all + message.tokens, 0),
    createdAt,
    updatedAt,
    ...titled(session),
    ...(last === undefined ? {} : { preview: previewOf(last.content) }),
  }
}

export function add(counts: EraseCounts, more: Partial<EraseCounts>): void {
  for (const [kind, count] of Object.entries(more)) counts[kind as keyof EraseCounts] += count
}

export function newestFirst(one: PageCursor, other: PageCursor): number {
  return other.updatedAt - one.updatedAt || other.pk - one.pk
}

/** A message is JSON data: what JSON cannot express is not stored. */
export function clone<T>(data: T): T {
  return copyJsonData(data, value => storableJson('message', value)) as T
}
