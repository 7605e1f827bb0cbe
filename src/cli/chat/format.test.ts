import { expect, test } from 'vitest'
import {
  argumentEntries,
  formatArguments,
  formatCost,
  formatCount,
  formatDuration,
  formatResult,
} from './format.js'

test.each([
  [0, '0'],
  [999, '999'],
  [1000, '1k'],
  [1234, '1.2k'],
  [34_567, '34.6k'],
  [100_400, '100k'],
  [999_700, '1M'],
  [1_234_567, '1.2M'],
])('%i tokens are %s', (count, expected) => expect(formatCount(count)).toBe(expected))

test.each([
  [0, 'free'],
  [0.00001, '<$0.0001'],
  [0.00421, '$0.0042'],
  [1.239, '$1.24'],
])('%f dollars are %s', (cost, expected) => expect(formatCost(cost)).toBe(expected))

test.each([
  [3.4, '3 ms'],
  [1400, '1.4 s'],
  [59_990, '1 min 0 s'],
  [125_000, '2 min 5 s'],
])('%f milliseconds are %s', (time, expected) => expect(formatDuration(time)).toBe(expected))

test.each([
  [{ path: 'a.txt', lines: 3 }, 'path: "a.txt", lines: 3'],
  [{}, ''],
  [{ text: 'a\n\u001b[31mb' }, 'text: "a\\n\\u001b[31mb"'],
  ['odd', '"odd"'],
  [undefined, ''],
])('arguments %j are shown as %s', (args, expected) => expect(formatArguments(args)).toBe(expected))

test('arguments that need approval are shown with their whole texts', () => {
  expect(argumentEntries({ path: 'a', list: [1] })).toEqual([
    { name: 'path', text: 'a' },
    { name: 'list', text: '[1]' },
  ])
})

test.each([
  ['plain', 'plain'],
  [{ result: 'words' }, 'words'],
  [{ error: 'no such file' }, 'no such file'],
  [{ a: 1, b: 'x' }, 'a: 1, b: "x"'],
  [[1, 2], '[1,2]'],
])('the result %j is shown as %s', (result, expected) => expect(formatResult(result)).toBe(expected))
