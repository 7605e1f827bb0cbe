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
  readonly #store: SessionStore
  readonly #fence: number | undefined
  #key: string | undefined

  constructor(store: SessionStore, fence: Fence | undefined) {
    this.#store = store
    const bound = typeof fence === 'object' && 'key' in fence ? fence : undefined
    const given = bound ? bound.fence : (fence as number | Lease | undefined)
    this.#fence = typeof given === 'object' ? given.fence : given
    if (bound) this.#key = nameOf(bound.key)
  }

  /** The first session that is used owns a fence that came without a key. */
  claim(key: SessionKey): void {
    if (this.#fence !== undefined) this.#key ??= nameOf(key)
  }

  /** The session that the fence belongs to has another app: then that app, in whose run this one is nested. */
  nestedIn(key: SessionKey): string | undefined {
    const owner = this.#key === undefined ? undefined : (JSON.parse(this.#key) as string[])
    if (!owner || owner[0] === key.appName || owner[1] !== key.userId || owner[2] !== key.sessionId)
      return undefined
    return owner[0]
  }

  async write(key: SessionKey, write: FencedWrite): Promise<unknown> {
    this.claim(key)
    if (this.#fence === undefined) return write({})
    if (this.#key === nameOf(key)) return write({ fence: this.#fence })
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

function nameOf(key: SessionKey): string {
  return JSON.stringify([key.appName, key.userId, key.sessionId])
}
