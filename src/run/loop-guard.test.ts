import { expect, test } from 'vitest'
import { type CountedCall, LoopGuard } from './loop-guard.js'

const LANE = { author: 'root' }

/** One whole turn: calls and their results. */
function turn(
  guard: LoopGuard,
  calls: readonly CountedCall[],
  result: unknown = 'same',
  lane: object = LANE,
) {
  guard.called(lane, calls)
  return guard.answered(
    lane,
    calls.map(({ name }) => ({ name, response: { result } })),
  )
}

const search = (query: string) => [{ name: 'search', args: { query, limit: 1 } }]

test('the loop guard warns at the third and stops at the fifth equal call with an equal result', () => {
  const guard = new LoopGuard()
  const verdicts = Array.from({ length: 5 }, () => turn(guard, search('a')).verdict)
  expect(verdicts).toEqual(['continue', 'continue', 'warn', 'continue', 'stop'])
})

test.each([
  ['other arguments', (guard: LoopGuard, at: number) => turn(guard, search(String(at % 2)))],
  ['other results', (guard: LoopGuard, at: number) => turn(guard, search('a'), at)],
  ['other calls in between', (guard: LoopGuard, at: number) => turn(guard, [{ name: at % 2 ? 'f' : 'g' }])],
])('the loop guard begins a new count after %s', (_name, act) => {
  const guard = new LoopGuard()
  for (let at = 0; at < 8; at++) {
    const { verdict, repetition } = act(guard, at)
    expect([verdict, repetition.times]).toEqual(['continue', 1])
  }
})

test('the loop guard ignores the order of keys, of arguments and of results', () => {
  const guard = new LoopGuard()
  turn(guard, [{ name: 'f', args: { a: 1, b: { c: 2, d: 3 } } }], { x: 1, y: 2 })
  const { repetition } = turn(guard, [{ name: 'f', args: { b: { d: 3, c: 2 }, a: 1 } }], { y: 2, x: 1 })
  expect(repetition.times).toBe(2)
})

test('the loop guard takes the calls of one turn together, whatever the number and order of the events with their results', () => {
  const guard = new LoopGuard()
  const calls = [{ name: 'f' }, { name: 'g' }]
  turn(guard, calls)
  guard.called(LANE, calls)
  guard.answered(LANE, [{ name: 'g', response: { result: 'same' } }])
  expect(guard.answered(LANE, [{ name: 'f', response: { result: 'same' } }]).repetition.times).toBe(2)
  expect(turn(guard, [{ name: 'f' }]).repetition.times).toBe(1)
})

test('another execution of the agent begins a new count of the loop guard; another request of the same one does not', () => {
  const guard = new LoopGuard()
  for (const execution of [{}, {}, {}]) {
    for (let step = 1; step <= 2; step++) {
      guard.beginStep(LANE, execution)
      expect(turn(guard, search('a')).repetition.times).toBe(step)
    }
  }
})

test('the loop guard counts agents on parallel branches separately', () => {
  const guard = new LoopGuard()
  const lanes = ['one', 'two'].map(branch => ({ author: 'worker', branch }))
  const times = [1, 2, 3].map(() => lanes.map(lane => turn(guard, search('a'), 'r', lane).repetition.times))
  expect(times).toEqual([
    [1, 1],
    [2, 2],
    [3, 3],
  ])
})

test.each([
  [{ warnAfter: 2, stopAfter: 4 }, ['continue', 'warn', 'continue', 'stop']],
  [{ stopAfter: 2 }, ['continue', 'stop', 'stop', 'stop']],
  [false as const, ['continue', 'continue', 'continue', 'continue']],
])('the loop guard with the limit %j', (limit, expected) => {
  const guard = new LoopGuard(limit)
  expect(expected.map(() => turn(guard, search('a')).verdict)).toEqual(expected)
})

test('the loop guard compares results that JSON cannot express', () => {
  const guard = new LoopGuard()
  expect([1n, 1n, 2n].map(count => turn(guard, search('a'), count).repetition.times)).toEqual([1, 2, 1])
})
