/** Lines of waiters in memory, one for each name: first come, first served. */
import { timerMs } from '../base/timer-ms.js'

export class Waiter {
  /** It has to wait for the lease of another writer. */
  isRefused = false
  /** Why waiting is of no use any more. */
  failure: unknown
  #isWoken = false
  #resume: () => void = () => {}

  wake(): void {
    this.#isWoken = true
    this.#resume()
  }

  /** Resolves when the time is over, the signal fires, or the waiter is woken or was woken since the last pause. */
  async pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>(resolve => {
      this.#resume = resolve
      if (this.#isWoken || signal?.aborted) return resolve()
      timer = setTimeout(resolve, timerMs(ms))
      signal?.addEventListener('abort', this.#resume)
    })
    clearTimeout(timer)
    signal?.removeEventListener('abort', this.#resume)
    this.#isWoken = false
  }
}

export class WaitingLines {
  readonly #lines = new Map<string, Waiter[]>()

  first(name: string): Waiter | undefined {
    return this.#lines.get(name)?.[0]
  }

  /** Puts a waiter at the end of a line, unless it is in the line. */
  join(name: string, waiter: Waiter): void {
    const line = this.#lines.get(name)
    if (line === undefined) this.#lines.set(name, [waiter])
    else if (!line.includes(waiter)) line.push(waiter)
  }

  /** Wakes the one that becomes the first. */
  leave(name: string, waiter: Waiter): void {
    const line = this.#lines.get(name) ?? []
    const at = line.indexOf(waiter)
    if (at < 0) return
    line.splice(at, 1)
    if (line.length === 0) this.#lines.delete(name)
    else if (at === 0) line[0]?.wake()
  }

  /** Ends the waiting of a whole line. */
  fail(name: string, reason: unknown): void {
    for (const waiter of this.#lines.get(name) ?? []) {
      waiter.failure = reason
      waiter.wake()
    }
  }

  wakeAll(): void {
    for (const line of this.#lines.values()) for (const waiter of line) waiter.wake()
  }
}
