/**
 * Leases by tickets, the same on every store. Whoever wants to write takes a ticket; the lowest ticket that
 * has not expired holds the lease, and its number is the fence. Waiting tickets are renewed like held ones,
 * so a waiter that dies loses its place and nobody waits for the dead.
 */

import { AgentError } from '../errors.js'
import type { SessionKey } from '../session/message.js'
import type { Lease, LeaseOptions } from '../session/session-store.js'

/** Where tickets are kept. Every decision is made by the store's own clock. */
export interface TicketDesk {
  /** A new ticket, behind all that are there. */
  take(key: SessionKey, ttlMs: number): Promise<number>
  /** Whether the ticket is the lowest that lives. */
  isFirst(key: SessionKey, ticket: number): Promise<boolean>
  /** Prolongs a ticket that lives; `false` when it has expired or is gone. An expired ticket never comes back. */
  renew(key: SessionKey, ticket: number, ttlMs: number): Promise<boolean>
  giveBack(key: SessionKey, ticket: number): Promise<void>
}

/** The leases and waiters of one open store. */
export class LeaseHolder {
  readonly #desk: TicketDesk
  readonly #held = new Set<HeldLease>()
  readonly #wakers = new Set<() => void>()
  #closed = false

  constructor(desk: TicketDesk) {
    this.#desk = desk
  }

  async acquire(key: SessionKey, options: LeaseOptions): Promise<Lease> {
    const { ttlMs = 10_000, waitMs = 0, signal } = options
    const deadline = performance.now() + waitMs
    for (let attempt = 1; ; attempt++) {
      throwIfAborted(signal, key)
      const ticket = await this.#desk.take(key, ttlMs)
      const lease: HeldLease = new HeldLease(this.#desk, key, ticket, ttlMs, () => this.#forget(lease))
      this.#held.add(lease)
      try {
        if (await this.#untilFirst(lease, deadline, signal)) return lease
      } catch (error) {
        // Should giving back fail as well, the ticket expires by itself; the first error is the one that tells.
        await lease.release().catch(() => {})
        throw error
      }
      // The ticket expired while its owner could not renew it: back to the end of the line, if there is time.
      // On a machine that stalls that can happen before anyone has looked, so it is not yet a refusal.
      if (attempt >= LEAST_ATTEMPTS && performance.now() >= deadline) throw busy(key, waitMs)
    }
  }

  /** Gives every ticket back and wakes every waiter, which then fails. */
  async close(): Promise<void> {
    this.#closed = true
    const given = Promise.allSettled(Array.from(this.#held, lease => lease.abandon()))
    // A store that does not answer must not keep its owner from closing; the tickets expire by themselves.
    await within(CLOSE_PATIENCE_MS, given)
    this.#wakeAll()
  }

  /** `false` when the ticket was lost on the way. */
  async #untilFirst(lease: HeldLease, deadline: number, signal: AbortSignal | undefined): Promise<boolean> {
    const since = performance.now()
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      throwIfAborted(signal, lease.key)
      if (this.#closed) throw closedWhileWaiting(lease.key)
      if (await this.#desk.isFirst(lease.key, lease.fence)) return true
      if (lease.lost.aborted) return false
      const leftMs = deadline - performance.now()
      if (leftMs <= 0) throw busy(lease.key, Math.round(performance.now() - since))
      await this.#pause(Math.min(pauseMs, leftMs), signal)
    }
  }

  /** Until the time is over, a lease of this store is released, or the signal fires. */
  #pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise(resolve => {
      const wake = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', wake)
        this.#wakers.delete(wake)
        resolve()
      }
      const timer = setTimeout(wake, ms)
      signal?.addEventListener('abort', wake, { once: true })
      this.#wakers.add(wake)
    })
  }

  #forget(lease: HeldLease): void {
    this.#held.delete(lease)
    this.#wakeAll()
  }

  #wakeAll(): void {
    for (const wake of [...this.#wakers]) wake()
  }
}

const LEAST_ATTEMPTS = 3
const FIRST_PAUSE_MS = 4
const LONGEST_PAUSE_MS = 100
const CLOSE_PATIENCE_MS = 2000

class HeldLease implements Lease {
  readonly key: SessionKey
  readonly fence: number
  readonly #desk: TicketDesk
  readonly #ttlMs: number
  readonly #onEnd: () => void
  readonly #lost = new AbortController()
  #renewedAt = performance.now()
  #timer: NodeJS.Timeout | undefined
  #deadline: NodeJS.Timeout | undefined
  #ended = false

  constructor(desk: TicketDesk, key: SessionKey, ticket: number, ttlMs: number, onEnd: () => void) {
    this.#desk = desk
    this.key = key
    this.fence = ticket
    this.#ttlMs = ttlMs
    this.#onEnd = onEnd
    this.#schedule(ttlMs / 3)
    this.#watch()
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  /** Ends the lease here in any case: a ticket that could not be given back expires by itself. */
  async release(): Promise<void> {
    if (this.#ended) return
    this.#end()
    try {
      await this.#desk.giveBack(this.key, this.fence)
    } finally {
      this.#onEnd()
    }
  }

  /** As `release`, and tells the holder: its store is going away. */
  async abandon(): Promise<void> {
    this.#lose('its store was closed')
    await this.release()
  }

  #schedule(ms: number): void {
    this.#timer = setTimeout(() => void this.#renew(), Math.max(1, ms))
    // A lease must not keep a process alive that has nothing else to do.
    this.#timer.unref()
  }

  /** A renewal may neither succeed nor fail: the holder is told on time all the same. */
  #watch(): void {
    clearTimeout(this.#deadline)
    this.#deadline = setTimeout(
      () => {
        // After a stall the answer to a renewal may be waiting: it is read first.
        setImmediate(() => {
          if (this.#ended || this.#leftMs() > 0) return
          this.#expire('it could not be renewed in time')
          // The renewal may have arrived and only its answer be missing.
          this.#desk.giveBack(this.key, this.fence).catch(() => {})
        })
      },
      Math.max(1, Math.ceil(this.#leftMs())),
    )
    this.#deadline.unref()
  }

  #leftMs(): number {
    return this.#renewedAt + this.#ttlMs - performance.now()
  }

  async #renew(): Promise<void> {
    const askedAt = performance.now()
    try {
      const alive = await this.#desk.renew(this.key, this.fence, this.#ttlMs)
      if (this.#ended) return
      if (!alive) return this.#expire('it expired or was taken away')
      this.#renewedAt = askedAt
      this.#schedule(this.#ttlMs / 3)
      this.#watch()
    } catch {
      if (this.#ended) return
      // The store may be back before the lease runs out; after that, another may hold it.
      const leftMs = this.#leftMs()
      if (leftMs <= 0) return this.#expire('it could not be renewed in time')
      this.#schedule(Math.min(this.#ttlMs / 10, leftMs))
    }
  }

  #expire(why: string): void {
    this.#lose(why)
    this.#end()
    this.#onEnd()
  }

  #lose(why: string): void {
    if (this.#ended) return
    this.#lost.abort(new AgentError('lease-lost', `The lease of ${nameOf(this.key)} was lost: ${why}`))
  }

  #end(): void {
    this.#ended = true
    clearTimeout(this.#timer)
    clearTimeout(this.#deadline)
  }
}

/** How errors name a session. */
export function nameOf(key: SessionKey): string {
  return `session "${key.sessionId}" of user "${key.userId}" in app "${key.appName}"`
}

function throwIfAborted(signal: AbortSignal | undefined, key: SessionKey): void {
  if (!signal?.aborted) return
  throw new AgentError('aborted', `Waiting for the lease of ${nameOf(key)} was aborted`, {
    cause: signal.reason,
  })
}

function closedWhileWaiting(key: SessionKey): AgentError {
  return new AgentError(
    'store-unavailable',
    `The store was closed while waiting for the lease of ${nameOf(key)}`,
  )
}

function busy(key: SessionKey, waitMs: number): AgentError {
  const waited = waitMs < 1 ? '' : ` after waiting ${waitMs} ms`
  return new AgentError(
    'session-busy',
    `Another writer holds the lease of ${nameOf(key)}${waited}: try again later, or wait longer with waitMs`,
    { retryable: true, details: { ...key } },
  )
}

/** Waits for the promise, but not longer than the time. */
export function within(ms: number, promise: Promise<unknown>): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, ms)
    const done = () => {
      clearTimeout(timer)
      resolve()
    }
    promise.then(done, done)
  })
}
