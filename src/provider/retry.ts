/**
 * Retries, for all providers. A model call is retried only while nothing of its answer has been emitted; after
 * that a second answer would be appended to the first half of another.
 */
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
}

/** Passes one attempt's events on, and starts another when it fails in a way that may pass. */
export async function* retryStream(options: RetryOptions): AsyncGenerator<StreamEvent> {
  const { policy, signal, toError } = options
  for (let attempt = 1; ; attempt += 1) {
    let visible = false
    try {
      for await (const event of options.attempt()) {
        visible ||= isVisible(event)
        yield event
      }
      return
    } catch (thrown) {
      const error = toError(thrown)
      const delayMs = visible ? undefined : retryDelayMs(error, attempt, policy)
      if (delayMs === undefined || signal?.aborted) throw error
      await policy.sleep(delayMs, signal)
      await options.onRetry?.(error)
    }
  }
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
