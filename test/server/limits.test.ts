// Limits on the number of things in a request: each is refused with its value, what was sent, and its setting.
import { expect, test } from 'vitest'
import type { ServerLimits } from '../../src/server/server-context.js'
import { rawRequest } from '../support/raw-request.js'
import { startServer } from '../support/start-server.js'

const ADK_SESSIONS = '/apps/lango/users/user/sessions'

interface Case {
  name: string
  limits: Partial<ServerLimits>
  path: string
  /** A body with that many things. */
  body: (count: number) => unknown
  most: number
  status: number
  setting: string
}

const CASES: Case[] = [
  {
    name: 'messages of a chat completion',
    limits: { maxMessages: 3 },
    path: '/v1/chat/completions',
    body: count => ({ messages: messages(count) }),
    most: 3,
    status: 413,
    setting: 'server.maxMessages',
  },
  {
    name: 'messages of a chat of the AI SDK',
    limits: { maxMessages: 3 },
    path: '/api/chat',
    body: count => ({
      id: 'chat',
      messages: Array.from({ length: count }, (_, index) => ({
        id: `m${index}`,
        role: 'user',
        parts: [{ type: 'text', text: 'Hello' }],
      })),
    }),
    most: 3,
    status: 413,
    setting: 'server.maxMessages',
  },
  {
    name: 'state keys of a new session',
    limits: { maxStateKeys: 4 },
    path: ADK_SESSIONS,
    body: count => ({ state: keys(count) }),
    most: 4,
    status: 413,
    setting: 'server.maxStateKeys',
  },
  {
    name: 'state keys of a run',
    limits: { maxStateKeys: 4 },
    path: '/api/sessions/s1/runs',
    body: count => ({ text: 'Hello', stateDelta: keys(count) }),
    most: 4,
    status: 413,
    setting: 'server.maxStateKeys',
  },
  {
    name: 'parts of a message',
    limits: { maxParts: 2 },
    path: '/v1/chat/completions',
    body: count => ({
      messages: [
        { role: 'user', content: Array.from({ length: count }, () => ({ type: 'text', text: 'Hello' })) },
      ],
    }),
    most: 2,
    status: 422,
    setting: 'server.maxParts',
  },
  {
    name: 'levels of nested JSON',
    limits: { maxDepth: 6 },
    path: ADK_SESSIONS,
    body: count => ({ state: { key: nested(count - 2) } }),
    most: 6,
    status: 422,
    setting: 'server.maxDepth',
  },
  {
    name: 'JSON values of a body',
    limits: { maxValues: 100 },
    path: ADK_SESSIONS,
    // The body, the state and the list are three of them.
    body: count => ({ state: { list: Array.from({ length: count - 3 }, () => 1) } }),
    most: 100,
    status: 413,
    setting: 'server.maxValues',
  },
]

for (const { name, limits, path, body, most, status, setting } of CASES) {
  test(`as many ${name} as the limit are accepted`, async () => {
    const { url } = await startServer({ limits })
    const answer = await post(url, path, body(most))
    expect(answer.text).not.toContain('limit')
    expect(answer.status).toBeLessThan(300)
  })

  test(`more ${name} than the limit are refused with the limit, the number and the setting`, async () => {
    const { url, client } = await startServer({ limits })
    const answer = await post(url, path, body(most + 1))
    expect(answer.status).toBe(status)
    expect(answer.text).toContain(`${most + 1} `)
    expect(answer.text).toContain(`the limit is ${most}`)
    expect(answer.text).toContain(setting)
    expect((await client.sessions()).sessions).toEqual([])
  })
}

test('the native API refuses a request over a limit with a problem document that has the limit in its details', async () => {
  const { url } = await startServer({ limits: { maxStateKeys: 1 } })
  const answer = await post(url, '/api/sessions/s1/runs', { text: 'Hello', stateDelta: keys(2) })
  expect(answer.json()).toMatchObject({
    code: 'too-large',
    status: 413,
    retryable: false,
    details: { limit: 1, sent: 2, setting: 'server.maxStateKeys' },
  })
})

test('the OpenAI protocol refuses a request over a limit in OpenAI’s form, with the field', async () => {
  const { url } = await startServer({ limits: { maxMessages: 1, maxParts: 1 } })
  const many = await post(url, '/v1/chat/completions', { messages: messages(2) })
  expect(many.json().error).toMatchObject({
    type: 'invalid_request_error',
    param: 'messages',
    code: 'too-large',
  })
  const content = [
    { type: 'text', text: 'one' },
    { type: 'text', text: 'two' },
  ]
  const wide = await post(url, '/v1/chat/completions', { messages: [{ role: 'user', content }] })
  expect(wide.json().error).toMatchObject({ param: 'messages.0.content', code: 'too-complex' })
})

test('a body over maxBodyBytes is refused with its size and the setting', async () => {
  const { url } = await startServer({ limits: { maxBodyBytes: 2000 } })
  const answer = await post(url, '/api/sessions', { title: 'x'.repeat(3000) })
  expect(answer.status).toBe(413)
  expect(answer.json().detail).toBe(
    'The request has 3012 bytes in the body, but the limit is 2000. Send less, or raise server.maxBodyBytes.',
  )
})

test.each([
  ['quotes and backslashes', '"\\\\" , [[[ {{{ \\"'],
  ['brackets', '[{'.repeat(100)],
  ['a backslash at the end', 'x\\'],
])('a JSON string with %s does not count towards maxDepth and maxValues', async (_name, text) => {
  const { url } = await startServer({ limits: { maxDepth: 4, maxValues: 100 } })
  const answer = await post(url, ADK_SESSIONS, { sessionId: 's1', state: { text } })
  expect(answer.json().state).toEqual({ text })
})

test.each(['{"state": "', '{"state": {"a": ', ']]]', '{"a" 1}', '"\\'])(
  'a body that is not JSON is refused (%s)',
  async body => {
    const { url } = await startServer()
    const answer = await rawRequest(url, ADK_SESSIONS, { method: 'POST', headers: JSON_TYPE, body })
    expect(answer.status).toBe(400)
    expect(answer.json().detail).toBe('The body of the request is not JSON.')
  },
)

const JSON_TYPE = { 'content-type': 'application/json' }

function post(url: string, path: string, body: unknown) {
  return rawRequest(url, path, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(body) })
}

function messages(count: number): object[] {
  return Array.from({ length: count }, () => ({ role: 'user', content: 'Hello' }))
}

function keys(count: number): Record<string, number> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`key-${index}`, index]))
}

function nested(levels: number): unknown {
  return levels === 0 ? 1 : [nested(levels - 1)]
}
