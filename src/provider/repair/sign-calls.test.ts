import { expect, test } from 'vitest'
import type { ProviderMessage, ToolCallPart } from '../provider.js'
import { repairHistory } from './repair-history.js'
import { DUMMY_SIGNATURE } from './sign-calls.js'

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

test('only the steps of the current turn get a placeholder, and real signatures stay', () => {
  const history = [user, ...step('a'), user, ...step('b', 'real'), ...step('c'), ...step('d')]
  const { messages, repairs } = repairHistory(history, 'gemini-3')
  expect(signatures(messages)).toEqual([undefined, 'real', DUMMY_SIGNATURE, DUMMY_SIGNATURE])
  expect(repairs.map(repair => repair.at)).toEqual([6, 8])
})

test('calls before a user message need no signature', () => {
  const history = [user, ...step('a')]
  expect(repairHistory(history, 'gemini-3', { next: 'user' }).messages).toBe(history)
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
