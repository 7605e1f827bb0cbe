import { describe, expect, test } from 'vitest'
import { LeaseHolder, type TicketStore } from './hold-lease.js'

const key = { appName: 'app', userId: 'ann', sessionId: 'one' }

/** A ticket store in memory, one ticket at a time being first. */
class FakeDesk implements TicketStore {
  readonly tickets: number[] = []
  #last = 0

  async take(): Promise<number> {
    this.tickets.push(++this.#last)
    return this.#last
  }

  async isFirst(_key: unknown, ticket: number): Promise<boolean> {
    return this.tickets[0] === ticket
  }

  async renew(tickets: readonly number[]): Promise<ReadonlySet<number>> {
    return new Set(tickets)
  }

  async giveBack(_key: unknown, ticket: number): Promise<void> {
    const at = this.tickets.indexOf(ticket)
    if (at >= 0) this.tickets.splice(at, 1)
  }
}

function never<T>(): Promise<T> {
  return new Promise(() => {})
}

/** Resolves when the signal fires; the fallback keeps the process running, as a run would. */
function outcomeOf(signal: AbortSignal): Promise<string> {
  return new Promise(resolve => {
    const timer = setTimeout(() => resolve('not aborted'), 15_000)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve((signal.reason as Error).message)
    })
  })
}

describe('a lease', () => {
  test('is lost when a renewal neither succeeds nor fails', async () => {
    const ticketStore = Object.assign(new FakeDesk(), { renew: () => never<ReadonlySet<number>>() })
    const lease = await new LeaseHolder(ticketStore).acquire(key, { ttlMs: 60 })
    expect(await outcomeOf(lease.lost)).toContain('could not be renewed in time')
    // A waiter need not wait for a renewal whose answer alone was lost.
    expect(ticketStore.tickets).toEqual([])
    await lease.release()
  })

  test('is kept while renewals succeed, however often the time passes', async () => {
    let renewals = 0
    const ticketStore = Object.assign(new FakeDesk(), {
      renew: async (tickets: readonly number[]) => {
        renewals += 1
        return new Set(tickets)
      },
    })
    const lease = await new LeaseHolder(ticketStore).acquire(key, { ttlMs: 300 })
    const acquiredAt = performance.now()
    await expect.poll(() => renewals > 3 && performance.now() - acquiredAt > 3 * 300).toBe(true)
    expect(lease.lost.aborted).toBe(false)
    await lease.release()
  })

  test('that was not renewed in time is kept when the store still has it', async () => {
    const ticketStore = new FakeDesk()
    const asked: number[][] = []
    let answer: () => void = () => {}
    // The first renewal is answered after the lease has expired; the second is made then.
    ticketStore.renew = async tickets => {
      asked.push([...tickets])
      if (asked.length === 1) {
        await new Promise<void>(resolve => {
          answer = resolve
        })
      } else answer()
      return new Set(tickets)
    }
    const lease = await new LeaseHolder(ticketStore).acquire(key, { ttlMs: 60 })
    await expect.poll(() => asked.length, { timeout: 60_000 }).toBeGreaterThan(3)
    expect(lease.lost.aborted).toBe(false)
    await lease.release()
  })

  test('that the store no longer has is lost', async () => {
    const ticketStore = Object.assign(new FakeDesk(), { renew: async () => new Set<number>() })
    const lease = await new LeaseHolder(ticketStore).acquire(key, { ttlMs: 60 })
    expect(await outcomeOf(lease.lost)).toContain('the session was deleted')
  })

  test('is renewed together with the others of its process', async () => {
    const ticketStore = new FakeDesk()
    const asked: number[][] = []
    ticketStore.isFirst = async () => true
    ticketStore.renew = async tickets => {
      asked.push([...tickets])
      return new Set(tickets)
    }
    const holder = new LeaseHolder(ticketStore)
    const leases = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        holder.acquire({ ...key, sessionId: `s${index}` }, { ttlMs: 900 + index }),
      ),
    )
    await expect.poll(() => asked.length, { timeout: 60_000 }).toBeGreaterThan(0)
    expect(asked[0]).toEqual(leases.map(({ fence }) => fence))
    await holder.close()
  })

  test('that cannot be returned ends anyway, wakes the waiters, and may be released again', async () => {
    const ticketStore = new FakeDesk()
    const giveBack = ticketStore.giveBack.bind(ticketStore)
    const holder = new LeaseHolder(ticketStore)
    const lease = await holder.acquire(key, {})
    const next = holder.acquire(key, { waitMs: 60_000 })
    ticketStore.giveBack = async (givenKey, ticket) => {
      ticketStore.giveBack = giveBack
      await giveBack(givenKey, ticket)
      throw new TypeError('the network is down')
    }
    await expect(lease.release()).rejects.toThrow('the network is down')
    await lease.release()
    await (await next).release()
    let abandoned = 0
    ticketStore.giveBack = async () => void abandoned++
    await holder.close()
    expect(abandoned).toBe(0)
  })

  test('does not keep its store from closing when the ticket store does not answer', async () => {
    const ticketStore = Object.assign(new FakeDesk(), { giveBack: () => never<void>() })
    const holder = new LeaseHolder(ticketStore)
    const lease = await holder.acquire(key, {})
    await holder.close()
    expect(lease.lost.aborted).toBe(true)
  })
})
