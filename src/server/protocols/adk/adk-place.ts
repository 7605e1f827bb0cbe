/** The session that a request of ADK's names. */
import type { Context } from 'hono'
import type { Session, SessionKey } from '../../../session/message.js'
import { notFound, Refusal } from '../../refusal.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'

interface AdkNames {
  appName: string
  userId: string
  sessionId: string
}

/** The session that a request names. It must be of this app and of the caller. */
export function ownKey(c: Context<ServerEnv>, context: ServerContext, names: AdkNames): SessionKey {
  if (names.appName !== context.info.app) {
    throw notFound(`app "${names.appName}"; this server serves "${context.info.app}"`)
  }
  if (names.userId !== context.userOf(c)) {
    throw new Refusal('forbidden', `These sessions belong to another user: you are "${context.userOf(c)}".`)
  }
  return context.keyOf(c, names.sessionId)
}

/** The session itself, without its messages. */
export async function ownSession({ runtime }: ServerContext, key: SessionKey): Promise<Session> {
  const session = await runtime.store.loadSession(key, { maxMessages: 1 })
  if (!session) throw notFound(`session "${key.sessionId}": create it first`)
  return session
}
