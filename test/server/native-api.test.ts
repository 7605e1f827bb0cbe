import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import type { LangoClient } from '../../src/client/client.js'
import { ClientError } from '../../src/client/client-error.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { startServer } from '../support/start-server.js'

/** Runs a message to its end. */
async function say(client: LangoClient, sessionId: string, text: string): Promise<RunEvent[]> {
  const { runId } = await client.start(sessionId, { text })
  return collect(client, runId)
}

async function collect(client: LangoClient, runId: string): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of client.follow(runId)) events.push(event)
  return events
}

async function until(client: LangoClient, runId: string, type: RunEvent['type']): Promise<void> {
  for await (const event of client.follow(runId)) if (event.type === type) return
}

test('GET /api/info returns the agent, the user and the models', async () => {
  const { client } = await startServer()
  expect(await client.info()).toMatchObject({
    app: 'lango',
    agent: 'root',
    model: 'play/model',
    store: 'memory',
    user: 'user',
    version: '0.0.0-test',
    demo: false,
    maxBodyBytes: 10 * 1024 * 1024,
  })
  const { default: model, models } = await client.models()
  expect(model).toBe('play/model')
  expect(models.length).toBeGreaterThan(0)
})

test('a question is answered again in a variant of the session; one is listed, and all are deleted with it', async () => {
  const { client } = await startServer()
  await say(client, 'chat', 'say 2')
  await say(client, 'chat', 'say 3')
  const copy = await client.fork('chat', { throughSeq: 2 })
  await say(client, copy.sessionId, 'say 3')
  await client.showVariant(copy.sessionId, 'chat')
  const listed = async () => (await client.sessions()).sessions.map(({ sessionId }) => sessionId)
  expect(await listed()).toEqual([copy.sessionId])
  const parts = async (sessionId: string) =>
    (await client.variants(sessionId)).variants.map(({ sessionId: id, listed: isListed, sharedMessages }) => [
      id,
      isListed,
      sharedMessages,
    ])
  expect(await parts('chat')).toEqual([
    ['chat', false, 4],
    [copy.sessionId, true, 2],
  ])
  await client.showVariant('chat', 'chat')
  expect(await parts(copy.sessionId)).toEqual([
    ['chat', true, 2],
    [copy.sessionId, false, 4],
  ])
  await expect(client.showVariant('chat', 'nowhere')).rejects.toMatchObject({ code: 'session-not-found' })
  await expect(client.variants('nowhere')).rejects.toMatchObject({ code: 'session-not-found' })
  await client.deleteSession('chat')
  await expect(client.session(copy.sessionId)).rejects.toMatchObject({ code: 'session-not-found' })
})

test('the title of a session follows the first message of the variant that is shown, unless it was set', async () => {
  const { client } = await startServer()
  await say(client, 'chat', 'say 2')
  const copy = await client.fork('chat', { throughSeq: 0 })
  await say(client, copy.sessionId, 'say 3')
  expect(await client.showVariant(copy.sessionId, 'chat')).toMatchObject({ title: 'say 3' })
  expect(await client.showVariant('chat', copy.sessionId)).toMatchObject({ title: 'say 2' })
  await client.renameSession('chat', 'Counting')
  expect(await client.showVariant(copy.sessionId, 'chat')).toMatchObject({ title: 'Counting' })
})

test('a session is created, renamed, found, copied and deleted', async () => {
  const { client } = await startServer()
  await client.createSession({ sessionId: 'a/b ü?#', title: 'Odd name' })
  await client.createSession({ title: 'Other' })
  expect(await client.renameSession('a/b ü?#', 'Even odder')).toMatchObject({ title: 'Even odder' })
  const { sessions } = await client.sessions({ search: 'odder' })
  expect(sessions.map(({ sessionId }) => sessionId)).toEqual(['a/b ü?#'])
  await say(client, 'a/b ü?#', 'say 2')
  await say(client, 'a/b ü?#', 'say 3')
  expect(await client.session('a/b ü?#')).toMatchObject({
    totalMessages: 4,
    usage: { inputTokens: 20, outputTokens: 5 },
    lastRun: { status: 'finished', finishReason: 'stop', afterSeq: 2 },
  })
  const copy = await client.fork('a/b ü?#', { throughSeq: 2, title: 'Copy' })
  expect(copy).toMatchObject({ totalMessages: 2, title: 'Copy' })
  expect(await client.fork('a/b ü?#', { throughSeq: 0 })).toMatchObject({ totalMessages: 0 })
  expect(await client.fork('a/b ü?#')).toMatchObject({ totalMessages: 4 })
  await client.deleteSession('a/b ü?#')
  await expect(client.session('a/b ü?#')).rejects.toMatchObject({ code: 'session-not-found', status: 404 })
  await expect(client.deleteSession('a/b ü?#')).rejects.toMatchObject({ status: 404 })
})

test('deleting the last session of a user returns how much `user:` state is kept', async () => {
  const { client, runtime, url } = await startServer()
  const { app: appName } = await runtime.info()
  for (const sessionId of ['one', 'two']) await client.createSession({ sessionId })
  const { sessions } = await runtime.store.listSessions({ appName })
  const userId = sessions[0]?.key.userId ?? ''
  await runtime.store.updateState({ appName, userId, sessionId: 'one' }, { 'user:name': 'Ann', color: 'red' })
  const kept = async (sessionId: string) =>
    (await fetch(`${url}/api/sessions/${sessionId}`, { method: 'DELETE' })).headers.get(
      'lango-kept-user-state',
    )
  expect([await kept('one'), await kept('two')]).toEqual([null, '1'])
})

test('a session title has up to 200 characters, surrogate pairs counted as one', async () => {
  const { client } = await startServer()
  const title = '😀'.repeat(200)
  expect(await client.createSession({ sessionId: 'one', title })).toMatchObject({ title })
  expect(await client.renameSession('one', title)).toMatchObject({ title })
  const refusal = { code: 'invalid-argument', status: 400, message: expect.stringContaining('200') }
  await expect(client.renameSession('one', `${title}x`)).rejects.toMatchObject(refusal)
})

test('messages of a session are read in pages from either end', async () => {
  const { client } = await startServer()
  for (const text of ['say 1', 'say 2', 'say 3']) await say(client, 's1', text)
  const newest = await client.messages('s1', { limit: 2 })
  expect(newest.totalMessages).toBe(6)
  expect(newest.messages.map(({ seq }) => seq)).toEqual([5, 6])
  expect((await client.messages('s1', { beforeSeq: 5, limit: 3 })).messages.map(({ seq }) => seq)).toEqual([
    2, 3, 4,
  ])
  expect((await client.messages('s1', { afterSeq: 4 })).messages.map(({ seq }) => seq)).toEqual([5, 6])
})

test('a run is inspected, its session is linted, and its runs are listed', async () => {
  const { client } = await startServer()
  const events = await say(client, 's1', 'search')
  const runId = events[0]?.runId ?? ''
  expect(events.map(({ type }) => type)).toContain('tool-result')
  expect((await client.inspect(runId)).steps).toHaveLength(2)
  expect((await client.lint('s1')).profiles.length).toBeGreaterThan(5)
  expect((await client.lint('s1', 'gemini-3')).profiles.map(({ profile }) => profile)).toEqual(['gemini-3'])
  expect((await client.runs('s1')).runs).toEqual([await client.run(runId)])
})

test('the same run id twice starts one run, and is refused in another session', async () => {
  const { client } = await startServer()
  const runId = randomUUID()
  const request = { text: 'slow 10 5', runId }
  const started = await Promise.all([1, 2, 3].map(() => client.start('s1', request)))
  expect(started).toEqual([1, 2, 3].map(() => ({ runId, sessionId: 's1' })))
  await collect(client, runId)
  expect(await client.start('s1', request)).toEqual({ runId, sessionId: 's1' })
  expect((await client.runs('s1')).runs).toHaveLength(1)
  expect((await client.messages('s1')).totalMessages).toBe(2)
  await expect(client.start('s2', request)).rejects.toMatchObject({ code: 'invalid-argument', status: 400 })
})

test('a busy session refuses a second run, or queues it', async () => {
  const { client } = await startServer()
  const first = await client.start('s1', { text: 'hang' })
  const refused = await client.start('s1', { text: 'say 1' }).catch(error => error)
  expect(refused).toBeInstanceOf(ClientError)
  expect(refused).toMatchObject({ code: 'session-busy', status: 409, retryable: true })
  const second = await client.start('s1', { text: 'say 2', whenBusy: 'queue' })
  expect(await client.run(second.runId)).toMatchObject({ status: 'queued', place: 1, lastSeq: 1 })
  expect((await client.session('s1')).activeRun).toBeDefined()
  const events = collect(client, second.runId)
  await client.stop(first.runId)
  expect((await events).at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  expect(await client.run(first.runId)).toMatchObject({ finishReason: 'aborted' })
})

test('a queued run that is stopped ends with run-finish', async () => {
  const { client } = await startServer()
  await client.start('s1', { text: 'hang' })
  const { runId } = await client.start('s1', { text: 'say 2', whenBusy: 'queue' })
  const events = collect(client, runId)
  await client.stop(runId)
  expect((await events).at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'aborted' })
})

test('a tool waits for an approval, which is accepted once', async () => {
  const { client } = await startServer()
  const { runId } = await client.start('s1', { text: 'danger' })
  await until(client, runId, 'approval-request')
  await expect(client.approve(runId, 'no-such-call', 'once')).rejects.toMatchObject({ status: 404 })
  await client.approve(runId, 'call-danger', 'once')
  const events = await collect(client, runId)
  expect(events.find(({ type }) => type === 'approval-answer')).toMatchObject({ answer: 'once' })
  expect(events.find(({ type }) => type === 'tool-result')).toMatchObject({ isError: false })
  await expect(client.approve(runId, 'call-danger', 'no')).rejects.toMatchObject({ status: 404 })
})

test('attachments of a run are stored in the history', async () => {
  const { client } = await startServer()
  const file = { mimeType: 'image/png', data: Buffer.from('not really').toString('base64'), name: 'a.png' }
  const { runId } = await client.start('s1', { text: 'say 1', files: [file] })
  await collect(client, runId)
  const { messages } = await client.messages('s1')
  expect(messages[0]?.parts).toContainEqual(expect.objectContaining({ type: 'media', mimeType: 'image/png' }))
})

test('deleting a session deletes its active run', async () => {
  const { client } = await startServer()
  const { runId } = await client.start('s1', { text: 'hang' })
  await client.deleteSession('s1')
  await expect(client.run(runId)).rejects.toMatchObject({ status: 404 })
  await expect(client.session('s1')).rejects.toMatchObject({ status: 404 })
})

test.each([
  ['no message', {}],
  ['an unknown model provider', { text: 'x', model: 'nobody/m' }],
  ['a run id that is no UUID', { text: 'x', runId: '1' }],
  ['text that is no text', { text: 7 }],
  ['a file that is not base64', { files: [{ mimeType: 'image/png', data: '§' }] }],
])('starting a run with %s is refused with a sentence', async (_name, request) => {
  const { client } = await startServer()
  const refused = await client.start('s1', request as never).catch(error => error)
  expect(refused).toMatchObject({ code: 'invalid-argument', status: 400 })
  expect(refused.message).toMatch(/\.$/)
})

test('a session is listed as running while its run lasts', async () => {
  const { client } = await startServer()
  await say(client, 'still', 'say 1')
  const { runId } = await client.start('busy', { text: 'slow 2000 20' })
  await until(client, runId, 'text-delta')
  const marks = async () => (await client.sessions()).sessions.map(item => [item.sessionId, item.running])
  expect(await marks()).toEqual(
    expect.arrayContaining([
      ['busy', true],
      ['still', undefined],
    ]),
  )
  expect(await client.session('busy')).toMatchObject({ running: true })
  await client.stop(runId)
  await collect(client, runId)
  expect((await marks()).map(([, running]) => running)).toEqual([undefined, undefined])
})
