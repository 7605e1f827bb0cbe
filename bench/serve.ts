/**
 * What a stream costs: processor time per event and memory per stream, against an endpoint of the same HTTP
 * library that writes the same events from memory, one by one as its documentation does, and stores nothing.
 * Clients are a process of their own, so that only the server is measured.
 *
 * And how long a person waits: the time to the first word through the server, beyond that of the model itself.
 *
 *     npm run bench -- serve [--json]
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { serve as serveBare } from '@hono/node-server'
import { Hono } from 'hono'
import { type SSEStreamingApi, streamSSE } from 'hono/streaming'
import { createClient } from '../src/client/create-client.js'
import { silentLogger } from '../src/logger.js'
import type { RunEvent } from '../src/run/run-event.js'
import { createRuntime } from '../src/runtime/runtime.js'
import { serve } from '../src/server/serve.js'
import { ScriptedProvider } from '../src/testing/scripted-provider.js'
import { Report } from './support/report.js'

const EVENTS = Number(process.env.LANGO_BENCH_EVENTS ?? 2000)
const STREAMS = 50
const IDLE_STREAMS = 200
const SESSIONS = 1000
/** Until then memory grows with compiled code and caches, not with sessions. */
const WARM_UP = 400
const ROUNDS = 3

if (process.argv.includes('--clients')) await openStreams(process.argv.slice(3))
else await measure()

async function measure(): Promise<void> {
  const report = new Report('serve')
  const folder = await mkdtemp(join(tmpdir(), 'lango-bench-'))
  const ours = await startOurs(folder)
  const bare = await startBare()
  try {
    report.progress('a stored run, replayed …')
    const { runId } = await ours.client.start('replayed', { text: 'go' })
    const events: RunEvent[] = []
    for await (const event of ours.client.follow(runId)) events.push(event)
    bare.events = events
    const replay = await compare(
      () => cost(() => read(`${ours.url}/api/runs/${runId}/events`)),
      () => cost(() => read(`${bare.url}/replay`)),
    )
    const perEvent = 1000 / (events.length * STREAMS)
    report.atMost(
      'an event of a stored run, per stream',
      'µs',
      replay.ours * perEvent,
      replay.peer * perEvent,
      2,
    )

    report.progress('a live run, followed …')
    const live = await compare(
      () => liveCost(ours),
      () => cost(() => read(`${bare.url}/live`, () => bare.play())),
    )
    report.atMost('an event of a live run, per stream', 'µs', live.ours * perEvent, live.peer * perEvent, 2)

    report.progress('a first word …')
    const added = await firstWordAdded()
    report.atMost('the first word through the server, added (against 15 ms)', 'ms', added, FIRST_WORD_MS, 1)

    report.progress('idle streams …')
    const hanging = await ours.client.start('hanging', { text: 'hang' })
    const idleOurs = await heldMemory(`${ours.url}/api/runs/${hanging.runId}/events`)
    const idleBare = await heldMemory(`${bare.url}/live`)
    report.atMost('an open stream', 'KB', idleOurs, idleBare, 2)

    report.progress('idle sessions …')
    report.atMost('a session that had a run, idle (against 1 KB)', 'KB', await sessionMemory(ours), 1)
  } finally {
    await ours.close()
    await bare.close()
    await rm(folder, { recursive: true, force: true })
  }
  report.finish()
  // Sockets of clients that were ended with their process may linger.
  process.exit()
}

/** The median of the times to the first word through the server, less that of the model's own; taken in turns. */
async function firstWordAdded(): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'lango-bench-'))
  const model = await startSlowModel()
  const wire = { type: 'openai-compatible', baseUrl: model.url, apiKey: 'k' } as const
  const runtime = await createRuntime({
    ...{ store: `sqlite:${folder}/lango.db`, logger: silentLogger, providers: { slow: wire } },
    agent: { name: 'agent', model: 'slow/m' },
  })
  const options = { runtime, port: 0, host: '127.0.0.1', logger: silentLogger, version: 'bench', graceMs: 0 }
  const server = await serve(options)
  const times = { ours: [] as number[], model: [] as number[] }
  for (let round = 0; round < WORD_ROUNDS; round++) {
    times.ours.push(await firstWordMs(`${server.url}/v1/chat/completions`, 'lango'))
    times.model.push(await firstWordMs(`${model.url}/chat/completions`, 'm'))
  }
  await server.close()
  await runtime.close()
  model.close()
  await rm(folder, { recursive: true, force: true })
  return median(times.ours.slice(WORD_WARM_UP)) - median(times.model.slice(WORD_WARM_UP))
}

const FIRST_WORD_MS = 15
const WORD_ROUNDS = 25
/** The first requests load code. */
const WORD_WARM_UP = 5

/** A model that says a word, is silent for a while, and ends. */
async function startSlowModel() {
  const app = new Hono()
  const chunk = (delta: object, finish: string | null = null) =>
    JSON.stringify({
      ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' },
      choices: [{ index: 0, delta, finish_reason: finish }],
    })
  app.post('/chat/completions', c =>
    streamSSE(c, async stream => {
      await stream.writeSSE({ data: chunk({ role: 'assistant', content: 'Word. ' }) })
      await sleep(SILENCE_MS)
      await stream.writeSSE({ data: chunk({}, 'stop') })
      await stream.writeSSE({ data: '[DONE]' })
    }),
  )
  const server = serveBare({ fetch: app.fetch, port: 0, hostname: '127.0.0.1', overrideGlobalObjects: false })
  await once(server, 'listening')
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
    close: () => server.close(),
  }
}

const SILENCE_MS = 300

/** The time from a request to the first word of its answer. The answer is read to its end. */
async function firstWordMs(url: string, model: string): Promise<number> {
  const messages = [{ role: 'user', content: `go ${Math.random()}` }]
  const body = JSON.stringify({ model, messages, stream: true })
  const startedAt = performance.now()
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  let foundMs = Number.NaN
  let text = ''
  for await (const bytes of response.body ?? []) {
    text += Buffer.from(bytes).toString()
    if (Number.isNaN(foundMs) && text.includes('Word. ')) foundMs = performance.now() - startedAt
  }
  return foundMs
}

function median(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}

type Ours = Awaited<ReturnType<typeof startOurs>>

async function startOurs(folder: string) {
  const deltas = Array.from({ length: EVENTS }, (_, index) => `Word number ${index}. `)
  let release = () => {}
  const gate = new Promise<void>(resolve => {
    release = resolve
  })
  const provider = new ScriptedProvider(
    async request => {
      const text = JSON.stringify(request.messages.at(-1))
      if (text.includes('hang')) await gate
      return text.includes('short') ? { text: 'Yes.' } : { deltas }
    },
    { id: 'play' },
  )
  const runtime = await createRuntime({
    store: `sqlite:${folder}/lango.db`,
    providers: { play: provider },
    agent: { name: 'agent', model: 'play/model' },
  })
  const server = await serve({
    runtime,
    port: 0,
    host: '127.0.0.1',
    logger: silentLogger,
    version: 'bench',
    graceMs: 0,
    limits: { streamsPerUser: 1000, heartbeatMs: 60_000 },
  })
  const close = async () => {
    release()
    await server.close()
    await runtime.close()
  }
  /** The scripted model remembers every request; that is not the server's memory. */
  const forget = () => {
    provider.requests.length = 0
  }
  return { url: server.url, client: createClient({ baseUrl: server.url }), forget, close }
}

/** The same events from memory, one write each, as the library's own documentation does it. */
async function startBare() {
  const app = new Hono()
  const source = new EventEmitter().setMaxListeners(0)
  const state = { events: [] as RunEvent[] }
  const write = (stream: SSEStreamingApi, event: RunEvent) =>
    stream.writeSSE({ id: String(event.seq), data: JSON.stringify(event) })
  app.get('/replay', c =>
    streamSSE(c, async stream => {
      for (const event of state.events) await write(stream, event)
    }),
  )
  app.get('/live', c =>
    streamSSE(c, async stream => {
      const queue: RunEvent[] = []
      let wake = () => {}
      const hear = (event: RunEvent) => {
        queue.push(event)
        wake()
      }
      source.on('event', hear)
      stream.onAbort(() => void source.off('event', hear))
      for (let last = ''; last !== 'run-finish' && !stream.aborted; ) {
        if (queue.length === 0) await new Promise<void>(resolve => (wake = resolve))
        for (const event of queue.splice(0)) {
          await write(stream, event)
          last = event.type
        }
      }
      source.off('event', hear)
    }),
  )
  const server = serveBare({ fetch: app.fetch, port: 0, hostname: '127.0.0.1', overrideGlobalObjects: false })
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  return Object.assign(state, {
    url: `http://127.0.0.1:${port}`,
    /** Tells the events in groups, as a model that streams. */
    play: async () => {
      for (const [index, event] of state.events.entries()) {
        source.emit('event', event)
        if (index % 8 === 0) await new Promise(resolve => setImmediate(resolve))
      }
    },
    close: () => new Promise<void>(resolve => void server.close(() => resolve())),
  })
}

/** Takes turns, so that the second side finds no warmer caches; the smallest of each counts. */
async function compare(ours: () => Promise<number>, peer: () => Promise<number>) {
  const best = { ours: Number.POSITIVE_INFINITY, peer: Number.POSITIVE_INFINITY }
  for (let round = 0; round < ROUNDS; round++) {
    best.ours = Math.min(best.ours, await ours())
    best.peer = Math.min(best.peer, await peer())
  }
  return best
}

/** What following costs beyond what the run costs by itself. */
async function liveCost({ client, url }: Ours): Promise<number> {
  const run = async (follow: boolean) => {
    const { runId } = await client.start(`live-${Math.random()}`, { text: 'go' })
    if (follow) await read(`${url}/api/runs/${runId}/events`)
    else
      for await (const event of client.follow(runId, { after: EVENTS }))
        if (event.type === 'run-finish') break
  }
  const alone = await cost(() => run(false))
  return (await cost(() => run(true))) - alone
}

/** Milliseconds of this process's processor time. */
async function cost(work: () => Promise<unknown>): Promise<number> {
  collectGarbage()
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/** Lets another process read a URL over many connections at once, until each has ended. */
async function read(url: string, whenOpen: () => Promise<void> = async () => {}): Promise<void> {
  const { ready, ended } = startClients(url, STREAMS)
  await ready
  await whenOpen()
  await ended
}

/** KB for each stream that is open and silent: what is freed when all are closed. */
async function heldMemory(url: string): Promise<number> {
  const { child, ready, ended } = startClients(url, IDLE_STREAMS)
  await ready
  const open = await memory()
  child.kill()
  await ended
  return ((await memory()) - open) / -IDLE_STREAMS / 1024
}

async function sessionMemory({ client, forget }: Ours): Promise<number> {
  const visit = async (from: number, to: number) => {
    for (let index = from; index < to; index++) {
      const { runId } = await client.start(`idle-${index}`, { text: 'short' })
      for await (const event of client.follow(runId)) if (event.type === 'run-finish') break
    }
  }
  await visit(0, WARM_UP)
  forget()
  const before = await memory()
  await visit(WARM_UP, WARM_UP + SESSIONS)
  forget()
  return Math.max(0, (await memory()) - before) / SESSIONS / 1024
}

async function memory(): Promise<number> {
  // Sockets that have just been closed are let go of in turns of the event loop.
  await sleep(500)
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  collect()
}

function startClients(
  url: string,
  count: number,
): { child: ChildProcess; ready: Promise<void>; ended: Promise<unknown> } {
  const args = [...process.execArgv, fileURLToPath(import.meta.url), '--clients', url, String(count)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const ready = new Promise<void>(resolve => {
    createInterface({ input: child.stdout }).on('line', () => resolve())
  })
  return { child, ready, ended: once(child, 'exit') }
}

/** In the process of the clients: opens the streams, says when all have answered, and ends with the last. */
async function openStreams([url = '', count = '1']: string[]): Promise<void> {
  const { hostname, port, pathname } = new URL(url)
  let answered = 0
  const streams = Array.from({ length: Number(count) }, () => {
    const socket = connect(Number(port), hostname)
    socket.write(`GET ${pathname} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
    socket.once('data', () => {
      answered += 1
      if (answered === Number(count)) console.log('ready')
    })
    socket.resume()
    return once(socket, 'close')
  })
  await Promise.all(streams)
}
