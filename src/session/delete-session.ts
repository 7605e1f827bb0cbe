import { AgentError } from '../errors.js'
import type { SessionKey, State } from './message.js'
import type { SessionStore } from './session-store.js'

export interface SessionDeletion {
  /** `false` when the session does not exist. */
  isDeleted: boolean
  /**
   * The names of the `user:` state that stays although the user has no session any more: it belongs to the user, and only
   * `erase` deletes it. Empty while the user has other sessions, and for a damaged session.
   */
  keptState: string[]
}

/** Deletes a session, and says what stays of its user. */
export async function deleteSessionOf(store: SessionStore, key: SessionKey): Promise<SessionDeletion> {
  const state = await stateOf(store, key)
  const isDeleted = await store.deleteSession(key)
  const stateOfUser = Object.keys(state).filter(name => name.startsWith('user:'))
  if (!isDeleted || stateOfUser.length === 0) return { isDeleted, keptState: [] }
  const { appName, userId } = key
  const { sessions } = await store.listSessions({ appName, userId, limit: 1 })
  return { isDeleted, keptState: sessions.length === 0 ? stateOfUser : [] }
}

/** The state of a session; nothing when its messages are damaged: such a session can be deleted as well. */
async function stateOf(store: SessionStore, key: SessionKey): Promise<State> {
  try {
    return (await store.loadSession(key, { budgetTokens: 'off', maxMessages: 1 }))?.state ?? {}
  } catch (error) {
    if (error instanceof AgentError && error.code === 'store-corrupt') return {}
    throw error
  }
}
