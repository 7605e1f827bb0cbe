// A request that is sent twice: by a key, by a client's count of retries, or byte by byte.
import { expect, test } from 'vitest'
import { AgentError, type AgentErrorCode } from '../../../src/errors.js'
import { silentLogger } from '../../../src/logger.js'
import { serve } from '../../../src/server/serve.js'
import { temporaryFolder } from '../../support/temporary-folder.js'
import { longUnless } from '../../support/tiers.js'
import { type OnceServer, signal, startOnceServer } from './once-server.js'
import { until } from './support.js'

type Headers = Record<string, string>

interface Protocol {
  path: string
  body(text: string): object
  headers?: Headers
  /** The session must exist before. */
  needsSession?: boolean
}

const PROTOCOLS: Readonly<Record<string, Protocol>> = {
  'native API': { path: '/api/sessions/s/runs', body: text => ({ text }) },
  'OpenAI with a session': {
    path: '/v1/chat/completions',
    headers: { 'x-lango-session': 's' },
    body: text => ({ model: 'lango', messages: [{ role: 'user', content: text }] }),
  },
  'OpenAI with a session, streamed': {
    path: '/v1/chat/completions',
    headers: { 'x-lango-session': 's' },
    body: text => ({
      model: 'lango',
      stream: true,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: text },
      ],
    }),
  },
  'OpenAI without a session': {
    path: '/v1/chat/completions',
    body: text => ({ model: 'lango', messages: [{ role: 'user', content: text }] }),
  },
  'OpenAI without a session, streamed': {
    path: '/v1/chat/completions',
    body: text => ({ model: 'lango', stream: true, messages: [{ role: 'user', content: text }] }),
  },
  'AI SDK': {
    path: '/api/chat',
    body: text => ({
      id: 's',
      trigger: 'submit-message',
      messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text }] }],
    }),
  },
  'ADK /run': { path: '/run', needsSession: true, body: adkBody },
  'ADK /run_sse': { path: '/run_sse', needsSession: true, body: adkBody },
}

function adkBody(text: string): object {
  const newMessage = { role: 'user', parts: [{ text }] }
  return { appName: 'lango', userId: 'user', sessionId: 's', newMessage }
}

const ALL = Object.entries(PROTOCOLS)
/** Those whose answer is that of the run. */
const ANSWERING = ALL.filter(([name]) => name !== 'native API')
/** Those that only stream what another one returns whole: rows of `npm run test:long`. */
const STREAMED = ['OpenAI with a session, streamed', 'OpenAI without a session, streamed', 'ADK /run_sse']

function testEach(
  protocols: readonly (readonly [string, Protocol])[],
  title: string,
  check: (protocol: Protocol, name: string) => Promise<void>,
  isShort = (name: string) => !STREAMED.includes(name),
): void {
  for (const [name, protocol] of protocols)
    test(`${name}: ${title}`, longUnless(isShort(name)), () => check(protocol, name))
}

interface Sent {
  status: number
  runId: string
  text: string
  headers: globalThis.Headers
}

async function send(
  { url }: OnceServer,
  { path, body, headers }: Protocol,
  { text = 'pay', headers: more = {} }: { text?: string; headers?: Headers } = {},
): Promise<Sent> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers, ...more },
    body: JSON.stringify(body(text)),
  })
  const answer = await response.text()
  const runId = response.headers.get('x-lango-run') ?? /"runId":"([^"]+)"/.exec(answer)?.[1] ?? ''
  return { status: response.status, runId, text: answer, headers: response.headers }
}

async function start(
  protocol: Protocol,
  options: Parameters<typeof startOnceServer>[0] = {},
): Promise<OnceServer> {
  const server = await startOnceServer(options)
  const key = { appName: 'lango', userId: 'user', sessionId: 's' }
  if (protocol.needsSession) await server.runtime.store.createSession(key)
  return server
}

/**
 * Counts the requests that have looked for the run that they may repeat. One that finds it working follows it,
 * whatever happens then.
 */
function watchLooks({ runtime: { store } }: OnceServer): () => Promise<number> {
  let looks = 0
  const list = store.runs.listRuns.bind(store.runs)
  store.runs.listRuns = async (key, options) => {
    const runs = await list(key, options)
    if (options?.limit === 20) looks += 1
    return runs
  }
  // A request without a session notes in the title of its own session that it is repeated.
  return async () => {
    const { sessions } = await store.listSessions({ appName: 'lango' })
    const isRepeated = sessions.some(({ title }) => title?.endsWith('repeated'))
    return isRepeated ? 2 : looks
  }
}

async function untilEnded({ runtime }: OnceServer, runId: string): Promise<void> {
  await until(async () => (await runtime.store.runs.findRun(runId))?.finished === true)
}

const MORE: Readonly<Record<string, Protocol>> = {
  'OpenAI Responses': { path: '/v1/responses', body: text => ({ model: 'lango', input: text }) },
  'OpenAI Responses, streamed': {
    path: '/v1/responses',
    body: text => ({ model: 'lango', input: text, stream: true }),
  },
  'AG-UI': {
    path: '/agui',
    body: text => ({
      ...{ threadId: 's', runId: 'r', state: {}, tools: [], context: [], forwardedProps: {} },
      messages: [{ id: 'u1', role: 'user', content: text }],
    }),
  },
  'A2A SendMessage': { path: '/a2a', body: text => a2aBody('SendMessage', text) },
  'A2A SendStreamingMessage': { path: '/a2a', body: text => a2aBody('SendStreamingMessage', text) },
}

function a2aBody(method: string, text: string): object {
  const message = { messageId: 'm1', contextId: 's', role: 'ROLE_USER', parts: [{ text }] }
  return { jsonrpc: '2.0', id: 1, method, params: { message } }
}

/** One of each protocol. */
const CLOSED = [
  'OpenAI with a session',
  'OpenAI without a session, streamed',
  'AI SDK',
  'ADK /run',
  'OpenAI Responses',
  'AG-UI',
  'A2A SendMessage',
]

/** Those whose answer is no stream. */
const WHOLE = [
  'OpenAI with a session',
  'OpenAI without a session',
  'ADK /run',
  'OpenAI Responses',
  'A2A SendMessage',
]

testEach(
  [...ANSWERING, ...Object.entries(MORE)],
  'a server that closes during a request asks for it again, and the next one returns the answer of its run',
  async (protocol, name) => {
    const [charged, released] = [signal(), signal()]
    const first = await start(protocol, { held: released.given, onCharge: charged.give })
    const headers = {
      ...(name.startsWith('A2A') ? { 'a2a-version': '1.0' } : {}),
      // The server waits half a second for a connection that stays open after its answer.
      ...(WHOLE.includes(name) ? { connection: 'close' } : {}),
    }
    const cut = send(first, protocol, { headers }).catch((error: unknown) => error)
    await charged.given
    await first.close()
    // A stream that has begun breaks off; an answer without a byte has a status.
    const answer = await cut
    if (answer instanceof Error) expect(answer.message).toBe('terminated')
    else {
      const { status, headers: sent } = answer as Sent
      const isRetried = [status, sent.get('retry-after'), sent.get('x-should-retry')]
      expect(isRetried).toEqual([503, '1', 'true'])
    }
    const { runtime } = first
    const options = { port: 0, host: '127.0.0.1', version: '0', logger: silentLogger, graceMs: 0 }
    const second = await serve({ runtime, ...options })
    released.give()
    await until(() => runtime.active().length === 0)
    // The AI SDK reads the stream of its chat again, and does not repeat the message.
    if (name === 'AI SDK') return second.close()
    const whole = await send({ ...first, url: second.url }, protocol, { headers })
    expect(whole).toMatchObject({ status: 200, text: expect.stringContaining('Charged.') })
    expect(first.charges()).toBe(1)
    expect(await first.userTexts()).toEqual(['pay'])
    await second.close()
  },
  name => CLOSED.includes(name),
)

testEach(ALL, 'the same Idempotency-Key twice is one run, with its answer', async protocol => {
  const server = await start(protocol)
  const headers = { 'idempotency-key': 'order 66' }
  const first = await send(server, protocol, { headers })
  await untilEnded(server, first.runId)
  const second = await send(server, protocol, { headers })
  expect(second).toMatchObject({ status: first.status, runId: first.runId })
  expect(second.text.includes('Charged.')).toBe(first.text.includes('Charged.'))
  expect(server.charges()).toBe(1)
  expect(await server.userTexts()).toEqual(['pay'])
})

testEach(ALL, 'the same Idempotency-Key with another message is refused', async protocol => {
  const server = await start(protocol)
  const headers = { 'idempotency-key': 'k' }
  const { runId } = await send(server, protocol, { headers })
  await untilEnded(server, runId)
  const other = await send(server, protocol, { headers, text: 'pay twice' })
  expect(other.status).toBe(400)
  expect(other.text).toContain('Use a new key for a new request')
  expect(server.charges()).toBe(1)
})

test('another Idempotency-Key with the same message is another run', async () => {
  const protocol = PROTOCOLS['OpenAI with a session'] as Protocol
  const server = await start(protocol)
  await send(server, protocol, { headers: { 'idempotency-key': 'a' } })
  await send(server, protocol, { headers: { 'idempotency-key': 'b' } })
  expect(server.charges()).toBe(2)
})

test.each([
  ['an empty', ''],
  ['a long', 'k'.repeat(256)],
  ['a non-ASCII', 'caf\u00e9'],
])('%s Idempotency-Key is refused', async (_name, key) => {
  const protocol = PROTOCOLS['OpenAI without a session'] as Protocol
  const server = await start(protocol)
  const { status, text } = await send(server, protocol, { headers: { 'idempotency-key': key } })
  expect(status).toBe(400)
  expect(text).toContain('1 to 255 printable')
  expect(await server.userTexts()).toEqual([])
})

test('the same Idempotency-Key of two users is two runs', async () => {
  const protocol = PROTOCOLS['OpenAI with a session'] as Protocol
  const tokens = { 'token-of-ann': 'ann', 'token-of-bob': 'bob' }
  const server = await start(protocol, { tokens })
  for (const token of Object.keys(tokens)) {
    const headers = { authorization: `Bearer ${token}`, 'idempotency-key': 'k' }
    expect((await send(server, protocol, { headers })).status).toBe(200)
  }
  expect(server.charges()).toBe(2)
})

testEach(
  ANSWERING,
  'a request that is repeated while its run works gets its answer, as the first does',
  async protocol => {
    const held = signal()
    const begun = signal()
    const server = await start(protocol, { held: held.given, onCharge: begun.give })
    const looks = watchLooks(server)
    const first = send(server, protocol)
    await begun.given
    const second = send(server, protocol)
    await until(async () => (await looks()) === 2)
    held.give()
    const [one, other] = await Promise.all([first, second])
    expect(one).toMatchObject({ status: 200 })
    expect(other).toMatchObject({ status: 200, runId: one.runId })
    for (const { text } of [one, other]) expect(text).toContain('Charged.')
    expect(server.charges()).toBe(1)
  },
)

testEach(ANSWERING, 'a request that is sent twice at once is one run', async protocol => {
  const held = signal()
  const server = await start(protocol, { held: held.given })
  const looks = watchLooks(server)
  const sent = [send(server, protocol), send(server, protocol)]
  await until(async () => (await looks()) === 2)
  held.give()
  const [one, other] = await Promise.all(sent)
  expect(one).toMatchObject({ status: 200, runId: other?.runId })
  expect(other?.status).toBe(200)
  expect(server.charges()).toBe(1)
  expect(await server.userTexts()).toEqual(['pay'])
  const instructions = JSON.stringify(protocol.body('')).includes('system') ? ['[System: Be brief.]'] : []
  expect(await server.userTexts('system')).toEqual(instructions)
})

testEach(ANSWERING, 'a request that is repeated after it has failed gets the failure', async protocol => {
  const answer = new AgentError('provider-overloaded', 'Overloaded', { retryable: true })
  const server = await start(protocol, { answer })
  const first = await send(server, protocol)
  const second = await send(server, protocol)
  expect(second).toMatchObject({ status: first.status, runId: first.runId })
  expect(second.text).toContain('Overloaded')
  expect(server.charges()).toBe(1)
  expect(await server.userTexts()).toEqual(['pay'])
})

testEach(
  ANSWERING,
  'a request that is repeated after it was answered is a new message',
  async (protocol, name) => {
    const server = await start(protocol)
    const first = await send(server, protocol)
    const second = await send(server, protocol)
    expect(second.text).toContain('Charged.')
    if (!name.includes('without')) expect(second.runId).not.toBe(first.runId)
    expect(server.charges()).toBe(2)
  },
)

testEach(
  ANSWERING.filter(([name]) => !name.includes('without')),
  'a request that was answered, repeated with the client’s own retry count, gets the answer',
  async protocol => {
    const server = await start(protocol)
    const first = await send(server, protocol, { headers: { 'x-stainless-retry-count': '0' } })
    const second = await send(server, protocol, { headers: { 'x-stainless-retry-count': '1' } })
    expect(second).toMatchObject({ status: 200, runId: first.runId })
    expect(second.text).toContain('Charged.')
    expect(server.charges()).toBe(1)
  },
)

testEach(
  ANSWERING,
  'a request that is repeated on another server of the store is one run',
  async protocol => {
    const store = `sqlite:${await temporaryFolder()}/lango.db`
    const held = signal()
    const begun = signal()
    const one = await start(protocol, { store, held: held.given, onCharge: begun.give })
    const other = await startOnceServer({ store })
    const looks = watchLooks(other)
    const first = send(one, protocol)
    await begun.given
    const second = send(other, protocol)
    await until(async () => (await looks()) > 0)
    held.give()
    expect((await second).runId).toBe((await first).runId)
    expect((await second).text).toContain('Charged.')
    expect(one.charges() + other.charges()).toBe(1)
  },
)

testEach(
  ANSWERING,
  'a request that is repeated after a restart of the server still gets its failure',
  async protocol => {
    const store = `sqlite:${await temporaryFolder()}/lango.db`
    const answer = new AgentError('provider-unavailable', 'Unreachable', { retryable: true })
    const before = await start(protocol, { store, answer })
    const first = await send(before, protocol)
    await before.close()
    await before.runtime.close()
    const after = await startOnceServer({ store })
    expect((await send(after, protocol)).runId).toBe(first.runId)
    expect(after.charges()).toBe(0)
    expect(await after.userTexts()).toEqual(['pay'])
  },
)

test('a stopped run of a request without a session is a failure, also for a repeat of the request', async () => {
  const protocol = PROTOCOLS['OpenAI without a session'] as Protocol
  const held = signal()
  const begun = signal()
  const server = await start(protocol, { held: held.given, onCharge: begun.give })
  const first = send(server, protocol)
  await begun.given
  const { sessions } = await server.runtime.store.listSessions({ appName: 'lango' })
  const runs = await Promise.all(sessions.map(({ key }) => server.runtime.store.runs.listRuns(key)))
  const [run] = runs.flat()
  await fetch(`${server.url}/api/runs/${run?.runId}/stop`, { method: 'POST' })
  expect(await first).toMatchObject({ status: 400, runId: run?.runId })
  const again = await send(server, protocol)
  expect(again).toMatchObject({ status: 400, runId: run?.runId })
  expect(again.text).toContain('aborted')
  held.give()
  expect(server.charges()).toBe(1)
})

const CODES: readonly [AgentErrorCode, number][] = [
  ['provider-auth', 403],
  ['provider-quota', 402],
  ['provider-rate-limit', 400],
  ['provider-overloaded', 400],
  ['provider-unavailable', 400],
  ['provider-rejected', 400],
  ['provider-stream', 400],
  ['provider-blocked', 400],
  ['context-overflow', 400],
  ['internal', 400],
]

test.each(['OpenAI with a session', 'OpenAI without a session', 'ADK /run'])(
  '%s: a failure after the message was stored has the status of its code, and clients are asked not to retry',
  async name => {
    const protocol = PROTOCOLS[name] as Protocol
    let answer: AgentError | undefined
    const server = await start(protocol, { answer: () => answer ?? 'Charged.' })
    for (const [code, status] of CODES) {
      answer = new AgentError(code, 'It failed.', { retryable: true })
      const sent = await send(server, protocol, { text: code })
      expect(sent.status, code).toBe(status)
      expect(sent.headers.get('x-should-retry'), code).toBe('false')
      expect(sent.headers.get('retry-after'), code).toBeNull()
      expect(sent.text).toContain(code)
    }
  },
)

test('a store that fails while the answer is read is a 400 that asks clients not to retry', async () => {
  const gone = () => Promise.reject(new AgentError('store-unavailable', 'Gone', { retryable: true }))
  for (const name of ['OpenAI with a session', 'AI SDK', 'ADK /run']) {
    const protocol = PROTOCOLS[name] as Protocol
    const server = await start(protocol)
    server.runtime.store.runs.readEvents = gone
    if (name === 'ADK /run') server.runtime.events = gone
    const sent = await send(server, protocol, { headers: { 'idempotency-key': 'k' } })
    expect(sent.status, name).toBe(400)
    expect(sent.headers.get('x-should-retry'), name).toBe('false')
  }
})

test('a request that is refused before anything is stored is a 429 that can be retried', async () => {
  for (const [name, protocol] of ALL) {
    const server = await start(protocol, { limits: { runsPerUser: 0 } })
    const sent = await send(server, protocol)
    expect(sent.status, name).toBe(429)
    expect(sent.headers.get('retry-after'), name).toBe('5')
    expect(sent.headers.get('x-should-retry'), name).toBeNull()
    expect(await server.userTexts()).toEqual([])
  }
})
