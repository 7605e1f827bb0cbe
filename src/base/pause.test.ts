import { expect, test } from 'vitest'
import { createPause } from './pause.js'

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
