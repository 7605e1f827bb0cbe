// A run is started and followed in one request.
import { expect, test } from 'vitest'
import { readServerEvents } from '../../src/client/create-client.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { inOnePiece } from '../support/event-numbers.js'
import { readEvents } from '../support/read-events.js'
import { startServer } from '../support/start-server.js'

const STREAM = 'text/event-stream'

function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}/api/sessions/s/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: STREAM, ...headers },
    body: JSON.stringify(body),
  })
}

async function eventsOf(response: Response, atMost = Number.POSITIVE_INFINITY): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  if (!response.body) return events
  for await (const { event, data } of readServerEvents(response.body)) {
    if (event === 'message') events.push(JSON.parse(data) as RunEvent)
    if (events.length >= atMost) break
  }
  return events
}

test('starting a run with Accept: text/event-stream returns all events of the run', async () => {
  const { url } = await startServer()
  const response = await post(url, { text: 'Hello.' })
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
  const runId = response.headers.get('x-lango-run') ?? ''
  expect(response.headers.get('x-lango-session')).toBe('s')
  const events = await eventsOf(response)
  expect(events[0]).toMatchObject({ type: 'run-start', seq: 1, runId })
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  expect(inOnePiece(events)).toEqual(inOnePiece(await readEvents(url, runId)))
})

test('a run that streams its events continues when the connection is lost, and the other events are read by number', async () => {
  const { url, client } = await startServer()
  const response = await post(url, { text: 'slow 20 20' })
  const runId = response.headers.get('x-lango-run') ?? ''
  const seen = await eventsOf(response, 3)
  const rest: RunEvent[] = []
  for await (const event of client.follow(runId, { after: seen.at(-1)?.seq ?? 0 })) rest.push(event)
  expect(rest.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  expect(inOnePiece([...seen, ...rest])).toEqual(inOnePiece(await readEvents(url, runId)))
})

test('a streaming start that is repeated with its Idempotency-Key returns the events of the same run', async () => {
  const { url, client } = await startServer()
  const headers = { 'idempotency-key': 'payment-7' }
  const first = inOnePiece(await eventsOf(await post(url, { text: 'Hello.' }, headers)))
  expect(inOnePiece(await eventsOf(await post(url, { text: 'Hello.' }, headers)))).toEqual(first)
  const rest = await post(url, { text: 'Hello.' }, { ...headers, 'last-event-id': String(first[1]?.seq) })
  expect(inOnePiece(await eventsOf(rest))).toEqual(first.slice(2))
  expect((await client.runs('s')).runs).toHaveLength(1)
})

test.each([
  ['none', undefined],
  ['both', `application/json, ${STREAM}`],
])('starting a run with %s of the two media types in Accept returns JSON', async (_, accept) => {
  const { url } = await startServer()
  const response = await post(url, { text: 'Hello.' }, { accept: accept ?? '*/*' })
  expect(response.status).toBe(202)
  expect(await response.json()).toMatchObject({ sessionId: 's' })
})

test('a streaming start is refused before the run begins', async () => {
  const { url, client } = await startServer({ limits: { streamsPerUser: 1 } })
  const bad = await post(url, { nothing: true })
  expect(bad.status).toBe(400)
  expect(bad.headers.get('content-type')).toContain('application/problem+json')
  const running = await post(url, { text: 'slow 20 20' })
  const busy = await fetch(`${url}/api/sessions/other/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: STREAM },
    body: JSON.stringify({ text: 'Hello.' }),
  })
  expect(busy.status).toBe(429)
  await expect(client.session('other')).rejects.toMatchObject({ status: 404 })
  expect((await eventsOf(running)).at(-1)).toMatchObject({ type: 'run-finish' })
})
