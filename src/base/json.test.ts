import { expect, test } from 'vitest'
import { parseJson, toJson, toJsonData } from './json.js'

test.each([
  ['{"a":[1,null]}', { a: [1, null] }],
  ['"text"', 'text'],
  ['12', 12],
  ['', ''],
  ['{"a":', '{"a":'],
  ['plain words', 'plain words'],
])('parseJson of %j', (text, expected) => {
  expect(parseJson(text)).toEqual(expected)
})

class Point {
  x = 1
  get y() {
    return 2
  }
}

test.each<[string, unknown]>([
  ['plain data', { a: [1, 'b', null, true], c: { d: '' }, 7: 'first' }],
  ['values that are left out', { a: undefined, b: () => 1, c: Symbol('c') }],
  ['values that become null', [undefined, () => 1, Number.NaN, Number.POSITIVE_INFINITY, -0, new Array(1)]],
  ['a negative zero', { a: -0 }],
  [
    'values with a JSON of their own',
    { at: new Date(0), url: new URL('http://localhost/'), own: { toJSON: () => 5 } },
  ],
  ['instances', { point: new Point(), bytes: new Uint8Array(2), boxed: Object('text') }],
  ['a key that is a prototype', JSON.parse('{"__proto__":{"a":1},"b":2}')],
  ['an object without prototype', Object.assign(Object.create(null), { a: 1 })],
  ['half of a surrogate pair', { a: '\ud800' }],
  ['data deeper than the stack of copies', JSON.parse('['.repeat(200) + ']'.repeat(200))],
])('toJsonData of %s is what writing and parsing it gives', (_, value) => {
  const copy = toJsonData(value)
  expect(copy).toStrictEqual(JSON.parse(JSON.stringify(value)))
  expect(JSON.stringify(copy)).toBe(JSON.stringify(value))
})

test('toJsonData writes maps as objects, sets as lists, errors as their name and message, and big numbers as texts', () => {
  const value = { map: new Map([['a', new Map([['b', 1n]])]]), set: new Set([1]), error: new TypeError('no') }
  expect(toJsonData(value)).toEqual({
    map: { a: { b: '1' } },
    set: [1],
    error: { name: 'TypeError', message: 'no' },
  })
})

test('toJsonData shares no object with its input', () => {
  const value = { list: [{ a: 1 }] }
  const copy = toJsonData(value) as typeof value
  value.list[0] = { a: 2 }
  expect(copy).toEqual({ list: [{ a: 1 }] })
})

test.each<[string, unknown, string]>([
  ['data', { a: [1, 'b'] }, '{"a":[1,"b"]}'],
  ['undefined', undefined, 'null'],
  ['a function', () => 1, 'null'],
  ['a BigInt', { a: 10n }, '{"a":"10"}'],
])('toJson of %s', (_, value, expected) => {
  expect(toJson(value)).toBe(expected)
})

test('toJson replaces only a value inside itself, not one that stands twice', () => {
  const shared = { a: 1 }
  const loop: Record<string, unknown> = { one: shared, other: shared }
  loop.self = loop
  loop.list = [[loop], shared]
  expect(toJsonData(loop)).toEqual({
    one: shared,
    other: shared,
    self: '[circular]',
    list: [['[circular]'], shared],
  })
})
