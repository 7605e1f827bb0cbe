/** Variants of chats in memory, and which sessions belong to another one. */
import type { SessionKey } from '../session/message.js'
import type { SessionVariants, VariantSummary } from '../session/session-store.js'
import type { MemorySession } from './memory-sessions.js'

interface Places {
  sessions: () => Iterable<MemorySession>
  /** The session. `session-not-found`. */
  existing: (key: SessionKey) => MemorySession
}

export class MemoryVariants implements SessionVariants {
  readonly #places: Places

  constructor(places: Places) {
    this.#places = places
  }

  async list(key: SessionKey): Promise<VariantSummary[]> {
    return this.#group(key).map(session => ({
      sessionId: session.key.sessionId,
      totalMessages: session.messages.length,
      createdAt: session.createdAt,
      isListed: session.variantOf === undefined,
    }))
  }

  async show(key: SessionKey, of: string): Promise<void> {
    const group = this.#group({ ...key, sessionId: of })
    const chosen = this.#places.existing(key)
    const others = group.filter(session => session !== chosen)
    const listed = others.find(session => session.variantOf === undefined)
    if (!listed) return
    for (const session of others) session.variantOf = key.sessionId
    chosen.variantOf = undefined
    chosen.title = listed.title
    chosen.updatedAt = Math.max(chosen.updatedAt, listed.updatedAt)
  }

  #group(key: SessionKey): MemorySession[] {
    const { variantOf = key.sessionId } = this.#places.existing(key)
    const listed = this.#places.existing({ ...key, sessionId: variantOf })
    const all = [listed, ...variantsOf(this.#places.sessions(), listed.key)]
    return all.sort((one, other) => one.createdAt - other.createdAt || one.pk - other.pk)
  }
}

/** Sessions that are deleted with another one: those nested in it, and the other variants of a chat that it is listed for. */
export function belongingTo(sessions: Iterable<MemorySession>, key: SessionKey): MemorySession[] {
  const all = [...sessions]
  const nested = all.filter(
    ({ key: { userId, sessionId }, nestedIn }) =>
      nestedIn === key.appName && userId === key.userId && sessionId === key.sessionId,
  )
  return [...nested, ...variantsOf(all, key)]
}

/** Whether a session is listed, and neither it nor a variant of it was used since a time. */
export function isChatBefore(
  session: MemorySession,
  sessions: Iterable<MemorySession>,
  before: number,
): boolean {
  if (!isListed(session)) return false
  return [session, ...variantsOf(sessions, session.key)].every(({ updatedAt }) => updatedAt < before)
}

export function isListed({ nestedIn, variantOf }: MemorySession): boolean {
  return nestedIn === undefined && variantOf === undefined
}

function variantsOf(sessions: Iterable<MemorySession>, key: SessionKey): MemorySession[] {
  return [...sessions].filter(
    ({ key: { appName, userId }, variantOf }) =>
      variantOf === key.sessionId && appName === key.appName && userId === key.userId,
  )
}
