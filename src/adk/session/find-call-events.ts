import type { SessionKey } from '../../session/message.js'
import type { SessionStore } from '../../session/session-store.js'
import type { AdkSession, Event } from '../sdk.js'
import { adkView } from './adk-view.js'
import { messagesToEvents } from './messages-to-events.js'

/**
 * The events of calls that `event` answers and `session.events` does not hold, oldest first, read from the
 * store, and how many calls were not found. Bounded: a call further back than that is not looked for.
 */
export async function findCallEvents(
  store: SessionStore,
  session: AdkSession,
  event: Event,
  rootAgentName: string | undefined,
): Promise<{ found: Event[]; missing: number }> {
  const missing = missingCalls(session, event)
  const found: Event[] = []
  const key: SessionKey = { appName: session.appName, userId: session.userId, sessionId: session.id }
  let beforeSeq: number | undefined = Number.MAX_SAFE_INTEGER
  for (let page = 0; page < MAX_PAGES && missing.size > 0 && beforeSeq !== undefined; page += 1) {
    const messages = await store.readMessages(key, { beforeSeq, limit: PAGE_SIZE })
    for (const message of messages.toReversed()) {
      const answered = message.toolCalls?.some(call => call.kind !== 'response' && missing.has(call.id))
      if (!answered) continue
      for (const call of message.toolCalls ?? []) missing.delete(call.id)
      found.unshift(...adkView(messagesToEvents([message], { rootAgentName }), { rootAgentName }))
    }
    beforeSeq = messages.length < PAGE_SIZE ? undefined : messages[0]?.seq
  }
  return { found, missing: missing.size }
}

const PAGE_SIZE = 500
const MAX_PAGES = 20

function missingCalls(session: AdkSession, event: Event): Set<string> {
  const missing = new Set<string>()
  for (const { functionResponse } of event.content?.parts ?? []) {
    if (functionResponse?.id) missing.add(functionResponse.id)
  }
  if (missing.size === 0) return missing
  for (const { content } of session.events) {
    for (const { functionCall } of content?.parts ?? []) if (functionCall?.id) missing.delete(functionCall.id)
  }
  return missing
}
