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
    return this.enter(key, ttlMs).ticket
  }

  /** Takes a ticket, and says whether it is the only one. */
  enter(key: SessionKey, ttlMs: number): { ticket: number; isFirst: boolean } {
    const ticket = { number: ++this.#last, ttlMs, expiresAt: this.#now() + ttlMs }
    const line = keyText(key)
    const before = this.#line(line)
    this.#lines.set(line, [...before, ticket])
    return { ticket: ticket.number, isFirst: before.length === 0 }
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
    return this.#line(keyText(key)).some(({ number }) => number === ticket)
  }

  /** Whether a writer without a ticket has to stay out. One that may write takes the session from late holders. */
  isTaken(key: SessionKey): boolean {
    const now = this.#now()
    return this.#keep(key, ({ expiresAt }) => expiresAt > now).length > 0
  }

  /** Whether a ticket is valid. Deletes nothing: a holder that is late may still renew. */
  isValid(key: SessionKey): boolean {
    const now = this.#now()
    return this.#line(keyText(key)).some(({ expiresAt }) => expiresAt > now)
  }

  /** Deletes all tickets of a session and returns how many there were. */
  deleteAll(key: SessionKey): number {
    const { length } = this.#line(keyText(key))
    this.#lines.delete(keyText(key))
    return length
  }

  /** Deletes the other tickets and returns what is left. */
  #keep(key: SessionKey, isKept: (ticket: Ticket) => boolean): Ticket[] {
    const line = keyText(key)
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

/** The key of a session as one text: names contain no NUL. */
export function keyText({ appName, userId, sessionId }: SessionKey): string {
  return `${appName}\0${userId}\0${sessionId}`
}
