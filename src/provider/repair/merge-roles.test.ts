import { expect, test } from 'vitest'
import type { ProviderMessage, ProviderPart } from '../provider.js'
import { repairHistory } from './repair-history.js'

const text = (words: string): ProviderPart => ({ type: 'text', text: words })

test('messages are merged, parts are not, so signatures stay on their parts', () => {
  const signed: ProviderPart = { type: 'text', text: 'one', signature: 's', origin: { vendor: 'gemini' } }
  const history: ProviderMessage[] = [
    { role: 'user', parts: [text('hi')] },
    { role: 'assistant', parts: [signed] },
    { role: 'assistant', parts: [text('two')] },
    { role: 'user', parts: [text('go')] },
  ]
  const { messages } = repairHistory(history, 'gemini-3')
  expect(messages[1]?.parts).toEqual([signed, text('two')])
  expect(messages[1]?.parts[0]).toBe(signed)
})

test('results and the text after them stay two messages', () => {
  const history: ProviderMessage[] = [
    { role: 'user', parts: [text('hi')] },
    { role: 'assistant', parts: [{ type: 'tool-call', id: 'a', name: 'b', args: {}, signature: 's' }] },
    { role: 'user', parts: [{ type: 'tool-result', id: 'a', name: 'b', result: {} }] },
    { role: 'user', parts: [text('and?')] },
  ]
  expect(repairHistory(history, 'gemini-3-strict').messages).toBe(history)
})

test('any number of consecutive messages becomes one, with a receipt for each merge', () => {
  const run = Array.from(
    { length: 5000 },
    (_, index): ProviderMessage => ({ role: 'user', parts: [text(`${index}`)] }),
  )
  const { messages, repairs } = repairHistory(run, 'vllm')
  expect(messages).toHaveLength(1)
  expect(messages[0]?.parts).toHaveLength(5000)
  expect(repairs).toHaveLength(4999)
})
