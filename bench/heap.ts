/**
 * The memory of a server under loads that a careless server keeps: before, at its peak, and after a forced collection.
 * A real `lango serve` on SQLite in a process of its own.
 *
 *     npm run bench -- heap [--json] [--only NAME]
 */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { appendAll } from '../src/session/session-pages.js'
import { openStore } from '../src/store/open-store.js'
import { get, post, readAdk, startLoadModel } from './support/load.js'
import type { MemoryReport } from './support/watch-loop.js'
import { startWatchedServer, type WatchedServer } from './support/watched-server.js'

const MESSAGES = Number(process.env.LANGO_BENCH_MESSAGES ?? 100_000)
const SESSIONS = 2000
const SESSION_MESSAGES = 200
const STREAMS = 1000
const RUNS = 1000
const TOOL_RUNS = 10
const SAMPLE_MS = 100
/** Seconds until memory is taken as it is: at least, and at most while it still falls. */
const SETTLE_LEAST = 6
const SETTLE_ROUNDS = 20
const MEGABYTE = 1024 * 1024
/** What may remain of a load: caches and compiled code. */
const KEPT_MB = 32

interface Load {
  name: string
  run(server: WatchedServer): Promise<string>
}

interface Row {
  bench: 'heap'
  load: string
  outcome: string
  /** Megabytes before, at the peak, and after. */
  rss: [number, number, number]
  heap: [number, number, number]
  goalMb: number
  met: boolean
}

const LOADS: readonly Load[] = [
  { name: `${STREAMS} idle streams`, run: idleStreams },
  { name: `${TOOL_RUNS} runs with a tool output of 10 MB`, run: bigOutputs },
  { name: `${RUNS} parallel runs`, run: parallelRuns },
  { name: `one session of ${MESSAGES} messages`, run: longSession },
  { name: `${SESSIONS} sessions of ${SESSION_MESSAGES} messages`, run: manySessions },
]

const rows: Row[] = []
const model = await startLoadModel()
await main()

async function main(): Promise<void> {
  const at = process.argv.indexOf('--only')
  const only = at < 0 ? undefined : process.argv[at + 1]
  const folder = await mkdtemp(join(tmpdir(), 'lango-bench-'))
  const server = await startWatchedServer(folder, configuration(model.provider))
  try {
    for (const text of ['warm-up', 'again', 'tool']) await run(server, `warm-${text}`, text)
    for (const load of LOADS) {
      if (only === undefined || load.name.includes(only)) await measure(server, load)
    }
  } finally {
    model.close()
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
  if (process.argv.includes('--json')) console.log(JSON.stringify(rows, null, 2))
  else printRows()
  process.exit(rows.every(row => row.met) ? 0 : 1)
}

async function measure(server: WatchedServer, load: Load): Promise<void> {
  process.stderr.write(`${load.name} …\n`)
  const before = await collected(server)
  const peak = { ...before }
  let isOver = false
  const sampling = (async () => {
    while (!isOver) {
      const { memory } = await server.server.ask('read')
      peak.rss = Math.max(peak.rss, memory.rss)
      peak.heap = Math.max(peak.heap, used(memory))
      await sleep(SAMPLE_MS)
    }
  })()
  const outcome = await load.run(server)
  isOver = true
  await sampling
  const after = await collected(server)
  const kept = (after.heap - before.heap) / MEGABYTE
  rows.push({
    bench: 'heap',
    load: load.name,
    outcome,
    rss: [before.rss, peak.rss, after.rss].map(megabytes) as Row['rss'],
    heap: [before.heap, peak.heap, after.heap].map(megabytes) as Row['heap'],
    goalMb: KEPT_MB,
    met: kept <= KEPT_MB,
  })
  process.stderr.write(`  ${JSON.stringify(rows.at(-1))}\n`)
}

/**
 * After collections until nothing more is given back. Connections to a provider stay open for some seconds in case of
 * another request, about 40 KB each.
 */
async function collected(server: WatchedServer): Promise<{ rss: number; heap: number }> {
  let least = Number.POSITIVE_INFINITY
  let memory = (await server.server.ask('collect')).memory
  for (let round = 0; round < SETTLE_ROUNDS; round += 1) {
    if (round >= SETTLE_LEAST && used(memory) > least - MEGABYTE) break
    least = Math.min(least, used(memory))
    await sleep(1000)
    memory = (await server.server.ask('collect')).memory
  }
  return { rss: memory.rss, heap: used(memory) }
}

function used({ heap, external }: MemoryReport): number {
  return heap + external
}

async function idleStreams(server: WatchedServer): Promise<string> {
  const { runId } = await start(server, 'hanging', 'hang')
  const { hostname, port } = new URL(server.url)
  const sockets: Socket[] = []
  for (let index = 0; index < STREAMS; index += 1) {
    const socket = connect(Number(port), hostname)
    socket.write(`GET /api/runs/${runId}/events HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    await once(socket, 'data')
    socket.on('error', () => {})
    sockets.push(socket.resume())
  }
  await sleep(2000)
  for (const socket of sockets) socket.destroy()
  await post(server, `/api/runs/${runId}/stop`, {})
  return `${sockets.length} open`
}

async function bigOutputs(server: WatchedServer): Promise<string> {
  const ended = []
  for (let index = 0; index < TOOL_RUNS; index += 1) ended.push(await run(server, `big-${index}`, 'tool'))
  return countOf(ended)
}

async function parallelRuns(server: WatchedServer): Promise<string> {
  for (let first = 0; first < RUNS; first += 20) {
    const sessions = Array.from({ length: 20 }, (_, index) => `parallel-${first + index}`)
    await Promise.all(sessions.map(session => start(server, session, 'hang')))
  }
  const most = await running(server)
  model.release()
  while ((await running(server)) > 0) await sleep(SAMPLE_MS)
  return `${most} at once`
}

async function longSession(server: WatchedServer): Promise<string> {
  await fill(server, ['long'], MESSAGES)
  const read = await readAdk(server, 'long')
  await run(server, 'long', 'short')
  const lint = await get(server, '/api/sessions/long/lint')
  return `${read.status}, ${Math.round(read.bytes / MEGABYTE)} MB, lint ${lint.status}`
}

async function manySessions(server: WatchedServer): Promise<string> {
  const sessions = Array.from({ length: SESSIONS }, (_, index) => `many-${index}`)
  await fill(server, sessions, SESSION_MESSAGES)
  let read = 0
  for (const session of sessions) {
    const { status } = await get(server, `/api/sessions/${session}/messages?limit=${SESSION_MESSAGES}`)
    if (status === 200) read += 1
  }
  return `${read} read`
}

async function fill({ folder }: WatchedServer, sessions: readonly string[], count: number): Promise<void> {
  const store = await openStore(`sqlite:${join(folder, 'lango.db')}?sync=normal`)
  const messages = Array.from({ length: count }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: `Message number ${index}: ${'some words '.repeat(20)}`,
    timestamp: index,
  }))
  for (const sessionId of sessions) {
    const key = { appName: 'lango', userId: 'user', sessionId }
    await store.createSession(key)
    await appendAll(store, key, messages)
  }
  await store.close()
}

async function start(server: WatchedServer, session: string, text: string): Promise<{ runId: string }> {
  const { text: answer } = await post(server, `/api/sessions/${session}/runs`, { text })
  return JSON.parse(answer) as { runId: string }
}

/** Starts a run and reads its events to the end. */
async function run(server: WatchedServer, session: string, text: string): Promise<boolean> {
  const { runId } = await start(server, session, text)
  return (await get(server, `/api/runs/${runId}/events`)).status === 200
}

async function running(server: WatchedServer): Promise<number> {
  const { text } = await get(server, '/metrics')
  return Number(/^lango_runs_running (\d+)/m.exec(text)?.[1] ?? Number.NaN)
}

function countOf(ended: readonly boolean[]): string {
  return `${ended.filter(Boolean).length} of ${ended.length} ended`
}

/** With a tool whose result has 10 MB. */
function configuration(provider: object): string {
  return `const text = 'some words '.repeat((10 * 1024 * 1024) / 11)
export default {
  store: 'sqlite:./lango.db',
  runs: { maxRunning: 2000 },
  agent: {
    model: 'local/model',
    tools: [{ name: 'big', description: 'Ten megabytes.', parameters: { type: 'object' }, execute: () => ({ text }) }],
  },
  providers: { local: ${JSON.stringify(provider)} },
  server: { streamsPerUser: ${2 * STREAMS}, runsPerUser: ${2 * RUNS} },
}`
}

function megabytes(bytes: number): number {
  return Math.round(bytes / MEGABYTE)
}

function printRows(): void {
  for (const { load, outcome, rss, heap, goalMb, met } of rows) {
    console.log(load)
    console.log(`  resident ${rss.join(' → ')} MB, heap ${heap.join(' → ')} MB (before → peak → after)`)
    console.log(`  ${outcome}; kept ≤ ${goalMb} MB: ${met ? 'met' : 'MISSED'}`)
  }
}
