// Each agent three ways. A difference from bare ADK that `expected-differences.ts` does not list is a failure, and so is an
// entry there that no longer holds.
import { LogLevel, setLogLevel } from '@google/adk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ALL } from './agents.js'
import { differences } from './compare.js'
import { EVERYWHERE, EXPECTED_DIFFERENCES } from './expected-differences.js'
import { type Observation, type ParityCase, type Way, Ways } from './parity.js'

const ways = new Ways()
beforeAll(() => setLogLevel(LogLevel.ERROR))
afterAll(() => ways.close())

function expectedOf(name: string, way: Exclude<Way, 'bare'>): string[] {
  const entries = EXPECTED_DIFFERENCES.filter(
    ({ cases, ways: only }) => cases.includes(name) && (only === undefined || only.includes(way)),
  )
  return [...new Set(entries.flatMap(({ differences: names }) => names))].sort()
}

test.each(Object.entries(ALL))(
  'the runtime and the adapters run as bare ADK: %s',
  async (name, given: ParityCase) => {
    const bare = await ways.observe('bare', given)
    for (const way of ['runtime', 'adapters'] as const) {
      const seen: Observation = await ways.observe(way, given)
      const found = differences(bare, seen, given).filter(difference => !EVERYWHERE.includes(difference))
      expect(found, `${way}: ${seen.errors.join(' | ')}`).toEqual(expectedOf(name, way))
    }
  },
)

test('there are at least 120 agents that call a model or a callback, and the table names agents that exist', () => {
  expect(Object.keys(ALL).length).toBeGreaterThanOrEqual(120)
  const named = EXPECTED_DIFFERENCES.flatMap(({ cases }) => cases)
  expect(named.filter(name => !(name in ALL))).toEqual([])
})
