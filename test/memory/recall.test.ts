import { describe, expect, test } from 'vitest'
import { indexSession } from '../../src/memory/index-session.js'
import { withTerms } from '../../src/memory/observer.js'
import { recall } from '../../src/memory/recall.js'
import type { SessionKey } from '../../src/session/message.js'
import { DRIVERS, newKey, useStore } from '../conformance/store/drivers.js'

const MARCH = Date.UTC(2024, 2, 5)
const DAY = 86_400_000

const TALK = [
  ['Ann', 'We could paint the kitchen in dark green.', MARCH],
  ['Bob', 'I would rather repair the roof first.', MARCH + 1],
  ['Ann', 'Fine, the roof then.', MARCH + 2],
  ['Ann', 'The function getUserName in auth_service.ts throws.', MARCH + 30 * DAY],
  ['Bob', 'It is called with null.', MARCH + 30 * DAY + 1],
  ['Ann', '我们明天去东京旅行。', MARCH + 60 * DAY],
  ['Bob', '好的，我会准备行李。', MARCH + 60 * DAY + 1],
  ['Ann', 'Nothing else.', MARCH + 90 * DAY],
] as const

describe.each(DRIVERS)('recall in $name', driver => {
  const place = useStore(driver)

  const opened = () => place.store

  async function talk(key: SessionKey = newKey()): Promise<SessionKey> {
    await place.store.createSession(key)
    for (const [author, content, timestamp] of TALK)
      await place.store.appendMessage(key, { role: 'user', author, content, timestamp })
    await indexSession(opened(), key)
    return key
  }

  const best = async (key: SessionKey, words: string) => {
    const { messages } = await recall(opened().memory, key, { words, budgetTokens: 80 })
    return messages.map(({ seq }) => seq)
  }

  test.each([
    ['a word and its neighbours', 'What about the roof?', 2],
    ['an ending', 'who wanted painting', 1],
    ['an identifier by its parts', 'user name', 4],
    ['another spelling of an identifier', 'get_user_name', 4],
    ['a file', 'auth_service', 4],
    ['Chinese', '东京', 6],
    ['a word that is misspelt', 'kitchn', 1],
    ['letters that are exchanged', 'repiar', 2],
    ['a date in words', 'what did we say in March', 1],
  ])(`recall on the ${driver.name} store finds a message by %s`, async (_, words, seq) => {
    expect(await best(await talk(), words)).toContain(seq)
  })

  test(`recall on the ${driver.name} store finds nothing that was not said`, async () => {
    const key = await talk()
    expect(await recall(opened().memory, key, { words: 'zebra xylophone' })).toEqual({
      messages: [],
      observations: [],
    })
    expect(await recall(opened().memory, key, { words: 'the of' })).toEqual({
      messages: [],
      observations: [],
    })
  })

  test(`a range of time limits recall on the ${driver.name} store, with words and without`, async () => {
    const key = await talk()
    const range = { after: MARCH + 29 * DAY, before: MARCH + 31 * DAY }
    const all = await recall(opened().memory, key, range)
    expect(all.messages.map(({ seq }) => seq)).toEqual(expect.arrayContaining([4, 5]))
    const found = await recall(opened().memory, key, { ...range, words: 'roof' })
    expect(found.messages).toEqual([])
  })

  test(`recall on the ${driver.name} store finds observations with their sources, and none that were superseded`, async () => {
    const key = await talk()
    const about = (text: string, fromSeq: number) =>
      withTerms({ text, fromSeq, toSeq: fromSeq, time: MARCH, kind: 'fact', priority: 1, origin: 'x' })
    await opened().memory.observe(key, { observations: [about('Bob wants a new roof', 2)] })
    await opened().memory.observe(key, { supersedes: [1], observations: [about('They repair the roof', 3)] })
    const { observations } = await recall(opened().memory, key, { words: 'roof' })
    expect(observations).toMatchObject([{ number: 2, text: 'They repair the roof', fromSeq: 3 }])
  })

  test(`the result of recall on the ${driver.name} store stays within its budget, and a message that alone exceeds it is left out`, async () => {
    const key = await talk()
    await place.store.appendMessage(key, {
      role: 'user',
      content: `roof ${'x '.repeat(90_000)}`,
      timestamp: MARCH,
    })
    await indexSession(opened(), key)
    const { messages } = await recall(opened().memory, key, { words: 'roof', budgetTokens: 200 })
    expect(messages.map(({ seq }) => seq)).toContain(2)
    expect(messages.map(({ seq }) => seq)).not.toContain(9)
  })

  test(`two processes that index the ${driver.name} store at once index every message once, in steps that report progress`, async () => {
    const key = newKey()
    await place.store.createSession(key)
    const rows = Array.from({ length: 300 }, (_, index) => ({
      ...{ role: 'user', content: `message about topic${index}`, timestamp: index },
    }))
    await place.store.appendMessages(key, rows)
    const steps: number[] = []
    const onProgress = ({ indexed }: { indexed: number }) => void steps.push(indexed)
    await Promise.all([
      indexSession(opened(), key, { onProgress }),
      indexSession(opened(), key, { onProgress }),
    ])
    expect(steps).toEqual([128, 256, 300])
    expect(await opened().memory.progress(key)).toMatchObject({ indexedSeq: 300, documents: 300 })
    const stopped = AbortSignal.abort()
    await place.store.appendMessage(key, { role: 'user', content: 'later', timestamp: 1 })
    expect(await indexSession(opened(), key, { signal: stopped })).toEqual({ indexed: 300, total: 301 })
  })

  test(`the index on the ${driver.name} store leaves out what Lango wrote itself, and one of other rules is built again`, async () => {
    const key = newKey()
    await place.store.createSession(key)
    const extra = { customMetadata: { lango: { synthetic: true } } }
    await place.store.appendMessage(key, { role: 'user', content: 'wrapup notice', timestamp: 1, extra })
    await place.store.appendMessage(key, { role: 'user', content: 'kettle', timestamp: 2 })
    await opened().memory.index(key, {
      ...{ version: 999, afterSeq: 0, throughSeq: 2 },
      documents: [{ seq: 1, at: 1, terms: ['old'] }],
    })
    await indexSession(opened(), key)
    expect(await best(key, 'old')).toEqual([])
    expect(await opened().memory.progress(key)).toMatchObject({ documents: 1, indexedSeq: 2 })
  })
})
