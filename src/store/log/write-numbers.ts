import { Turns } from '../turns.js'

/** Leases at most: the one that wrote longest ago is forgotten, and read again when it writes. */
const MOST_LEASES = 10_000

/**
 * Counts the writes under each lease. Writes of one lease come one after another, and a write with the digest of the one
 * before it is that write sent again.
 */
export class WriteNumbers {
  readonly #last = new Map<number, { number: number; digest: string }>()
  readonly #turns = new Turns<number>()

  /** A lease was granted: nothing was written under it. */
  begin(fence: number): void {
    this.set(fence, 0, '')
  }

  has(fence: number): boolean {
    return this.#last.has(fence)
  }

  set(fence: number, number: number, digest: string): void {
    this.#last.delete(fence)
    this.#last.set(fence, { number, digest })
    const [oldest] = this.#last.keys()
    if (this.#last.size > MOST_LEASES && oldest !== undefined) this.#last.delete(oldest)
  }

  next(fence: number, digest: string): number {
    const last = this.#last.get(fence) ?? { number: 0, digest: '' }
    return last.digest === digest ? last.number : last.number + 1
  }

  end(fence: number): void {
    this.#last.delete(fence)
  }

  inTurn<T>(fence: number, write: () => Promise<T>): Promise<T> {
    return this.#turns.take(fence, write)
  }
}
