import { expect, test } from 'vitest'
import { type Column, tableLines } from './table.js'
import { textWidth } from './text-width.js'

const COLUMNS: Column[] = [
  { title: 'ID', least: 6 },
  { title: 'N', align: 'right' },
  { title: 'TEXT', flexible: true, least: 8 },
]

test('columns line up, whatever the width of their letters', () => {
  const lines = tableLines(
    COLUMNS,
    [
      ['a', '1', '漢字 text'],
      ['bcd', '1,000', '😀 smile'],
    ],
    80,
  )
  expect(lines).toEqual(['ID       N  TEXT', 'a        1  漢字 text', 'bcd  1,000  😀 smile'])
})

test.each([80, 40, 30, 24])('no line is wider than %i columns', width => {
  const rows = [['a-very-long-session-id-of-36-characters', '12', '漢字'.repeat(40)]]
  for (const line of tableLines(COLUMNS, rows, width)) expect(textWidth(line)).toBeLessThanOrEqual(width)
})
