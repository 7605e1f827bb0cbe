import { createEvent, type Event } from '@google/adk'
import { expect, test } from 'vitest'
import type { Message, StoredMessage } from '../session/message.js'
import { type RecordedEvent, Replay } from './replay.js'

const HERE = { scope: '', node: '' }

/** A record with one event of agent `writer`: a text, or a change of state without a message. */
function replayOf(text: string | undefined): Replay {
  const message: StoredMessage | undefined =
    text === undefined ? undefined : { seq: 2, tokens: 1, role: 'assistant', content: text, timestamp: 1 }
  const entry = { id: 'e1', kind: 'event', scope: '', author: 'writer', branch: '', delta: { a: 1 } } as const
  const record: RecordedEvent[] = [{ entry, message }]
  return new Replay(record, 'opening', eventOf)
}

function eventOf({ content }: Message): Event {
  return createEvent({ id: 'e1', author: 'writer', content: { role: 'model', parts: [{ text: content }] } })
}

function callOf(name: string): Event {
  const parts = [{ functionCall: { id: 'c1', name, args: {} } }]
  return createEvent({ id: 'e2', author: 'writer', content: { role: 'model', parts } })
}

test('an event that ADK appends again takes its recorded form', () => {
  const event = createEvent({
    id: 'e2',
    author: 'writer',
    content: { role: 'model', parts: [{ text: 'new' }] },
  })
  expect(replayOf('recorded').adopt(HERE, event)).toBeDefined()
  expect(event).toMatchObject({ id: 'e1', content: { parts: [{ text: 'recorded' }] } })
})

test.each([
  [
    'a call where the record has a text',
    'recorded',
    callOf('pay'),
    'a call of pay, where the record has text',
  ],
  [
    'a text where the record has a change of state',
    undefined,
    eventOf({ role: 'assistant', content: 'x', timestamp: 1 }),
    'text, where the record has a change of state',
  ],
])('%s ends a resumed run as interrupted', (_title, recorded, event, words) => {
  const replay = replayOf(recorded)
  expect(() => replay.adopt(HERE, event)).toThrow(words)
  expect(replay.divergence).toMatchObject({ code: 'run-interrupted' })
})
