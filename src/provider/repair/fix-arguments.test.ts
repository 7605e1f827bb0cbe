import { expect, test } from 'vitest'
import { readArguments } from './fix-arguments.js'

test.each<[unknown, Record<string, unknown>, string | undefined]>([
  [{ a: 1 }, { a: 1 }, undefined],
  [undefined, {}, undefined],
  [null, {}, undefined],
  ['', {}, undefined],
  ['{"a":1}', { a: 1 }, undefined],
  ['[1]', { value: [1] }, undefined],
  ['"text"', { value: 'text' }, undefined],
  [[1, 2], { value: [1, 2] }, undefined],
  [7, { value: 7 }, undefined],
  ['{"a":', {}, '{"a":'],
])('arguments given as %j are read as %j', (given, args, raw) => {
  const read = readArguments(given)
  expect(read.args).toEqual(args)
  expect(read.raw).toBe(raw)
})
