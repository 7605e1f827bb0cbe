import { describe, expect, test } from 'vitest'
import type { Message, SessionKey } from '../../../src/session/message.js'
import type { AppendOptions, SessionStore } from '../../../src/session/session-store.js'
import { DRIVERS, failureOf, newKey, useStore } from './drivers.js'

const user = (content: string, more: Partial<Message> = {}): Message => ({
  role: 'user',
  content,
  timestamp: 5,
  ...more,
})

function bulk(store: SessionStore, key: SessionKey, messages: readonly Message[], options?: AppendOptions) {
  return store.appendMessages(key, messages, options)
}

/** What can be read of a session, apart from its times. */
async function contentsOf(store: SessionStore, key: SessionKey) {
  const { totalMessages, totalTokens } = (await store.describeSession(key)) ?? {}
  const session = await store.loadSession(key)
  return {
    totalMessages,
    totalTokens,
    loaded: session?.messages,
    state: session?.state,
    all: await store.readMessages(key, { limit: 10_000 }),
  }
}

describe.each(DRIVERS)('bulk appends in $name', driver => {
  const place = useStore(driver)

  async function session() {
    const key = newKey()
    await place.store.createSession(key)
    return key
  }

  test('a bulk append stores the same as appending one by one', async () => {
    const messages = Array.from({ length: 450 }, (_, index) =>
      user(`m${index} \0 \ud800`, {
        role: index % 3 === 0 ? 'user' : 'assistant',
        ...(index % 2 === 0 ? { id: `e${index}` } : {}),
        timestamp: 450.5 - index,
      }),
    )
    const [one, other] = [await session(), await session()]
    for (const message of messages) await place.store.appendMessage(one, message)
    await place.store.updateState(one, { a: 1 })
    const seqs = await bulk(place.store, other, messages, { stateDelta: { a: 1 } })
    expect(seqs).toEqual(messages.map((_, index) => ({ seq: index + 1 })))
    expect(await contentsOf(place.store, other)).toEqual(await contentsOf(place.store, one))
  })

  test('a message of a bulk append whose id is stored, or comes twice, replaces the earlier one', async () => {
    const key = await session()
    await place.store.appendMessage(key, user('old', { id: 'a' }))
    const seqs = await bulk(place.store, key, [
      user('b', { id: 'b' }),
      user('new', { id: 'a' }),
      user('again', { id: 'b' }),
      user('c'),
    ])
    expect(seqs.map(({ seq }) => seq)).toEqual([2, 1, 2, 3])
    expect((await place.store.readMessages(key)).map(({ content }) => content)).toEqual(['new', 'again', 'c'])
  })

  test('a bulk append stores large messages whole', async () => {
    const key = await session()
    const messages = Array.from({ length: 5 }, (_, index) => user(`${index}`.repeat(400_000)))
    await bulk(place.store, key, messages)
    expect((await place.store.readMessages(key)).map(({ content }) => content)).toEqual(
      messages.map(({ content }) => content),
    )
  })

  test('a bulk append of nothing does nothing, and one without a session, a lease or valid input is refused', async () => {
    const key = await session()
    expect(await bulk(place.store, key, [])).toEqual([])
    expect((await failureOf(bulk(place.store, newKey(), [user('x')]))).code).toBe('session-not-found')
    const invalid = bulk(place.store, key, [user('x'), { role: 'user' } as Message])
    expect((await failureOf(invalid)).code).toBe('invalid-argument')
    const lease = await place.store.acquireLease(key)
    expect((await failureOf(bulk(place.store, key, [user('x')]))).code).toBe('session-busy')
    const wrong = bulk(place.store, key, [user('x')], { fence: lease.fence + 1000 })
    expect((await failureOf(wrong)).code).toBe('lease-lost')
    expect(await place.store.readMessages(key)).toEqual([])
    expect(await bulk(place.store, key, [user('x')], { fence: lease.fence })).toEqual([{ seq: 1 }])
    await lease.release()
  })

  test('a bulk append and single appends at the same time leave an order without a gap', async () => {
    const key = await session()
    const messages = Array.from({ length: 300 }, (_, index) => user(`m${index}`))
    const [seqs] = await Promise.all([
      bulk(place.store, key, messages),
      ...Array.from({ length: 20 }, () => place.store.appendMessage(key, user('other'))),
    ])
    const stored = await place.store.readMessages(key)
    expect(stored.map(({ seq }) => seq)).toEqual(stored.map((_, index) => index + 1))
    expect(stored).toHaveLength(320)
    expect(seqs.map(({ seq }) => stored[seq - 1]?.content)).toEqual(messages.map(({ content }) => content))
  })
})
