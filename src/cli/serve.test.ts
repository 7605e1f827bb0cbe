import { expect, test } from 'vitest'
import { closingTimes } from './serve.js'

test.each([
  [{ graceMs: 4000 }, { graceMs: 4000, serverMs: 6000, closeMs: 8000 }],
  [{ graceMs: 60_000 }, { graceMs: 60_000, serverMs: 62_000, closeMs: 64_000 }],
  [
    { graceMs: 4000, closeMs: 1000 },
    { graceMs: 500, serverMs: 750, closeMs: 1000 },
  ],
  [
    { graceMs: 60_000, closeMs: 20_000 },
    { graceMs: 16_000, serverMs: 18_000, closeMs: 20_000 },
  ],
])('with %o, active runs have their whole grace before the server is left', (settings, times) => {
  expect(closingTimes(settings)).toEqual(times)
})
