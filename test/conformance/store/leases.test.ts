import { describe, expect, test } from 'vitest'
import type { Message } from '../../../src/session/message.js'
import { openStore } from '../../../src/store/open-store.js'
import { sql } from '../../../src/store/sql-database.js'
import {
  DRIVERS,
  type Driver,
  failureOf,
  fired,
  newKey,
  openDatabase,
  SHARED_DRIVERS,
  useStore,
} from './drivers.js'

const message: Message = { role: 'user', content: 'x', timestamp: 1 }

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

describe.each(DRIVERS)('leases in $name', driver => {
  const place = useStore(driver)

  async function session() {
    const key = newKey()
    await place.store.createSession(key)
    return key
  }

  test('while a lease is held only its holder writes', async () => {
    const key = await session()
    const lease = await place.store.acquireLease(key)
    const busy = await failureOf(place.store.appendMessage(key, message))
    expect(busy.code).toBe('session-busy')
    expect(busy.message).toContain('pass its fence')
    const lost = await failureOf(place.store.appendMessage(key, message, { fence: lease.fence + 1000 }))
    expect(lost.code).toBe('lease-lost')
    expect(await place.store.appendMessage(key, message, { fence: lease.fence })).toEqual({ seq: 1 })
    await place.store.updateState(key, { a: 1 }, { fence: lease.fence })
    await lease.release()
    expect((await failureOf(place.store.appendMessage(key, message, { fence: lease.fence }))).code).toBe(
      'lease-lost',
    )
    expect(await place.store.appendMessage(key, message)).toEqual({ seq: 2 })
    expect(lease.lost.aborted).toBe(false)
  })

  test('a lease covers its own session only, and does not need it to exist', async () => {
    const key = newKey()
    const lease = await place.store.acquireLease(key)
    await place.store.createSession(key)
    const other = await session()
    expect(await place.store.appendMessage(other, message)).toEqual({ seq: 1 })
    expect((await failureOf(place.store.appendMessage(other, message, { fence: lease.fence }))).code).toBe(
      'lease-lost',
    )
    await lease.release()
  })

  test('a second lease is refused at once, or after its time', async () => {
    const key = await session()
    const lease = await place.store.acquireLease(key)
    const atOnce = await failureOf(place.store.acquireLease(key))
    expect(atOnce.code).toBe('session-busy')
    const later = await failureOf(place.store.acquireLease(key, { waitMs: 50 }))
    expect(later.code).toBe('session-busy')
    expect(later.message).toMatch(/after waiting \d+ ms/)
    await lease.release()
    await (await place.store.acquireLease(key)).release()
  })

  test('waiters for a lease get it in the order in which they came, and fences grow', async () => {
    const key = await session()
    const first = await place.store.acquireLease(key)
    const order: number[] = []
    const fences: number[] = [first.fence]
    const waiters: Promise<void>[] = []
    for (let index = 0; index < 5; index++) {
      const waiting = place.store.acquireLease(key, { waitMs: 20_000 })
      waiters.push(
        waiting.then(async lease => {
          order.push(index)
          fences.push(lease.fence)
          await place.store.appendMessage(key, message, { fence: lease.fence })
          await lease.release()
        }),
      )
    }
    await first.release()
    await Promise.all(waiters)
    expect(fences).toEqual([...fences].sort((one, other) => one - other))
    expect(new Set(fences).size).toBe(6)
    expect(order).toEqual([0, 1, 2, 3, 4])
  })

  test('a waiter for a lease can be aborted, and the next one gets the lease', async () => {
    const key = await session()
    const lease = await place.store.acquireLease(key)
    const controller = new AbortController()
    const called = failureOf(place.store.acquireLease(key, { waitMs: 20_000, signal: controller.signal }))
    await pause(20)
    controller.abort(new Error('no longer needed'))
    expect((await called).code).toBe('aborted')
    expect((await failureOf(place.store.acquireLease(key, { signal: AbortSignal.abort() }))).code).toBe(
      'aborted',
    )
    const next = place.store.acquireLease(key, { waitMs: 20_000 })
    await lease.release()
    await (await next).release()
  })

  test('a lease is renewed for as long as it is held', async () => {
    const key = await session()
    const ttlMs = 60
    const lease = await place.store.acquireLease(key, { ttlMs })
    await pause(3 * ttlMs)
    expect(lease.lost.aborted).toBe(false)
    expect(await place.store.appendMessage(key, message, { fence: lease.fence })).toEqual({ seq: 1 })
    await lease.release()
    await lease.release()
  })

  test('deleting the session takes the lease away', async () => {
    const key = await session()
    // A renewal finds out, after a third of its time.
    const lease = await place.store.acquireLease(key, { ttlMs: 300 })
    await place.store.deleteSession(key)
    await fired(lease.lost)
    await place.store.createSession(key)
    expect((await failureOf(place.store.appendMessage(key, message, { fence: lease.fence }))).code).toBe(
      'lease-lost',
    )
  })

  test('closing the store ends its leases and its waiters', async () => {
    const started = await driver.start()
    const store = await openStore(started.url)
    const key = newKey()
    const lease = await store.acquireLease(key)
    const waiting = failureOf(store.acquireLease(key, { waitMs: 20_000 }))
    await pause(20)
    await store.close()
    expect(lease.lost.aborted).toBe(true)
    expect((await waiting).code).toBe('store-unavailable')
    await started.stop()
  })

  test('ten writers in one process take turns by leases', async () => {
    const key = await session()
    let holders = 0
    await Promise.all(
      Array.from({ length: 10 }, async () => {
        const lease = await place.store.acquireLease(key, { waitMs: 20_000 })
        expect(++holders).toBe(1)
        await place.store.appendMessage(key, message, { fence: lease.fence })
        await pause(1)
        holders--
        await lease.release()
      }),
    )
    expect(await place.store.readMessages(key)).toHaveLength(10)
  })
})

test('a holder that stalls for longer than its lease keeps it when nobody took it, in every store', async () => {
  const places = await Promise.all(
    DRIVERS.map(async driver => {
      const { url, stop } = await driver.start()
      const store = await openStore(url)
      const key = newKey()
      await store.createSession(key)
      return { driver, url, stop, store, key, lease: await store.acquireLease(key, { ttlMs: 1000 }) }
    }),
  )
  // Nothing else runs meanwhile: no timer can renew a lease.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1100)
  for (const { driver, url, stop, store, key, lease } of places) {
    const { name } = driver
    const { seq } = await store.appendMessage(key, message, { fence: lease.fence })
    expect([name, seq]).toEqual([name, 1])
    await untilRenewed(driver, url)
    expect([name, lease.lost.aborted]).toEqual([name, false])
    expect([name, (await failureOf(store.acquireLease(key))).code]).toEqual([name, 'session-busy'])
    await lease.release()
    await store.close()
    await stop()
  }
})

/** Waits until the only lease of a store is valid again. In memory it is renewed as soon as its timer fires. */
async function untilRenewed(driver: Driver, url: string): Promise<void> {
  if (driver.name === 'memory') return pause(50)
  const database = await openDatabase(url)
  const valid = sql(`SELECT pk FROM lango_sessions WHERE lease_until > ${database.dialect.now}`)
  await expect.poll(async () => (await database.run(valid)).length, { interval: 5 }).toBe(1)
  await database.close()
}

describe.each(SHARED_DRIVERS)('leases between two stores of $name', driver => {
  const place = useStore(driver)

  test('a second store on the same database respects a lease, waits for it, and gets it', async () => {
    const other = await openStore(place.url)
    try {
      const key = newKey()
      await place.store.createSession(key)
      const lease = await place.store.acquireLease(key)
      expect((await failureOf(other.appendMessage(key, message))).code).toBe('session-busy')
      expect((await failureOf(other.acquireLease(key))).code).toBe('session-busy')
      const waiting = other.acquireLease(key, { waitMs: 20_000 })
      await pause(20)
      await lease.release()
      const taken = await waiting
      expect(await other.appendMessage(key, message, { fence: taken.fence })).toEqual({ seq: 1 })
      expect((await failureOf(place.store.appendMessage(key, message, { fence: lease.fence }))).code).toBe(
        'lease-lost',
      )
    } finally {
      await other.close()
    }
  })
})
