/**
 * Conversations that every framework has: what the user says, what the model answers, and how the tools behave. The
 * model is a strict provider on loopback; everything else is the framework's own.
 */

import type { StrictProfile } from '../../../../src/testing/strict/profile.js'
import type { ScriptStep } from '../../../../src/testing/strict/script.js'

export const PICTURE =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
export const PDF = Buffer.from('%PDF-1.4\n1 0 obj\n<< >>\nendobj\ntrailer\n<< >>\n%%EOF\n').toString('base64')

/** What a tool does when it is called. */
export type Behaviour =
  | { returns: unknown }
  | { fails: string }
  /** It never returns: the program is killed while it works. */
  | { hangs: true }
  | { picture: string }

export interface SceneTurn {
  user: string
  picture?: string
  pdf?: string
  steps: readonly ScriptStep[]
}

export interface Scene {
  name: string
  /** The rules of the model that wrote it. */
  profile: StrictProfile
  system?: string
  turns: readonly SceneTurn[]
  tools?: Readonly<Record<string, Behaviour>>
  /** The turn ends when this many characters were streamed. */
  abortAfter?: number
  /** The answer has the form of a schema. */
  structured?: true
  /** The vendor's own search. */
  searches?: true
  /** The first answer hands the conversation to another agent, where the framework has that. */
  handsOver?: true
  /** Tools that a person must agree to, and what the person says. */
  approval?: 'approved' | 'denied' | 'open'
  /** The codes that lint names for the profile; default: none. */
  findings?: readonly string[]
  mayFind?: readonly string[]
}

const call = (name: string, args: Record<string, unknown> = {}) => ({ name, args })

const BIG = `begin-of-the-log ${'0123456789abcdef '.repeat(18_000)}end-of-the-log`

const MANY_SCRIPTS =
  'Grüße, Καλημέρα, Здравствуй, नमस्ते, 你好, こんにちは, 안녕하세요, ‏שלום, مرحبا, ไทย, 👩‍👩‍👧‍👦🏳️‍🌈, e\u0301, a\u2028b, "quotes" \\ and\ttabs\nlines'

const NESTED = {
  filter: { and: [{ field: 'price', op: '<', value: 10 }, { or: [{ tags: ['a', 'b'] }, { none: null }] }] },
  deep: { a: { b: { c: { d: { e: 'at the bottom' } } } } },
  empty: { list: [], object: {}, text: '' },
}

const NUMBERS = {
  big: 9007199254740991,
  small: -0.000001,
  float: 2.6457513110645907,
  zero: 0,
  no: false,
  yes: true,
  nothing: null,
  exponent: 1e21,
}

const WEATHER = { get_weather: { returns: 'rain, 12 degrees' } } as const

export const SCENES: readonly Scene[] = [
  {
    name: 'a question and its answer',
    profile: 'openai-chat',
    turns: [{ user: 'Is it raining?', steps: [{ text: 'I cannot see the sky.' }] }],
  },
  {
    name: 'five turns',
    profile: 'openai-chat',
    turns: [1, 2, 3, 4, 5].map(n => ({ user: `Question ${n}?`, steps: [{ text: `Answer ${n}.` }] })),
  },
  {
    name: 'a call and its result',
    profile: 'openai-chat',
    tools: WEATHER,
    turns: [
      {
        user: 'Weather in Rome?',
        steps: [{ text: 'I look.', toolCalls: [call('get_weather', { city: 'Rome' })] }, { text: 'Rain.' }],
      },
    ],
  },
  {
    name: 'three calls at once',
    profile: 'openai-responses',
    tools: WEATHER,
    turns: [
      {
        user: 'Rome, Oslo and Lima?',
        steps: [
          { toolCalls: ['Rome', 'Oslo', 'Lima'].map(city => call('get_weather', { city })) },
          { text: 'Rain in all of them.' },
        ],
      },
    ],
  },
  {
    name: 'calls one after the other',
    profile: 'anthropic-4.6',
    tools: { ...WEATHER, get_time: { returns: { hour: 9, zone: 'CET' } } },
    turns: [
      {
        user: 'Weather and time in Rome?',
        steps: [
          { text: 'First the weather.', toolCalls: [call('get_weather', { city: 'Rome' })] },
          { text: 'Now the time.', toolCalls: [call('get_time', { city: 'Rome' })] },
          { text: 'Rain at nine.' },
        ],
      },
      { user: 'Thanks.', steps: [{ text: 'You are welcome.' }] },
    ],
  },
  {
    name: 'a tool that fails',
    profile: 'anthropic-4.6',
    tools: { save: { fails: 'disk full: /data' } },
    turns: [
      {
        user: 'Save it.',
        steps: [{ toolCalls: [call('save', { path: '/data/x' })] }, { text: 'It could not be saved.' }],
      },
    ],
  },
  {
    name: 'killed while a tool works',
    profile: 'openai-chat',
    tools: { deploy: { hangs: true } },
    turns: [
      { user: 'Ready?', steps: [{ text: 'Yes.' }] },
      { user: 'Deploy.', steps: [{ text: 'I deploy.', toolCalls: [call('deploy', { to: 'production' })] }] },
    ],
    findings: ['call-without-result'],
    // Version 5 of the AI SDK adds an empty message for the result.
    mayFind: ['empty-message'],
  },
  {
    name: 'a picture from the user',
    profile: 'openai-chat',
    turns: [{ user: 'What is this?', picture: PICTURE, steps: [{ text: 'One pixel.' }] }],
  },
  {
    name: 'a PDF from the user',
    profile: 'anthropic-4.6',
    turns: [{ user: 'What does it say?', pdf: PDF, steps: [{ text: 'Nothing.' }] }],
  },
  {
    name: 'a picture from a tool',
    profile: 'anthropic-4.6',
    tools: { screenshot: { picture: PICTURE } },
    turns: [
      {
        user: 'Look at the screen.',
        steps: [{ toolCalls: [call('screenshot', { window: 'main' })] }, { text: 'It is blank.' }],
      },
    ],
  },
  {
    name: 'thoughts that are signed',
    profile: 'anthropic-4.6',
    tools: WEATHER,
    turns: [
      {
        user: 'Think, then look.',
        steps: [
          { thinking: 'Rome is meant.', toolCalls: [call('get_weather', { city: 'Rome' })] },
          { thinking: 'It rains there.', text: 'Rain.' },
        ],
      },
    ],
  },
  {
    name: 'thoughts of a reasoning model',
    profile: 'openai-responses',
    tools: WEATHER,
    turns: [
      {
        user: 'Think, then look.',
        steps: [
          { thinking: 'The city is Oslo.', toolCalls: [call('get_weather', { city: 'Oslo' })] },
          { thinking: 'Twelve degrees.', text: 'Mild.' },
        ],
      },
    ],
  },
  {
    name: 'many scripts',
    profile: 'openai-chat',
    tools: { echo: { returns: { said: MANY_SCRIPTS } } },
    turns: [
      {
        user: MANY_SCRIPTS,
        steps: [{ toolCalls: [call('echo', { words: MANY_SCRIPTS })] }, { text: `Echo: ${MANY_SCRIPTS}` }],
      },
    ],
  },
  {
    name: 'a call without words and an answer without text',
    profile: 'openai-responses',
    tools: { note: { returns: '' } },
    turns: [
      { user: 'Note it.', steps: [{ toolCalls: [call('note', { text: '' })] }, { text: 'Done.' }] },
      { user: 'Say nothing.', steps: [{ text: '' }] },
      { user: 'Now speak.', steps: [{ text: 'Here I am.' }] },
    ],
    // Not every framework keeps an answer that says nothing.
    mayFind: ['empty-message'],
  },
  {
    name: 'an output of 300 kB',
    profile: 'openai-chat',
    tools: { read_log: { returns: BIG } },
    turns: [{ user: 'Read the log.', steps: [{ toolCalls: [call('read_log')] }, { text: 'It is long.' }] }],
  },
  {
    name: 'numbers',
    profile: 'openai-chat',
    tools: { calculate: { returns: NUMBERS } },
    turns: [
      {
        user: 'Calculate.',
        steps: [{ toolCalls: [call('calculate', NUMBERS)] }, { text: '42' }],
      },
    ],
  },
  {
    name: 'nested JSON',
    profile: 'openai-responses',
    tools: { query: { returns: { rows: [NESTED, { id: 'r2', parts: ['x', { y: 'z' }] }] } } },
    turns: [{ user: 'Query it.', steps: [{ toolCalls: [call('query', NESTED)] }, { text: 'Two rows.' }] }],
  },
  {
    name: 'a system prompt',
    profile: 'openai-chat',
    system: 'You are a pirate. Answer in rhymes.',
    turns: [
      { user: 'Who are you?', steps: [{ text: 'A pirate at sea, as you can see.' }] },
      { user: 'Where to?', steps: [{ text: 'To where the winds blew.' }] },
    ],
  },
  {
    name: 'structured output',
    profile: 'openai-responses',
    structured: true,
    turns: [{ user: 'Rome as JSON.', steps: [{ text: '{"city":"Rome","degrees":12}' }] }],
  },
  {
    name: 'a stream that is aborted',
    profile: 'openai-chat',
    abortAfter: 10,
    turns: [
      {
        user: 'Tell me a long story.',
        steps: [{ deltas: Array.from({ length: 40 }, (_, n) => `word${n} `) }],
      },
    ],
  },
  {
    name: 'sources',
    profile: 'openai-responses',
    searches: true,
    turns: [
      {
        user: 'Who won?',
        steps: [
          {
            text: 'The home team won.',
            sources: [
              { url: 'https://example.com/match', title: 'Match report', text: 'The home team won.' },
            ],
          },
        ],
      },
    ],
  },
]

/** Where a person decides about a call. */
export const APPROVAL_SCENES: readonly Scene[] = (['approved', 'denied', 'open'] as const).map(approval => ({
  name: `a call that is ${approval === 'open' ? 'not decided yet' : approval}`,
  profile: 'openai-responses',
  approval,
  tools: { pay: { returns: { receipt: 'R-77' } } },
  turns: [
    {
      user: 'Pay the bill.',
      steps: [{ toolCalls: [call('pay', { amount: 12, currency: 'EUR' })] }, { text: 'That is settled.' }],
    },
  ],
  ...(approval === 'open' ? { findings: ['call-without-result'] } : {}),
}))

/** Where one agent hands over to another. */
export const HANDOFF_SCENES: readonly Scene[] = [
  {
    name: 'a hand-over',
    profile: 'openai-responses',
    handsOver: true,
    tools: WEATHER,
    turns: [
      {
        user: 'Let somebody else look.',
        steps: [
          { toolCalls: [call('transfer_to_Helper')] },
          { toolCalls: [call('get_weather', { city: 'Rome' })] },
          { text: 'Rain, says the helper.' },
        ],
      },
    ],
  },
]
