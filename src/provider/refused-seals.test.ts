import { expect, test } from 'vitest'
import { DUMMY_SIGNATURE } from '../base/markers.js'
import type { ProviderMessage, ProviderPart } from './provider.js'
import type { Refusal } from './refusal-cause.js'
import { markRefused, sealDigest } from './refused.js'
import { refusedParts, type SentRequest } from './refused-parts.js'
import { PROFILES, type ProfileName } from './repair/profile.js'
import { repairHistory } from './repair/repair-history.js'

const thought = (name: string, account?: string): ProviderPart => ({
  type: 'reasoning',
  text: name,
  signature: btoa(`a signature of ${name}`),
  origin: { vendor: 'anthropic', ...(account === undefined ? {} : { account }) },
})
const text = (words: string): ProviderPart => ({ type: 'text', text: words })
const [first, second, third] = [thought('first', 'a'), thought('second'), thought('third')]

const MESSAGES: ProviderMessage[] = [
  { role: 'user', parts: [text('one')] },
  { role: 'assistant', parts: [first, text('1')] },
  { role: 'user', parts: [text('two')] },
  { role: 'assistant', parts: [second, text('2')] },
  { role: 'user', parts: [text('three')] },
  { role: 'assistant', parts: [third, text('3')] },
  { role: 'user', parts: [text('four')] },
]

function request(profile: ProfileName = 'anthropic-4.6', messages = MESSAGES): SentRequest {
  const block = (part: ProviderPart) =>
    part.type === 'reasoning' ? { type: 'thinking', thinking: part.text, signature: part.signature } : part
  const body = { messages: messages.map(({ role, parts }) => ({ role, content: parts.map(block) })) }
  return {
    given: messages,
    answered: 0,
    sent: messages,
    body,
    profile: PROFILES[profile],
    limits: 'documented',
  }
}

const refusal = (more: Partial<Refusal>): Refusal => ({ isSize: false, ...more })
const digestsOf = (refused: ReturnType<typeof refusedParts>) => refused?.parts.map(([digest]) => digest)

test.each<[string, Refusal, ProviderPart[]]>([
  ['no place: all', refusal({ cause: 'seal' }), [first, second, third]],
  [
    'a place: what stands there',
    refusal({ cause: 'seal', place: 'messages.1.content.0'.split('.') }),
    [first],
  ],
  [
    'a place: also those of the same origin that follow',
    refusal({ cause: 'seal', place: 'messages.3.content.0'.split('.') }),
    [second, third],
  ],
  [
    'a place that names a signature, in words that nobody knows',
    refusal({ place: 'messages.5.content.0.thinking.signature'.split('.') }),
    [third],
  ],
])('a refusal with %s', (_, given, parts) => {
  expect(digestsOf(refusedParts(given, request(), 'No.'))).toEqual(parts.map(sealDigest))
})

test.each<[string, Refusal, SentRequest]>([
  ['the place of a text', refusal({ place: 'messages.1.content.1'.split('.') }), request()],
  ['a picture', refusal({ cause: 'media', place: 'messages.1.content.0'.split('.') }), request()],
  [
    'a history without anything sealed',
    refusal({ cause: 'seal' }),
    request('anthropic-4.6', [{ role: 'user', parts: [text('one')] }]),
  ],
  [
    'a stand-in',
    refusal({ cause: 'seal' }),
    request('gemini-3', [
      {
        role: 'assistant',
        parts: [{ type: 'tool-call', id: 'a', name: 'f', args: {}, signature: DUMMY_SIGNATURE }],
      },
    ]),
  ],
])('a refusal about %s leaves nothing sealed out', (_, given, sent) => {
  expect(refusedParts(given, sent, 'No.')).toBeUndefined()
})

test('a place that a gateway names is one of a body that it has made', () => {
  const given = refusal({ cause: 'seal', place: 'messages.1.content.0'.split('.') })
  expect(digestsOf(refusedParts(given, request('openrouter'), ''))).toHaveLength(3)
})

test.each<[ProfileName, ProviderPart, ProviderPart[]]>([
  ['anthropic-4.6', first, []],
  [
    'gemini-3',
    { type: 'tool-call', id: 'a', name: 'f', args: {}, signature: 'c2ln', origin: { vendor: 'gemini' } },
    [
      {
        type: 'tool-call',
        id: 'a',
        name: 'f',
        args: {},
        signature: DUMMY_SIGNATURE,
        origin: { vendor: 'gemini' },
      },
    ],
  ],
  [
    'anthropic-4.6',
    {
      type: 'vendor',
      vendor: 'anthropic',
      value: {
        type: 'web_search_tool_result',
        tool_use_id: 'srvtoolu_1',
        content: [{ encrypted_content: 'x' }],
      },
      text: 'what was found',
    },
    [text('what was found')],
  ],
])('%s gets the words of a refused part without the seal, and a receipt', (profile, part, expected) => {
  const result = { type: 'tool-result' as const, id: 'a', name: 'f', result: {} }
  const history: ProviderMessage[] = [
    { role: 'user', parts: [text('one')] },
    { role: 'assistant', parts: part.type === 'tool-call' ? [part] : [part, text('1')] },
    {
      role: part.type === 'tool-call' ? 'tool' : 'user',
      parts: part.type === 'tool-call' ? [result] : [text('two')],
    },
  ]
  const marked = markRefused(history, { parts: [[String(sealDigest(part)), 'No.']], limits: 'documented' })
  const { messages, repairs } = repairHistory(marked, profile)
  const rest = part.type === 'tool-call' ? [] : [text('1')]
  expect(messages[1]?.parts).toEqual([...expected, ...rest])
  expect(repairs[0]).toMatchObject({ step: 'drop-refused', kind: 'refused-by-provider', at: 1 })
  expect(repairs[0]?.detail).toContain('“No.”')
})
