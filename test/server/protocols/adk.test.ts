// A client of ADK's documented routes, against the server.
import { FunctionTool, LlmAgent } from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { RequestSummary } from '../../../src/testing/strict/script.js'
import { AdkClient, type AdkClientError, type AdkEvent } from './adk-client.js'
import { heldTool, searchThenTell, startProtocolServer, until } from './support.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's1' }

async function collect(events: AsyncIterable<AdkEvent>): Promise<AdkEvent[]> {
  const all: AdkEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

function textOf(events: readonly AdkEvent[]): string {
  return events.flatMap(({ content }) => content?.parts.map(({ text = '' }) => text) ?? []).join('')
}

function refusedNothing(): never {
  throw new Error('Nothing was refused.')
}

/** One letter per event: t(ext), c(all), r(esult); small letters are partial. */
function shapeOf(events: readonly AdkEvent[]): string {
  return events
    .map(({ partial, content }) => {
      const [last] = content?.parts.slice(-1) ?? []
      const letter = last?.functionCall ? 'C' : last?.functionResponse ? 'R' : 'T'
      return partial ? letter.toLowerCase() : letter
    })
    .join('')
}

test('ADK’s /run_sse: a conversation of several turns with tools is stored completely in the session', async () => {
  const { url, provider } = await startProtocolServer({ script: searchThenTell })
  const client = new AdkClient(url, 'lango', 'user')
  expect(await client.listApps()).toEqual(['lango'])
  const created = await client.createSession('s1', { mood: 'good' })
  expect(created).toMatchObject({
    id: 's1',
    appName: 'lango',
    userId: 'user',
    state: { mood: 'good' },
    events: [],
  })

  const told: AdkEvent[] = []
  for (const words of ['apples', 'pears', 'plums']) {
    const events = await collect(client.runSse({ sessionId: 's1', text: words, streaming: true }))
    expect(shapeOf(events)).toMatch(/^t+CRt+T$/)
    const invocations = new Set(events.map(({ invocationId }) => invocationId))
    expect(invocations.size).toBe(1)
    expect([...invocations][0]).not.toBe('')
    const whole = events.filter(({ partial }) => !partial)
    expect(textOf(events.filter(({ partial }) => partial))).toBe(textOf(whole))
    expect(textOf(whole)).toBe(`Let me look.I found ${words}.`)
    expect(whole.at(-1)?.usageMetadata?.totalTokenCount).toBe(25)
    told.push(...whole)
  }
  expect(provider.violations).toEqual([])

  const session = await client.getSession('s1')
  expect(session.events.filter(({ author }) => author === 'user').map(event => textOf([event]))).toEqual([
    'apples',
    'pears',
    'plums',
  ])
  expect(session.events.filter(({ author }) => author !== 'user')).toEqual(told)
  const [call] = session.events[1]?.content?.parts.slice(-1) ?? []
  const [result] = session.events[2]?.content?.parts ?? []
  expect(result?.functionResponse).toMatchObject({
    id: call?.functionCall?.id,
    name: 'search',
    response: { found: 'apples' },
  })
})

test('ADK’s /run_sse without streaming sends only complete events, and /run returns them as a list', async () => {
  const { url } = await startProtocolServer({ script: searchThenTell })
  const client = new AdkClient(url, 'lango', 'user')
  const { id } = await client.createSession()
  const streamed = await collect(client.runSse({ sessionId: id, text: 'apples' }))
  const listed = await client.run({ sessionId: id, text: 'pears', stateDelta: { basket: 2 } })
  expect(shapeOf(streamed)).toBe('CRT')
  expect(shapeOf(listed)).toBe('CRT')
  expect((await client.getSession(id)).state).toMatchObject({ basket: 2 })
})

test('ADK’s /run: runs of one session wait for each other, and each returns only its own events', async () => {
  const { url, provider } = await startProtocolServer({ script: searchThenTell })
  const client = new AdkClient(url, 'lango', 'user')
  await client.createSession('s1')
  const words = ['apples', 'pears', 'plums']
  const runs = await Promise.all(words.map(text => client.run({ sessionId: 's1', text })))
  expect(runs.map(shapeOf)).toEqual(['CRT', 'CRT', 'CRT'])
  expect(runs.map(textOf)).toEqual(words.map(word => `Let me look.I found ${word}.`))
  expect((await client.getSession('s1')).events).toHaveLength(12)
  expect(provider.violations).toEqual([])
})

test('ADK’s /run that times out waiting for its session returns no events of other runs', async () => {
  const { url, runtime } = await startProtocolServer()
  await runtime.store.createSession(KEY)
  const lease = await runtime.store.acquireLease(KEY)
  const newMessage = { parts: [{ text: 'x' }] }
  const response = await fetch(`${url}/run_sse`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...KEY, newMessage }),
  })
  const foreign = { role: 'assistant', content: 'of another', timestamp: 1 }
  await runtime.store.appendMessage(KEY, foreign, { fence: lease.fence })
  await fetch(`${url}/api/runs/${response.headers.get('x-lango-run')}/stop`, { method: 'POST' })
  expect(await response.text()).not.toContain('data:')
  await lease.release()
})

test('ADK’s session routes list, change and delete sessions', async () => {
  const { url } = await startProtocolServer()
  const client = new AdkClient(url, 'lango', 'user')
  for (const id of ['one', 'two']) await client.createSession(id)
  expect((await client.listSessions()).map(({ id }) => id).sort()).toEqual(['one', 'two'])
  expect((await client.patchSession('one', { seen: true })).state).toEqual({ seen: true })
  await client.deleteSession('one')
  expect((await client.listSessions()).map(({ id }) => id)).toEqual(['two'])
  await expect(client.getSession('one')).rejects.toMatchObject({ status: 404 })
  await expect(client.createSession('two')).rejects.toMatchObject({ status: 409 })
})

test('ADK’s session route returns imported messages completely and unmerged', async () => {
  const { url, runtime } = await startProtocolServer()
  await runtime.store.createSession(KEY)
  for (let index = 1; index <= 1100; index++) {
    await runtime.store.appendMessage(KEY, { role: 'user', content: `message ${index}`, timestamp: index })
  }
  const { events } = await new AdkClient(url, 'lango', 'user').getSession('s1')
  expect(events).toHaveLength(1100)
  expect(events.at(-1)?.content).toEqual({ role: 'user', parts: [{ text: 'message 1100' }] })
})

test('an image that is sent over ADK’s /run is stored and returned as a part', async () => {
  const { url, provider } = await startProtocolServer({ script: [{ text: 'A dot.' }] })
  const client = new AdkClient(url, 'lango', 'user')
  await client.createSession('s1')
  const parts = [{ text: 'what is it?' }, { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }]
  expect(textOf(await client.run({ sessionId: 's1', parts }))).toBe('A dot.')
  expect(JSON.stringify(provider.requests[0]?.body)).toContain('data:image/png;base64,iVBORw0KGgo=')
})

test('ADK’s routes: an unknown app or session is 404, another user 403, with the message in error and detail', async () => {
  const { url } = await startProtocolServer()
  const cases = [
    [() => new AdkClient(url, 'other', 'user').listSessions(), 404],
    [() => new AdkClient(url, 'lango', 'eve').listSessions(), 403],
    [() => new AdkClient(url, 'lango', 'eve').getSession('s1'), 403],
    [() => new AdkClient(url, 'lango', 'user').getSession('none'), 404],
    [() => new AdkClient(url, 'lango', 'user').deleteSession('none'), 404],
    [() => new AdkClient(url, 'lango', 'user').run({ sessionId: 'none', text: 'x' }), 404],
    [() => new AdkClient(url, 'other', 'user').run({ sessionId: 'none', text: 'x' }), 404],
    [() => new AdkClient(url, 'lango', 'eve').run({ sessionId: 'none', text: 'x' }), 403],
  ] as const
  for (const [request, status] of cases) {
    const failure = await request().then(refusedNothing, (error: AdkClientError) => error)
    expect(failure.status).toBe(status)
    expect(failure.body.error).toBe(failure.body.detail)
    expect(failure.body.error).toMatch(/\w/)
  }
})

test('ADK’s routes refuse invalid bodies and state that a client must not set', async () => {
  const { url, provider } = await startProtocolServer()
  const client = new AdkClient(url, 'lango', 'user')
  await client.createSession('s1')
  const stateDelta = { 'lango:approved': ['danger'] }
  await expect(client.run({ sessionId: 's1', text: 'x', stateDelta })).rejects.toMatchObject({
    status: 400,
  })
  await expect(client.createSession('s2', { 'app:key': 1 })).rejects.toMatchObject({ status: 400 })
  await expect(client.patchSession('s1', stateDelta)).rejects.toMatchObject({ status: 400 })
  await expect(client.run({ sessionId: 's1', parts: [] })).rejects.toMatchObject({ status: 400 })
  const headers = { 'content-type': 'application/json' }
  for (const body of ['{', '[]', '"x"', '{"appName":"lango","userId":"user","sessionId":"s1"}']) {
    const response = await fetch(`${url}/run`, { method: 'POST', headers, body })
    expect(response.status).toBe(400)
  }
  expect(provider.requests).toHaveLength(0)
})

test('a failed run is an error status of ADK’s /run and an error in the stream of /run_sse', async () => {
  const { url } = await startProtocolServer({ faults: [{ kind: 'auth' }] })
  const client = new AdkClient(url, 'lango', 'user')
  await client.createSession('s1')
  const failure = await client.run({ sessionId: 's1', text: 'x' }).catch(error => error)
  expect(failure.status).toBe(403)
  expect(failure.body.error).toContain('key')
  await expect(collect(client.runSse({ sessionId: 's1', text: 'x' }))).rejects.toThrow('key')
})

test('ADK’s routes: users have separate sessions, and the token identifies the user', async () => {
  const tokens = { 'token-of-ann': 'ann', 'token-of-bob': 'bob' }
  const { url } = await startProtocolServer({ serve: { tokens } })
  const ann = new AdkClient(url, 'lango', 'ann', { authorization: 'Bearer token-of-ann' })
  const bob = new AdkClient(url, 'lango', 'bob', { authorization: 'Bearer token-of-bob' })
  await ann.createSession('s1', { whose: 'ann' })
  await expect(bob.getSession('s1')).rejects.toMatchObject({ status: 404 })
  await bob.createSession('s1', { whose: 'bob' })
  expect((await ann.getSession('s1')).state).toEqual({ whose: 'ann' })
  const posing = new AdkClient(url, 'lango', 'ann', { authorization: 'Bearer token-of-bob' })
  await expect(posing.getSession('s1')).rejects.toMatchObject({ status: 403 })
  await expect(new AdkClient(url, 'lango', 'ann').getSession('s1')).rejects.toMatchObject({ status: 401 })
})

/** Looks for what the first message names, and answers those after it at once. */
const lookOnce = (request: RequestSummary, index: number) =>
  index === 0 ? searchThenTell(request) : { text: `Fine: ${request.lastUserText}.` }

test('ADK’s /run_sse: a message after the client closed its stream stops the run, and one while it is read is queued', async () => {
  const { tool, called, letGo } = heldTool()
  const { url, runtime } = await startProtocolServer({ script: lookOnce, tools: [tool] })
  const client = new AdkClient(url, 'lango', 'user')
  await client.createSession('s1')
  const leaving = new AbortController()
  const left = collect(client.runSse({ sessionId: 's1', text: 'apples' }, leaving.signal))
  await called
  leaving.abort()
  await expect(left).rejects.toThrow()
  expect(textOf(await client.run({ sessionId: 's1', text: 'pears' }))).toBe('Fine: pears.')
  letGo()
  const reasons = async (key = KEY) => (await runtime.listRuns(key)).map(({ finishReason }) => finishReason)
  expect(await reasons()).toEqual(['stop', 'aborted'])

  const other = heldTool()
  const second = await startProtocolServer({ script: lookOnce, tools: [other.tool] })
  const again = new AdkClient(second.url, 'lango', 'user')
  await again.createSession('s1')
  const read = collect(again.runSse({ sessionId: 's1', text: 'apples' }))
  await other.called
  const queued = again.run({ sessionId: 's1', text: 'pears' })
  await until(async () => (await second.runtime.listRuns(KEY)).length === 2)
  other.letGo()
  expect(textOf(await read)).toContain('Fine: apples.')
  expect(textOf(await queued)).toBe('Fine: pears.')
  const runs = await second.runtime.listRuns(KEY)
  expect(runs.map(({ finishReason }) => finishReason)).toEqual(['stop', 'stop'])
})

test('a message instead of the answer to an ADK confirmation: the tool does not run', async () => {
  const { url, runtime, provider } = await startProtocolServer({
    script: ({ lastUserText }) =>
      lastUserText === 'go' ? { toolCalls: [{ name: 'danger' }] } : { text: 'As you wish.' },
  })
  const client = new AdkClient(url, 'lango', 'user')
  await client.createSession('s1')
  const asked = await client.run({ sessionId: 's1', text: 'go' })
  const call = asked[0]?.content?.parts[0]?.functionCall
  expect(asked.at(-1)?.content?.parts[0]?.functionCall?.name).toBe('adk_request_confirmation')
  // assistant-ui sends a result of its own for every call that has none.
  const cancelled = { functionResponse: { ...call, args: undefined, response: { cancelled: true } } }
  const answer = await client.run({ sessionId: 's1', parts: [cancelled, { text: 'rather not' }] })
  expect(textOf(answer)).toBe('As you wish.')
  expect((await runtime.listRuns(KEY)).map(({ finishReason }) => finishReason)).toEqual(['stop', 'aborted'])
  expect(JSON.stringify(await runtime.messages(KEY))).not.toContain('"done":true')
  expect(provider.violations).toEqual([])
})

test('ADK’s artifact routes list, load by version and delete an artifact that a tool has saved', async () => {
  const rootAgent = (model: string) => new LlmAgent({ name: 'root', model, tools: [SAVE] })
  const { url } = await startProtocolServer({ rootAgent, script: searchThenTell })
  const client = new AdkClient(url, 'lango', 'user')
  await client.createSession('s1')
  for (const text of ['apples', 'pears']) await client.run({ sessionId: 's1', text })
  const get = async (path: string, method = 'GET') => {
    const answer = await fetch(`${url}/apps/lango/users/user/sessions/s1/artifacts${path}`, { method })
    return answer.status === 200 ? await answer.json() : answer.status
  }
  expect(await get('')).toEqual(['found.txt'])
  expect(await get('/found.txt')).toEqual({ text: 'pears' })
  expect(await get('/found.txt/versions')).toEqual([0, 1])
  expect(await get('/found.txt/versions/0')).toEqual({ text: 'apples' })
  expect(await get('/found.txt/versions/7')).toBe(404)
  expect(await get('/found.txt/versions/x')).toBe(400)
  expect(await get('/none')).toBe(404)
  expect(await get('/found.txt', 'DELETE')).toBe(204)
  expect(await get('')).toEqual([])
})

const SAVE = new FunctionTool({
  name: 'search',
  description: 'Searches, and saves what it finds.',
  // The compiler finds ADK's types and Zod's together too deep.
  parameters: z.object({ query: z.string() }) as never,
  execute: async (args: unknown, context) => {
    const { query } = args as { query: string }
    await context?.saveArtifact('found.txt', { text: query })
    return { found: query }
  },
})

test('the answer is stored when the client disconnects from ADK’s /run_sse', async () => {
  const { tool, called, letGo } = heldTool()
  const { url } = await startProtocolServer({ script: searchThenTell, tools: [tool] })
  const client = new AdkClient(url, 'lango', 'user')
  await client.createSession('s1')
  const leaving = new AbortController()
  const run = collect(client.runSse({ sessionId: 's1', text: 'apples', streaming: true }, leaving.signal))
  await called
  leaving.abort()
  await expect(run).rejects.toThrow()
  letGo()
  await until(async () => (await client.getSession('s1')).events.length === 4)
  expect(textOf((await client.getSession('s1')).events.slice(-1))).toBe('I found apples.')
})
