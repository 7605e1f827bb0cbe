import type { SessionKey } from './message.js'
import type { SessionStore } from './session-store.js'

export interface SessionDeletion {
  /** `false` when the session does not exist. */
  isDeleted: boolean
  /**
   * The names of the `user:` state that stays although the user has no session any more: it belongs to the user, and only
   * `erase` deletes it. Empty while the user has other sessions.
   */
  keptState: string[]
}

/** Deletes a session, and says what stays of its user. */
export async function deleteSessionOf(store: SessionStore, key: SessionKey): Promise<SessionDeletion> {
  const session = await store.loadSession(key, { budgetTokens: 'off', maxMessages: 1 })
  const isDeleted = await store.deleteSession(key)
  const stateOfUser = Object.keys(session?.state ?? {}).filter(name => name.startsWith('user:'))
  if (!isDeleted || stateOfUser.length === 0) return { isDeleted, keptState: [] }
  const { appName, userId } = key
  const { sessions } = await store.listSessions({ appName, userId, limit: 1 })
  return { isDeleted, keptState: sessions.length === 0 ? stateOfUser : [] }
}
