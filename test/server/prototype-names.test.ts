// Names that every plain object inherits, in every place of a request where a client may choose a name.
import { expect, test } from 'vitest'
import { failuresByName, PROTOTYPE_NAMES, withKey } from '../support/prototype-names.js'
import { rawRequest } from '../support/raw-request.js'
import { startServer } from '../support/start-server.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const post = (url: string, path: string, body: unknown, headers: Record<string, string> = {}) =>
  rawRequest(url, path, {
    method: 'POST',
    headers: { ...JSON_TYPE, ...headers },
    body: JSON.stringify(body),
  })

test('inherited names are sessions, titles and state keys of the native API', async () => {
  const { url, client, runtime } = await startServer()
  const check = async (name: string) => {
    await client.createSession({ sessionId: name, title: name })
    const stateDelta = withKey(name, 'x')
    const started = await post(url, `/api/sessions/${name}/runs`, { text: 'say 1', stateDelta })
    const key = { appName: 'lango', userId: 'user', sessionId: name }
    if (name === '__proto__') {
      expect(started.status).toBe(400)
      expect(started.json()).toMatchObject({ detail: expect.stringContaining('"__proto__"') })
      return
    }
    expect(started.status).toBe(202)
    for await (const _event of client.follow(started.json().runId));
    expect(Object.entries((await runtime.store.loadSession(key))?.state ?? {})).toEqual([[name, 'x']])
    expect(await client.session(name)).toMatchObject({ sessionId: name, title: name, totalMessages: 2 })
    const { sessions } = await client.sessions({ search: name })
    expect(sessions.map(({ sessionId }) => sessionId)).toEqual([name])
    await client.deleteSession(name)
    await expect(client.session(name)).rejects.toMatchObject({ code: 'session-not-found' })
  }
  expect(await failuresByName(check)).toEqual([])
})

test('inherited names as header, query parameter and unknown key change no answer', async () => {
  const { url } = await startServer()
  const check = async (name: string) => {
    for (const path of ['/api/info', '/api/sessions', '/api/models']) {
      const plain = await rawRequest(url, path)
      const odd = await rawRequest(url, `${path}?${name}=1&${name}[${name}]=2`, {
        headers: { [`x-${name}`]: '1' },
      })
      expect([odd.status, odd.text]).toEqual([plain.status, plain.text])
      const header = await rawRequest(url, path, { headers: withKey(name, '1') })
      expect([header.status, header.text]).toEqual([plain.status, plain.text])
    }
    expect((await post(url, '/api/sessions', withKey(name, 1))).status).toBe(201)
    expect((await rawRequest(url, `/${name}`)).status).toBe(404)
    expect((await rawRequest(url, `/api/${name}`)).status).toBe(404)
    expect((await rawRequest(url, `/api/runs/${name}`)).status).toBe(400)
  }
  expect(await failuresByName(check)).toEqual([])
})

test('inherited names are no models and no runs', async () => {
  const { url } = await startServer()
  const check = async (name: string) => {
    const run = await post(url, '/api/sessions/s/runs', { text: 'say 1', model: `${name}/m` })
    expect(run.status).toBe(400)
    const chat = { model: name, messages: [{ role: 'user', content: 'say 1' }] }
    const completion = await post(url, '/v1/chat/completions', chat)
    expect(completion.status).toBeLessThan(500)
    expect((await rawRequest(url, `/v1/models/${name}`)).status).toBe(404)
  }
  expect(await failuresByName(check)).toEqual([])
})

test('inherited names are ordinary names in the protocols of ADK, OpenAI and the AI SDK', async () => {
  const { url, runtime } = await startServer()
  const check = async (name: string) => {
    const session = `/apps/lango/users/user/sessions/${name}`
    const made = await post(url, session, { state: withKey(name, 'x') })
    if (name === '__proto__') {
      expect(made.status).toBe(400)
      expect((await post(url, session, { state: {} })).status).toBe(200)
    } else {
      expect([made.status, made.json().id, made.json().state[name]]).toEqual([200, name, 'x'])
    }
    expect((await rawRequest(url, `/apps/${name}/users/user/sessions/s`)).status).toBe(404)
    const newMessage = { role: 'user', parts: [{ text: 'say 1', ...withKey(name, 1) }] }
    const run = await post(url, '/run', { appName: 'lango', userId: 'user', sessionId: name, newMessage })
    expect(run.status).toBeLessThan(500)
    const asked = { model: 'play/model', messages: [{ role: 'user', content: 'say 1' }], ...withKey(name, 1) }
    // An argument that OpenAI does not know is refused by its name.
    const refused = await post(url, '/v1/chat/completions', asked)
    expect([refused.status, refused.json().error.message]).toEqual([400, expect.stringContaining(name)])
    const parts = [{ type: 'text', text: 'say 1', ...withKey(name, { [name]: 1 }) }]
    const said = {
      id: `chat-${name}`,
      messages: [{ id: name, role: 'user', parts }],
      trigger: 'submit-message',
    }
    expect((await post(url, '/api/chat', said)).status).toBe(200)
    const key = { appName: 'lango', userId: 'user', sessionId: `chat-${name}` }
    expect(await runtime.store.loadSession(key)).toBeDefined()
  }
  expect(await failuresByName(check)).toEqual([])
})

test('inherited names are names of users, and no tokens', async () => {
  const tokens = Object.fromEntries(PROTOTYPE_NAMES.map(name => [`${name}-0123456789abcdef`, name]))
  // Every wrong token counts as an attempt to guess one.
  const { url } = await startServer({ tokens, limits: { attemptsPerAddress: 2 * PROTOTYPE_NAMES.length } })
  for (const name of PROTOTYPE_NAMES) {
    const asked = (token: string) =>
      rawRequest(url, '/api/info', { headers: { authorization: `Bearer ${token}` } })
    expect((await asked(`${name}-0123456789abcdef`)).json()).toMatchObject({ user: name })
    expect((await asked(name)).status).toBe(401)
  }
})
