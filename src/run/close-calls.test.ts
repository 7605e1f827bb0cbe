import { expect, test } from 'vitest'
import type { ToolCallStatus } from '../session/run-store.js'
import type { ToolEffect } from '../tool.js'
import { answerMessage, type ClosableCall, ClosingCalls } from './close-calls.js'

function row(status: ToolCallStatus, more: Partial<ClosableCall> = {}): ClosableCall {
  const facts = { callId: 'c', tool: 'pay', effect: 'once' as ToolEffect, args: {}, author: 'root' }
  const flags = { isNested: false, mayHaveRun: true, idempotencyKey: 'k', policy: 'tell' as const }
  return { id: 'm/c', ...facts, ...flags, status, ...more }
}

const OPEN = { messageId: 'm', id: 'c', isPending: false }

test.each<[string, ClosableCall, RegExp | object | undefined, string | undefined]>([
  ['a recorded result', row('done', { result: { paid: 1 } }), { paid: 1 }, undefined],
  ['a recorded failure', row('failed', { result: { error: 'no' } }), { error: 'no' }, undefined],
  ['an answer that comes later', row('done'), undefined, undefined],
  ['a call that had begun', row('started'), /NOT known/, 'unknown'],
  ['one that may be repeated', row('started', { effect: 'idempotent' }), /may be called again/, 'unknown'],
  ['one that was verified', row('started', { verified: { result: { paid: 1 } } }), { paid: 1 }, 'done'],
  ['one that had no effect', row('started', { verified: {} }), /had no effect/, 'failed'],
  ['one that had not begun', row('intent'), /did not run/, 'failed'],
  ['one that reads', row('intent', { effect: 'read' }), /may be called again/, 'failed'],
  ['one that would have read', row('intent', { effect: 'read', mayHaveRun: false }), /did not run/, 'failed'],
])('an open call is closed: %s', (_title, call, answer, status) => {
  const closing = new ClosingCalls([call], 'The run was stopped.')
  const given = closing.answerOf(OPEN)
  if (answer instanceof RegExp) expect(JSON.stringify(given)).toMatch(answer)
  else expect(given).toEqual(answer)
  expect(closing.changes.map(change => change.status)).toEqual(status ? [status] : [])
  expect(closing.reports).toHaveLength(status === 'unknown' ? 1 : 0)
})

test('a call of a nested agent is closed although nobody waits for its answer', () => {
  const closing = new ClosingCalls([row('started', { isNested: true })], 'The run was stopped.')
  expect(closing.changes).toEqual([{ id: 'm/c', status: 'unknown' }])
  expect(closing.reports).toMatchObject([{ type: 'tool-unknown', name: 'pay' }])
})

test('an open call without an entry gets an answer, a long-running one none', () => {
  const closing = new ClosingCalls([], 'The run was stopped.')
  expect(closing.answerOf(OPEN)).toEqual({ error: '[no response available] The run was stopped.' })
  expect(closing.answerOf({ ...OPEN, isPending: true })).toBeUndefined()
})

test('answers of closed calls are stored as tool results of their agent', () => {
  const answers = [{ id: 'c', name: 'pay', response: { paid: 1 } }]
  expect(answerMessage({ author: 'root', invocationId: 'e-1', branch: 'b', answers })).toMatchObject({
    role: 'tool',
    author: 'root',
    content: '{"paid":1}',
    toolCalls: [{ id: 'c', name: 'pay', output: '{"paid":1}', kind: 'response' }],
    invocationId: 'e-1',
    branch: 'b',
    extra: { role: 'user' },
  })
})
