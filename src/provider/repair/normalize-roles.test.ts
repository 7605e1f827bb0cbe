import { expect, test } from 'vitest'
import type { ProviderMessage } from '../provider.js'
import { repairHistory } from './repair-history.js'

const text = { type: 'text', text: 'hi' } as const

test.each([
  ['model', 'assistant'],
  ['Assistant', 'assistant'],
  ['ai', 'assistant'],
  ['human', 'user'],
  ['USER', 'user'],
  ['developer', 'system'],
])('the role %s is sent as %s', (role, known) => {
  const { messages, repairs } = repairHistory([{ role, parts: [text] }], 'ollama')
  expect(messages).toEqual([{ role: known, parts: [text] }])
  expect(repairs).toMatchObject([{ step: 'normalize-roles', kind: 'rename-role', at: 0 }])
})

test('a call of an unknown author becomes the assistant’s, without a name prefix', () => {
  const call = { type: 'tool-call', id: 'a', name: 'search', args: {} } as const
  const { messages } = repairHistory([{ role: 'planner', parts: [call] }], 'ollama')
  expect(messages).toEqual([{ role: 'assistant', parts: [call] }])
})

test('untyped input from other programs is read as far as possible', () => {
  const strange = [
    { role: 'user', parts: 'hello' },
    null,
    { role: 'user' },
    {
      role: 'assistant',
      parts: [null, 7, { type: 'audio' }, { type: 'tool-call', name: 'search', args: {} }],
    },
    { role: 'tool', parts: [{ type: 'tool-result', id: 5, result: 'x' }] },
    { role: 'user', parts: [{ type: 'text' }, { type: 'media', data: 'eA==' }, text] },
  ] as unknown as ProviderMessage[]
  const { messages, repairs } = repairHistory(strange, 'ollama')
  expect(messages).toEqual([
    { role: 'assistant', parts: [{ type: 'tool-call', id: '', name: 'search', args: {} }] },
    { role: 'tool', parts: [{ type: 'tool-result', id: '5', name: '', result: 'x' }] },
    {
      role: 'user',
      parts: [
        { type: 'text', text: '' },
        { type: 'text', text: '[application/octet-stream, which cannot be shown]' },
        text,
      ],
    },
  ])
  expect(repairs.map(({ kind, at }) => `${kind}@${at}`)).toEqual(
    expect.arrayContaining([
      'drop-part@0',
      'drop-part@1',
      'set-role@1',
      'drop-part@3',
      'mend-part@4',
      'mend-part@5',
    ]),
  )
})
