import fc from 'fast-check'
import { expect, test } from 'vitest'
import { stableJson } from './stable-json.js'

test.each<[string, unknown, unknown]>([
  ['at the top', { a: 1, b: 2 }, { b: 2, a: 1 }],
  ['deeper within', { x: [{ a: 1, b: { c: 1, d: 2 } }] }, { x: [{ b: { d: 2, c: 1 }, a: 1 }] }],
  ['that look like numbers', { 10: 'a', 9: 'b', x: 1 }, { x: 1, 9: 'b', 10: 'a' }],
  ['without a value', { a: 1, b: undefined }, { a: 1 }],
  [
    'named like parts of every object',
    JSON.parse('{"__proto__":1,"a":2}'),
    JSON.parse('{"a":2,"__proto__":1}'),
  ],
])('stable JSON is the same for any order of keys %s', (_name, one, other) => {
  expect(stableJson(one)).toBe(stableJson(other))
})

test.each<[string, unknown, unknown]>([
  ['lists in another order', [1, 2], [2, 1]],
  ['a text and a number', { a: '1' }, { a: 1 }],
  ['null and no value', { a: null }, {}],
  ['a key named __proto__ and none', JSON.parse('{"__proto__":1}'), {}],
])('stable JSON of %s differs', (_name, one, other) => {
  expect(stableJson(one)).not.toBe(stableJson(other))
})

test('stable JSON parses to an equal value', () => {
  fc.assert(
    fc.property(fc.jsonValue(), value => {
      const plain: unknown = JSON.parse(JSON.stringify(value))
      expect(JSON.parse(stableJson(plain))).toEqual(plain)
    }),
  )
})
