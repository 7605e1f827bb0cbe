import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ProviderMessage } from '../../src/provider/provider.js'
import { repairHistory } from '../../src/provider/repair/repair-history.js'
import { fuzzRepair } from '../fuzz/repair.js'
import { SEED } from '../support/seed.js'
import { longUnless } from '../support/tiers.js'
import { buildHistory, deepFreeze, tapeChooser } from './repair-generator.js'
import { checkLaws, PROFILE_NAMES } from './repair-laws.js'

const tapes = fc.array(fc.nat(9999), { maxLength: 160, size: 'max' })
const histories = tapes.map(historyOf)

function historyOf(tape: number[]): ProviderMessage[] {
  return deepFreeze(buildHistory(tapeChooser(tape)))
}

const RUNS = [
  [60, longUnless(true)],
  [3000, longUnless(false)],
] as const

for (const [numRuns, tier] of RUNS)
  test(`repair of ${numRuns} histories is valid on every profile, idempotent, reported in full, and does not change its input`, {
    ...tier,
    timeout: 600_000,
  }, () => {
    fc.assert(
      fc.property(histories, history => {
        for (const profile of PROFILE_NAMES) {
          const { broken } = checkLaws(history, profile)
          if (broken !== undefined) throw new Error(`${profile}: ${broken}`)
        }
      }),
      { numRuns, seed: SEED },
    )
  })

test.each([[21063862, 'a result of another name, in the second message with results']])(
  'repair keeps its properties on the fuzz history with seed %i: %s',
  seed => {
    expect(fuzzRepair(1, seed).failures).toEqual([])
  },
)

for (const [numRuns, tier] of RUNS)
  test(`repair gives the same result for two equal histories, ${numRuns} times`, tier, () => {
    fc.assert(
      // Built twice: instances of classes would not survive a copy.
      fc.property(tapes, fc.constantFrom(...PROFILE_NAMES), (tape, profile) => {
        const once = repairHistory(historyOf(tape), profile)
        expect(repairHistory(historyOf(tape), profile)).toEqual(once)
      }),
      { numRuns, seed: SEED },
    )
  })
