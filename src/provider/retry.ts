/**
 * Retries and rate limits, for all providers. A model call is retried only while nothing of its answer has been emitted; after
 * that a second answer would be appended to the first half of another.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { AgentError } from '../errors.js'
import type { StreamEvent } from './stream-event.js'

export interface RetryPolicy {
  /** How often a request is sent at most. Default 4. */
  maxAttempts: number
  /** The first pause when the provider sends no Retry-After; it doubles each time. Default 500. */
  baseDelayMs: number
  /** The longest pause. A longer Retry-After fails the request. Default 60,000. */
  maxDelayMs: number
  /** Waits, and rejects when the signal is aborted. Replaceable, so that tests need no clock. */
  sleep: (delayMs: number, signal?: AbortSignal) => Promise<void>
  /** A number in [0, 1) for the jitter. */
  random: () => number
}

export const DEFAULT_RETRY: Readonly<RetryPolicy> = {
  maxAttempts: 4,
  baseDelayMs: 500,
  maxDelayMs: 60_000,
  sleep: sleepUntil,
  random: Math.random,
}

/**
 * The pause before attempt number `attempt + 1`, or `undefined` for no further attempt. A Retry-After header is
 * honoured as given, with a little jitter added so that many clients do not retry in the same instant.
 */
export function retryDelayMs(error: AgentError, attempt: number, policy: RetryPolicy): number | undefined {
  if (!error.retryable || attempt >= attemptsFor(error, policy)) return undefined
  const { retryAfterMs } = error.details
  if (typeof retryAfterMs === 'number') {
    const jitter = policy.random() * Math.min(250, policy.baseDelayMs)
    return retryAfterMs > policy.maxDelayMs ? undefined : retryAfterMs + jitter
  }
  const ceiling = Math.min(policy.maxDelayMs, policy.baseDelayMs * 2 ** (attempt - 1))
  return ceiling * (0.5 + policy.random() / 2)
}

export interface RetryOptions {
  policy: RetryPolicy
  /** Starts one attempt. */
  attempt: () => AsyncIterable<StreamEvent>
  /** Anything thrown, as an `AgentError`. */
  toError: (error: unknown) => AgentError
  signal?: AbortSignal | undefined
  /** See `GenerateRequest.onRetry`. */
  onRetry?: ((error: AgentError) => Promise<void>) | undefined
  /** Whose turn it is, where the provider's rate limit is shared. */
  limiter?: RateLimiter | undefined
}

/** Waits of at least this time are reported. */
const REPORTED_MS = 1000

/** Passes one attempt's events on, and starts another when it fails in a way that may pass. */
export async function* retryStream(options: RetryOptions): AsyncGenerator<StreamEvent> {
  const { policy, signal, toError, limiter } = options
  for (let attempt = 1; ; attempt += 1) {
    let visible = false
    let sentAt: number | undefined
    try {
      if (limiter) sentAt = yield* waitForTurn(limiter, signal)
      for await (const event of options.attempt()) {
        visible ||= isVisible(event)
        yield event
      }
      return
    } catch (thrown) {
      const error = toError(thrown)
      const delayMs = visible ? undefined : retryDelayMs(error, attempt, policy)
      if (error.code === 'provider-rate-limit') limiter?.refused(retryAfterOf(error), sentAt)
      if (delayMs === undefined || signal?.aborted) throw error
      if (delayMs >= REPORTED_MS) yield { type: 'wait', waitMs: Math.round(delayMs), reason: error.code }
      await policy.sleep(delayMs, signal)
      await options.onRetry?.(error)
    }
  }
}

/** Reports the wait when it is expected to be long, or when it is. */
async function* waitForTurn(
  limiter: RateLimiter,
  signal: AbortSignal | undefined,
): AsyncGenerator<StreamEvent, number> {
  const expected = limiter.waitMs
  const turn = limiter.take(signal)
  const report = (waitMs: number): StreamEvent => {
    return { type: 'wait', waitMs: Math.round(waitMs), reason: 'provider-rate-limit' }
  }
  // A caller that leaves at the report below does not wait for the outcome.
  turn.catch(() => {})
  if (expected >= REPORTED_MS) yield report(expected)
  else if (await isLate(turn)) yield report(Math.max(REPORTED_MS, limiter.waitMs))
  return turn
}

async function isLate(turn: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>(resolve => {
    timer = setTimeout(() => resolve(true), REPORTED_MS)
  })
  try {
    return await Promise.race([turn.then(() => false), late])
  } finally {
    clearTimeout(timer)
  }
}

function retryAfterOf({ details }: AgentError): number | undefined {
  return typeof details.retryAfterMs === 'number' ? details.retryAfterMs : undefined
}

function isVisible(event: StreamEvent): boolean {
  return event.type !== 'request' && event.type !== 'usage'
}

/** A sample that its own server could not parse is retried once, not three times. */
function attemptsFor(error: AgentError, policy: RetryPolicy): number {
  return error.code === 'provider-rejected' ? Math.min(2, policy.maxAttempts) : policy.maxAttempts
}

function sleepUntil(delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason)
      return
    }
    const stop = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, delayMs)
    signal?.addEventListener('abort', stop, { once: true })
  })
}
/** What the headers of an answer say about requests that are left. */
interface Allowance {
  limit?: number | undefined
  remaining: number
  resetAt: number
}

/**
 * Turns under the rate limit of one model, for all runs of the process.
 *
 * - While nothing is known, eleven requests are sent within a second. When none of them was refused, half as many more
 *   follow, again and again, until no limit is looked for. A provider that takes ten a second refuses one of a hundred,
 *   not ninety; where there is no limit, the last of fifty is sent within a second. What was learnt holds while the
 *   model is used.
 * - Headers (`x-ratelimit-*`, `anthropic-ratelimit-*`) say how many are left until when.
 * - A refusal without them makes all wait for its Retry-After; then requests go one by one, as many as were taken
 *   before the refusal, a little slower, and faster again while none is refused.
 */
export class RateLimiter {
  readonly #now: () => number
  readonly #first: number
  readonly #queue: ((sentAt: number) => void)[] = []
  #timer: NodeJS.Timeout | undefined
  #pending = 0
  /** How many are sent within a second while nothing is known, and whether anything was answered yet. */
  #ceiling: number
  #isAnswered = false
  /** When the timer should end, and since when it has been on time. */
  #due = Number.POSITIVE_INFINITY
  #steadySince = 0
  /** When requests were sent that were not refused, in the last minute. */
  #taken: number[] = []
  #lastSent = 0
  #pausedUntil = 0
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
    return Math.min(this.#nextInMs(), LONGEST_ESTIMATE_MS) + length * each
  }

  /** Resolves when the request may be sent, with the time. Rejects when the signal is aborted. */
  async take(signal?: AbortSignal): Promise<number> {
    if (this.#queue.length === 0 && this.#nextInMs() === 0) return this.#sent()
    return new Promise<number>((resolve, reject) => {
      const go = (sentAt: number) => {
        signal?.removeEventListener('abort', leave)
        resolve(sentAt)
      }
      const leave = () => {
        const at = this.#queue.indexOf(go)
        if (at >= 0) this.#queue.splice(at, 1)
        reject(signal?.reason)
      }
      signal?.addEventListener('abort', leave, { once: true })
      this.#queue.push(go)
      this.#serve()
    })
  }

  /** The answer to a request has begun, or it has failed. */
  answered(isSuccess: boolean): void {
    this.#pending = Math.max(0, this.#pending - 1)
    if (isSuccess) {
      this.#isAnswered = true
      this.#serve()
      return
    }
    // Whether it was a refusal is told next.
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
    this.#pausedUntil = Math.max(this.#pausedUntil, now + (retryAfterMs ?? 1000))
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

  #sent(): number {
    const now = this.#now()
    if (now - this.#lastSent > QUIET_MS && this.#pending === 0) {
      this.#ceiling = this.#first
      this.#isAnswered = false
    }
    this.#taken = [...this.#taken.filter(at => now - at < MEMORY_MS).slice(-MOST_TAKEN), now]
    if (now - this.#lastSent > MEMORY_MS) this.#intervalMs = undefined
    this.#lastSent = now
    this.#pending += 1
    if (this.#allowance) this.#allowance.remaining -= 1
    return now
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
    // A refusal comes sooner than an answer, and a busy process reads it late: what was not refused for a while was taken.
    if (now > this.#due + LATE_MS) this.#steadySince = now
    const firstMs = this.#isAnswered ? FIRST_STEP_MS : UNANSWERED_STEP_MS
    const stepMs = isFirst ? firstMs : STEP_MS
    const since = Math.max(this.#lastSent, this.#steadySince)
    const stepInMs = this.#pending === 0 ? 0 : since + stepMs - now
    if (stepInMs > 0) return Math.min(stepInMs, POLL_MS)
    this.#ceiling = Math.ceil(this.#ceiling * GROWTH)
    return 0
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
    return Math.max(0, this.#lastSent + (this.#intervalMs ?? 0) - now)
  }

  #serve(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    while (this.#queue.length > 0) {
      const waitMs = this.#nextInMs()
      if (waitMs > 0) {
        this.#serveIn(Math.ceil(waitMs))
        return
      }
      this.#queue.shift()?.(this.#sent())
    }
    this.#due = Number.POSITIVE_INFINITY
  }

  #serveIn(delayMs: number): void {
    clearTimeout(this.#timer)
    this.#due = this.#now() + delayMs
    this.#timer = setTimeout(() => this.#serve(), delayMs)
  }
}

const MEMORY_MS = 60_000
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
/** The first ones count for longer, because they have to be answered first. */
const FIRST_WINDOW_MS = 5000
const SECOND_MS = 1000
/** Faster than this, no limit is looked for. */
const MOST_PER_SECOND = 80
const SHORT_WINDOW_MS = 2000
const LONGEST_ESTIMATE_MS = 60_000
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
export const limiterOfCall = new AsyncLocalStorage<RateLimiter>()

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
