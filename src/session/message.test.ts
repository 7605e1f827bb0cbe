import { expect, test } from 'vitest'
import { isToolError } from './message.js'

test.each<[string, unknown, boolean]>([
  ['a message under `error`', { error: 'no such file' }, true],
  ['an error and data', { rows: [], error: 'timeout' }, true],
  ['an error as an object', { error: { code: 404 } }, true],
  ['error: true', { error: true }, true],
  ['a result in the shape of MCP that failed', { content: [], isError: true }, true],
  ['error: null and data', { rows: [1], error: null }, false],
  ['error: null alone', { error: null }, false],
  ['error: undefined', { error: undefined }, false],
  ['an empty message', { error: '' }, false],
  ['error: false', { error: false }, false],
  ['error: 0, an exit code', { error: 0 }, false],
  ['isError: false', { isError: false }, false],
  ['isError as a text', { isError: 'true' }, false],
  ['an error deeper within', { result: { error: 'x' } }, false],
  ['an inherited error', Object.create({ error: 'x' }), false],
  ['a list', [{ error: 'x' }], false],
  ['a list with a field', Object.assign([], { error: 'x' }), false],
  ['a text', 'error: x', false],
  ['a number', 7, false],
  ['null', null, false],
  ['nothing', undefined, false],
  ['an empty object', {}, false],
])('isToolError of %s', (_name, result, expected) => {
  expect(isToolError(result)).toBe(expected)
})
