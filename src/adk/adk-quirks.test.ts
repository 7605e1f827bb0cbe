import { expect, test } from 'vitest'
import { adkFailure } from './adk-quirks.js'

test.each([
  ['Agent ghost not found in the agent tree.', { kind: 'unknown-agent', name: 'ghost' }],
  ['failed to find agent: ghost', { kind: 'unknown-agent', name: 'ghost' }],
  ['run failed: failed to find agent: ghost_2', { kind: 'unknown-agent', name: 'ghost_2' }],
  ['Function nope is not found in the toolsDict.', { kind: 'unknown-tool', name: 'nope' }],
  ['Max number of llm calls limit of 500 exceeded', { kind: 'model-call-limit' }],
  ['429 Too Many Requests', { kind: 'other' }],
  ['The user asked about an agent that was not found in the agent tree of life', { kind: 'other' }],
])('adkFailure classifies the message %j', (message, expected) => {
  expect(adkFailure(message)).toEqual(expected)
})
