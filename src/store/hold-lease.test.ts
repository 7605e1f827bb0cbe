import { afterEach, beforeEach, expect, test, vi } from 'vitest'
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

/** Why the lease was lost, if so. */
function lossOf({ lost }: { lost: AbortSignal }): string {
  return lost.aborted ? (lost.reason as Error).message : 'not lost'
}

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate', 'performance'],
  })
})
afterEach(() => {
  vi.useRealTimers()
})

test('a lease is lost when a renewal neither succeeds nor fails', async () => {
  const ticketStore = Object.assign(new FakeDesk(), { renew: () => never<ReadonlySet<number>>() })
  const lease = await new LeaseHolder(ticketStore).acquire(key, { ttlMs: 60 })
  // A store has three seconds to answer, at least.
  await vi.advanceTimersByTimeAsync(60 + 2900)
  expect(lossOf(lease)).toBe('not lost')
  await vi.advanceTimersByTimeAsync(200)
  expect(lossOf(lease)).toContain('could not be renewed in time')
  // A waiter need not wait for a renewal whose answer alone was lost.
  expect(ticketStore.tickets).toEqual([])
  await lease.release()
})

test('a lease is kept while renewals succeed, however often its time passes', async () => {
  let renewals = 0
  const ticketStore = Object.assign(new FakeDesk(), {
    renew: async (tickets: readonly number[]) => {
      renewals += 1
      return new Set(tickets)
    },
  })
  const lease = await new LeaseHolder(ticketStore).acquire(key, { ttlMs: 300 })
  await vi.advanceTimersByTimeAsync(5 * 300)
  expect(renewals).toBeGreaterThan(10)
  expect(lossOf(lease)).toBe('not lost')
  await lease.release()
})

test('a lease that was not renewed in time is kept when the store still has it', async () => {
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
  await vi.advanceTimersByTimeAsync(300)
  expect(asked.length).toBeGreaterThan(3)
  expect(lossOf(lease)).toBe('not lost')
  await lease.release()
})

test('a lease that the store no longer has is lost', async () => {
  const ticketStore = Object.assign(new FakeDesk(), { renew: async () => new Set<number>() })
  const lease = await new LeaseHolder(ticketStore).acquire(key, { ttlMs: 60 })
  await vi.advanceTimersByTimeAsync(30)
  expect(lossOf(lease)).toContain('the session was deleted')
})

test('leases of one process are renewed together', async () => {
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
  await vi.advanceTimersByTimeAsync(400)
  expect(asked[0]).toEqual(leases.map(({ fence }) => fence))
  await holder.close()
})

test('a lease that cannot be returned ends anyway, wakes the waiters, and may be released again', async () => {
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

test('closing waits at most two seconds for a ticket store that does not answer', async () => {
  const ticketStore = Object.assign(new FakeDesk(), { giveBack: () => never<void>() })
  const holder = new LeaseHolder(ticketStore)
  const lease = await holder.acquire(key, {})
  const closing = holder.close()
  await vi.advanceTimersByTimeAsync(2000)
  await closing
  expect(lossOf(lease)).toContain('its store was closed')
})
