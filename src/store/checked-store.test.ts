import { expect, test, vi } from 'vitest'
import type { Message, SessionKey } from '../session/message.js'
import type { SessionStore } from '../session/session-store.js'
import { checkedStore } from './checked-store.js'
import { openSqlStore } from './sql-store.js'
import { createMemoryDatabase } from './sqlite-memory.js'

const key: SessionKey = { appName: 'app', userId: 'ann', sessionId: 'one' }
const message: Message = { role: 'user', content: 'x', timestamp: 1 }

async function openDriver(): Promise<SessionStore> {
  return openSqlStore((await createMemoryDatabase()).open())
}

test('a checked store rejects an invalid argument before the store is called, and never throws', async () => {
  const inner = await openDriver()
  const reached = [vi.spyOn(inner, 'appendMessage'), vi.spyOn(inner, 'listSessions')]
  const store = checkedStore(inner)
  const append = store.appendMessage({ ...key, userId: '' }, message)
  await expect(append).rejects.toMatchObject({
    code: 'invalid-argument',
    details: { field: 'key.userId' },
  })
  const list = store.listSessions(null as unknown as { appName: string })
  await expect(list).rejects.toBeInstanceOf(Error)
  for (const method of reached) expect(method).not.toHaveBeenCalled()
})

test('a checked store passes valid arguments on, and returns the promise of the store itself', async () => {
  const inner = await openDriver()
  const store = checkedStore(inner)
  await store.createSession(key)
  const stored = { seq: 1 }
  const promise = Promise.resolve(stored)
  inner.appendMessage = () => promise
  expect(store.appendMessage(key, message)).toBe(promise)
})

test('a checked store validates runs and calibration too', async () => {
  const store = checkedStore(await openDriver())
  const field = (name: string) => ({ code: 'invalid-argument', details: { field: name } })
  await expect(store.runs.readEvents('')).rejects.toMatchObject(field('runId'))
  await expect(store.runs.prune({ appName: 'app', before: -1 })).rejects.toMatchObject(field('before'))
  await expect(store.calibration.read('')).rejects.toMatchObject(field('model'))
})

test.each([7, null, {}])('a checked store refuses %j as a title', async title => {
  const store = checkedStore(await openDriver())
  await store.createSession(key)
  const renamed = store.renameSession(key, title as unknown as string)
  await expect(renamed).rejects.toMatchObject({ code: 'invalid-argument', details: { field: 'title' } })
  const created = store.createSession({ ...key, sessionId: 'two' }, {}, { title: title as string })
  await expect(created).rejects.toMatchObject({ code: 'invalid-argument', details: { field: 'title' } })
})

test('closing a checked store closes the store', async () => {
  const inner = await openDriver()
  await checkedStore(inner).close()
  await expect(inner.loadSession(key)).rejects.toMatchObject({ code: 'store-unavailable' })
})
