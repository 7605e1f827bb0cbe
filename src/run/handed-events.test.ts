import { expect, test } from 'vitest'
import { numbered } from './event-numbers.js'
import { HandedEvents } from './handed-events.js'
import type { RunEventBody } from './run-event.js'

const NOTICE: RunEventBody = { type: 'agent-transfer', from: 'a', to: 'b' }
const say = (text: string): RunEventBody => ({ type: 'text-delta', author: 'root', text })

function opened() {
  const seen: number[] = []
  const handed = new HandedEvents(events => void seen.push(...events.map(({ seq }) => seq)))
  const after = (lastSeq: number, ...bodies: RunEventBody[]) =>
    numbered(bodies, { sessionId: 's', runId: 'r' }, lastSeq)
  return { seen, handed, after }
}

test('a delta is handed out before it is stored, and once', () => {
  const { seen, handed, after } = opened()
  const deltas = after(0, say('ab'), say('c'))
  handed.numbered(deltas)
  expect(seen).toEqual([2, 3])
  handed.stored(after(0, say('abc')), [])
  expect(seen).toEqual([2, 3])
})

test('a delta waits for an event before it that is not stored', () => {
  const { seen, handed, after } = opened()
  const notice = after(0, NOTICE)
  const delta = after(1, say('ab'))
  handed.numbered(notice)
  handed.numbered(delta)
  expect(seen).toEqual([])
  handed.stored(notice, delta)
  expect(seen).toEqual([1, 3])
})

test('a delta is not handed out with a number of another attempt', () => {
  const { seen, handed, after } = opened()
  handed.stored(after(0, NOTICE), [])
  handed.numbered(after(1, say('x'.repeat(2 ** 24 - 2))))
  handed.numbered(after(2 ** 24 - 1, say('y')))
  expect(seen).toEqual([1, 2 ** 24 - 1])
})

test('after the last write has begun, only stored events are handed out', () => {
  const { seen, handed, after } = opened()
  handed.end()
  handed.numbered(after(0, say('ab')))
  expect(seen).toEqual([])
  handed.stored(after(0, say('ab')), [])
  expect(seen).toEqual([2])
})
