import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { withGenerate } from '../../src/provider/provider.js'
import { isDelta, numbered } from '../../src/run/event-numbers.js'
import type { RunEventBody } from '../../src/run/run-event.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { obedientProvider } from '../support/obedient-provider.js'
import { gate } from '../support/paced-model.js'
import { readEvents } from '../support/read-events.js'
import { startServer } from '../support/start-server.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's1' }

/** The events of a run whose process crashed in the middle of an answer. */
async function abandonedRun(store: SessionStore): Promise<string> {
  const runId = randomUUID()
  const tokens = { inputTokens: 5, outputTokens: 2, cachedInputTokens: 0, cacheWriteTokens: 0 }
  const usage = { ...tokens, reasoningTokens: 0, totalTokens: 7 }
  const bodies: RunEventBody[] = [
    { type: 'run-start', userId: 'user', agent: 'root', model: 'play/model' },
    { type: 'text-delta', author: 'root', text: 'Let me look. ' },
    { type: 'tool-call', author: 'root', id: 'a', name: 'search', args: {} },
    { type: 'tool-call', author: 'root', id: 'b', name: 'search', args: {} },
    { type: 'usage', author: 'root', model: 'play/model', usage },
    { type: 'tool-result', author: 'root', id: 'a', name: 'search', result: {}, isError: false },
    { type: 'tool-result', author: 'root', id: 'b', name: 'search', result: {}, isError: false },
    { type: 'text-delta', author: 'root', text: 'It is' },
  ]
  const events = numbered(bodies, { sessionId: 's1', runId }, 0)
  await store.runs.appendEvents(
    KEY,
    runId,
    events.map(event => ({ ...event })),
  )
  return runId
}

/** The end of a run whose process is gone: the first number of another attempt. */
const END = 2 ** 24

async function start() {
  const server = await startServer({ store: `sqlite:${await temporaryFolder()}/lango.db` })
  await server.runtime.store.createSession(KEY)
  return { ...server, store: server.runtime.store }
}

test('reading a session ends its run whose process is gone, with an error and run-finish', async () => {
  const { store, client, url } = await start()
  const runId = await abandonedRun(store)
  expect((await client.session('s1')).lastRun).toMatchObject({ status: 'finished', finishReason: 'error' })
  const events = await readEvents(url, runId)
  expect(events).toHaveLength(10)
  expect(events.slice(-2)).toMatchObject([
    { seq: END, type: 'error', error: { code: 'run-interrupted', retryable: true } },
    {
      seq: END + 1,
      type: 'run-finish',
      finishReason: 'error',
      text: 'Let me look. \n\nIt is',
      lastText: 'It is',
      turns: 1,
      usage: { totalTokens: 7 },
    },
  ])
})

test('a run whose session is leased counts as running', async () => {
  const { store, client } = await start()
  const lease = await store.acquireLease(KEY)
  const runId = await abandonedRun(store)
  expect(await client.run(runId)).toMatchObject({ status: 'running', lastSeq: 24 })
  await lease.release()
  expect(await client.run(runId)).toMatchObject({ status: 'finished', lastSeq: END + 1 })
})

test('a run that a later one followed is reported as finished, although the session is leased', async () => {
  const { store, client } = await start()
  const runId = await abandonedRun(store)
  const lease = await store.acquireLease(KEY)
  // Runs are ordered by the millisecond in which they began.
  await expect.poll(async () => Date.now() > (await store.runs.findRun(runId))!.startedAt).toBe(true)
  const later = await abandonedRun(store)
  expect(await client.run(runId)).toMatchObject({ status: 'finished', finishReason: 'error' })
  expect(await client.run(later)).toMatchObject({ status: 'running' })
  await lease.release()
})

test('the next message ends an interrupted run and starts a new one', async () => {
  const { store, client, url } = await start()
  const runId = await abandonedRun(store)
  const next = await client.start('s1', { text: 'say 1' })
  expect((await readEvents(url, next.runId)).at(-1)).toMatchObject({ finishReason: 'stop' })
  expect((await store.runs.findRun(runId))?.finished).toBe(true)
})

test('concurrent requests end an interrupted run once', async () => {
  const { store, client, url } = await start()
  const runId = await abandonedRun(store)
  await Promise.all(Array.from({ length: 10 }, () => client.run(runId)))
  const seqs = (await readEvents(url, runId)).map(({ seq }) => seq)
  expect(seqs).toEqual([1, 14, 15, 16, 17, 18, 19, 24, END, END + 1])
})

test('old run events are deleted when the server starts, messages are not', async () => {
  const folder = await temporaryFolder()
  const store = `sqlite:${folder}/lango.db`
  const first = await startServer({ store })
  const { runId } = await first.client.start('s1', { text: 'say 1' })
  await readEvents(first.url, runId)
  const second = await startServer({ store, keepRunsMs: 0 })
  await expect.poll(() => second.runtime.store.runs.readEvents(runId)).toEqual([])
  expect((await second.client.messages('s1')).totalMessages).toBe(2)
})

test('a stalled run that another process has ended ends once, also for followers in its own process', async () => {
  const { passed, open } = gate()
  const provider = withGenerate(obedientProvider, async function* (request) {
    yield { type: 'request', model: request.model, profile: 'p', repairs: [], mappedIds: {}, body: {} }
    yield { type: 'text-delta', text: 'word1 ' }
    await passed
    yield { type: 'text-delta', text: 'word2' }
    yield { type: 'done', finishReason: 'stop' }
  })
  const { url, client, runtime } = await startServer({ provider })
  const { runs } = runtime.store
  const { runId } = await client.start('s1', { text: 'Go.' })
  const followed = readEvents(url, runId)
  for await (const { type } of client.follow(runId)) if (type === 'text-delta') break
  const identity = { sessionId: 's1', runId }
  await runs.appendEvents(KEY, runId, [
    { ...identity, type: 'error', error: { code: 'run-interrupted' }, seq: END },
    { ...identity, type: 'run-finish', finishReason: 'error', seq: END + 1 },
  ])
  open()
  const events = await followed
  expect(events.filter(({ type }) => type === 'run-finish')).toHaveLength(1)
  // The word that was not stored when the run was ended is void.
  expect(events.filter(event => !isDelta(event))).toEqual(await runs.readEvents(runId))
})
