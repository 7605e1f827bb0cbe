import { expect, test } from 'vitest'
import { PROFILES, type ProfileName } from '../../src/provider/repair/profile.js'
import { LONG } from '../support/tiers.js'
import { playSession } from './steady-sessions.js'

/** With the two seeds below, which once failed, one profile of each family of wires. */
const FAMILIES: readonly ProfileName[] = ['gemini-3', 'openai-responses', 'converse']

/** `npm run fuzz -- steady` plays many more. */
async function playSessions(profile: ProfileName, count: number): Promise<void> {
  let pairs = 0
  for (let seed = 1; seed <= count; seed++) {
    const report = await playSession(profile, seed)
    expect(report.broken, `seed ${seed}`).toEqual([])
    pairs += report.pairs
  }
  expect(pairs).toBeGreaterThan(5 * count)
}

test.each(FAMILIES)(
  'each request of a session with %s extends the one before it, or one receipt says why not',
  profile => playSessions(profile, 1),
)

test.each(Object.keys(PROFILES) as ProfileName[])(
  'each request of ten sessions with %s extends the one before it, or one receipt says why not',
  LONG,
  profile => playSessions(profile, 10),
)

test('after a restart, a break is reported although an agent made its last request nine runs ago', async () => {
  const report = await playSession('openai-chat', 700264)
  expect(report.breaks.tools).toBe(1)
  expect(report.broken).toEqual([])
})

test('a request that is asked again after a crash does not replace the receipts of the lost attempt', async () => {
  const report = await playSession('anthropic-5.1', 7034)
  expect(report.resumed).toBe(1)
  expect(report.broken).toEqual([])
})
