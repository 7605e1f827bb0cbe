import { expect, test } from 'vitest'
import { firstSeqOf } from './event-numbers.js'
import type { RunEvent } from './run-event.js'
import { RunFeed } from './run-feed.js'

const KEY = { appName: 'app', userId: 'ann', sessionId: 's1' }

function delta(seq: number, text = 'x'): RunEvent {
  return { type: 'text-delta', author: 'root', text, sessionId: 's1', runId: 'r', seq }
}

function notice(seq: number): RunEvent {
  return { type: 'agent-transfer', from: 'a', to: 'b', sessionId: 's1', runId: 'r', seq }
}

function result(seq: number, bytes: number): RunEvent {
  const body = { type: 'tool-result', author: 'root', id: 'c', name: 't', isError: false } as const
  return { ...body, result: 'x'.repeat(bytes), sessionId: 's1', runId: 'r', seq }
}

/** Adds events that are stored, and lets a follower take them. */
function addTaken(feed: RunFeed, events: readonly RunEvent[]): void {
  feed.stored(events.at(-1)?.seq ?? 0)
  feed.add(events)
  feed.next(feed.lastSeq - 1)
}

test('a run feed returns the events after a number, from the middle of a list too', () => {
  const feed = new RunFeed('r', KEY)
  addTaken(feed, [notice(1), notice(2), notice(3)])
  addTaken(feed, [notice(4)])
  expect(feed.next(0)?.map(({ seq }) => seq)).toEqual([1, 2, 3])
  expect(feed.next(2)?.map(({ seq }) => seq)).toEqual([3])
  expect(feed.next(3)?.map(({ seq }) => seq)).toEqual([4])
  expect(feed.next(4)).toBeUndefined()
})

test('a run feed leaves out numbers that it has had, also a part of a delta', () => {
  const feed = new RunFeed('r', KEY, 2)
  feed.add([notice(1), notice(2), notice(3)])
  feed.add([notice(3)])
  expect(feed.lastSeq).toBe(3)
  expect(feed.next(2)).toHaveLength(1)
  feed.add([delta(6, 'abc')])
  feed.add([delta(8, 'abcde')])
  expect(feed.next(3)).toEqual([delta(8, 'abcde')])
  expect(feed.next(5)).toEqual([delta(8, 'cde')])
})

test('a run feed gives every follower the same list, and what comes before one is taken is one list', () => {
  const feed = new RunFeed('r', KEY)
  feed.add([delta(2, 'ab')])
  feed.add([delta(3, 'c')])
  const first = feed.next(0)
  expect(first).toEqual([delta(3, 'abc')])
  feed.add([delta(4, 'd')])
  expect(feed.next(0)).toBe(first)
  expect(feed.next(3)).toEqual([delta(4, 'd')])
})

test('a run feed keeps a bounded part of what is stored, and knows which', () => {
  const feed = new RunFeed('r', KEY)
  for (let seq = 1; seq <= 1000; seq++) addTaken(feed, [delta(seq)])
  expect(feed.covers(999)).toBe(true)
  expect(feed.covers(0)).toBe(false)
  expect(feed.keptAfter).toBeGreaterThan(700)
})

test('a run feed without followers is bounded, too', () => {
  const feed = new RunFeed('r', KEY)
  for (let seq = 1; seq <= 1000; seq++) {
    feed.stored(seq * 10_000)
    feed.add([delta(seq * 10_000, 'x'.repeat(10_000))])
  }
  expect(feed.keptAfter).toBeGreaterThan(7_000_000)
})

test('a run feed keeps all that is not stored, in few lists, and drops it when it is', () => {
  const feed = new RunFeed('r', KEY)
  for (let seq = 1; seq <= 1000; seq++) {
    feed.add([delta(seq, String(seq % 10))])
    feed.next(seq - 1)
  }
  expect(feed.covers(0)).toBe(true)
  let [text, lists] = ['', 0]
  for (let events = feed.next(0); events; events = feed.next(events.at(-1)?.seq ?? 0)) {
    for (const event of events) {
      expect(firstSeqOf(event)).toBe(text.length + 1)
      text += event.type === 'text-delta' ? event.text : ''
    }
    lists += 1
  }
  expect(text).toBe(Array.from({ length: 1000 }, (_, index) => (index + 1) % 10).join(''))
  expect(lists).toBeLessThanOrEqual(256)
  feed.stored(1000)
  addTaken(feed, [delta(1001)])
  expect(feed.covers(0)).toBe(false)
})

test('a run feed drops large results early, but keeps the newest', () => {
  const feed = new RunFeed('r', KEY)
  for (let seq = 1; seq <= 5; seq++) addTaken(feed, [result(seq, 1_500_000)])
  expect(feed.keptAfter).toBe(4)
  expect(JSON.stringify(feed.next(4)).length).toBeGreaterThan(1_500_000)
})

test('a run feed forgets what lies before a gap: only the store has what is missing', () => {
  const feed = new RunFeed('r', KEY)
  feed.add([delta(3, 'abc')])
  feed.add([notice(2 ** 24)])
  expect(feed.covers(3)).toBe(false)
  expect(feed.next(2 ** 24 - 1)).toEqual([notice(2 ** 24)])
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
