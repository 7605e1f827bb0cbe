import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  eventsAfter,
  firstSeqOf,
  inCharacters,
  joinDeltas,
  lastSeqBeforeAttempt,
  mayPrecedeStoring,
  numbered,
  splitAt,
} from './event-numbers.js'
import type { RunEvent, RunEventBody } from './run-event.js'

const IDENTITY = { sessionId: 's', runId: 'r' }
const NOTICE: RunEventBody = { type: 'agent-transfer', from: 'a', to: 'b' }

function text(words: string, author = 'root'): RunEventBody {
  return { type: 'text-delta', author, text: words }
}

function reasoning(words: string): RunEventBody {
  return { type: 'reasoning-delta', author: 'root', text: words }
}

test('an event takes one number, a delta one for each character, an empty delta none', () => {
  const events = numbered([NOTICE, text('abc'), text(''), reasoning('😀'), NOTICE], IDENTITY, 4)
  expect(events.map(event => [firstSeqOf(event), event.seq])).toEqual([
    [5, 5],
    [6, 8],
    [9, 10],
    [11, 11],
  ])
})

test('a delta that contains the cursor is cut, and everything before it is left out', () => {
  const events = numbered([NOTICE, text('abcd'), NOTICE], IDENTITY, 0)
  expect(eventsAfter(events, 0)).toBe(events)
  expect(eventsAfter(events, 1)).toEqual(events.slice(1))
  expect(eventsAfter(events, 3)).toMatchObject([{ text: 'cd', seq: 5 }, { seq: 6 }])
  expect(eventsAfter(events, 5)).toEqual(events.slice(2))
  expect(eventsAfter(events, 6)).toEqual([])
})

test('a cursor inside of a surrogate pair gets the whole character', () => {
  const events = numbered([text('a😀b')], IDENTITY, 0)
  expect(eventsAfter(events, 2)).toMatchObject([{ text: '😀b', seq: 4 }])
  expect(splitAt(events, 2)).toMatchObject([
    { text: 'a', seq: 1 },
    { text: '😀b', seq: 4 },
  ])
  expect(splitAt(numbered([text('😀b')], IDENTITY, 0), 1)).toMatchObject([{ text: '😀b', seq: 3 }])
})

test('in pieces of one character, a surrogate pair is one piece', () => {
  const events = numbered([NOTICE, text('a😀b'), NOTICE], IDENTITY, 0)
  const pieces = [...inCharacters(events)]
  expect(pieces.map(event => ('text' in event ? [event.text, event.seq] : event.seq))).toEqual([
    ...[1, ['a', 2], ['😀', 4], ['b', 5], 6],
  ])
})

test('deltas are joined when they are neighbours of one stream, and only then', () => {
  const bodies = [text('a'), text('b'), text('c', 'other'), text('d'), reasoning('e'), NOTICE, reasoning('f')]
  const events = numbered(bodies, IDENTITY, 0)
  expect(joinDeltas(events).map(event => ('text' in event ? event.text : event.type))).toEqual([
    ...['ab', 'c', 'd', 'e', 'agent-transfer', 'f'],
  ])
  const [first, , ...rest] = events
  expect(joinDeltas(first ? [first, ...rest] : [])).toHaveLength(6)
})

test('another attempt begins above everything that may have been handed out', () => {
  expect(lastSeqBeforeAttempt(0)).toBe(2 ** 24 - 1)
  expect(lastSeqBeforeAttempt(2 ** 24 - 1)).toBe(2 ** 24 - 1)
  expect(lastSeqBeforeAttempt(2 ** 24)).toBe(2 ** 25 - 1)
  const [last] = numbered([text('x')], IDENTITY, 2 ** 24 - 2)
  const [above] = numbered([text('x')], IDENTITY, 2 ** 24 - 1)
  expect(last && mayPrecedeStoring(last, 5)).toBe(true)
  expect(above && mayPrecedeStoring(above, 5)).toBe(false)
  const [other] = numbered([NOTICE], IDENTITY, 5)
  expect(other && mayPrecedeStoring(other, 5)).toBe(false)
})

const CHARACTERS = fc.constantFrom('a', 'b', ' ', '😀', 'é')

/** A stream of events, and the same one with its texts in other pieces. */
const STREAM = fc.array(
  fc.oneof(
    fc.constant(NOTICE),
    fc.array(CHARACTERS, { minLength: 1, maxLength: 6 }).map(words => text(words.join(''))),
    fc.array(CHARACTERS, { minLength: 1, maxLength: 6 }).map(words => reasoning(words.join(''))),
  ),
  { maxLength: 12 },
)

test('joined after any cut, the events are the same, and a cursor gives the same rest', () => {
  fc.assert(
    fc.property(STREAM, fc.array(fc.nat(60)), fc.nat(60), (bodies, cuts, cursor) => {
      const whole = joinDeltas(numbered(bodies, IDENTITY, 0))
      const pieces = cuts.reduce<readonly RunEvent[]>(splitAt, whole)
      expect(joinDeltas(pieces)).toEqual(whole)
      expect(joinDeltas(eventsAfter(pieces, cursor))).toEqual(joinDeltas(eventsAfter(whole, cursor)))
      const seqs = pieces.map(({ seq }) => seq)
      expect(seqs).toEqual([...new Set(seqs)].sort((one, other) => one - other))
      const characters = [...inCharacters(whole)]
      expect(joinDeltas(characters)).toEqual(whole)
      // A reader that leaves out the events that it has, by number, has each text once.
      for (const { seq } of pieces) {
        const seen = pieces.filter(event => event.seq <= seq)
        expect(joinDeltas([...seen, ...characters.filter(event => event.seq > seq)])).toEqual(whole)
      }
    }),
  )
})
