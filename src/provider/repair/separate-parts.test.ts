import { expect, test } from 'vitest'
import type { ProviderMessage } from '../provider.js'
import { repairHistory } from './repair-history.js'

const call = { type: 'tool-call', id: 'aaaaaaaa1', name: 'search', args: {} } as const
const result = { type: 'tool-result', id: 'aaaaaaaa1', name: 'search', result: {} } as const
const text = (words: string) => ({ type: 'text', text: words }) as const

test('a call and its answer stored in one message become two', () => {
  const history: ProviderMessage[] = [
    { role: 'user', parts: [text('hi')] },
    { role: 'assistant', parts: [text('let me'), call, result, text('done')] },
  ]
  const { messages, repairs } = repairHistory(history, 'openai-chat')
  expect(messages.slice(1)).toEqual([
    { role: 'assistant', parts: [text('let me'), call] },
    { role: 'tool', parts: [result] },
    { role: 'assistant', parts: [text('done')] },
  ])
  expect(repairs).toMatchObject([{ step: 'separate-parts', kind: 'split', at: 1 }])
})

test('text in a tool message and media in a system message become user messages', () => {
  const image = { type: 'media', mimeType: 'image/png', data: 'eA==' } as const
  const history: ProviderMessage[] = [
    { role: 'system', parts: [text('rules'), image] },
    { role: 'tool', parts: [text('out of band')] },
  ]
  const { messages } = repairHistory(history, 'openai-chat')
  expect(messages).toEqual([
    { role: 'system', parts: [text('rules')] },
    { role: 'user', parts: [image] },
    { role: 'user', parts: [text('out of band')] },
  ])
})

test.each(['anthropic-4.6', 'gemini-3-strict'])(
  '%s takes a user message that holds results alone',
  profile => {
    const signed = { ...call, signature: 's', origin: { vendor: 'gemini' } }
    const history: ProviderMessage[] = [
      { role: 'user', parts: [text('hi')] },
      { role: 'assistant', parts: [signed] },
      { role: 'user', parts: [result] },
    ]
    expect(repairHistory(history, profile).messages).toBe(history)
  },
)
