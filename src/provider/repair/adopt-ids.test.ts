import { expect, test } from 'vitest'
import type { ProviderMessage, ToolCallPart, ToolResultPart } from '../provider.js'
import { repairHistory } from './repair-history.js'

const user: ProviderMessage = { role: 'user', parts: [{ type: 'text', text: 'hi' }] }
const calls = (...parts: [id: string, name: string][]): ProviderMessage => ({
  role: 'assistant',
  parts: parts.map(([id, name]): ToolCallPart => ({ type: 'tool-call', id, name, args: {} })),
})
const results = (...parts: [id: string, name: string, result: string][]): ProviderMessage => ({
  role: 'tool',
  parts: parts.map(([id, name, result]): ToolResultPart => ({ type: 'tool-result', id, name, result })),
})

test('a result without an id is matched to its call by tool name', () => {
  const { messages, repairs } = repairHistory(
    [user, calls(['id1', 'search'], ['id2', 'fetch']), results(['', 'fetch', 'F'], ['id1', 'search', 'S'])],
    'openai-chat',
  )
  expect(messages.at(-1)).toEqual(results(['id2', 'fetch', 'F'], ['id1', 'search', 'S']))
  expect(repairs).toMatchObject([{ step: 'adopt-ids', kind: 'adopt-id', at: 2 }])
})

test('an exact match takes precedence over a match by name', () => {
  const { messages } = repairHistory(
    [
      user,
      calls(['id1', 'search'], ['id2', 'search']),
      results(['', 'search', 'second'], ['id1', 'search', 'first']),
    ],
    'openai-chat',
  )
  expect(messages.at(-1)).toEqual(results(['id2', 'search', 'second'], ['id1', 'search', 'first']))
})

test('a result with an id is matched to a call without one', () => {
  const { messages } = repairHistory(
    [user, calls(['', 'search']), results(['call_search', 'search', 'S'])],
    'openai-chat',
  )
  const [call, result] = [messages[1]?.parts[0], messages[2]?.parts[0]] as [ToolCallPart, ToolResultPart]
  expect(result.result).toBe('S')
  expect(call.id).toMatch(/^[a-zA-Z0-9]{9}$/)
  expect(result.id).toBe(call.id)
})

test('a nameless result without an id answers the first open call', () => {
  const { messages } = repairHistory([user, calls(['id1', 'search']), results(['', '', 'S'])], 'gemini-2')
  expect(messages[2]).toEqual({
    role: 'tool',
    parts: [{ type: 'tool-result', id: 'id1', name: 'search', result: { output: 'S' } }],
  })
})

test('a result with an unknown id matches no call, even of the same tool', () => {
  const { repairs } = repairHistory(
    [user, calls(['id1', 'search']), results(['other', 'search', 'S'])],
    'openai-chat',
  )
  expect(repairs.map(repair => repair.kind)).toEqual(['note', 'synthesize-result'])
})

test('of two calls with one id a result without an id takes the nearest, and the next result is no open one', () => {
  const { messages, repairs } = repairHistory(
    [
      user,
      calls(['id1', 'search']),
      calls(['id1', 'fetch']),
      results(['', '', 'first']),
      results(['', 'search', 'second']),
    ],
    'openai-chat',
  )
  const ids = messages.flatMap(({ parts }) =>
    parts.flatMap(part => (part.type === 'tool-result' ? [part.id] : [])),
  )
  expect(ids).toEqual(['id1', 'id1'])
  expect(JSON.stringify(messages)).toContain('first')
  expect(JSON.stringify(messages)).toContain('second')
  expect(repairs.filter(({ step }) => step === 'adopt-ids')).toHaveLength(2)
  expect(repairHistory(messages, 'openai-chat').messages).toBe(messages)
})
