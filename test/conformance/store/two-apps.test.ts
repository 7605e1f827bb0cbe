import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { SessionKey } from '../../../src/session/message.js'
import type { SessionStore } from '../../../src/session/session-store.js'
import { openStore } from '../../../src/store/open-store.js'
import { sql } from '../../../src/store/sql-database.js'
import { DRIVERS, type Driver, openDatabase, SHARED_DRIVERS, useStore } from './drivers.js'

/** Both apps have a user and sessions of the same names: only the app tells their rows apart. */
interface Apps {
  shop: SessionKey
  bank: SessionKey
}

/** Two apps that no other test uses. */
function newApps(): Apps {
  const id = randomUUID()
  const keyOf = (appName: string) => ({ appName: `${appName}-${id}`, userId: 'ann', sessionId: 'one' })
  return { shop: keyOf('shop'), bank: keyOf('bank') }
}

const runsOf = ({ appName }: SessionKey) => [`${appName}-ended`, `${appName}-begun`]
const AHEAD_MS = 60_000

const long = (text: string) => ({
  body: { messages: Array.from({ length: 20 }, (_, n) => ({ text: `${text} ${n} ${'y'.repeat(400)}` })) },
})

/**
 * Something in every table: an ended run with a tool call, a run under way, memory, files, money, variants, schedules, the
 * lease of a session that does not exist.
 */
async function fill(store: SessionStore, key: SessionKey): Promise<void> {
  const { appName, userId } = key
  const { memory, artifacts, variants, spending, schedules, runs } = store
  await store.createSession(key, { color: 'red', 'user:name': appName, 'app:plan': appName })
  await store.createSession({ ...key, appName: `${appName}-inner` }, { a: 1 }, { nestedIn: appName })
  const [ended = '', begun = ''] = runsOf(key)
  for (const runId of [ended, begun]) {
    const message = { role: 'user', content: `to ${runId}`, timestamp: 1, id: runId }
    const opened = await store.openRun({ key, runId, message, events: [{ seq: 1 }], input: { runId } })
    if (!('lease' in opened)) expect.fail('the run was not opened')
    const step = { key, runId, fence: opened.lease.fence }
    const call = { callId: 'c', tool: 'charge', effect: 'once', digest: runId, args: {} } as const
    await runs.saveStep({ ...step, calls: [{ id: 'm/c', status: 'intent', call }] })
    await runs.saveStep({
      ...step,
      calls: [{ id: 'm/c', status: 'done', result: { paid: runId } }],
      requests: [{ step: 1, record: long(runId) }],
      journal: [{ id: 'e1', kind: 'event', scope: '', author: 'root', branch: '' }],
    })
    await runs.appendEvents(key, runId, [{ seq: 2, type: 'text-delta', text: runId }])
    await runs.sendSignal(runId, { type: 'stop', reason: runId })
    const ask = { id: `reserved-${runId}`, key, runId, limits: { day: 1000 } }
    await spending.reserve({ ...ask, wants: 10, enough: 5, least: 1 })
    if (runId !== ended) continue
    await runs.saveStep({ ...step, events: [{ seq: 9, type: 'run-finish' }], release: true })
    opened.lease.released()
  }
  const usage = { model: 'openai/x', calls: 1, inputTokens: 5, outputTokens: 5, cost: 0.1 }
  const documents = [{ seq: 1, at: 1, terms: ['red'] }]
  await memory.index(key, { version: 1, afterSeq: 0, throughSeq: 1, documents })
  const fact = { text: 'red', kind: 'fact', priority: 1, time: 1, fromSeq: 1, toSeq: 1, origin: 'x' } as const
  await memory.observe(key, { observations: [{ ...fact, terms: ['red'] }], usage })
  for (const name of ['plan.md', 'user:photo'])
    await artifacts.save({ ...key, name }, { header: { kind: 'text' }, body: appName })
  await store.forkSession(key, 'second', { throughSeq: 1 })
  await variants.show({ ...key, sessionId: 'second' }, key.sessionId)
  await variants.show(key, 'second')
  await schedules.save({ appName, name: 'daily', rule: '0 9 * * *', tick: 1, runId: ended })
  await store.createSession({ appName, userId, sessionId: 'three' })
  await store.acquireLease({ appName, userId, sessionId: 'without a session' })
}

/** Everything that the contract of a store can read about an app. */
async function readAll(store: SessionStore, key: SessionKey): Promise<unknown> {
  const { appName } = key
  const runs = []
  for (const runId of runsOf(key))
    runs.push({
      summary: await store.runs.findRun(runId),
      events: await store.runs.readEvents(runId),
      requests: await store.runs.readRequests(runId),
      calls: await store.runs.readCalls(runId),
      signals: await store.runs.readSignals(runId),
      resumable: await store.runs.readResumable(runId),
    })
  return {
    runs,
    sessions: await store.listSessions({ appName }),
    session: await store.loadSession(key),
    inner: await store.loadSession({ ...key, appName: `${appName}-inner` }),
    second: await store.loadSession({ ...key, sessionId: 'second' }),
    variants: await store.variants.list(key),
    observations: await store.memory.readObservations(key),
    documents: await store.memory.findDocuments(key, { terms: ['red'], limit: 10 }),
    files: await store.artifacts.list(key),
    file: await store.artifacts.load({ ...key, name: 'plan.md' }),
    photo: await store.artifacts.load({ ...key, name: 'user:photo' }),
    usage: await store.spending.usage({ appName }),
    schedules: await store.schedules.read(appName),
  }
}

/**
 * The rows of every table, without those that SQLite keeps for full-text search, the counter of leases, and the times of
 * leases.
 */
async function readTables(driver: Driver, url: string): Promise<Record<string, unknown[]>> {
  const database = await openDatabase(url)
  const names = await database.run(
    sql(
      driver.name === 'sqlite'
        ? `SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'lango_%' AND name NOT LIKE 'lango_memory_search_%'
            AND name <> 'lango_fences'`
        : `SELECT tablename AS name FROM pg_tables WHERE tablename LIKE 'lango_%'`,
    ),
  )
  const tables: Record<string, unknown[]> = {}
  for (const { name } of names) {
    const rows = await database.run(sql(`SELECT * FROM ${name}`))
    tables[String(name)] = rows
      .filter(({ deleted_at }) => (deleted_at ?? null) === null)
      .map(({ lease_until: _, ...row }) => JSON.stringify(row))
      .sort()
  }
  await database.close()
  return tables
}

/** A store of its own. */
async function open(driver: Driver) {
  const { url, stop } = await driver.start()
  const store = await openStore(url)
  onTestFinished(async () => {
    await store.close()
    await stop()
  })
  return { url, store }
}

/** Every way to delete, and that it has deleted something of its own app. */
const DELETIONS: Record<string, (store: SessionStore, key: SessionKey) => Promise<unknown>> = {
  'pruning run records': async (store, { appName }) => {
    const before = Date.now() + AHEAD_MS
    expect(await store.runs.prune({ appName, before })).toEqual({ events: 3, requests: 1, signals: 1 })
  },
  'the expiry of run records': (store, { appName }) =>
    vi.waitFor(async () => {
      await store.expire({ appName, runsMs: 0 })
      expect(await store.runs.readEvents(`${appName}-ended`)).toEqual([])
      expect(await store.runs.findRun(`${appName}-ended`)).toBeUndefined()
    }, AHEAD_MS),
  'the expiry of sessions': (store, key) =>
    vi.waitFor(async () => {
      await store.expire({ appName: key.appName, sessionsMs: 1 })
      expect(await store.describeSession({ ...key, sessionId: 'three' })).toBeUndefined()
    }, AHEAD_MS),
  'deleting a session': async (store, key) => expect(await store.deleteSession(key)).toBe(true),
  'erasing a user': async (store, { appName, userId }) =>
    expect(await store.erase({ appName, userId })).toMatchObject({ sessions: 4, runs: 2, artifacts: 3 }),
  'deleting artifacts': async (store, key) => {
    for (const name of ['plan.md', 'user:photo'])
      expect(await store.artifacts.delete({ ...key, name })).toBe(1)
  },
  'forgetting observations and the index': async (store, key) => {
    expect(await store.memory.forget(key, [1])).toBe(1)
    await store.memory.reset(key, { index: true, observations: true })
  },
  'forgetting schedules': async (store, { appName }) => {
    await store.schedules.keep(appName, [])
    expect(await store.schedules.read(appName)).toEqual([])
  },
  'taking signals': async (store, { appName }) =>
    expect(await store.runs.takeSignals(`${appName}-begun`)).toHaveLength(1),
}

describe.each(DRIVERS)('two apps in one $name store', driver => {
  const place = useStore(driver)
  const { bank } = newApps()
  beforeAll(() => fill(place.store, bank))

  test.each(Object.entries(DELETIONS))(
    `%s of one app leaves the data of another one in ${driver.name}`,
    async (_, remove) => {
      const { store } = place
      const { shop } = newApps()
      await fill(store, shop)
      const before = await readAll(store, bank)
      await remove(store, shop)
      expect(await readAll(store, bank)).toEqual(before)
    },
  )

  test(`pruning without an app deletes the run records of every app in ${driver.name}`, async () => {
    const { store } = await open(driver)
    const { shop } = newApps()
    await fill(store, shop)
    await fill(store, bank)
    const pruned = await store.runs.prune({ before: Date.now() + AHEAD_MS })
    expect(pruned).toEqual({ events: 6, requests: 2, signals: 2 })
    expect(await store.runs.readEvents(`${bank.appName}-ended`)).toEqual([])
  })
})

for (const driver of SHARED_DRIVERS)
  test(`every ${driver.name} table has the rows of one app unchanged after everything of another one was deleted`, async () => {
    const { url, store } = await open(driver)
    const { shop, bank } = newApps()
    const { appName, userId } = shop
    await fill(store, bank)
    const before = await readTables(driver, url)
    const empty = Object.keys(before).filter(name => before[name]?.length === 0)
    expect(empty.filter(name => name !== 'lango_calibration')).toEqual([])
    await fill(store, shop)
    for (const remove of [
      'pruning run records',
      'the expiry of run records',
      'the expiry of sessions',
      'deleting a session',
    ])
      await DELETIONS[remove]?.(store, shop)
    await store.erase({ appName, userId })
    await store.schedules.keep(appName, [])
    const after = await readTables(driver, url)
    // State of an app belongs to no user: no deletion of users' data reaches it.
    after.lango_app_state = (after.lango_app_state ?? []).filter(row => !String(row).includes(appName))
    expect(after).toEqual(before)
  })
