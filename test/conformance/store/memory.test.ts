import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { SessionKey } from '../../../src/session/message.js'
import type { Observed, SessionMemory } from '../../../src/session/session-memory.js'
import { openStore } from '../../../src/store/open-store.js'
import { makeFolder, removeFolder } from '../../support/temporary-folder.js'
import { DRIVERS, failureOf, newKey, useStore } from './drivers.js'

const said = (content: string, timestamp = 1000) => ({ role: 'user', content, timestamp })

const about = (text: string, fromSeq: number, more: Partial<Observed> = {}): Observed => ({
  ...{ text, kind: 'fact', priority: 2, time: 1000 * fromSeq, fromSeq, toSeq: fromSeq, origin: 'digest' },
  terms: text.toLowerCase().split(' '),
  ...more,
})

const texts = ['red apple', 'green apple', 'blue sea', 'apple apple pie']

describe.each(DRIVERS)('memory in $name', driver => {
  const place = useStore(driver)

  const memoryOf = (): SessionMemory => {
    const { memory } = place.store
    if (!memory) throw new Error('a driver has memory')
    return memory
  }

  /** A session with four messages, indexed. */
  async function indexed(key: SessionKey = newKey()): Promise<SessionKey> {
    await place.store.createSession(key)
    for (const [index, text] of texts.entries())
      await place.store.appendMessage(key, { ...said(text, 1000 * (index + 1)), id: `m${index + 1}` })
    const documents = texts.map((text, index) => ({
      ...{ seq: index + 1, at: 1000 * (index + 1) },
      terms: text.split(' '),
    }))
    expect(await memoryOf().index(key, { version: 1, afterSeq: 0, throughSeq: 4, documents })).toBe(true)
    return key
  }

  const found = async (key: { appName: string; userId: string; sessionId?: string }, ...terms: string[]) =>
    (await memoryOf().findDocuments(key, { terms, limit: 10 })).map(
      ({ seq, observation }) => observation ?? seq,
    )

  test('a session without memory has no progress, and one that does not exist has none at all', async () => {
    const key = newKey()
    expect(await memoryOf().progress(key)).toBeUndefined()
    await place.store.createSession(key)
    await place.store.appendMessage(key, said('hello'))
    const zeros = { version: 0, indexedSeq: 0, observedSeq: 0, documents: 0, terms: 0, observations: 0 }
    expect(await memoryOf().progress(key)).toEqual({ totalMessages: 1, ...zeros })
    expect(await memoryOf().findDocuments(key, { terms: ['hello'], limit: 5 })).toEqual([])
    const step = { version: 1, afterSeq: 0, throughSeq: 0, documents: [] }
    expect((await failureOf(memoryOf().index(newKey(), step))).code).toBe('session-not-found')
  })

  test('documents of memory are found by any of the terms, newest first, and counted', async () => {
    const key = await indexed()
    expect(await found(key, 'apple')).toEqual([4, 2, 1])
    expect(await found(key, 'sea', 'red')).toEqual([3, 1])
    expect((await memoryOf().countTerms(key, ['apple', 'sea', 'nothing'])).counts).toEqual(
      new Map([
        ['apple', 3],
        ['sea', 1],
      ]),
    )
    const [newest] = await memoryOf().findDocuments(key, { terms: ['apple'], limit: 1 })
    expect(newest).toEqual({ sessionId: 'one', seq: 4, at: 4000, terms: ['apple', 'apple', 'pie'] })
    expect(await memoryOf().progress(key)).toMatchObject({ indexedSeq: 4, documents: 4, terms: 9 })
    expect(await memoryOf().countTerms(key, [])).toEqual({ documents: 4, terms: 9, counts: new Map() })
    const messages = await memoryOf().readMessages(key, [3, 1, 3, 9])
    expect(messages.map(({ seq, content }) => [seq, content])).toEqual([
      [1, 'red apple'],
      [3, 'blue sea'],
    ])
  })

  test('a search of memory in a range of time leaves out the rest, with terms and without', async () => {
    const key = await indexed()
    const range = { after: 2000, before: 4000, limit: 10 }
    const inRange = async (terms: string[]) =>
      (await memoryOf().findDocuments(key, { terms, ...range })).map(({ seq }) => seq)
    expect(await inRange(['apple'])).toEqual([2])
    expect(await inRange([])).toEqual([3, 2])
  })

  test('terms of memory of any script are indexed, and similar ones are found by their beginning', async () => {
    const key = newKey()
    await place.store.createSession(key)
    const documents = [{ seq: 1, at: 1, terms: ['東京', '京都', 'straße', 'getuser', 'getusername', '2024'] }]
    await memoryOf().index(key, { version: 1, afterSeq: 0, throughSeq: 1, documents })
    for (const term of ['東京', '京都', 'straße', 'getuser', '2024'])
      expect(await found(key, term), term).toEqual([1])
    expect(await found(key, '東')).toEqual([])
    expect(await memoryOf().similarTerms(key, 'getu', 5)).toEqual(['getuser', 'getusername'])
    expect(await memoryOf().similarTerms(key, '東', 5)).toEqual(['東京'])
  })

  test('a search of memory refuses a term that would be syntax of a query', async () => {
    const key = await indexed()
    for (const term of ['a b', `'`, '"', 'a*', '', '§s1', 'a:b', '\\'])
      expect((await failureOf(memoryOf().findDocuments(key, { terms: [term], limit: 1 }))).code).toBe(
        'invalid-argument',
      )
  })

  test('two writers that index the same messages add them once', async () => {
    const key = await indexed()
    const documents = [{ seq: 5, at: 5, terms: ['late'] }]
    const step = { version: 1, afterSeq: 4, throughSeq: 5, documents }
    const added = await Promise.all([memoryOf().index(key, step), memoryOf().index(key, step)])
    expect(added.sort()).toEqual([false, true])
    expect((await memoryOf().countTerms(key, ['late'])).counts).toEqual(new Map([['late', 1]]))
  })

  test('a message that is replaced is indexed again, and its old words are gone', async () => {
    const key = await indexed()
    await place.store.appendMessage(key, { ...said('purple plum'), id: 'm2' })
    expect(await memoryOf().progress(key)).toMatchObject({ indexedSeq: 1 })
    const documents = ['purple plum', 'blue sea', 'apple apple pie'].map((text, index) => ({
      ...{ seq: index + 2, at: 1 },
      terms: text.split(' '),
    }))
    expect(await memoryOf().index(key, { version: 1, afterSeq: 1, throughSeq: 4, documents })).toBe(true)
    expect(await found(key, 'green')).toEqual([])
    expect(await found(key, 'plum')).toEqual([2])
    expect((await memoryOf().countTerms(key, ['apple', 'green', 'sea'])).counts).toEqual(
      new Map([
        ['apple', 2],
        ['sea', 1],
      ]),
    )
    expect(await memoryOf().progress(key)).toMatchObject({ documents: 4, terms: 9 })
  })

  test('sessions of a user are searched together, and never those of another', async () => {
    const key = await indexed()
    const second = { ...key, sessionId: 'two' }
    await indexed(second)
    await indexed({ ...key, userId: 'bob' })
    await indexed({ ...newKey(), userId: 'ann' })
    const { appName } = key
    const all = await memoryOf().findDocuments({ appName, userId: 'ann' }, { terms: ['sea'], limit: 10 })
    expect(all.map(({ sessionId, seq }) => [sessionId, seq]).sort()).toEqual([
      ['one', 3],
      ['two', 3],
    ])
    expect((await memoryOf().countTerms({ appName, userId: 'ann' }, ['sea'])).counts).toEqual(
      new Map([['sea', 2]]),
    )
    expect(await found(second, 'sea')).toEqual([3])
    expect(await found({ appName, userId: 'nobody' }, 'sea')).toEqual([])
  })

  test('observations are numbered, kept with their sources and found', async () => {
    const key = await indexed()
    const first = await memoryOf().observe(key, {
      observed: { afterSeq: 0, throughSeq: 2 },
      observations: [
        about('ann likes apples', 1, { toSeq: 2 }),
        about('\0 half \ud83d odd', 2, { terms: [] }),
      ],
    })
    expect(first?.map(({ number }) => number)).toEqual([1, 2])
    const read = await memoryOf().readObservations(key)
    expect(read).toEqual(first)
    expect(read[0]).toMatchObject({ text: 'ann likes apples', fromSeq: 1, toSeq: 2, priority: 2, time: 1000 })
    expect(read[1]?.text).toBe('\0 half \ud83d odd')
    expect(await found(key, 'likes')).toEqual([1])
    expect(await memoryOf().progress(key)).toMatchObject({ observedSeq: 2, observations: 2, documents: 5 })
    expect(await memoryOf().readObservations(key, { numbers: [2] })).toHaveLength(1)
    expect(await memoryOf().readObservations(key, { afterNumber: 2 })).toEqual([])
  })

  test('of two observers of the same messages one adds nothing', async () => {
    const key = await indexed()
    const step = { observed: { afterSeq: 0, throughSeq: 3 }, observations: [about('once', 1)] }
    const added = await Promise.all([memoryOf().observe(key, step), memoryOf().observe(key, step)])
    expect(added.filter(result => result !== undefined)).toHaveLength(1)
    expect(await memoryOf().readObservations(key)).toHaveLength(1)
  })

  test('a reflection supersedes others in one step, and only those that are current', async () => {
    const key = await indexed()
    await memoryOf().observe(key, { observations: [about('a', 1), about('b', 2), about('c', 3)] })
    const joined = { supersedes: [1, 2], observations: [about('ab', 1, { toSeq: 2, kind: 'reflection' })] }
    expect(await memoryOf().observe(key, joined)).toMatchObject([{ number: 4 }])
    expect(await memoryOf().observe(key, joined)).toBeUndefined()
    expect(await memoryOf().observe(key, { ...joined, supersedes: [99] })).toBeUndefined()
    const all = await memoryOf().readObservations(key)
    expect(all.map(({ number, supersededBy }) => [number, supersededBy])).toEqual([
      [1, 4],
      [2, 4],
      [3, undefined],
      [4, undefined],
    ])
    const current = await memoryOf().readObservations(key, { current: true })
    expect(current.map(({ number }) => number)).toEqual([3, 4])
    expect(await found(key, 'a', 'b', 'ab')).toEqual([4])
  })

  test('the usage of observers is added up by model', async () => {
    const key = await indexed()
    const usage = { model: 'a/b', calls: 1, inputTokens: 10, outputTokens: 2 }
    await memoryOf().observe(key, { observations: [], usage })
    await memoryOf().observe(key, { observations: [about('x', 1)], usage: { ...usage, model: 'c/d' } })
    await memoryOf().observe(key, { observations: [], usage })
    expect((await memoryOf().progress(key))?.usage).toEqual([
      { ...usage, model: 'c/d' },
      { model: 'a/b', calls: 2, inputTokens: 20, outputTokens: 4 },
    ])
  })

  test('an observation under a lease that was lost is refused; one without a fence is not in the way of a run', async () => {
    const key = await indexed()
    const lease = await place.store.acquireLease(key)
    const step = { observations: [about('x', 1)] }
    expect(await memoryOf().observe(key, { ...step, fence: lease.fence })).toHaveLength(1)
    expect(await memoryOf().observe(key, step)).toHaveLength(1)
    await lease.release()
    expect((await failureOf(memoryOf().observe(key, { ...step, fence: lease.fence }))).code).toBe(
      'lease-lost',
    )
    expect(await memoryOf().readObservations(key)).toHaveLength(2)
  })

  test('a forgotten observation loses its text, with those that it was made of, and is not found any more', async () => {
    const key = await indexed()
    await memoryOf().observe(key, { observations: [about('secret', 1), about('other', 2)] })
    await memoryOf().observe(key, { supersedes: [1], observations: [about('my secret', 1)] })
    expect(await memoryOf().forget(key, [3])).toBe(2)
    expect(await memoryOf().forget(key, [3])).toBe(0)
    const all = await memoryOf().readObservations(key)
    expect(all.map(({ text, kind }) => [text, kind])).toEqual([
      ['', 'forgotten'],
      ['other', 'fact'],
      ['', 'forgotten'],
    ])
    expect(await found(key, 'secret')).toEqual([])
    expect((await memoryOf().countTerms(key, ['secret'])).counts).toEqual(new Map())
  })

  test('a reset of memory deletes index or observations, and forgotten observations stay forgotten', async () => {
    const key = await indexed()
    await memoryOf().observe(key, { observations: [about('one', 1), about('two', 2)] })
    await memoryOf().forget(key, [1])
    await memoryOf().reset(key, { index: true })
    expect(await memoryOf().progress(key)).toMatchObject({ version: 0, indexedSeq: 0, documents: 1 })
    expect(await found(key, 'apple', 'two')).toEqual([2])
    await memoryOf().reset(key, { observations: true })
    expect(await memoryOf().progress(key)).toMatchObject({ observedSeq: 0, documents: 0, terms: 0 })
    expect(await memoryOf().readObservations(key)).toMatchObject([{ number: 1, kind: 'forgotten' }])
    expect(await memoryOf().observe(key, { observations: [about('new', 1)] })).toMatchObject([{ number: 3 }])
  })

  test('the observations of requests are decided once for each place of the cut', async () => {
    const key = await indexed()
    expect(await memoryOf().keepLog(key, { throughSeq: 2, numbers: [1, 2] })).toEqual({
      throughSeq: 2,
      numbers: [1, 2],
    })
    expect(await memoryOf().keepLog(key, { throughSeq: 2, numbers: [1, 2, 3] })).toMatchObject({
      numbers: [1, 2],
    })
    expect(await memoryOf().keepLog(key, { throughSeq: 3, numbers: [3] })).toMatchObject({ numbers: [3] })
    expect(await memoryOf().progress(key)).toMatchObject({ log: { throughSeq: 3, numbers: [3] } })
  })

  test('a copy of a session knows what was observed of its messages', async () => {
    const key = await indexed()
    await memoryOf().observe(key, {
      observed: { afterSeq: 0, throughSeq: 4 },
      observations: [about('early', 1), about('late', 4)],
    })
    await memoryOf().observe(key, { supersedes: [1], observations: [about('all', 1, { toSeq: 4 })] })
    await place.store.forkSession(key, 'copy', { throughSeq: 2 })
    const copy = { ...key, sessionId: 'copy' }
    const known = await memoryOf().readObservations(copy)
    expect(known).toMatchObject([{ sessionId: 'copy', number: 1, text: 'early' }])
    expect(known[0]).not.toHaveProperty('supersededBy')
    expect(await memoryOf().progress(copy)).toMatchObject({ observedSeq: 2, indexedSeq: 0, documents: 0 })
    expect(await memoryOf().observe(copy, { observations: [about('next', 1)] })).toMatchObject([
      { number: 4 },
    ])
  })

  test('deleting a session and erasing a user delete their memory, and nothing of others', async () => {
    const key = await indexed()
    const other = { ...key, userId: 'bob' }
    await indexed(other)
    await memoryOf().observe(key, { observations: [about('gone', 1)] })
    expect(await place.store.deleteSession(key)).toBe(true)
    expect(await found({ appName: key.appName, userId: 'ann' }, 'apple', 'gone')).toEqual([])
    await indexed(key)
    await memoryOf().observe(key, { observations: [about('gone', 1)] })
    const receipt = await place.store.erase?.(key)
    expect(receipt).toMatchObject({ observations: 1 })
    expect(receipt?.indexed).toBeGreaterThan(4)
    expect(await found({ appName: key.appName, userId: 'ann' }, 'apple', 'gone')).toEqual([])
    expect(await found(other, 'sea')).toEqual([3])
  })
})

test('the file of a SQLite database holds no indexed word of a deleted session', async () => {
  const folder = await makeFolder()
  onTestFinished(() => removeFolder(folder))
  const file = join(folder, 'store.db')
  const store = await openStore(`sqlite:${file}`)
  const [key, kept] = [newKey(), newKey()]
  for (const session of [key, kept]) {
    await store.createSession(session)
    const documents = Array.from({ length: 300 }, (_, index) => ({
      ...{ seq: index + 1, at: index },
      terms: [session === key ? 'zanzibarian' : 'kilimanjaro', `number${index}`],
    }))
    await store.memory.index(session, { version: 1, afterSeq: 0, throughSeq: 300, documents })
    await store.memory.observe(session, { observations: [about('zanzibarian fact', 1)] })
  }
  await store.memory.forget(kept, [1])
  await store.deleteSession(key)
  await store.close()
  const bytes = await readFile(file, 'latin1')
  expect(bytes).toContain('kilimanjaro')
  expect(bytes).not.toContain('zanzibarian')
})
