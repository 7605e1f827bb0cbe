/** Stored messages as ADK's events, for those who speak ADK's protocol. Loads nothing of ADK. */
import type { Event } from '../adk/sdk.js'
import { restoreEvents } from '../adk/session/messages-to-events.js'
import type { SessionKey, StoredMessage } from '../session/message.js'
import type { SessionStore } from '../session/session-store.js'

export interface EventOptions {
  /** Only events of messages after this number. */
  afterSeq?: number
  /** At most the events of so many messages. Default: all. */
  limit?: number
}

/**
 * The events that were stored, one for each message, nothing merged and nothing left out. A message from
 * elsewhere that holds a call together with its answer gives two.
 */
export async function readAdkEvents(
  store: SessionStore,
  key: SessionKey,
  { afterSeq = 0, limit = Number.MAX_SAFE_INTEGER }: EventOptions,
  rootAgentName: string,
): Promise<Event[]> {
  const messages: StoredMessage[] = []
  for (let cursor = afterSeq; messages.length < limit; ) {
    const wanted = Math.min(PAGE, limit - messages.length)
    const page = await store.readMessages(key, { afterSeq: cursor, limit: wanted })
    messages.push(...page)
    cursor = page.at(-1)?.seq ?? cursor
    if (page.length < wanted) break
  }
  return restoreEvents(messages, { rootAgentName })
}

const PAGE = 1000
