import { expect, test } from 'vitest'
import { pythonJsonError } from './compatible-rules.js'

// What Python 3.11 says to each of these.
test.each([
  ['{"location": "Par', 'Unterminated string starting at: line 1 column 14 (char 13)'],
  ['{"a": ', 'Expecting value: line 1 column 7 (char 6)'],
  ['{"a"', "Expecting ':' delimiter: line 1 column 5 (char 4)"],
  ['{"a": 1', "Expecting ',' delimiter: line 1 column 8 (char 7)"],
  ['{"a": 1,', 'Expecting property name enclosed in double quotes: line 1 column 9 (char 8)'],
  ['{', 'Expecting property name enclosed in double quotes: line 1 column 2 (char 1)'],
  ['[1, 2', "Expecting ',' delimiter: line 1 column 6 (char 5)"],
  ['[1,', 'Expecting value: line 1 column 4 (char 3)'],
  ['{"a": 1} x', 'Extra data: line 1 column 10 (char 9)'],
  ['', 'Expecting value: line 1 column 1 (char 0)'],
  ['tru', 'Expecting value: line 1 column 1 (char 0)'],
  ['{"a": "\\x"}', 'Invalid \\escape: line 1 column 8 (char 7)'],
  ['{"a": "\\u12"}', 'Invalid \\uXXXX escape: line 1 column 9 (char 8)'],
  ['{"a":\n  "b', 'Unterminated string starting at: line 2 column 3 (char 8)'],
  ['{a: 1}', 'Expecting property name enclosed in double quotes: line 1 column 2 (char 1)'],
  ['{"a": 1 "b": 2}', "Expecting ',' delimiter: line 1 column 9 (char 8)"],
  ['"abc', 'Unterminated string starting at: line 1 column 1 (char 0)'],
  ['{"a": [1, {"b": ', 'Expecting value: line 1 column 17 (char 16)'],
  ['{"a": "line\nbreak"}', 'Invalid control character at: line 1 column 12 (char 11)'],
  ['[1,]', 'Expecting value: line 1 column 4 (char 3)'],
  ['"a\\', 'Unterminated string starting at: line 1 column 1 (char 0)'],
])('pythonJsonError reports %j as Python does', (text, expected) => {
  expect(pythonJsonError(text)).toBe(expected)
})

test.each(['{}', '[1, {"a": null}]', '"x"', '{"a": NaN}'])('pythonJsonError accepts %j', text => {
  expect(pythonJsonError(text)).toBeUndefined()
})
