import { expect, test } from 'vitest'
import { Waiter, WaitingLines } from './waiting-lines.js'

test('the next one is woken when the first leaves, and an empty line is gone', async () => {
  const lines = new WaitingLines()
  const [one, two, other] = [new Waiter(), new Waiter(), new Waiter()]
  for (const waiter of [one, two, one]) lines.join('a', waiter)
  lines.join('b', other)
  expect(lines.first('a')).toBe(one)
  const paused = two.pause(60_000, undefined)
  lines.leave('a', one)
  await paused
  expect(lines.first('a')).toBe(two)
  lines.leave('a', two)
  lines.leave('a', two)
  expect(lines.first('a')).toBeUndefined()
  expect(lines.first('b')).toBe(other)
})

test('a waiter that was woken before it pauses does not pause, once', async () => {
  const waiter = new Waiter()
  waiter.wake()
  await waiter.pause(60_000, undefined)
  const { signal } = new AbortController()
  const startedAt = performance.now()
  await waiter.pause(20, signal)
  expect(performance.now() - startedAt).toBeGreaterThan(15)
  await waiter.pause(60_000, AbortSignal.abort())
})

test('those of a line that fails are woken with the reason', async () => {
  const lines = new WaitingLines()
  const waiters = [new Waiter(), new Waiter()]
  for (const waiter of waiters) lines.join('a', waiter)
  const paused = Promise.all(waiters.map(waiter => waiter.pause(60_000, undefined)))
  lines.fail('a', 'deleted')
  await paused
  expect(waiters.map(({ failure }) => failure)).toEqual(['deleted', 'deleted'])
})
