import { expect, test } from 'vitest'
import { ago, compact, count, grouped, localTime } from './wording.js'

test.each([
  [0, '0'],
  [999, '999'],
  [1000, '1,000'],
  [1_234_567, '1,234,567'],
])('%i is grouped as %s', (number, text) => {
  expect(grouped(number)).toBe(text)
})

test.each([
  [900, '900'],
  [8192, '8K'],
  [16_384, '16K'],
  [64_000, '64K'],
  [65_536, '64K'],
  [128_000, '128K'],
  [131_072, '128K'],
  [1_000_000, '1M'],
  [1_048_576, '1M'],
  [1_050_000, '1.05M'],
])('%i tokens are shown as %s', (number, text) => {
  expect(compact(number)).toBe(text)
})

test.each([
  [0, 'just now'],
  [59_000, 'just now'],
  [60_000, '1 min ago'],
  [7_200_000, '2 h ago'],
  [86_400_000 * 3, '3 d ago'],
  [-5000, 'just now'],
])('%i ms are shown as %s', (passed, text) => {
  expect(ago(1_700_000_000_000 - passed, 1_700_000_000_000)).toBe(text)
})

test('a count of one is singular, and an invalid time is shown as unknown', () => {
  expect([count(1, 'message'), count(2000, 'message')]).toEqual(['1 message', '2,000 messages'])
  expect(localTime(Number.NaN)).toBe('at an unknown time')
  expect(localTime(8.65e15)).toBe('at an unknown time')
})
