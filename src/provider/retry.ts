/**
 * Retries, for all providers. A model call is retried while nothing of its answer has been emitted. After that
 * it is retried only for a caller that takes back what it has received: to any other caller a second answer would be
 * appended to the first half of another.
 */
import { timerMs } from '../base/timer-ms.js'
import type { AgentError } from '../errors.js'
import type { RateLimiter } from './rate-limiter.js'
import type { StreamEvent } from './stream-event.js'

export interface RetryPolicy {
  /** How often a request is sent at most. Default 4. */
  maxAttempts: number
  /** The first pause when the provider sends no Retry-After; it doubles each time. Default 500. */
  baseDelayMs: number
  /** The longest pause. A longer Retry-After fails the request, and those that follow until it is over. Default 60,000. */
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
  /** Starts one attempt, whose turn came at a time. */
  attempt: (sentAt?: number) => AsyncIterable<StreamEvent>
  /** Anything thrown, as an `AgentError`. */
  toError: (error: unknown) => AgentError
  /** The error of a request that is not sent: the rate limit allows none for longer than the longest pause. */
  toPaused: (waitMs: number) => AgentError
  signal?: AbortSignal | undefined
  /** See `GenerateRequest.takesBack`. */
  takesBack?: boolean | undefined
  /** See `GenerateRequest.onRetry`. */
  onRetry?: ((error: AgentError) => Promise<void>) | undefined
  /** Whose turn it is, where the provider's rate limit is shared. */
  limiter?: RateLimiter | undefined
}

/** Waits of at least this time are reported. */
const REPORTED_MS = 1000

/** Passes one attempt's events on, and starts another when it fails in a way that may pass. */
export async function* retryStream(options: RetryOptions): AsyncGenerator<StreamEvent> {
  const { policy, signal, toError, limiter, takesBack = false } = options
  for (let attempt = 1; ; attempt += 1) {
    let visible = false
    let sentAt: number | undefined
    try {
      if (limiter) sentAt = yield* waitForTurn(limiter, options)
      for await (const event of options.attempt(sentAt)) {
        visible ||= isVisible(event)
        yield event
      }
      return
    } catch (thrown) {
      const error = toError(thrown)
      const delayMs = visible && !takesBack ? undefined : retryDelayMs(error, attempt, policy)
      const isRefused = sentAt !== undefined && error.code === 'provider-rate-limit'
      if (isRefused) limiter?.refused(retryAfterOf(error), sentAt)
      if (delayMs === undefined || signal?.aborted) throw error
      if (visible) yield { type: 'restart', error }
      if (delayMs >= REPORTED_MS) yield { type: 'wait', waitMs: Math.round(delayMs), reason: error.code }
      await policy.sleep(delayMs, signal)
      await options.onRetry?.(error)
    }
  }
}

/** Reports the wait when it is expected to be long, or when it is. */
async function* waitForTurn(
  limiter: RateLimiter,
  { signal, policy, toPaused }: RetryOptions,
): AsyncGenerator<StreamEvent, number> {
  const expected = limiter.waitMs
  const turn = limiter.take(signal, { ms: policy.maxDelayMs, error: toPaused })
  const report = (waitMs: number): StreamEvent => {
    return { type: 'wait', waitMs: Math.round(waitMs), reason: 'provider-rate-limit' }
  }
  // A caller that leaves at the report below does not wait for the outcome.
  turn.catch(() => {})
  // A longer pause is not waited for: the turn fails, or comes at once.
  if (expected >= REPORTED_MS && expected <= policy.maxDelayMs) yield report(expected)
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
    }, timerMs(delayMs))
    signal?.addEventListener('abort', stop, { once: true })
  })
}
