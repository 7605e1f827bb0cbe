import { expect, test } from 'vitest'
import type { RunEvent } from './run-event.js'
import { RunFeed } from './run-feed.js'

const KEY = { appName: 'app', userId: 'ann', sessionId: 's1' }

function delta(seq: number, text = 'x'): RunEvent {
  return { type: 'text-delta', author: 'root', text, sessionId: 's1', runId: 'r', seq }
}

function result(seq: number, bytes: number): RunEvent {
  const body = { type: 'tool-result', author: 'root', id: 'c', name: 't', isError: false } as const
  return { ...body, result: 'x'.repeat(bytes), sessionId: 's1', runId: 'r', seq }
}

test('a run feed returns the events after a number, from the middle of a batch too', () => {
  const feed = new RunFeed('r', KEY)
  feed.add([delta(1), delta(2), delta(3)])
  feed.add([delta(4)])
  expect(feed.next(0)?.map(({ seq }) => seq)).toEqual([1, 2, 3])
  expect(feed.next(2)?.map(({ seq }) => seq)).toEqual([3])
  expect(feed.next(3)?.map(({ seq }) => seq)).toEqual([4])
  expect(feed.next(4)).toBeUndefined()
})

test('a run feed leaves out numbers that it has had', () => {
  const feed = new RunFeed('r', KEY, 2)
  feed.add([delta(1), delta(2), delta(3)])
  feed.add([delta(3)])
  expect(feed.lastSeq).toBe(3)
  expect(feed.next(2)).toHaveLength(1)
})

test('a run feed keeps a bounded part, and knows which', () => {
  const feed = new RunFeed('r', KEY)
  for (let seq = 1; seq <= 1000; seq++) feed.add([delta(seq)])
  expect(feed.covers(999)).toBe(true)
  expect(feed.covers(0)).toBe(false)
  expect(feed.firstKept).toBeGreaterThan(700)
})

test('a run feed drops large results early, but keeps the newest', () => {
  const feed = new RunFeed('r', KEY)
  for (let seq = 1; seq <= 5; seq++) feed.add([result(seq, 1_500_000)])
  expect(feed.firstKept).toBe(5)
  expect(JSON.stringify(feed.next(4)).length).toBeGreaterThan(1_500_000)
})

test('a waiting follower of a run feed is woken by an event, by the end, and by its own signal', async () => {
  const feed = new RunFeed('r', KEY)
  const left = new AbortController()
  const waiting = [feed.wait(left.signal), feed.wait(new AbortController().signal)]
  left.abort()
  await waiting[0]
  feed.add([delta(1)])
  await waiting[1]
  const last = feed.wait(new AbortController().signal)
  feed.end()
  await last
  expect(feed.ended).toBe(true)
})
