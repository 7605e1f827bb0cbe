import { describe, expect, test } from 'vitest'
import type { ProviderMessage } from '../../src/provider/provider.js'
import { lintHistory } from '../../src/provider/repair/lint-history.js'
import { repairHistory } from '../../src/provider/repair/repair-history.js'
import { ELSEWHERE, MALFORMED_HISTORIES } from '../fixtures/malformed-histories.js'
import { PROFILE_NAMES } from './repair-laws.js'
import { violations } from './repair-legality.js'

/** Faults that explain another one: lint reports them, and not what follows from them. */
const CAUSES: Readonly<Record<string, readonly string[]>> = {
  'distant-result': ['misplaced-system', 'scattered-results'],
}

describe.each(MALFORMED_HISTORIES)('row $row: $title', row => {
  test('lint reports it for exactly the profiles that refuse it', () => {
    const finders = PROFILE_NAMES.filter(profile =>
      lintHistory(row.history, profile, { next: 'none' }).some(
        ({ code }) => code === row.code || CAUSES[row.code]?.includes(code),
      ),
    )
    expect(finders.toSorted()).toEqual([...row.rejectedBy].toSorted())
  })

  test.each(row.rejectedBy)('%s: repair produces the expected history and receipts', profile => {
    const { messages, repairs } = repairHistory(row.history, profile)
    const own = row.code === 'missing-reasoning'
    const sent = own ? messages : messages.map(withoutRequiredReasoning).filter(message => !isFiller(message))
    expect(sent).toEqual(row.expect(profile))
    const receipts = typeof row.receipts === 'function' ? row.receipts(profile) : row.receipts
    const told = repairs.filter(
      ({ step }) => step !== 'answer-results' && (own || step !== 'require-reasoning'),
    )
    expect(told.map(repair => `${repair.step}/${repair.kind}@${repair.at}`)).toEqual(receipts)
    expect(violations(messages, profile)).toEqual([])
  })
})

// What DeepSeek, Kimi and Mistral's template require is a separate row; in the others it would hide their subject.
function withoutRequiredReasoning(message: ProviderMessage): ProviderMessage {
  const parts = message.parts.filter(
    part => part.type !== 'reasoning' || !['', '(no reasoning was recorded)'].includes(part.text),
  )
  return parts.length === message.parts.length ? message : { ...message, parts }
}

function isFiller({ role, parts }: ProviderMessage): boolean {
  return role === 'assistant' && parts[0]?.type === 'text' && parts[0].text === '[interrupted]'
}

test('every row of the catalogue is repaired here or tested elsewhere', () => {
  const rows = new Set([...MALFORMED_HISTORIES, ...ELSEWHERE].map(({ row }) => row))
  expect([...rows].toSorted((one, other) => one - other)).toEqual(
    Array.from({ length: 77 }, (_, index) => index + 1),
  )
})
