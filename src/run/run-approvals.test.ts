import { expect, test } from 'vitest'
import type { ApprovalAnswer, ApprovalOutcome } from '../tool.js'
import { ApprovalDesk, type PendingApproval } from './run-approvals.js'
import { ToolClock } from './run-limits.js'

const call = (callId: string, tool = 'run_command'): PendingApproval => ({
  callId,
  tool,
  args: { command: 'ls' },
})

test.each<[ApprovalAnswer, ApprovalOutcome]>([
  ['once', 'once'],
  ['always', 'always'],
  ['no', 'no'],
  ['yes' as 'no', 'no'],
])('the answer %s resolves an approval request', async (answer, outcome) => {
  const desk = new ApprovalDesk()
  const asked = desk.request(call('c1'))
  expect(desk.pending).toEqual([call('c1')])
  expect(desk.answer('c1', answer)).toBe(true)
  expect(await asked).toBe(outcome)
  expect(desk.pending).toEqual([])
})

test('an answer to an approval counts once, and only while its call waits', async () => {
  const desk = new ApprovalDesk()
  expect(desk.answer('c1', 'once')).toBe(false)
  const asked = desk.request(call('c1'))
  expect(desk.answer('c1', 'no')).toBe(true)
  expect(desk.answer('c1', 'always')).toBe(false)
  expect(await asked).toBe('no')
  expect(desk.toJSON()).toEqual([])
})

test('an answer to an approval resolves only its own call', async () => {
  const desk = new ApprovalDesk()
  const [first, second] = [desk.request(call('c1')), desk.request(call('c2'))]
  desk.answer('c2', 'once')
  desk.answer('c1', 'no')
  expect(await Promise.all([first, second])).toEqual(['no', 'once'])
})

test('"always" approves the tool, its waiting calls, and its calls at a later desk of the session', async () => {
  const requests: string[] = []
  const desk = new ApprovalDesk({ onRequest: ({ callId }) => requests.push(callId) })
  const [first, second, other] = [
    desk.request(call('c1')),
    desk.request(call('c2')),
    desk.request(call('c3', 'write_file')),
  ]
  desk.answer('c1', 'always')
  expect(await Promise.all([first, second, desk.request(call('c4'))])).toEqual(['always', 'always', 'always'])
  expect(requests).toEqual(['c1', 'c2', 'c3'])
  const later = new ApprovalDesk({ remembered: JSON.parse(JSON.stringify(desk)) })
  expect(await later.request(call('c5'))).toBe('always')
  desk.close()
  expect(await other).toBe('aborted')
})

test.each([[undefined], [null], ['run_command'], [{ run_command: true }], [[1, null]]])(
  '"always" is not read from %j',
  async remembered => {
    const desk = new ApprovalDesk({ remembered })
    const asked = desk.request(call('c1'))
    desk.answer('c1', 'no')
    expect(await asked).toBe('no')
  },
)

test('an approval request without an answer times out', async () => {
  const outcomes: unknown[] = []
  const desk = new ApprovalDesk({
    timeoutMs: 1,
    onOutcome: ({ callId }, outcome) => outcomes.push([callId, outcome]),
  })
  expect(await desk.request(call('c1'))).toBe('timeout')
  expect(desk.answer('c1', 'always')).toBe(false)
  expect(outcomes).toEqual([['c1', 'timeout']])
})

test('an abort ends an approval request', async () => {
  const desk = new ApprovalDesk()
  const stop = new AbortController()
  const asked = desk.request(call('c1'), stop.signal)
  stop.abort()
  expect(await asked).toBe('aborted')
  expect(await desk.request(call('c2'), stop.signal)).toBe('aborted')
  expect(desk.pending).toEqual([])
})

test('closing the desk aborts every approval request', async () => {
  const desk = new ApprovalDesk()
  const all = [desk.request(call('c1')), desk.request(call('c2', 'write_file'))]
  desk.close()
  expect(await Promise.all(all)).toEqual(['aborted', 'aborted'])
})

test('a second request with the id of a waiting call is refused, because an answer would be ambiguous', async () => {
  const desk = new ApprovalDesk()
  const first = desk.request(call('c1'))
  await expect(desk.request(call('c1', 'write_file'))).rejects.toMatchObject({ code: 'invalid-argument' })
  desk.close()
  await first
})

test('a timeout longer than a timer can wait never ends an approval request', async () => {
  const desk = new ApprovalDesk({ timeoutMs: Number.POSITIVE_INFINITY })
  const outcome = desk.request({ callId: 'c', tool: 't', args: {} })
  await new Promise(resolve => setTimeout(resolve, 5))
  expect(desk.pending).toHaveLength(1)
  desk.answer('c', 'once')
  expect(await outcome).toBe('once')
})

const toolCall = (id: string) => ({ type: 'tool-call' as const, author: 'a', id, name: 't', args: {} })
const toolResult = (id: string) => ({
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
  clock.timed(toolCall('one'))
  clock.timed(toolCall('two'))
  now = 1010
  clock.timed({ type: 'approval-request', id: 'one', name: 't', args: {} })
  now = 9000
  clock.timed({ type: 'approval-answer', id: 'one', name: 't', answer: 'once' })
  now = 9005
  expect(clock.timed(toolResult('one'))).toMatchObject({ durationMs: 15 })
  expect(clock.timed(toolResult('two'))).toMatchObject({ durationMs: 8005 })
  expect(clock.timed(toolResult('unknown'))).not.toHaveProperty('durationMs')
})
