import { expect, test } from 'vitest'
import type { ProviderMessage } from '../provider.js'
import { repairHistory } from './repair-history.js'

const say = (role: string, text: string): ProviderMessage => ({ role, parts: [{ type: 'text', text }] })

test('Mistral accepts a system message after a user message, not after an assistant message', () => {
  const history = [
    say('user', 'hi'),
    say('system', 'one'),
    say('assistant', 'yes'),
    say('system', 'two'),
    say('user', 'go'),
  ]
  const { messages, repairs } = repairHistory(history, 'mistral')
  expect(messages.map(message => message.role)).toEqual(['user', 'system', 'assistant', 'user', 'user'])
  expect(repairs).toMatchObject([{ step: 'place-system', at: 3 }])
})

test('a marked instruction is merged with adjacent user messages without a second receipt', () => {
  const history = [say('user', 'hi'), say('assistant', 'yes'), say('system', 'be brief'), say('user', 'go')]
  const { messages, repairs } = repairHistory(history, 'gemini-2')
  expect(messages.at(-1)?.parts).toEqual([
    { type: 'text', text: '[system instruction]' },
    { type: 'text', text: 'be brief' },
    { type: 'text', text: 'go' },
  ])
  expect(repairs.map(repair => repair.step)).toEqual(['place-system'])
})
