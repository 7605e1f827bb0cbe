import { expect, test } from 'vitest'
import { DUMMY_SIGNATURE } from '../../base/markers.js'
import type { ProviderMessage, ToolCallPart } from '../provider.js'
import { sealFields } from '../sealed-fields.js'
import { repairHistory } from './repair-history.js'

const user: ProviderMessage = { role: 'user', parts: [{ type: 'text', text: 'hi' }] }
const step = (id: string, signature?: string): ProviderMessage[] => [
  {
    role: 'assistant',
    parts: [{ type: 'tool-call', id, name: 'search', args: {}, ...(signature && { signature }) }],
  },
  { role: 'tool', parts: [{ type: 'tool-result', id, name: 'search', result: {} }] },
]
const signatures = (messages: readonly ProviderMessage[]) =>
  messages.flatMap(({ parts }) =>
    parts.filter(part => part.type === 'tool-call').map(part => (part as ToolCallPart).signature),
  )

test('the steps of every turn get a placeholder, and real signatures stay', () => {
  const history = [user, ...step('a'), user, ...step('b', 'real'), ...step('c'), ...step('d')]
  const { messages, repairs } = repairHistory(history, 'gemini-3')
  expect(signatures(messages)).toEqual([DUMMY_SIGNATURE, 'real', DUMMY_SIGNATURE, DUMMY_SIGNATURE])
  expect(repairs.map(repair => repair.at)).toEqual([1, 6, 8])
})

test('a placeholder does not vanish with the next question', () => {
  const history = [user, ...step('a')]
  const before = repairHistory(history, 'gemini-3').messages
  const after = repairHistory([...history, user, ...step('b')], 'gemini-3').messages
  expect(after.slice(0, before.length)).toEqual(before)
})

test('a placeholder signature is kept when the history is repaired again', () => {
  const foreign: ProviderMessage[] = step('a', 'c2ln').map(message => ({
    ...message,
    parts: message.parts.map(part =>
      part.type === 'tool-call' ? { ...part, origin: { vendor: 'openai' } } : part,
    ),
  }))
  const once = repairHistory([user, ...foreign], 'gemini-3').messages
  expect(signatures(once)).toEqual([DUMMY_SIGNATURE])
  expect(repairHistory(once, 'gemini-3').messages).toBe(once)
})

test('a signature in which a gateway’s field cannot be is replaced by the stand-in', () => {
  const call = (signature: string): ProviderMessage => ({
    role: 'assistant',
    parts: [
      {
        type: 'tool-call',
        id: 'id1',
        name: 'search',
        args: {},
        signature,
        origin: { vendor: 'compatible-gemini' },
      },
    ],
  })
  const sent = (fields: unknown) =>
    repairHistory(
      [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }, call(sealFields(fields))],
      'compatible-gemini',
    ).repairs.map(({ step }) => step)
  expect(sent([{ type: 'reasoning.summary', summary: 'short' }])).toContain('sign-calls')
  expect(sent({ google: {} })).toContain('sign-calls')
  expect(sent({ google: { thought_signature: '' } })).toContain('sign-calls')
  expect(sent({ google: { thought_signature: 'c2ln' } })).not.toContain('sign-calls')
  expect(sent({ vertex: { thought_signature: 'c2ln' } })).not.toContain('sign-calls')
})
