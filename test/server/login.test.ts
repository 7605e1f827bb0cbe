import { createHash } from 'node:crypto'
import { expect, onTestFinished, test, vi } from 'vitest'
import { hashToken, newToken } from '../../src/server/security/server-token.js'
import { type RawAnswer, rawRequest } from '../support/raw-request.js'
import { startServer } from '../support/start-server.js'

// The first server of a file loads its modules, which takes long on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const ANN = 'token-of-ann-0123456789'
const BOB = 'token-of-bob-0123456789'
const TOKENS = { [ANN]: 'ann', [BOB]: 'bob' }
const TYPED = { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' }
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const LONG_MS = 3_600_000

function open(url: string, token: string, headers: Record<string, string> = TYPED): Promise<RawAnswer> {
  return rawRequest(url, `/login?token=${token}`, { headers })
}

function call(url: string, token: string, headers: Record<string, string> = {}): Promise<RawAnswer> {
  return rawRequest(url, '/api/info', { headers: { authorization: `Bearer ${token}`, ...headers } })
}

/** Sends wrong tokens, each another one, and returns the statuses. */
async function guess(send: (token: string) => Promise<RawAnswer>, times: number): Promise<number[]> {
  const statuses: number[] = []
  for (let i = 0; i < times; i++) statuses.push((await send(`wrong-token-${i}-0123456789`)).status)
  return statuses
}

function cookieOf(answer: RawAnswer): string {
  return String(answer.headers['set-cookie'] ?? '').split(';')[0] ?? ''
}

/** Moves the clock of the limit forward. */
function skippableClock(): { skip(ms: number): void } {
  const now = performance.now.bind(performance)
  let skippedMs = 0
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => now() + skippedMs)
  onTestFinished(() => spy.mockRestore())
  return {
    skip: ms => {
      skippedMs += ms
    },
  }
}

test('a right token is refused while its address is limited, and accepted after the window', async () => {
  const clock = skippableClock()
  const limits = { attemptsPerAddress: 3, attemptWindowMs: LONG_MS }
  const { url } = await startServer({ tokens: TOKENS, limits })
  expect(await guess(token => open(url, token), 5)).toEqual([401, 401, 401, 429, 429])
  const refused = await open(url, ANN)
  expect([refused.status, refused.headers['set-cookie']]).toEqual([429, undefined])
  expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1)
  clock.skip(LONG_MS)
  expect((await open(url, ANN)).status).toBe(303)
})

test('login attempts of a limited address do not extend the limit', async () => {
  const clock = skippableClock()
  const limits = { attemptsPerAddress: 2, attemptWindowMs: LONG_MS }
  const { url } = await startServer({ tokens: TOKENS, limits })
  await guess(token => open(url, token), 2)
  for (let tenth = 0; tenth < 9; tenth++) {
    clock.skip(LONG_MS / 10)
    expect([(await open(url, ANN)).status, (await open(url, `wrong-${tenth}`)).status]).toEqual([429, 429])
  }
  clock.skip(LONG_MS / 10)
  expect((await open(url, ANN)).status).toBe(303)
})

test('wrong bearer tokens and wrong cookies count together with logins, on every protocol', async () => {
  const limits = { attemptsPerAddress: 3, attemptWindowMs: LONG_MS }
  const { url } = await startServer({ tokens: TOKENS, limits })
  expect((await call(url, 'wrong-token-a')).status).toBe(401)
  expect((await rawRequest(url, '/api/info', { headers: { cookie: 'lango=wrong' } })).status).toBe(401)
  expect((await open(url, 'wrong-token-b')).status).toBe(401)
  const native = await call(url, BOB)
  expect([native.status, native.json().code, native.json().retryable]).toEqual([429, 'too-many', true])
  for (const path of ['/v1/models', '/list-apps', '/api/chat/c', '/metrics']) {
    const answer = await rawRequest(url, path, { headers: { authorization: `Bearer ${BOB}` } })
    expect([path, answer.status]).toEqual([path, 429])
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(3000)
  }
  expect((await rawRequest(url, '/api/health')).status).toBe(200)
  expect((await rawRequest(url, '/api/info')).status).toBe(401)
})

test('one wrong token sent many times counts once, so a client with an old token limits nobody', async () => {
  const limits = { attemptsPerAddress: 3, attemptWindowMs: LONG_MS }
  const { url } = await startServer({ tokens: TOKENS, limits })
  for (let i = 0; i < 20; i++) expect((await call(url, 'an-old-token-0123456789')).status).toBe(401)
  expect((await open(url, ANN)).status).toBe(303)
})

test('a successful login clears the wrong attempts of its address, but only once per window', async () => {
  const limits = { attemptsPerAddress: 3, attemptWindowMs: LONG_MS }
  const { url } = await startServer({ tokens: TOKENS, limits })
  const statuses = []
  for (let i = 0; i < 3; i++) {
    statuses.push((await open(url, `wrong-a-${i}`)).status, (await open(url, `wrong-b-${i}`)).status)
    statuses.push((await open(url, ANN)).status)
  }
  expect(statuses.slice(0, 6)).toEqual([401, 401, 303, 401, 401, 303])
  expect(statuses.slice(6, 8)).toEqual([401, 429])
})

test('a signed-in user of a limited address stays signed in, unless the token is short', async () => {
  const limits = { attemptsPerAddress: 3, attemptWindowMs: LONG_MS }
  const { url } = await startServer({ tokens: { ...TOKENS, 'short-one': 'eve' }, limits })
  const cookie = cookieOf(await open(url, ANN))
  expect((await call(url, 'short-one')).status).toBe(200)
  await guess(token => call(url, token), 3)
  expect((await rawRequest(url, '/api/info', { headers: { cookie } })).json()).toMatchObject({ user: 'ann' })
  expect((await call(url, ANN)).status).toBe(200)
  expect((await call(url, BOB)).status).toBe(429)
  expect((await call(url, 'short-one')).status).toBe(429)
  expect((await call(url, 'wrong-token')).status).toBe(429)
})

test('X-Forwarded-For is ignored unless the proxy is configured', async () => {
  const limits = { attemptsPerAddress: 3, attemptWindowMs: LONG_MS }
  const { url } = await startServer({ tokens: TOKENS, limits })
  let sent = 0
  const forged = (token: string) => call(url, token, { 'x-forwarded-for': `192.0.2.${++sent}` })
  expect(await guess(forged, 5)).toEqual([401, 401, 401, 429, 429])
})

test('behind a configured proxy login attempts are limited per client, by the last address that is no proxy', async () => {
  const limits = { attemptsPerAddress: 3, attemptWindowMs: LONG_MS }
  const trustedProxies = ['127.0.0.0/8', '198.51.100.7']
  const { url } = await startServer({ tokens: TOKENS, limits, trustedProxies })
  let sent = 0
  const from = (client: string) => (token: string) =>
    call(url, token, { 'x-forwarded-for': `192.0.2.${++sent}, ${client}, 198.51.100.7` })
  expect(await guess(from('203.0.113.1'), 5)).toEqual([401, 401, 401, 429, 429])
  expect((await from('203.0.113.2')(ANN)).status).toBe(200)
  // A site owns a whole /64 of IPv6, so its addresses count as one.
  let host = 0
  const ipv6 = (token: string) => from(`2001:db8:1:2::${++host}`)(token)
  expect(await guess(ipv6, 5)).toEqual([401, 401, 401, 429, 429])
  expect((await from('2001:db8:1:3::1')(ANN)).status).toBe(200)
  expect((await from('::ffff:203.0.113.1')(ANN)).status).toBe(429)
})

test('an entry of trustedProxies that is no address is refused at start', async () => {
  const started = startServer({ tokens: TOKENS, trustedProxies: ['my-proxy'] })
  await expect(started).rejects.toMatchObject({
    code: 'invalid-config',
    message: expect.stringContaining('"my-proxy"'),
  })
})

test.each<[string, Record<string, string>]>([
  ['of another site', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }],
  ['of a neighbouring site', { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'navigate' }],
  ['that does not say where it comes from', {}],
])('a login link %s sets no cookie and shows a form that asks first', async (_what, headers) => {
  const { url } = await startServer({ tokens: TOKENS, limits: { attemptsPerAddress: 2 } })
  const answer = await open(url, BOB, headers)
  expect([answer.status, answer.headers['set-cookie']]).toEqual([200, undefined])
  expect(answer.text).toContain('<form method="post" action="/login">')
  expect(answer.headers['content-security-policy']).toContain("frame-ancestors 'none'")
  // Such links are not tried, so a foreign page cannot use up the attempts of its visitor.
  expect(await guess(token => open(url, token, headers), 4)).toEqual([200, 200, 200, 200])
  expect((await open(url, BOB)).status).toBe(303)
})

test('the login form of the server’s own page signs in, that of another site does not', async () => {
  const { url } = await startServer({ tokens: TOKENS })
  const post = (headers: Record<string, string>, body = `token=${BOB}`) =>
    rawRequest(url, '/login', { method: 'POST', headers: { ...FORM, ...headers }, body })
  for (const headers of [{ origin: 'https://evil.example' }, { origin: 'null' }]) {
    const answer = await post(headers)
    expect([answer.status, answer.headers['set-cookie']]).toEqual([403, undefined])
  }
  const cross = await post({ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' })
  expect([cross.status, cross.headers['set-cookie']]).toEqual([403, undefined])
  const own = await post({ origin: url, 'sec-fetch-site': 'same-origin' })
  expect([own.status, own.headers.location]).toEqual([303, '/'])
  const info = await rawRequest(url, '/api/info', { headers: { cookie: cookieOf(own) } })
  expect(info.json()).toMatchObject({ user: 'bob' })
  expect((await post({})).status).toBe(303)
  expect((await post({ origin: url }, 'token=wrong')).status).toBe(401)
  expect((await post({ origin: url }, `token=${'x'.repeat(50_000)}`)).status).toBe(413)
  expect((await post({ origin: url, 'content-type': 'text/plain' })).status).toBe(400)
})

test('an allowed origin may call the API, but cannot sign a visitor in', async () => {
  const origin = 'https://chat.example.com'
  const { url } = await startServer({ tokens: TOKENS, allowedOrigins: [origin] })
  const answer = await rawRequest(url, '/login', {
    method: 'POST',
    headers: { ...FORM, origin },
    body: `token=${BOB}`,
  })
  expect([answer.status, answer.headers['set-cookie']]).toEqual([403, undefined])
})

test('the login form shows the token as escaped text', async () => {
  const { url } = await startServer({ tokens: TOKENS })
  const answer = await rawRequest(url, `/login?token=${encodeURIComponent('"><script>x()</script>')}`)
  expect(answer.text).not.toContain('<script>')
  expect(answer.text).toContain('&quot;&gt;&lt;script&gt;')
})

test('a configured token hash accepts the token, and neither the hash nor parts of it', async () => {
  const token = newToken()
  const hashed = hashToken(token)
  const { url } = await startServer({ tokens: { [hashed]: 'ann' } })
  expect((await call(url, token)).json()).toMatchObject({ user: 'ann' })
  const cookie = cookieOf(await open(url, token))
  expect((await rawRequest(url, '/api/info', { headers: { cookie } })).json()).toMatchObject({ user: 'ann' })
  const digest = hashed.split(':')[1] ?? ''
  const base64 = Buffer.from(digest, 'hex').toString('base64url')
  const sha256 = createHash('sha256').update(token).digest('hex')
  for (const stolen of [hashed, digest, base64, sha256]) {
    expect((await call(url, stolen)).status).toBe(401)
    const asCookie = await rawRequest(url, '/api/info', { headers: { cookie: `lango=${stolen}` } })
    expect(asCookie.status).toBe(401)
  }
})

test.each([
  ['sha256:'.padEnd(71, 'a'), 'token new'],
  ['lango-sha256:abc', 'token new'],
  ['seven-7', 'at least 8 characters'],
  ['a token with spaces', 'without spaces'],
])('the token entry %s is refused at start, and is not in the message', async (entry, rule) => {
  const started = startServer({ tokens: { [entry]: 'ann' } })
  await expect(started).rejects.toMatchObject({
    code: 'invalid-config',
    message: expect.stringContaining(rule),
  })
  await expect(started).rejects.not.toMatchObject({ message: expect.stringContaining(entry) })
})

test('no token, right or wrong, is in the log or in an answer; a limited address is logged once', async () => {
  const logged: string[] = []
  const write = (message: string, fields?: object) => logged.push(`${message} ${JSON.stringify(fields)}`)
  const logger = { debug: write, info: write, warn: write, error: write }
  const limits = { attemptsPerAddress: 2, attemptWindowMs: LONG_MS }
  const { url } = await startServer({ tokens: TOKENS, logger, limits })
  const answers = [await open(url, ANN), await call(url, ANN), await open(url, 'wrong-secret-0')]
  for (let i = 1; i < 5; i++) answers.push(await call(url, `wrong-secret-${i}`))
  const texts = answers.map(({ text, headers }) => `${text} ${JSON.stringify(headers)}`)
  expect([...logged, ...texts].join('\n')).not.toMatch(/wrong-secret|token-of-ann/)
  expect(logged.filter(line => line.includes('"address":"127.0.0.1"'))).toHaveLength(1)
})
