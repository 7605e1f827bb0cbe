/**
 * Leases by tickets, for every store. A writer takes a ticket; the lowest ticket holds the lease, and its number is
 * the fence. An expired ticket is deleted when the lease is granted to the next one, and not before: a holder that
 * was late, and whose lease nobody took, renews it and continues. Waiting tickets are renewed like held ones, so a
 * crashed waiter's ticket expires and the queue keeps moving.
 */

import { within } from '../base/pause.js'
import { AgentError, invariant } from '../errors.js'
import type { SessionKey } from '../session/message.js'
import type { OpenedRun } from '../session/run-store.js'
import type { Lease, LeaseOptions } from '../session/session-store.js'

/**
 * Where tickets are stored. Whether one has expired is decided by the store's own clock. A ticket that is valid for
 * longer than its time was stored before the clock was set back: it gets its time, counted from when that is noticed.
 */
export interface TicketStore {
  /** A new ticket, after all existing ones. */
  take(key: SessionKey, ttlMs: number): Promise<number>
  /**
   * Whether the ticket is the lowest. Deletes lower ones that have expired: their holders find them gone. `isNew` says
   * that the ticket has just been taken: most are then first.
   */
  isFirst(key: SessionKey, ticket: number, isNew: boolean): Promise<boolean>
  /** Extends tickets by their time, expired ones too, and returns those that still exist. */
  renew(tickets: readonly number[]): Promise<ReadonlySet<number>>
  giveBack(key: SessionKey, ticket: number): Promise<void>
}

/**
 * An attempt to open a run. With `seq` it was opened under the ticket; with `ticket` alone it waits for its turn. An
 * `answer` ends the attempt without a lease. `busy`: queued runs come first, and the ticket was given back.
 */
export type OpeningAttempt = { ticket: number; seq?: number } | { answer: OpenedRun } | 'busy'

/** The two ways to open a run: with a new ticket, and with one that had to wait. */
export interface OpeningAttempts {
  open(ttlMs: number): Promise<OpeningAttempt>
  begin(ticket: number): Promise<OpeningAttempt>
}

/** Takes a ticket in a transaction of the caller's own, or none. */
type TakeTicket = (ttlMs: number) => Promise<{ ticket: number; isFirst: boolean } | undefined>

/** The leases and waiters of one open store. */
export class LeaseHolder {
  readonly #tickets: TicketStore
  readonly #held = new Set<HeldLease>()
  readonly #wakers = new Set<() => void>()
  #timer: NodeJS.Timeout | undefined
  /** When the timer fires. */
  #timerAt = Number.POSITIVE_INFINITY
  #closed = false

  constructor(tickets: TicketStore) {
    this.#tickets = tickets
  }

  async acquire(key: SessionKey, options: LeaseOptions): Promise<Lease> {
    const take = async (ttlMs: number) => ({ ticket: await this.#tickets.take(key, ttlMs), isFirst: false })
    const lease = await this.#acquire(key, options, take)
    invariant(lease !== undefined, 'a ticket is always taken')
    return lease
  }

  /** Opens a run when its turn has come: when the lease is free, and no queued run comes first. */
  async openRun(key: SessionKey, options: LeaseOptions, attempts: OpeningAttempts): Promise<OpenedRun> {
    const { waitMs = 0, signal } = options
    const deadline = performance.now() + waitMs
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      const leftBefore = Math.max(0, deadline - performance.now())
      const opened = await this.#tryToOpen(key, { ...options, waitMs: leftBefore }, attempts)
      if (opened !== undefined) return opened
      if (this.#closed) throw closedWhileWaiting(key)
      const leftMs = deadline - performance.now()
      if (leftMs <= 0)
        throw busy(key, waitMs, 'A run that waits for a person, or in the queue, comes first in')
      await this.#pause(Math.min(pauseMs, leftMs), signal)
    }
  }

  /** `undefined` when queued runs come first. */
  async #tryToOpen(
    key: SessionKey,
    options: LeaseOptions,
    { open, begin }: OpeningAttempts,
  ): Promise<OpenedRun | undefined> {
    let attempt: OpeningAttempt = 'busy'
    const lease = await this.#acquire(key, options, async ttlMs => {
      attempt = await open(ttlMs)
      return attempt === 'busy' || 'answer' in attempt
        ? undefined
        : { ticket: attempt.ticket, isFirst: attempt.seq !== undefined }
    })
    if (lease === undefined) return outcomeOf(attempt)
    const opened = outcomeOf(attempt, lease)
    if (opened !== undefined) return opened
    try {
      const begun = outcomeOf(await begin(lease.fence), lease)
      if (begun === undefined || !('lease' in begun)) await lease.release()
      return begun
    } catch (error) {
      await lease.release().catch(() => {})
      throw error
    }
  }

  /** `take` may do more than taking a ticket, and know at once that it is the first. */
  async #acquire(key: SessionKey, options: LeaseOptions, take: TakeTicket): Promise<Lease | undefined> {
    const { ttlMs = 10_000, waitMs = 0, signal } = options
    const deadline = performance.now() + waitMs
    for (let attempt = 1; ; attempt++) {
      throwIfAborted(signal, key)
      const taken = await take(ttlMs)
      if (taken === undefined) return undefined
      const { ticket, isFirst } = taken
      const lease: HeldLease = new HeldLease(this.#tickets, key, ticket, ttlMs, () => this.#forget(lease))
      this.#held.add(lease)
      this.#wakeAt(lease.dueAt)
      try {
        if (isFirst || (await this.#untilFirst(lease, deadline, options))) return lease
      } catch (error) {
        // If that fails as well, the ticket expires by itself; the first error is the one to report.
        await lease.release().catch(() => {})
        throw error
      }
      if (lease.revoked) throw lease.lost.reason
      // The ticket expired before it could be renewed: take a new one at the end of the queue, if there is time.
      // On a machine that stalls this can happen before the first check, so a few attempts are made in any case.
      if (attempt >= LEAST_ATTEMPTS && performance.now() >= deadline) throw busy(key, waitMs)
    }
  }

  /** Returns every ticket and wakes every waiter, which then fails. */
  async close(): Promise<void> {
    this.#closed = true
    const given = Promise.allSettled(Array.from(this.#held, lease => lease.abandon()))
    // A store that does not answer must not block closing; the tickets expire by themselves.
    await within(CLOSE_TIMEOUT_MS, given)
    this.#wakeAll()
  }

  /** `false` when the ticket was lost while waiting. */
  async #untilFirst(
    lease: HeldLease,
    deadline: number,
    { waitMs = 0, signal }: LeaseOptions,
  ): Promise<boolean> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      throwIfAborted(signal, lease.key)
      if (this.#closed) throw closedWhileWaiting(lease.key)
      const isNew = pauseMs === FIRST_PAUSE_MS
      if (await this.#tickets.isFirst(lease.key, lease.fence, isNew)) return true
      if (lease.lost.aborted) return false
      const leftMs = deadline - performance.now()
      if (leftMs <= 0) throw busy(lease.key, waitMs === 0 ? 0 : Math.round(waitMs - leftMs))
      await this.#pause(Math.min(pauseMs, leftMs), signal)
    }
  }

  /** Resolves when the time is over, a lease of this store is released, or the signal fires. */
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

  /** One timer for all leases, for the one that is due first. */
  #schedule(): void {
    let dueAt = Number.POSITIVE_INFINITY
    for (const lease of this.#held) dueAt = Math.min(dueAt, lease.dueAt)
    this.#wakeAt(dueAt)
  }

  /** Lets the timer fire at that time, or earlier: leases that have ended are not searched for. */
  #wakeAt(dueAt: number): void {
    if (dueAt >= this.#timerAt) return
    clearTimeout(this.#timer)
    this.#timerAt = dueAt
    this.#timer = setTimeout(() => void this.#renewDue(), Math.max(1, dueAt - performance.now()))
    // A lease must not keep an otherwise idle process running.
    this.#timer.unref()
  }

  /** Renews in one statement what is due, and what will be soon. */
  async #renewDue(): Promise<void> {
    this.#timerAt = Number.POSITIVE_INFINITY
    const now = performance.now()
    const due = [...this.#held].filter(lease => lease.dueAt - lease.ttlMs / 6 <= now)
    for (const lease of due) lease.dueAt = Number.POSITIVE_INFINITY
    this.#schedule()
    try {
      const kept = due.length === 0 ? undefined : await this.#tickets.renew(due.map(({ fence }) => fence))
      for (const lease of due) lease.answered(kept?.has(lease.fence) ?? false, now)
    } catch {
      for (const lease of due) lease.retry()
    }
    this.#schedule()
  }

  #wakeAll(): void {
    for (const wake of [...this.#wakers]) wake()
  }
}

const LEAST_ATTEMPTS = 3
/** How long a store may take to answer, at least: its machine may be as busy as this process. */
const LEAST_ANSWER_MS = 3000
const FIRST_PAUSE_MS = 4
const LONGEST_PAUSE_MS = 100
const CLOSE_TIMEOUT_MS = 2000

class HeldLease implements Lease {
  readonly key: SessionKey
  readonly fence: number
  readonly ttlMs: number
  /** When to renew it next; never while it is being renewed. */
  dueAt: number
  readonly #tickets: TicketStore
  readonly #onEnd: () => void
  readonly #lost = new AbortController()
  #renewedAt = performance.now()
  #deadline: NodeJS.Timeout | undefined
  #ended = false
  #revoked = false

  constructor(tickets: TicketStore, key: SessionKey, ticket: number, ttlMs: number, onEnd: () => void) {
    this.#tickets = tickets
    this.key = key
    this.fence = ticket
    this.ttlMs = ttlMs
    this.#onEnd = onEnd
    this.dueAt = this.#renewedAt + ttlMs / 3
    this.#watch()
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  /** Whether the ticket was deleted before it expired. */
  get revoked(): boolean {
    return this.#revoked
  }

  /** Ends the lease here in any case: a ticket that could not be returned expires by itself. */
  async release(): Promise<void> {
    if (this.#ended) return
    this.#end()
    try {
      await this.#tickets.giveBack(this.key, this.fence)
    } finally {
      this.#onEnd()
    }
  }

  released(): void {
    if (this.#ended) return
    this.#end()
    this.#onEnd()
  }

  /** As `release`, and aborts `lost`: the store is closing. */
  async abandon(): Promise<void> {
    this.#lose('its store was closed')
    await this.release()
  }

  /** The store's answer to a renewal. */
  answered(isKept: boolean, askedAt: number): void {
    if (this.#ended) return
    if (!isKept) {
      // A ticket that is gone before its time was deleted, with its session.
      this.#revoked = this.#leftMs() > 0
      this.#expire(
        this.#revoked
          ? 'the session was deleted'
          : 'it expired, and another writer took it or the session was deleted',
      )
      return
    }
    this.#renewedAt = askedAt
    this.dueAt = askedAt + this.ttlMs / 3
    this.#watch()
  }

  /** A renewal failed: the store may be available again before the lease expires. */
  retry(): void {
    this.dueAt = performance.now() + Math.max(1, Math.min(this.ttlMs / 10, this.#leftMs()))
  }

  #leftMs(): number {
    return this.#renewedAt + this.ttlMs - performance.now()
  }

  #watch(): void {
    clearTimeout(this.#deadline)
    this.#deadline = setTimeout(
      // After a stall the answer to a renewal may already be queued: it is handled first.
      () => setImmediate(() => void this.#askOnce()),
      Math.max(1, Math.ceil(this.#leftMs())),
    )
    this.#deadline.unref()
  }

  /**
   * The time is over, perhaps only because this process was busy: the store says whether another writer took the
   * lease. When it fails, or does not answer for a while, the lease ends here.
   */
  async #askOnce(): Promise<void> {
    if (this.#ended) return
    // Timers may fire early, and a renewal may have succeeded meanwhile.
    if (this.#leftMs() > 0) {
      this.#watch()
      return
    }
    const askedAt = performance.now()
    let isAnswered = false
    const asking = this.#tickets.renew([this.fence]).then(
      kept => {
        isAnswered = true
        this.answered(kept.has(this.fence), askedAt)
      },
      () => {},
    )
    await within(Math.max(this.ttlMs, LEAST_ANSWER_MS), asking)
    if (isAnswered || this.#ended || this.#leftMs() > 0) return
    this.#expire('it could not be renewed in time')
    // The renewal may have succeeded with only its answer missing.
    this.#tickets.giveBack(this.key, this.fence).catch(() => {})
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
    this.dueAt = Number.POSITIVE_INFINITY
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

/** What an attempt leads to; `undefined` when it has stored nothing yet. */
function outcomeOf(attempt: OpeningAttempt, lease?: Lease): OpenedRun | undefined {
  if (attempt === 'busy') return undefined
  if ('answer' in attempt) return attempt.answer
  return attempt.seq === undefined || lease === undefined ? undefined : { lease, seq: attempt.seq }
}

function busy(key: SessionKey, waitMs: number, why = 'Another writer holds the lease of'): AgentError {
  const waited = waitMs < 1 ? '' : ` after waiting ${waitMs} ms`
  return new AgentError(
    'session-busy',
    `${why} ${nameOf(key)}${waited}: try again later, or wait longer with waitMs`,
    { retryable: true, details: { ...key } },
  )
}
