import { expect, test } from 'vitest'
import { type Cron, isTimeZone, nextTick, parseCron, ticksBetween } from './cron.js'

function cronOf(text: string): Cron {
  const cron = parseCron(text)
  if ('problem' in cron) throw new TypeError(cron.problem)
  return cron
}

const iso = (moment: number | undefined) => (moment === undefined ? '' : new Date(moment).toISOString())

function ticks(text: string, zone: string, from: string, count: number): string[] {
  const found: string[] = []
  let moment = Date.parse(from)
  for (let index = 0; index < count; index++) {
    moment = nextTick(cronOf(text), zone, moment) ?? Number.NaN
    found.push(iso(moment).slice(0, 16))
  }
  return found
}

test.each([
  ['* * * * *', '2027-01-01T00:00:30Z', ['2027-01-01T00:01', '2027-01-01T00:02']],
  ['*/15 9-10 * * *', '2027-01-01T09:40:00Z', ['2027-01-01T09:45', '2027-01-01T10:00']],
  ['5,35 */12 * * *', '2027-01-01T00:05:00Z', ['2027-01-01T00:35', '2027-01-01T12:05']],
  ['0 9 * * MON-FRI', '2027-01-01T09:00:00Z', ['2027-01-04T09:00', '2027-01-05T09:00']],
  ['0 0 * * 7', '2027-01-01T00:00:00Z', ['2027-01-03T00:00', '2027-01-10T00:00']],
  ['0 0 29 feb *', '2027-01-01T00:00:00Z', ['2028-02-29T00:00', '2032-02-29T00:00']],
  ['0 0 13 * FRI', '2027-01-01T00:00:00Z', ['2027-01-08T00:00', '2027-01-13T00:00']],
  ['0 0 31 * *', '2027-01-31T00:00:00Z', ['2027-03-31T00:00', '2027-05-31T00:00']],
  ['10/20 0 1 1 *', '2026-06-01T00:00:00Z', ['2027-01-01T00:10', '2027-01-01T00:30']],
])('cron rule %s after %s gives the next times', (text, from, expected) => {
  expect(ticks(text, 'UTC', from, expected.length)).toEqual(expected)
})

test.each([
  ['', 'five fields'],
  ['* * * *', 'five fields'],
  ['* * * * * *', 'five fields'],
  ['60 * * * *', 'minute'],
  ['* 24 * * *', 'hour'],
  ['* * 0 * *', 'day of the month'],
  ['* * * 13 *', 'month'],
  ['* * * * 8', 'day of the week'],
  ['*/0 * * * *', 'minute'],
  ['9-5 * * * *', 'minute'],
  ['1-2-3 * * * *', 'minute'],
  ['1,, * * * *', 'minute'],
  ['- * * * *', 'minute'],
  ['* * * * MONDAY', 'day of the week'],
  ['@daily', 'five fields'],
  ['0 0 30 2 *', 'never comes'],
  ['0 0 31 4,6 *', 'never comes'],
])('%j is refused as a cron rule, with the reason', (text, problem) => {
  expect(parseCron(text)).toEqual({ problem: expect.stringContaining(problem) })
})

// 2027-03-28 02:00 → 03:00 and 2027-10-31 03:00 → 02:00 in Berlin.
test('a cron time that a clock change skips is moved by the gap', () => {
  expect(ticks('30 2 * * *', 'Europe/Berlin', '2027-03-27T00:00:00Z', 3)).toEqual([
    '2027-03-27T01:30',
    '2027-03-28T01:30',
    '2027-03-29T00:30',
  ])
})

test('a cron time that comes twice counts the first time', () => {
  expect(ticks('30 2 * * *', 'Europe/Berlin', '2027-10-30T12:00:00Z', 2)).toEqual([
    '2027-10-31T00:30',
    '2027-11-01T01:30',
  ])
})

test('a cron rule for every hour follows the clock when it changes', () => {
  expect(ticks('0 * * * *', 'Europe/Berlin', '2027-10-30T23:30:00Z', 4)).toEqual([
    '2027-10-31T00:00',
    '2027-10-31T01:00',
    '2027-10-31T02:00',
    '2027-10-31T03:00',
  ])
  expect(ticks('30 * * * *', 'Europe/Berlin', '2027-03-28T00:00:00Z', 3)).toEqual([
    '2027-03-28T00:30',
    '2027-03-28T01:30',
    '2027-03-28T02:30',
  ])
})

test('cron times are right where daylight time is half an hour, and where a zone left out a day', () => {
  // Lord Howe: 02:00 → 02:30 on 2027-10-03. Apia had no 2011-12-30.
  expect(ticks('15 2 * * *', 'Australia/Lord_Howe', '2027-10-02T00:00:00Z', 1)).toEqual(['2027-10-02T15:45'])
  expect(ticks('0 12 * * *', 'Pacific/Apia', '2011-12-29T12:00:00Z', 2)).toEqual([
    '2011-12-29T22:00',
    '2011-12-30T22:00',
  ])
})

test.each(['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu', 'UTC'])(
  'cron rules for every hour in %s find the same times as a search of every minute of a year',
  zone => {
    const text = '7 * * * *'
    const format = new Intl.DateTimeFormat('en-US', { timeZone: zone, minute: 'numeric' })
    const [from, to] = [Date.UTC(2027, 2, 1), Date.UTC(2027, 10, 15)]
    const expected: number[] = []
    for (let moment = from + 60_000; moment <= to; moment += 60_000)
      if (moment % 900_000 === 420_000) if (Number(format.format(moment)) === 7) expected.push(moment)
    expect(ticksBetween({ cron: cronOf(text), zone }, from, to, 100_000)).toEqual(expected)
  },
)

test('ticks between two moments are the newest ones, oldest first, the later moment included', () => {
  const rule = { cron: cronOf('0 9 * * *'), zone: 'Europe/Berlin' }
  const [after, upTo] = [Date.parse('2027-01-01T08:00:00Z'), Date.parse('2027-01-05T08:00:00Z')]
  expect(ticksBetween(rule, after, upTo, 100).map(iso)).toEqual([
    '2027-01-02T08:00:00.000Z',
    '2027-01-03T08:00:00.000Z',
    '2027-01-04T08:00:00.000Z',
    '2027-01-05T08:00:00.000Z',
  ])
  expect(ticksBetween(rule, after, upTo, 2).map(iso)).toEqual([
    '2027-01-04T08:00:00.000Z',
    '2027-01-05T08:00:00.000Z',
  ])
  expect(ticksBetween(rule, upTo, upTo, 2)).toEqual([])
  expect(ticksBetween(rule, upTo, after, 2)).toEqual([])
})

test('isTimeZone accepts names of time zones and nothing else', () => {
  for (const zone of ['Europe/Berlin', 'UTC', 'America/Argentina/Buenos_Aires'])
    expect(isTimeZone(zone)).toBe(true)
  for (const zone of ['Mars/Olympus', '', '+01:00', 'Europe/Berlin ']) expect(isTimeZone(zone)).toBe(false)
})
