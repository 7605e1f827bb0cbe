import { describe, expect, test } from 'vitest'
import { openStore } from '../../../src/store/open-store.js'
import { DRIVERS, failureOf, fired, newKey, useStore } from './drivers.js'

describe.each(DRIVERS)('sessions in $name', driver => {
  const place = useStore(driver)

  test('a new session is empty, has its state and can be loaded', async () => {
    const key = newKey()
    const created = await place.store.createSession(key, {
      mood: 'calm',
      'app:theme': 'dark',
      'temp:draft': 1,
    })
    expect(created).toMatchObject({
      key,
      state: { mood: 'calm', 'app:theme': 'dark' },
      messages: [],
      totalMessages: 0,
    })
    expect(Object.keys(created.state)).not.toContain('temp:draft')
    expect(Math.abs(created.createdAt - Date.now())).toBeLessThan(60_000)
    expect(created.updatedAt).toBe(created.createdAt)
    expect(await place.store.loadSession(key)).toEqual(created)
  })

  test('a session is found only under its own app, user and id', async () => {
    const key = newKey()
    await place.store.createSession(key)
    for (const other of [{ appName: 'x' }, { userId: 'x' }, { sessionId: 'x' }]) {
      expect(await place.store.loadSession({ ...key, ...other })).toBeUndefined()
    }
  })

  test('a session has a title, which a fork takes over and which can be changed and removed', async () => {
    const key = newKey()
    const created = await place.store.createSession(key, {}, { title: '  Plans\n for\0 May ' })
    expect(created.title).toBe('Plans for May')
    const fork = await place.store
      .appendMessage(key, { role: 'user', content: 'x', timestamp: 1 })
      .then(() => place.store.forkSession(key, 'fork'))
    expect(fork.title).toBe('Plans for May')
    await place.store.renameSession(key, `\ud800${'é'.repeat(300)}`)
    expect([...((await place.store.loadSession(key))?.title ?? '')]).toHaveLength(200)
    await place.store.renameSession(key, ' ')
    expect(await place.store.loadSession(key)).not.toHaveProperty('title')
    const { sessions } = await place.store.listSessions({ appName: key.appName })
    for (const summary of sessions) expect(await place.store.describeSession(summary.key)).toEqual(summary)
    expect(await place.store.describeSession(newKey())).toBeUndefined()
    const missing = await failureOf(place.store.renameSession(newKey(), 'x'))
    expect(missing.code).toBe('session-not-found')
  })

  test('a search of sessions finds titles and ids in any case and takes signs literally', async () => {
    const { appName, userId } = newKey()
    const titles = { one: 'Überblick 100%', two: 'ＷＩＤＥ text', three: 'under_score' }
    for (const [sessionId, title] of Object.entries(titles))
      await place.store.createSession({ appName, userId, sessionId }, {}, { title })
    await place.store.createSession({ appName, userId, sessionId: 'Bare' })
    const find = async (search: string) => {
      const { sessions } = await place.store.listSessions({ appName, search })
      return sessions.map(({ key }) => key.sessionId).sort()
    }
    expect(await find('überBLICK')).toEqual(['one'])
    expect(await find('wide')).toEqual(['two'])
    expect(await find('%')).toEqual(['one'])
    expect(await find('_')).toEqual(['three'])
    expect(await find('bare')).toEqual(['Bare'])
    expect(await find('')).toHaveLength(4)
    expect(await find('!')).toEqual([])
    const { sessions } = await place.store.listSessions({ appName, search: 'wide' })
    expect(sessions[0]?.title).toBe('ＷＩＤＥ text')
  })

  test('a nested session is not listed, and is deleted with the session that it belongs to', async () => {
    const key = newKey()
    const inner = { ...key, appName: `${key.appName}-inner` }
    const innermost = { ...key, appName: `${key.appName}-innermost` }
    const stranger = { ...inner, userId: 'somebody else' }
    await place.store.createSession(key)
    await place.store.createSession(inner, {}, { nestedIn: key.appName })
    await place.store.createSession(innermost, {}, { nestedIn: inner.appName })
    await place.store.createSession({ ...key, userId: stranger.userId })
    await place.store.createSession(stranger, {}, { nestedIn: key.appName })
    await place.store.appendMessage(inner, { role: 'user', content: 'inside', timestamp: 1 })
    expect((await place.store.listSessions({ appName: key.appName })).sessions).toHaveLength(2)
    expect((await place.store.listSessions({ appName: inner.appName })).sessions).toEqual([])
    expect(await place.store.deleteSession(key)).toBe(true)
    expect(await place.store.loadSession(inner)).toBeUndefined()
    expect(await place.store.loadSession(innermost)).toBeUndefined()
    expect(await place.store.readMessages(inner)).toEqual([])
    expect(await place.store.loadSession(stranger)).toBeDefined()
    const failure = await failureOf(place.store.createSession(key, {}, { nestedIn: key.appName }))
    expect(failure.code).toBe('invalid-argument')
    expect(failure.message).toContain('nestedIn')
  })

  test('creating a session that exists fails and changes nothing', async () => {
    const key = newKey()
    await place.store.createSession(key, { kept: true })
    const failure = await failureOf(place.store.createSession(key, { kept: false, 'app:new': 1 }))
    expect(failure.code).toBe('session-exists')
    expect(failure.message).toContain('"one"')
    expect((await place.store.loadSession(key))?.state).toEqual({ kept: true })
  })

  test('of many creators of one session exactly one succeeds', async () => {
    const key = newKey()
    const outcomes = await Promise.allSettled(
      Array.from({ length: 12 }, () => place.store.createSession(key)),
    )
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  test('sessions whose keys have any well-formed text are kept apart', async () => {
    const { appName } = newKey()
    const names = ['a', 'A', 'ä', 'a\u0308', 'a b', "a'--", '세션', '😀', '%', '_', '\u0001', 'x'.repeat(512)]
    for (const sessionId of names) await place.store.createSession({ appName, userId: "o'hara", sessionId })
    const { sessions } = await place.store.listSessions({ appName, limit: 100 })
    expect(new Set(sessions.map(({ key }) => key.sessionId))).toEqual(new Set(names))
  })

  test('deleting a session removes messages, state, leases and runs, and returns whether there was one', async () => {
    const key = newKey()
    await place.store.createSession(key, { mine: 1, 'user:ours': 2 })
    await place.store.appendMessage(key, { role: 'user', content: 'hello', timestamp: 1, id: 'e1' })
    await place.store.runs.appendEvents(key, `${key.appName}-run`, [{ seq: 1 }])
    await place.store.runs.saveRequest(`${key.appName}-run`, 1, { body: 1 })
    await place.store.runs.sendSignal(`${key.appName}-run`, { type: 'stop' })
    const lease = await place.store.acquireLease(key, { ttlMs: 300 })
    expect(await place.store.deleteSession(key)).toBe(true)
    expect(await place.store.deleteSession(key)).toBe(false)
    expect(await place.store.loadSession(key)).toBeUndefined()
    expect(await place.store.readMessages(key)).toEqual([])
    expect(await place.store.runs.readEvents(`${key.appName}-run`)).toEqual([])
    expect(await place.store.runs.readRequests(`${key.appName}-run`)).toEqual([])
    expect(await place.store.runs.takeSignals(`${key.appName}-run`)).toEqual([])
    await fired(lease.lost)

    const again = await place.store.createSession(key)
    expect(again.state).toEqual({ 'user:ours': 2 })
    expect(
      await place.store.appendMessage(key, { role: 'user', content: 'x', timestamp: 1, id: 'e1' }),
    ).toEqual({ seq: 1 })
  })

  test('a closed store refuses everything, and closing twice is closing once', async () => {
    const started = await driver.start()
    const store = await openStore(started.url)
    const key = newKey()
    await store.createSession(key)
    await Promise.all([store.close(), store.close()])
    await store.close()
    const attempts = [
      store.createSession(newKey()),
      store.loadSession(key),
      store.readMessages(key),
      store.appendMessage(key, { role: 'user', content: 'x', timestamp: 1 }),
      store.updateState(key, { a: 1 }),
      store.listSessions({ appName: key.appName }),
      store.deleteSession(key),
      store.acquireLease(key),
      store.runs.readEvents('r'),
      store.calibration.read('m'),
    ]
    for (const attempt of attempts) {
      const failure = await failureOf(attempt)
      expect(failure.code).toBe('store-unavailable')
      expect(failure.message).toContain('closed')
    }
    await started.stop()
  })
})

describe.each(DRIVERS)('forks in $name', driver => {
  const place = useStore(driver)

  async function conversation() {
    const key = newKey()
    await place.store.createSession(key, { topic: 'tea', 'user:name': 'Ann' })
    for (const [index, role] of ['user', 'assistant', 'user', 'assistant', 'user'].entries()) {
      await place.store.appendMessage(key, {
        role,
        content: `m${index + 1}`,
        timestamp: 7,
        id: `e${index + 1}`,
      })
    }
    return key
  }

  test('a long session is copied and deleted whole, and its copy has no gap', async () => {
    const key = newKey()
    const { store } = place
    await store.createSession(key, { mood: 'calm' }, { title: 'Long' })
    const messages = Array.from({ length: 1500 }, (_, index) => ({
      role: index % 3 === 0 ? 'user' : 'assistant',
      content: `text ${index}`,
      timestamp: index,
      id: `e${index}`,
    }))
    await store.appendMessages(key, messages)
    const fork = await store.forkSession(key, 'copy', { throughSeq: 1400 })
    expect(fork).toMatchObject({ totalMessages: 1400, title: 'Long', state: { mood: 'calm' } })
    const copy = { ...key, sessionId: 'copy' }
    const original = await store.readMessages(key, { limit: 1400 })
    expect(await store.readMessages(copy, { limit: 2000 })).toEqual(original)
    expect((await store.listSessions({ appName: key.appName })).sessions).toHaveLength(2)
    expect((await failureOf(store.forkSession(key, 'copy'))).code).toBe('session-exists')
    expect((await failureOf(store.forkSession(key, 'other', { throughSeq: 1501 }))).code).toBe(
      'invalid-argument',
    )
    expect(await store.deleteSession(key)).toBe(true)
    expect(await store.deleteSession(key)).toBe(false)
    expect(await store.readMessages(copy, { limit: 2000 })).toEqual(original)
    await store.createSession(key)
    expect(await store.readMessages(key)).toEqual([])
  })

  test('a fork copies the messages up to one, with their ids, and the session state', async () => {
    const key = await conversation()
    const fork = await place.store.forkSession(key, 'two', { throughSeq: 3 })
    const original = await place.store.readMessages(key)
    expect(fork.key).toEqual({ ...key, sessionId: 'two' })
    expect(fork.messages).toEqual(original.slice(0, 3))
    expect(fork.totalMessages).toBe(3)
    expect(fork.state).toEqual({ topic: 'tea', 'user:name': 'Ann' })
  })

  test('a fork through message 0 has the state and no messages', async () => {
    const key = await conversation()
    const fork = await place.store.forkSession(key, 'two', { throughSeq: 0 })
    expect(fork).toMatchObject({
      messages: [],
      totalMessages: 0,
      state: { topic: 'tea', 'user:name': 'Ann' },
    })
    const first = { role: 'user', content: 'x', timestamp: 1, id: 'e1' }
    expect(await place.store.appendMessage(fork.key, first)).toEqual({ seq: 1 })
  })

  test('a session that is created or copied under a key belongs to the holder of its lease', async () => {
    const key = await conversation()
    for (const sessionId of ['created', 'copied']) {
      const lease = await place.store.acquireLease({ ...key, sessionId })
      if (sessionId === 'copied') await place.store.forkSession(key, sessionId)
      else await place.store.createSession({ ...key, sessionId })
      const message = { role: 'user', content: 'x', timestamp: 1 }
      const append = (options?: { fence: number }) =>
        place.store.appendMessage({ ...key, sessionId }, message, options)
      expect((await failureOf(append())).code).toBe('session-busy')
      await append({ fence: lease.fence })
      await lease.release()
      await append()
    }
  })

  test('a fork and its original are independent', async () => {
    const key = await conversation()
    await place.store.forkSession(key, 'two', { throughSeq: 2 })
    const forkKey = { ...key, sessionId: 'two' }
    expect(
      await place.store.appendMessage(forkKey, { role: 'user', content: 'new', timestamp: 1, id: 'e3' }),
    ).toEqual({ seq: 3 })
    expect(
      await place.store.appendMessage(forkKey, { role: 'user', content: 'changed', timestamp: 1, id: 'e1' }),
    ).toEqual({ seq: 1 })
    await place.store.updateState(forkKey, { topic: 'coffee' })
    const [original, fork] = await Promise.all([
      place.store.loadSession(key),
      place.store.loadSession(forkKey),
    ])
    expect(original?.messages.map(({ content }) => content)).toEqual(['m1', 'm2', 'm3', 'm4', 'm5'])
    expect(original?.state.topic).toBe('tea')
    expect(fork?.messages.map(({ content }) => content)).toEqual(['changed', 'm2', 'new'])
  })

  test('a fork without a limit copies all, of an empty session nothing', async () => {
    const key = await conversation()
    expect((await place.store.forkSession(key, 'two')).totalMessages).toBe(5)
    const empty = newKey()
    await place.store.createSession(empty)
    expect((await place.store.forkSession(empty, 'two')).totalMessages).toBe(0)
  })

  test('a fork of nothing, onto a session, or beyond the end fails and leaves nothing', async () => {
    const key = await conversation()
    expect(await failureOf(place.store.forkSession(newKey(), 'two'))).toMatchObject({
      code: 'session-not-found',
    })
    expect(await failureOf(place.store.forkSession(key, 'one'))).toMatchObject({ code: 'session-exists' })
    const beyond = await failureOf(place.store.forkSession(key, 'two', { throughSeq: 6 }))
    expect(beyond.code).toBe('invalid-argument')
    expect(beyond.message).toContain('has 5')
    expect(await place.store.loadSession({ ...key, sessionId: 'two' })).toBeUndefined()
  })
})

describe.each(DRIVERS)('lists of $name', driver => {
  const place = useStore(driver)

  test('sessions are listed newest first with counts and a preview', async () => {
    const { appName } = newKey()
    for (const sessionId of ['a', 'b', 'c'])
      await place.store.createSession({ appName, userId: 'ann', sessionId })
    // The order is that of the milliseconds of the last change.
    const createdAt = Date.now()
    await expect.poll(() => Date.now(), { interval: 1 }).toBeGreaterThan(createdAt + 1)
    const key = { appName, userId: 'ann', sessionId: 'a' }
    await place.store.appendMessage(key, { role: 'user', content: '  what is tea?', timestamp: 1 })
    await place.store.appendMessage(key, { role: 'tool', content: 'ignored', timestamp: 1 })
    const { sessions, nextCursor } = await place.store.listSessions({ appName })
    expect(sessions.map(session => session.key.sessionId)).toEqual(['a', 'c', 'b'])
    expect(sessions[0]).toMatchObject({ key, totalMessages: 2, preview: 'what is tea?' })
    const messages = await place.store.readMessages(key)
    expect(sessions[0]?.totalTokens).toBe(messages.reduce((all, { tokens }) => all + tokens, 0))
    expect(sessions[1]).not.toHaveProperty('preview')
    expect(nextCursor).toBeUndefined()
  })

  test('apps with sessions are listed by name, nested sessions aside', async () => {
    const [one, other, inner] = [newKey(), newKey(), newKey()]
    for (const key of [one, other]) await place.store.createSession(key)
    await place.store.createSession({ ...one, appName: inner.appName }, {}, { nestedIn: one.appName })
    const apps = await place.store.listApps()
    const own = [one, other, inner].map(({ appName }) => appName)
    expect(apps.filter(name => own.includes(name))).toEqual([one.appName, other.appName].sort())
    expect(apps).toEqual(apps.toSorted())
    await place.store.deleteSession(one)
    expect(await place.store.listApps()).not.toContain(one.appName)
  })

  test('pages of the session list cover every session once, for one user or for all', async () => {
    const { appName } = newKey()
    for (let index = 0; index < 23; index++) {
      await place.store.createSession({
        appName,
        userId: index % 3 === 0 ? 'bob' : 'ann',
        sessionId: `s${index}`,
      })
    }
    for (const [userId, count] of [
      [undefined, 23],
      ['bob', 8],
      ['nobody', 0],
    ] as const) {
      const seen: string[] = []
      let cursor: string | undefined
      for (let page = 0; page < 30; page++) {
        const found = await place.store.listSessions({
          appName,
          limit: 5,
          ...(userId === undefined ? {} : { userId }),
          ...(cursor === undefined ? {} : { cursor }),
        })
        seen.push(...found.sessions.map(({ key }) => key.sessionId))
        cursor = found.nextCursor
        if (cursor === undefined) break
      }
      expect(seen).toHaveLength(count)
      expect(new Set(seen).size).toBe(count)
    }
  })

  test('a preview is the beginning of the last text of a person or model, never half a character', async () => {
    const key = newKey()
    await place.store.createSession(key)
    const preview = async () =>
      (await place.store.listSessions({ appName: key.appName })).sessions[0]?.preview
    await place.store.appendMessage(key, { role: 'model', content: '😀'.repeat(100), timestamp: 1 })
    expect(await preview()).toBe('😀'.repeat(60))
    await place.store.appendMessage(key, { role: 'user', content: `a\0b${'x'.repeat(200)}`, timestamp: 1 })
    expect(await preview()).toBe(`a\0b${'x'.repeat(117)}`)
    const synthetic = { customMetadata: { lango: { synthetic: true } } }
    await place.store.appendMessage(key, { role: 'user', content: 'hidden', timestamp: 1, extra: synthetic })
    await place.store.appendMessage(key, { role: 'assistant', content: ' \n', timestamp: 1 })
    expect(await preview()).toMatch(/^a\0b/)
  })
})
