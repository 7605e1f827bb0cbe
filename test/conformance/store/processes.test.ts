import { describe, expect, test } from 'vitest'
import { openStore } from '../../../src/store/open-store.js'
import { type Child, runScript } from '../../support/child.js'
import { LONG, longUnless } from '../../support/tiers.js'
import { DISK_DRIVERS, type Driver, newKey, useStore } from './drivers.js'

function storeChild(...args: (string | number)[]): Child {
  return runScript('store-child.ts', args.map(String))
}

/** Waits for all and shows what went wrong, if anything did. */
async function allSucceed(children: readonly Child[]): Promise<void> {
  for (const child of children) {
    const { code } = await child.ended
    expect({ code, errors: child.errors() }).toEqual({ code: 0, errors: '' })
  }
}

/** The number of processes in `npm test`, and in `npm run test:long`. */
const COUNTS = [3, 8]

describe.each(DISK_DRIVERS)('processes that share $name', (driver: Driver) => {
  const place = useStore(driver)

  for (const count of COUNTS) {
    test(
      `${count} processes open an empty ${driver.name} database, create a session each and write to it and to the app state at once, and nothing is lost`,
      longUnless(count === COUNTS[0]),
      async () => {
        const { url, stop } = await driver.startEmpty()
        const { appName } = newKey()
        const keys = Array.from({ length: count }, (_, index) => ({
          appName,
          userId: 'ann',
          sessionId: `s${index}`,
        }))
        const each = 25
        await allSucceed(
          keys.map(({ sessionId }, index) =>
            storeChild('append', url, appName, sessionId, each, `w${index}`),
          ),
        )
        const store = await openStore(url)
        for (const [index, key] of keys.entries()) {
          const messages = await store.readMessages(key)
          expect(messages.map(({ seq }) => seq)).toEqual(
            Array.from({ length: each }, (_, number) => number + 1),
          )
          expect(messages.map(({ content }) => content)).toEqual(
            Array.from({ length: each }, (_, number) => `w${index} ${number}`),
          )
        }
        const state = (await store.loadSession(keys[0] ?? newKey()))?.state ?? {}
        expect(Object.keys(state)).toHaveLength(count * each)
        await store.close()
        await stop()
      },
    )

    test(
      `${count} processes write to one session in ${driver.name} through leases, one at a time`,
      longUnless(count === COUNTS[0]),
      async () => {
        const key = newKey()
        await place.store.createSession(key)
        const each = 6
        const children = Array.from({ length: count }, (_, index) =>
          storeChild('take', place.url, key.appName, key.sessionId, each, `w${index}`),
        )
        await allSucceed(children)
        const messages = await place.store.readMessages(key)
        expect(messages.map(({ seq }) => seq)).toEqual(
          Array.from({ length: count * each }, (_, index) => index + 1),
        )
        for (const [index, child] of children.entries()) {
          const own = messages.filter(({ content }) => content.startsWith(`w${index} `))
          expect(own.map(({ content }) => content)).toEqual(
            Array.from({ length: each }, (_, number) => `w${index} ${number}`),
          )
          expect(child.lines).toEqual(own.map(({ seq }) => String(seq)))
        }
      },
    )
  }

  test(`every acknowledged message of a killed writer is in ${driver.name}, without a gap`, async () => {
    const key = newKey()
    await place.store.createSession(key)
    // It would go on for minutes: the kill always comes in the middle.
    const child = storeChild('append', place.url, key.appName, key.sessionId, 1_000_000, 'w')
    await child.untilLines(100)
    child.process.kill('SIGKILL')
    expect((await child.ended).signal).toBe('SIGKILL')
    const acknowledged = child.lines.length
    expect(acknowledged).toBeGreaterThanOrEqual(100)

    const reopened = await openStore(place.url)
    try {
      const messages = await reopened.readMessages(key, { limit: 1_000_000 })
      expect(messages.map(({ seq }) => seq)).toEqual(
        Array.from({ length: messages.length }, (_, index) => index + 1),
      )
      expect(messages.map(({ content }) => content)).toEqual(messages.map((_, index) => `w ${index}`))
      // The one in flight may have been stored without its writer having heard of it.
      expect(messages.length - acknowledged).toBeGreaterThanOrEqual(0)
      const session = await reopened.loadSession(key)
      expect(session?.totalMessages).toBe(messages.length)
      expect(Object.keys(session?.state ?? {})).toHaveLength(messages.length)
      const next = await reopened.appendMessage(key, { role: 'user', content: 'after', timestamp: 1 })
      expect(next.seq).toBe(messages.length + 1)
    } finally {
      await reopened.close()
    }
  })

  test(`the next waiter in ${driver.name} gets the lease of a killed process`, LONG, async () => {
    const key = newKey()
    await place.store.createSession(key)
    const holder = storeChild('hold', place.url, key.appName, key.sessionId, 500)
    await holder.untilLines(1)
    const fence = Number(holder.lines[0])
    const waiting = place.store.acquireLease(key, { waitMs: 25_000 })
    holder.process.kill('SIGKILL')
    await holder.ended
    const lease = await waiting
    expect(lease.fence).toBeGreaterThan(fence)
    await place.store.appendMessage(
      key,
      { role: 'user', content: 'mine', timestamp: 1 },
      { fence: lease.fence },
    )
    await lease.release()
  })

  test(`a process that closed its ${driver.name} store ends by itself, with a lease held and a waiter pending`, async () => {
    const { appName } = newKey()
    const child = storeChild('lease', place.url, appName, 's')
    await allSucceed([child])
    expect(child.lines).toEqual(['held'])
    const lease = await place.store.acquireLease({ appName, userId: 'ann', sessionId: 's' })
    await lease.release()
  })
})
