/** `start({ at })`: the run is on disk at once, and executed once when it is due, by whichever process. */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { RunEvent } from '../../src/run/run-event.js'
import type { Runtime } from '../../src/runtime/runtime.js'
import { openStore } from '../../src/store/open-store.js'
import { gapsIn } from '../support/event-numbers.js'
import { eventually } from '../support/eventually.js'
import { createStoreDatabase, type TestDatabase } from '../support/postgres.js'
import { createTestRuntime, startServer, startServerProcess } from '../support/start-server.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { longUnless } from '../support/tiers.js'

let database: TestDatabase
beforeAll(async () => {
  database = await createStoreDatabase()
})
afterAll(() => database.drop())

const PLACES: Record<string, () => Promise<string>> = {
  SQLite: async () => `sqlite:${join(await temporaryFolder(), 'runs.db')}`,
  PostgreSQL: async () => database.url,
}

const HOUR_MS = 3_600_000

async function open(url: string): Promise<Runtime> {
  const runtime = await createTestRuntime(url)
  onTestFinished(() => runtime.close())
  return runtime
}

async function collect(events: AsyncIterable<RunEvent>): Promise<RunEvent[]> {
  const all: RunEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

const keyOf = (sessionId: string) => ({ appName: 'lango', userId: 'user', sessionId })

async function userTexts(runtime: Runtime, sessionId: string): Promise<(string | undefined)[]> {
  const messages = await runtime.store.readMessages(keyOf(sessionId))
  return messages.filter(({ role }) => role === 'user').map(({ content }) => content)
}

describe.each(Object.keys(PLACES))('on %s', place => {
  const newPlace = async () => (await PLACES[place]?.()) ?? ''

  test('a run waits for its time, lets other messages pass, and is executed once by one of two processes', async () => {
    const url = await newPlace()
    const [near, far] = [await open(url), await open(url)]
    await far.ready()
    const sessionId = randomUUID()
    const at = new Date(Date.now() + 1500)
    const { runId } = await near.start({ sessionId, text: 'say 1', at })
    expect(await far.findRun(runId)).toMatchObject({ state: 'scheduled', dueAt: at.getTime() })
    expect(await near.start({ sessionId, text: 'say 1', at, runId })).toEqual({ runId, sessionId })
    expect((await near.runAndCollect({ sessionId, text: 'say 2' })).finishReason).toBe('stop')
    const events = await collect(far.follow(runId))
    expect(events.map(({ type }) => type).slice(0, 2)).toEqual(['run-scheduled', 'run-start'])
    expect(gapsIn(events)).toEqual([])
    expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
    expect(await userTexts(near, sessionId)).toEqual(['say 2', 'say 1'])
    expect(await near.findRun(runId)).toMatchObject({ state: 'finished', dueAt: at.getTime() })
  })

  test('a run for a past time begins at once; stop ends a run before its time, and resume begins it before', async () => {
    const runtime = await open(await newPlace())
    const sessionId = randomUUID()
    const past = await runtime.start({ sessionId, text: 'say 3', at: 1 })
    expect((await collect(runtime.follow(past.runId))).at(-1)).toMatchObject({ finishReason: 'stop' })
    const at = new Date(Date.now() + HOUR_MS).toISOString()
    const stopped = await runtime.start({ sessionId, text: 'say 4', at })
    await runtime.stop(stopped.runId)
    const ended = await collect(runtime.follow(stopped.runId))
    expect(ended).toMatchObject([{ type: 'run-scheduled' }, { type: 'run-finish', finishReason: 'aborted' }])
    const early = await runtime.start({ sessionId, text: 'say 5', at })
    await runtime.resume(early.runId)
    expect((await collect(runtime.follow(early.runId))).at(-1)).toMatchObject({ finishReason: 'stop' })
    expect(await userTexts(runtime, sessionId)).toEqual(['say 3', 'say 5'])
  })

  test('run({ at }) streams from its time on, and a reader that leaves before ends the run', async () => {
    const runtime = await open(await newPlace())
    const sessionId = randomUUID()
    const events = await collect(runtime.run({ sessionId, text: 'say 1', at: Date.now() + 50 }))
    expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
    let runId = ''
    for await (const event of runtime.run({ sessionId, text: 'say 2', at: Date.now() + HOUR_MS })) {
      runId = event.runId
      break
    }
    expect(await runtime.findRun(runId)).toMatchObject({ state: 'finished', finishReason: 'aborted' })
    const abort = new AbortController()
    const aborted = await runtime.start({
      ...{ sessionId, text: 'say 3', at: Date.now() + HOUR_MS },
      signal: abort.signal,
    })
    abort.abort()
    await eventually(async () => (await runtime.findRun(aborted.runId))?.finishReason).toBe('aborted')
    expect(await userTexts(runtime, sessionId)).toEqual(['say 1'])
  })

  const onOneStore = longUnless(place === 'SQLite')

  test(
    'a run whose process is killed before it is due is executed by the next process, once',
    onOneStore,
    async () => {
      const url = await newPlace()
      const first = await startServerProcess(url)
      const sessionId = randomUUID()
      const at = new Date(Date.now() + 3000).toISOString()
      const { runId } = await first.client.start(sessionId, { text: 'say 6', at })
      await first.kill()
      const [second, third] = await Promise.all([startServerProcess(url), startServerProcess(url)])
      const events = await collect(second.client.follow(runId))
      expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
      expect(events.filter(({ type }) => type === 'run-start')).toHaveLength(1)
      const { messages } = await third.client.messages(sessionId)
      expect(messages.filter(({ role }) => role === 'user')).toHaveLength(1)
    },
  )

  test('a closed runtime leaves a run that is not due in the store', async () => {
    const url = await newPlace()
    const runtime = await createTestRuntime(url)
    const sessionId = randomUUID()
    const { runId } = await runtime.start({ sessionId, text: 'say 7', at: Date.now() + HOUR_MS })
    await runtime.close()
    const store = await openStore(url)
    expect(await store.runs.findRun(runId)).toMatchObject({ state: 'scheduled' })
    await store.close()
  })
})

test('an invalid `at` is refused, and so is `at` with whenBusy: reject', async () => {
  const runtime = await open('memory:')
  const start = (input: object) => runtime.start({ text: 'x', ...input })
  for (const at of ['tomorrow', '2027-03-01T09:00:00', -1, Number.NaN, new Date(Number.NaN)])
    await expect(start({ at })).rejects.toMatchObject({ code: 'invalid-argument' })
  await expect(start({ at: 1, whenBusy: 'reject' })).rejects.toThrow('whenBusy')
  expect(await runtime.store.runs.listUnfinished({ appName: 'lango', scheduled: 'only' })).toEqual([])
})

test('the API takes `at`, lists the run as scheduled, and stops it', async () => {
  const { client, url } = await startServer()
  const dueAt = Math.floor(Date.now() / 1000) * 1000 + HOUR_MS
  const at = new Date(dueAt).toISOString()
  const { runId } = await client.start('trip', { text: 'say 1', at })
  expect(await client.run(runId)).toMatchObject({ status: 'scheduled', dueAt })
  const now = await client.start('trip', { text: 'say 2' })
  await collect(client.follow(now.runId))
  const detail = await client.session('trip')
  expect(detail).toMatchObject({ nextRun: { runId, dueAt }, lastRun: { runId: now.runId } })
  expect(detail).not.toHaveProperty('activeRun')
  expect((await client.runs('trip')).runs.map(({ status }) => status)).toEqual(['scheduled', 'finished'])
  await client.stop(runId)
  expect(await client.run(runId)).toMatchObject({ status: 'finished', finishReason: 'aborted' })
  const post = (body: object) =>
    fetch(`${url}/api/sessions/trip/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'x', ...body }),
    })
  for (const wrong of ['tomorrow', '2027-03-01T09:00', -5, {}]) {
    const response = await post({ at: wrong })
    expect([400, 422]).toContain(response.status)
  }
  expect((await post({ at, whenBusy: 'reject' })).status).toBe(400)
  const keyed = async () => {
    const response = await fetch(`${url}/api/sessions/trip/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'later-1' },
      body: JSON.stringify({ text: 'say 8', at }),
    })
    return (await response.json()) as { runId: string }
  }
  expect((await keyed()).runId).toBe((await keyed()).runId)
})
