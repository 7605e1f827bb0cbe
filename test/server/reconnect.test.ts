import { expect, test } from 'vitest'
import { eventsAfter } from '../../src/run/event-numbers.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { gapsIn, inOnePiece, textOf } from '../support/event-numbers.js'
import { numbers, readEvents } from '../support/read-events.js'
import { startServer, startServerProcess } from '../support/start-server.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { longUnless } from '../support/tiers.js'

/** The other server on the store. A real process, and a run that lasts longer, are in `npm run test:long`. */
const OTHERS = [
  {
    other: 'another server of the store',
    startFar: (store: string) => startServer({ store, limits: { streamsPerUser: 1000 } }),
    ...{ words: 30, pauseMs: 10, isShort: true },
  },
  { other: 'another process', startFar: startServerProcess, words: 60, pauseMs: 20, isShort: false },
]

for (const { other, startFar, words, pauseMs, isShort } of OTHERS) {
  const title = `the events after every index are exactly the rest, of an ended and of a running run, from the same and from ${other}`
  test(title, longUnless(isShort), async () => {
    const store = `sqlite:${await temporaryFolder()}/lango.db`
    const near = await startServer({ store, limits: { streamsPerUser: 1000 } })
    const far = await startFar(store)
    const ended = await near.client.start('s1', { text: 'search' })
    const all = inOnePiece(await readEvents(near.url, ended.runId))
    expect(all.at(-1)?.type).toBe('run-finish')
    expect(gapsIn(all)).toEqual([])
    for (const { url } of [near, far]) {
      for (const seen of numbers(0, all.at(-1)?.seq ?? 0)) {
        const rest = eventsAfter(all, seen)
        expect(inOnePiece(await readEvents(url, ended.runId, { after: seen }))).toEqual(rest)
        expect(inOnePiece(await readEvents(url, ended.runId, { lastEventId: seen }))).toEqual(rest)
      }
    }
    const { runId } = await near.client.start('s2', { text: `slow ${words} ${pauseMs}` })
    const readings = numbers(0, 25).flatMap(seen =>
      [near, far].map(async ({ url }) => ({ seen, events: await readEvents(url, runId, { after: seen }) })),
    )
    const [whole, ...rest] = await Promise.all(readings)
    const live = inOnePiece(whole?.events ?? [])
    expect(textOf(live).split(' ').filter(Boolean)).toHaveLength(words)
    for (const { seen, events } of rest) expect(inOnePiece(events)).toEqual(eventsAfter(live, seen))
  })
}

test('a connection that is closed after every event misses and repeats no event', async () => {
  const { client, url } = await startServer()
  const { runId } = await client.start('s1', { text: 'slow 30 5' })
  const seen: RunEvent[] = []
  for (let connection = 0; connection < 100; connection++) {
    const [event] = await readEvents(url, runId, { lastEventId: seen.at(-1)?.seq ?? 0, atMost: 1 })
    if (!event) break
    seen.push(event)
    if (event.type === 'run-finish') break
  }
  expect(gapsIn(seen)).toEqual([])
  expect(seen.at(-1)).toMatchObject({ type: 'run-finish', text: textOf(seen) })
})

test('a run continues when its only follower disconnects, and its answer is stored', async () => {
  const { client } = await startServer()
  const { runId } = await client.start('s1', { text: 'slow 20 5' })
  for await (const event of client.follow(runId)) if (event.type === 'text-delta') break
  const rest = []
  for await (const event of client.follow(runId)) rest.push(event)
  expect(rest.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  const { messages } = await client.messages('s1')
  expect(messages.at(-1)?.parts).toEqual([{ type: 'text', text: expect.stringContaining('word20') }])
})

test('a request for events after the last one of a run gets 204', async () => {
  const { client, url } = await startServer()
  const { runId } = await client.start('s1', { text: 'say 1' })
  const all = await readEvents(url, runId)
  const response = await fetch(`${url}/api/runs/${runId}/events?after=${all.at(-1)?.seq}`)
  expect(response.status).toBe(204)
})
