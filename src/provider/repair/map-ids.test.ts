import { expect, test } from 'vitest'
import type { ProviderMessage, ToolCallPart, ToolResultPart } from '../provider.js'
import { repairHistory } from './repair-history.js'
import { shortHash } from './short-hash.js'

const user: ProviderMessage = { role: 'user', parts: [{ type: 'text', text: 'hi' }] }
const pair = (...ids: string[]): ProviderMessage[] => [
  {
    role: 'assistant',
    parts: ids.map((id): ToolCallPart => ({ type: 'tool-call', id, name: 'search', args: {} })),
  },
  {
    role: 'tool',
    parts: ids.map((id): ToolResultPart => ({ type: 'tool-result', id, name: 'search', result: id })),
  },
]
const idsOf = (messages: readonly ProviderMessage[]) =>
  messages.flatMap(message => message.parts.flatMap(part => ('id' in part ? [part.id] : [])))

test('an id is mapped to the same id on every send and in every position', () => {
  const once = repairHistory([user, ...pair('toolu_1'), user, ...pair('toolu_2', 'toolu_1')], 'mistral')
  const [first, , second, third] = idsOf(once.messages)
  expect(first).toBe(shortHash('toolu_1'))
  expect(third).toBe(first)
  expect(second).toBe(shortHash('toolu_2'))
  expect(once.mappedIds).toEqual({ toolu_1: first, toolu_2: second })
  expect(idsOf(repairHistory([user, ...pair('toolu_2')], 'mistral').messages)).toEqual([second, second])
})

test('ids that the profile accepts stay, whatever their origin', () => {
  const history = [user, ...pair('toolu_1', 'call_2')]
  expect(repairHistory(history, 'anthropic-4.6').messages).toBe(history)
})

test('missing ids are numbered per tool, equally for calls and results', () => {
  const { messages, mappedIds } = repairHistory([user, ...pair('', ''), user, ...pair('')], 'openai-chat')
  const ids = idsOf(messages)
  expect(new Set(ids).size).toBe(3)
  expect(ids.slice(0, 2)).toEqual(ids.slice(2, 4))
  expect(ids[4]).toBe(ids[5])
  expect(mappedIds).toEqual({})
})

test('a hash has nine letters or digits and few collisions', () => {
  const hashes = Array.from({ length: 100_000 }, (_, index) => shortHash(`call_${index}`))
  expect(hashes.every(hash => /^[a-zA-Z0-9]{9}$/.test(hash))).toBe(true)
  expect(new Set(hashes).size).toBe(100_000)
})
