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
