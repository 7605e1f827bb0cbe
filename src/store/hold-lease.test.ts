import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { GrantedLease, LeaseRequest, LogLease, RefusingLease } from '../session/log-store.js'
import type { SessionKey } from '../session/message.js'
import type { OpenedRun } from '../session/run-store.js'
import { LeaseHolder, type LeaseTable, type OpeningAttempt } from './hold-lease.js'
import { thisProcess } from './lease-process.js'

const key = { appName: 'app', userId: 'ann', sessionId: 'one' }

/** A process of this machine that does not exist. */
const GONE = `${thisProcess().machine}999999999 1`

/** The leases of a store in memory. */
class FakeTable implements LeaseTable {
  /** By session. */
  readonly leases = new Map<string, { fence: number; holder: string }>()
  attempts = 0
  #last = 0

  async acquire(key: SessionKey, { holder, gone }: LeaseRequest): Promise<GrantedLease | RefusingLease> {
    this.attempts += 1
    const lease = this.leases.get(key.sessionId)
    if (lease && lease.holder !== gone) return { holder: lease.holder }
    const fence = ++this.#last
    this.leases.set(key.sessionId, { fence, holder })
    return { key, fence, posts: 0 }
  }

  async renew(leases: readonly LogLease[]): Promise<ReadonlySet<number>> {
    return new Set(leases.map(({ fence }) => fence))
  }

  async release({ key, fence }: LogLease): Promise<void> {
    if (this.leases.get(key.sessionId)?.fence === fence) this.leases.delete(key.sessionId)
  }

  /** Another process has the lease. */
  take(holder = 'elsewhere boot pid 1 1'): void {
    this.leases.set(key.sessionId, { fence: ++this.#last, holder })
  }
}

function never<T>(): Promise<T> {
  return new Promise(() => {})
}

/** Why the lease was lost, if so. */
function lossOf({ lost }: { lost: AbortSignal }): string {
  return lost.aborted ? (lost.reason as Error).message : 'not lost'
}

function failureOf(promise: Promise<unknown>): Promise<{ code?: string; message?: string }> {
  return promise.then(
    () => ({}),
    (error: { code: string; message: string }) => error,
  )
}

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate', 'performance'],
  })
})
afterEach(() => {
  vi.useRealTimers()
})

describe('a lease that is held', () => {
  test('is lost when a renewal neither succeeds nor fails', async () => {
    const table = Object.assign(new FakeTable(), { renew: () => never<ReadonlySet<number>>() })
    const lease = await new LeaseHolder(table).acquire(key, { ttlMs: 60 })
    // A store has three seconds to answer, at least.
    await vi.advanceTimersByTimeAsync(60 + 2900)
    expect(lossOf(lease)).toBe('not lost')
    await vi.advanceTimersByTimeAsync(200)
    expect(lossOf(lease)).toContain('could not be renewed in time')
    // A waiter need not wait for a renewal whose answer alone was lost.
    expect(table.leases.size).toBe(0)
    await lease.release()
  })

  test('is kept while renewals succeed, however often its time passes', async () => {
    const table = new FakeTable()
    const renew = vi.spyOn(table, 'renew')
    const lease = await new LeaseHolder(table).acquire(key, { ttlMs: 300 })
    await vi.advanceTimersByTimeAsync(5 * 300)
    expect(renew.mock.calls.length).toBeGreaterThan(10)
    expect(lossOf(lease)).toBe('not lost')
    await lease.release()
  })

  test('is kept when it was not renewed in time and the store still has it', async () => {
    const table = new FakeTable()
    let asked = 0
    let answer: () => void = () => {}
    // The first renewal is answered after the lease has expired; the second is made then.
    table.renew = async leases => {
      asked += 1
      if (asked === 1) {
        await new Promise<void>(resolve => {
          answer = resolve
        })
      } else answer()
      return new Set(leases.map(({ fence }) => fence))
    }
    const lease = await new LeaseHolder(table).acquire(key, { ttlMs: 60 })
    await vi.advanceTimersByTimeAsync(300)
    expect(asked).toBeGreaterThan(3)
    expect(lossOf(lease)).toBe('not lost')
    await lease.release()
  })

  test('is lost when the store no longer has it, and those who wait for it fail', async () => {
    const table = Object.assign(new FakeTable(), { renew: async () => new Set<number>() })
    const holder = new LeaseHolder(table)
    const lease = await holder.acquire(key, { ttlMs: 60 })
    const waiting = failureOf(holder.acquire(key, { waitMs: 60_000 }))
    await vi.advanceTimersByTimeAsync(30)
    expect(lossOf(lease)).toContain('the session was deleted')
    expect(await waiting).toMatchObject({ code: 'lease-lost' })
  })

  test('is not lost when its last write ends it while it is renewed', async () => {
    const table = Object.assign(new FakeTable(), { renew: async () => new Set<number>() })
    const holder = new LeaseHolder(table)
    const lease = await holder.acquire(key, { ttlMs: 60_000 })
    const waiting = holder.acquire(key, { waitMs: 60_000 })
    table.leases.clear()
    await vi.advanceTimersByTimeAsync(20_010)
    lease.released()
    expect((await waiting).fence).toBeGreaterThan(lease.fence)
    expect(lossOf(lease)).toBe('not lost')
  })

  test('is renewed together with the others of its process', async () => {
    const table = new FakeTable()
    const renew = vi.spyOn(table, 'renew')
    const holder = new LeaseHolder(table)
    const leases = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        holder.acquire({ ...key, sessionId: `s${index}` }, { ttlMs: 900 + index }),
      ),
    )
    await vi.advanceTimersByTimeAsync(400)
    expect(renew.mock.calls[0]?.[0].map(({ fence }) => fence)).toEqual(leases.map(({ fence }) => fence))
    await holder.close()
  })

  test('ends when it cannot be released in the store, wakes the waiters, and may be released again', async () => {
    const table = new FakeTable()
    const release = table.release.bind(table)
    const holder = new LeaseHolder(table)
    const lease = await holder.acquire(key, {})
    const next = holder.acquire(key, { waitMs: 60_000 })
    table.release = async given => {
      table.release = release
      await release(given)
      throw new TypeError('the network is down')
    }
    await expect(lease.release()).rejects.toThrow('the network is down')
    await lease.release()
    await (await next).release()
    const again = vi.spyOn(table, 'release')
    await holder.close()
    expect(again).not.toHaveBeenCalled()
  })

  test('does not keep a store from closing for longer than two seconds', async () => {
    const table = Object.assign(new FakeTable(), { release: () => never<void>() })
    const holder = new LeaseHolder(table)
    const lease = await holder.acquire(key, {})
    const closing = holder.close()
    await vi.advanceTimersByTimeAsync(2000)
    await closing
    expect(lossOf(lease)).toContain('its store was closed')
  })
})

describe('writers that wait for a lease', () => {
  test('get it in the order in which they came, and only the first one attempts', async () => {
    const table = new FakeTable()
    const holder = new LeaseHolder(table)
    const order: number[] = []
    const held = await holder.acquire(key, {})
    const waiters = [1, 2, 3].map(async number => {
      const lease = await holder.acquire(key, { waitMs: 60_000 })
      order.push(number)
      await lease.release()
    })
    await vi.advanceTimersByTimeAsync(30_000)
    // The lease is in this process: its end wakes the first one, which need not poll.
    expect(table.attempts).toBe(2)
    await held.release()
    await Promise.all(waiters)
    expect(order).toEqual([1, 2, 3])
  })

  test('poll while another process has it, every 100 ms at last', async () => {
    const table = new FakeTable()
    table.take()
    const holder = new LeaseHolder(table)
    const waiting = holder.acquire(key, { waitMs: 60_000 })
    await vi.advanceTimersByTimeAsync(124)
    expect(table.attempts).toBe(6)
    await vi.advanceTimersByTimeAsync(1000)
    expect(table.attempts).toBe(16)
    table.leases.clear()
    await vi.advanceTimersByTimeAsync(100)
    await (await waiting).release()
  })

  test('come before one that does not wait', async () => {
    const table = new FakeTable()
    table.take()
    const holder = new LeaseHolder(table)
    const waiting = holder.acquire(key, { waitMs: 60_000 })
    await vi.advanceTimersByTimeAsync(1)
    table.leases.clear()
    expect(await failureOf(holder.acquire(key, {}))).toMatchObject({ code: 'session-busy' })
    await vi.advanceTimersByTimeAsync(100)
    await (await waiting).release()
    await (await holder.acquire(key, {})).release()
  })

  test('fail after their time, and when they are aborted or the store is closed', async () => {
    const table = new FakeTable()
    table.take()
    const holder = new LeaseHolder(table)
    const stop = new AbortController()
    const failures = [
      failureOf(holder.acquire(key, { waitMs: Number.POSITIVE_INFINITY, signal: stop.signal })),
      failureOf(holder.acquire(key, { waitMs: 50 })),
      failureOf(holder.acquire(key, { waitMs: 60_000 })),
    ]
    await vi.advanceTimersByTimeAsync(50)
    stop.abort()
    expect(await failures[0]).toMatchObject({ code: 'aborted' })
    expect(await failures[1]).toMatchObject({
      code: 'session-busy',
      message: expect.stringMatching(/^Another writer .* after waiting 5\d ms: /),
    })
    await holder.close()
    expect(await failures[2]).toMatchObject({ code: 'store-unavailable' })
  })

  test('do not get a lease that is granted after the store was closed', async () => {
    const table = new FakeTable()
    const acquire = table.acquire.bind(table)
    table.acquire = async (...parameters) => {
      await new Promise(resolve => setTimeout(resolve, 10))
      return acquire(...parameters)
    }
    const holder = new LeaseHolder(table)
    const acquiring = failureOf(holder.acquire(key, {}))
    await holder.close()
    await vi.advanceTimersByTimeAsync(10)
    expect(await acquiring).toMatchObject({ code: 'store-unavailable' })
    expect(table.leases.size).toBe(0)
  })

  test('get the lease of a process that is gone at once', async () => {
    const table = new FakeTable()
    table.take(GONE)
    const lease = await new LeaseHolder(table).acquire(key, {})
    expect(table.attempts).toBe(2)
    expect(table.leases.get(key.sessionId)).toEqual({ fence: lease.fence, holder: thisProcess().holder })
    await lease.release()
  })
})

describe('opening a run', () => {
  /** Answers of a store, and what its attempts asked for. */
  function attempts(table: FakeTable, isBlocked: () => boolean = () => false) {
    return vi.fn(async (request: LeaseRequest): Promise<OpeningAttempt> => {
      if (!table.leases.has(key.sessionId) && isBlocked()) return { busy: undefined }
      const answer = await table.acquire(key, request)
      return 'fence' in answer ? { lease: answer, seq: 7 } : { busy: answer }
    })
  }

  async function endLease(opened: OpenedRun): Promise<void> {
    if ('lease' in opened) await opened.lease.release()
  }

  test('returns the lease that the store granted, or its answer without one', async () => {
    const table = new FakeTable()
    const holder = new LeaseHolder(table)
    const opened = await holder.openRun(key, {}, attempts(table))
    expect(opened).toMatchObject({ seq: 7, lease: { fence: 1 } })
    expect(await holder.openRun(key, {}, async () => ({ answer: { known: true } }))).toEqual({ known: true })
    await endLease(opened)
  })

  test('is attempted at once although others wait: it may be answered or queued', async () => {
    const table = new FakeTable()
    table.take()
    const holder = new LeaseHolder(table)
    const waiting = failureOf(holder.acquire(key, { waitMs: 60_000 }))
    const answer = async () => ({ answer: { queued: 1 } })
    expect(await holder.openRun(key, { waitMs: 60_000 }, answer)).toEqual({ queued: 1 })
    expect(await holder.openRun(key, {}, answer)).toEqual({ queued: 1 })
    await holder.close()
    expect(await waiting).toMatchObject({ code: 'store-unavailable' })
  })

  test('takes its place among the waiting writers', async () => {
    const table = new FakeTable()
    const holder = new LeaseHolder(table)
    const held = await holder.acquire(key, {})
    const order: string[] = []
    const wait = async (name: string, lease: Promise<{ release(): Promise<void> } | OpenedRun>) => {
      const got = await lease
      order.push(name)
      await ('release' in got ? got.release() : endLease(got))
    }
    const attempt = attempts(table)
    const waiters = [
      wait('first', holder.acquire(key, { waitMs: 60_000 })),
      wait('run', holder.openRun(key, { waitMs: 60_000 }, attempt)),
      wait('last', holder.acquire(key, { waitMs: 60_000 })),
    ]
    await vi.advanceTimersByTimeAsync(1000)
    expect(attempt).toHaveBeenCalledTimes(1)
    await held.release()
    await Promise.all(waiters)
    expect(order).toEqual(['first', 'run', 'last'])
  })

  test('does not keep others from the lease while runs that were accepted before come first', async () => {
    const table = new FakeTable()
    const holder = new LeaseHolder(table)
    let isBlocked = true
    const attempt = attempts(table, () => isBlocked)
    const opening = holder.openRun(key, { waitMs: 60_000 }, attempt)
    const refused = failureOf(holder.openRun(key, { waitMs: 30 }, attempt))
    const lease = await holder.acquire(key, { waitMs: 60_000 })
    await vi.advanceTimersByTimeAsync(500)
    isBlocked = false
    await lease.release()
    await vi.advanceTimersByTimeAsync(100)
    await endLease(await opening)
    const { code, message } = await refused
    expect(code).toBe('session-busy')
    expect(message).toMatch(/after waiting \d+ ms/)
    isBlocked = true
    expect(await failureOf(holder.openRun(key, {}, attempt))).toMatchObject({
      code: 'session-busy',
      message: expect.stringMatching(
        /^A run that waits for a person, or in the queue, comes first in .*": try/,
      ),
    })
  })

  test('is repeated at once when the process that holds the lease is gone', async () => {
    const table = new FakeTable()
    table.take(GONE)
    const attempt = attempts(table)
    const opened = await new LeaseHolder(table).openRun(key, { ttlMs: 500 }, attempt)
    expect(opened).toMatchObject({ seq: 7 })
    const request = { ttlMs: 500, holder: thisProcess().holder }
    expect(attempt.mock.calls).toEqual([[request], [{ ...request, gone: GONE }]])
    await endLease(opened)
  })
})
