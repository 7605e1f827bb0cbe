import { createEvent, type Event } from '@google/adk'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { messagesToEvents } from '../../src/adk/session/messages-to-events.js'
import { SessionServiceAdapter } from '../../src/adk/session/session-service-adapter.js'
import { KEY, openTestStore, STORES } from '../support/adk-run.js'

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('\u0000', 'a\ud800b', '\udfff', '𝄞'),
)
const data = fc.dictionary(text, fc.oneof(text, fc.integer(), fc.array(text, { maxLength: 2 })), {
  maxKeys: 3,
})

const anyEvent = fc
  .record({
    author: fc.constantFrom('user', 'agent'),
    role: fc.constantFrom('user', 'model'),
    words: fc.array(text, { maxLength: 3 }),
    calls: fc.array(fc.tuple(text, data), { maxLength: 2 }),
    results: fc.array(fc.tuple(text, data), { maxLength: 2 }),
    metadata: fc.option(data, { nil: undefined }),
  })
  .map(({ author, role, words, calls, results, metadata }) => {
    const parts = [
      ...words.map(word => ({ text: word })),
      ...calls.map(([name, args], index) => ({ functionCall: { id: `c${index}`, name: `n${name}`, args } })),
      ...results.map(([name, response], index) => ({
        functionResponse: { id: `r${index}`, name: `n${name}`, response },
      })),
    ]
    return createEvent({
      author,
      content: { role, parts },
      ...(metadata ? { customMetadata: metadata } : {}),
    })
  })

const json = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown

test.each(STORES)('any event survives the %s store', async kind => {
  const store = await openTestStore(kind)
  const sessions = new SessionServiceAdapter(store)
  const session = await sessions.createSession({ ...KEY })
  const appended: Event[] = []
  const append = async (event: Event) => {
    // Generated events have random ids of ADK's making, which may repeat.
    const named = { ...event, id: `e${appended.length}` }
    appended.push(named)
    await sessions.appendEvent({ session, event: named })
  }
  for (const event of fc.sample(anyEvent, { numRuns: 300, seed: 7 })) await append(event)
  const stored = await store.readMessages(KEY)
  expect(stored).toHaveLength(appended.length)
  for (const [index, message] of stored.entries()) {
    expect(json(messagesToEvents([message])[0])).toEqual(json(appended[index]))
  }
  await store.close()
})
