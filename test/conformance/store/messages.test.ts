import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Message } from '../../../src/session/message.js'
import { countMessageTokens } from '../../../src/session/tokens.js'
import { DRIVERS, failureOf, newKey, useStore } from './drivers.js'

describe.each(DRIVERS)('messages in $name', driver => {
  const place = useStore(driver)

  async function session() {
    const key = newKey()
    await place.store.createSession(key)
    return key
  }

  const user = (content: string, more: Partial<Message> = {}): Message => ({
    role: 'user',
    content,
    timestamp: 5,
    ...more,
  })

  test('messages are ordered by append, not by timestamp', async () => {
    const key = await session()
    const times = [7, 7, 7, 3, 99, 7, 0, -1, 1.5]
    for (const [index, timestamp] of times.entries()) {
      expect(await place.store.appendMessage(key, user(`m${index}`, { timestamp }))).toEqual({
        seq: index + 1,
      })
    }
    const messages = await place.store.readMessages(key)
    expect(messages.map(({ content }) => content)).toEqual(times.map((_, index) => `m${index}`))
    expect(messages.map(({ timestamp }) => timestamp)).toEqual(times)
    expect(messages.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  const full: Message = {
    role: 'assistant',
    author: 'planner',
    content: 'thinking…',
    toolCalls: [
      { id: 'c1', name: 'search', input: '{"q":"tea"}', signature: 'c2ln', kind: 'call' },
      { id: '', name: '', kind: 'call' },
    ],
    timestamp: 1_794_784_874_799,
    id: 'event-1',
    invocationId: 'e-1',
    branch: 'root.planner',
    extra: { parts: [{ thought: true, text: 'hm' }], nested: { deep: [1, null, { a: 'b' }] } },
  }

  test.each<[string, Message]>([
    ['every field', full],
    ['nothing but the required fields', { role: 'user', content: '', timestamp: 0 }],
    [
      'empty strings where fields are optional',
      user('x', { author: '', id: '', invocationId: '', branch: '' }),
    ],
    ['empty lists and objects', user('x', { toolCalls: [], extra: {} })],
    ['an unknown role', user('x', { role: 'narrator' })],
    ['an empty role', user('x', { role: '' })],
    ['a legacy role', user('x', { role: 'function' })],
    [
      'a tool result that content repeats',
      {
        role: 'tool',
        content: '{"a":1}\n[2]',
        timestamp: 1,
        toolCalls: [
          { id: 'a', name: 't', output: '{"a":1}' },
          { id: 'b', name: 't', output: '[2]' },
        ],
      },
    ],
    [
      'a tool result with content of its own',
      { role: 'tool', content: 'other', timestamp: 1, toolCalls: [{ id: 'a', name: 't', output: '{}' }] },
    ],
    [
      'an empty output',
      { role: 'tool', content: '', timestamp: 1, toolCalls: [{ id: 'a', name: 't', output: '' }] },
    ],
    [
      'arguments that are not JSON',
      { role: 'assistant', content: '', timestamp: 1, toolCalls: [{ id: 'a', name: 't', input: '{"q": ' }] },
    ],
    [
      'numbers that a double cannot hold',
      {
        role: 'tool',
        content: '',
        timestamp: 1,
        toolCalls: [{ id: 'a', name: 't', output: '12345678901234567890' }],
      },
    ],
    [
      'keys that look like a prototype',
      user('x', { extra: JSON.parse('{"__proto__":{"a":1},"constructor":2}') }),
    ],
    [
      'NUL, lone surrogates and control characters',
      user('\0a\ud800b\udfff\u0001\u001f\u007f\u2028', { author: '\udc00', id: 'i\0d', branch: '\0' }),
    ],
    ['text that starts with the marker', user('\u0001"quoted"', { author: '\u0001' })],
    ['binary-like text', user(Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)).join(''))],
    [
      'NUL and lone surrogates inside JSON',
      user('x', {
        toolCalls: [{ id: '\0', name: '\ud800', output: '"\0\udc00"' }],
        extra: { '\0': '\ud800', k: ['\0'] },
      }),
    ],
    ['text of many languages', user('한국어 中文 العربية עברית ไทย हिन्दी 👩‍👩‍👧‍👦 é é ﷽')],
    ['a very long id', user('x', { id: 'i'.repeat(5000) })],
    ['a huge timestamp', user('x', { timestamp: 9e15 })],
    ['half a megabyte', user('0123456789abcdef'.repeat(32_768))],
  ])('a message with %s comes back as it was', async (_, message) => {
    const key = await session()
    const copy = structuredClone(message)
    await place.store.appendMessage(key, message)
    expect(message).toEqual(copy)
    const expected = { ...message, seq: 1, tokens: countMessageTokens(message) }
    const [read] = await place.store.readMessages(key)
    expect(read).toStrictEqual(expected)
    expect((await place.store.loadSession(key))?.messages).toStrictEqual([expected])
  })

  test('any message of any strings comes back as it was', async () => {
    const key = await session()
    const character = fc.integer({ min: 0, max: 0x10ffff }).map(code => String.fromCodePoint(code))
    const text = fc
      .string({ unit: character, maxLength: 20 })
      .chain(base => fc.constantFrom('', '\0', '\ud83d', '\udc00', '\u0001').map(odd => odd + base + odd))
    const arbitrary = fc.record<Message>({
      role: text,
      content: text,
      timestamp: fc.integer(),
      author: text,
      extra: fc.dictionary(text, fc.jsonValue()) as fc.Arbitrary<Record<string, unknown>>,
      toolCalls: fc.array(fc.record({ id: text, name: text, output: text })),
    })
    let seq = 0
    await fc.assert(
      fc.asyncProperty(arbitrary, async message => {
        const plain = JSON.parse(JSON.stringify(message)) as Message
        await place.store.appendMessage(key, plain)
        const [read] = await place.store.readMessages(key, { afterSeq: seq++ })
        expect(read).toEqual({ ...plain, seq, tokens: countMessageTokens(plain) })
      }),
      { numRuns: 60 },
    )
  })

  test('appending an id again replaces that message in its place', async () => {
    const key = await session()
    for (const id of ['a', 'b', 'c']) await place.store.appendMessage(key, user(`first ${id}`, { id }))
    const replaced = await place.store.appendMessage(
      key,
      { ...full, id: 'b' },
      { stateDelta: { replaced: true } },
    )
    expect(replaced).toEqual({ seq: 2 })
    const loaded = await place.store.loadSession(key)
    expect(loaded?.messages.map(({ id, content }) => [id, content])).toEqual([
      ['a', 'first a'],
      ['b', full.content],
      ['c', 'first c'],
    ])
    expect(loaded).toMatchObject({ totalMessages: 3, state: { replaced: true } })
    const [summary] = (await place.store.listSessions({ appName: key.appName })).sessions
    expect(summary?.totalTokens).toBe(loaded?.messages.reduce((all, { tokens }) => all + tokens, 0))
    expect(await place.store.appendMessage(key, user('next'))).toEqual({ seq: 4 })
  })

  test('the same id in two sessions is two messages, and messages without an id never replace', async () => {
    const [one, two] = [await session(), await session()]
    await place.store.appendMessage(one, user('x', { id: 'same' }))
    expect(await place.store.appendMessage(two, user('y', { id: 'same' }))).toEqual({ seq: 1 })
    expect(await place.store.appendMessage(two, user('y'))).toEqual({ seq: 2 })
    expect(await place.store.appendMessage(two, user('y'))).toEqual({ seq: 3 })
  })

  test('appending to a session that does not exist fails', async () => {
    const failure = await failureOf(
      place.store.appendMessage(newKey(), user('x'), { stateDelta: { 'app:a': 1 } }),
    )
    expect(failure.code).toBe('session-not-found')
    expect(failure.message).toContain('create it first')
  })

  test('changing a message object after its append changes nothing in the store', async () => {
    const key = await session()
    const message = structuredClone(full)
    await place.store.appendMessage(key, message)
    message.content = 'changed'
    if (message.toolCalls?.[0]) message.toolCalls[0].input = 'changed'
    const first = await place.store.readMessages(key)
    if (first[0]?.extra) first[0].extra.nested = 'changed'
    expect((await place.store.readMessages(key))[0]).toMatchObject(full)
  })

  test('many appends at once are numbered without a gap', async () => {
    const key = await session()
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        place.store.appendMessage(key, user(`m${index}`, { id: `e${index}` })),
      ),
    )
    expect(results.map(({ seq }) => seq).sort((one, other) => one - other)).toEqual(
      Array.from({ length: 100 }, (_, index) => index + 1),
    )
    const messages = await place.store.readMessages(key)
    for (const [index, { seq }] of results.entries()) expect(messages[seq - 1]?.content).toBe(`m${index}`)
  })

  test('messages are read in pages, forward and backward', async () => {
    const key = await session()
    for (let index = 1; index <= 25; index++) await place.store.appendMessage(key, user(`${index}`))
    const read = async (options: Parameters<typeof place.store.readMessages>[1]) =>
      (await place.store.readMessages(key, options)).map(({ seq }) => seq)
    expect(await read({ limit: 3 })).toEqual([1, 2, 3])
    expect(await read({ afterSeq: 3, limit: 3 })).toEqual([4, 5, 6])
    expect(await read({ afterSeq: 23 })).toEqual([24, 25])
    expect(await read({ afterSeq: 25 })).toEqual([])
    expect(await read({ beforeSeq: 26, limit: 3 })).toEqual([23, 24, 25])
    expect(await read({ beforeSeq: 3, limit: 10 })).toEqual([1, 2])
    expect(await read({ beforeSeq: 1 })).toEqual([])
    expect(await read({ beforeSeq: 0 })).toEqual([])
    expect(await read({ afterSeq: 3, beforeSeq: 20, limit: 4 })).toEqual([4, 5, 6, 7])
    expect(await read({ afterSeq: 20, beforeSeq: 3 })).toEqual([])
    expect(await read({})).toHaveLength(25)
  })
})

describe.each(DRIVERS)('state in $name', driver => {
  const place = useStore(driver)
  const message: Message = { role: 'user', content: 'x', timestamp: 1 }

  test('app, user and session keys of state have their own scope, and temp keys are not stored', async () => {
    const key = newKey()
    const sameUser = { ...key, sessionId: 'two' }
    const otherUser = { ...key, userId: 'bob' }
    const otherApp = { ...newKey(), userId: key.userId }
    for (const each of [key, sameUser, otherUser, otherApp]) await place.store.createSession(each)
    await place.store.appendMessage(key, message, {
      stateDelta: { 'app:a': 1, 'user:b': { deep: [2] }, c: null, 'temp:d': 4 },
    })
    const stateOf = async (each: typeof key) => (await place.store.loadSession(each))?.state
    expect(await stateOf(key)).toEqual({ 'app:a': 1, 'user:b': { deep: [2] }, c: null })
    expect(await stateOf(sameUser)).toEqual({ 'app:a': 1, 'user:b': { deep: [2] } })
    expect(await stateOf(otherUser)).toEqual({ 'app:a': 1 })
    expect(await stateOf(otherApp)).toEqual({})
  })

  test('undefined removes a key of state, in every scope, and other keys stay', async () => {
    const key = newKey()
    await place.store.createSession(key, { 'app:a': 1, 'user:b': 1, c: 1, d: 1 })
    await place.store.updateState(key, {
      'app:a': undefined,
      'user:b': undefined,
      c: undefined,
      never: undefined,
    })
    expect((await place.store.loadSession(key))?.state).toEqual({ d: 1 })
  })

  test('odd keys and values of state are plain data', async () => {
    const key = newKey()
    const state = JSON.parse(
      '{"__proto__":{"polluted":true},"constructor":1,"":0,"app:":1,"user:":2}',
    ) as Record<string, unknown>
    state['k\0\ud800'] = { '\0': '\udc00' }
    await place.store.createSession(key, state)
    const loaded = (await place.store.loadSession(key))?.state
    expect(loaded).toEqual(state)
    expect(Object.getOwnPropertyNames(loaded)).toContain('__proto__')
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })

  test('a refused append applies no state', async () => {
    const key = newKey()
    await place.store.createSession(key)
    const lease = await place.store.acquireLease(key)
    expect((await failureOf(place.store.appendMessage(key, message, { stateDelta: { a: 1 } }))).code).toBe(
      'session-busy',
    )
    expect((await failureOf(place.store.updateState(key, { a: 1 }))).code).toBe('session-busy')
    await lease.release()
    expect((await place.store.loadSession(key))?.state).toEqual({})
    expect((await failureOf(place.store.updateState(newKey(), { 'app:a': 1 }))).code).toBe(
      'session-not-found',
    )
  })

  test('writers of different state keys at the same time lose nothing', async () => {
    const { appName } = newKey()
    const keys = Array.from({ length: 10 }, (_, index) => ({
      appName,
      userId: 'ann',
      sessionId: `s${index}`,
    }))
    for (const key of keys) await place.store.createSession(key)
    await Promise.all(
      keys.flatMap((key, index) => [
        place.store.appendMessage(key, message, {
          stateDelta: { [`app:a${index}`]: index, [`user:u${index}`]: index },
        }),
        place.store.updateState(key, { [`app:b${index}`]: index, mine: index }),
      ]),
    )
    const state = (await place.store.loadSession(keys[3] ?? newKey()))?.state ?? {}
    expect(Object.keys(state).filter(name => name.startsWith('app:'))).toHaveLength(20)
    expect(Object.keys(state).filter(name => name.startsWith('user:'))).toHaveLength(10)
    expect(state.mine).toBe(3)
  })
})
