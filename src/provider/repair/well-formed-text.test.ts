import { expect, test } from 'vitest'
import type { ProviderMessage } from '../provider.js'
import { repairHistory } from './repair-history.js'

test('surrogate pairs stay and unpaired surrogates are replaced, in every kind of part', () => {
  const history: ProviderMessage[] = [
    { role: 'user', parts: [{ type: 'text', text: '😀 \ude00' }] },
    {
      role: 'assistant',
      parts: [{ type: 'tool-call', id: 'a\ud800', name: 'b\ud800', args: { list: ['\udfff', 1] } }],
    },
    { role: 'tool', parts: [{ type: 'tool-result', id: 'a\ud800', name: 'b\ud800', result: 'c\ud800' }] },
  ]
  const { messages } = repairHistory(history, 'ollama')
  expect(messages).toEqual([
    { role: 'user', parts: [{ type: 'text', text: '😀 \ufffd' }] },
    {
      role: 'assistant',
      parts: [{ type: 'tool-call', id: 'a\ufffd', name: 'b\ufffd', args: { list: ['\ufffd', 1] } }],
    },
    { role: 'tool', parts: [{ type: 'tool-result', id: 'a\ufffd', name: 'b\ufffd', result: 'c\ufffd' }] },
  ])
})

test('deeply nested JSON does not overflow the stack', () => {
  let deep: unknown = 'bottom'
  for (let level = 0; level < 50_000; level++) deep = [deep]
  const history: ProviderMessage[] = [
    { role: 'tool', parts: [{ type: 'tool-result', id: 'a', name: 'b', result: deep }] },
  ]
  expect(repairHistory(history, 'ollama').messages).toBe(history)
})
