import { describe, expect, test } from 'vitest'
import type { Message } from './message.js'
import { isSyntheticMetadata, isTurnStart, startsTurn } from './turn.js'

test.each([
  ['a message by the user', 'user', false, true, true],
  ['a message by a program in the role of the user', 'user', true, true, false],
  ['the answer of a tool in the role of the user', 'user', false, false, false],
  ['an answer of the model', 'assistant', false, true, false],
  ['a system message', 'system', false, true, false],
])('isTurnStart of %s', (_, role, byProgram, speaks, expected) => {
  expect(isTurnStart({ role, byProgram, speaks })).toBe(expected)
})

describe('startsTurn', () => {
  const synthetic = { customMetadata: { lango: { synthetic: true } } }
  test.each<[string, Partial<Message>, boolean]>([
    ['a question', {}, true],
    ['a question that begins like a text of ADK', { content: 'For context: why?' }, true],
    ['a question that begins like a text of Lango', { content: '[System: why?' }, true],
    ['a message without text', { content: '' }, true],
    ['a correction by Lango', { extra: synthetic }, false],
    ['metadata of another program', { extra: { customMetadata: { synthetic: true } } }, true],
    ['a tool result', { toolCalls: [{ id: 'a', name: 'look', output: '1' }] }, false],
    ['a call that the user made', { toolCalls: [{ id: 'a', name: 'look', input: '{}' }] }, true],
    [
      'an older row with call and answer',
      { toolCalls: [{ id: 'a', name: 'b', input: '', output: '' }] },
      false,
    ],
    ['an answer of the model', { role: 'model' }, false],
    ['an unknown role', { role: 'narrator' }, false],
  ])('startsTurn of %s', (_, fields, expected) => {
    expect(startsTurn({ role: 'user', content: 'Why?', timestamp: 1, ...fields })).toBe(expected)
  })
})

test.each([undefined, null, 'lango', { lango: null }, { lango: { synthetic: 'true' } }, []])(
  'metadata %j is not synthetic',
  metadata => {
    expect(isSyntheticMetadata(metadata)).toBe(false)
  },
)
