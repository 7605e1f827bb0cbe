import { afterEach, beforeAll, expect, test } from 'vitest'
import type { ProviderOptions } from '../../src/provider/provider-settings.js'
import type { StreamEvent } from '../../src/provider/stream-event.js'
import { collect, summarize, testProvider, user } from './collect.js'
import { type ReplayServer, type Reply, startReplayServer } from './replay-server.js'

// Faults of transport and service, met by the vendors' own SDK clients.

let server: ReplayServer | undefined
afterEach(() => server?.close())

interface Family {
  name: string
  model: string
  hello: Reply
  options: (url: string) => ProviderOptions
}

const FAMILIES: Family[] = [
  {
    name: 'gemini',
    model: 'gemini-2.5-flash',
    hello: { file: 'gemini/text-signed.sse' },
    options: url => ({ type: 'gemini', baseUrl: url }),
  },
  {
    name: 'openai chat',
    model: 'gpt-4.1',
    hello: { file: 'openai-chat/text.sse' },
    options: url => ({ type: 'openai', api: 'chat', baseUrl: `${url}/v1` }),
  },
  {
    name: 'openai responses',
    model: 'gpt-5.2',
    hello: { file: 'openai-responses/text.sse' },
    options: url => ({ type: 'openai', baseUrl: `${url}/v1` }),
  },
  {
    name: 'anthropic',
    model: 'claude-haiku-4-5',
    hello: { file: 'anthropic/text.sse' },
    options: url => ({ type: 'anthropic', baseUrl: url }),
  },
]

async function send(
  family: Family,
  replies: Reply[],
  more: Partial<ProviderOptions> = {},
  signal?: AbortSignal,
) {
  server = await startReplayServer(replies)
  const slept: number[] = []
  const provider = testProvider({
    ...family.options(server.url),
    retry: { sleep: async delay => void slept.push(delay), random: () => 0 },
    ...more,
  })
  const events = await collect(provider, { model: family.model }, signal)
  return { events, slept, sent: server.requests.length }
}

const lastError = (events: StreamEvent[]) => {
  const last = events.at(-1)
  return last?.type === 'error' ? last.error : undefined
}

// Loading an SDK counts as waiting for its server: loaded here, so that short timeouts measure the server alone.
beforeAll(async () => {
  await Promise.all([import('openai'), import('@anthropic-ai/sdk'), import('@google/genai')])
})

for (const family of FAMILIES) {
  const body = { error: { message: 'busy', code: 500, type: 'x', status: 'x' } }

  test.each([500, 502, 503, 504, 529, 408])(
    `${family.name} is sent the request again after %i, with one request event`,
    async status => {
      const { events, sent, slept } = await send(family, [{ status, body }, family.hello])
      expect(sent).toBe(2)
      expect(slept).toEqual([250])
      expect(events.filter(event => event.type === 'request')).toHaveLength(1)
      expect(summarize(events)).toContainEqual(['text', 'Hello'])
    },
  )

  test(`${family.name}: a 400 is not retried, and its message is reported`, async () => {
    const { events, sent } = await send(family, [
      { status: 400, body: { error: { message: 'bad turn order' } } },
      family.hello,
    ])
    expect(sent).toBe(1)
    expect(lastError(events)).toMatchObject({
      code: 'provider-rejected',
      details: { status: 400, model: family.model },
    })
    expect(lastError(events)?.message).toContain('bad turn order')
  })

  test.each([
    ['an error body', { error: { message: 'the model is disabled', code: 403 } }, {}, 'provider-auth'],
    ['an error as text', { error: 'the model is disabled' }, {}, 'provider-unavailable'],
    ['a message without error', { message: 'the model is disabled' }, {}, 'provider-unavailable'],
    [
      'an HTML page',
      `<!doctype html><title>Sign in</title><style>p{}</style><p>the model is disabled</p>${'<b>x</b>'.repeat(99_999)}`,
      { 'content-type': 'text/html' },
      'provider-rejected',
    ],
    ['a JSON document', { note: 'the model is disabled' }, {}, 'provider-rejected'],
  ])(
    `${family.name}: the error of status 200 with %s has the words of the provider`,
    async (_name, answer, headers, code) => {
      const reply = { status: 200, body: answer, headers }
      const { events } = await send(family, [reply, reply, reply, reply])
      expect(lastError(events)).toMatchObject({ code })
      expect(lastError(events)?.message).toContain('the model is disabled')
      expect(lastError(events)?.message.length).toBeLessThan(2500)
      expect(lastError(events)?.message).not.toContain('p{}')
    },
  )

  test.each(['null', '7', '"words"'])(`${family.name}: a stream event that is %s is reported`, async data => {
    const name = family.name === 'anthropic' ? 'event: message_start\n' : ''
    const reply = {
      status: 200,
      body: `${name}data: ${data}\n\n`,
      headers: { 'content-type': 'text/event-stream' },
    }
    const { events } = await send(family, [reply, reply, reply, reply])
    expect(lastError(events)).toMatchObject({ code: 'provider-stream', retryable: true })
    // Gemini's SDK leaves such an event out.
    const words = family.name === 'gemini' ? 'without its closing event' : `not a JSON object: ${data}`
    expect(lastError(events)?.message).toContain(words)
  })

  test(`${family.name}: an error message of status 200 is shown without keys`, async () => {
    const reply = {
      status: 200,
      body: { error: { message: 'no: test-key-123 sk-other-key-12345', code: 400 } },
    }
    const { events } = await send(family, [reply])
    expect(lastError(events)?.message).toContain('no: [key] [hidden]')
    expect(JSON.stringify(lastError(events))).not.toMatch(/test-key-123|sk-other/)
  })

  test(`${family.name}: the error of a refused connection names its address and what to check`, async () => {
    const gone = await startReplayServer([])
    await gone.close()
    const { host } = new URL(gone.url)
    const provider = testProvider({ ...family.options(gone.url), retry: { maxAttempts: 1 } })
    const error = lastError(await collect(provider, { model: family.model }))
    expect(error).toMatchObject({ code: 'provider-unavailable', retryable: true, details: { address: host } })
    expect(error?.message).toContain(`no server listens on ${host}`)
    expect(error?.message).toContain('Check that the server is running')
    expect(error?.message).toContain('ECONNREFUSED')
  })

  test(`${family.name}: a baseUrl with a password is refused, and the password is not shown`, () => {
    const create = () => testProvider(family.options('http://ann:hush@127.0.0.1:9'))
    expect(create).toThrow('set `headers.authorization` instead')
    expect(create).not.toThrow('hush')
  })

  test(`${family.name}: the error of TLS to a server without TLS says to use http`, async () => {
    server = await startReplayServer([])
    const options = family.options(server.url.replace('http:', 'https:'))
    const provider = testProvider({ ...options, retry: { maxAttempts: 4 } })
    const error = lastError(await collect(provider, { model: family.model }))
    expect(error).toMatchObject({ code: 'provider-unavailable', retryable: false })
    expect(error?.message).toContain('Use http:// in the baseUrl')
  })

  test(`${family.name}: the request is retried when the connection is reset before the answer`, async () => {
    const { events, sent } = await send(family, [{ reset: true }, family.hello])
    expect(sent).toBe(2)
    expect(events.at(-1)?.type).toBe('done')
  })

  test(`${family.name}: the request fails after four answers of 503`, async () => {
    const { events, sent } = await send(
      family,
      Array.from({ length: 6 }, () => ({ status: 503, body })),
    )
    expect(sent).toBe(4)
    expect(lastError(events)).toMatchObject({ code: 'provider-overloaded', retryable: true })
  })

  test(`${family.name}: the request is not retried when the stream is cut after its first text`, async () => {
    const { events, sent } = await send(family, [
      { ...family.hello, file: noTerminal(family), cut: true } as Reply,
      family.hello,
    ])
    expect(sent).toBe(1)
    expect(summarize(events)).toContainEqual(['text', 'Hel'])
    expect(lastError(events)).toMatchObject({ code: 'provider-stream', retryable: true })
  })

  test(`${family.name}: the request times out when the server sends nothing for too long`, async () => {
    const { events, sent } = await send(family, [{ hang: true }, family.hello], {
      idleTimeoutMs: 250,
      retry: { maxAttempts: 1 },
    })
    expect(sent).toBe(1)
    expect(lastError(events)).toMatchObject({ code: 'provider-stream', retryable: true })
  })

  test(`${family.name}: the request ends as aborted when it is stopped before the answer`, async () => {
    const controller = new AbortController()
    server = await startReplayServer([{ hang: true }])
    const provider = testProvider(family.options(server.url))
    const running = collect(provider, { model: family.model }, controller.signal)
    await until(() => server?.requests.length === 1)
    controller.abort()
    expect(lastError(await running)).toMatchObject({ code: 'aborted', retryable: false })
    await until(() => server?.abandoned() === 1)
  })

  test(`${family.name}: the request ends as aborted when it is stopped during the answer`, async () => {
    const controller = new AbortController()
    server = await startReplayServer([family.hello])
    const provider = testProvider(family.options(server.url))
    const events: StreamEvent[] = []
    for await (const event of provider.generate(
      { model: family.model, messages: [user('hi')] },
      controller.signal,
    )) {
      events.push(event)
      if (event.type === 'text-delta' || event.type === 'reasoning-delta') controller.abort()
    }
    expect(lastError(events)).toMatchObject({ code: 'aborted' })
  })

  test(`${family.name}: nothing is sent when the signal is aborted already`, async () => {
    const { events, sent } = await send(family, [family.hello], {}, AbortSignal.abort())
    expect(sent).toBe(0)
    expect(events.map(event => event.type)).toEqual(['error'])
    expect(lastError(events)).toMatchObject({ code: 'aborted' })
  })

  test(`${family.name}: an abort ends the wait for the next attempt`, async () => {
    const controller = new AbortController()
    const sleep = async () => {
      controller.abort()
      throw new Error('stopped')
    }
    const { events, sent } = await send(
      family,
      [{ status: 503, body }, family.hello],
      { retry: { sleep } },
      controller.signal,
    )
    expect(sent).toBe(1)
    expect(lastError(events)).toMatchObject({ code: 'aborted' })
  })

  test(`${family.name}: nothing is sent when the reader stops at the request event`, async () => {
    server = await startReplayServer([{ hang: true }, family.hello])
    const provider = testProvider(family.options(server.url))
    for await (const event of provider.generate({ model: family.model, messages: [user('hi')] })) {
      expect(event.type).toBe('request')
      break
    }
    expect(server.requests).toHaveLength(0)
  })

  test(`${family.name}: without a key the error names the missing variable, and nothing is sent`, async () => {
    const { events, sent } = await send(family, [family.hello], { apiKey: undefined })
    const variable =
      { gemini: 'GEMINI_API_KEY', anthropic: 'ANTHROPIC_API_KEY' }[family.name] ?? 'OPENAI_API_KEY'
    expect(sent).toBe(0)
    expect(lastError(events)).toMatchObject({ code: 'provider-auth', details: { variable } })
    expect(lastError(events)?.message).toContain(variable)
  })

  test(`${family.name}: the key is in no event and no error`, async () => {
    const leak = {
      error: { message: 'wrong key test-key-123', code: 'invalid_api_key', type: 'authentication_error' },
    }
    const { events } = await send(family, [{ status: 401, body: leak }])
    const error = lastError(events)
    expect(error?.code).toBe('provider-auth')
    const everything = JSON.stringify([
      events,
      error?.message,
      error?.details,
      error?.stack,
      String(error?.cause),
    ])
    expect(everything).not.toContain('test-key-123')
  })
}

function noTerminal(family: Family): string {
  return `${family.name.replace(' ', '-')}/no-terminal.sse`
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let round = 0; round < 500; round += 1) {
    if (await condition()) return
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  throw new Error('the condition never became true')
}

test.each([
  ['openai chat', { 'retry-after': '3' }, { error: { message: 'slow', code: 'rate_limit_exceeded' } }],
  [
    'anthropic',
    { 'retry-after': '3' },
    { type: 'error', error: { type: 'rate_limit_error', message: 'slow' } },
  ],
  [
    'gemini',
    {},
    {
      error: {
        code: 429,
        message: 'slow',
        status: 'RESOURCE_EXHAUSTED',
        details: [{ '@type': 'RetryInfo', retryDelay: '3s' }],
      },
    },
  ],
] as const)('a delay that %s requests is kept before the retry', async (name, headers, body) => {
  const family = FAMILIES.find(one => one.name === name)!
  const { slept, sent } = await send(family, [{ status: 429, body, headers }, family.hello])
  expect(sent).toBe(2)
  expect(slept).toEqual([3000])
})

test.each([
  [
    'flat, as Mistral sends it',
    {
      object: 'error',
      message: 'Not the same number of function calls and responses',
      type: 'invalid_request_message_order',
      code: '3230',
    },
    '3230',
  ],
  [
    'flat, as vLLM sends it',
    { object: 'error', message: 'Conversation roles must alternate', type: 'BadRequestError', code: 400 },
    'BadRequestError',
  ],
  [
    'in an array, as Gemini’s compatible endpoint sends it',
    [{ error: { code: 400, message: 'bad', status: 'INVALID_ARGUMENT' } }],
    'INVALID_ARGUMENT',
  ],
  ['a bare word', { error: 'invalid tool call arguments' }, undefined],
  ['no JSON at all', '<html>Bad Gateway</html>', undefined],
])('an error body of a compatible server is read: %s', async (_, body, providerCode) => {
  const family = FAMILIES[1]!
  const { events } = await send(family, [{ status: 400, body }])
  const error = lastError(events)
  const words =
    typeof body === 'string' ? body : (JSON.stringify(body).match(/"(?:message|error)":"([^"]+)"/)?.[1] ?? '')
  expect(error?.code).toBe('provider-rejected')
  expect(error?.message).toContain(words)
  expect(error?.details.providerCode).toBe(providerCode)
})
