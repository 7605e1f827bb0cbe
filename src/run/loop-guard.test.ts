import { expect, test } from 'vitest'
import { LoopGuard } from './loop-guard.js'

const search = (query: string) => [{ name: 'search', args: { query, limit: 1 } }]

test('warns at the third and stops at the fifth equal call', () => {
  const guard = new LoopGuard()
  const verdicts = Array.from({ length: 5 }, () => guard.observe(search('a')))
  expect(verdicts).toEqual(['continue', 'continue', 'warn', 'continue', 'stop'])
})

test('starts anew when the arguments differ', () => {
  const guard = new LoopGuard()
  for (const query of ['a', 'a', 'b', 'a', 'a']) expect(guard.observe(search(query))).toBe('continue')
  expect(guard.count).toBe(2)
})

test('does not care about the order of keys', () => {
  const guard = new LoopGuard()
  guard.observe([{ name: 'f', args: { a: 1, b: { c: 2, d: 3 } } }])
  guard.observe([{ name: 'f', args: { b: { d: 3, c: 2 }, a: 1 } }])
  expect(guard.count).toBe(2)
})

test('takes the calls of one turn together', () => {
  const guard = new LoopGuard()
  guard.observe([{ name: 'f' }, { name: 'g' }])
  guard.observe([{ name: 'f' }])
  expect(guard.count).toBe(1)
})
