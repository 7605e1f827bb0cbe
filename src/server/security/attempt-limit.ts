/**
 * Limits how many wrong tokens one address may try. Invariants:
 * - at most `attempts` different wrong credentials of an address are checked within a window; then the address is
 *   limited for one window, which further attempts do not make longer;
 * - a wrong credential that is sent again counts once: a client with an old token limits nobody;
 * - a successful login forgets the attempts, once in a window, so that the owner of one token cannot guess others;
 * - memory is bounded: when too many addresses are known, the oldest is dropped.
 */
export interface AttemptLimitOptions {
  attempts: number
  windowMs: number
  /** Called when an address becomes limited. */
  onLimit?: ((address: string) => void) | undefined
  now?: (() => number) | undefined
}

/** Addresses that are remembered. */
export const MOST_ADDRESSES = 10_000

interface Attempts {
  until: number
  tried: Set<string>
  isLimited: boolean
  wasReset: boolean
}

export class AttemptLimit {
  readonly #options: AttemptLimitOptions
  readonly #now: () => number
  readonly #attempts = new Map<string, Attempts>()
  readonly #accepted = new Map<string, true>()

  constructor(options: AttemptLimitOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  /** Addresses with wrong attempts, and pairs of address and token that were accepted. */
  get size(): readonly [attempts: number, accepted: number] {
    return [this.#attempts.size, this.#accepted.size]
  }

  /** Seconds until the address may try again; 0 when it is not limited. */
  secondsLeft(address: string): number {
    const current = this.#current(address)
    return current?.isLimited ? Math.max(1, Math.ceil((current.until - this.#now()) / 1000)) : 0
  }

  failed(address: string, credential: string): void {
    const { attempts, windowMs, onLimit } = this.#options
    const current = this.#current(address) ?? this.#begin(address)
    current.tried.add(credential)
    if (current.isLimited || current.tried.size < attempts) return
    current.isLimited = true
    current.until = this.#now() + windowMs
    onLimit?.(address)
  }

  /** A login succeeded. */
  reset(address: string): void {
    const current = this.#current(address)
    if (!current || current.isLimited || current.wasReset) return
    current.tried.clear()
    current.wasReset = true
  }

  /** Remembers that a token was accepted from an address: it stays accepted while the address is limited. */
  accepted(address: string, token: number): void {
    const key = `${address} ${token}`
    this.#accepted.delete(key)
    this.#accepted.set(key, true)
    dropOldest(this.#accepted)
  }

  wasAccepted(address: string, token: number): boolean {
    return this.#accepted.has(`${address} ${token}`)
  }

  #current(address: string): Attempts | undefined {
    const found = this.#attempts.get(address)
    if (!found || found.until > this.#now()) return found
    this.#attempts.delete(address)
    return undefined
  }

  #begin(address: string): Attempts {
    const until = this.#now() + this.#options.windowMs
    const begun = { until, tried: new Set<string>(), isLimited: false, wasReset: false }
    this.#attempts.set(address, begun)
    dropOldest(this.#attempts)
    return begun
  }
}

function dropOldest(map: Map<string, unknown>): void {
  if (map.size <= MOST_ADDRESSES) return
  const [oldest] = map.keys()
  if (oldest !== undefined) map.delete(oldest)
}
