import { expect, expectTypeOf, test } from 'vitest'
import { defined } from './defined.js'

test('defined leaves out undefined values and nothing else', () => {
  const given = { a: undefined, b: null, c: 0, d: '', e: false, f: Number.NaN }
  expect(Object.entries(defined(given))).toEqual([
    ['b', null],
    ['c', 0],
    ['d', ''],
    ['e', false],
    ['f', Number.NaN],
  ])
})

test('defined copies, one level deep', () => {
  const inner = { a: undefined }
  const given = { inner }
  const copy = defined(given)
  expect(copy).not.toBe(given)
  expect(copy.inner).toBe(inner)
})

test('keys that may be undefined become optional in the type of defined', () => {
  const author = (): string | undefined => undefined
  const copy = defined({ author: author(), seq: 1 })
  expect('author' in copy).toBe(false)
  expectTypeOf(copy).toExtend<{ author?: string; seq: number }>()
})
