import { expect, test } from 'vitest'
import { atOnce, createPause, inSlices, inTurn, type Steps } from './pause.js'

test('timers fire while a loop of resolved promises pauses', async () => {
  const pause = createPause(1)
  let fired = false
  setTimeout(() => {
    fired = true
  }, 0)
  for (let round = 0; !fired && round < 10_000_000; round += 1) await pause()
  expect(fired).toBe(true)
})

test('within the interval it does not wait for the event loop', async () => {
  const pause = createPause(60_000)
  let turned = false
  setImmediate(() => {
    turned = true
  })
  for (let round = 0; round < 1000; round += 1) await pause()
  expect(turned).toBe(false)
})

test('work in steps has the same result at once and in slices, and timers fire between slices', async () => {
  let fired = 0
  let steps = 0
  function* work(until: () => boolean): Steps<string> {
    for (steps = 0; !until() && steps < 10_000_000; steps += 1) yield
    return 'done'
  }
  expect(atOnce(work(() => steps === 3))).toBe('done')
  setTimeout(() => {
    fired = 1
  }, 0)
  expect(await inSlices(work(() => fired === 1))).toBe('done')
  expect(fired).toBe(1)
})

test('work in turn begins at once, and again after its end', async () => {
  const seen: string[] = []
  const work = inTurn(async () => {
    seen.push('begin')
    await new Promise(setImmediate)
    seen.push('end')
  })
  const both = Promise.all([work(), work()])
  expect(seen).toEqual(['begin'])
  await both
  expect(seen).toEqual(['begin', 'end', 'begin', 'end'])
})
