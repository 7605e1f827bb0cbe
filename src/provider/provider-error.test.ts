import { expect, test } from 'vitest'
import { AgentError } from '../errors.js'
import { toProviderError } from './provider-error.js'
import { connectionProblem } from './provider-fetch.js'

const context = { provider: 'p', model: 'm' }

interface Case {
  title: string
  thrown: unknown
  code: string
  retryable: boolean
  words: string
  details?: Record<string, unknown>
}

const genai = (status: number, body: unknown) =>
  Object.assign(new Error(JSON.stringify(body)), { name: 'ApiError', status })
const openai = (status: number | undefined, error: unknown, headers: Record<string, string> = {}) =>
  Object.assign(new Error(`${status} x`), { status, error, headers: new Headers(headers) })
const anthropic = (
  status: number | undefined,
  type: string,
  message: string,
  headers: Record<string, string> = {},
) => openai(status, { type: 'error', error: { type, message } }, headers)

const cases: Case[] = [
  {
    title: 'Gemini rate limit with RetryInfo',
    thrown: genai(429, {
      error: {
        code: 429,
        message: 'Resource exhausted',
        status: 'RESOURCE_EXHAUSTED',
        details: [{ retryDelay: '34s' }],
      },
    }),
    code: 'provider-rate-limit',
    retryable: true,
    words: 'Resource exhausted',
    details: { status: 429, retryAfterMs: 34_000, providerCode: 'RESOURCE_EXHAUSTED' },
  },
  {
    title: 'Gemini daily quota',
    thrown: genai(429, {
      error: {
        code: 429,
        message: 'You exceeded your quota',
        status: 'RESOURCE_EXHAUSTED',
        details: [{ violations: [{ quotaId: 'GenerateRequestsPerDayPerProject' }] }],
      },
    }),
    code: 'provider-quota',
    retryable: false,
    words: 'You exceeded your quota',
  },
  {
    title: 'Gemini wrong key, reported as 400',
    thrown: genai(400, {
      error: {
        code: 400,
        message: 'API key not valid.',
        status: 'INVALID_ARGUMENT',
        details: [{ reason: 'API_KEY_INVALID' }],
      },
    }),
    code: 'provider-auth',
    retryable: false,
    words: 'API key not valid.',
  },
  {
    title: 'Gemini overload',
    thrown: genai(503, { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }),
    code: 'provider-overloaded',
    retryable: true,
    words: 'The model is overloaded.',
  },
  {
    title: 'Gemini error in an array',
    thrown: genai(400, [{ error: { code: 400, message: 'bad turn', status: 'INVALID_ARGUMENT' } }]),
    code: 'provider-rejected',
    retryable: false,
    words: 'bad turn',
  },
  {
    title: 'Gemini context length',
    thrown: genai(400, {
      error: {
        code: 400,
        message: 'The input token count (9) exceeds the maximum number of tokens allowed (8).',
        status: 'INVALID_ARGUMENT',
      },
    }),
    code: 'context-overflow',
    retryable: false,
    words: 'input token count',
  },
  {
    title: 'OpenAI rate limit with milliseconds',
    thrown: openai(
      429,
      { message: 'Slow down', type: 'tokens', code: 'rate_limit_exceeded' },
      { 'retry-after-ms': '1500' },
    ),
    code: 'provider-rate-limit',
    retryable: true,
    words: 'Slow down',
    details: { retryAfterMs: 1500, providerCode: 'rate_limit_exceeded' },
  },
  {
    title: 'OpenAI quota',
    thrown: openai(429, { message: 'You exceeded your current quota', code: 'insufficient_quota' }),
    code: 'provider-quota',
    retryable: false,
    words: 'current quota',
  },
  {
    title: 'OpenAI context length',
    thrown: openai(400, {
      message: "This model's maximum context length is 8",
      code: 'context_length_exceeded',
    }),
    code: 'context-overflow',
    retryable: false,
    words: 'maximum context length',
  },
  {
    title: 'OpenAI wrong key',
    thrown: openai(401, { message: 'Incorrect API key', code: 'invalid_api_key' }),
    code: 'provider-auth',
    retryable: false,
    words: 'Incorrect API key',
  },
  {
    title: 'OpenAI server error',
    thrown: openai(500, { message: 'oops', type: 'server_error' }),
    code: 'provider-unavailable',
    retryable: true,
    words: 'oops',
  },
  {
    title: 'OpenAI unknown model',
    thrown: openai(404, { message: 'no such model', code: 'model_not_found' }),
    code: 'provider-rejected',
    retryable: false,
    words: 'no such model',
  },
  {
    title: 'Anthropic overload',
    thrown: anthropic(529, 'overloaded_error', 'Overloaded'),
    code: 'provider-overloaded',
    retryable: true,
    words: 'Overloaded',
  },
  {
    title: 'Anthropic overload inside a stream, without a status',
    thrown: anthropic(undefined, 'overloaded_error', 'Overloaded'),
    code: 'provider-overloaded',
    retryable: true,
    words: 'Overloaded',
  },
  {
    title: 'Anthropic rate limit in seconds',
    thrown: anthropic(429, 'rate_limit_error', 'would exceed', { 'retry-after': '7' }),
    code: 'provider-rate-limit',
    retryable: true,
    words: 'would exceed',
    details: { retryAfterMs: 7000 },
  },
  {
    title: 'Anthropic spend limit',
    thrown: anthropic(429, 'rate_limit_error', 'You have reached your specified API usage limits.'),
    code: 'provider-quota',
    retryable: false,
    words: 'usage limits',
  },
  {
    title: 'Anthropic credit',
    thrown: anthropic(402, 'billing_error', 'no credit'),
    code: 'provider-quota',
    retryable: false,
    words: 'no credit',
  },
  {
    title: 'Anthropic long prompt',
    thrown: anthropic(400, 'invalid_request_error', 'prompt is too long: 213462 tokens > 200000 maximum'),
    code: 'context-overflow',
    retryable: false,
    words: 'prompt is too long',
  },
  {
    title: 'Anthropic prompt and answer together too long',
    thrown: anthropic(
      400,
      'invalid_request_error',
      'input length and `max_tokens` exceed context limit: 1 + 2 > 2',
    ),
    code: 'context-overflow',
    retryable: false,
    words: 'exceed context limit',
  },
  {
    title: 'Anthropic body too large',
    thrown: anthropic(413, 'request_too_large', 'Request too large'),
    code: 'context-overflow',
    retryable: false,
    words: 'too large',
  },
  {
    title: 'Mistral overflow',
    thrown: openai(400, {
      message: 'Prompt contains 9 tokens, too large for model with 8 maximum context length',
    }),
    code: 'context-overflow',
    retryable: false,
    words: 'too large for model',
  },
  {
    title: 'Ollama overflow',
    thrown: openai(400, { message: 'the input length exceeds the context length' }),
    code: 'context-overflow',
    retryable: false,
    words: 'exceeds the context length',
  },
  {
    title: 'Groq limit per minute, reported as 413',
    thrown: openai(413, { message: 'Request too large on tokens per minute', code: 'rate_limit_exceeded' }),
    code: 'context-overflow',
    retryable: false,
    words: 'tokens per minute',
  },
  {
    title: 'Groq unreadable call',
    thrown: openai(400, { message: 'Failed to call a function.', code: 'tool_use_failed' }),
    code: 'provider-rejected',
    retryable: true,
    words: 'Failed to call',
  },
  {
    title: 'OpenRouter error inside a stream, its code a status',
    thrown: openai(undefined, {
      message: 'Provider returned error',
      code: 502,
      metadata: { raw: 'upstream words' },
    }),
    code: 'provider-unavailable',
    retryable: true,
    words: 'upstream words',
    details: { status: 502 },
  },
  {
    title: 'an address that refuses connections',
    thrown: new TypeError('fetch failed', { cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }) }),
    code: 'provider-unavailable',
    retryable: true,
    words: 'fetch failed',
  },
  {
    title: 'a cut socket',
    thrown: new TypeError('terminated'),
    code: 'provider-stream',
    retryable: true,
    words: 'terminated',
  },
  {
    title: 'garbage in the stream',
    thrown: new SyntaxError('Unexpected token'),
    code: 'provider-stream',
    retryable: true,
    words: 'Unexpected token',
  },
  {
    title: 'something that is no error',
    thrown: 'boom',
    code: 'provider-stream',
    retryable: true,
    words: 'boom',
  },
]

test.each(cases)('$title becomes $code', ({ thrown, code, retryable, words, details }) => {
  const error = toProviderError(thrown, context)
  expect(error).toBeInstanceOf(AgentError)
  expect({ code: error.code, retryable: error.retryable }).toEqual({ code, retryable })
  expect(error.message).toContain(words)
  expect(error.details).toMatchObject({ provider: 'p', model: 'm', ...details })
})

test('a key that the provider quotes reaches neither the message nor the cause', () => {
  const thrown = openai(401, {
    message: 'Incorrect API key provided: sk-secret-1234',
    code: 'invalid_api_key',
  })
  const error = toProviderError(thrown, { ...context, secrets: ['sk-secret-1234'] })
  expect(error.message).toContain('[key]')
  expect(JSON.stringify([error.message, error.details, String(error.cause)])).not.toContain('sk-secret-1234')
})

test('an aborted signal outranks whatever the SDK threw', () => {
  const signal = AbortSignal.abort()
  expect(toProviderError(new Error('x'), { ...context, signal }).code).toBe('aborted')
})

test('an AgentError passes unchanged', () => {
  const error = new AgentError('provider-blocked', 'no')
  expect(toProviderError(error, context)).toBe(error)
})

test('a Retry-After date is a wait until then', () => {
  const at = new Date(Date.now() + 20_000).toUTCString()
  const wait = toProviderError(openai(429, { message: 'x' }, { 'retry-after': at }), context).details
    .retryAfterMs
  expect(wait).toBeGreaterThan(1000)
  expect(wait).toBeLessThanOrEqual(20_000)
})

test.each([
  ['ECONNREFUSED', '127.0.0.1:11434', 'Start it with `ollama serve`'],
  ['ECONNREFUSED', '127.0.0.1:8080', 'Check that the server is running'],
  ['ENOTFOUND', 'api.example:443', 'Check the baseUrl, DNS and the network'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'api.example:443', 'NODE_EXTRA_CA_CERTS'],
  ['UND_ERR_CONNECT_TIMEOUT', 'api.example:443', 'the firewall and the proxy'],
  ['ECONNRESET', 'api.example:443', 'closed the connection'],
])('the message of %s at %s says what to do', (code, address, advice) => {
  const problem = connectionProblem(address, ['TypeError', 'fetch failed', code])
  expect(problem).toContain(address)
  expect(problem).toContain(code)
  expect(problem).toContain(advice)
})

const failure = (code: string, message: string) =>
  new TypeError('fetch failed', { cause: Object.assign(new Error(message), { code }) })

test.each([
  ['ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:1'],
  ['ENOTFOUND', 'getaddrinfo ENOTFOUND api.example'],
  ['EAI_AGAIN', 'getaddrinfo EAI_AGAIN api.example'],
  ['ETIMEDOUT', 'connect ETIMEDOUT 192.0.2.1:443'],
  ['UND_ERR_CONNECT_TIMEOUT', 'Connect Timeout Error'],
  ['CERT_HAS_EXPIRED', 'certificate has expired'],
  ['ECONNRESET', 'Client network socket disconnected before secure TLS connection was established'],
])('a connection that failed with %s, %s has not sent the request', (code, message) => {
  expect(toProviderError(failure(code, message), context).details.isSent).toBe(false)
})

test.each([
  ['ECONNRESET', 'read ECONNRESET'],
  ['ECONNRESET', 'socket hang up'],
  ['UND_ERR_SOCKET', 'other side closed'],
  ['ETIMEDOUT', 'read ETIMEDOUT'],
  ['EPIPE', 'write EPIPE'],
])('a connection that failed with %s, %s may have sent the request', (code, message) => {
  expect(toProviderError(failure(code, message), context).details).not.toHaveProperty('isSent')
})
