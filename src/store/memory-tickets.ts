import type { SessionKey } from '../session/message.js'
import type { TicketDesk } from './hold-lease.js'

interface Ticket {
  number: number
  expiresAt: number
}

/** Tickets in memory. The clock is monotonic: setting the wall clock must not end a lease. */
export class MemoryTickets implements TicketDesk {
  readonly #lines = new Map<string, Ticket[]>()
  #last = 0

  async take(key: SessionKey, ttlMs: number): Promise<number> {
    const ticket = { number: ++this.#last, expiresAt: performance.now() + ttlMs }
    this.#lines.set(lineOf(key), [...this.#alive(key), ticket])
    return ticket.number
  }

  async isFirst(key: SessionKey, ticket: number): Promise<boolean> {
    return this.#alive(key)[0]?.number === ticket
  }

  async renew(key: SessionKey, ticket: number, ttlMs: number): Promise<boolean> {
    const found = this.#alive(key).find(({ number }) => number === ticket)
    if (found === undefined) return false
    found.expiresAt = performance.now() + ttlMs
    return true
  }

  async giveBack(key: SessionKey, ticket: number): Promise<void> {
    const left = this.#alive(key).filter(({ number }) => number !== ticket)
    if (left.length === 0) this.#lines.delete(lineOf(key))
    else this.#lines.set(lineOf(key), left)
  }

  isAlive(key: SessionKey, ticket: number): boolean {
    return this.#alive(key).some(({ number }) => number === ticket)
  }

  anyAlive(key: SessionKey): boolean {
    return this.#alive(key).length > 0
  }

  deleteAll(key: SessionKey): void {
    this.#lines.delete(lineOf(key))
  }

  #alive(key: SessionKey): Ticket[] {
    const now = performance.now()
    return (this.#lines.get(lineOf(key)) ?? []).filter(({ expiresAt }) => expiresAt > now)
  }
}

function lineOf({ appName, userId, sessionId }: SessionKey): string {
  return JSON.stringify([appName, userId, sessionId])
}
