// The table of malformed histories, row by row and without HTTP: what lint finds, what repair sends instead, and what the
// rules of the strict servers, which share no code with repair, say of it before and after.
import { expect, test } from 'vitest'
import type { ProviderMessage } from '../../src/provider/provider.js'
import { lintHistory } from '../../src/provider/repair/lint-history.js'
import type { ProfileName } from '../../src/provider/repair/profile.js'
import { repairHistory } from '../../src/provider/repair/repair-history.js'
import { ELSEWHERE, MALFORMED_HISTORIES, type MalformedHistory } from '../fixtures/malformed-histories.js'
import { strictJudge } from './repair-judge.js'
import { PROFILE_NAMES } from './repair-laws.js'
import { violations } from './repair-legality.js'
import { signRow } from './sign-row.js'

/** What gateways and hosted APIs refuse is a mixture of the others' rules: their servers judge every row, below. */
const MIXED: readonly ProfileName[] = ['cohere', 'compatible-gemini', 'openrouter', 'openrouter-gemini']
const LISTED = PROFILE_NAMES.filter(name => !MIXED.includes(name))

/** Faults that explain another one: lint reports them, and not what follows from them. */
const CAUSES: Readonly<Record<string, readonly string[]>> = {
  'distant-result': ['misplaced-system', 'scattered-results'],
}

test.each(MALFORMED_HISTORIES)(
  'row $row, $title: lint reports it for exactly the profiles that refuse it',
  row => {
    const finders = LISTED.filter(profile =>
      lintHistory(row.history, profile, { next: 'none' }).some(
        ({ code }) => code === row.code || CAUSES[row.code]?.includes(code),
      ),
    )
    expect(finders.toSorted()).toEqual([...row.rejectedBy].toSorted())
  },
)

test.each(MALFORMED_HISTORIES)(
  'row $row, $title: repair gives each profile that refuses it the expected history and receipts',
  row => {
    for (const profile of row.rejectedBy) expectRepaired(row, profile)
  },
)

function expectRepaired(row: MalformedHistory, profile: ProfileName): void {
  const { messages, repairs } = repairHistory(row.history, profile)
  const own = row.code === 'missing-reasoning'
  const sent = own ? messages : messages.map(withoutRequiredReasoning).filter(message => !isFiller(message))
  expect(sent, profile).toEqual(row.expect(profile))
  const receipts = typeof row.receipts === 'function' ? row.receipts(profile) : row.receipts
  const reported = repairs.filter(
    ({ step }) => step !== 'answer-results' && (own || step !== 'require-reasoning'),
  )
  expect(
    reported.map(repair => `${repair.step}/${repair.kind}@${repair.at}`),
    profile,
  ).toEqual(receipts)
  expect(violations(messages, profile), profile).toEqual([])
}

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

test.each(MALFORMED_HISTORIES)(
  'row $row, $title: the strict server of every profile accepts the repaired history',
  row => {
    const refusals = PROFILE_NAMES.flatMap(profile => {
      const { messages } = repairHistory(signRow(row.history), profile)
      return strictJudge(messages, profile).map(refusal => `${profile}: ${refusal}`)
    })
    expect(refusals).toEqual([])
  },
)

/** Rows that a provider's request writes in a legal form even when repair leaves them as they are. */
const LEGAL_ON_THE_WIRE = [
  'row 12: results in another order than their calls, where only order tells them apart',
  'row 29: an unknown role',
  'row 30: no role',
  'row 41: an empty tool output',
  'row 42: a result that is text',
  'row 42: a result that is a list',
  'row 72: a server tool of another vendor',
  'row 76: half a surrogate pair in text',
]

test('strict servers refuse unrepaired rows: all but eight, and some on every profile', () => {
  const isRefused = (row: MalformedHistory, profile: ProfileName) =>
    strictJudge(signRow(row.history), profile).length > 0
  const accepted = MALFORMED_HISTORIES.filter(row => !row.rejectedBy.some(profile => isRefused(row, profile)))
  expect(accepted.map(({ row, title }) => `row ${row}: ${title}`)).toEqual(LEGAL_ON_THE_WIRE)
  const lenient = PROFILE_NAMES.filter(profile => !MALFORMED_HISTORIES.some(row => isRefused(row, profile)))
  expect(lenient).toEqual([])
})

test('every row of the catalogue is repaired here or tested elsewhere', () => {
  const rows = new Set([...MALFORMED_HISTORIES, ...ELSEWHERE].map(({ row }) => row))
  expect([...rows].toSorted((one, other) => one - other)).toEqual(
    Array.from({ length: 77 }, (_, index) => index + 1),
  )
})
