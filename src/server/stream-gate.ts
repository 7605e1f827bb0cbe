import { Refusal } from './refusal.js'

/** Counts the open streams of each user. */
export class StreamGate {
  readonly #open = new Map<string, number>()
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  get size(): number {
    return [...this.#open.values()].reduce((all, count) => all + count, 0)
  }

  /** Counts a stream and returns the function that uncounts it. */
  enter(user: string): () => void {
    const count = this.#open.get(user) ?? 0
    if (count >= this.#limit) {
      const message = `Too many open streams (limit ${this.#limit}). Close one, then try again.`
      throw new Refusal('too-many', message, { retryAfterSeconds: 5 })
    }
    this.#open.set(user, count + 1)
    let inside = true
    return () => {
      if (inside) this.#leave(user)
      inside = false
    }
  }

  #leave(user: string): void {
    const left = (this.#open.get(user) ?? 1) - 1
    if (left > 0) this.#open.set(user, left)
    else this.#open.delete(user)
  }
}
