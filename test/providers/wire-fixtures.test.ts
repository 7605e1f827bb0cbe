import { afterEach, expect, test } from 'vitest'
import type { ProviderOptions } from '../../src/provider/provider-settings.js'
import { collect, summarize, testProvider } from './collect.js'
import { type ReplayServer, startReplayServer } from './replay-server.js'

// Every stream here is read through the vendor's own SDK, over HTTP, as it would come from the vendor.

let server: ReplayServer | undefined
afterEach(() => server?.close())

interface Family {
  options: (url: string) => ProviderOptions
  model: string
}

const FAMILIES: Record<string, Family> = {
  gemini: { options: url => ({ type: 'gemini', baseUrl: url }), model: 'gemini-3-flash-preview' },
  'openai-chat': {
    options: url => ({ type: 'openai', api: 'chat', baseUrl: `${url}/v1` }),
    model: 'gpt-4.1',
  },
  'openai-responses': { options: url => ({ type: 'openai', baseUrl: `${url}/v1` }), model: 'gpt-5.2' },
  anthropic: { options: url => ({ type: 'anthropic', baseUrl: url }), model: 'claude-sonnet-4-5' },
}

async function read(family: string, file: string) {
  // A turn that was paused is continued by another request.
  const next = file === 'pause-turn' ? [{ file: `${family}/text.sse` }] : []
  server = await startReplayServer([{ file: `${family}/${file}.sse` }, ...next])
  const { options, model } = FAMILIES[family]!
  const provider = testProvider({ ...options(server.url), retry: { maxAttempts: 1 } })
  return collect(provider, { model })
}

const HELLO = ['text', 'Hello']
const WEATHER = ['call', 'call_a', 'weather', { city: 'Oslo' }]
const CLOCK = ['call', 'call_b', 'clock', {}]
const STOP = ['done', 'stop']
const CALLS = ['done', 'tool-calls']

const TABLE: [family: string, file: string, expected: unknown[]][] = [
  [
    'gemini',
    'text-signed',
    [['reasoning', 'Thinking about it'], HELLO, ['text', '', 'sig=c2lnLXRleHQ='], STOP],
  ],
  [
    'gemini',
    'parallel-calls',
    [
      ['call', 'aB3dE5gH', 'weather', { city: 'Oslo' }, 'sig=c2lnLWNhbGw='],
      ['call', 'zY9xW7vU', 'weather', { city: 'Rome' }],
      ['call', expect.stringMatching(/^[a-zA-Z0-9]{9}$/), 'clock', {}],
      CALLS,
    ],
  ],
  ['gemini', 'malformed-call', [['done', 'malformed-call']]],
  ['gemini', 'blocked-prompt', [['error', 'provider-blocked']]],
  [
    'gemini',
    'safety',
    [
      ['text', 'I was'],
      ['done', 'blocked'],
    ],
  ],
  [
    'gemini',
    'no-terminal',
    [
      ['text', 'Hel'],
      ['error', 'provider-stream'],
    ],
  ],
  [
    'gemini',
    'partial-args',
    [
      [
        'call',
        expect.any(String),
        'book',
        { city: 'Oslo', guests: [{ name: 'Ann' }, { name: 'Bo' }], nights: 2, pets: false, note: null },
        'sig=c2lnLXBhcnQ=',
      ],
      CALLS,
    ],
  ],
  [
    'gemini',
    'code-execution',
    [
      ['vendor', expect.stringContaining('print(1)')],
      ['vendor', expect.stringContaining('1')],
      ['text', 'One.'],
      STOP,
    ],
  ],
  ['gemini', 'image', [['media', 'image/png', 'iVBORw0KGgo='], STOP]],

  ['openai-chat', 'text', [HELLO, STOP]],
  ['openai-chat', 'parallel-calls', [WEATHER, CLOCK, CALLS]],
  ['openai-chat', 'forced-call-stop', [WEATHER, CALLS]],
  ['openai-chat', 'index-missing', [WEATHER, CLOCK, CALLS]],
  ['openai-chat', 'index-always-0', [WEATHER, CLOCK, CALLS]],
  ['openai-chat', 'id-repeated', [WEATHER, CALLS]],
  ['openai-chat', 'whole-arguments', [WEATHER, CLOCK, CALLS]],
  ['openai-chat', 'role-in-every-delta', [HELLO, STOP]],
  ['openai-chat', 'finish-twice', [HELLO, STOP]],
  ['openai-chat', 'empty-choices-first', [HELLO, STOP]],
  ['openai-chat', 'usage-on-finish', [HELLO, STOP]],
  ['openai-chat', 'no-done', [HELLO, STOP]],
  ['openai-chat', 'comments', [HELLO, STOP]],
  ['openai-chat', 'reasoning-content', [['reasoning', 'I think'], HELLO, STOP]],
  ['openai-chat', 'reasoning-field', [['reasoning', 'I think'], HELLO, STOP]],
  ['openai-chat', 'mistral-thinking', [['reasoning', 'I think'], HELLO, STOP]],
  [
    'openai-chat',
    'refusal',
    [
      ['text', 'I cannot do that.'],
      ['done', 'blocked'],
    ],
  ],
  [
    'openai-chat',
    'content-filter',
    [
      ['text', 'Hel'],
      ['done', 'blocked'],
    ],
  ],
  ['openai-chat', 'cut-arguments', [['done', 'malformed-call']]],
  [
    'openai-chat',
    'no-terminal',
    [
      ['text', 'Hel'],
      ['error', 'provider-stream'],
    ],
  ],
  ['openai-chat', 'error-in-stream', [['error', 'provider-unavailable']]],
  ['openai-chat', 'garbage', [['error', 'provider-stream']]],

  ['openai-responses', 'text', [HELLO, STOP]],
  [
    'openai-responses',
    'reasoning-and-call',
    [['reasoning', 'I think\n\ntwice', 'sig=FINAL'], WEATHER, CALLS],
  ],
  ['openai-responses', 'items-only-at-the-end', [WEATHER, CALLS]],
  [
    'openai-responses',
    'incomplete',
    [
      ['text', 'Hel'],
      ['done', 'length'],
    ],
  ],
  [
    'openai-responses',
    'refusal',
    [
      ['text', 'I cannot.'],
      ['done', 'blocked'],
    ],
  ],
  ['openai-responses', 'failed', [['error', 'provider-unavailable']]],
  ['openai-responses', 'error-nested', [['error', 'context-overflow']]],
  ['openai-responses', 'error-flat', [['error', 'context-overflow']]],
  [
    'openai-responses',
    'no-terminal',
    [
      ['text', 'Hel'],
      ['error', 'provider-stream'],
    ],
  ],

  ['anthropic', 'text', [HELLO, STOP]],
  [
    'anthropic',
    'thinking-and-calls',
    [
      ['reasoning', 'I think', 'sig=sigA=='],
      ['redacted', '', 'sig=hiddenB=='],
      ['text', 'Let me see.'],
      ['call', 'toolu_a', 'weather', { city: 'Oslo' }],
      ['call', 'toolu_b', 'clock', {}],
      CALLS,
    ],
  ],
  ['anthropic', 'input-at-start', [['call', 'toolu_a', 'weather', { city: 'Oslo' }], CALLS]],
  ['anthropic', 'cut-arguments', [['done', 'length']]],
  ['anthropic', 'refusal', [['done', 'blocked']]],
  ['anthropic', 'pause-turn', [HELLO, HELLO, STOP]],
  [
    'anthropic',
    'window-exceeded',
    [
      ['text', 'Hel'],
      ['error', 'context-overflow'],
    ],
  ],
  [
    'anthropic',
    'no-terminal',
    [
      ['text', 'Hel'],
      ['error', 'provider-stream'],
    ],
  ],
  [
    'anthropic',
    'stopped-without-message-stop',
    [
      ['text', 'Hel'],
      ['error', 'provider-stream'],
    ],
  ],
  ['anthropic', 'error-in-stream', [['error', 'provider-overloaded']]],
  ['anthropic', 'server-tool', [['vendor', 'The model searched the web for: x'], HELLO, STOP]],
]

test.each(TABLE)('the recorded stream %s/%s becomes its events', async (family, file, expected) => {
  const events = await read(family, file)
  expect(events[0]?.type).toBe('request')
  expect(summarize(events)).toEqual(expected)
})

const own = { inputTokens: 11, outputTokens: 7, totalTokens: 18, cachedInputTokens: 4 }
test.each([
  ['gemini', 'text-signed', { ...own, outputTokens: 19, totalTokens: 30, reasoningTokens: 12 }],
  ['openai-chat', 'text', { ...own, reasoningTokens: 2 }],
  ['openai-chat', 'finish-twice', { ...own, reasoningTokens: 2 }],
  ['openai-chat', 'reasoning-content', own],
  ['openai-responses', 'text', { ...own, reasoningTokens: 2, cacheWriteTokens: 1 }],
  ['anthropic', 'text', { ...own, cacheWriteTokens: 2 }],
  ['anthropic', 'thinking-and-calls', { ...own, cacheWriteTokens: 2, reasoningTokens: 3 }],
])(
  'usage of %s/%s is reported once, with cached and reasoning tokens as parts of the whole',
  async (family, file, usage) => {
    const events = await read(family, file)
    expect(events.filter(event => event.type === 'usage')).toEqual([{ type: 'usage', usage }])
    expect(events.at(-2)?.type).toBe('usage')
  },
)

test('the error of a failed stream contains the words of the provider', async () => {
  const events = await read('openai-chat', 'error-in-stream')
  expect(events.at(-1)).toMatchObject({ error: { message: expect.stringContaining('upstream died') } })
})

test('the request event has the body that was sent', async () => {
  for (const [family, { options, model }] of Object.entries(FAMILIES)) {
    const started = await startReplayServer([
      { file: `${family}/text${family === 'gemini' ? '-signed' : ''}.sse` },
    ])
    const events = await collect(testProvider(options(started.url)), {
      model,
      messages: [
        { role: 'system', parts: [{ type: 'text', text: 'Be brief.' }] },
        { role: 'user', parts: [{ type: 'text', text: 'hi' }] },
      ],
      tools: [
        {
          name: 'weather',
          description: 'd',
          parameters: { type: 'object', properties: { city: { type: 'string' } } },
        },
      ],
      options: { maxOutputTokens: 100, temperature: 0.5, toolChoice: 'auto', stopSequences: ['END'] },
    })
    await started.close()
    expect(events[0]).toMatchObject({ type: 'request', body: started.requests[0]?.body })
    expect(JSON.parse(JSON.stringify((events[0] as { body: unknown }).body))).toEqual(
      started.requests[0]?.body,
    )
  }
})
