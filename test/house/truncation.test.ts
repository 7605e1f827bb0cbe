// A truncation rule is written in at most two files: session/fit-to-budget.ts decides what is left out or shortened,
// for stored and for neutral messages; session/budget.ts has the limits and how a stored message is measured.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

const SOURCES = new Map(
  readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter(name => /\.tsx?$/.test(name) && !/\.test\.tsx?$/.test(name))
    .map(name => [`src/${name.replaceAll('\\', '/')}`, readFileSync(join(ROOT, 'src', name), 'utf8')]),
)

function filesWith(pattern: RegExp): string[] {
  return [...SOURCES].flatMap(([name, text]) => (pattern.test(text) ? [name] : [])).sort()
}

test('one file reports what was truncated', () => {
  expect(filesWith(/\bkeptTokens: (?!number)/)).toEqual(['src/session/fit-to-budget.ts'])
})

test('one file moves a cut in steps and drops or shortens within a turn', () => {
  const options = filesWith(/\bdropWithinTurn\?:/)
  expect(options).toEqual(['src/session/fit-to-budget.ts'])
  // Memory takes a share of the budget for its log; it moves no cut.
  const shares = filesWith(/budget(Tokens)? (\/ 4|\* )/).filter(name => !name.startsWith('src/memory/'))
  expect(shares).toEqual(['src/session/fit-to-budget.ts'])
})

test('one file has the default limits of a history', () => {
  expect(filesWith(/\b(DEFAULT_BUDGET_TOKENS|OBSERVATIONAL_BUDGET_TOKENS|DEFAULT_MAX_MESSAGES) = /)).toEqual([
    'src/session/budget.ts',
  ])
})

test('every truncation goes through fitToBudget', () => {
  expect(filesWith(/\bfitToBudget\(/)).toEqual([
    'src/adk/history-guard.ts',
    'src/adk/model/fit-request.ts',
    'src/session/budget.ts',
  ])
  // The first one is the example in its own comment.
  expect(filesWith(/\btokenBudgetTruncate\(/)).toEqual(['src/session/budget.ts', 'src/store/sql-load.ts'])
})

test('one file decides what starts a turn', () => {
  const owners = filesWith(/role === 'user' && !?(byProgram|isSynthetic)/)
  expect(owners).toEqual(['src/session/turn.ts'])
  expect(filesWith(/\bisTurnStart\(\{/)).toEqual([
    'src/adk/model/convert-messages.ts',
    'src/adk/model/fit-request.ts',
    'src/provider/repair/match-results.ts',
    'src/session/turn.ts',
  ])
})
