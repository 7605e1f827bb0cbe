import { expect, test } from 'vitest'
import type { MediaPart, ProviderMessage, ToolResultPart } from '../provider.js'
import { repairHistory } from './repair-history.js'

const say = (role: string, text: string): ProviderMessage => ({ role, parts: [{ type: 'text', text }] })
const call = (id: string): ProviderMessage => ({
  role: 'assistant',
  parts: [{ type: 'tool-call', id, name: 'search', args: {} }],
})
const result = (id: string, value: unknown, more: Partial<ToolResultPart> = {}): ProviderMessage => ({
  role: 'tool',
  parts: [{ type: 'tool-result', id, name: 'search', result: value, ...more }],
})

test('the text and images of an orphaned result become a user message', () => {
  const image: MediaPart = { type: 'media', mimeType: 'image/png', data: 'eA==' }
  const { messages } = repairHistory(
    [result('gone', { n: 1 }, { media: [image] }), say('user', 'hi')],
    'openai-chat',
  )
  expect(messages[0]).toEqual({
    role: 'user',
    parts: [{ type: 'text', text: '[result of search, whose call is not in this history] {"n":1}' }, image],
  })
})

test('a result that comes after the model has spoken again is a note, and what was sent stays', () => {
  const history = [
    say('user', 'hi'),
    call('a'),
    result('a', 'pending'),
    say('assistant', 'wait'),
    say('user', '?'),
    result('a', 'done'),
  ]
  const { messages } = repairHistory(history, 'openai-chat')
  expect(messages).toEqual([
    say('user', 'hi'),
    call('a'),
    result('a', 'pending'),
    say('assistant', 'wait'),
    say('user', '?'),
    say('user', '[another result of search] done'),
  ])
  expect(repairHistory(history.slice(0, 5), 'openai-chat').messages).toEqual(messages.slice(0, 5))
})

test('a call that had a stand-in keeps it when its result comes later', () => {
  const history = [
    say('user', 'hi'),
    call('a'),
    say('user', '?'),
    say('assistant', 'wait'),
    result('a', 'done'),
  ]
  for (const profile of ['openai-chat', 'anthropic-5.1', 'mistral']) {
    const before = repairHistory(history.slice(0, 3), profile).messages
    const after = repairHistory(history, profile).messages
    expect(after.slice(0, before.length)).toEqual(before)
    expect(JSON.stringify(after.at(-1))).toContain('[result of search, which came later] done')
  }
})

test('a result before a call of a later turn does not answer it, even with an equal id', () => {
  const history = [result('call_search', 'old'), say('user', 'hi'), call('call_search')]
  const { messages } = repairHistory(history, 'openai-chat')
  expect(messages.at(-1)).toEqual(result('call_search', '[no response available]', { isError: true }))
})

test('of several failed results the first one is kept', () => {
  const history = [
    say('user', 'hi'),
    call('a'),
    result('a', 'one', { isError: true }),
    result('a', 'two', { isError: true }),
  ]
  const { messages } = repairHistory(history, 'openai-chat')
  expect(messages[2]).toEqual(result('a', 'one', { isError: true }))
})
