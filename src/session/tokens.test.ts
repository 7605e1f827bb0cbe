import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Message } from './message.js'
import {
  CALL_TOKENS,
  countMessageTokens,
  countTextTokens,
  estimateTokens,
  MEDIA_TOKENS,
  MESSAGE_TOKENS,
  utf8Length,
} from './tokens.js'

const message = (more: Partial<Message>): Message => ({ role: 'user', content: '', timestamp: 1, ...more })

test('utf8Length is the length that an encoder gives, for any text', () => {
  const encoder = new TextEncoder()
  const character = fc.integer({ min: 0, max: 0x10ffff }).map(code => String.fromCodePoint(code))
  fc.assert(
    fc.property(
      fc.string({ unit: character }),
      fc.constantFrom('', '\ud800', '\udc00', '\udc00\ud800'),
      (text, odd) => {
        expect(utf8Length(odd + text + odd)).toBe(encoder.encode(odd + text + odd).length)
      },
    ),
  )
})

test.each<[string, Partial<Message>, number]>([
  ['an empty message', {}, MESSAGE_TOKENS],
  ['four letters', { content: 'word' }, MESSAGE_TOKENS + 1],
  ['a longer word, rounded up', { content: 'estimates' }, MESSAGE_TOKENS + 2],
  ['Korean by its syllables', { content: '안녕하세요' }, MESSAGE_TOKENS + 4],
  [
    'a call',
    { toolCalls: [{ id: 'long-identifier', name: 'find', input: '{"a":1}x' }] },
    MESSAGE_TOKENS + CALL_TOKENS + 7,
  ],
  [
    'two calls',
    {
      toolCalls: [
        { id: '', name: '' },
        { id: '', name: '' },
      ],
    },
    MESSAGE_TOKENS + 2 * CALL_TOKENS,
  ],
  [
    'a signature',
    { toolCalls: [{ id: '', name: '', signature: 'x'.repeat(4000) }] },
    MESSAGE_TOKENS + CALL_TOKENS,
  ],
  [
    'text and an output',
    { content: 'text', toolCalls: [{ id: '', name: '', output: 'outp' }] },
    MESSAGE_TOKENS + CALL_TOKENS + 2,
  ],
  [
    'text that repeats the outputs',
    {
      content: 'aaaa\nbbbb',
      toolCalls: [
        { id: '', name: '', output: 'aaaa' },
        { id: '', name: '', output: 'bbbb' },
      ],
    },
    MESSAGE_TOKENS + 2 * CALL_TOKENS + 2,
  ],
  [
    'usage and actions',
    { extra: { usageMetadata: { a: 'x'.repeat(100) }, actions: { b: 'y'.repeat(100) } } },
    MESSAGE_TOKENS,
  ],
  ['a thought', { extra: { parts: [{ text: 'x'.repeat(389) }] } }, MESSAGE_TOKENS + 106],
  [
    'a signature among the parts',
    { extra: { parts: [{ thoughtSignature: 'x'.repeat(400) }] } },
    MESSAGE_TOKENS + 4,
  ],
])('countMessageTokens of %s', (_, more, tokens) => {
  // The key `text` costs a token as well, `thoughtSignature` four.
  expect(countMessageTokens(message(more))).toBe(tokens)
})

test('an image costs the same tokens at any size', () => {
  const withImage = (size: number) =>
    countMessageTokens(
      message({ extra: { parts: [{ inlineData: { mimeType: 'image/png', data: 'A'.repeat(size) } }] } }),
    )
  expect(withImage(10)).toBe(withImage(5_000_000))
  expect(withImage(10)).toBeGreaterThanOrEqual(MEDIA_TOKENS)
  expect(withImage(10)).toBeLessThan(MEDIA_TOKENS + 20)
})

test('counting the tokens of deeply nested data does not overflow', () => {
  let extra: Record<string, unknown> = { text: 'end' }
  for (let depth = 0; depth < 5000; depth++) extra = { in: extra }
  expect(countMessageTokens(message({ extra }))).toBeLessThan(100)
})

test('countTextTokens counts a text without the overhead of a message', () => {
  expect(countTextTokens('')).toBe(0)
  expect(countTextTokens('한')).toBe(1)
})

/** Counted once with the real tokenizer. */
const SAMPLES = JSON.parse(
  readFileSync(new URL('../../test/fixtures/token-samples.json', import.meta.url), 'utf8'),
) as { name: string; o200k: number; text: string }[]

/** Runs of one character are counted by their length, which is more than o200k counts. */
const RUNS = new Set(['spaces', 'dashes', 'one letter'])

test.each(SAMPLES)('the estimate of $name is within 0.8 and 1.3 of o200k', ({ name, o200k, text }) => {
  const ratio = estimateTokens(text) / o200k
  expect(ratio).toBeGreaterThan(0.8)
  if (!RUNS.has(name)) expect(ratio).toBeLessThan(1.3)
})

test.each(SAMPLES.filter(({ name }) => !RUNS.has(name)))(
  'the estimate of a long text of $name, which is sampled, is close to that of a short one',
  ({ text }) => {
    const once = estimateTokens(text) / text.length
    const many = estimateTokens(text.repeat(200)) / (text.length * 200)
    expect(many / once).toBeGreaterThan(0.85)
    expect(many / once).toBeLessThan(1.2)
  },
)
