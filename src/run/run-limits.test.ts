import { expect, test } from 'vitest'
import { isDelegationEvent, TurnLimit } from './run-limits.js'

const call = (...names: string[]) => ({
  content: { parts: names.map(name => ({ functionCall: { name } })) },
})

test.each([
  ['a transfer call', call('transfer_to_agent'), true],
  ['a response that transfers', { content: { parts: [] }, actions: { transferToAgent: 'b' } }, true],
  ['an ordinary call', call('search'), false],
  ['a transfer beside real work', call('transfer_to_agent', 'search'), false],
  ['text', { content: { parts: [{}] } }, false],
  ['an event without content', {}, false],
])('isDelegationEvent of %s', (_name, event, expected) => {
  expect(isDelegationEvent(event)).toBe(expected)
})

test.each([
  [{}, 25],
  [{ multiAgent: true }, 50],
  [{ multiAgent: true, maxTurns: 7 }, 7],
  [{ maxTurns: 3 }, 3],
])('TurnLimit takes its limit from %j', (options, expected) => {
  expect(new TurnLimit(options).maxTurns).toBe(expected)
})

test('TurnLimit warns once at 80 percent, wraps up at the limit, then stops', () => {
  const limit = new TurnLimit({ maxTurns: 5 })
  const verdicts = Array.from({ length: 6 }, () => limit.observe(call('search')))
  expect(verdicts).toEqual(['continue', 'continue', 'continue', 'warn', 'wrap-up', 'stop'])
  expect(limit.turns).toBe(5)
})

test('TurnLimit wraps up without a warning when the limit is one', () => {
  expect(new TurnLimit({ maxTurns: 1 }).observe(call('search'))).toBe('wrap-up')
})

test('TurnLimit does not count partials, answers and text', () => {
  const limit = new TurnLimit({ maxTurns: 1 })
  expect(limit.observe({ ...call('search'), partial: true })).toBe('continue')
  expect(limit.observe({ content: { parts: [{}] } })).toBe('continue')
  expect(limit.turns).toBe(0)
})

test('TurnLimit counts delegations apart and caps them', () => {
  const limit = new TurnLimit({ maxTurns: 2, maxDelegations: 3 })
  const verdicts = Array.from({ length: 3 }, () => limit.observe(call('transfer_to_agent')))
  expect(verdicts).toEqual(['continue', 'continue', 'wrap-up'])
  expect(limit).toMatchObject({ turns: 0, delegations: 3, wrapUpGranted: true })
})
