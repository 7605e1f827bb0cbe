import { expect, test } from 'vitest'
import { ToolClock } from './run-recorder.js'

const call = (id: string) => ({ type: 'tool-call' as const, author: 'a', id, name: 't', args: {} })
const result = (id: string) => ({
  type: 'tool-result' as const,
  author: 'a',
  id,
  name: 't',
  result: {},
  isError: false,
})

test('a result says how long its tool took, without the wait for a person', () => {
  let now = 1000
  const clock = new ToolClock(() => now)
  clock.timed(call('one'))
  clock.timed(call('two'))
  now = 1010
  clock.timed({ type: 'approval-request', id: 'one', name: 't', args: {} })
  now = 9000
  clock.timed({ type: 'approval-answer', id: 'one', name: 't', answer: 'once' })
  now = 9005
  expect(clock.timed(result('one'))).toMatchObject({ durationMs: 15 })
  expect(clock.timed(result('two'))).toMatchObject({ durationMs: 8005 })
  expect(clock.timed(result('unknown'))).not.toHaveProperty('durationMs')
})
