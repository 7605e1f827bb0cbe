import { expect, test } from 'vitest'
import { readDueTime } from './due-time.js'

test.each([
  [new Date(5), 5],
  [1_800_000_000_000, 1_800_000_000_000],
  ['2027-03-01T09:00:00Z', Date.UTC(2027, 2, 1, 9)],
  ['2027-03-01T09:00+01:00', Date.UTC(2027, 2, 1, 8)],
  ['2028-02-29T23:59:59.500-05:30', Date.UTC(2028, 2, 1, 5, 29, 59, 500)],
])('%s is accepted as the time of a run', (value, expected) => {
  expect(readDueTime(value)).toBe(expected)
})

test.each([
  '2027-03-01T09:00:00',
  '2027-03-01',
  '2027-02-30T09:00:00Z',
  '2027-13-01T09:00:00Z',
  '2027-03-01T25:00:00Z',
  'tomorrow',
  '1800000000000',
  '',
  -1,
  1.5,
  Number.NaN,
  1e15,
  new Date(Number.NaN),
  null,
  undefined,
  {},
])('%s is refused as the time of a run', value => {
  expect(readDueTime(value)).toBeUndefined()
})
