import type { Context } from 'hono'
import type { Session, SessionKey } from '../../../session/message.js'
import { notFound, Refusal } from '../../refusal.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'

export interface AdkNames {
  appName: string
  userId: string
  sessionId: string
}

/** The session that a request names. Another app is not here, and another user's sessions are not the caller's. */
export function ownKey(c: Context<ServerEnv>, context: ServerContext, names: AdkNames): SessionKey {
  if (names.appName !== context.info.app) {
    throw notFound(`app "${names.appName}"; this server serves "${context.info.app}"`)
  }
  if (names.userId !== context.userOf(c)) {
    throw new Refusal('forbidden', `These sessions are not yours: you are the user "${context.userOf(c)}".`)
  }
  return context.keyOf(c, names.sessionId)
}

/** The session itself, without its messages. */
export async function ownSession({ runtime }: ServerContext, key: SessionKey): Promise<Session> {
  const session = await runtime.store.loadSession(key, { maxMessages: 1 })
  if (!session) throw notFound(`session "${key.sessionId}": create it first`)
  return session
}
