import { describe, expect, test } from 'vitest'
import { repairHistory } from '../../src/provider/repair/repair-history.js'
import { MALFORMED_HISTORIES } from '../fixtures/malformed-histories.js'
import { fuzzRepair } from '../fuzz/repair.js'
import { SEED } from '../support/seed.js'
import { signHistory, strictJudge } from './repair-judge.js'

describe.each(MALFORMED_HISTORIES)('row $row: $title', row => {
  test.each(row.rejectedBy)('%s: the strict server accepts the repaired history', profile => {
    const { messages } = repairHistory(signHistory(row.history), profile)
    expect(strictJudge(messages, profile)).toEqual([])
  })
})

test('strict servers accept every repaired history', { timeout: 600_000 }, () => {
  const report = fuzzRepair(600, SEED, { judge: strictJudge, prepare: signHistory })
  expect(report.failures).toEqual([])
  expect(report.untouched).toBeGreaterThan(200)
})
