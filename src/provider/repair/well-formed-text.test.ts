import { expect, test } from 'vitest'
import type { ProviderMessage } from '../provider.js'
import { repairHistory } from './repair-history.js'

test('surrogate pairs stay and unpaired surrogates are replaced, in every kind of part', () => {
  const history: ProviderMessage[] = [
    { role: 'user', parts: [{ type: 'text', text: '😀 \ude00' }] },
    {
      role: 'assistant',
      parts: [{ type: 'tool-call', id: 'a\ud800', name: 'b\ud800', args: { list: ['\udfff', 1] } }],
    },
    { role: 'tool', parts: [{ type: 'tool-result', id: 'a\ud800', name: 'b\ud800', result: 'c\ud800' }] },
  ]
  const { messages } = repairHistory(history, 'ollama')
  expect(messages).toEqual([
    { role: 'user', parts: [{ type: 'text', text: '😀 \ufffd' }] },
    {
      role: 'assistant',
      parts: [{ type: 'tool-call', id: 'a\ufffd', name: 'b\ufffd', args: { list: ['\ufffd', 1] } }],
    },
    { role: 'tool', parts: [{ type: 'tool-result', id: 'a\ufffd', name: 'b\ufffd', result: 'c\ufffd' }] },
  ])
})

function nested(levels: number): unknown {
  let deep: unknown = 'bottom'
  for (let level = 0; level < levels; level++) deep = level % 2 === 0 ? [deep] : { a: deep }
  return deep
}

test.each([
  ['a result', { type: 'tool-result', id: 'a', name: 'b', result: nested(100_000) }],
  ['arguments', { type: 'tool-call', id: 'a', name: 'b', args: { deep: nested(100_000) } }],
  [
    'arguments that are text',
    { type: 'tool-call', id: 'a', name: 'b', args: `{"deep":${'['.repeat(1e5)}${']'.repeat(1e5)}}` },
  ],
])('%s nested 100,000 levels deep is written out with a receipt, on every profile', (_, part) => {
  const history = [{ role: 'user', parts: [{ type: 'text', text: 'hi' }, part] }] as ProviderMessage[]
  for (const profile of ['ollama', 'gemini-3', 'anthropic-5.1', 'openai-responses', 'kimi']) {
    const { messages, repairs } = repairHistory(history, profile)
    const text = JSON.stringify(messages)
    expect(text.length).toBeLessThan(40_000)
    expect(repairs.map(({ step }) => step)).toEqual(
      expect.arrayContaining([expect.stringMatching(/well-formed-text|fix-arguments/)]),
    )
  }
})

test('values that JSON cannot say are written as what they mean, and the others stay', () => {
  class Money {
    amount = 12n
    currency = 'EUR'
  }
  const round: Record<string, unknown> = { name: 'loop' }
  round.self = { round }
  const result = {
    date: new Date('2026-11-16T10:00:00Z'),
    big: 9_007_199_254_740_993n,
    map: new Map<string, unknown>([['k', new Set([1, 2])]]),
    money: new Money(),
    bytes: new Uint8Array([1, 2, 3]),
    failure: new TypeError('no'),
    plain: { list: [1, null, 'x'] },
    round,
  }
  const history: ProviderMessage[] = [
    { role: 'user', parts: [{ type: 'text', text: 'hi' }] },
    { role: 'assistant', parts: [{ type: 'tool-call', id: 'a', name: 'b', args: { when: new Date(0) } }] },
    { role: 'tool', parts: [{ type: 'tool-result', id: 'a', name: 'b', result }] },
  ]
  const { messages, repairs } = repairHistory(history, 'openai-chat')
  expect(messages[1]?.parts[0]).toMatchObject({ args: { when: '1970-01-01T00:00:00.000Z' } })
  expect(messages[2]?.parts[0]).toMatchObject({
    result: {
      date: '2026-11-16T10:00:00.000Z',
      big: '9007199254740993',
      map: { k: [1, 2] },
      money: { amount: '12', currency: 'EUR' },
      bytes: 'AQID',
      failure: { name: 'TypeError', message: 'no' },
      plain: { list: [1, null, 'x'] },
    },
  })
  expect(JSON.stringify(messages)).toContain('[a value that contains itself]')
  expect(repairs.map(({ step, kind, at }) => `${step}/${kind}@${at}`)).toEqual([
    'well-formed-text/write-out@1',
    'well-formed-text/write-out@2',
  ])
})

test('lone surrogates are replaced at any depth, and a signature that is not base64 is not sent', () => {
  const deep = (text: string) =>
    JSON.parse(`${'['.repeat(60)}${JSON.stringify(text)}${']'.repeat(60)}`) as unknown
  const history: ProviderMessage[] = [
    { role: 'user', parts: [{ type: 'text', text: 'hi' }] },
    {
      role: 'assistant',
      parts: [
        { type: 'tool-call', id: 'a', name: 'b', args: { deep: deep('\ud800') }, signature: 'c2ln\ud800' },
      ],
    },
    { role: 'tool', parts: [{ type: 'tool-result', id: 'a', name: 'b', result: { ok: true } }] },
  ]
  const { messages } = repairHistory(history, 'gemini-3')
  const text = JSON.stringify(messages)
  expect(text).not.toMatch(/\\ud800|c2ln/)
  expect(text).toContain('\ufffd')
  // Where the wire has no field for it, it is not sent, and not altered either.
  expect(repairHistory(history, 'anthropic-4.6').messages[1]?.parts[0]).toMatchObject({
    signature: 'c2ln\ud800',
  })
})
