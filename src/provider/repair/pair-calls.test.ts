import { expect, test } from 'vitest'
import type { ProviderMessage, ToolCallPart, ToolResultPart } from '../provider.js'
import { repairHistory } from './repair-history.js'

const say = (role: string, text: string): ProviderMessage => ({ role, parts: [{ type: 'text', text }] })
const call = (id: string): ToolCallPart => ({ type: 'tool-call', id, name: 'search', args: {} })
const result = (id: string, value: unknown = { output: id }): ToolResultPart => ({
  type: 'tool-result',
  id,
  name: 'search',
  result: value,
})
const calls = (...ids: string[]): ProviderMessage => ({ role: 'assistant', parts: ids.map(call) })
const results = (...ids: string[]): ProviderMessage => ({ role: 'tool', parts: ids.map(id => result(id)) })

test('a reused id is answered by the nearest following result', () => {
  const history = [say('user', 'hi'), calls('x'), say('user', 'and?'), calls('x'), results('x')]
  const { messages, repairs } = repairHistory(history, 'openai-chat')
  expect(messages[4]).toBe(history[3])
  expect(messages[5]).toBe(history[4])
  expect(repairs.map(repair => `${repair.kind}@${repair.at}`)).toEqual(['synthesize-result@1'])
})

test('two calls with one id get two results in order', () => {
  const history = [
    say('user', 'hi'),
    calls('x', 'x'),
    { role: 'tool', parts: [result('x', { n: 1 }), result('x', { n: 2 })] },
  ]
  expect(repairHistory(history, 'gemini-2').messages).toBe(history)
})

test('separate tool messages stay where results need not be grouped', () => {
  const history = [say('user', 'hi'), calls('a', 'b'), results('b'), results('a')]
  expect(repairHistory(history, 'openai-chat').messages).toBe(history)
})

test('text after the results in a user message stays where Claude accepts it', () => {
  const answer: ProviderMessage = { role: 'user', parts: [result('a'), { type: 'text', text: 'and?' }] }
  const history = [say('user', 'hi'), calls('a'), answer]
  expect(repairHistory(history, 'anthropic-4.6').messages).toBe(history)
})

test('a result is moved out of a message whose text stays', () => {
  const mixed: ProviderMessage = { role: 'user', parts: [result('b'), { type: 'text', text: 'late' }] }
  const { messages } = repairHistory(
    [say('user', 'hi'), calls('a', 'b'), results('a'), mixed],
    'anthropic-4.6',
  )
  expect(messages.slice(2)).toEqual([results('a', 'b'), say('user', 'late')])
})

test('where results may come later, only missing results are added', () => {
  const history = [say('user', 'hi'), calls('a', 'b'), say('user', 'hm'), results('a')]
  const { messages } = repairHistory(history, 'openai-responses')
  expect(messages.map(message => message.role)).toEqual(['user', 'assistant', 'tool', 'user', 'tool'])
  expect(messages[2]?.parts).toMatchObject([{ id: 'b', isError: true }])
})
