/** The right to write to one session, and what holds for other sessions. */
import { AgentError } from '../../errors.js'
import type { SessionKey } from '../../session/message.js'
import type { Lease, SessionStore } from '../../session/session-store.js'

/** A lease, its number, or either together with the session that it belongs to. */
export type Fence = number | Lease | { key: SessionKey; fence: number | Lease }

/**
 * Which fence to write with. The fence that was given counts for its own session alone. Other sessions are
 * written without one; only when somebody else holds such a session does the write wait for a lease of its
 * own, held for that one write. Holding it longer would need an end that ADK never announces for a nested run.
 */
export class SessionFence {
  readonly #store: Pick<SessionStore, 'acquireLease'>
  readonly #fence: number | undefined
  #key: SessionKey | undefined

  constructor(store: Pick<SessionStore, 'acquireLease'>, fence: Fence | undefined) {
    this.#store = store
    const bound = typeof fence === 'object' && 'key' in fence ? fence : undefined
    const given = bound ? bound.fence : (fence as number | Lease | undefined)
    this.#fence = typeof given === 'object' ? given.fence : given
    this.#key = bound?.key
  }

  /** The first session that is used owns a fence that came without a key. */
  claim(key: SessionKey): void {
    if (this.#fence !== undefined) this.#key ??= key
  }

  /** The session that the fence belongs to has another app: then that app, in whose run this one is nested. */
  nestedIn(key: SessionKey): string | undefined {
    const owner = this.#key
    const isNested = owner?.userId === key.userId && owner.sessionId === key.sessionId
    return isNested && owner.appName !== key.appName ? owner.appName : undefined
  }

  /** Whether a session of the store is nested in the session that the fence belongs to. */
  isNested(key: SessionKey): boolean {
    const owner = this.#key
    const isInside = owner?.userId === key.userId && owner.sessionId === key.sessionId
    return isInside && key.appName.startsWith(`${owner.appName}/`)
  }

  /** Whether the fence belongs to that session. */
  owns(key: SessionKey): boolean {
    const owner = this.#key
    return owner?.appName === key.appName && owner.userId === key.userId && owner.sessionId === key.sessionId
  }

  write(key: SessionKey, write: FencedWrite): Promise<unknown> | undefined {
    this.claim(key)
    if (this.#fence === undefined) return write({})
    return this.owns(key) ? write({ fence: this.#fence }) : this.#writeElsewhere(key, write)
  }

  async #writeElsewhere(key: SessionKey, write: FencedWrite): Promise<unknown> {
    try {
      return await write({})
    } catch (error) {
      if (!(error instanceof AgentError) || error.code !== 'session-busy') throw error
      return this.#writeUnderLease(key, write)
    }
  }

  async #writeUnderLease(key: SessionKey, write: FencedWrite): Promise<unknown> {
    const lease = await this.#store.acquireLease(key, { waitMs: NESTED_WAIT_MS })
    try {
      return await write({ fence: lease.fence })
    } finally {
      await lease.release()
    }
  }
}

type FencedWrite = (options: { fence?: number }) => Promise<unknown> | undefined

const NESTED_WAIT_MS = 30_000
