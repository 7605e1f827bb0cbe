import { expect, test } from 'vitest'
import { AgentError } from '../../src/errors.js'
import { silentLogger } from '../../src/logger.js'
import { rawRequest, rawSocket } from '../support/raw-request.js'
import { readEvents } from '../support/read-events.js'
import { startServer } from '../support/start-server.js'

const TOKENS = { 'token-of-ann-0123456789': 'ann', 'token-of-bob-0123456789': 'bob' }
const JSON_TYPE = { 'content-type': 'application/json' }

test.each([
  ['a trailing dot in the host name', 'GET /api/info HTTP/1.1\r\nHost: localhost.\r\n\r\n'],
  ['a host address as one number', 'GET /api/info HTTP/1.1\r\nHost: 2130706433\r\n\r\n'],
  ['two hosts', 'GET /api/info HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\n\r\n'],
  ['another host in the target', 'GET http://evil.example/api/info HTTP/1.1\r\nHost: localhost\r\n\r\n'],
  ['no host', 'GET /api/info HTTP/1.0\r\n\r\n'],
  [
    'both Content-Length and Transfer-Encoding',
    'POST /api/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
])('a raw request with %s gets 400 or 403', async (_what, bytes) => {
  const { url } = await startServer()
  const { closed } = await rawSocket(url, bytes.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
  expect(await closed).toMatch(/^HTTP\/1.1 40[03]/)
})

test('a compressed request body is refused', async () => {
  const { url } = await startServer()
  const answer = await rawRequest(url, '/api/sessions', {
    method: 'POST',
    headers: { ...JSON_TYPE, 'content-encoding': 'gzip' },
    body: '{}',
  })
  expect([answer.status, answer.json().code]).toEqual([400, 'invalid-argument'])
})

test('a wrong method gets 405 with the allowed methods', async () => {
  const { url } = await startServer()
  const answer = await rawRequest(url, '/api/sessions/s1/messages', { method: 'DELETE' })
  expect([answer.status, answer.headers.allow, answer.json().code]).toEqual([405, 'GET', 'wrong-method'])
  expect(answer.headers['content-type']).toContain('application/problem+json')
  const asked = await rawRequest(url, '/api/sessions', { method: 'OPTIONS' })
  expect([asked.status, asked.headers.allow]).toEqual([204, 'GET, POST'])
  expect((await rawRequest(url, '/api/nothing', { method: 'POST' })).status).toBe(404)
})

test('each protocol formats a wrong token and a wrong path in its own way', async () => {
  const { url } = await startServer({ tokens: TOKENS })
  const ann = { authorization: 'Bearer token-of-ann-0123456789' }
  const openai = await rawRequest(url, '/v1/models')
  expect(openai.status).toBe(401)
  expect(openai.json()).toMatchObject({ error: { type: 'authentication_error', code: 'invalid_api_key' } })
  const missing = await rawRequest(url, '/v1/nothing', { method: 'POST', headers: ann })
  expect([missing.status, missing.json().error.code]).toEqual([404, 'not-found'])
  expect((await rawRequest(url, '/list-apps')).json()).toMatchObject({ code: 'unauthorized' })
  const chat = await rawRequest(url, '/api/chat', { method: 'POST', headers: JSON_TYPE, body: '{}' })
  expect([chat.status, chat.headers['content-type']]).toEqual([401, 'text/plain; charset=utf-8'])
})

test.each(['.', '..', 'x'.repeat(257)])(
  'no protocol creates a session whose id cannot be in a path (%s)',
  async id => {
    const { url, client } = await startServer()
    const post = (path: string, body: object, headers = {}) =>
      rawRequest(url, path, {
        method: 'POST',
        headers: { ...JSON_TYPE, ...headers },
        body: JSON.stringify(body),
      })
    const messages = [{ role: 'user', content: 'say 1' }]
    const answers = [
      await post('/api/sessions', { sessionId: id }),
      await post('/apps/lango/users/user/sessions', { sessionId: id }),
      await post('/v1/chat/completions', { messages }, { 'x-lango-session': id }),
      await post('/api/chat', {
        id,
        messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'x' }] }],
      }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 400])
    expect((await client.sessions()).sessions).toEqual([])
  },
)

test('over TLS the cookie is one that no sibling domain can set', async () => {
  const { url } = await startServer({ tokens: TOKENS })
  const login = '/login?token=token-of-ann-0123456789'
  const answer = await rawRequest(url, login, {
    headers: { 'x-forwarded-proto': 'https', 'sec-fetch-site': 'none' },
  })
  const cookie = String(answer.headers['set-cookie'])
  expect(cookie).toMatch(/^__Host-lango=.*; Path=\/;.*; Secure$/)
  const [pair = ''] = cookie.split(';')
  const planted = { cookie: `lango=planted; ${pair}` }
  expect((await rawRequest(url, '/api/info', { headers: planted })).json()).toMatchObject({ user: 'ann' })
  const left = await rawRequest(url, '/logout', { method: 'POST' })
  expect(left.headers['set-cookie']).toHaveLength(2)
})

test('a run that fails because of the store does not reveal its address', async () => {
  const { url, client, runtime } = await startServer()
  const message = 'postgres://db.internal:5432/lango cannot be reached'
  const { runs } = runtime.store
  const { saveStep } = runs
  let isFirst = true
  // The first answer fails in a way that is not repeated; events alone would be stored again. The end of the run is stored.
  runs.saveStep = async step => {
    if (!isFirst || step.message === undefined) return saveStep.call(runs, step)
    isFirst = false
    throw new AgentError('store-unavailable', message, { details: { host: 'db.internal' } })
  }
  const { runId } = await client.start('s1', { text: 'say 1' })
  const events = await readEvents(url, runId)
  expect(events.map(({ type }) => type)).toContain('error')
  const inspected = await rawRequest(url, `/api/runs/${runId}/inspect`)
  for (const text of [JSON.stringify(events), JSON.stringify(await readEvents(url, runId)), inspected.text]) {
    expect(text).toContain('store-unavailable')
    expect(text).not.toContain('db.internal')
  }
})

test('an internal error is logged with message and stack, and the client gets neither', async () => {
  const logged: unknown[] = []
  const logger = { ...silentLogger, error: (...line: unknown[]) => void logged.push(line) }
  const { url, runtime } = await startServer({ logger })
  runtime.store.listSessions = async () => {
    throw new TypeError('no such column: petunia')
  }
  for (const path of ['/api/sessions', '/v1/models', '/api/sessions?limit=5']) {
    const { text } = await rawRequest(url, path)
    expect(text).not.toMatch(/petunia|TypeError|\.ts/)
  }
  expect(logged).toContainEqual([
    'A request failed',
    {
      code: 'internal',
      reason: 'no such column: petunia',
      stack: expect.stringMatching(/TypeError: no such column: petunia\n +at .+attacks-before-routes/),
    },
  ])
})

test('no route of any protocol returns data of another user', async () => {
  const { url } = await startServer({ tokens: TOKENS })
  const ask = (user: string, method: string, path: string, body?: object) =>
    rawRequest(url, path, {
      method,
      headers: { authorization: `Bearer token-of-${user}-0123456789`, ...JSON_TYPE },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
  const { runId } = (await ask('ann', 'POST', '/api/sessions/hers/runs', { text: 'danger' })).json()
  await expect.poll(async () => (await ask('ann', 'GET', `/api/runs/${runId}`)).json().lastSeq).toBe(3)
  const adk = '/apps/lango/users/ann/sessions'
  const newMessage = { parts: [{ text: 'say 1' }] }
  const answered = { state: 'approval-responded', toolCallId: 'call-danger', approval: { approved: true } }
  const parts = [{ type: 'dynamic-tool', ...answered }]
  const going = [{ id: 'm', role: 'assistant', parts, metadata: { lango: { runId, seq: 0 } } }]
  const refused: [number, string, string, object?][] = [
    [404, 'PATCH', '/api/sessions/hers', { title: 'x' }],
    [404, 'POST', '/api/sessions/hers/fork', {}],
    [404, 'GET', '/api/sessions/hers/variants'],
    [404, 'PATCH', '/api/sessions/hers', { variantOf: 'hers' }],
    [404, 'POST', '/api/sessions/hers/fork', { throughSeq: 0 }],
    [404, 'POST', `/api/runs/${runId}/approvals/call-danger`, { answer: 'once' }],
    [403, 'GET', adk],
    [403, 'GET', `${adk}/hers`],
    [403, 'PATCH', `${adk}/hers`, { stateDelta: { x: 1 } }],
    [403, 'DELETE', `${adk}/hers`],
    [403, 'POST', `${adk}/new`, {}],
    [403, 'POST', '/run', { appName: 'lango', userId: 'ann', sessionId: 'hers', newMessage }],
    [404, 'POST', '/run_sse', { appName: 'lango', userId: 'bob', sessionId: 'hers', newMessage }],
    [404, 'POST', '/api/chat', { id: 'hers', messages: going }],
    [204, 'GET', '/api/chat/hers/stream'],
    [204, 'DELETE', '/api/chat/hers/stream'],
  ]
  for (const [status, method, path, body] of refused) {
    expect([method, path, (await ask('bob', method, path, body)).status]).toEqual([method, path, status])
  }
  expect((await ask('bob', 'GET', '/api/chat/hers')).json()).toEqual({ id: 'hers', messages: [] })
  expect((await ask('bob', 'GET', '/api/sessions/hers/runs')).json()).toEqual({ runs: [] })
  expect((await ask('ann', 'GET', `/api/runs/${runId}`)).json()).toMatchObject({
    status: 'running',
    lastSeq: 3,
  })
})
