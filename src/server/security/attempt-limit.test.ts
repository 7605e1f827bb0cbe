import { expect, test } from 'vitest'
import { AttemptLimit, MOST_ADDRESSES } from './attempt-limit.js'

test('AttemptLimit keeps a bounded number of addresses when every attempt comes from another one', () => {
  const limit = new AttemptLimit({ attempts: 2, windowMs: 1000, now: () => 0 })
  for (let i = 0; i < MOST_ADDRESSES + 50; i++) {
    limit.failed(`address-${i}`, 'wrong')
    limit.accepted(`address-${i}`, 0)
  }
  expect(limit.size).toEqual([MOST_ADDRESSES, MOST_ADDRESSES])
  expect(limit.wasAccepted('address-0', 0)).toBe(false)
  expect(limit.wasAccepted(`address-${MOST_ADDRESSES}`, 0)).toBe(true)
})

test('AttemptLimit limits an address after its attempts and reports that once', () => {
  const limited: string[] = []
  const limit = new AttemptLimit({ attempts: 3, windowMs: 1000, now: () => 0, onLimit: a => limited.push(a) })
  for (let i = 0; i < 3; i++) limit.failed('a', `wrong-${i}`)
  expect(limit.secondsLeft('a')).toBe(1)
  expect(limit.secondsLeft('b')).toBe(0)
  expect(limited).toEqual(['a'])
})

test('AttemptLimit does not count attempts of an earlier window', () => {
  let now = 0
  const limit = new AttemptLimit({ attempts: 2, windowMs: 1000, now: () => now })
  limit.failed('a', 'first')
  now = 1000
  limit.failed('a', 'second')
  expect(limit.secondsLeft('a')).toBe(0)
  limit.failed('a', 'third')
  expect(limit.secondsLeft('a')).toBe(1)
  now = 2000
  expect(limit.secondsLeft('a')).toBe(0)
})
