import type { SessionKey } from '../session/message.js'
import type { TicketStore } from './hold-lease.js'

interface Ticket {
  number: number
  ttlMs: number
  expiresAt: number
}

/** Tickets in memory. The clock is monotonic: setting the wall clock must not end a lease. */
export class MemoryTickets implements TicketStore {
  readonly #lines = new Map<string, Ticket[]>()
  readonly #now: () => number
  #last = 0

  constructor(now: () => number) {
    this.#now = now
  }

  async take(key: SessionKey, ttlMs: number): Promise<number> {
    const ticket = { number: ++this.#last, ttlMs, expiresAt: this.#now() + ttlMs }
    const line = lineOf(key)
    this.#lines.set(line, [...this.#line(line), ticket])
    return ticket.number
  }

  async isFirst(key: SessionKey, ticket: number): Promise<boolean> {
    const now = this.#now()
    const [first] = this.#keep(key, ({ number, expiresAt }) => number >= ticket || expiresAt > now)
    return first?.number === ticket
  }

  async renew(tickets: readonly number[]): Promise<ReadonlySet<number>> {
    const asked = new Set(tickets)
    const found = [...this.#lines.values()].flat().filter(({ number }) => asked.has(number))
    for (const ticket of found) ticket.expiresAt = this.#now() + ticket.ttlMs
    return new Set(found.map(({ number }) => number))
  }

  async giveBack(key: SessionKey, ticket: number): Promise<void> {
    this.#keep(key, ({ number }) => number !== ticket)
  }

  isHeld(key: SessionKey, ticket: number): boolean {
    return this.#line(lineOf(key)).some(({ number }) => number === ticket)
  }

  /** Whether a writer without a ticket has to stay out. One that may write takes the session from late holders. */
  isTaken(key: SessionKey): boolean {
    const now = this.#now()
    return this.#keep(key, ({ expiresAt }) => expiresAt > now).length > 0
  }

  /** Deletes all tickets of a session and returns how many there were. */
  deleteAll(key: SessionKey): number {
    const { length } = this.#line(lineOf(key))
    this.#lines.delete(lineOf(key))
    return length
  }

  /** Deletes the other tickets and returns what is left. */
  #keep(key: SessionKey, isKept: (ticket: Ticket) => boolean): Ticket[] {
    const line = lineOf(key)
    const left = this.#line(line).filter(isKept)
    if (left.length === 0) this.#lines.delete(line)
    else this.#lines.set(line, left)
    return left
  }

  #line(line: string): Ticket[] {
    const tickets = this.#lines.get(line) ?? []
    for (const ticket of tickets) ticket.expiresAt = Math.min(ticket.expiresAt, this.#now() + ticket.ttlMs)
    return tickets
  }
}

function lineOf({ appName, userId, sessionId }: SessionKey): string {
  return JSON.stringify([appName, userId, sessionId])
}
