import { AgentTool, createEvent, createEventActions, FunctionTool, LlmAgent, type Session } from '@google/adk'
import type { Part } from '@google/genai'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { ModelAdapter } from '../../src/adk/model/model-adapter.js'
import { SessionServiceAdapter } from '../../src/adk/session/session-service-adapter.js'
import { AgentError } from '../../src/errors.js'
import { createProvider } from '../../src/provider/provider-registry.js'
import type { HistoryCut } from '../../src/session/message.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { KEY, openTestStore, runTurn, STORES } from '../support/adk-run.js'
import { RecordingModel } from '../support/recording-model.js'

const says = (text: string, fields: Parameters<typeof createEvent>[0] = {}) =>
  createEvent({ author: 'agent', content: { role: 'model', parts: [{ text }] }, ...fields })
const texts = (session: Session | undefined) => session?.events.map(event => event.content?.parts?.[0]?.text)

describe.each(STORES)('on %s', kind => {
  async function opened(options: ConstructorParameters<typeof SessionServiceAdapter>[1] = {}) {
    const store = await openTestStore(kind)
    const sessions = new SessionServiceAdapter(store, options)
    const session = await sessions.createSession({ ...KEY })
    return { store, sessions, session }
  }

  test(`two concurrent getOrCreate calls in ${kind} get one session and no error`, async () => {
    const store = await openTestStore(kind)
    const [first, second] = [new SessionServiceAdapter(store), new SessionServiceAdapter(store)]
    const created = await Promise.all(
      [first, second, first, second].map(sessions => sessions.getOrCreateSession({ ...KEY })),
    )
    expect(new Set(created.map(session => session.id))).toEqual(new Set(['s1']))
    expect((await first.listSessions({ appName: 'app' })).totalItems).toBe(1)
    await store.close()
  })

  test(`creating a session that exists in ${kind} is refused, and a session without id gets one`, async () => {
    const { store, sessions } = await opened()
    await expect(sessions.createSession({ ...KEY })).rejects.toMatchObject({ code: 'session-exists' })
    const other = await sessions.createSession({ appName: 'app', userId: 'ann', state: { a: 1 } })
    expect(other.id).toMatch(/^[0-9a-f-]{36}$/)
    expect(other.state).toEqual({ a: 1 })
    await store.close()
  })

  test(`a partial event is returned and not stored in ${kind}`, async () => {
    const { store, sessions, session } = await opened()
    const event = says('h', { partial: true })
    expect(await sessions.appendEvent({ session, event })).toBe(event)
    expect(session.events).toEqual([])
    expect(await store.readMessages(KEY)).toEqual([])
    await store.close()
  })

  test(`a write that fails in ${kind} leaves the session object as it was`, async () => {
    const { store, sessions, session } = await opened()
    await sessions.appendEvent({ session, event: says('kept') })
    await sessions.deleteSession({ ...KEY })
    const before = structuredClone({ ...session, events: session.events.length })
    const event = says('lost', { actions: createEventActions({ stateDelta: { a: 1, 'temp:b': 2 } }) })
    await expect(sessions.appendEvent({ session, event })).rejects.toMatchObject({
      code: 'session-not-found',
    })
    expect({ ...session, events: session.events.length }).toEqual(before)
    expect(event.actions.stateDelta).toEqual({ a: 1, 'temp:b': 2 })
    await store.close()
  })

  test(`an event id appended again in ${kind} replaces its row and its event`, async () => {
    const { store, sessions, session } = await opened()
    await sessions.appendEvent({ session, event: says('first') })
    await sessions.appendEvent({ session, event: says('draft', { id: 'x' }) })
    await sessions.appendEvent({ session, event: says('final', { id: 'x' }) })
    expect(texts(session)).toEqual(['first', 'final'])
    expect((await store.readMessages(KEY)).map(message => message.content)).toEqual(['first', 'final'])
    await store.close()
  })

  test(`state in ${kind} has its scopes, and temp: is in the session object alone`, async () => {
    const { store, sessions, session } = await opened()
    const stateDelta = { own: 1, 'user:tone': 'kind', 'app:theme': 'dark', 'temp:step': 3 }
    await sessions.appendEvent({ session, event: says('x', { actions: createEventActions({ stateDelta }) }) })
    expect(session.state).toEqual(stateDelta)
    const sibling = await sessions.createSession({ appName: 'app', userId: 'ann', sessionId: 's2' })
    const stranger = await sessions.createSession({ appName: 'app', userId: 'bob', sessionId: 's1' })
    expect(sibling.state).toEqual({ 'user:tone': 'kind', 'app:theme': 'dark' })
    expect(stranger.state).toEqual({ 'app:theme': 'dark' })
    const { 'temp:step': _step, ...stored } = stateDelta
    expect((await sessions.getSession({ ...KEY }))?.state).toEqual(stored)
    await store.close()
  })

  test(`temporary state set by one tool is seen by the next of the same run in ${kind}`, async () => {
    const { store, sessions } = await opened()
    const seen: unknown[] = []
    const tool = (
      name: string,
      use: (state: { get(key: string): unknown; set(key: string, value: unknown): void }) => void,
    ) =>
      new FunctionTool({
        name,
        description: name,
        parameters: z.object({}),
        execute: (_, context) => {
          if (context) use(context.state)
          return 'ok'
        },
      })
    const tools = [
      tool('put', state => state.set('temp:x', 42)),
      tool('take', state => seen.push(state.get('temp:x'))),
    ]
    const steps: Part[][] = [
      [{ functionCall: { name: 'put', args: {} } }],
      [{ functionCall: { name: 'take', args: {} } }],
      [{ text: 'done' }],
    ]
    const model = new RecordingModel((_, index) => steps[index] ?? [])
    await runTurn({ agent: new LlmAgent({ name: 'agent', model, tools }), sessions, message: 'go' })
    expect(seen).toEqual([42])
    expect((await sessions.getSession({ ...KEY }))?.state).toEqual({})
    await store.close()
  })

  test(`numRecentEvents and afterTimestamp filter in ${kind} as ADK does, and never leave half a pair`, async () => {
    const { store, sessions, session } = await opened()
    const parts: [string, Part][] = [
      ['user', { text: 'q' }],
      ['agent', { functionCall: { id: 'a', name: 't', args: {} } }],
      ['agent', { functionResponse: { id: 'a', name: 't', response: { v: 1 } } }],
      ['agent', { text: 'done' }],
    ]
    for (const [index, [author, part]] of parts.entries()) {
      const content = { role: author === 'user' || part.functionResponse ? 'user' : 'model', parts: [part] }
      await sessions.appendEvent({ session, event: createEvent({ author, content, timestamp: 100 + index }) })
    }
    const get = async (config: object) => (await sessions.getSession({ ...KEY, config }))?.events
    expect((await get({ numRecentEvents: 1 }))?.map(event => event.timestamp)).toEqual([103])
    expect((await get({ afterTimestamp: 101 }))?.map(event => event.timestamp)).toEqual([101, 102, 103])
    const half = await get({ numRecentEvents: 2 })
    expect(half?.[0]?.content?.parts?.[0]?.text).toContain('"v":1')
    await store.close()
  })

  test(`sessions in ${kind} are listed with the fields of a page`, async () => {
    const { store, sessions } = await opened()
    for (const sessionId of ['s2', 's3']) {
      const session = await sessions.createSession({ ...KEY, sessionId })
      await sessions.appendEvent({ session, event: says(sessionId) })
    }
    await sessions.createSession({ ...KEY, userId: 'bob' })
    const mine = await sessions.listSessions({ appName: 'app', userId: 'ann' })
    expect({ ...mine, sessions: mine.sessions.length }).toEqual({
      sessions: 3,
      page: 1,
      limit: 3,
      totalItems: 3,
      totalPages: 1,
    })
    expect(mine.sessions.every(session => session.events.length === 0)).toBe(true)
    const page = await sessions.listSessions({ appName: 'app', limit: 3, page: 2 })
    expect({ ...page, sessions: page.sessions.length }).toEqual({
      sessions: 1,
      page: 2,
      limit: 3,
      totalItems: 4,
      totalPages: 2,
    })
    const created = await sessions.listSessions({ appName: 'app', userId: 'ann' })
    expect(created.sessions.map(session => session.id)).toEqual(['s1', 's2', 's3'])
    const none = await sessions.listSessions({ appName: 'nobody', limit: 5, offset: 10 })
    expect(none).toEqual({ sessions: [], page: 3, limit: 5, totalItems: 0, totalPages: 0 })
    await store.close()
  })

  test(`deleting a session that does not exist in ${kind} is no error`, async () => {
    const { store, sessions } = await opened()
    await sessions.deleteSession({ ...KEY })
    await sessions.deleteSession({ ...KEY })
    expect(await sessions.getSession({ ...KEY })).toBeUndefined()
    await store.close()
  })

  test(`an AgentTool works on the same ${kind} store, under the name of its agent`, async () => {
    const { store, sessions } = await opened()
    const inner = new LlmAgent({ name: 'inner', model: new RecordingModel(() => [{ text: 'from inside' }]) })
    const model = new RecordingModel((_, index) =>
      index === 0 ? [{ functionCall: { name: 'inner', args: { request: 'please' } } }] : [{ text: 'done' }],
    )
    const agent = new LlmAgent({ name: 'agent', model, tools: [new AgentTool({ agent: inner })] })
    await runTurn({ agent, sessions, message: 'go' })
    const nested = await store.loadSession({ ...KEY, appName: 'inner' })
    expect(nested?.messages.map(message => message.content)).toEqual(['please', 'from inside'])
    expect(JSON.stringify(model.last)).toContain('from inside')
    await store.close()
  })

  test(`messages of ${kind} that a budget leaves out are reported`, async () => {
    const cuts: HistoryCut[] = []
    const { store, sessions } = await opened({ budgetTokens: 200, onCut: cut => cuts.push(cut) })
    for (let index = 0; index < 20; index += 1) {
      const content = `${index} ${'word '.repeat(40)}`
      await store.appendMessage(KEY, { role: index % 2 ? 'assistant' : 'user', content, timestamp: index })
    }
    const session = await sessions.getSession({ ...KEY })
    expect(cuts).toHaveLength(1)
    expect((cuts[0]?.messages ?? 0) + (session?.events.length ?? 0)).toBe(20)
    await store.close()
  })

  test(`an answer that comes long after its call loads the call from ${kind}`, async () => {
    const { store, sessions, session } = await opened({ budgetTokens: 300, rootAgentName: 'agent' })
    const asked = { role: 'model', parts: [{ functionCall: { id: 'job', name: 'longJob', args: { n: 1 } } }] }
    await sessions.appendEvent({
      session,
      event: createEvent({ author: 'user', content: { role: 'user', parts: [{ text: 'start' }] } }),
    })
    await sessions.appendEvent({ session, event: createEvent({ author: 'agent', content: asked }) })
    for (let index = 0; index < 30; index += 1) {
      await store.appendMessage(KEY, {
        role: index % 2 ? 'assistant' : 'user',
        author: index % 2 ? 'agent' : 'user',
        content: 'word '.repeat(40),
        timestamp: index,
      })
    }
    const model = new RecordingModel(() => [{ text: 'the job is done' }])
    const message = [{ functionResponse: { id: 'job', name: 'longJob', response: { ok: true } } }]
    const events = await runTurn({ agent: new LlmAgent({ name: 'agent', model }), sessions, message })
    expect(events.map(event => event.content?.parts?.[0]?.text)).toEqual(['the job is done'])
    expect(model.last.slice(-2)).toMatchObject([
      { role: 'model', parts: [{ functionCall: { id: 'job' } }] },
      { role: 'user', parts: [{ functionResponse: { id: 'job' } }] },
    ])
    await store.close()
  })

  /** Thirty messages, some fifty tokens each. */
  const fill = async (store: SessionStore) => {
    for (let index = 0; index < 30; index += 1) {
      const byUser = index % 2 === 0
      await store.appendMessage(KEY, {
        role: byUser ? 'user' : 'assistant',
        author: byUser ? 'user' : 'agent',
        content: 'word '.repeat(40),
        timestamp: index,
      })
    }
  }

  test.each([
    ['before the tail, with its question', 60, 4],
    ['before the tail that holds its question', 600, 40],
  ])(`a confirmation whose call lies %s loads the call from ${kind}`, async (_, budgetTokens, size) => {
    const { store, sessions, session } = await opened({ budgetTokens, rootAgentName: 'agent' })
    const parts = { role: 'user', parts: [{ text: 'pay' }] }
    await sessions.appendEvent({ session, event: createEvent({ author: 'user', content: parts }) })
    const call = { id: 'pay-1', name: 'pay', args: { amount: 3 } }
    const asked = { id: 'ask-1', name: 'adk_request_confirmation', args: { originalFunctionCall: call } }
    for (const functionCall of [call, asked]) {
      const content = { role: 'model', parts: [{ functionCall }] }
      await sessions.appendEvent({ session, event: createEvent({ author: 'agent', content }) })
      // Between the two: the question is in the tail that is loaded, the call is not.
      if (functionCall === call && size === 40) await fill(store)
    }
    if (size === 4) await fill(store)
    const paid: unknown[] = []
    const pay = new FunctionTool({
      name: 'pay',
      description: 'Pays.',
      parameters: z.object({ amount: z.number() }),
      requireConfirmation: true,
      execute: ({ amount }) => {
        paid.push(amount)
        return { paid: amount }
      },
    })
    const model = new RecordingModel(() => [{ text: 'paid' }])
    const response = { id: 'ask-1', name: 'adk_request_confirmation', response: { confirmed: true } }
    const agent = new LlmAgent({ name: 'agent', model, tools: [pay] })
    const events = await runTurn({ agent, sessions, message: [{ functionResponse: response }] })
    expect(events.flatMap(event => event.errorMessage ?? [])).toEqual([])
    expect(paid).toEqual([3])
    expect(JSON.stringify(model.last.slice(-2))).toContain('"paid":3')
    await store.close()
  })

  test(`a configured budget is filled from ${kind}, and the default one is cut in steps`, async () => {
    const { store } = await opened()
    await fill(store)
    const load = async (options: ConstructorParameters<typeof SessionServiceAdapter>[1]) =>
      (await new SessionServiceAdapter(store, options).getSession({ ...KEY }))?.events.length ?? 0
    const [filled, steady] = [
      await load({ budgetTokens: 800 }),
      await load({ budgetTokens: 800, steady: true }),
    ]
    expect(filled).toBeGreaterThan(steady)
    // The next message would not have fitted.
    expect(filled).toBe(Math.floor(800 / ((await store.readMessages(KEY))[0]?.tokens ?? 1)))
    await store.close()
  })

  test(`the error event of a refused request in ${kind} has the vendor’s code`, async () => {
    const { store, sessions } = await opened()
    const server = await startStrictProvider({ profile: 'gemini-2', faults: [{ kind: 'auth' }] })
    const provider = createProvider({ type: 'gemini', apiKey: 'key', baseUrl: server.baseUrl })
    const model = new ModelAdapter({ provider, model: 'gemini-2.5-flash' })
    const events = await runTurn({ agent: new LlmAgent({ name: 'agent', model }), sessions, message: 'go' })
    expect(events.map(event => event.errorCode)).toEqual(['400'])
    expect((await sessions.getSession({ ...KEY }))?.events.at(-1)?.errorCode).toBe('400')
    await server.close()
    await store.close()
  })

  describe('with a lease', () => {
    const busy = { code: 'session-busy' }

    test(`without a fence, a session in ${kind} with a lease is busy`, async () => {
      const { store, sessions, session } = await opened()
      const lease = await store.acquireLease(KEY)
      await expect(sessions.appendEvent({ session, event: says('x') })).rejects.toMatchObject(busy)
      expect(session.events).toEqual([])
      await lease.release()
      await store.close()
    })

    test.each(['lease', 'number', 'key'] as const)(
      `the fence given as a %s opens its own session in ${kind}`,
      async form => {
        const { store, session } = await opened()
        const lease = await store.acquireLease(KEY)
        const fence = form === 'lease' ? lease : form === 'number' ? lease.fence : { key: KEY, fence: lease }
        const sessions = new SessionServiceAdapter(store, { fence })
        await sessions.appendEvent({ session, event: says('mine') })
        expect(texts(session)).toEqual(['mine'])
        await lease.release()
        await store.close()
      },
    )

    test(`a fence that was lost is refused in ${kind}`, async () => {
      const { store, session } = await opened()
      const lease = await store.acquireLease(KEY)
      const sessions = new SessionServiceAdapter(store, { fence: lease })
      await lease.release()
      const next = await store.acquireLease(KEY)
      await expect(sessions.appendEvent({ session, event: says('late') })).rejects.toMatchObject({
        code: 'lease-lost',
      })
      expect(session.events).toEqual([])
      await next.release()
      await store.close()
    })

    test(`another session than that of the fence is written in ${kind} under a lease of its own`, async () => {
      const { store } = await opened()
      const lease = await store.acquireLease(KEY)
      const sessions = new SessionServiceAdapter(store, { fence: { key: KEY, fence: lease } })
      const nested = await sessions.createSession({ ...KEY, appName: 'inner' })
      expect(nested.appName).toBe('inner')
      // In the store it belongs to the app of the run, so that agents of other apps do not share it.
      const nestedKey = { ...KEY, appName: `${KEY.appName}/inner` }
      const others = await store.acquireLease(nestedKey)
      const order: string[] = []
      const written = sessions
        .appendEvent({ session: nested, event: says('nested') })
        .then(() => order.push('written'))
      await store.readMessages(nestedKey)
      order.push('released')
      await others.release()
      await written
      expect(order).toEqual(['released', 'written'])
      expect(texts(nested)).toEqual(['nested'])
      await lease.release()
      await store.close()
    })
  })
})

test('errors of the store reach the caller as they are', async () => {
  const failure = new AgentError('store-unavailable', 'The disk is full.')
  const store = { appendMessage: () => Promise.reject(failure) } as unknown as SessionStore
  const sessions = new SessionServiceAdapter(store)
  const session: Session = { id: 's', appName: 'a', userId: 'u', state: {}, events: [], lastUpdateTime: 0 }
  await expect(sessions.appendEvent({ session, event: says('x') })).rejects.toBe(failure)
  expect(session.events).toEqual([])
})
