import { expect, test } from 'vitest'
import type { ProviderMessage, ProviderPart } from '../provider.js'
import { repairHistory } from './repair-history.js'

const thought: ProviderPart = { type: 'reasoning', text: 'hm', signature: 's', origin: { vendor: 'openai' } }
const text = (words: string): ProviderPart => ({ type: 'text', text: words })
const user: ProviderMessage = { role: 'user', parts: [text('hi')] }
const assistant = (...parts: ProviderPart[]): ProviderMessage => ({ role: 'assistant', parts })

test('reasoning whose answer is the next assistant message stays', () => {
  const history = [user, assistant(thought), assistant(text('so'))]
  expect(repairHistory(history, 'openai-responses').messages).toBe(history)
})

test('reasoning followed only by reasoning is dropped, starting at the end', () => {
  const { messages, repairs } = repairHistory(
    [user, assistant(thought), assistant(thought), user],
    'openai-responses',
  )
  expect(messages).toEqual([user, user])
  expect(repairs.map(repair => repair.at)).toEqual([2, 1])
})

test('reasoning after a call is dropped, because the result separates it from what follows', () => {
  const call: ProviderPart = { type: 'tool-call', id: 'a', name: 'b', args: {} }
  const result: ProviderMessage = {
    role: 'tool',
    parts: [{ type: 'tool-result', id: 'a', name: 'b', result: 1 }],
  }
  const { messages } = repairHistory(
    [user, assistant(call, thought), result, assistant(text('so'))],
    'openai-responses',
  )
  expect(messages[1]).toEqual(assistant(call))
})
