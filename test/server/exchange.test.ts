// Search in messages, export as lines, and import of files, as a client of the server uses them.

import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import type { LangoClient } from '../../src/client/client.js'
import { createClient } from '../../src/client/create-client.js'
import { EXPORT_FORMATS } from '../../src/formats/export-forms.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { startServer } from '../support/start-server.js'

const keyOf = (sessionId: string, userId = 'user') => ({ appName: 'lango', userId, sessionId })

async function store(store: SessionStore, sessionId: string, texts: readonly string[], userId = 'user') {
  const key = keyOf(sessionId, userId)
  await store.createSession(key, {}, { title: `About ${sessionId}` })
  for (const [index, content] of texts.entries())
    await store.appendMessage(key, { role: index % 2 ? 'assistant' : 'user', content, timestamp: index })
}

const base64 = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64')

async function searchAll(client: LangoClient, query: { text: string; sessionId?: string; limit?: number }) {
  const found: string[] = []
  let cursor: string | undefined
  for (let page = 0; page < 50; page += 1) {
    const answer = await client.search({ ...query, ...(cursor === undefined ? {} : { cursor }) })
    found.push(...answer.found.map(({ sessionId, seq }) => `${sessionId} ${seq}`))
    cursor = answer.nextCursor
    if (cursor === undefined) return found
  }
  throw new RangeError('The search has no end.')
}

test('search finds words in any case, width and accent form, with the text around them', async () => {
  const { client, runtime } = await startServer()
  const long = `${'x '.repeat(100)}Le Café est\nouvert${' y'.repeat(200)}`
  await store(runtime.store, 'one', ['Where is the STRASSE?', long, 'ﬁne, 100% sure_thing!', 'Ответ: ДА'])
  const search = async (text: string) => (await client.search({ text })).found
  expect(await search('cafe\u0301 EST')).toEqual([
    {
      sessionId: 'one',
      title: 'About one',
      seq: 2,
      role: 'assistant',
      timestamp: 1,
      before: `…${'x '.repeat(20)}Le `.replace(/^…(.*)$/, (_, text) => `…${text.slice(-40)}`),
      match: 'Café est',
      after: ` ouvert${' y'.repeat(200)}`.slice(0, 120).concat('…'),
    },
  ])
  expect((await search('fine sure_'))[0]).toMatchObject({ seq: 3, match: 'ﬁne' })
  expect((await search('да'))[0]).toMatchObject({ seq: 4, match: 'ДА' })
  // Signs of SQL patterns are letters like others, and all words must occur.
  expect(await search('100_')).toEqual([])
  expect(await search('strasse café')).toEqual([])
})

test('pages of a search contain each message once, newest session first, and none of another user', async () => {
  const server = await startServer({
    tokens: { 'token-of-the-user-000000': 'user', 'token-of-eve-00000000000': 'eve' },
  })
  const { runtime, url } = server
  const client = createClient({ baseUrl: url, token: 'token-of-the-user-000000' })
  const texts = (count: number) => Array.from({ length: count }, (_, index) => `lighthouse ${index}`)
  await store(runtime.store, 'old', texts(2))
  await store(runtime.store, 'long', texts(12))
  await store(runtime.store, 'new', ['nothing', 'A lighthouse', 'nothing'])
  await store(runtime.store, 'hers', texts(3), 'eve')
  const all = ['new 2', 'long 12', 'long 11', 'long 10', 'old 2', 'old 1']
  for (const limit of [1, 2, 20]) expect(await searchAll(client, { text: 'LIGHTHOUSE', limit })).toEqual(all)
  const inOne = Array.from({ length: 12 }, (_, index) => `long ${12 - index}`)
  expect(await searchAll(client, { text: 'lighthouse', sessionId: 'long', limit: 5 })).toEqual(inOne)
  const refused = { status: 404, code: 'session-not-found' }
  await expect(client.search({ text: 'a', sessionId: 'hers' })).rejects.toMatchObject(refused)
  await expect(client.search({ text: 'a', cursor: '{"done":-1}' })).rejects.toMatchObject({ status: 400 })
})

test('search finds tool calls by name, arguments and results, but not texts that Lango wrote for the model', async () => {
  const { client } = await startServer()
  const { runId } = await client.start('s1', { text: 'search' })
  for await (const _event of client.follow(runId));
  const { messages } = await client.messages('s1')
  const call = messages.flatMap(({ parts }) => parts).find(part => part.type === 'tool-call')
  expect((await client.search({ text: call?.name ?? '?' })).found.map(({ role }) => role)).toContain('tool')
})

test('an exported session is imported as another session with the same messages', async () => {
  const { client, runtime } = await startServer({ store: 'memory:' })
  const { runId } = await client.start('trip', { text: 'search' })
  for await (const _event of client.follow(runId));
  await runtime.store.updateState(keyOf('trip'), { mood: 'good', 'app:rate': 3, 'user:name': 'Ann' })
  const lines = await client.exportSession('trip')
  const { sessions, stored } = await client.importFile({ name: 'trip.jsonl', data: base64(lines) })
  expect(stored).toBe(true)
  expect(sessions).toMatchObject([{ sessionId: 'trip-2', leftOut: ['state "app:rate"'] }])
  const [one, other] = await Promise.all([client.messages('trip'), client.messages('trip-2')])
  expect(other).toEqual(one)
  const copy = await runtime.store.loadSession(keyOf('trip-2'))
  expect(copy?.state).toMatchObject({ mood: 'good', 'user:name': 'Ann' })
  const again = await client.exportSession('trip-2')
  expect(again.split('\n').slice(1)).toEqual(lines.split('\n').slice(1))
  await expect(client.exportSession('nope')).rejects.toMatchObject({ code: 'session-not-found' })
})

test('an export for another framework reports what its format cannot hold', async () => {
  const { client } = await startServer({ store: 'memory:' })
  const { runId } = await client.start('trip', { text: 'search' })
  for await (const _event of client.follow(runId));
  for (const format of EXPORT_FORMATS) {
    const { text, leftOut, notes } = await client.exportSessionAs('trip', format)
    expect(JSON.stringify(JSON.parse(text)), format).toContain('search')
    expect([...leftOut, ...notes].every(line => typeof line === 'string')).toBe(true)
  }
  const { leftOut } = await client.exportSessionAs('trip', 'openai-chat')
  expect(leftOut).not.toEqual([])
  await expect(client.exportSessionAs('trip', 'langchian')).rejects.toMatchObject({
    code: 'invalid-argument',
    message: expect.stringContaining('Did you mean langchain?'),
  })
  await expect(client.exportSessionAs('nope', 'adk')).rejects.toMatchObject({ code: 'session-not-found' })
})

test('a dry run of an import names unknown agents, and the import assigns their answers to a known agent', async () => {
  const { client } = await startServer()
  const event = (author: string, role: string, text: string) => ({
    id: text,
    author,
    timestamp: 1,
    content: { role, parts: [{ text }] },
  })
  const session = {
    id: 'clerks',
    appName: 'office',
    userId: 'bob',
    state: {},
    events: [event('user', 'user', 'Is it open?'), event('clerk', 'model', 'It is.')],
  }
  const file = { name: 'session.json', data: base64(session) }
  const found = await client.importFile({ ...file, dryRun: true })
  expect(found).toMatchObject({ stored: false, agents: ['root'], unknownAgents: ['clerk'] })
  expect((await client.sessions()).sessions).toEqual([])
  const imported = await client.importFile({ ...file, authors: { clerk: 'root' } })
  expect(imported).toMatchObject({
    unknownAgents: [],
    sessions: [{ sessionId: 'clerks', title: 'Is it open?', messages: 2 }],
  })
  const { messages } = await client.messages('clerks')
  expect(messages.map(({ author }) => author)).toEqual(['user', 'root'])
  expect(await client.session('clerks')).toMatchObject({ title: 'Is it open?' })
})

test('an import reads the sessions of an SQLite database', async () => {
  const { client } = await startServer()
  const place = new URL('../clients/histories/mastra/mastra.db', import.meta.url)
  const data = (await readFile(fileURLToPath(place))).toString('base64')
  const { sessions } = await client.importFile({ name: 'mastra.db', data })
  expect(sessions.length).toBeGreaterThan(0)
  const [first] = sessions
  expect((await client.messages(first?.sessionId ?? '')).totalMessages).toBe(first?.messages)
})

test('import errors name the file and what to do, and no folder of the server', async () => {
  const { client } = await startServer()
  const refusal = async (name: string, value: unknown) =>
    client.importFile({ name, data: base64(value) }).then(
      () => undefined,
      (error: unknown) => error,
    )
  const ambiguous = [
    { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
    { role: 'assistant', content: [{ type: 'text', text: 'Ho', cache_control: null }], annotations: [] },
  ]
  const errors = [
    await refusal('../../notes.txt', 'Dear diary'),
    await refusal('half.jsonl', '{"lango":"session","version":1}\n'),
    await refusal('other.json', { hello: 1 }),
    await refusal('empty.json', ''),
  ]
  for (const error of errors) {
    expect(error).toMatchObject({ status: 400, code: 'invalid-argument' })
    expect(String(error)).not.toMatch(/lango-import-|--/)
  }
  expect(String(errors[0])).toMatch(/notes\.txt is not JSON/)
  expect(String(errors[2])).toMatch(/other\.json has an unknown format\. Expected/)
  expect(await refusal('sure.json', ambiguous)).toBeUndefined()
  expect((await client.sessions()).sessions).toHaveLength(1)
})
