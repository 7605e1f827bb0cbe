import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Message, SessionKey } from '../../../src/session/message.js'
import type { SessionStore } from '../../../src/session/session-store.js'
import { checkedStore } from '../../../src/store/checked-store.js'
import { openStore } from '../../../src/store/open-store.js'
import { type SqlDatabase, sql } from '../../../src/store/sql-database.js'
import { openSqlStore } from '../../../src/store/sql-store.js'
import { openSqlite } from '../../../src/store/sqlite.js'
import { createMemoryDatabase } from '../../../src/store/sqlite-memory.js'
import { createStoreDatabase } from '../../support/postgres.js'
import { makeFolder, removeFolder } from '../../support/temporary-folder.js'
import { failureOf, newKey } from './drivers.js'

const message: Message = { role: 'user', content: 'x', timestamp: 1 }
const HOUR_MS = 3_600_000
/** Renewed after twenty seconds: later than any of these tests ends. */
const lasting = { ttlMs: 60_000 }

interface Scene {
  store: SessionStore
  other: SessionStore
  /** Sets the clock of the store ahead, or back. */
  setAhead(ms: number): Promise<void>
  /** Leaves the lease of a process that crashed. */
  leaveLease(key: SessionKey, aheadMs: number, ttlMs: number): Promise<void>
  stop(): Promise<void>
}

const SCENES: { name: string; open(): Promise<Scene> }[] = [
  {
    name: 'memory',
    open: () =>
      openScene(async now => {
        const memory = await createMemoryDatabase(now)
        return { open: async () => memory.open(), remove: async () => {} }
      }),
  },
  {
    name: 'sqlite',
    open: () =>
      openScene(async now => {
        const folder = await makeFolder()
        const open = () => openSqlite({ path: `${folder}/store.db`, sync: 'full' }, now)
        return { open, remove: () => removeFolder(folder) }
      }),
  },
  {
    name: 'postgres',
    async open() {
      const database = await createStoreDatabase()
      const [store, other] = [await openStore(database.url), await openStore(database.url)]
      return {
        store,
        other,
        async setAhead(ms) {
          for (const table of ['lango_sessions', 'lango_leases'])
            await database.query(`UPDATE ${table} SET lease_until = lease_until - $1`, [ms])
        },
        async leaveLease({ appName, userId, sessionId }, aheadMs, ttlMs) {
          await database.query(
            `UPDATE lango_sessions SET fence = nextval('lango_fences'), holder = '', lease_until = $4, lease_ms = $5
              WHERE app_name = $1 AND user_id = $2 AND session_id = $3`,
            [appName, userId, sessionId, Date.now() + aheadMs, ttlMs],
          )
        },
        async stop() {
          await store.close()
          await other.close()
          await database.drop()
        },
      }
    },
  },
]

/** Two stores on one SQLite database, with a clock of the test. */
async function openScene(
  create: (now: () => number) => Promise<{ open(): Promise<SqlDatabase>; remove(): Promise<void> }>,
): Promise<Scene> {
  let aheadOfRealMs = 0
  const now = () => Date.now() + aheadOfRealMs
  const { open, remove } = await create(now)
  const store = checkedStore(await openSqlStore(await open()))
  const other = checkedStore(await openSqlStore(await open()))
  const database = await open()
  return {
    store,
    other,
    async setAhead(ms) {
      aheadOfRealMs += ms
    },
    async leaveLease({ appName, userId, sessionId }, aheadMs, ttlMs) {
      const { fences } = database.dialect
      const text = `UPDATE lango_sessions SET fence = ${fences.next}, holder = '', lease_until = ?, lease_ms = ?
        WHERE app_name = ? AND user_id = ? AND session_id = ?`
      const leave = sql(text, now() + aheadMs, ttlMs, appName, userId, sessionId)
      await database.batch([...fences.take, leave])
    },
    async stop() {
      await database.close()
      await store.close()
      await other.close()
      await remove()
    },
  }
}

describe.each(SCENES)('clocks and leases in $name', ({ open }) => {
  let scene: Scene
  beforeAll(async () => {
    scene = await open()
  })
  afterAll(() => scene.stop())

  async function session() {
    const key = newKey()
    await scene.store.createSession(key)
    return key
  }

  test('an expired lease that nobody took still lets its holder write', async () => {
    const key = await session()
    const lease = await scene.store.acquireLease(key, lasting)
    await scene.setAhead(HOUR_MS)
    expect(await scene.store.appendMessage(key, message, { fence: lease.fence })).toEqual({ seq: 1 })
    await scene.store.updateState(key, { a: 1 }, { fence: lease.fence })
    await lease.release()
  })

  test('an expired lease that another took refuses its former holder', async () => {
    const key = await session()
    const lease = await scene.store.acquireLease(key, lasting)
    await scene.setAhead(HOUR_MS)
    const next = await scene.other.acquireLease(key, lasting)
    expect(next.fence).toBeGreaterThan(lease.fence)
    const late = await failureOf(scene.store.appendMessage(key, message, { fence: lease.fence }))
    expect(late.code).toBe('lease-lost')
    expect(await scene.other.appendMessage(key, message, { fence: next.fence })).toEqual({ seq: 1 })
    await lease.release()
    expect(await scene.other.appendMessage(key, message, { fence: next.fence })).toEqual({ seq: 2 })
    await next.release()
  })

  test('a write without a lease takes the session from a holder whose lease has expired', async () => {
    const key = await session()
    const lease = await scene.store.acquireLease(key, lasting)
    expect((await failureOf(scene.other.appendMessage(key, message))).code).toBe('session-busy')
    await scene.setAhead(HOUR_MS)
    expect(await scene.other.appendMessage(key, message)).toEqual({ seq: 1 })
    const late = await failureOf(scene.store.appendMessage(key, message, { fence: lease.fence }))
    expect(late.code).toBe('lease-lost')
    await lease.release()
  })

  test('a clock that is set back takes no lease away, and the next writer gets it after its release', async () => {
    const key = await session()
    const lease = await scene.store.acquireLease(key, lasting)
    await scene.setAhead(-HOUR_MS)
    expect((await failureOf(scene.other.acquireLease(key))).code).toBe('session-busy')
    expect((await failureOf(scene.other.appendMessage(key, message))).code).toBe('session-busy')
    expect(await scene.store.appendMessage(key, message, { fence: lease.fence })).toEqual({ seq: 1 })
    await lease.release()
    await (await scene.other.acquireLease(key)).release()
  })
})

describe.each(SCENES)('leases of crashed processes in $name', ({ open }) => {
  let scene: Scene
  beforeAll(async () => {
    scene = await open()
  })
  afterAll(() => scene.stop())

  async function session() {
    const key = newKey()
    await scene.store.createSession(key)
    return key
  }

  test('a lease that was left before the clock was set back ends after its own time, for waiters', async () => {
    const key = await session()
    await scene.leaveLease(key, HOUR_MS, 300)
    const lease = await scene.store.acquireLease(key, { waitMs: 20_000 })
    expect(await scene.store.appendMessage(key, message, { fence: lease.fence })).toEqual({ seq: 1 })
    await lease.release()
  })

  test('a lease that was left before the clock was set back ends after its own time, for writers', async () => {
    const key = await session()
    await scene.leaveLease(key, HOUR_MS, 300)
    const code = () =>
      scene.store.appendMessage(key, message).then(
        () => 'stored',
        (error: { code: string }) => error.code,
      )
    expect(await code()).toBe('session-busy')
    await expect.poll(code, { timeout: 60_000 }).toBe('stored')
  })
})
