import { describe, expect, test } from 'vitest'
import { failuresByName, withKey } from '../../support/prototype-names.js'
import { DRIVERS, useStore } from './drivers.js'

describe.each(DRIVERS)('prototype names in $name', driver => {
  const place = useStore(driver)

  function everyName(use: string, check: (name: string) => Promise<void>): void {
    test(`the ${driver.name} store takes every name that objects inherit ${use}`, async () => {
      expect(await failuresByName(check)).toEqual([])
    })
  }

  everyName('as app, user and session', async name => {
    const key = { appName: name, userId: name, sessionId: name }
    expect(await place.store.loadSession(key)).toBeUndefined()
    await place.store.createSession(key)
    await place.store.appendMessage(key, { role: name, author: name, content: name, timestamp: 1 })
    await place.store.renameSession(key, name)
    const lease = await place.store.acquireLease(key, { ttlMs: 60_000 })
    await lease.release()
    expect(await place.store.loadSession(key)).toMatchObject({
      key,
      totalMessages: 1,
      messages: [{ role: name, author: name, content: name }],
    })
    const { sessions } = await place.store.listSessions({ appName: name, userId: name, search: name })
    expect(sessions.map(session => session.key)).toEqual([key])
    await place.store.deleteSession(key)
    expect(await place.store.loadSession(key)).toBeUndefined()
  })

  everyName('as state keys of every scope', async name => {
    const key = { appName: `app ${name}`, userId: 'ann', sessionId: 'one' }
    const keys = [name, `user:${name}`, `app:${name}`]
    const stateOf = async () => Object.entries((await place.store.loadSession(key))?.state ?? {})
    const all = (value: unknown) => Object.fromEntries(keys.map(each => [each, value]))
    const expected = (value: unknown) => expect.arrayContaining(keys.map(each => [each, value]))
    await place.store.createSession(key, all({ [name]: 'first' }))
    expect(await stateOf()).toEqual(expected({ [name]: 'first' }))
    await place.store.updateState(key, all(withKey(name, 'second')))
    expect(await stateOf()).toEqual(expected(withKey(name, 'second')))
    const message = { role: 'user', content: 'x', timestamp: 1, extra: withKey(name, 1) }
    await place.store.appendMessage(key, message, { stateDelta: all(undefined) })
    expect(await stateOf()).toEqual([])
    const [stored] = (await place.store.loadSession(key))?.messages ?? []
    expect(Object.entries(stored?.extra ?? {})).toEqual([[name, 1]])
  })

  everyName('as tool, call id and argument of a message', async name => {
    const key = { appName: 'app', userId: 'ann', sessionId: `calls ${name}` }
    await place.store.createSession(key)
    const toolCalls = [{ id: name, name, input: JSON.stringify(withKey(name, 1)), kind: 'call' as const }]
    await place.store.appendMessage(key, { role: 'assistant', content: '', toolCalls, timestamp: 1 })
    expect((await place.store.loadSession(key))?.messages).toMatchObject([{ toolCalls }])
  })
})
