// What is too long to be written or stored at once is complete all the same.
import { expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '../../src/logger.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { serve } from '../../src/server/serve.js'
import { appendAll } from '../../src/session/session-pages.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { rawRequest } from '../support/raw-request.js'
import { startServer } from '../support/start-server.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const ADK_SESSIONS = '/apps/lango/users/user/sessions'

test('a completion of a megabyte arrives unchanged, with escapes and emoji split between pieces', async () => {
  const piece = 'A "quote", a \\ backslash, \u0000 NUL,\n\ud83d\ude00 and \u20ac. '
  const answer = `x${piece.repeat(30_000)}`
  const provider = new ScriptedProvider(() => ({ text: answer }), { id: 'play' })
  const runtime = await createRuntime({
    store: `sqlite:${await temporaryFolder()}/lango.db`,
    providers: { play: provider },
    agent: { model: 'play/model' },
  })
  const options = { port: 0, host: '127.0.0.1', version: 'test', logger: silentLogger, graceMs: 0 }
  const server = await serve({ runtime, ...options })
  onTestFinished(async () => {
    await server.close()
    await runtime.close()
  })
  const body = JSON.stringify({ messages: [{ role: 'user', content: 'Go on' }] })
  const reply = await rawRequest(server.url, '/v1/chat/completions', {
    method: 'POST',
    headers: JSON_TYPE,
    body,
  })
  expect(reply.headers['content-type']).toContain('application/json')
  const { choices, object, usage } = reply.json()
  expect(choices[0].message.content === answer).toBe(true)
  expect({ object, finish: choices[0].finish_reason }).toEqual({ object: 'chat.completion', finish: 'stop' })
  expect(usage).toMatchObject({ total_tokens: 0 })
})

test('the ADK view of a session of thousands of messages has all events in order', async () => {
  const { url, runtime } = await startServer({ store: `sqlite:${await temporaryFolder()}/lango.db` })
  const key = { appName: 'lango', userId: 'user', sessionId: 'long' }
  await runtime.store.createSession(key, { kept: 'yes' })
  const messages = Array.from({ length: 3000 }, (_, index) => {
    return { role: 'user', author: 'user', id: `e${index}`, content: `Message ${index}`, timestamp: index }
  })
  expect((await appendAll(runtime.store, key, messages)).at(-1)).toBe(3000)
  const session = (await rawRequest(url, `${ADK_SESSIONS}/long`)).json()
  expect(Object.keys(session)).toEqual(['id', 'appName', 'userId', 'state', 'events', 'lastUpdateTime'])
  expect(session.state).toEqual({ kept: 'yes' })
  expect(session.events.map(({ id }: { id: string }) => id)).toEqual(messages.map(({ id }) => id))
  expect(session.events).toEqual(JSON.parse(JSON.stringify(await runtime.events(key))))
})

test('a state of thousands of keys is stored and returned without the temporary ones', async () => {
  const { url } = await startServer({ store: `sqlite:${await temporaryFolder()}/lango.db` })
  const state: Record<string, unknown> = {}
  for (let index = 0; index < 4500; index += 1) state[`key-${index}`] = index
  const body = JSON.stringify({ sessionId: 'wide', state: { ...state, 'temp:a': 1, 'user:b': 2 } })
  const created = await rawRequest(url, ADK_SESSIONS, { method: 'POST', headers: JSON_TYPE, body })
  expect(created.json().state).toEqual({ ...state, 'user:b': 2 })
  expect((await rawRequest(url, `${ADK_SESSIONS}/wide`)).json().state).toEqual({ ...state, 'user:b': 2 })
})
