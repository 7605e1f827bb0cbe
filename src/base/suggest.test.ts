import { expect, test } from 'vitest'
import { suggest } from './suggest.js'

const KNOWN = ['agent', 'apiKey', 'baseUrl', 'maxTurns', 'log']

test.each([
  ['agnet', 'agent'],
  ['apikey', 'apiKey'],
  ['api_key', 'apiKey'],
  ['base-url', 'baseUrl'],
  ['maxTurn', 'maxTurns'],
  ['logs', 'log'],
  ['temperature', undefined],
  ['', undefined],
])('"%s" probably means %s', (name, expected) => {
  expect(suggest(name, KNOWN)).toBe(expected)
})
