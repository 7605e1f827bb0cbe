import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import {
  type Fault,
  type StrictProfile,
  type StrictProvider,
  startStrictProvider,
} from '../../src/entries/testing.js'
import { post, serverPool } from './support.js'

const pool = serverPool()

const bodies: Partial<Record<StrictProfile, Record<string, unknown>>> = {
  'gemini-3': { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
  'anthropic-4.6': { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] },
  'openai-responses': { model: 'm', input: 'hi' },
}
const bodyOf = (profile: StrictProfile, stream = false): Record<string, unknown> => ({
  ...(bodies[profile] ?? { model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
  ...(stream && !profile.startsWith('gemini') ? { stream: true } : {}),
})

const TEXT = { text: 'one two three four five six seven eight nine' }
const WIRES: StrictProfile[] = ['gemini-3', 'anthropic-4.6', 'openai-responses', 'openai-chat']

const table: [StrictProfile, Fault, number, unknown, Record<string, string>?][] = [
  [
    'gemini-3',
    { kind: '429', retryAfter: 34 },
    429,
    {
      error: {
        code: 429,
        status: 'RESOURCE_EXHAUSTED',
        details: [
          { '@type': 'type.googleapis.com/google.rpc.QuotaFailure' },
          { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34s' },
        ],
      },
    },
  ],
  [
    'gemini-3',
    { kind: 'quota' },
    429,
    { error: { details: [{ violations: [{ quotaId: expect.stringContaining('PerDay') }] }] } },
  ],
  ['gemini-3', { kind: '500' }, 500, { error: { code: 500, status: 'INTERNAL' } }],
  [
    'gemini-3',
    { kind: '503' },
    503,
    { error: { message: 'The model is overloaded. Please try again later.', status: 'UNAVAILABLE' } },
  ],
  [
    'gemini-3',
    { kind: 'auth' },
    400,
    {
      error: {
        message: 'API key not valid. Please pass a valid API key.',
        details: [{ reason: 'API_KEY_INVALID' }],
      },
    },
  ],
  [
    'gemini-3',
    { kind: 'context-overflow' },
    400,
    {
      error: {
        message: 'The input token count (1114112) exceeds the maximum number of tokens allowed (1048576).',
      },
    },
  ],
  [
    'openai-chat',
    { kind: '429', retryAfter: 2 },
    429,
    { error: { type: 'tokens', code: 'rate_limit_exceeded' } },
    { 'retry-after': '2', 'retry-after-ms': '2000' },
  ],
  [
    'openai-chat',
    { kind: 'quota' },
    429,
    { error: { type: 'insufficient_quota', code: 'insufficient_quota' } },
  ],
  ['openai-chat', { kind: '500' }, 500, { error: { type: 'server_error' } }],
  ['openai-chat', { kind: 'auth' }, 401, { error: { code: 'invalid_api_key' } }],
  [
    'openai-chat',
    { kind: 'context-overflow' },
    400,
    {
      error: {
        message:
          "This model's maximum context length is 128000 tokens. However, your messages resulted in 160008 tokens. Please reduce the length of the messages.",
        code: 'context_length_exceeded',
      },
    },
  ],
  [
    'openai-responses',
    { kind: 'context-overflow' },
    400,
    {
      error: {
        message:
          'Your input exceeds the context window of this model. Please adjust your input and try again.',
        code: 'context_length_exceeded',
      },
    },
  ],
  [
    'anthropic-4.6',
    { kind: '429', retryAfter: 7 },
    429,
    {
      type: 'error',
      error: {
        type: 'rate_limit_error',
        message: expect.stringContaining("This request would exceed your organization's rate limit of"),
      },
    },
    { 'retry-after': '7' },
  ],
  ['anthropic-4.6', { kind: 'quota' }, 402, { error: { type: 'billing_error' } }],
  ['anthropic-4.6', { kind: '529' }, 529, { error: { type: 'overloaded_error', message: 'Overloaded' } }],
  [
    'anthropic-4.6',
    { kind: 'auth' },
    401,
    { error: { type: 'authentication_error', message: 'invalid x-api-key' } },
  ],
  [
    'anthropic-4.6',
    { kind: 'context-overflow' },
    400,
    { error: { message: 'prompt is too long: 213462 tokens > 200000 maximum' } },
  ],
  [
    'mistral',
    { kind: '429' },
    429,
    { object: 'error', type: 'rate_limited', raw_status_code: 429 },
    { 'retry-after': '1' },
  ],
  ['mistral', { kind: 'auth' }, 401, { detail: 'Unauthorized' }],
  ['deepseek-thinking', { kind: 'quota' }, 402, { error: { message: 'Insufficient Balance' } }],
  [
    'groq',
    { kind: 'malformed-call' },
    400,
    { error: { code: 'tool_use_failed', failed_generation: expect.any(String) } },
  ],
  [
    'ollama',
    { kind: 'context-overflow' },
    400,
    { error: { message: 'the input length exceeds the context length' } },
  ],
]
test.each(table)(
  'an HTTP fault of %s with %j has the body and headers of its vendor',
  async (profile, fault, status, body, headers = {}) => {
    const server = await pool.start({ profile, faults: [fault] })
    const posted = await post(server, bodyOf(profile))
    expect(posted.status).toBe(status)
    expect(posted.body).toMatchObject(body as object)
    for (const [name, value] of Object.entries(headers)) expect(posted.headers.get(name)).toBe(value)
    expect(server.violations).toEqual([])
  },
)

test('a fault happens only at its request, and a retry gets the step that was missed', async () => {
  const server = await pool.start({
    profile: 'openai-chat',
    script: [{ text: 'first' }, { text: 'second' }],
    faults: [
      { at: 0, kind: '503' },
      { at: 2, kind: 'cut' },
    ],
  })
  const client = new OpenAI({ apiKey: 'k', baseURL: server.baseUrl, maxRetries: 0, logLevel: 'off' })
  const ask = () =>
    client.chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }).then(
      answer => answer.choices[0]?.message.content,
      error => error.constructor.name as string,
    )
  expect([await ask(), await ask(), await ask(), await ask()]).toEqual([
    'InternalServerError',
    'first',
    expect.any(String),
    'second',
  ])
  expect(server.requests).toHaveLength(4)
})

interface Heard {
  text: string
  error?: unknown
}

/** What the vendor's client hears of a stream. */
async function listen(server: StrictProvider, signal?: AbortSignal): Promise<Heard> {
  let text = ''
  const options = signal === undefined ? {} : { signal }
  try {
    if (server.profile.startsWith('gemini')) {
      const client = new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: server.baseUrl } })
      const config = signal === undefined ? {} : { abortSignal: signal }
      const request = { model: 'm', contents: 'hi', config }
      for await (const chunk of await client.models.generateContentStream(request)) text += chunk.text ?? ''
    } else if (server.profile.startsWith('anthropic')) {
      const client = new Anthropic({ apiKey: 'k', baseURL: server.baseUrl, maxRetries: 0, logLevel: 'off' })
      const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'hi' }]
      const request = { model: 'm', max_tokens: 9, messages, stream: true as const }
      for await (const event of await client.messages.create(request, options)) {
        if (event.type === 'content_block_delta' && event.delta.type === 'text_delta')
          text += event.delta.text
      }
    } else {
      text = await listenOpenai(server, options, piece => {
        text += piece
      }).then(() => text)
    }
    return { text }
  } catch (error) {
    return { text, error }
  }
}

async function listenOpenai(
  server: StrictProvider,
  options: object,
  add: (piece: string) => void,
): Promise<void> {
  const client = new OpenAI({ apiKey: 'k', baseURL: server.baseUrl, maxRetries: 0, logLevel: 'off' })
  if (server.profile === 'openai-responses') {
    const stream = await client.responses.create({ model: 'm', input: 'hi', stream: true }, options)
    for await (const event of stream) if (event.type === 'response.output_text.delta') add(event.delta)
    return
  }
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'hi' }]
  const stream = await client.chat.completions.create({ model: 'm', messages, stream: true }, options)
  for await (const chunk of stream) add(chunk.choices[0]?.delta.content ?? '')
}

/** So many events that some text has been heard, and some not. */
const HALF: Partial<Record<StrictProfile, number>> = {
  'anthropic-4.6': 4,
  'openai-responses': 5,
  'openai-chat': 3,
}
const half = (profile: StrictProfile) => HALF[profile] ?? 2

for (const profile of WIRES) {
  const start = (kind: Fault['kind']) =>
    pool.start({ profile, script: () => TEXT, faults: [{ kind, afterEvents: half(profile) }] })

  test(`the client of ${profile} reads a slow stream completely, with characters in pieces`, async () => {
    const server = await pool.start({
      profile,
      script: () => ({ text: 'sonnig 🌞 맑음 солнечно' }),
      faults: [{ kind: 'slow-drip' }],
    })
    expect(await listen(server)).toEqual({ text: 'sonnig 🌞 맑음 солнечно' })
  })

  test(`the client of ${profile} fails when the socket of a stream is cut`, async () => {
    const heard = await listen(await start('cut'))
    expect(heard.error).toMatchObject({ message: expect.stringContaining('terminated') })
    expect(heard.text).not.toBe('')
    expect(TEXT.text.startsWith(heard.text) && heard.text !== TEXT.text).toBe(true)
  })

  test(`the client of ${profile} fails with the error in a stream`, async () => {
    const heard = await listen(await start('error-in-stream'))
    expect(heard.text).not.toBe('')
    expect(JSON.stringify(heard.error) + String(heard.error)).toMatch(/overloaded|server had an error/i)
  })

  test(`the client of ${profile} cannot parse a stream with garbage`, async () => {
    const heard = await listen(await start('garbage'))
    expect(heard.error).toBeDefined()
    expect(heard.text).not.toBe(TEXT.text)
  })

  test(`the client of ${profile} does not notice a stream without its last event`, async () => {
    const server = await start('no-terminal')
    expect(await listen(server)).toEqual(TEXT)
    const { text } = await post(server, bodyOf(profile, true), { stream: true })
    expect(text).not.toMatch(/finishReason|"finish_reason":"|message_stop|response\.completed|\[DONE\]/)
  })

  test(`a stream of ${profile} hangs until the client closes the connection`, async () => {
    const server = await start('hang')
    const abort = new AbortController()
    const heard = listen(server, abort.signal)
    for (let turn = 0; turn < 1000 && server.requests.length === 0; turn += 1) {
      await new Promise(resolve => setTimeout(resolve, 1))
    }
    abort.abort()
    expect((await heard).text).not.toBe(TEXT.text)
  })

  test(`a blocked answer of ${profile} has the fields of its vendor`, async () => {
    const server = await start('blocked')
    const { status, body } = await post(server, bodyOf(profile))
    expect(status).toBe(200)
    expect(JSON.stringify(body)).toMatch(
      /"blockReason":"PROHIBITED_CONTENT"|"stop_reason":"refusal"|"reason":"content_filter"|"finish_reason":"content_filter"/,
    )
  })

  test(`a stream of ${profile} can hold a call that the model did not finish`, async () => {
    const server = await start('malformed-call')
    const { text } = await post(server, bodyOf(profile, true), { stream: true })
    expect(text).toMatch(/MALFORMED_FUNCTION_CALL|"stop_reason":"max_tokens"|max_output_tokens|tool_calls/)
    expect(text).not.toContain('in the middle\\"}')
  })
}

for (const profile of WIRES) {
  test.each(['cut', 'garbage'] as const)(
    `a whole answer of ${profile} cannot be read after %s`,
    async kind => {
      const server = await pool.start({ profile, script: () => TEXT, faults: [{ kind }] })
      const read = post(server, bodyOf(profile)).then(posted => posted.body)
      expect(await read.catch(() => undefined)).toBeUndefined()
    },
  )

  test(`a whole answer of ${profile} without a terminal lacks its finish reason`, async () => {
    const server = await pool.start({ profile, script: () => TEXT, faults: [{ kind: 'no-terminal' }] })
    const { body } = await post(server, bodyOf(profile))
    expect(JSON.stringify(body)).toContain(TEXT.text)
    expect(JSON.stringify(body)).not.toMatch(
      /finishReason|"finish_reason":"|"stop_reason":"|"status":"completed","incomplete/,
    )
  })

  test(`a whole answer of ${profile} is an HTTP error when the error would have been in the stream`, async () => {
    const server = await pool.start({ profile, faults: [{ kind: 'error-in-stream' }] })
    expect((await post(server, bodyOf(profile))).status).toBe(500)
  })
}

test('a strict server asks for its key when it has one, and never shows it', async () => {
  const server = await pool.start({ profile: 'gemini-3', apiKey: 'secret' })
  expect((await post(server, bodyOf('gemini-3'))).status).toBe(400)
  expect((await post(server, bodyOf('gemini-3'), { headers: { 'x-goog-api-key': 'secret' } })).status).toBe(
    200,
  )
  const path = '/v1beta/models/m:generateContent?key=secret&x=1'
  expect((await post(server, bodyOf('gemini-3'), { path })).status).toBe(200)
  expect(JSON.stringify(server.requests)).not.toContain('secret')
  expect(server.requests.at(-1)?.path).toBe('/v1beta/models/m:generateContent?x=1')
})

test('a strict server answers other paths with 404', async () => {
  const server = await pool.shared('openai-chat')
  const { status, body } = await post(server, {}, { path: '/v1/nothing' })
  expect(status).toBe(404)
  expect(body).toMatchObject({ error: { message: 'Invalid URL (POST /v1/nothing)' } })
})

test('a strict server closes while a client is connected', async () => {
  const server = await startStrictProvider({ profile: 'openai-chat', faults: [{ kind: 'hang' }] })
  const waiting = post(server, bodyOf('openai-chat')).catch(() => 'gone')
  for (let turn = 0; turn < 1000 && server.requests.length === 0; turn += 1) {
    await new Promise(resolve => setTimeout(resolve, 1))
  }
  await server.close()
  expect(await waiting).toBe('gone')
  await server.close()
})

test('a strict server does not start with an unknown profile or an unusable port', async () => {
  const profile = 'gemini-9' as StrictProfile
  await expect(startStrictProvider({ profile })).rejects.toMatchObject({ code: 'invalid-argument' })
  const { port } = await pool.shared('openai-chat')
  await expect(startStrictProvider({ profile: 'ollama', port })).rejects.toMatchObject({
    code: 'invalid-argument',
  })
})

test('a strict server reports that its script failed', async () => {
  const server = await pool.start({
    profile: 'openai-chat',
    script: () => {
      throw new TypeError('no such step')
    },
  })
  const { status, text } = await post(server, bodyOf('openai-chat'))
  expect(status).toBe(500)
  expect(text).toContain('no such step')
})
