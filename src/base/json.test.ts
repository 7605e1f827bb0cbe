import { describe, expect, test } from 'vitest'
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

test.each<[string, unknown]>([
  ['plain data', { a: [1, 'b', null, true, { c: {} }], d: '', e: -1.5e300 }],
  ['fields that are undefined', { a: undefined, b: { c: undefined }, d: [undefined, 1] }],
  ['numbers that JSON lacks', [Number.NaN, Number.POSITIVE_INFINITY, -0, 0]],
  ['values with toJSON', { at: new Date(0), own: { toJSON: () => 'text' }, error: new URL('http://a/') }],
  ['class instances and maps', { map: new Map([[1, 2]]), bytes: new Uint8Array([1, 2]), re: /x/ }],
  ['functions and symbols', { a: () => 1, b: Symbol('x'), c: [() => 1] }],
  ['without a prototype', Object.assign(Object.create(null), { a: 1 })],
  ['the name __proto__', JSON.parse('{"__proto__": {"a": 1}, "b": 2}')],
  ['boxed values', { a: Object('text'), b: Object(1), c: Object(false) }],
  ['lone surrogates and NUL', { text: '\ud83d \u0000 \udc00' }],
  ['a sparse list', Array.from({ length: 3, 1: 1 })],
])('toJsonData equals what JSON makes of %s', (_, value) => {
  const expected = JSON.parse(JSON.stringify(value))
  const data = toJsonData(value)
  expect(data).toStrictEqual(expected)
  expect(JSON.stringify(data)).toBe(JSON.stringify(expected))
})

test('toJsonData copies: a change of the data changes nothing else', () => {
  const given = { list: [{ a: 1 }] }
  const data = toJsonData(given) as typeof given
  data.list.push({ a: 2 })
  expect(given).toEqual({ list: [{ a: 1 }] })
})

describe('toJson', () => {
  test.each<[string, unknown, string]>([
    ['data', { a: [1, 'b'] }, '{"a":[1,"b"]}'],
    ['undefined', undefined, 'null'],
    ['a function', () => 1, 'null'],
    ['a BigInt', { a: 10n }, '{"a":"10"}'],
  ])('%s', (_, value, expected) => {
    expect(toJson(value)).toBe(expected)
  })

  test('only a value inside itself is replaced, not one that stands twice', () => {
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
})
