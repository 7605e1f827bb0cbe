import { expect, test } from 'vitest'
import { PROFILES, type ProfileName } from '../../src/provider/repair/profile.js'
import { playSession } from './steady-sessions.js'

/** `npm run fuzz -- steady` plays many more. */
const SESSIONS = 2

test.each(Object.keys(PROFILES) as ProfileName[])(
  'each request of a session to %s extends the one before it, or one receipt says why not',
  async profile => {
    let pairs = 0
    for (let seed = 1; seed <= SESSIONS; seed++) {
      const report = await playSession(profile, seed)
      expect(report.broken).toEqual([])
      pairs += report.pairs
    }
    expect(pairs).toBeGreaterThan(10)
  },
  120_000,
)

test('after a restart, a break is reported although an agent made its last request nine runs ago', async () => {
  const report = await playSession('openai-chat', 700264)
  expect(report.breaks.tools).toBe(1)
  expect(report.broken).toEqual([])
}, 120_000)

test('a request that is asked again after a crash does not replace the receipts of the lost attempt', async () => {
  const report = await playSession('anthropic-5.1', 7034)
  expect(report.resumed).toBe(1)
  expect(report.broken).toEqual([])
}, 120_000)
