import { expect, test } from 'vitest'
import type { SessionKey } from '../session/message.js'
import type { SessionStore } from '../session/session-store.js'
import { checkedStore } from './checked-store.js'
import { openSqlStore } from './sql-store.js'
import { createMemoryDatabase, type MemoryDatabase } from './sqlite-memory.js'

const key: SessionKey = { appName: 'lango', userId: 'user', sessionId: 's' }

async function openOn(database: MemoryDatabase): Promise<SessionStore> {
  return checkedStore(await openSqlStore(database.open()))
}

test('two stores on one database in memory have the same content and separate leases', async () => {
  const database = await createMemoryDatabase()
  const [one, other] = [await openOn(database), await openOn(database)]
  await one.createSession(key)
  const lease = await one.acquireLease(key)
  await expect(other.acquireLease(key)).rejects.toMatchObject({ code: 'session-busy' })
  await lease.release()
  const next = await other.acquireLease(key)
  await other.appendMessage(key, { role: 'user', content: 'Hello', timestamp: 0 }, { fence: next.fence })
  expect((await one.readMessages(key)).map(({ content }) => content)).toEqual(['Hello'])
  await other.close()
  expect(next.lost.aborted).toBe(true)
  await expect(one.acquireLease(key)).resolves.toBeDefined()
  await one.close()
})

test('a closed store in memory refuses reads and writes, and the database ends with its last store', async () => {
  const database = await createMemoryDatabase()
  const [one, other] = [await openOn(database), await openOn(database)]
  await one.createSession(key)
  await one.close()
  const closed = { code: 'store-unavailable', message: expect.stringContaining('closed') }
  await expect(one.loadSession(key)).rejects.toMatchObject(closed)
  await expect(one.deleteSession(key)).rejects.toMatchObject(closed)
  expect(await other.loadSession(key)).toBeDefined()
  await other.close()
  await expect(openOn(database)).rejects.toMatchObject(closed)
})

test('writes of two stores on one database in memory are stored in transactions of their own', async () => {
  const database = await createMemoryDatabase()
  const [one, other] = [await openOn(database), await openOn(database)]
  const session = (sessionId: string) => ({ ...key, sessionId })
  const outcomes = await Promise.allSettled([
    one.createSession(session('a')),
    one.createSession(session('a')),
    other.createSession(session('a')),
    other.createSession(session('b')),
  ])
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
  const { sessions } = await one.listSessions({ appName: 'lango' })
  expect(sessions.map(each => each.key.sessionId).sort()).toEqual(['a', 'b'])
  await Promise.all([one.close(), other.close()])
})

test('times in a database in memory are those of its clock', async () => {
  let now = Date.UTC(2030, 0, 1)
  const store = await openOn(await createMemoryDatabase(() => now))
  await store.createSession(key)
  now += 60_000.5
  await store.appendMessage(key, { role: 'user', content: 'Hello', timestamp: 0 })
  expect(await store.describeSession(key)).toMatchObject({
    createdAt: Date.UTC(2030, 0, 1),
    updatedAt: Date.UTC(2030, 0, 1, 0, 1),
  })
  await store.close()
})

test('a store in memory answers a check, and refuses a backup', async () => {
  const store = await openOn(await createMemoryDatabase())
  await expect(store.check?.()).resolves.toBeUndefined()
  await expect(store.backup?.('copy.db')).rejects.toMatchObject({
    code: 'unsupported',
    message: expect.stringContaining('This store cannot be copied to a file. It is in memory'),
  })
  await store.close()
})
