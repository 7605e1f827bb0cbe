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

/** What may and what must differ. */
function expectedOf(name: string, way: Exclude<Way, 'bare'>): { may: string[]; must: string[] } {
  const entries = EXPECTED_DIFFERENCES.filter(
    ({ cases, ways: only }) => cases.includes(name) && (only === undefined || only.includes(way)),
  )
  const named = (isOpen: boolean) =>
    entries
      .filter(({ verdict }) => (verdict === 'open') === isOpen)
      .flatMap(({ differences: names }) => names)
  return { may: [...EVERYWHERE, ...named(true)], must: [...new Set(named(false))].sort() }
}

test.each(Object.entries(ALL))('%s', async (name, given: ParityCase) => {
  const bare = await ways.observe('bare', given)
  for (const way of ['runtime', 'adapters'] as const) {
    const seen: Observation = await ways.observe(way, given)
    const { may, must } = expectedOf(name, way)
    const found = differences(bare, seen, given).filter(
      difference => must.includes(difference) || !may.includes(difference),
    )
    expect(found, `${way}: ${seen.errors.join(' | ')}`).toEqual(must)
  }
})

test('there are at least 120 agents that call a model or a callback, and the table names agents that exist', () => {
  expect(Object.keys(ALL).length).toBeGreaterThanOrEqual(120)
  const named = EXPECTED_DIFFERENCES.flatMap(({ cases }) => cases)
  expect(named.filter(name => !(name in ALL))).toEqual([])
})
