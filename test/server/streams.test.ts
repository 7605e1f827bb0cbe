import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { silentLogger } from '../../src/logger.js'
import type { RunEvent } from '../../src/run/run-event.js'
import type { Runtime } from '../../src/runtime/runtime.js'
import { Metrics } from '../../src/server/metrics.js'
import { RunHub } from '../../src/server/runs/run-hub.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { gapsIn, inOnePiece, textOf } from '../support/event-numbers.js'
import { rawRequest, rawSocket } from '../support/raw-request.js'
import { numbers, readEvents } from '../support/read-events.js'
import { createTestRuntime, startServer } from '../support/start-server.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { longUnless } from '../support/tiers.js'

async function metric(url: string, name: string): Promise<number> {
  const { text } = await rawRequest(url, '/metrics')
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN)
}

/** Waits for a fact that another part of the same process is about to bring about. */
async function eventually(fact: () => Promise<boolean>): Promise<void> {
  await expect.poll(fact, { interval: 20 }).toBe(true)
}

for (const count of [20, 200])
  test(
    `${count} open streams on one process miss and repeat no event`,
    longUnless(count === 20),
    async () => {
      const { client, url } = await startServer({ limits: { streamsPerUser: count } })
      const runs = await Promise.all(
        numbers(1, 4).map(index => client.start(`s${index}`, { text: 'slow 100 5' })),
      )
      const streams = numbers(0, count - 1).map(index =>
        readEvents(url, runs[index % runs.length]?.runId ?? ''),
      )
      const read = await Promise.all(streams)
      expect(read).toHaveLength(count)
      for (const events of read) {
        expect(gapsIn(events)).toEqual([])
        expect(textOf(events)).toContain('word100')
        expect(events.at(-1)).toMatchObject({ type: 'run-finish', text: textOf(events) })
      }
      await eventually(async () => (await metric(url, 'lango_streams_open')) === 0)
      expect(await metric(url, 'lango_events_sent_total')).toBe(read.flat().length)
    },
  )

/** More than the 2 MB of events that are kept in memory for followers: calls with large arguments, or many words. */
const LARGE_CALLS = Array.from({ length: 24 }, (_, index) => ({
  id: `call-${index}`,
  name: 'search',
  args: { query: `${index}`.padEnd(60_000) },
}))
const MANY_WORDS = Array.from({ length: 9000 }, (_, index) => `word${index} `)
const LONG_RUNS = [
  {
    title: 'large calls',
    script: [{ toolCalls: LARGE_CALLS }, { deltas: ['It ', 'is ', 'here.'] }],
    isShort: true,
  },
  { title: '9,000 words', script: [{ deltas: MANY_WORDS }], isShort: false },
]

for (const { title, script, isShort } of LONG_RUNS)
  test(`a slow follower of ${title} reads the store and misses no event`, longUnless(isShort), async () => {
    const provider = new ScriptedProvider(script, { id: 'play' })
    const runtime = await createTestRuntime('memory:', silentLogger, provider)
    const metrics = new Metrics()
    const hub = new RunHub({ runtime, appName: 'lango', metrics, runsPerUser: 8 })
    const { runId } = await hub.start({ userId: 'user', sessionId: 's1', text: 'Go.' })
    const slow = hub.follow(runId)
    const seen = [(await slow.next()).value].filter(event => event !== undefined)
    const quick: RunEvent[] = []
    for await (const event of hub.follow(runId)) quick.push(event)
    const reads = countReads(runtime)
    for await (const event of slow) seen.push(event)
    expect(reads.count).toBeGreaterThan(0)
    expect(gapsIn(quick)).toEqual([])
    expect(inOnePiece(seen)).toEqual(inOnePiece(quick))
    metrics.close()
    await runtime.close()
  })

/** A finished run of many large events, more than any socket buffers. */
async function largeRun(store: SessionStore, events: number, bytes: number): Promise<string> {
  const key = { appName: 'lango', userId: 'user', sessionId: 'large' }
  const runId = randomUUID()
  const identity = { sessionId: 'large', runId }
  await store.createSession(key)
  for (let seq = bytes; seq < events * bytes; seq += bytes) {
    const body = { type: 'text-delta', author: 'root', text: 'x'.repeat(bytes) }
    await store.runs.appendEvents(key, runId, [{ ...body, ...identity, seq }])
  }
  await store.runs.appendEvents(key, runId, [
    { type: 'run-finish', ...identity, seq: (events - 1) * bytes + 1 },
  ])
  return runId
}

test('an event stream that is opened and never read is closed, and holds one page at most', async () => {
  const server = await startServer({
    store: `sqlite:${await temporaryFolder()}/lango.db`,
    limits: { stalledMs: 300 },
  })
  const runId = await largeRun(server.runtime.store, 400, 100_000)
  const reads = countReads(server.runtime)
  const head = `GET /api/runs/${runId}/events HTTP/1.1\r\nHost: localhost\r\n\r\n`
  const { socket, closed } = await rawSocket(server.url, head)
  socket.pause()
  await eventually(async () => (await metric(server.url, 'lango_streams_dropped_total')) === 1)
  expect(await metric(server.url, 'lango_streams_open')).toBe(0)
  expect(reads.count).toBeLessThan(4)
  socket.resume()
  expect((await closed).length).toBeLessThan(400 * 100_000)
})

function countReads({ store: { runs } }: Runtime): { count: number } {
  const reads = { count: 0 }
  const read = runs.readEvents.bind(runs)
  runs.readEvents = (...request) => {
    reads.count += 1
    return read(...request)
  }
  return reads
}

test('a client that reads an event stream slowly gets everything', async () => {
  const { url, runtime } = await startServer({
    store: `sqlite:${await temporaryFolder()}/lango.db`,
    limits: { stalledMs: 5000 },
  })
  const runId = await largeRun(runtime.store, 150, 100_000)
  const response = await fetch(`${url}/api/runs/${runId}/events`)
  let bytes = 0
  let text = ''
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    text = (text + Buffer.from(chunk).toString('latin1')).slice(-300)
    // A pause for each chunk: the socket's buffers fill, and the server has to wait.
    await new Promise(resolve => setImmediate(resolve))
  }
  expect(bytes).toBeGreaterThan(149 * 100_000)
  expect(text).toContain('id: 14900001\ndata: {"type":"run-finish"')
})

test('a silent event stream is kept open by comments', async () => {
  const { client, url } = await startServer({ limits: { heartbeatMs: 20 } })
  const { runId } = await client.start('s1', { text: 'hang' })
  const response = await fetch(`${url}/api/runs/${runId}/events`)
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  expect(response.headers.get('content-encoding')).toBeNull()
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString()
    if (text.split(': still here\n\n').length > 3) break
  }
  expect(text).toMatch(/^retry: 1000\n\nid: 1\ndata: \{"type":"run-start"/)
})

test('a HEAD request for the events of a run does not count as an open stream', async () => {
  const { client, url } = await startServer({ limits: { streamsPerUser: 1 } })
  const { runId } = await client.start('s1', { text: 'hang' })
  for (let attempt = 0; attempt < 3; attempt++) {
    const answer = await rawRequest(url, `/api/runs/${runId}/events`, { method: 'HEAD' })
    expect(answer.status).toBe(200)
  }
  expect(await metric(url, 'lango_streams_open')).toBe(0)
})

test('streams and runs of one user are limited, and closed streams and ended runs no longer count', async () => {
  const { client, url } = await startServer({ limits: { streamsPerUser: 2, runsPerUser: 2 } })
  const runs = [await client.start('s1', { text: 'hang' }), await client.start('s2', { text: 'hang' })]
  const refusedRun = await client.start('s3', { text: 'say 1' }).catch(error => error)
  expect(refusedRun).toMatchObject({ status: 429, code: 'too-many', retryAfterSeconds: 5 })
  const path = `/api/runs/${runs[0]?.runId}/events`
  const open = await Promise.all([fetch(url + path), fetch(url + path)])
  const refused = await rawRequest(url, path)
  expect(refused.status).toBe(429)
  expect(refused.headers['retry-after']).toBe('5')
  for (const response of open) await response.body?.cancel()
  await eventually(async () => (await metric(url, 'lango_streams_open')) === 0)
  for (const { runId } of runs) await client.stop(runId)
  await eventually(async () => (await metric(url, 'lango_runs_running')) === 0)
  await expect(client.start('s3', { text: 'say 1' })).resolves.toMatchObject({ sessionId: 's3' })
})
