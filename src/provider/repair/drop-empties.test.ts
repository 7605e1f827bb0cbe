import { expect, test } from 'vitest'
import type { ProviderMessage, ProviderPart } from '../provider.js'
import { repairHistory } from './repair-history.js'

const user = (...parts: ProviderPart[]): ProviderMessage => ({ role: 'user', parts })
const hi: ProviderPart = { type: 'text', text: 'hi' }

test('an empty text with a Gemini signature is kept for Gemini', () => {
  const closing: ProviderPart = { type: 'text', text: '', signature: 's', origin: { vendor: 'gemini' } }
  const history = [
    user(hi),
    { role: 'assistant', parts: [{ type: 'text' as const, text: 'yes' }, closing] },
    user(hi),
  ]
  expect(repairHistory(history, 'gemini-3').messages).toBe(history)
})

test('media without data or URL are dropped, also in results', () => {
  const hollow = { type: 'media', mimeType: 'image/png' } as const
  const call: ProviderPart = { type: 'tool-call', id: 'a', name: 'b', args: {} }
  const result: ProviderPart = { type: 'tool-result', id: 'a', name: 'b', result: 'x', media: [hollow] }
  const { messages } = repairHistory(
    [user(hi, hollow), { role: 'assistant', parts: [call] }, { role: 'tool', parts: [result] }],
    'openai-responses',
  )
  expect(messages[0]).toEqual(user(hi))
  expect(messages[2]?.parts).toEqual([{ ...result, media: [] }])
})

test('empty text is kept for profiles that accept it', () => {
  const history = [user(hi), { role: 'assistant', parts: [{ type: 'text' as const, text: '' }] }, user(hi)]
  expect(repairHistory(history, 'openai-chat').messages).toBe(history)
})
