import { expect, test } from 'vitest'
import { messageOf } from './errors.js'

class Named {
  toString() {
    return 'its own text'
  }
}

const loop: Record<string, unknown> = {}
loop.self = loop

const hostile = new Proxy(
  {},
  {
    get() {
      throw new TypeError('no')
    },
  },
)

test.each<[string, unknown, string]>([
  ['an error', new RangeError('too far'), 'too far'],
  ['an error without words', new RangeError(), 'RangeError'],
  [
    'an error with only a code',
    Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }),
    'ECONNREFUSED',
  ],
  ['errors in one', new AggregateError([new TypeError('a'), 'b']), 'a; b'],
  ['an object with a message', { message: 'disk full', code: 7 }, 'disk full'],
  ['an object without one', { code: 7, reason: 'disk' }, '{"code":7,"reason":"disk"}'],
  ['an object with a text of its own', new Named(), 'its own text'],
  ['an object without a prototype', Object.create(null), '{}'],
  ['a list', ['a', 1], '["a",1]'],
  ['a text', 'plain words', 'plain words'],
  ['nothing', undefined, 'undefined'],
  ['null', null, 'null'],
  ['a symbol', Symbol('x'), 'Symbol(x)'],
  ['a number', 7n, '7'],
  ['a loop', loop, '[object Object]'],
  ['a message that is no text', Object.assign(new RangeError('x'), { message: { a: 1 } }), 'RangeError'],
])('messageOf describes %s', (_, thrown, expected) => {
  expect(messageOf(thrown)).toBe(expected)
})

test('messageOf never throws, whatever was thrown', () => {
  expect(messageOf(hostile)).toBe('an error whose message cannot be read')
  expect(messageOf({ toJSON: () => expect.unreachable() })).toBe('[object Object]')
})

test('messageOf shortens an object that would fill the page', () => {
  const message = messageOf({ text: 'word '.repeat(10_000) })
  expect(message.length).toBeLessThan(1100)
  expect(message).toMatch(/^\{"text":"word .*…$/)
})
