import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type Logger, silentLogger } from '../logger.js'
import type { SessionStore } from '../session/session-store.js'
import { openStore } from '../store/open-store.js'
import { createSweep, DAY_MS } from './retention.js'

const HOUR_MS = DAY_MS / 24
const START = Date.UTC(2030, 0, 1)

let store: SessionStore
let said: string[]
let logger: Logger
let steady = 0

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: START })
  store = await openStore('memory:')
  said = []
  const say = (message: string, facts?: object) => said.push(`${message} ${JSON.stringify(facts)}`)
  logger = { ...silentLogger, info: say, warn: say }
  steady = 0
})
afterEach(async () => {
  vi.useRealTimers()
  await store.close()
})

function sweep() {
  return createSweep({ store, appName: 'app', sessionsMs: 30 * DAY_MS, logger, steadyMs: () => steady })
}

async function ids(): Promise<string[]> {
  return (await store.listSessions({ appName: 'app' })).sessions.map(({ key }) => key.sessionId)
}

/** A session on each day, as in a store that is in use. */
async function use(days: number): Promise<void> {
  for (let day = 0; day < days; day++) {
    await store.createSession({ appName: 'app', userId: 'ann', sessionId: `day-${day}` })
    pass(DAY_MS)
  }
}

function pass(ms: number): void {
  vi.setSystemTime(Date.now() + ms)
  steady += ms
}

test('retention deletes sessions that were not changed for the time, and says how many', async () => {
  await use(40)
  await sweep()()
  expect((await ids()).length).toBe(30)
  expect(said).toEqual([expect.stringContaining('"sessions":10')])
})

test('retention deletes nothing after the clock jumps ahead, reports it once, and deletes again when it is set right', async () => {
  await use(10)
  const run = sweep()
  vi.setSystemTime(Date.now() + 400 * DAY_MS)
  await run()
  // What is stored under the wrong clock does not make it right.
  await store.createSession({ appName: 'app', userId: 'ann', sessionId: 'wrong-time' })
  pass(HOUR_MS)
  await run()
  expect(await ids()).toHaveLength(11)
  expect(said).toEqual([expect.stringContaining('Check the clock')])
  vi.setSystemTime(START + 10 * DAY_MS)
  await run()
  expect(await ids()).toHaveLength(11)
  expect(said).toHaveLength(1)
})

test('retention trusts the clock after a real pause once it has advanced steadily for a day', async () => {
  await use(3)
  pass(60 * DAY_MS)
  const run = sweep()
  for (let hour = 0; hour < 24; hour++) {
    await run()
    pass(HOUR_MS)
  }
  expect(await ids()).toHaveLength(3)
  await run()
  await run()
  expect(await ids()).toEqual([])
  expect(said).toHaveLength(2)
})

test('a failure of retention is logged and does not throw', async () => {
  await store.close()
  await sweep()()
  expect(said).toEqual([expect.stringContaining('could not be deleted')])
})
