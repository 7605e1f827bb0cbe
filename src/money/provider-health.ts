/**
 * Which models cannot answer now, as far as this process knows. A model that failed is left alone for a while; then one
 * request tries it, and the others follow when it has answered. The pauses have jitter and grow while it keeps failing.
 * A pause that the provider asks for is kept up to a minute: then one request a minute finds out whether it is over.
 */
import type { AgentError, AgentErrorCode } from '../errors.js'

/** The failures that another model need not share. The value: whether all models of the provider have failed with it. */
const FAILURES: Partial<Record<AgentErrorCode, 'model' | 'provider'>> = {
  'provider-overloaded': 'model',
  'provider-rate-limit': 'model',
  'provider-stream': 'model',
  'provider-unavailable': 'provider',
  'provider-quota': 'provider',
  'provider-auth': 'provider',
}

/** The first pause; it doubles with each further failure. */
const FIRST_PAUSE_MS = 2000
const LONGEST_PAUSE_MS = 120_000
const LONGEST_ASKED_MS = 60_000

interface Down {
  until: number
  failures: number
  code: AgentErrorCode
}

export class ProviderHealth {
  /** By provider: by model, and under the empty name for all its models. */
  readonly #down = new WeakMap<object, Map<string, Down>>()
  readonly #now: () => number
  readonly #random: () => number

  constructor(now: () => number = () => Date.now(), random: () => number = Math.random) {
    this.#now = now
    this.#random = random
  }

  /** Why a model is not to be asked now; `undefined` when it may be. Who gets that after a pause is the one that tries. */
  reasonAgainst(provider: object, model: string): AgentErrorCode | undefined {
    const found = [this.#of(provider).get(''), this.#of(provider).get(model)].filter(
      down => down !== undefined,
    )
    const now = this.#now()
    const waiting = found.find(({ until }) => until > now)
    if (waiting) return waiting.code
    // The others wait for the one that tries.
    for (const down of found) down.until = now + this.#pauseMs(down.failures)
    return undefined
  }

  /** Notes a failure. Returns whether another model may answer instead. */
  failed(provider: object, model: string, error: AgentError): boolean {
    const scope = FAILURES[error.code]
    if (scope === undefined) return false
    const name = scope === 'provider' ? '' : model
    const failures = (this.#of(provider).get(name)?.failures ?? 0) + 1
    const { retryAfterMs } = error.details
    const pauseMs =
      typeof retryAfterMs === 'number'
        ? Math.min(LONGEST_ASKED_MS, Math.max(this.#pauseMs(failures), retryAfterMs))
        : this.#pauseMs(failures)
    this.#of(provider).set(name, { until: this.#now() + pauseMs, failures, code: error.code })
    return true
  }

  answered(provider: object, model: string): void {
    this.#of(provider).delete('')
    this.#of(provider).delete(model)
  }

  #of(provider: object): Map<string, Down> {
    const known = this.#down.get(provider) ?? new Map<string, Down>()
    this.#down.set(provider, known)
    return known
  }

  /** Half to all of the pause, so that processes do not come back together. */
  #pauseMs(failures: number): number {
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1))
    return pauseMs * (0.5 + this.#random() / 2)
  }
}

/** What this process knows. */
export const providerHealth = new ProviderHealth()
