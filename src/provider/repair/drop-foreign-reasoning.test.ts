import { expect, test } from 'vitest'
import type { ProviderPart } from '../provider.js'
import type { ProfileName } from './profile.js'
import { repairHistory } from './repair-history.js'

const thought = (more: object): ProviderPart => ({ type: 'reasoning', text: 'hm', ...more })
const by = (vendor: string, signature?: string) =>
  thought({ origin: { vendor }, ...(signature && { signature }) })

test.each<[string, ProviderPart, ProfileName, boolean]>([
  ['signed by Claude', by('anthropic', 's'), 'anthropic-4.6', true],
  ['of Claude without a signature', by('anthropic'), 'anthropic-4.6', false],
  [
    'withheld by Claude',
    thought({ text: '', redacted: true, signature: 's', origin: { vendor: 'anthropic' } }),
    'anthropic-4.6',
    true,
  ],
  ['signed by nobody known', thought({ signature: 's' }), 'anthropic-4.6', false],
  ['signed by nobody known', thought({ signature: 's' }), 'gemini-3', true],
  ['signed by nobody known', thought({ signature: 's' }), 'deepseek-thinking', false],
  ['of nobody known', thought({}), 'gemini-3', true],
  ['of nobody known', thought({}), 'ollama', true],
  ['of nobody known', thought({}), 'openai-responses', false],
  ['of Gemini without a signature', by('gemini'), 'gemini-2', true],
  ['signed by Claude', by('anthropic', 's'), 'gemini-3', false],
  ['encrypted by OpenAI', by('openai', 's'), 'openai-responses', true],
  ['encrypted by OpenAI', by('openai', 's'), 'openai-chat', false],
  ['of DeepSeek', by('deepseek'), 'deepseek-thinking', true],
  ['of DeepSeek', by('deepseek'), 'groq', false],
])('reasoning %s: %#', (_, part, profile, kept) => {
  const history = [
    { role: 'user', parts: [{ type: 'text' as const, text: 'hi' }] },
    { role: 'assistant', parts: [part, { type: 'text' as const, text: 'so' }] },
    { role: 'user', parts: [{ type: 'text' as const, text: 'ok' }] },
  ]
  const { messages } = repairHistory(history, profile)
  expect(messages[1]?.parts.includes(part)).toBe(kept)
})
