// The `openai` client, as its users use it, against the server.
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import { gate } from '../../support/paced-model.js'
import {
  heldTool,
  type ProtocolServer,
  searchThenTell,
  sessionIds,
  startProtocolServer,
  until,
} from './support.js'

function clientOf({ url }: ProtocolServer, session?: string, apiKey = 'none'): OpenAI {
  const defaultHeaders = session === undefined ? {} : { 'x-lango-session': session }
  return new OpenAI({ baseURL: `${url}/v1`, apiKey, defaultHeaders, maxRetries: 0 })
}

type Said = OpenAI.Chat.ChatCompletionMessageParam

function says(content: string): Said {
  return { role: 'user', content }
}

async function streamed(client: OpenAI, messages: Said[]) {
  const stream = await client.chat.completions.create({
    model: 'lango',
    messages,
    stream: true,
    stream_options: { include_usage: true },
  })
  let text = ''
  let finish: string | null = null
  let usage: OpenAI.CompletionUsage | null | undefined
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? ''
    finish = chunk.choices[0]?.finish_reason ?? finish
    usage = chunk.usage ?? usage
  }
  return { text, finish, usage }
}

test('chat completions without a session: a streamed conversation of several turns with tools of the agent', async () => {
  const server = await startProtocolServer({ script: searchThenTell })
  const client = clientOf(server)
  const messages: Said[] = []
  for (const words of ['apples', 'pears', 'plums']) {
    messages.push(says(words))
    const { text, finish, usage } = await streamed(client, messages)
    expect(text).toBe(`Let me look.\n\nI found ${words}.`)
    expect(finish).toBe('stop')
    expect(usage).toMatchObject({ prompt_tokens: 30, completion_tokens: 8, total_tokens: 38 })
    messages.push({ role: 'assistant', content: text })
  }
  expect(server.provider.violations).toEqual([])
  expect(server.provider.requests).toHaveLength(6)
  const [last] = server.provider.requests.slice(-2)
  expect(JSON.stringify(last?.body)).toContain('I found apples.')
  await until(async () => (await sessionIds(server.runtime)).length === 0)
})

test('chat completions with a session: only the messages after the last answer are added', async () => {
  const server = await startProtocolServer({ script: searchThenTell })
  const client = clientOf(server, 'fruit')
  const { data, response } = await client.chat.completions
    .create({ model: 'root', messages: [says('apples')] })
    .withResponse()
  expect(data.choices[0]?.message.content).toBe('Let me look.\n\nI found apples.')
  expect(data.object).toBe('chat.completion')
  expect(data.model).toBe('strict/gpt-4.1')
  expect(response.headers.get('x-lango-session')).toBe('fruit')
  const runId = response.headers.get('x-lango-run') ?? ''
  expect(await server.runtime.inspect(runId)).toMatchObject({ runId })
  await streamed(client, [says('apples'), { role: 'assistant', content: 'whatever' }, says('pears')])
  await streamed(client, [says('plums')])
  const stored = await server.runtime.messages({ appName: 'lango', userId: 'user', sessionId: 'fruit' })
  const users = stored.filter(({ role }) => role === 'user').map(({ parts }) => parts)
  expect(users).toEqual(['apples', 'pears', 'plums'].map(text => [{ type: 'text', text }]))
  expect(server.provider.violations).toEqual([])
})

test('chat completions send instructions, images and tool calls of the client to the model', async () => {
  const server = await startProtocolServer({ script: [{ text: 'A dot.' }] })
  const pixel = 'data:image/png;base64,iVBORw0KGgo='
  const call = {
    id: 'call_9',
    type: 'function',
    function: { name: 'look', arguments: '{"at":1}' },
  } as const
  const answer = await clientOf(server).chat.completions.create({
    model: 'strict/gpt-4.1-mini',
    messages: [
      { role: 'system', content: 'Be brief.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'one' },
          { type: 'image_url', image_url: { url: pixel } },
        ],
      },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_9', content: 'seen' },
      { role: 'assistant', content: 'I saw it.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'two' },
          { type: 'image_url', image_url: { url: pixel } },
        ],
      },
    ],
  })
  expect(answer.choices[0]?.message.content).toBe('A dot.')
  expect(server.provider.violations).toEqual([])
  const body = server.provider.requests[0]?.body as { model: string; messages: { role: string }[] }
  expect(body.model).toBe('gpt-4.1-mini')
  // The client's instruction is a message of its own, so that later requests extend this one.
  expect(body.messages.map(({ role }) => role)).toEqual([
    'system',
    'user',
    'user',
    'assistant',
    'tool',
    'assistant',
    'user',
  ])
  const sent = JSON.stringify(body.messages)
  expect(sent).toContain('[System: Be brief.]')
  expect(sent.split(pixel)).toHaveLength(3)
  expect(sent).toContain('seen')
})

test('chat completions: a truncated answer and the turn limit end with finish_reason length', async () => {
  const cut = await startProtocolServer({ script: [{ text: 'half', finish: 'length' }] })
  expect((await streamed(clientOf(cut), [says('x')])).finish).toBe('length')
  const limited = await startProtocolServer({ script: searchThenTell, maxTurns: 1 })
  const answer = await clientOf(limited).chat.completions.create({ model: 'lango', messages: [says('x')] })
  expect(answer.choices[0]?.finish_reason).toBe('length')
})

test('/v1/models lists models, and each can be retrieved', async () => {
  const server = await startProtocolServer()
  const client = clientOf(server)
  const { data } = await client.models.list()
  expect(data.map(({ id }) => id).slice(0, 2)).toEqual(['lango', 'root'])
  const reference = data.find(({ owned_by }) => owned_by === 'strict')?.id ?? ''
  expect(await client.models.retrieve(reference)).toMatchObject({ id: reference, object: 'model' })
  await expect(client.models.retrieve('nothing')).rejects.toMatchObject({ status: 404 })
})

test.each([
  ['tools', { tools: [{ type: 'function', function: { name: 'search' } }] }, 'invalid-argument'],
  ['tools.0.type', { tools: [{ type: 'custom', custom: { name: 'mine' } }] }, 'unsupported_parameter'],
  ['tool_choice', { tool_choice: 'required' }, 'invalid_value'],
  ['functions', { functions: [{ name: 'a' }], tools: [call('b')] }, 'invalid_value'],
  ['n', { n: 2 }, 'unsupported_parameter'],
  ['logprobs', { logprobs: true }, 'unsupported_parameter'],
  ['logit_bias', { logit_bias: { 50256: -100 } }, 'unsupported_parameter'],
  ['store', { store: true }, 'unsupported_parameter'],
  ['service_tier', { service_tier: 'flex' }, 'unsupported_parameter'],
  ['stream_options', { stream_options: { include_usage: true } }, 'invalid_value'],
  ['temperature', { temperature: 3 }, 'invalid-argument'],
  ['wishes', { wishes: 1 }, 'unknown_parameter'],
  ['messages', { messages: [{ role: 'assistant', content: 'I said.' }] }, 'invalid-argument'],
  ['messages', { messages: [] }, 'invalid-argument'],
  ['messages.0.role', { messages: [{ role: 'nobody', content: 'x' }] }, 'invalid-argument'],
  ['messages.0.content.0.image_url.url', { messages: [{ role: 'user', content: [image('ftp://x')] }] }, ''],
])('a chat completion with an unusable %s is a 400 that names it', async (param, body, code) => {
  const server = await startProtocolServer()
  const request = { model: 'lango', messages: [says('hi')], ...body }
  const failure = await clientOf(server)
    .chat.completions.create(request as OpenAI.Chat.ChatCompletionCreateParamsNonStreaming)
    .catch(error => error)
  expect(failure).toBeInstanceOf(OpenAI.BadRequestError)
  expect(failure).toMatchObject({ status: 400, param, type: 'invalid_request_error' })
  if (code !== '') expect(failure.code).toBe(code)
  expect(server.provider.requests).toHaveLength(0)
  expect(await sessionIds(server.runtime)).toEqual([])
})

test('a chat completion of an unknown model is a 404, with and without a stream', async () => {
  const server = await startProtocolServer()
  for (const stream of [true, false]) {
    const request = { model: 'nobody/knows', messages: [says('hi')], stream }
    const failure = await clientOf(server)
      .chat.completions.create(request)
      .catch(error => error)
    expect(failure).toBeInstanceOf(OpenAI.NotFoundError)
    expect(failure).toMatchObject({ code: 'model_not_found', param: 'model' })
  }
  expect(await sessionIds(server.runtime)).toEqual([])
})

test('a chat completion whose provider fails is an error status, with and without a stream, and contains no key', async () => {
  const server = await startProtocolServer({ faults: [{ kind: 'auth' }] })
  for (const stream of [true, false]) {
    const request = { model: 'lango', messages: [says('hi')], stream }
    const failure = await clientOf(server, stream ? 's' : undefined)
      .chat.completions.create(request)
      .catch(error => error)
    expect(failure).toMatchObject({ status: 403, code: 'provider-auth', type: 'server_error' })
    expect(failure.headers.get('x-should-retry')).toBe('false')
  }
})

test('a streamed chat completion whose model breaks off is closed, which is an error for the client', async () => {
  const script = [{ deltas: ['one ', 'two ', 'three ', 'four'] }]
  const server = await startProtocolServer({
    script,
    faults: [{ kind: 'error-in-stream', afterEvents: 3 }],
    serve: { limits: { retryMs: 0 } },
    retry: { baseDelayMs: 1 },
  })
  const failure = await streamed(clientOf(server), [says('hi')]).catch(error => error)
  expect(failure).toMatchObject({ message: 'terminated' })
  await until(async () => (await sessionIds(server.runtime)).length === 0)
})

test('chat completions: users have separate sessions, and a wrong token is refused', async () => {
  const tokens = { 'token-of-ann': 'ann', 'token-of-bob': 'bob' }
  const server = await startProtocolServer({ serve: { tokens } })
  for (const token of Object.keys(tokens)) {
    const client = clientOf(server, 'shared', token)
    await client.chat.completions.create({ model: 'lango', messages: [says(token)] })
  }
  for (const userId of ['ann', 'bob']) {
    const stored = await server.runtime.messages({ appName: 'lango', userId, sessionId: 'shared' })
    expect(stored).toHaveLength(2)
    expect(stored[0]?.parts).toEqual([{ type: 'text', text: `token-of-${userId}` }])
  }
  const stranger = clientOf(server, 'shared', 'token-of-eve').models.list()
  await expect(stranger).rejects.toMatchObject({ status: 401 })
})

test('a streamed chat completion without events counts against streamsPerUser, so that no run starts beyond it', async () => {
  const { passed, open } = gate()
  const server = await startProtocolServer({
    script: () => passed.then(() => ({ text: 'here' })),
    serve: { limits: { streamsPerUser: 1 } },
  })
  const first = streamed(clientOf(server), [says('apples')])
  await until(() => server.provider.requests.length === 1)
  await expect(streamed(clientOf(server), [says('pears')])).rejects.toMatchObject({ status: 429 })
  open()
  expect((await first).text).toBe('here')
  expect(server.provider.requests).toHaveLength(1)
})

test('a client of chat completions that disconnects and does not return stops the run of a temporary session, which is then deleted', async () => {
  const { tool, called, letGo } = heldTool()
  const limits = { retryMs: 0 }
  const server = await startProtocolServer({ script: searchThenTell, tools: [tool], serve: { limits } })
  const leaving = new AbortController()
  const messages = [says('apples')]
  const answer = clientOf(server)
    .chat.completions.create({ model: 'lango', messages, stream: true }, { signal: leaving.signal })
    .then(async stream => {
      for await (const _chunk of stream) {
        // Until it is left.
      }
    })
  await called
  leaving.abort()
  await answer.catch(() => {})
  await until(async () => (await sessionIds(server.runtime)).length === 0)
  letGo()
  expect(server.provider.requests).toHaveLength(1)
})

test('a client of chat completions that disconnects does not stop the run of a named session', async () => {
  const { tool, called, letGo } = heldTool()
  const server = await startProtocolServer({ script: searchThenTell, tools: [tool] })
  const leaving = new AbortController()
  const answer = clientOf(server, 'kept')
    .chat.completions.create({ model: 'lango', messages: [says('apples')] }, { signal: leaving.signal })
    .catch(() => {})
  await called
  leaving.abort()
  await answer
  letGo()
  const key = { appName: 'lango', userId: 'user', sessionId: 'kept' }
  await until(async () => (await server.runtime.messages(key)).length === 4)
  expect((await server.runtime.messages(key)).at(-1)?.parts).toEqual([
    { type: 'text', text: 'I found apples.' },
  ])
})

test('chat completions without a session refuse a tool that needs approval', async () => {
  const script = [{ toolCalls: [{ name: 'danger' }] }, { text: 'Then not.' }]
  const server = await startProtocolServer({ script })
  const answer = await clientOf(server).chat.completions.create({ model: 'lango', messages: [says('go')] })
  expect(answer.choices[0]?.message.content).toBe('Then not.')
  expect(server.provider.violations).toEqual([])
})

function call(name: string): object {
  return { type: 'function', function: { name } }
}

function image(url: string) {
  return { type: 'image_url', image_url: { url } }
}
