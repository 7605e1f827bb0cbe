import { describe, expect, onTestFinished, test } from 'vitest'
import type { SessionKey } from '../../../src/session/message.js'
import { openStore } from '../../../src/store/open-store.js'
import { sql } from '../../../src/store/sql-database.js'
import { DRIVERS, failureOf, newKey, openDatabase, SHARED_DRIVERS, useStore } from './drivers.js'

describe.each(DRIVERS)('variants of a chat in $name', driver => {
  const place = useStore(driver)
  const variants = () => place.store.variants

  /** A chat with two messages, and copies of its first one that are variants of it, each shown when it was made. */
  async function chat(...copies: string[]): Promise<SessionKey> {
    const key = newKey()
    await place.store.createSession(key, {}, { title: 'Chat' })
    for (const content of ['question', 'answer'])
      await place.store.appendMessage(key, { role: 'user', content, timestamp: 1 })
    for (const sessionId of copies) {
      await place.store.forkSession(key, sessionId, { throughSeq: 1 })
      await variants().show({ ...key, sessionId }, key.sessionId)
    }
    return key
  }
  const listed = async ({ appName, userId }: SessionKey) => {
    const { sessions } = await place.store.listSessions({ appName, userId })
    return sessions.map(({ key }) => key.sessionId)
  }
  const group = async (key: SessionKey) =>
    (await variants().list(key)).map(({ sessionId, isListed }) => (isListed ? `[${sessionId}]` : sessionId))

  test('a session without variants is its own only variant', async () => {
    const key = await chat()
    expect(await variants().list(key)).toEqual([
      { sessionId: key.sessionId, totalMessages: 2, createdAt: expect.any(Number), isListed: true },
    ])
    expect((await failureOf(variants().list(newKey()))).code).toBe('session-not-found')
  })

  test('one variant of a chat is listed, all are found from each of them, and every one can be read and continued', async () => {
    const key = await chat('second', 'third')
    expect(await listed(key)).toEqual(['third'])
    for (const sessionId of [key.sessionId, 'second', 'third'])
      expect(await group({ ...key, sessionId })).toEqual([key.sessionId, 'second', '[third]'])
    await place.store.appendMessage(
      { ...key, sessionId: 'second' },
      { role: 'user', content: 'x', timestamp: 1 },
    )
    expect((await variants().list(key)).map(({ totalMessages }) => totalMessages)).toEqual([2, 2, 1])
    expect((await place.store.loadSession(key))?.messages).toHaveLength(2)
  })

  test('the chosen variant takes over the title and the position in the list', async () => {
    const key = await chat('second')
    await place.store.renameSession({ ...key, sessionId: 'second' }, 'New name')
    const [before] = (await place.store.listSessions({ ...key, limit: 1 })).sessions
    await variants().show(key, 'second')
    expect(await group(key)).toEqual([`[${key.sessionId}]`, 'second'])
    const [after] = (await place.store.listSessions({ appName: key.appName, userId: key.userId })).sessions
    expect(after).toMatchObject({ key, title: 'New name', updatedAt: before?.updatedAt })
    expect((await place.store.listSessions({ ...key, search: 'new name' })).sessions).toHaveLength(1)
    await variants().show(key, key.sessionId)
    expect(await group(key)).toEqual([`[${key.sessionId}]`, 'second'])
  })

  test('variants are deleted with the listed one, with their nested sessions; another one is deleted alone', async () => {
    const key = await chat('second', 'third')
    const inner = { ...key, appName: `${key.appName}-tool`, sessionId: 'second' }
    await place.store.createSession(inner, {}, { nestedIn: key.appName })
    expect(await place.store.deleteSession(key)).toBe(true)
    expect(await group({ ...key, sessionId: 'second' })).toEqual(['second', '[third]'])
    expect(await place.store.deleteSession({ ...key, sessionId: 'third' })).toBe(true)
    for (const gone of [{ ...key, sessionId: 'second' }, { ...key, sessionId: 'third' }, inner])
      expect(await place.store.loadSession(gone)).toBeUndefined()
  })

  test('variants are erased with their user, each counted once', async () => {
    const key = await chat('second', 'third')
    const receipt = await place.store.erase(key)
    expect(receipt).toMatchObject({ sessions: 3, messages: 4 })
    expect(await listed(key)).toEqual([])
  })

  test('variants of another user or app are not reachable', async () => {
    const key = await chat('second')
    for (const other of [{ userId: 'x' }, { appName: 'x' }])
      expect((await failureOf(variants().show({ ...key, ...other }, 'second'))).code).toBe(
        'session-not-found',
      )
    expect((await failureOf(variants().show({ ...key, sessionId: 'none' }, 'second'))).code).toBe(
      'session-not-found',
    )
    expect((await failureOf(variants().show(key, 'none'))).code).toBe('session-not-found')
    expect(await group(key)).toEqual([key.sessionId, '[second]'])
  })
})

test.each(SHARED_DRIVERS)('a chat in $name expires when its newest variant is old', async driver => {
  const { url, stop } = await driver.start()
  const store = await openStore(url)
  const database = await openDatabase(url)
  onTestFinished(async () => {
    await database.close()
    await store.close()
    await stop()
  })
  const key = newKey()
  for (const sessionId of [key.sessionId, 'second']) await store.createSession({ ...key, sessionId })
  await store.variants.show(key, 'second')
  const makeOld = (sessionId: string) =>
    database.run(
      sql(
        'UPDATE lango_sessions SET updated_at = updated_at - 7200000, updated_hour = updated_hour - 2 WHERE session_id = ?',
        sessionId,
      ),
    )
  await makeOld(key.sessionId)
  const expired = async () => (await store.expire({ appName: key.appName, sessionsMs: 3_600_000 })).sessions
  expect(await expired()).toBe(0)
  await makeOld('second')
  expect(await expired()).toBe(2)
  expect(await store.loadSession({ ...key, sessionId: 'second' })).toBeUndefined()
})

describe.each(SHARED_DRIVERS)('two processes that choose a variant in $name', driver => {
  const place = useStore(driver)

  test('two stores that choose a variant at the same time leave one chat with one listed variant', async () => {
    const key = newKey()
    const names = ['a', 'b', 'c', 'd', 'e']
    await place.store.createSession({ ...key, sessionId: 'a' })
    for (const sessionId of names.slice(1)) {
      await place.store.createSession({ ...key, sessionId })
      await place.store.variants.show({ ...key, sessionId }, 'a')
    }
    const other = await openStore(place.url)
    try {
      const choices = Array.from({ length: 40 }, (_, index) => names[(index * 7) % names.length] ?? 'a')
      await Promise.all(
        choices.map((sessionId, index) =>
          (index % 2 === 0 ? place.store : other).variants.show(
            { ...key, sessionId },
            names[index % 5] ?? 'a',
          ),
        ),
      )
    } finally {
      await other.close()
    }
    const found = await place.store.variants.list({ ...key, sessionId: 'c' })
    expect(found.map(({ sessionId }) => sessionId)).toEqual(names)
    expect(found.filter(({ isListed }) => isListed)).toHaveLength(1)
  })
})
