/** Sessions for one request: made, used once, and thrown away. */
import { randomUUID } from 'node:crypto'
import { messageOf } from '../../../errors.js'
import type { Message, SessionKey } from '../../../session/message.js'
import type { ServerContext } from '../../server-context.js'

const PREFIX = 'throwaway-'
const TITLE = 'A request without a session'
/** Far longer than a request lives. */
const OLD_MS = 6 * 60 * 60 * 1000

/** A name for a session that nobody will come back to. */
export function throwawayId(): string {
  return `${PREFIX}${randomUUID()}`
}

/** Makes a session that begins with these messages. */
export async function fillSession(
  { runtime: { store } }: ServerContext,
  key: SessionKey,
  messages: readonly Message[],
): Promise<void> {
  await store.createSession(key, {}, { title: TITLE })
  for (const message of messages) await store.appendMessage(key, message)
}

/** Removes a session after its one run. Never fails: it is nobody's any more, and is swept away later. */
export async function throwAway({ runtime, logger }: ServerContext, key: SessionKey): Promise<void> {
  try {
    await runtime.store.deleteSession(key)
  } catch (error) {
    logger.warn('A throwaway session could not be removed', { ...key, error: messageOf(error) })
  }
}

/** Removes what a process that died has left. Those of other processes are young. */
export async function sweepThrowaways({ runtime: { store }, info, logger }: ServerContext): Promise<void> {
  try {
    const { sessions } = await store.listSessions({ appName: info.app, search: PREFIX, limit: 1000 })
    const before = Date.now() - OLD_MS
    for (const { key, title, updatedAt } of sessions) {
      // A session that a person has named is nobody's to remove.
      const isOurs = key.sessionId.startsWith(PREFIX) && title === TITLE
      if (isOurs && updatedAt < before) await store.deleteSession(key)
    }
  } catch (error) {
    logger.warn('Old throwaway sessions could not be removed', { error: messageOf(error) })
  }
}
