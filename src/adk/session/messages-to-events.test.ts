import { createEvent } from '@google/adk'
import { expect, test } from 'vitest'
import type { Event, Part } from '../sdk.js'
import { mergeSameRole } from './messages-to-events.js'

let count = 0
function event(parts: Part[] | undefined, fields: Partial<Event> & { role?: string } = {}): Event {
  const { role = 'model', ...rest } = fields
  count += 1
  const content = parts ? { content: { role, parts } } : {}
  return createEvent({
    id: `e${count}`,
    invocationId: `i${count}`,
    author: 'a',
    timestamp: count,
    ...content,
    ...rest,
  })
}

const text = (value: string): Part => ({ text: value })
const call = (id: string, name = 't'): Part => ({ functionCall: { id, name, args: {} } })
const result = (id: string): Part => ({ functionResponse: { id, name: 't', response: {} } })
const sizes = (events: Event[]) => mergeSameRole(events).map(merged => merged.content?.parts?.length ?? 0)

test.each<[string, Event[], number[]]>([
  ['two texts become one event', [event([text('a')]), event([text('b')])], [2]],
  ['three too', [event([text('a')]), event([text('b')]), event([text('c')])], [3]],
  ['a text and the call after it', [event([text('a')]), event([call('x')])], [2]],
  [
    'across an error without content',
    [event([text('a')]), event(undefined, { errorCode: 'X' }), event([text('b')])],
    [2, 0],
  ],
  ['not across authors', [event([text('a')]), event([text('b')], { author: 'b' })], [1, 1]],
  ['not across branches', [event([text('a')]), event([text('b')], { branch: 'x' })], [1, 1]],
  ['not across roles', [event([text('a')]), event([text('b')], { role: 'user' })], [1, 1]],
  ['not across scopes', [event([text('a')]), event([text('b')], { isolationScope: 'x' })], [1, 1]],
  ['no signed part', [event([text('a')]), event([{ text: 'b', thoughtSignature: 's' }])], [1, 1]],
  ['no call with a result', [event([call('x')]), event([result('x')])], [1, 1]],
  [
    'no result with a text',
    [event([call('x')]), event([result('x')], { role: 'user' }), event([text('b')], { role: 'user' })],
    [1, 1, 1],
  ],
  [
    'results of one event of calls',
    [
      event([call('x'), call('y')]),
      event([result('x')], { role: 'user' }),
      event([result('y')], { role: 'user' }),
    ],
    [2, 2],
  ],
  [
    'no results of two events of calls',
    [
      event([call('x')]),
      event([call('y')], { branch: 'b' }),
      event([result('x')], { role: 'user' }),
      event([result('y')], { role: 'user' }),
    ],
    [1, 1, 1, 1],
  ],
  [
    'no second result of one call',
    [event([call('x')]), event([result('x')], { role: 'user' }), event([result('x')], { role: 'user' })],
    [1, 1, 1],
  ],
  ['no question to a person', [event([text('a')]), event([call('x', 'adk_request_confirmation')])], [1, 1]],
  [
    'nothing that waits for a long-running tool',
    [event([text('a')]), event([call('x')], { longRunningToolIds: ['x'] })],
    [1, 1],
  ],
  [
    'nothing across a compaction',
    [event([text('a')]), event(undefined, { isCompacted: true } as Partial<Event>), event([text('b')])],
    [1, 0, 1],
  ],
  [
    'nothing of a workflow node',
    [event([text('a')]), event([text('b')], { nodeInfo: { path: 'n' } })],
    [1, 1],
  ],
])('messagesToEvents: %s', (_, events, expected) => {
  expect(sizes(events)).toEqual(expected)
})

test('a merged event keeps the first identity, the later time and all actions', () => {
  const first = event([text('a')])
  const second = event([text('b')])
  first.actions.stateDelta = { one: 1 }
  second.actions.stateDelta = { two: 2 }
  const [merged] = mergeSameRole([first, second])
  expect(merged).toMatchObject({
    id: first.id,
    invocationId: first.invocationId,
    timestamp: second.timestamp,
    actions: { stateDelta: { one: 1, two: 2 } },
  })
  expect(first.content?.parts).toHaveLength(1)
})
