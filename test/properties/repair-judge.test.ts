import { expect, test } from 'vitest'
import { fuzzRepair } from '../fuzz/repair.js'
import { SEED } from '../support/seed.js'
import { longUnless } from '../support/tiers.js'
import { signHistory, strictJudge } from './repair-judge.js'

for (const count of [50, 3000])
  test(`strict servers accept ${count} generated histories after repair`, {
    ...longUnless(count === 50),
    timeout: 600_000,
  }, () => {
    const report = fuzzRepair(count, SEED, { judge: strictJudge, prepare: signHistory })
    expect(report.failures).toEqual([])
    expect(report.untouched).toBeGreaterThan(count / 3)
  })
