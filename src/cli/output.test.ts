import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { OutputStream } from './io.js'
import { type Column, Progress, tableLines } from './output.js'
import { textWidth } from './plain-text.js'

const COLUMNS: Column[] = [
  { title: 'ID', least: 6 },
  { title: 'N', align: 'right' },
  { title: 'TEXT', flexible: true, least: 8 },
]

test('columns of a table line up, also with wide letters', () => {
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

test.each([80, 40, 30, 24])('no line of a table is wider than %i columns', width => {
  const rows = [['a-very-long-session-id-of-36-characters', '12', '漢字'.repeat(40)]]
  for (const line of tableLines(COLUMNS, rows, width)) expect(textWidth(line)).toBeLessThanOrEqual(width)
})

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] })
})

afterEach(() => {
  vi.useRealTimers()
})

/** Counts to 100, a quarter of a second each, and returns what was written. */
function count(isTTY: boolean, steps: number): string[] {
  const written: string[] = []
  const stderr = { isTTY, write: (text: string) => written.push(text) } as unknown as OutputStream
  const progress = new Progress({ stderr })
  for (let step = 1; step <= steps; step += 1) {
    vi.advanceTimersByTime(250)
    progress.report(() => `step ${step}`)
  }
  progress.end()
  return written
}

test('a task that ends within half a second reports no progress', () => {
  expect(count(true, 1)).toEqual([])
})

test('progress on a terminal rewrites one line and clears it at the end', () => {
  expect(count(true, 4)).toEqual(['\rstep 2\u001b[K', '\rstep 3\u001b[K', '\rstep 4\u001b[K', '\r\u001b[K'])
})

test('progress on a narrow terminal is cut to one line, which can be overwritten', () => {
  const written: string[] = []
  const write = (text: string) => written.push(text)
  const stderr = { isTTY: true, columns: 12, write } as unknown as OutputStream
  const progress = new Progress({ stderr })
  vi.advanceTimersByTime(1000)
  progress.report(() => 'exported 3,000 sessions')
  expect(written).toEqual(['\rexported 3…\u001b[K'])
})

test('progress in a pipe adds a line every five seconds', () => {
  expect(count(false, 45)).toEqual(['step 20\n', 'step 40\n'])
})
