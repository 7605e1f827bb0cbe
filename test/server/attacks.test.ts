import { mkdir, writeFile } from 'node:fs/promises'
import { expect, test, vi } from 'vitest'
import { createClient } from '../../src/client/create-client.js'
import { AgentError } from '../../src/errors.js'
import { silentLogger } from '../../src/logger.js'
import { serve } from '../../src/server/serve.js'
import { rawRequest, rawSocket } from '../support/raw-request.js'
import { createTestRuntime, startServer } from '../support/start-server.js'
import { temporaryFolder } from '../support/temporary-folder.js'

// Starting processes takes long on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const TOKENS = { 'token-of-ann-0123456789': 'ann', 'token-of-bob-0123456789': 'bob' }
const JSON_TYPE = { 'content-type': 'application/json' }
const ann = { authorization: 'Bearer token-of-ann-0123456789' }
/** What a browser sends with an address that was typed or pasted. */
const typed = { 'sec-fetch-site': 'none' }
const bob = { authorization: 'Bearer token-of-bob-0123456789' }

test.each(['https://evil.example', 'null', 'http://127.0.0.1:1', 'http://localhost.evil.example'])(
  'a page of the foreign origin %s reads and writes nothing',
  async origin => {
    const { url } = await startServer()
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      const answer = await rawRequest(url, '/api/sessions', { method, headers: { origin, ...JSON_TYPE } })
      expect(answer.status).toBe(403)
      expect(answer.json()).toMatchObject({ code: 'forbidden' })
      expect(answer.headers['access-control-allow-origin']).toBeUndefined()
    }
  },
)

test('a page of the server’s own origin and one of an allowed origin may call the API', async () => {
  const allowed = 'https://chat.example.com'
  const { url } = await startServer({ allowedOrigins: [allowed] })
  expect((await rawRequest(url, '/api/info', { headers: { origin: url } })).status).toBe(200)
  const answer = await rawRequest(url, '/api/info', { headers: { origin: allowed } })
  expect(answer.headers['access-control-allow-origin']).toBe(allowed)
  expect(answer.headers['access-control-expose-headers']).toContain('x-should-retry')
  const preflight = await rawRequest(url, '/api/sessions', {
    method: 'OPTIONS',
    headers: { origin: allowed },
  })
  expect(preflight.status).toBe(204)
  expect(preflight.headers['access-control-allow-methods']).toContain('DELETE')
})

test.each(['evil.example', 'evil.example:80', '192.168.1.7', 'localhost.evil.example', 'a@localhost'])(
  'a request for the host name "%s" is refused, which stops DNS rebinding',
  async host => {
    const { url } = await startServer()
    const answer = await rawRequest(url, '/api/sessions', { headers: { host } })
    expect([400, 403]).toContain(answer.status)
    expect(answer.text).not.toContain('sessions')
  },
)

test('a form of another site is refused by its origin and by its content type', async () => {
  const { url } = await startServer()
  const send = (headers: Record<string, string>) =>
    rawRequest(url, '/api/sessions', { method: 'POST', body: '{"title":"x"}', headers })
  expect((await send({ ...JSON_TYPE, 'sec-fetch-site': 'cross-site' })).status).toBe(403)
  expect((await send({ ...JSON_TYPE, 'sec-fetch-site': 'same-site' })).status).toBe(403)
  expect((await send({ 'content-type': 'text/plain' })).status).toBe(400)
  expect((await send({ 'content-type': 'application/x-www-form-urlencoded' })).status).toBe(400)
  expect((await send({ ...JSON_TYPE, 'sec-fetch-site': 'same-origin' })).status).toBe(201)
})

test('without a token or with a wrong one only the page and the health check respond', async () => {
  const { url } = await startServer({ tokens: TOKENS })
  const wrong = [
    '',
    'Bearer',
    'Bearer wrong',
    'Basic dXNlcjp4',
    'Bearer token-of-ann-012345678',
    'Bearer ann',
  ]
  for (const path of ['/api/info', '/api/sessions', '/api/docs', '/metrics', '/v1/models', '/api/nothing']) {
    for (const authorization of wrong) {
      const answer = await rawRequest(url, path, { headers: authorization === '' ? {} : { authorization } })
      expect(answer.status).toBe(401)
      expect(answer.headers['www-authenticate']).toContain('Bearer')
      expect(answer.text).toContain('"unauthorized"')
    }
  }
  expect((await rawRequest(url, '/api/info', { headers: { cookie: 'lango=wrong' } })).status).toBe(401)
  expect((await rawRequest(url, '/api/health')).status).toBe(200)
  expect((await rawRequest(url, '/api/info', { headers: ann })).json()).toMatchObject({ user: 'ann' })
})

test('the login link exchanges the token for an HttpOnly cookie and redirects to an address without it', async () => {
  const { url } = await startServer({ tokens: TOKENS })
  const answer = await rawRequest(url, '/login?token=token-of-bob-0123456789', { headers: typed })
  expect(answer.status).toBe(303)
  expect(answer.headers.location).toBe('/')
  const cookie = String(answer.headers['set-cookie'])
  expect(cookie).toMatch(/HttpOnly; SameSite=Strict/)
  expect(cookie).not.toContain('token-of-bob')
  const [pair = ''] = cookie.split(';')
  expect((await rawRequest(url, '/api/info', { headers: { cookie: `a=b; ${pair}` } })).json()).toMatchObject({
    user: 'bob',
  })
  const refused = await rawRequest(url, '/login?token=wrong', { headers: typed })
  expect(refused.status).toBe(401)
  expect(refused.headers['set-cookie']).toBeUndefined()
})

test('a server on an address that is not loopback refuses to start without tokens', async () => {
  const runtime = await createTestRuntime('memory:')
  const start = serve({ runtime, port: 0, host: '0.0.0.0', logger: silentLogger, version: '1' })
  await expect(start).rejects.toThrowError(AgentError)
  await expect(start).rejects.toMatchObject({
    code: 'invalid-config',
    message: expect.stringContaining('server.tokens'),
  })
  await runtime.close()
})

test("another user's sessions and runs are reported as not found", async () => {
  const { url } = await startServer({ tokens: TOKENS })
  const [clientOfAnn, clientOfBob] = ['ann', 'bob'].map(name =>
    createClient({ baseUrl: url, token: `token-of-${name}-0123456789` }),
  )
  const started = await clientOfAnn?.start('private', { text: 'hang' })
  const runId = started?.runId ?? ''
  const paths = [
    ...['', '/messages', '/lint'].map(rest => `/api/sessions/private${rest}`),
    ...['', '/events', '/inspect'].map(rest => `/api/runs/${runId}${rest}`),
  ]
  for (const path of paths)
    expect([path, (await rawRequest(url, path, { headers: bob })).status]).toEqual([path, 404])
  const stop = await rawRequest(url, `/api/runs/${runId}/stop`, { method: 'POST', headers: bob })
  expect(stop.status).toBe(404)
  expect((await rawRequest(url, '/api/sessions/private', { method: 'DELETE', headers: bob })).status).toBe(
    404,
  )
  expect((await clientOfBob?.sessions())?.sessions).toEqual([])
  await expect(clientOfBob?.start('other', { text: 'x', runId })).rejects.toMatchObject({ status: 400 })
  expect((await clientOfAnn?.session('private'))?.activeRun?.runId).toBe(runId)
})

test.each([{ chunked: false }, { chunked: true }])(
  'a body over maxBodyBytes is refused with 413 (%o)',
  async ({ chunked }) => {
    const { url, client } = await startServer({ limits: { maxBodyBytes: 10_000 } })
    const body = JSON.stringify({ title: 'x'.repeat(50_000) })
    const answer = await rawRequest(url, '/api/sessions', {
      method: 'POST',
      headers: JSON_TYPE,
      body,
      chunked,
    })
    expect(answer.status).toBe(413)
    expect(answer.json()).toMatchObject({ code: 'too-large' })
    expect((await client.sessions()).sessions).toEqual([])
  },
)

test('a small body without a Content-Length is read', async () => {
  const { url } = await startServer()
  const body = JSON.stringify({ title: 'In pieces' })
  const answer = await rawRequest(url, '/api/sessions', {
    method: 'POST',
    headers: JSON_TYPE,
    body,
    chunked: true,
  })
  expect(answer.json()).toMatchObject({ title: 'In pieces' })
})

test('headers of more than 16 KB are refused before a route reads them', async () => {
  const { url } = await startServer()
  const answer = await rawRequest(url, '/api/info', { headers: { 'x-long': 'x'.repeat(20_000) } })
  expect(answer.status).toBe(431)
})

test.each([
  ['headers', 'GET /api/info HTTP/1.1\r\nHost: localhost\r\nX-Slow: '],
  [
    'body',
    'POST /api/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{',
  ],
])('a client that never finishes its %s is disconnected', async (_what, bytes) => {
  const { url, client } = await startServer({ limits: { headersMs: 200, requestMs: 400 } })
  const { closed } = await rawSocket(url, bytes)
  expect(await closed).toContain('408')
  expect((await client.sessions()).sessions).toEqual([])
})

test('no request path leads out of the folder of the web page', async () => {
  const folder = await temporaryFolder()
  await mkdir(`${folder}/web/assets`, { recursive: true })
  await writeFile(`${folder}/secret.txt`, 'the secret')
  await writeFile(`${folder}/web/index.html`, '<p>the page</p>')
  await writeFile(`${folder}/web/assets/app-0a1b2c3d.js`, 'app()')
  const { url } = await startServer({ webRoot: `${folder}/web` })
  const attempts = [
    '/../secret.txt',
    '/assets/../../secret.txt',
    '/%2e%2e/secret.txt',
    '/..%2fsecret.txt',
    '/..%5csecret.txt',
    '/assets/..%2f..%2fsecret.txt',
    '//secret.txt',
    '/%00/../secret.txt',
    `/${folder}/secret.txt`,
    '/s/../../secret.txt',
    '/%E0%A4%A/secret.txt',
    'http://localhost/../secret.txt',
  ]
  for (const path of attempts) expect((await rawRequest(url, path)).text).not.toContain('the secret')
  expect((await rawRequest(url, '/assets/app-0a1b2c3d.js')).text).toBe('app()')
})

test('a line break in a value from a client reaches no response header', async () => {
  const { url } = await startServer({ tokens: TOKENS })
  const inject = '%0d%0aset-cookie:%20evil=1'
  for (const path of [
    `/api/sessions/${inject}`,
    `/login?token=${inject}`,
    `/${inject}`,
    `/api/runs/${inject}/events`,
  ]) {
    const answer = await rawRequest(url, path, { headers: { ...ann, ...typed } })
    expect(String(answer.headers['set-cookie'] ?? '')).not.toContain('evil')
    expect(answer.status).toBeGreaterThanOrEqual(400)
  }
  const { closed } = await rawSocket(
    url,
    'GET /api/info HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\rX-Evil: 1\r\n\r\n',
  )
  expect(await closed).toMatch(/^HTTP\/1.1 400/)
})

test.each([
  '{"text":"say 1","stateDelta":{"__proto__":{"polluted":1}}}',
  '{"text":"say 1","stateDelta":{"fine":[{"__proto__":{"polluted":1}}]}}',
])('the state key __proto__ is refused: %s', async body => {
  const { url, runtime } = await startServer()
  const answer = await rawRequest(url, '/api/sessions/s1/runs', { method: 'POST', headers: JSON_TYPE, body })
  expect(answer.status).toBe(400)
  expect(answer.json()).toMatchObject({
    code: 'invalid-argument',
    detail: 'The state key "__proto__" cannot be set by a client.',
  })
  const key = { appName: 'lango', userId: 'user', sessionId: 's1' }
  expect(await runtime.store.loadSession(key)).toBeUndefined()
})

test('JSON keys that objects inherit, such as constructor, are stored as ordinary keys', async () => {
  const { url, client, runtime } = await startServer()
  const state = '{"constructor":{"prototype":{"polluted":1}},"fine":{"toString":1,"kept":true}}'
  const body = `{"text":"say 1","__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"stateDelta":${state}}`
  const answer = await rawRequest(url, '/api/sessions/__proto__/runs', {
    method: 'POST',
    headers: JSON_TYPE,
    body,
  })
  expect(answer.status).toBe(202)
  for await (const _event of client.follow(answer.json().runId));
  expect(Reflect.get({}, 'polluted')).toBeUndefined()
  const key = { appName: 'lango', userId: 'user', sessionId: '__proto__' }
  const session = await runtime.store.loadSession(key)
  expect(JSON.stringify(session?.state)).toBe(state)
})

test.each(['lango:approvals', 'app:shared', 'LANGO:x'])(
  'a client cannot write the state key %s',
  async name => {
    const { client } = await startServer()
    const started = client.start('s1', { text: 'say 1', stateDelta: { [name]: 1 } })
    await expect(started).rejects.toMatchObject({ status: 400, code: 'invalid-argument' })
  },
)

test('responses contain no file name or address of the machine, and all have the security headers', async () => {
  const logged: string[] = []
  const write = (message: string, fields?: object) => logged.push(`${message} ${JSON.stringify(fields)}`)
  const logger = { debug: write, info: write, warn: write, error: write }
  const store = `sqlite:${await temporaryFolder()}/lango.db`
  const { url, runtime } = await startServer({ tokens: TOKENS, logger, store })
  await runtime.store.close()
  for (const path of [
    '/',
    '/api/health',
    '/api/ready',
    '/api/sessions',
    '/api/nothing',
    '/login?token=wrong-secret-1',
  ]) {
    const answer = await rawRequest(url, path, { headers: ann })
    expect(answer.text).not.toMatch(/\/tmp|\/home|\/root|lango\.db|node_modules|token-of/)
    expect(answer.headers['content-security-policy']).toContain("default-src 'self'")
    expect(answer.headers['x-content-type-options']).toBe('nosniff')
    expect(answer.headers['x-powered-by']).toBeUndefined()
  }
  expect((await rawRequest(url, '/api/ready')).status).toBe(503)
  expect(logged.join('\n')).not.toMatch(/token-of|wrong-secret/)
})
