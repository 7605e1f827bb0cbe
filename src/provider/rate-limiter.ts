import { Scope } from '../base/scope.js'
import { timerMs } from '../base/timer-ms.js'
import type { AgentError } from '../errors.js'

/** What the headers of an answer say about requests that are left. */
interface Allowance {
  limit?: number | undefined
  remaining: number
  resetAt: number
}

/** The longest pause of the provider that a caller waits for, and the error of one that is longer. */
export interface LongestPause {
  ms: number
  error(pauseMs: number): AgentError
}

interface Waiting {
  longest: LongestPause | undefined
  send(sentAt: number): void
  fail(error: AgentError): void
}

/**
 * Turns under the rate limit of one model, for all runs of the process.
 *
 * - While nothing is known, eleven requests are sent within a second. When all of them were answered, or none was refused
 *   for a while in which the process was not busy, half as many more follow, again and again, until no limit is looked for. A provider that takes ten a second refuses one of a hundred,
 *   not ninety; where there is no limit, the last of fifty is sent within a second. What was learnt holds while the
 *   model is used.
 * - Headers (`x-ratelimit-*`, `anthropic-ratelimit-*`) say how many are left until when.
 * - A refusal without them makes all wait for its Retry-After; then requests go one by one, as many as were taken
 *   before the refusal, a little slower, and faster again while none is refused.
 * - A pause that is longer than a caller accepts fails its request at once. One request a minute is sent all the same: its
 *   answer ends the pause. A process does not stop asking for hours because of one header.
 */
export class RateLimiter {
  readonly #now: () => number
  readonly #first: number
  readonly #queue: Waiting[] = []
  #timer: NodeJS.Timeout | undefined
  #pending = 0
  /** How many are sent within a second while nothing is known, and whether anything was answered yet. */
  #ceiling: number
  #isAnswered = false
  /** When requests were last let go together, and when the first answer after that began. */
  #burstAt = 0
  #firstAnswerAt: number | undefined
  /** When the timer should end, and since when it has been on time. */
  #due = Number.POSITIVE_INFINITY
  #steadySince = 0
  /** When requests were sent that were not refused, in the last minute. */
  #taken: number[] = []
  #lastSent = 0
  #pausedUntil = 0
  /** When the refusal came that began the pause. */
  #pausedAt = 0
  #allowance: Allowance | undefined
  /** Milliseconds between two requests, once a refusal has taught it. */
  #intervalMs: number | undefined
  #slowSince = 0
  /** Whether it was learnt from more than a few requests. */
  #isSure = true

  /** `isLimited: false` is for servers that are not expected to have a limit. */
  constructor({ now = Date.now, isLimited = true }: { now?: () => number; isLimited?: boolean } = {}) {
    this.#now = now
    this.#first = isLimited ? FIRST : Number.POSITIVE_INFINITY
    this.#ceiling = this.#first
  }

  /** How long a request that comes now will wait for its turn, roughly. */
  get waitMs(): number {
    const { length } = this.#queue
    const each = this.#intervalMs ?? 0
    return this.#nextInMs() + length * each
  }

  /**
   * Resolves when the request may be sent, with the time. Rejects when the signal is aborted, and when the provider
   * pauses for longer than `longest`.
   */
  async take(signal?: AbortSignal, longest?: LongestPause): Promise<number> {
    signal?.throwIfAborted()
    const pauseMs = this.#pauseMs()
    if (longest && pauseMs > longest.ms) {
      if (this.#now() - this.#lastSent < PROBE_MS) throw longest.error(pauseMs)
      return this.#sent()
    }
    if (this.#queue.length === 0 && this.#nextInMs() === 0) return this.#sent()
    return new Promise<number>((resolve, reject) => {
      const waiting: Waiting = {
        longest,
        send: sentAt => {
          signal?.removeEventListener('abort', leave)
          resolve(sentAt)
        },
        fail: error => {
          signal?.removeEventListener('abort', leave)
          reject(error)
        },
      }
      const leave = () => {
        const at = this.#queue.indexOf(waiting)
        if (at >= 0) this.#queue.splice(at, 1)
        if (this.#queue.length === 0) this.#stopTimer()
        reject(signal?.reason)
      }
      signal?.addEventListener('abort', leave, { once: true })
      this.#queue.push(waiting)
      this.#serve()
    })
  }

  /** The answer to a request that was sent at a time has begun, or it has failed. */
  answered(isSuccess: boolean, sentAt = this.#now()): void {
    this.#pending = Math.max(0, this.#pending - 1)
    if (isSuccess) {
      if (sentAt >= this.#burstAt) this.#firstAnswerAt ??= this.#now()
      this.#isAnswered = true
      // Only a probe is sent during a pause.
      if (this.#pausedUntil > this.#now() && sentAt > this.#pausedAt) this.#endPause()
      this.#serve()
      return
    }
    // Whether it was a refusal is reported next.
    this.#serveIn(0)
  }

  /** Learns from the headers of any answer. */
  learn(headers: Headers): void {
    const found = allowanceOf(headers, this.#now())
    // Those on the way may not be counted yet; this one is.
    if (found) this.#allowance = { ...found, remaining: found.remaining - Math.max(0, this.#pending - 1) }
  }

  /** The provider has refused a request that was sent at a time. */
  refused(retryAfterMs: number | undefined, sentAt = this.#now()): void {
    const now = this.#now()
    const until = now + (retryAfterMs ?? 1000)
    // Of requests that were sent together, the longest pause counts; the refusal of a later one is newer.
    this.#pausedUntil = sentAt > this.#pausedAt ? until : Math.max(this.#pausedUntil, until)
    this.#pausedAt = now
    const windowMs = Math.min(MEMORY_MS, Math.max(1000, retryAfterMs ?? 0))
    // This one was not taken. Those that are under way were: a refusal comes sooner than an answer.
    this.#taken.splice(this.#taken.lastIndexOf(sentAt), 1)
    const within = this.#taken.filter(at => at <= sentAt && sentAt - at <= windowMs).length
    this.#isSure = within >= SURE
    const learnt = windowMs / Math.max(1, within * SHARE)
    // Refusals of requests that were on the way together teach one thing.
    const isNew = now - this.#slowSince > 1000
    this.#intervalMs = isNew ? learnt : Math.max(learnt, this.#intervalMs ?? 0)
    this.#slowSince = now
    this.#ceiling = this.#first
  }

  #endPause(): void {
    this.#pausedUntil = 0
    this.#intervalMs = undefined
  }

  #sent(): number {
    const now = this.#now()
    if (now - this.#lastSent > QUIET_MS && this.#pending === 0) {
      this.#ceiling = this.#first
      this.#isAnswered = false
    }
    if (this.#pending === 0) {
      this.#burstAt = now
      this.#firstAnswerAt = undefined
    }
    this.#taken = [...this.#taken.filter(at => now - at < MEMORY_MS).slice(-MOST_TAKEN), now]
    if (now - this.#lastSent > MEMORY_MS) this.#intervalMs = undefined
    this.#lastSent = now
    this.#pending += 1
    if (this.#allowance) this.#allowance.remaining -= 1
    return now
  }

  /** How long the provider takes no request, by its refusal or by its headers. */
  #pauseMs(): number {
    const now = this.#now()
    if (this.#pausedUntil > now) return this.#pausedUntil - now
    const byHeaders = (this.#allowance && this.#byAllowance(this.#allowance, now)) ?? 0
    return byHeaders > SHORT_WINDOW_MS ? byHeaders : 0
  }

  /** Milliseconds until the next request may be sent. */
  #nextInMs(): number {
    const now = this.#now()
    if (this.#pausedUntil > now) return this.#pausedUntil - now
    const allowed = this.#allowance && this.#byAllowance(this.#allowance, now)
    if (allowed !== undefined) return allowed
    if (this.#intervalMs !== undefined && now - this.#lastSent <= MEMORY_MS) return this.#byInterval(now)
    return this.#whileUnknown(now)
  }

  #whileUnknown(now: number): number {
    if (this.#queue.length === 0 && this.#pending < FEW) return 0
    const isFirst = this.#ceiling === this.#first
    const windowMs = isFirst ? FIRST_WINDOW_MS : SECOND_MS
    const recent = this.#taken.filter(at => now - at < windowMs).length
    const under = Math.max(recent, this.#pending)
    if (under < this.#ceiling || this.#ceiling > MOST_PER_SECOND) return 0
    const stepInMs = this.#pending === 0 ? 0 : this.#stepAt(isFirst) - now
    if (stepInMs > 0) return Math.min(stepInMs, POLL_MS)
    this.#ceiling = Math.ceil(this.#ceiling * GROWTH)
    this.#burstAt = now
    this.#firstAnswerAt = undefined
    return 0
  }

  /** When it is believed that what is under way was taken. */
  #stepAt(isFirst: boolean): number {
    // A refusal comes sooner than an answer, and a busy process reads it late: what was not refused for a while was taken.
    const firstMs = this.#isAnswered ? FIRST_STEP_MS : UNANSWERED_STEP_MS
    const byTime = Math.max(this.#lastSent, this.#steadySince) + (isFirst ? firstMs : STEP_MS)
    if (this.#firstAnswerAt === undefined) return byTime
    // The others are given as long as the first answer took: a refusal may stand behind it in the same line.
    const tookMs = Math.min(MOST_PATIENCE_MS, this.#firstAnswerAt - this.#burstAt)
    return Math.max(byTime, this.#firstAnswerAt + tookMs)
  }

  #byAllowance({ limit, remaining, resetAt }: Allowance, now: number): number | undefined {
    if (now >= resetAt) {
      this.#allowance = undefined
      return undefined
    }
    if (remaining > 0) return 0
    const resetMs = resetAt - now
    // A long window is refilled bit by bit at most vendors; a refusal says where it is not.
    if (resetMs <= SHORT_WINDOW_MS || limit === undefined) return Math.min(resetMs, SHORT_WINDOW_MS)
    return Math.max(0, this.#lastSent + resetMs / limit - now)
  }

  #byInterval(now: number): number {
    const { byFactor, everyMs } = this.#isSure ? FASTER : FASTER_UNSURE
    if (now - this.#slowSince > everyMs) {
      this.#slowSince = now
      this.#intervalMs = (this.#intervalMs ?? 0) / byFactor
    }
    const eachMs = this.#intervalMs ?? 0
    // What was sent before a timer that was late may arrive only now: the next one is as far behind it.
    const since = Math.max(this.#lastSent, Math.min(this.#steadySince, this.#lastSent + eachMs))
    return Math.max(0, since + eachMs - now)
  }

  #serve(): void {
    this.#noteLateness()
    while (this.#queue.length > 0) {
      const waitMs = this.#nextInMs()
      if (waitMs === 0) {
        this.#queue.shift()?.send(this.#sent())
      } else if (!this.#failImpatient()) {
        this.#serveIn(Math.ceil(waitMs))
        return
      }
    }
    this.#stopTimer()
  }

  /** Fails those in the queue that the pause is too long for. Returns whether there were any. */
  #failImpatient(): boolean {
    const pauseMs = this.#pauseMs()
    const impatient = this.#queue.filter(({ longest }) => longest && pauseMs > longest.ms)
    for (const waiting of impatient) {
      this.#queue.splice(this.#queue.indexOf(waiting), 1)
      if (waiting.longest) waiting.fail(waiting.longest.error(pauseMs))
    }
    return impatient.length > 0
  }

  /** A timer that ends sooner stays, however often it is asked for another: it shows whether the process is busy. */
  #serveIn(delayMs: number): void {
    const boundedMs = timerMs(delayMs)
    const due = this.#now() + boundedMs
    if (this.#due <= due) return
    this.#stopTimer()
    this.#due = due
    this.#timer = setTimeout(() => {
      this.#noteLateness()
      this.#stopTimer()
      this.#serve()
    }, boundedMs)
  }

  #noteLateness(): void {
    const now = this.#now()
    if (now > this.#due + LATE_MS) this.#steadySince = now
  }

  #stopTimer(): void {
    clearTimeout(this.#timer)
    this.#due = Number.POSITIVE_INFINITY
  }
}

const MEMORY_MS = 60_000
/** During a pause that is too long for its callers, one request is sent so often. */
const PROBE_MS = 60_000
const MOST_TAKEN = 1000
/** After a pause of this length nothing is known any more. */
const QUIET_MS = 600_000
/** Callers that are let through at once while nothing waits. */
const FEW = 2
/** Requests within a second while nothing is known: one more than many small limits. */
const FIRST = 11
const GROWTH = 1.5
/** How long nothing may be refused before more are sent: the first time, before any answer, and later. */
const FIRST_STEP_MS = 400
const UNANSWERED_STEP_MS = 800
const STEP_MS = 200
/** A timer that is so late shows that the process is busy; it is looked at so often. */
const LATE_MS = 50
const POLL_MS = 50
const MOST_PATIENCE_MS = 3000
/** The first ones count for longer, because they have to be answered first. */
const FIRST_WINDOW_MS = 5000
const SECOND_MS = 1000
/** Faster than this, no limit is looked for. */
const MOST_PER_SECOND = 80
const SHORT_WINDOW_MS = 2000
/** The share of what was taken before a refusal that is sent after it. */
const SHARE = 0.9
const FASTER = { byFactor: 1.05, everyMs: 10_000 }
/** What was learnt from fewer than this is a guess that is soon corrected. */
const SURE = 5
const FASTER_UNSURE = { byFactor: 1.25, everyMs: 1000 }

function allowanceOf(headers: Headers, now: number): Allowance | undefined {
  const read = (name: string) =>
    headers.get(`x-ratelimit-${name}-requests`) ?? headers.get(`anthropic-ratelimit-requests-${name}`)
  const remaining = numberOf(read('remaining'))
  const resetAt = timeOf(read('reset'), now)
  if (remaining === undefined || resetAt === undefined) return undefined
  return { limit: numberOf(read('limit')), remaining, resetAt }
}

function numberOf(text: string | null): number | undefined {
  return text !== null && /^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : undefined
}

/** A time (RFC 3339), or a duration such as `1s`, `6m0s`, `20ms` or seconds alone. */
function timeOf(text: string | null, now: number): number | undefined {
  if (text === null) return undefined
  const seconds = numberOf(text)
  if (seconds !== undefined) return now + seconds * 1000
  if (/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) {
    const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)]
    return now + parts.reduce((sum, [, amount, unit = '']) => sum + Number(amount) * (UNITS[unit] ?? 0), 0)
  }
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : at
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** The limiter of the request that the current code sends. */
export const limiterOfCall = new Scope<RateLimiter>('limiter')

const limiters = new Map<string, RateLimiter>()
const MOST_LIMITERS = 1000

/** The limiter of an account and a model: one for the process. */
export function limiterFor(account: readonly (string | undefined)[], isLimited = true): RateLimiter {
  const name = JSON.stringify(account)
  const known = limiters.get(name) ?? new RateLimiter({ isLimited })
  limiters.set(name, known)
  const [oldest] = limiters.keys()
  if (limiters.size > MOST_LIMITERS && oldest !== undefined) limiters.delete(oldest)
  return known
}
