import { expect, test } from 'vitest'
import type { ProviderMessage } from '../provider.js'
import { repairHistory } from './repair-history.js'

const say = (role: string, text: string): ProviderMessage => ({ role, parts: [{ type: 'text', text }] })

test.each([
  'gemini-2',
  'gemini-3',
  'openai-chat',
  'openai-responses',
  'deepseek-thinking',
  'groq',
  'vllm',
  'ollama',
])('%s accepts a trailing assistant message', profile => {
  const history = [say('user', 'hi'), say('assistant', 'Once upon ')]
  expect(repairHistory(history, profile).messages).toBe(history)
})

test('Mistral does not accept a system message as the last one', () => {
  const { messages } = repairHistory([say('user', 'hi'), say('system', 'be brief')], 'mistral')
  expect(messages.at(-1)).toEqual(say('user', '[continue]'))
})

test('nothing is closed when a user message will follow', () => {
  const history = [say('user', 'hi'), say('assistant', 'hello ')]
  for (const profile of ['anthropic-4.5', 'anthropic-4.6', 'gemini-3-strict', 'mistral']) {
    expect(repairHistory(history, profile, { next: 'user' }).messages).toBe(history)
  }
})
