import { expect, test } from 'vitest'
import type { ProviderMessage } from '../provider.js'
import { lintHistory } from './lint-history.js'
import { repairHistory } from './repair-history.js'

const say = (role: string, text: string): ProviderMessage => ({ role, parts: [{ type: 'text', text }] })
const call = (id: string): ProviderMessage => ({
  role: 'assistant',
  parts: [{ type: 'tool-call', id, name: 'search', args: {} }],
})
const result = (id: string): ProviderMessage => ({
  role: 'tool',
  parts: [{ type: 'tool-result', id, name: 'search', result: 'found' }],
})
const SENTENCE = '[System: The result of `search` has arrived. It follows its call.]'

const late = [say('user', 'look'), call('id1'), say('user', 'and hurry'), result('id1')]

test('a result after words of the user follows its call, and a sentence stands where it arrived', () => {
  const { messages, repairs } = repairHistory(late, 'openai-chat')
  expect(messages).toEqual([
    late[0],
    call('id1'),
    result('id1'),
    say('user', 'and hurry'),
    say('user', SENTENCE),
  ])
  expect(repairs).toMatchObject([
    { step: 'note-arrivals', kind: 'note', at: 3 },
    { step: 'pair-calls', kind: 'move', at: 3 },
  ])
  expect(repairHistory(messages, 'openai-chat').messages).toBe(messages)
})

test('results that arrive together are one sentence', () => {
  const calls: ProviderMessage = { role: 'assistant', parts: [...call('id1').parts, ...call('id2').parts] }
  const history = [say('user', 'look'), calls, say('user', 'and hurry'), result('id1'), result('id2')]
  const { messages } = repairHistory(history, 'anthropic-4.6')
  expect(JSON.stringify(messages).split('has arrived')).toHaveLength(2)
  expect(messages.at(-1)).toEqual(
    say('user', '[System: The result of `search`, `search` has arrived. It follows its call.]'),
  )
})

test('a result after messages of a program gets no sentence, and neither does one that follows its call', () => {
  const account: ProviderMessage = { ...say('user', '[helper] said: done'), writtenBy: 'program' }
  const nested = [say('user', 'look'), call('id1'), account, result('id1')]
  expect(repairHistory(nested, 'openai-chat').repairs.map(({ step }) => step)).toEqual(['pair-calls'])
  const plain = [say('user', 'look'), call('id1'), result('id1')]
  expect(repairHistory(plain, 'openai-chat').messages).toBe(plain)
})

test.each(['openai-responses', 'ollama'])('%s takes a late result where it stands', profile => {
  expect(repairHistory(late, profile).messages).toBe(late)
})

test('strict mode refuses a late result, explain mode sends it as it is, and lint has one finding', () => {
  expect(() => repairHistory(late, 'openai-chat', { mode: 'strict' })).toThrow('would reject the history')
  expect(repairHistory(late, 'openai-chat', { mode: 'explain' }).messages).toBe(late)
  expect(lintHistory(late, 'openai-chat', { next: 'none' })).toMatchObject([
    { code: 'distant-result', repair: expect.stringContaining('a sentence says so') },
  ])
})
