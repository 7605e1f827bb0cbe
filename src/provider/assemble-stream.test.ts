import { expect, test } from 'vitest'
import { AnswerAssembly, type CallPiece } from './assemble-stream.js'
import type { StreamEvent } from './stream-event.js'

function assembly(mappedNames?: Record<string, string>): AnswerAssembly {
  return new AnswerAssembly({
    provider: 'p',
    model: 'm',
    origin: { vendor: 'gemini', model: 'm' },
    ...(mappedNames ? { mappedNames } : {}),
  })
}

function callsOf(pieces: readonly CallPiece[]): unknown[] {
  const answer = assembly()
  for (const piece of pieces) answer.callPiece(piece)
  answer.finish('tool-calls')
  return answer
    .end()
    .flatMap(event =>
      event.type === 'tool-call' ? [{ id: event.id, name: event.name, args: event.args }] : [],
    )
}

const ADD = { id: 'a', name: 'add', args: { x: 1 } }
const SUB = { id: 'b', name: 'sub', args: { y: 2 } }

const cases: { title: string; pieces: CallPiece[]; calls: unknown[] }[] = [
  {
    title: 'is put together by its index, as OpenAI sends it',
    pieces: [
      { index: 0, id: 'a', name: 'add', args: '' },
      { index: 0, args: '{"x"' },
      { index: 1, id: 'b', name: 'sub', args: '' },
      { index: 0, args: ':1}' },
      { index: 1, args: '{"y":2}' },
    ],
    calls: [ADD, SUB],
  },
  {
    title: 'is identified by its id when every index is 0',
    pieces: [
      { index: 0, id: 'a', name: 'add', args: '{"x":1}' },
      { index: 0, id: 'b', name: 'sub', args: '{"y"' },
      { index: 0, args: ':2}' },
    ],
    calls: [ADD, SUB],
  },
  {
    title: 'goes to the last open call when index and id are missing',
    pieces: [
      { id: 'a', name: 'add', args: '{"x"' },
      { args: ':1}' },
      { id: 'b', name: 'sub' },
      { args: '{"y":2}' },
    ],
    calls: [ADD, SUB],
  },
  {
    title: 'is one call when its id is repeated in every piece',
    pieces: [
      { index: 0, id: 'a', name: 'add', args: '{' },
      { index: 0, id: 'a', args: '"x":1' },
      { index: 0, id: 'a', args: '}' },
    ],
    calls: [ADD],
  },
  {
    title: 'is one call when its name is repeated in every piece',
    pieces: [
      { index: 0, id: 'a', name: 'add', args: '{"x"' },
      { index: 0, name: 'add', args: ':1}' },
    ],
    calls: [ADD],
  },
  {
    title: 'may come whole',
    pieces: [
      { index: 0, id: 'a', name: 'add', args: '{"x":1}' },
      { index: 1, id: 'b', name: 'sub', args: '{"y":2}' },
    ],
    calls: [ADD, SUB],
  },
  {
    title: 'may carry its arguments as an object',
    pieces: [{ index: 0, id: 'a', name: 'add', args: { x: 1 } }],
    calls: [ADD],
  },
  {
    title: 'may get its id after its name',
    pieces: [
      { index: 0, name: 'add' },
      { index: 0, id: 'a', args: '{"x":1}' },
    ],
    calls: [ADD],
  },
  {
    title: 'has no arguments when none came',
    pieces: [{ index: 0, id: 'a', name: 'add', args: '' }],
    calls: [{ id: 'a', name: 'add', args: {} }],
  },
  {
    title: 'has its arguments parsed again when they were encoded twice',
    pieces: [{ index: 0, id: 'a', name: 'add', args: JSON.stringify('{"x":1}') }],
    calls: [ADD],
  },
]
test.each(cases)('a call in pieces $title', ({ pieces, calls }) => {
  expect(callsOf(pieces)).toEqual(calls)
})

test('a call without any id gets one of nine letters and digits, and a second whole call is a second call', () => {
  const calls = callsOf([
    { name: 'add', args: '{"x":1}' },
    { name: 'add', args: '{"x":2}' },
  ]) as { id: string; args: unknown }[]
  expect(calls.map(call => call.args)).toEqual([{ x: 1 }, { x: 2 }])
  expect(calls.every(call => /^[a-zA-Z0-9]{9}$/.test(call.id))).toBe(true)
  expect(calls[0]?.id).not.toBe(calls[1]?.id)
})

test('a call that repeats the id of another call gets an id of its own', () => {
  const calls = callsOf([
    { index: 0, id: 'a', name: 'add', args: '{"x":1}' },
    { index: 1, id: 'a', name: 'sub', args: '{"y":2}' },
  ]) as { id: string; name: string }[]
  expect(calls.map(call => call.name)).toEqual(['add', 'sub'])
  expect(calls[0]?.id).toBe('a')
  expect(calls[1]?.id).not.toBe('a')
})

const DEEP = `${'['.repeat(100_000)}${']'.repeat(100_000)}`

test.each([
  ['cut JSON', '{"x": "unfini'],
  ['an array', '[1]'],
  ['a number', '7'],
  ['a text that is nested 100,000 deep', `{"x":${DEEP}}`],
  ['an object that is nested 100,000 deep', { x: JSON.parse(DEEP) }],
])('arguments that are %s end the answer as malformed, and the call is not emitted', (_, args) => {
  const answer = assembly()
  answer.callPiece({ index: 0, id: 'a', name: 'add', args })
  answer.finish('tool-calls')
  const events = answer.end()
  expect(events.map(event => event.type)).toEqual(['done'])
  expect(events[0]).toMatchObject({ finishReason: 'malformed-call' })
  expect((events[0] as { message: string }).message).toContain('add')
})

test('unfinished arguments end the answer as too long when it was cut by its length', () => {
  const answer = assembly()
  answer.callPiece({ index: 0, id: 'a', name: 'add', args: '{"x' })
  answer.finish('length')
  expect(answer.end()).toMatchObject([{ type: 'done', finishReason: 'length' }])
})

test('an answer without a closing event is a retryable stream error', () => {
  const answer = assembly()
  answer.text('half')
  expect(() => answer.end()).toThrowError(
    expect.objectContaining({ code: 'provider-stream', retryable: true }),
  )
})

test.each([
  ['stop', true, 'tool-calls'],
  ['tool-calls', false, 'stop'],
  ['stop', false, 'stop'],
  ['other', true, 'other'],
] as const)('the reason %s with calls: %s finishes as %s', (reason, called, finishReason) => {
  const answer = assembly()
  if (called) answer.call({ id: 'a', name: 'add', args: {} })
  answer.finish(reason)
  expect(answer.end().at(-1)).toEqual({ type: 'done', finishReason })
})

test('the first of two closing reasons counts', () => {
  const answer = assembly()
  answer.finish('length')
  answer.finish('stop')
  expect(answer.end()).toEqual([{ type: 'done', finishReason: 'length' }])
})

test('the last usage figures are emitted once, with a total', () => {
  const answer = assembly()
  answer.usage({ inputTokens: 5, outputTokens: 1 })
  answer.usage({ outputTokens: 4, cachedInputTokens: 2 })
  answer.finish('stop')
  expect(answer.end()[0]).toEqual({
    type: 'usage',
    usage: { inputTokens: 5, outputTokens: 4, cachedInputTokens: 2, totalTokens: 9 },
  })
})

const blocksOf = (events: StreamEvent[]) =>
  events.map(event => [event.type, 'block' in event ? event.block : undefined])

test('a signed piece is a block of its own between unsigned ones', () => {
  const answer = assembly()
  const events = [
    ...answer.text('a'),
    ...answer.text('b'),
    ...answer.text('', { signature: 's' }),
    ...answer.text('c'),
  ]
  expect(blocksOf(events).map(([, block]) => block)).toEqual([0, 0, 1, 2])
})

test('a signature with the key of its block belongs to that block', () => {
  const answer = assembly()
  const events = [
    ...answer.reasoning('think', { key: 0 }),
    ...answer.reasoning('', { key: 0, signature: 's' }),
    ...answer.reasoning('again', { key: 1 }),
  ]
  expect(blocksOf(events).map(([, block]) => block)).toEqual([0, 0, 1])
})

test.each([
  ['a call', (answer: AnswerAssembly) => answer.call({ id: 'x', name: 'add', args: {} })],
  ['an image', (answer: AnswerAssembly) => answer.media('image/png', 'AA==')],
  ['a vendor’s own part', (answer: AnswerAssembly) => answer.vendor({}, 'ran code')],
])('text after %s opens a new block', (_, put) => {
  const answer = assembly()
  const before = answer.text('a')
  put(answer)
  expect(blocksOf([...before, ...answer.text('b')]).map(([, block]) => block)).toEqual([0, 1])
})

test('an empty piece without a signature is not emitted', () => {
  expect([...assembly().text(''), ...assembly().reasoning('')]).toEqual([])
})

test('a mapped tool name is emitted as the declared name', () => {
  const events = assembly({ wire_name: 'my tool' }).call({ id: 'a', name: 'wire_name', args: {} })
  expect(events).toMatchObject([{ name: 'my tool' }])
})
