/** Promises of the log about entries. Each check fails when its promise is broken; `controls.test.ts` breaks them. */
import { expect } from 'vitest'
import type { Entry, NewEntry } from '../../../src/session/log-store.js'
import type { Message, State } from '../../../src/session/message.js'
import { contentOf, digestOf, isAuthentic, type RowContext } from '../../../src/store/log/log-rows.js'
import { sql } from '../../../src/store/sql-database.js'
import { readState } from '../../../src/store/sql-state.js'
import { failureOf, newKey } from '../store/drivers.js'
import {
  acquired,
  beginRun,
  createSession,
  deleteSession,
  dump,
  ending,
  expire,
  type LogPlace,
  leaseColumns,
  message,
  sessionRow,
  writesUnder,
} from './drivers.js'

export type Check = (place: LogPlace) => Promise<void>

const USAGE = {
  ...{ inputTokens: 1, outputTokens: 2, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
  totalTokens: 3,
}

function isVerified(entry: Entry, context?: RowContext): boolean {
  return digestOf(entry.salt ?? '', contentOf(entry, context)) === entry.digest
}

export const WRITES = {
  async 'numbers entries and posts without a gap'({ log, database }) {
    const { key, runId, write } = await beginRun(log)
    const answer = { kind: 'answer', runId } as const
    expect(await log.append(write(1, [answer, answer]))).toMatchObject({ seq: 2, posts: 0 })
    expect(await log.post({ runId, kind: 'steer' })).toEqual({ seq: 4 })
    expect(await log.append(write(2, [answer]))).toMatchObject({ seq: 5, posts: 1 })
    expect(await log.post({ runId, kind: 'stop' })).toEqual({ seq: 6 })
    expect(await log.append(write(3, [answer, answer]))).toMatchObject({ seq: 7, posts: 2 })
    expect((await log.read(key)).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(await sessionRow(database, key)).toMatchObject({ entry_count: 8, post_count: 2 })
  },

  async 'numbers messages without a gap in the session and in each nested session'({ log, database }) {
    const { key, runId, write } = await beginRun(log)
    const [one, two] = ['one', 'two'].map(sessionId => ({
      ...key,
      appName: `nested-${key.appName}`,
      sessionId,
    }))
    for (const nested of [one, two]) if (nested) await createSession(database, nested)
    const said = (content: string, nested = one) => ({
      kind: 'answer' as const,
      runId,
      message: message(content),
      ...(nested ? { nested } : {}),
    })
    const own = { kind: 'answer', runId, message: message('own') } as const
    const first = [said('a'), own, { kind: 'notice' as const, runId }, said('b', two), said('c'), own]
    expect((await log.append(write(1, first))).messageSeqs).toEqual([1, 2, 1, 2, 3])
    expect((await log.append(write(2, [said('d', two), own, said('e')]))).messageSeqs).toEqual([2, 4, 3])
    const stored = await log.read(key)
    const numbersOf = (id: string | undefined) =>
      stored
        .filter(({ nested, messageSeq }) => nested?.sessionId === id && messageSeq)
        .map(each => each.messageSeq)
    expect([numbersOf(undefined), numbersOf('one'), numbersOf('two')]).toEqual([
      [1, 2, 3, 4],
      [1, 2, 3],
      [1, 2],
    ])
    expect(await sessionRow(database, key)).toMatchObject({ message_count: 4 })
    for (const [nested, count] of [[one, 3] as const, [two, 2] as const])
      expect(await sessionRow(database, nested ?? key)).toMatchObject({
        message_count: count,
        entry_count: 0,
      })
  },

  async 'refuses a message of a nested session that does not exist, and stores nothing'({ log, database }) {
    const { key, runId, write } = await beginRun(log)
    const nested = { ...key, appName: `missing-${key.appName}` }
    const before = await dump(database)
    const entries = [{ kind: 'answer', runId, message: message('lost'), nested }] as const
    expect((await failureOf(log.append(write(1, entries)))).code).toBe('session-not-found')
    expect(await dump(database)).toBe(before)
  },

  async 'stores a write that is sent again once, and answers it as before'({ log, another, database }) {
    const { key, runId, write } = await beginRun(log)
    const nested = { ...key, appName: `nested-${key.appName}` }
    await createSession(database, nested)
    const again = write(
      1,
      [
        { kind: 'answer', runId, message: message('one') },
        { kind: 'answer', runId, message: message('inner'), nested },
        { kind: 'answer', runId, message: message('two') },
        { kind: 'notice', runId },
      ],
      { state: { a: 1 } },
    )
    const first = await log.append(again)
    expect(first).toEqual({ seq: 2, messageSeqs: [2, 1, 3], posts: 0 })
    const before = await dump(database)
    expect(await log.append(again)).toEqual(first)
    expect(await another().append(again)).toEqual(first)
    expect(await dump(database)).toBe(before)
  },

  async 'stores a write without entries that is sent again once'({ log, database }) {
    const { write, runId } = await beginRun(log)
    const again = write(1, [], { run: { runId, state: 'running' }, state: { a: 1 } })
    const first = await log.append(again)
    expect(first).toEqual({ seq: 2, messageSeqs: [], posts: 0 })
    const before = await dump(database)
    expect(await log.append(again)).toEqual(first)
    expect(await dump(database)).toBe(before)
    expect(await log.append(write(2, [{ kind: 'notice', runId }]))).toMatchObject({ seq: 2 })
  },

  async 'stores a write that is sent again after a post once, with the number of posts by then'(place) {
    const { log, database } = place
    const { runId, write } = await beginRun(log)
    const again = write(1, [{ kind: 'answer', runId, message: message('one') }])
    const first = await log.append(again)
    await log.post({ runId, kind: 'reply' })
    const before = await dump(database)
    expect(await log.append(again)).toEqual({ ...first, posts: 1 })
    expect(await dump(database)).toBe(before)
  },

  async 'stores a write that ends the lease and is sent again once'({ log, database }) {
    const run = await beginRun(log)
    const last = ending(run, 1)
    const first = await log.append(last)
    const before = await dump(database)
    expect(await log.append(last)).toEqual(first)
    expect(await dump(database)).toBe(before)
  },

  async 'refuses other entries under the number of a stored write'({ log, database }) {
    const { runId, write } = await beginRun(log)
    await log.append(write(1, [{ kind: 'answer', runId, message: message('one') }]))
    const before = await dump(database)
    const others: NewEntry[][] = [
      [{ kind: 'answer', runId, message: message('another') }],
      [{ kind: 'answer', message: message('one') }],
      [
        { kind: 'answer', runId, message: message('one') },
        { kind: 'notice', runId },
      ],
      [],
    ]
    for (const entries of others)
      expect((await failureOf(log.append(write(1, entries)))).code).toBe('internal')
    expect(await dump(database)).toBe(before)
  },

  async 'refuses a write whose number is not the next'({ log, database }) {
    const { runId, write } = await beginRun(log)
    const notice = [{ kind: 'notice', runId }] as const
    await log.append(write(1, notice))
    await log.append(write(2, notice))
    const before = await dump(database)
    for (const number of [1, 4])
      expect((await failureOf(log.append(write(number, notice)))).code).toBe('internal')
    expect(await dump(database)).toBe(before)
  },

  async 'refuses a write under a lease that another process has taken over'({ log, another, database }) {
    const { key, runId, write } = await beginRun(log)
    const notice = [{ kind: 'notice', runId }] as const
    await log.append(write(1, notice))
    await expire(database, key)
    const taker = another()
    const lease = await acquired(taker, key)
    const writeAs = writesUnder(lease)
    // Whatever the new holder has written, the numbers of the old one mean nothing: also where they are equal.
    for (const written of [0, 1, 2, 3]) {
      if (written > 0) await taker.append(writeAs(written, [{ kind: 'attempt', runId }]))
      const before = await dump(database)
      for (const number of [1, 2, 3])
        expect((await failureOf(log.append(write(number, notice)))).code).toBe('lease-lost')
      expect((await failureOf(log.pause(write(2, notice), 0))).code).toBe('lease-lost')
      expect(await dump(database)).toBe(before)
    }
  },

  async 'refuses a write under a lease that was released'({ log, database }) {
    const run = await beginRun(log)
    await log.append(ending(run, 1))
    const other = await beginRun(log)
    await log.release(other.lease)
    const before = await dump(database)
    for (const { runId, write } of [run, other])
      expect((await failureOf(log.append(write(2, [{ kind: 'notice', runId }])))).code).toBe('lease-lost')
    expect(await dump(database)).toBe(before)
  },

  async 'refuses an append without a lease while a lease is valid, and stores it when the lease has expired'({
    log,
    database,
  }) {
    const { key } = await beginRun(log)
    const imported = { key, entries: [{ kind: 'message', message: message('imported') }] } as const
    const before = await dump(database)
    expect(await failureOf(log.append(imported))).toMatchObject({ code: 'session-busy', retryable: true })
    expect(await dump(database)).toBe(before)
    await expire(database, key)
    expect(await log.append(imported)).toEqual({ seq: 2, messageSeqs: [2], posts: 0 })
  },

  async 'ends an expired lease with an append without one, and the late holder finds it gone'({
    log,
    another,
    database,
  }) {
    const { key, runId, lease, write } = await beginRun(log)
    const notice = [{ kind: 'notice', runId }] as const
    await log.append(write(1, notice))
    await expire(database, key)
    await another().append({ key, entries: [{ kind: 'message', message: message('imported') }] })
    expect(await leaseColumns(database, key)).toMatchObject({ fence: 0, holder: '', lease_until: 0 })
    const before = await dump(database)
    // What it has written is stored.
    expect(await log.append(write(1, notice))).toMatchObject({ seq: 2 })
    for (const number of [1, 2, 3, 'next'] as const) {
      const late = { ...write(2, [...notice, ...notice]), under: { fence: lease.fence, number } }
      expect((await failureOf(log.append(late))).code).toBe('lease-lost')
      expect((await failureOf(log.pause(late, 0))).code).toBe('lease-lost')
    }
    expect(await log.renew([lease])).toEqual(new Set())
    await log.release(lease)
    expect(await dump(database)).toBe(before)
    const next = await acquired(another(), key)
    expect(await another().append(writesUnder(next)(1, notice))).toMatchObject({ seq: 4 })
  },

  async 'refuses an append to a session that does not exist'({ log, database }) {
    const before = await dump(database)
    const entries = [{ kind: 'notice' }] as const
    expect((await failureOf(log.append({ key: newKey(), entries }))).code).toBe('session-not-found')
    const under = { fence: 1, number: 1 }
    expect((await failureOf(log.append({ key: newKey(), under, entries }))).code).toBe('session-not-found')
    expect(await dump(database)).toBe(before)
  },

  async 'appends to a session that another process has deleted and created again'({ log, database }) {
    const { key } = await beginRun(log)
    await deleteSession(database, key)
    const imported = { key, entries: [{ kind: 'message', message: message('imported') }] } as const
    expect((await failureOf(log.append(imported))).code).toBe('session-not-found')
    await createSession(database, key)
    expect(await log.append(imported)).toEqual({ seq: 1, messageSeqs: [1], posts: 0 })
    await deleteSession(database, key)
    await createSession(database, key)
    expect(await log.append(imported)).toEqual({ seq: 1, messageSeqs: [1], posts: 0 })
  },

  async 'renews the lease with every write under it'({ log, database }) {
    const { key, runId, write } = await beginRun(log)
    await expire(database, key)
    await log.append(write(1, [{ kind: 'notice', runId }]))
    const { at } = (await log.read(key)).at(-1) as Entry
    const { lease_until: until, lease_ms: length } = await sessionRow(database, key)
    expect(length).toBe(60_000)
    expect(Math.abs(Number(until) - at - 60_000)).toBeLessThan(10_000)
  },

  async 'sets and removes state of the session, the user and the app with the entries'({ log, database }) {
    const { key, runId, write } = await beginRun(log)
    const notice = [{ kind: 'notice', runId }] as const
    const stateOf = async (): Promise<State> => {
      const pk = Number((await sessionRow(database, key)).pk)
      return database.read(() => readState(key, pk))
    }
    const set = {
      a: 1,
      b: 'two',
      'user:c': { d: null },
      'app:e': [3],
      'temp:f': 4,
      '\0': '\0',
      ['__proto__']: 5,
    }
    await log.append(write(1, notice, { state: set }))
    const { 'temp:f': _, ...kept } = set
    expect(await stateOf()).toEqual(kept)
    await log.append(
      write(2, notice, { state: { a: undefined, 'user:c': undefined, 'app:e': undefined, b: 2 } }),
    )
    expect(await stateOf()).toEqual({ b: 2, '\0': '\0', ['__proto__']: 5 })
  },

  async 'changes nothing that comes with a write that is refused'(place) {
    const { log, another, database } = place
    const { key, runId, lease, write } = await beginRun(log)
    const nested = { ...key, appName: `nested-${key.appName}` }
    await createSession(database, nested)
    const call = { callId: 'c', tool: 't', effect: 'once', digest: 'd', args: {} } as const
    const started = (id: string) => ({ id, status: 'started', call }) as const
    await another().post({ runId, kind: 'reply', about: 'c' })
    await log.append({
      ...write(1, [], {
        state: { kept: 1, 'user:kept': 1, 'app:kept': 1 },
        calls: [started('m/one'), started('m/two')],
      }),
      runId,
    })
    const removed = { kept: undefined, 'user:kept': undefined, 'app:kept': undefined }
    const state = { ...removed, new: 1, 'user:new': 1, 'app:new': 1 }
    const run = { runId, state: 'finished', finishReason: 'stop' } as const
    const also = {
      ...{ state, run, release: true },
      calls: [{ id: 'm/one', status: 'done' }, started('m/three')],
      parts: { before: 0, added: [{ digest: 'p', part: 'p' }] },
      calibration: [{ model: `model-${runId}`, bytes: 1, tokens: 1 }],
    } as const
    const events = [
      { type: 'usage', model: 'm', usage: USAGE, seq: 1 },
      { type: 'approval-answer', id: 'c', answer: 'approved', seq: 2 },
    ]
    const entries = [{ kind: 'ended', runId, message: message('inner'), nested, events }] as const
    const attempt = (number: number) => ({ ...write(number, entries, also), runId })
    const before = await dump(database)
    expect((await failureOf(log.append(attempt(3)))).code).toBe('internal')
    const under = { fence: lease.fence + 1000, number: 2 }
    expect((await failureOf(log.append({ ...attempt(2), under }))).code).toBe('lease-lost')
    expect(await log.pause(attempt(2), 7)).toEqual({ unread: 1 })
    expect((await failureOf(log.append({ key, entries, also: { state } }))).code).toBe('session-busy')
    expect(await dump(database)).toBe(before)
    await expire(database, key)
    await acquired(another(), key)
    const taken = await dump(database)
    expect((await failureOf(log.append(attempt(2)))).code).toBe('lease-lost')
    expect(await dump(database)).toBe(taken)
  },

  async 'returns any text and JSON as it was stored'({ log }) {
    const { key, runId, write } = await beginRun(log)
    const strange = 'NUL \0, half \ud800 and \udc00 a pair, \u0001 marker, 😀'
    const entries: NewEntry[] = [
      {
        kind: 'answer',
        runId,
        key: `key ${strange}`,
        data: { [strange]: [strange, { ['__proto__']: { x: 1 } }] },
      },
      {
        kind: 'answer',
        runId,
        message: {
          role: strange,
          author: strange,
          content: strange,
          timestamp: 1.5,
          id: strange,
          invocationId: strange,
          branch: strange,
          toolCalls: [{ id: strange, name: strange, input: strange, output: strange }],
          extra: { ['__proto__']: strange, [strange]: null },
        },
      },
      // The content repeats the outputs, which is not stored twice.
      {
        kind: 'result',
        runId,
        message: {
          role: 'tool',
          content: 'out',
          timestamp: 2,
          toolCalls: [{ id: 'c', name: 't', output: 'out' }],
        },
      },
      { kind: 'notice', runId, data: {} },
      { kind: 'notice', runId, data: { large: 'ä'.repeat(1_000_000), 1: 'number', deep: [[[{}]]] } },
    ]
    await log.append(write(1, entries))
    const stored = (await log.read(key)).slice(1)
    expect(
      stored.map(({ kind, key: name, message: text, data }) => ({ kind, key: name, message: text, data })),
    ).toEqual(
      entries.map(({ kind, key: name, message: text, data }) => ({ kind, key: name, message: text, data })),
    )
    const inner = (stored[0]?.data as Record<string, [string, object]> | undefined)?.[strange]?.[1]
    expect(Object.keys(inner ?? {})).toEqual(['__proto__'])
    for (const entry of stored) expect(isVerified(entry)).toBe(true)
    expect((await log.find(key, [`key ${strange}`])).map(({ seq }) => seq)).toEqual([2])
  },

  async 'has a digest over salt and content that verifies after reading and tells any change'({
    log,
    database,
  }) {
    const { key, runId, write } = await beginRun(log)
    const said: NewEntry = {
      kind: 'answer',
      runId,
      key: 'k',
      message: message('content', 'id'),
      data: { b: 1, a: [1, 2] },
    }
    const equal = { kind: 'notice', runId, data: { same: true } } as const
    await log.append(write(1, [said, equal, equal]))
    const [begun, entry, one, two] = await log.read(key)
    for (const each of [begun, entry, one, two]) expect(isVerified(each as Entry)).toBe(true)
    const rows = await database.run(
      sql('SELECT * FROM lango_entries WHERE session_pk = ?', Number((await sessionRow(database, key)).pk)),
    )
    for (const row of rows) {
      expect(isAuthentic(row)).toBe(true)
      expect(isAuthentic({ ...row, data: '{"forged":1}' })).toBe(false)
      expect(isAuthentic({ ...row, salt: null })).toBeUndefined()
    }
    // Equal contents cannot be found by their digests.
    expect(one?.digest).not.toBe(two?.digest)
    const { salt = '', digest } = entry as Entry
    const changes: Partial<NewEntry>[] = [
      { kind: 'event' },
      { key: 'l' },
      { message: message('content.', 'id') },
      { message: message('content', 'id.') },
      { message: { ...message('content', 'id'), timestamp: 2 } },
      { data: { b: 1, a: [2, 1] } },
      { data: { b: 1 } },
    ]
    for (const change of changes) expect(digestOf(salt, contentOf({ ...said, ...change }))).not.toBe(digest)
    expect(digestOf(`${salt}.`, contentOf(said))).not.toBe(digest)
    // The digest is that of the stored text, which has the fields in their order.
    expect(digestOf(salt, contentOf({ ...said, data: { a: [1, 2], b: 1 } }))).not.toBe(digest)
    expect(digestOf(salt, contentOf({ ...said, data: { b: 1, a: [1, 2] } }))).toBe(digest)
  },

  async 'returns run events as they were reported, and their digests verify'({ log }) {
    const { key, runId, write } = await beginRun(log)
    const names = { sessionId: key.sessionId, runId }
    const text = 'An answer that is longer than what is worth a reference'
    const answer: Message = { role: 'assistant', content: text, timestamp: 1, id: 'm1' }
    const events = [
      [{ type: 'text-delta', text, ...names, seq: 1 }],
      [
        { type: 'usage', model: 'm', usage: USAGE, ...names, seq: 2 },
        { type: 'notice', ...names, sessionId: 'another', seq: 3 },
      ],
      [{ type: 'run-finish', text, lastText: text, ...names, seq: 4 }],
    ]
    await log.append(
      write(1, [
        { kind: 'notice', runId, data: { kept: 1 }, events: events[1] ?? [] },
        { kind: 'answer', runId, message: answer, events: events[0] ?? [] },
        { kind: 'ended', runId, events: events[2] ?? [] },
      ]),
    )
    const [notice, said, ended] = (await log.read(key)).slice(1)
    expect([said?.events, notice?.events, ended?.events]).toEqual(events)
    expect(notice?.data).toEqual({ kept: 1 })
    expect(ended?.data).toBeUndefined()
    const { sessionId } = key
    for (const entry of [notice, said]) expect(isVerified(entry as Entry, { sessionId })).toBe(true)
    expect(isVerified(ended as Entry, { sessionId, previous: answer })).toBe(true)
  },

  async 'has a digest that verifies for a message as another store returned it'({ log }) {
    const { key, runId, write } = await beginRun(log)
    const returned = { ...message('copied', 'id'), seq: 7, tokens: 3 }
    await log.append(write(1, [{ kind: 'message', runId, message: returned }]))
    const entry = (await log.read(key)).at(-1) as Entry
    expect(entry.message).toEqual(message('copied', 'id'))
    expect(isVerified(entry)).toBe(true)
  },

  async 'refuses data that is not JSON, and stores nothing'({ log, database }) {
    const { runId, write } = await beginRun(log)
    const circular: Record<string, unknown> = {}
    circular.self = circular
    const before = await dump(database)
    expect((await failureOf(log.append(write(1, [{ kind: 'notice', runId, data: circular }])))).code).toBe(
      'invalid-argument',
    )
    expect(await dump(database)).toBe(before)
  },

  async 'refuses a change of a run without a lease, and stores nothing'({ log, database }) {
    const { key, runId, lease } = await beginRun(log)
    await log.release(lease)
    const before = await dump(database)
    const entries = [{ kind: 'ended', runId }] as const
    const run = { runId, state: 'finished' } as const
    for (const also of [{ run }, { release: true }])
      expect((await failureOf(log.append({ key, entries, also }))).code).toBe('internal')
    expect(await dump(database)).toBe(before)
  },

  async 'finds entries by their keys, in order'({ log }) {
    const { key, runId, write } = await beginRun(log)
    const other = await beginRun(log)
    await log.append(other.write(1, [{ kind: 'call', runId: other.runId, key: 'call:a:0:1' }]))
    const keyed = (name: string) => ({ kind: 'call' as const, runId, key: name })
    await log.append(write(1, [keyed('call:a:0:1'), keyed('call:b:0:1'), { kind: 'notice', runId }]))
    await log.append(write(2, [keyed('done:a:0')]))
    const found = await log.find(key, ['done:a:0', 'call:a:0:1', 'call:none'])
    expect(found.map(({ seq, key: name }) => [seq, name])).toEqual([
      [2, 'call:a:0:1'],
      [5, 'done:a:0'],
    ])
    expect(await log.find(key, [])).toEqual([])
  },

  async 'refuses a second entry with a key together with its whole write'({ log, database }) {
    const { key, runId, write } = await beginRun(log)
    await log.append(write(1, [{ kind: 'result', runId, key: 'done:a:0', message: message('paid', 'm1') }]))
    const before = await dump(database)
    const also = { state: { a: 1 }, run: { runId, state: 'finished' }, release: true } as const
    const twice = [
      { kind: 'answer', runId, message: message('not stored') },
      { kind: 'result', runId, key: 'done:a:0' },
    ] as const
    const sameMessage = ['m1', 'm2'].map(
      id =>
        [
          { kind: 'answer', runId, message: message('one', id) },
          { kind: 'answer', runId, message: message('two', id) },
        ] as const,
    )
    for (const entries of [twice, ...sameMessage]) {
      expect((await failureOf(log.append(write(2, entries, also)))).code).toBe('internal')
      expect(await dump(database)).toBe(before)
    }
    // The same key in another session is another key.
    const other = await beginRun(log)
    await log.append(other.write(1, [{ kind: 'result', runId: other.runId, key: 'done:a:0' }]))
    expect(await log.append(write(2, [{ kind: 'notice', runId }]))).toMatchObject({ seq: 3 })
    expect((await log.read(key)).map(({ seq }) => seq)).toEqual([1, 2, 3])
  },

  async 'reads entries in order, after a number, of a run, of some kinds, and at most so many'({
    log,
    database,
  }) {
    const { key, runId, write } = await beginRun(log)
    await log.append(write(1, [{ kind: 'answer', runId }, { kind: 'notice' }, { kind: 'call', runId }]))
    await log.append(
      write(2, [
        { kind: 'result', runId },
        { kind: 'notice', runId },
      ]),
    )
    const read = async (query: Parameters<typeof log.read>[1]) =>
      (await log.read(key, query)).map(({ seq }) => seq)
    expect(await read({})).toEqual([1, 2, 3, 4, 5, 6])
    expect(await read({ afterSeq: 4 })).toEqual([5, 6])
    expect(await read({ runId })).toEqual([1, 2, 4, 5, 6])
    expect(await read({ runId: 'another' })).toEqual([])
    expect(await read({ kinds: ['notice', 'result'] })).toEqual([3, 5, 6])
    expect(await read({ limit: 2, afterSeq: 1 })).toEqual([2, 3])
    expect(await log.read(newKey())).toEqual([])
    // An entry whose content was pruned keeps its place, kind and digest.
    const pk = Number((await sessionRow(database, key)).pk)
    const [, kept] = await log.read(key)
    await database.run({
      text: 'UPDATE lango_entries SET data = NULL, salt = NULL WHERE session_pk = ? AND seq = 2',
      parameters: [pk],
    })
    const { salt: _, ...header } = kept as Entry
    expect((await log.read(key))[1]).toEqual({ ...header, isPruned: true })
  },
} as const satisfies Record<string, Check>
