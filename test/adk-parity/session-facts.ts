// What ADK's own tests say of a session service, as questions that any session service can be asked.
// `session-service.test.ts` asks ADK's service in memory and Lango's on each store.
import {
  type BaseSessionService,
  createEvent,
  createEventActions,
  type Event,
  type Session,
} from '@google/adk'

export type Fact = (sessions: BaseSessionService) => Promise<unknown>

export const KEY = { appName: 'app', userId: 'ann', sessionId: 's1' } as const
const START = 1_700_000_000_000

let clock = START
const at = () => {
  clock += 10
  return clock
}

export type Fields = Parameters<typeof createEvent>[0]

export const event = (fields: Fields): Event =>
  createEvent({ author: 'root', invocationId: 'i1', timestamp: at(), ...fields })
export const says = (text: string, fields: Fields = {}) =>
  event({ content: { role: 'model', parts: [{ text }] }, ...fields })
export const asks = (text: string, fields: Fields = {}) =>
  event({ author: 'user', content: { role: 'user', parts: [{ text }] }, ...fields })
const changes = (stateDelta: Record<string, unknown>, fields: Fields = {}) =>
  says('changed', { actions: createEventActions({ stateDelta }), ...fields })

/** A session with these events, and the session as it is loaded afterwards. */
export async function stored(sessions: BaseSessionService, events: readonly Event[], key: typeof KEY = KEY) {
  const session = await sessions.createSession({ ...key })
  for (const each of events) await sessions.appendEvent({ session, event: each })
  return { session, loaded: (await sessions.getSession({ ...key })) as Session }
}

export const texts = (list: readonly Event[] = []) => list.map(each => each.content?.parts?.[0]?.text ?? null)

/** An event as plain data: everything that it has. */
const plain = (each: Event) => JSON.parse(JSON.stringify(each)) as unknown

export const SESSION_FACTS: Readonly<Record<string, Fact>> = {
  'a session that does not exist': async sessions => (await sessions.getSession({ ...KEY })) ?? 'none',
  'a new session has its id, its user and no events': async sessions => {
    const { id, appName, userId, events, state } = await sessions.createSession({ ...KEY, state: { a: 1 } })
    return { id, appName, userId, events, state: { ...state } }
  },
  'a session without id gets one': async sessions =>
    (await sessions.createSession({ appName: 'app', userId: 'ann' })).id.length > 8,
  'temporary keys of the first state are not kept': async sessions => ({
    ...(await sessions.createSession({ ...KEY, state: { a: 1, 'temp:b': 2 } })).state,
  }),
  'get or create finds what exists': async sessions => {
    const { session } = await stored(sessions, [says('x')])
    return (await sessions.getOrCreateSession({ ...KEY })).id === session.id
  },
  'each event is loaded as it was appended': async sessions => {
    const given = [
      asks('q', { id: 'e1', invocationId: 'run-1', timestamp: START }),
      says('a', {
        id: 'e2',
        invocationId: 'run-1',
        timestamp: START + 1,
        branch: 'root.child',
        usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 },
        customMetadata: { trace: { id: 7 } },
        finishReason: 'STOP' as never,
        modelVersion: 'gemini-x',
        avgLogprobs: -0.5,
      } as Fields),
      says('b', { id: 'e3', invocationId: 'run-2', timestamp: START + 2 }),
      says('c', { id: 'e4', invocationId: 'run-2', timestamp: START + 3 }),
    ]
    return (await stored(sessions, given)).loaded.events.map(plain)
  },
  'two messages of the user in a row stay two events': async sessions =>
    texts((await stored(sessions, [asks('a'), asks('b'), says('c')])).loaded.events),
  'calls, results and what belongs to them': async sessions => {
    const call = { functionCall: { id: 'c1', name: 'look', args: { x: [1, { y: null }] } } }
    const response = { functionResponse: { id: 'c1', name: 'look', response: { seen: true } } }
    const given = [
      event({
        id: 'e1',
        content: { role: 'model', parts: [{ text: 'wait' }, call] },
        longRunningToolIds: ['c1'],
      }),
      event({ id: 'e2', content: { role: 'user', parts: [response] } }),
    ].map((each, index) => Object.assign(each, { timestamp: START + index }))
    return (await stored(sessions, given)).loaded.events.map(plain)
  },
  'a client’s answer keeps its author': async sessions => {
    const call = { functionCall: { id: 'c1', name: 'job', args: {} } }
    const response = { functionResponse: { id: 'c1', name: 'job', response: { ok: 1 } } }
    const given = [
      event({ content: { role: 'model', parts: [call] } }),
      event({ author: 'user', content: { role: 'user', parts: [response] } }),
    ]
    return (await stored(sessions, given)).loaded.events.map(({ author, content }) => [author, content?.role])
  },
  'every kind of action is kept': async sessions => {
    const actions = createEventActions({
      stateDelta: { a: 1 },
      artifactDelta: { 'note.txt': 2 },
      transferToAgent: 'other',
      escalate: true,
      skipSummarization: true,
    })
    const { loaded } = await stored(sessions, [says('x', { actions })])
    return loaded.events.map(each => each.actions)
  },
  'an error event is kept': async sessions => {
    const { loaded } = await stored(sessions, [event({ errorCode: '429', errorMessage: 'slow down' })])
    return loaded.events.map(({ errorCode, errorMessage, author }) => ({ errorCode, errorMessage, author }))
  },
  'an event without content but with an author is kept': async sessions =>
    (await stored(sessions, [event({ author: 'root' })])).loaded.events.map(({ author }) => author),
  'an event of state alone': async sessions => {
    const { loaded } = await stored(sessions, [
      event({ actions: createEventActions({ stateDelta: { a: 1 } }) }),
    ])
    return { events: loaded.events.length, state: { ...loaded.state } }
  },
  'a compaction is kept': async sessions => {
    const summary = Object.assign(event({ author: 'system' }), {
      isCompacted: true,
      startTime: 1,
      endTime: 2,
      compactedContent: 'before',
    })
    const { loaded } = await stored(sessions, [summary])
    return loaded.events.map(each => {
      const { isCompacted, startTime, endTime, compactedContent } = each as typeof summary
      return { isCompacted, startTime, endTime, compactedContent }
    })
  },
  'a partial event is not kept': async sessions => {
    const { session, loaded } = await stored(sessions, [says('p', { partial: true })])
    return [session.events.length, loaded.events.length]
  },
  'an event that is appended again replaces the first': async sessions =>
    texts(
      (await stored(sessions, [says('a', { id: 'x' }), says('b'), says('c', { id: 'x' })])).loaded.events,
    ),
  'the session that was given has the events too': async sessions =>
    texts((await stored(sessions, [asks('a'), says('b')])).session.events),
  'the time of the last event is the session’s': async sessions => {
    const { session, loaded } = await stored(sessions, [
      asks('a', { timestamp: 500 }),
      says('b', { timestamp: 777 }),
    ])
    return [session.lastUpdateTime, loaded.lastUpdateTime]
  },
  'state of every scope': async sessions => {
    const delta = { own: 1, 'user:tone': 'kind', 'app:theme': 'dark', 'temp:step': 3 }
    const { loaded } = await stored(sessions, [changes(delta)])
    const sibling = await sessions.createSession({ ...KEY, sessionId: 's2' })
    const stranger = await sessions.createSession({ ...KEY, userId: 'bob' })
    const foreign = await sessions.createSession({ ...KEY, appName: 'other' })
    return [loaded, sibling, stranger, foreign].map(({ state }) => ({ ...state }))
  },
  'a value that is written twice': async sessions => ({
    ...(await stored(sessions, [changes({ a: 1, b: 1 }), changes({ a: 2 })])).loaded.state,
  }),
  'the newest events by number': async sessions => {
    await stored(
      sessions,
      ['1', '2', '3', '4', '5'].map(text => says(text)),
    )
    const counts = [1, 3, 9]
    return Promise.all(
      counts.map(async numRecentEvents =>
        texts((await sessions.getSession({ ...KEY, config: { numRecentEvents } }))?.events),
      ),
    )
  },
  'events after a time': async sessions => {
    await stored(
      sessions,
      [10, 20, 30].map(timestamp => says(`${timestamp}`, { timestamp })),
    )
    const times = [5, 20, 25, 99]
    return Promise.all(
      times.map(async afterTimestamp =>
        texts((await sessions.getSession({ ...KEY, config: { afterTimestamp } }))?.events),
      ),
    )
  },
  'both filters together': async sessions => {
    await stored(
      sessions,
      [10, 20, 30, 40].map(timestamp => says(`${timestamp}`, { timestamp })),
    )
    return texts(
      (await sessions.getSession({ ...KEY, config: { numRecentEvents: 3, afterTimestamp: 30 } }))?.events,
    )
  },
  'many long events by number, over any budget': async sessions => {
    const long = Array.from({ length: 60 }, (_, index) => says(`${index} ${'word '.repeat(1500)}`))
    await stored(sessions, long)
    return (await sessions.getSession({ ...KEY, config: { numRecentEvents: 50 } }))?.events.length
  },
  'events without author, content and actions': async sessions => {
    const bare = [1000, 3000, 2000].map(timestamp => createEvent({ id: `e${timestamp}`, timestamp }))
    const { session, loaded } = await stored(sessions, bare)
    const recent = await sessions.getSession({ ...KEY, config: { numRecentEvents: 2 } })
    return [session, loaded, recent].map(each => ({
      events: each?.events.map(({ id, timestamp, content }) => ({ id, timestamp, content })),
      lastUpdateTime: each?.lastUpdateTime,
    }))
  },
  'sessions by the times of their last events': async sessions => {
    for (const [sessionId, timestamp] of Object.entries({ a: 3000, b: 1000, d: 2000, c: 2000 })) {
      const session = await sessions.createSession({ ...KEY, sessionId })
      await sessions.appendEvent({ session, event: says('early', { timestamp: 500 }) })
      await sessions.appendEvent({ session, event: createEvent({ timestamp }) })
    }
    const listed = async (order: 'asc' | 'desc', more: object = {}) =>
      (await sessions.listSessions({ appName: 'app', userId: 'ann', order, ...more })).sessions.map(
        ({ id, lastUpdateTime }) => [id, lastUpdateTime],
      )
    return {
      asc: await listed('asc'),
      desc: await listed('desc'),
      some: await listed('asc', { limit: 2, page: 2 }),
    }
  },
  'sessions in the order of creation': async sessions => {
    for (const sessionId of ['b', 'a', 'c']) {
      await sessions.createSession({ ...KEY, sessionId })
      await new Promise(resolve => setTimeout(resolve, 3))
    }
    const session = (await sessions.getSession({ ...KEY, sessionId: 'b' })) as Session
    await sessions.appendEvent({ session, event: says('later', { timestamp: Date.now() + 5 }) })
    const ids = async (order?: 'asc' | 'desc') =>
      (
        await sessions.listSessions({ appName: 'app', userId: 'ann', ...(order ? { order } : {}) })
      ).sessions.map(({ id }) => id)
    return { none: await ids(), desc: (await ids('desc'))[0], asc: (await ids('asc')).at(-1) }
  },
  'pages of sessions': async sessions => {
    for (const sessionId of ['a', 'b', 'c']) await sessions.createSession({ ...KEY, sessionId })
    const list = async (query: object) => {
      const { sessions: found, ...page } = await sessions.listSessions({
        appName: 'app',
        userId: 'ann',
        ...query,
      })
      return { found: found.length, ...page }
    }
    return [
      await list({}),
      await list({ limit: 2 }),
      await list({ limit: 2, page: 2 }),
      await list({ limit: 2, offset: 2 }),
      await list({ limit: 0 }),
      await list({ offset: 1 }),
    ]
  },
  'listed sessions have no events and no state': async sessions => {
    await stored(sessions, [changes({ a: 1 })])
    return (await sessions.listSessions({ appName: 'app' })).sessions.map(({ events, state }) => [
      events.length,
      { ...state },
    ])
  },
  'no sessions': async sessions => sessions.listSessions({ appName: 'nobody' }),
  'a deleted session is gone, and deleting it again is no error': async sessions => {
    await stored(sessions, [says('x')])
    await sessions.deleteSession({ ...KEY })
    await sessions.deleteSession({ ...KEY })
    return (await sessions.getSession({ ...KEY })) ?? 'none'
  },
  'a session that exists is created again': async sessions => {
    await stored(sessions, [says('x')])
    try {
      return (await sessions.createSession({ ...KEY })).events.length
    } catch (error) {
      return `refused: ${(error as { code?: string }).code}`
    }
  },
  'results of every kind as JSON': async sessions => {
    class Point {
      x = 1
      toJSON() {
        return { point: this.x }
      }
    }
    const response = { at: new Date(0), point: new Point(), none: undefined, list: [undefined, Number.NaN] }
    const result = event({
      content: { role: 'user', parts: [{ functionResponse: { id: 'c', name: 't', response } }] },
    })
    const call = event({
      content: { role: 'model', parts: [{ functionCall: { id: 'c', name: 't', args: {} } }] },
    })
    const { loaded } = await stored(sessions, [call, result])
    return JSON.parse(JSON.stringify(loaded.events[1]?.content?.parts?.[0]?.functionResponse?.response))
  },
  'maps, sets and big numbers in results': async sessions => {
    const response = { map: new Map([['a', 1]]), set: new Set([1]), big: 10n }
    const call = event({
      content: { role: 'model', parts: [{ functionCall: { id: 'c', name: 't', args: {} } }] },
    })
    const result = event({
      content: { role: 'user', parts: [{ functionResponse: { id: 'c', name: 't', response } }] },
    })
    const { loaded } = await stored(sessions, [call, result])
    try {
      return JSON.parse(JSON.stringify(loaded.events[1]?.content?.parts?.[0]?.functionResponse?.response))
    } catch {
      return 'no JSON'
    }
  },
}

/** Where Lango's service answers otherwise, what it answers, and why. */
export const OTHERWISE: Readonly<
  Record<string, { answer: unknown; verdict: 'better' | 'differs'; reason: string }>
> = {
  'a session that exists is created again': {
    answer: 'refused: session-exists',
    verdict: 'better',
    reason: 'ADK’s service in memory replaces the session, and its events are lost.',
  },
  'an event of state alone': {
    answer: { events: 0, state: { a: 1 } },
    verdict: 'differs',
    reason: 'The state is saved, and the history has no event (ADR 0003).',
  },
  'maps, sets and big numbers in results': {
    answer: { map: { a: 1 }, set: [1], big: '10' },
    verdict: 'better',
    reason: 'ADK sends maps and sets as empty objects and fails on big numbers.',
  },
}
