import { expect, test } from 'vitest'
import { isAgentName, isRequestTool } from './names.js'

test.each([
  ['root', true],
  ['_root-2', true],
  ['2nd', false],
  ['with space', false],
  ['', false],
  ['user', false],
])('the agent name %j is valid: %s', (name, expected) => {
  expect(isAgentName(name)).toBe(expected)
})

test.each([
  ['adk_request_confirmation', true],
  ['adk_request_credential', true],
  ['request_confirmation', false],
  [undefined, false],
])('a call of the tool %j is a request to a person: %s', (name, expected) => {
  expect(isRequestTool(name)).toBe(expected)
})
