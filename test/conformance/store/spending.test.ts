import { randomUUID } from 'node:crypto'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { SessionKey } from '../../../src/session/message.js'
import { DAY_MS, type SpendingAsk, type SpendingStore } from '../../../src/session/spending.js'
import { openStore } from '../../../src/store/open-store.js'
import { sql } from '../../../src/store/sql-database.js'
import { DRIVERS, failureOf, newKey, openDatabase, SHARED_DRIVERS, useStore } from './drivers.js'

const tokens = {
  inputTokens: 100,
  outputTokens: 10,
  cachedInputTokens: 20,
  cacheWriteTokens: 30,
  reasoningTokens: 4,
  totalTokens: 110,
}

function usageEvent(seq: number, model: string, cost?: number) {
  return {
    seq,
    type: 'usage',
    author: 'a',
    model,
    usage: { ...tokens, ...(cost === undefined ? {} : { cost }) },
  }
}

describe.each(DRIVERS)('spending in $name', driver => {
  const place = useStore(driver)

  const spending = (): SpendingStore => place.store.spending

  async function session(key: SessionKey = newKey()): Promise<SessionKey> {
    await place.store.createSession(key)
    return key
  }

  function ask(key: SessionKey, more: Partial<SpendingAsk> = {}): SpendingAsk {
    const id = randomUUID()
    return { id, key, runId: `run-${id}`, limits: {}, wants: 100, enough: 50, least: 10, ...more }
  }

  async function storeUsage(
    key: SessionKey,
    runId: string,
    events: readonly { seq: number }[],
  ): Promise<void> {
    await place.store.runs.appendEvents(key, runId, [{ seq: 1, type: 'run-start' }])
    await place.store.runs.appendEvents(key, runId, events)
  }

  test.each(['run', 'session', 'day'] as const)(
    'reservations never exceed the limit of a %s, and settling gives back the rest',
    async scope => {
      const key = await session()
      const runId = randomUUID()
      const more = { runId, limits: { [scope]: 250 }, enough: 100 }
      const [first, second, third, fourth] = [ask(key, more), ask(key, more), ask(key, more), ask(key, more)]
      expect(await spending().reserve(first)).toEqual({ granted: 100 })
      expect(await spending().reserve(second)).toEqual({ granted: 100 })
      expect(await spending().reserve(third)).toEqual({ granted: 50 })
      expect(await spending().reserve(fourth)).toEqual({
        granted: 0,
        scope,
        limit: 250,
        left: 0,
        pending: 250,
      })
      await spending().settle(first.id, 30)
      await spending().settle(first.id, 30)
      expect(await spending().reserve(fourth)).toEqual({ granted: 70 })
      await spending().settle(second.id, 100)
      // More than was reserved is counted as it is.
      await spending().settle(third.id, 60)
      const refused = await spending().reserve(ask(key, more))
      expect(refused).toEqual({ granted: 0, scope, limit: 250, left: -10, pending: 70 })
    },
  )

  test('a run, a session and a user have spending sums of their own', async () => {
    const key = await session()
    const other = await session({ ...key, sessionId: 'other' })
    const stranger = await session({ ...key, userId: 'stranger' })
    await spending().reserve(ask(key, { runId: 'r1', wants: 100 }))
    const runOf = async (of: SessionKey, limits: SpendingAsk['limits'], runId = 'r2') =>
      (await spending().reserve(ask(of, { runId, limits, wants: 10 }))).granted
    expect(await runOf(key, { run: 100 }, 'r1')).toBe(0)
    expect(await runOf(key, { run: 100 })).toBe(10)
    expect(await runOf(key, { session: 110 })).toBe(0)
    expect(await runOf(other, { session: 110 })).toBe(10)
    expect(await runOf(other, { day: 120 })).toBe(0)
    expect(await runOf(stranger, { day: 120 })).toBe(10)
  })

  /** Makes everything that was counted until now so many days old. */
  async function age(days: number): Promise<void> {
    if (place.url === 'memory:') {
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + days * DAY_MS })
      onTestFinished(() => void vi.useRealTimers())
      return
    }
    const database = await openDatabase(place.url)
    await database.run(sql('UPDATE lango_usage SET day = day - ?', days))
    await database.close()
  }

  test('spending is deleted by age, for one app; that of today and all budgets stay', async () => {
    const key = await session()
    const other = await session()
    const second = await session({ ...key, userId: 'bob' })
    const events = Array.from({ length: 450 }, (_, index) => usageEvent(index + 2, 'p/m', 1e-9))
    await storeUsage(key, randomUUID(), events)
    await storeUsage(second, randomUUID(), events.slice(0, 3))
    await storeUsage(other, randomUUID(), events.slice(0, 2))
    const budgeted = ask(key, { wants: 7, enough: 7, least: 7 })
    await spending().reserve(budgeted)
    await storeUsage(key, budgeted.runId, [usageEvent(2, 'p/m', 7e-9)])
    await age(30)
    await storeUsage(key, randomUUID(), [usageEvent(2, 'p/m', 5e-9)])
    const { appName } = key
    const expire = async (days: number) => {
      const receipt = await place.store.expire({ appName, usageMs: days * DAY_MS, trustClock: true })
      return receipt.usage
    }
    expect(await expire(30)).toBe(0)
    expect(await expire(29)).toBe(454)
    expect(await expire(1)).toBe(0)
    expect(await spending().usage({ appName })).toMatchObject([{ userId: 'ann', calls: 1 }])
    expect(await spending().usage({ appName: other.appName })).toMatchObject([{ calls: 2 }])
    // 450 without a budget, 7 with one, 5 today.
    const ofSession = await spending().reserve(ask(key, { limits: { session: 462 } }))
    expect(ofSession).toMatchObject({ granted: 0, left: 0 })
    const ofRun = await spending().reserve(ask(key, { runId: budgeted.runId, limits: { run: 7 } }))
    expect(ofRun).toMatchObject({ granted: 0, left: 0 })
    const isShorter = place.store.expire({ appName, usageMs: DAY_MS - 1 })
    expect(await failureOf(isShorter)).toMatchObject({ code: 'invalid-argument' })
  })

  test('a refused reservation names the tightest spending limit', async () => {
    const key = await session()
    const refused = await spending().reserve(ask(key, { limits: { run: 9, session: 4, day: 8 } }))
    expect(refused).toEqual({ granted: 0, scope: 'session', limit: 4, left: 4, pending: 0 })
  })

  test('a reservation takes only a part of the limit of a day, unless that is not enough', async () => {
    const key = await session()
    const day = { limits: { day: 1000 }, wants: 900, enough: 100 }
    expect(await spending().reserve(ask(key, day))).toEqual({ granted: 250 })
    expect(await spending().reserve(ask(key, { ...day, enough: 400 }))).toEqual({ granted: 400 })
  })

  test('a reservation leaves the amount held for a last answer, but grants the least amount unless the hold is firm', async () => {
    const key = await session()
    const run = { limits: { run: 1000 }, wants: 1000, enough: 100, hold: 200 }
    expect(await spending().reserve(ask(key, run))).toEqual({ granted: 800 })
    const tight = { ...run, limits: { run: 205 } }
    expect(await spending().reserve(ask(key, tight))).toEqual({ granted: 10 })
    expect(await spending().reserve(ask(key, { ...tight, isHoldFirm: true }))).toMatchObject({
      granted: 0,
      left: 205,
    })
  })

  test('spending of runs without a budget counts, once', async () => {
    const key = await session()
    await storeUsage(key, 'free', [usageEvent(2, 'm', 0.000_000_04)])
    const budget = ask(key, { runId: 'paid', limits: { session: 100, day: 100 }, wants: 30, enough: 30 })
    await spending().reserve(budget)
    await spending().settle(budget.id, 20)
    await storeUsage(key, 'paid', [usageEvent(2, 'm', 0.000_000_02)])
    const refused = await spending().reserve(
      ask(key, { limits: { session: 100, day: 100 }, wants: 50, least: 50 }),
    )
    expect(refused).toMatchObject({ granted: 0, left: 40 })
  })

  test('usage is counted with the events that report it, by day, user, model and kind', async () => {
    const key = await session()
    const bob = await session({ ...key, userId: 'bob' })
    await storeUsage(key, 'r1', [usageEvent(2, 'x/one', 0.25), usageEvent(3, 'x/one', 0.5)])
    await place.store.runs.appendEvents(key, 'r1', [usageEvent(3, 'x/one', 0.5)])
    await storeUsage(key, 'r2', [usageEvent(2, 'x/two')])
    await storeUsage(bob, 'r3', [usageEvent(2, 'x/one', 1.25)])
    await place.store.memory.observe(key, {
      observations: [],
      usage: { model: 'x/small', calls: 2, inputTokens: 7, outputTokens: 3, cost: 0.125 },
    })
    const { appName } = key
    const lines = await spending().usage({ appName })
    expect(
      lines.map(({ userId, model, kind, calls, usage }) => [userId, model, kind, calls, usage.cost]),
    ).toEqual([
      ['ann', 'x/one', 'run', 2, 0.75],
      ['ann', 'x/small', 'memory', 2, 0.125],
      ['ann', 'x/two', 'run', 1, undefined],
      ['bob', 'x/one', 'run', 1, 1.25],
    ])
    const [line] = lines
    expect(line?.usage).toEqual({
      ...{ inputTokens: 200, outputTokens: 20, cachedInputTokens: 40, cacheWriteTokens: 60 },
      ...{ reasoningTokens: 8, totalTokens: 220, cost: 0.75 },
    })
    expect(lines[2]).toMatchObject({ unpricedCalls: 1 })
    const today = line?.day ?? ''
    expect(await spending().usage({ appName, userId: 'bob', from: today, to: today })).toHaveLength(1)
    expect(await spending().usage({ appName, model: 'x/one' })).toHaveLength(2)
    expect(await spending().usage({ appName, to: '2020-01-01' })).toEqual([])
    expect(await spending().usage({ appName, from: '2200-01-01' })).toEqual([])
  })

  test('a step stores its usage in the same write', async () => {
    const key = newKey()
    const runId = randomUUID()
    const message = { role: 'user', content: 'Hello', timestamp: 1 }
    const opened = await place.store.openRun({
      key,
      runId,
      message,
      events: [{ seq: 1, type: 'run-start' }],
    })
    if (!('lease' in opened)) throw new Error('not opened')
    const { fence } = opened.lease
    for (const events of [[usageEvent(2, 'm', 1)], [usageEvent(3, 'm', 1), usageEvent(4, 'm', 1)]])
      await place.store.runs.saveStep({ key, runId, fence, events })
    await opened.lease.release()
    expect(await spending().usage({ appName: key.appName })).toMatchObject([{ calls: 3, usage: { cost: 3 } }])
  })

  test('a deleted session leaves its cost, and erasing the user deletes it', async () => {
    const key = await session()
    await storeUsage(key, randomUUID(), [usageEvent(2, 'm', 1)])
    await spending().reserve(ask(key))
    await place.store.deleteSession(key)
    expect(await spending().usage({ appName: key.appName })).toHaveLength(1)
    await session(key)
    const day = { limits: { day: 1_000_000_100 }, wants: 1, least: 1 }
    expect(await spending().reserve(ask(key, day))).toMatchObject({ granted: 0, left: 0 })
    expect(await spending().reserve(ask(key, { limits: { session: 1 }, wants: 1, least: 1 }))).toEqual({
      granted: 1,
    })
    const receipt = await place.store.erase(key)
    // A call, two reservations, and sums of a day, two sessions and three runs.
    expect(receipt).toMatchObject({ usage: 9 })
    expect(await spending().usage({ appName: key.appName })).toEqual([])
  })

  test('invalid reservations and limits of spending are refused', async () => {
    const key = await session()
    const bad: [string, () => Promise<unknown>][] = [
      ['wants', () => spending().reserve(ask(key, { wants: 1.5 }))],
      ['limits.day', () => spending().reserve(ask(key, { limits: { day: -1 } }))],
      ['spent', () => spending().settle('x', Number.NaN)],
      ['from', () => spending().usage({ appName: 'a', from: 'yesterday' })],
    ]
    for (const [field, call] of bad) {
      const { code, message } = await failureOf(call())
      expect([code, message.startsWith(field)]).toEqual(['invalid-argument', true])
    }
    expect((await failureOf(spending().reserve(ask(newKey())))).code).toBe('session-not-found')
  })
})

describe.each(SHARED_DRIVERS)('spending of several processes in $name', driver => {
  const place = useStore(driver)

  test('concurrent reservations of two connections never exceed the limit', async () => {
    const second = await openStore(place.url)
    const key = newKey()
    try {
      await place.store.createSession(key)
      const asks = Array.from({ length: 60 }, () => {
        const id = randomUUID()
        return { id, key, runId: id, limits: { day: 1000, session: 1000 }, wants: 60, enough: 60, least: 10 }
      })
      const spent = await Promise.all(
        asks.map(async (each, index) => {
          const { spending } = index % 2 === 0 ? place.store : second
          const { granted } = await spending.reserve(each)
          if (granted > 0 && index % 3 > 0) await spending.settle(each.id, 20)
          return granted > 0 ? (index % 3 > 0 ? 20 : granted) : 0
        }),
      )
      const sum = spent.reduce((all, each) => all + each, 0)
      expect(sum).toBeLessThanOrEqual(1000)
      const left = await second.spending.reserve({
        ...{ id: 'last', key, runId: 'last', wants: 1000, enough: 1000, least: 1000 },
        limits: { day: 1000, session: 1000 },
      })
      expect(left).toMatchObject({ granted: 0, left: 1000 - sum })
    } finally {
      await second.close()
    }
  })

  test('a reservation that a crash left is no longer waited for after a while', async () => {
    const key = newKey()
    await place.store.createSession(key)
    const crashed = {
      id: randomUUID(),
      key,
      runId: 'r',
      limits: { day: 10 },
      wants: 10,
      enough: 10,
      least: 10,
    }
    await place.store.spending.reserve(crashed)
    const again = () => place.store.spending.reserve({ ...crashed, id: randomUUID() })
    expect(await again()).toMatchObject({ granted: 0, left: 0, pending: 10 })
    const database = await openDatabase(place.url)
    await database.run(sql('UPDATE lango_reservations SET at = 0 WHERE app_name = ?', key.appName))
    await database.close()
    expect(await again()).toMatchObject({ granted: 0, left: 0, pending: 0 })
  })
})
