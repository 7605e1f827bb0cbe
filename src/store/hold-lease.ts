/**
 * The leases of one open store, and the writers that wait for one. A lease is renewed every third of its time, all of
 * them with one statement. A holder that was late, and whose lease was not taken, renews it and continues.
 *
 * Waiting writers of a session stand in a line, and only the first one attempts to get the lease: first come, first
 * served. The line is in memory: while a lease is held through another store, the first one polls.
 */

import { within } from '../base/pause.js'
import { AgentError } from '../errors.js'
import type { GrantedLease, LeaseRequest, LogLease, RefusingLease } from '../session/log-store.js'
import type { SessionKey } from '../session/message.js'
import type { OpenedRun } from '../session/run-store.js'
import type { Lease, LeaseOptions } from '../session/session-store.js'
import { isGone, thisProcess } from './lease-process.js'
import { keyText } from './log/log-rows.js'
import { Waiter, WaitingLines } from './waiting-lines.js'

/** The leases of a store. The store's own clock decides when they expire. */
export interface LeaseTable {
  /** One attempt. */
  acquire(key: SessionKey, lease: LeaseRequest): Promise<GrantedLease | RefusingLease>
  /** Extends leases by their time, expired ones too, and returns the fences of those that still exist. */
  renew(leases: readonly LogLease[]): Promise<ReadonlySet<number>>
  release(lease: LogLease): Promise<void>
}

/**
 * One attempt to open a run. `lease`: it has begun under this lease. `answer`: the outcome without a lease. `busy`: the
 * session is not free, or other runs come first; the lease if one is the reason.
 */
export type OpeningAttempt =
  | { lease: GrantedLease; seq: number; previousRunId?: string }
  | { answer: OpenedRun }
  | { busy: RefusingLease | undefined }

type Refused = Extract<OpeningAttempt, { busy: unknown }>
type Attempt<T> = (request: LeaseRequest) => Promise<{ done: T } | Refused>

/** The leases and waiters of one open store. */
export class LeaseHolder {
  readonly #table: LeaseTable
  readonly #held = new Set<HeldLease>()
  readonly #lines = new WaitingLines()
  #timer: NodeJS.Timeout | undefined
  /** When the timer fires. */
  #timerAt = Number.POSITIVE_INFINITY
  #closed = false

  constructor(table: LeaseTable) {
    this.#table = table
  }

  acquire(key: SessionKey, options: LeaseOptions): Promise<Lease> {
    return this.#inTurn(key, options, false, async request => {
      const answer = await this.#table.acquire(key, request)
      return 'fence' in answer ? { done: this.#hold(answer, request.ttlMs) } : { busy: answer }
    })
  }

  /** Attempts once before its turn, too: the run may be known, or be queued if it cannot begin. */
  openRun(
    key: SessionKey,
    options: LeaseOptions,
    attempt: (lease: LeaseRequest) => Promise<OpeningAttempt>,
  ): Promise<OpenedRun> {
    return this.#inTurn(key, options, true, async request => {
      const opened = await attempt(request)
      if ('busy' in opened) return opened
      if ('answer' in opened) return { done: opened.answer }
      return { done: { ...opened, lease: this.#hold(opened.lease, request.ttlMs) } }
    })
  }

  /** Releases every lease and wakes every waiter, which then fails. */
  async close(): Promise<void> {
    this.#closed = true
    const released = Promise.allSettled(Array.from(this.#held, lease => lease.abandon()))
    // A store that does not answer must not block closing; the leases expire by themselves.
    await within(CLOSE_TIMEOUT_MS, released)
    this.#lines.wakeAll()
  }

  /** Makes attempts while it is first in its line, until one succeeds or the time is over. */
  async #inTurn<T>(
    key: SessionKey,
    { ttlMs = 10_000, waitMs = 0, signal }: LeaseOptions,
    isAtOnce: boolean,
    attempt: Attempt<T>,
  ): Promise<T> {
    const startedAt = performance.now()
    const name = keyText(key)
    const waiter = new Waiter()
    let pollMs = FIRST_POLL_MS
    try {
      for (let mayAttempt = isAtOnce; ; mayAttempt = false) {
        throwIfAborted(signal, key)
        if (waitMs > 0) this.#lines.join(name, waiter)
        const first = this.#lines.first(name)
        let refused: Refused = BEHIND_OTHERS
        const isFirst = waitMs > 0 ? first === waiter : !first?.isRefused
        if (isFirst || mayAttempt) {
          const outcome = await pastGone(attempt, { ttlMs, holder: thisProcess().holder })
          if ('done' in outcome) return outcome.done
          refused = outcome
        }
        const waitedMs = performance.now() - startedAt
        if (waitedMs >= waitMs) throw busy(key, waitMs === 0 ? 0 : Math.round(waitedMs), refused)
        waiter.isRefused = refused.busy !== undefined
        // The runs that come first need the lease: who begins them may be in the line.
        if (!waiter.isRefused) this.#lines.leave(name, waiter)
        const isPolling = !waiter.isRefused || (isFirst && !this.#isHeld(name))
        await waiter.pause(Math.min(isPolling ? pollMs : waitMs, waitMs - waitedMs), signal)
        if (isPolling) pollMs = Math.min(pollMs * 2, LONGEST_POLL_MS)
        if (this.#closed) throw closedWhileWaiting(key)
        if (waiter.failure) throw waiter.failure
      }
    } finally {
      this.#lines.leave(name, waiter)
    }
  }

  #hold(granted: GrantedLease, ttlMs: number): HeldLease {
    if (this.#closed) {
      this.#table.release(granted).catch(() => {})
      throw closedWhileWaiting(granted.key)
    }
    const lease: HeldLease = new HeldLease(this.#table, granted, ttlMs, () => this.#forget(lease))
    this.#held.add(lease)
    this.#wakeAt(lease.dueAt)
    return lease
  }

  #isHeld(name: string): boolean {
    for (const lease of this.#held) if (lease.name === name) return true
    return false
  }

  #forget(lease: HeldLease): void {
    this.#held.delete(lease)
    // Who waits for a session that was deleted must not create it again.
    if (lease.isRevoked && !this.#isHeld(lease.name)) this.#lines.fail(lease.name, lease.lost.reason)
    else this.#lines.first(lease.name)?.wake()
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
      const kept = due.length === 0 ? undefined : await this.#table.renew(due)
      for (const lease of due) lease.answered(kept?.has(lease.fence) ?? false, now)
    } catch {
      for (const lease of due) lease.retry()
    }
    this.#schedule()
  }
}

/** How long a store may take to answer, at least: its machine may be as busy as this process. */
const LEAST_ANSWER_MS = 3000
const FIRST_POLL_MS = 4
const LONGEST_POLL_MS = 100
const CLOSE_TIMEOUT_MS = 2000

/** Without an attempt: others come first. */
const BEHIND_OTHERS: Refused = { busy: { holder: '' } }

/** The lease of a process that no longer exists is taken at once. */
async function pastGone<T>(attempt: Attempt<T>, request: LeaseRequest): Promise<{ done: T } | Refused> {
  const outcome = await attempt(request)
  const holder = 'busy' in outcome ? outcome.busy?.holder : undefined
  return holder !== undefined && isGone(holder) ? attempt({ ...request, gone: holder }) : outcome
}

class HeldLease implements Lease, LogLease {
  readonly key: SessionKey
  readonly name: string
  readonly fence: number
  readonly ttlMs: number
  /** When to renew it next; never while it is being renewed. */
  dueAt: number
  readonly #table: LeaseTable
  readonly #onEnd: () => void
  readonly #lost = new AbortController()
  #renewedAt = performance.now()
  #deadline: NodeJS.Timeout | undefined
  #ended = false
  #isMissing = false
  #isRevoked = false

  constructor(table: LeaseTable, { key, fence }: LogLease, ttlMs: number, onEnd: () => void) {
    this.#table = table
    this.key = key
    this.name = keyText(key)
    this.fence = fence
    this.ttlMs = ttlMs
    this.#onEnd = onEnd
    this.dueAt = this.#renewedAt + ttlMs / 3
    this.#watch()
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  /** True if it was deleted before it expired. */
  get isRevoked(): boolean {
    return this.#isRevoked
  }

  /** Ends the lease here in any case: one that could not be released in the store expires by itself. */
  async release(): Promise<void> {
    if (this.#ended) return
    this.#end()
    try {
      await this.#table.release(this)
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
    const isEarly = this.#leftMs() > 0
    if (!isKept && isEarly && !this.#isMissing) {
      // The last write may have ended it, and not be answered yet.
      this.#isMissing = true
      this.retry()
    } else if (!isKept) {
      // A lease that is gone before its time was deleted, with its session.
      this.#isRevoked = isEarly
      this.#expire(
        isEarly
          ? 'the session was deleted'
          : 'it expired, and another writer took it or the session was deleted',
      )
    } else {
      this.#isMissing = false
      this.#renewedAt = askedAt
      this.dueAt = askedAt + this.ttlMs / 3
      this.#watch()
    }
  }

  /** The store did not answer, or is asked again: it may be available before the lease expires. */
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
    const asking = this.#table.renew([this]).then(
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
    this.#table.release(this).catch(() => {})
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

function busy(key: SessionKey, waitMs: number, refused: Refused): AgentError {
  const why = refused.busy
    ? 'Another writer holds the lease of'
    : 'A run that waits for a person, or in the queue, comes first in'
  const waited = waitMs < 1 ? '' : ` after waiting ${waitMs} ms`
  return new AgentError(
    'session-busy',
    `${why} ${nameOf(key)}${waited}: try again later, or wait longer with waitMs`,
    { retryable: true, details: { ...key } },
  )
}
