/**
 * How long a load keeps the event loop of a server busy. A real `lango serve` on SQLite and on PostgreSQL; the delay
 * of its loop is measured inside it, the latency of /api/health by another process, and the delay of a process that
 * does nothing (the control) shows what the machine itself adds. The goals are for the time in which the loop was held:
 * its delay without the time in which the process waited for a processor.
 *
 *     npm run bench -- stall [--json] [--only NAME] [--store sqlite|postgres] [--raised]
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { DatabaseSync } from '@photostructure/sqlite'
import { DEFAULT_LIMITS } from '../src/server/server-context.js'
import { startPostgres } from '../test/support/postgres-server.js'
import { type Answer, complete, get, post, readAdk, send, startLoadModel } from './support/load.js'
import { startWatchedServer, type WatchedServer } from './support/watched-server.js'

const MESSAGES = Number(process.env.LANGO_BENCH_MESSAGES ?? 100_000)
/** With `--raised`, limits are high enough for everything. */
const RAISED = process.argv.includes('--raised')
const LOCK_MS = 13_000
const IDLE_MS = 5000
/** What store work, and what any other work may hold the loop. */
const STORE_MS = 50
const OTHER_MS = 250

type StoreName = 'sqlite' | 'postgres'

interface Scene extends WatchedServer {
  store: StoreName
}

interface Load {
  name: string
  goalMs: number
  only?: StoreName
  /** Works on the session that the import has stored. */
  needsLong?: boolean
  /** Returns what happened, in a few words; `skipped` when this version has no such command. */
  run(scene: Scene): Promise<string>
}

interface Row {
  bench: 'stall'
  store: StoreName
  load: string
  outcome: string
  seconds: number
  /** Milliseconds. */
  healthP999: number
  healthMax: number
  loopP999: number
  loopMax: number
  /** By the clock, waits for a processor included. */
  loopClock: number
  controlMax: number
  goalMs: number
  met: boolean | null
}

const LOADS: readonly Load[] = [
  { name: 'idle', goalMs: STORE_MS, run: () => sleep(IDLE_MS, '') },
  { name: 'foreign lock, 13 s', goalMs: STORE_MS, only: 'sqlite', run: foreignLock },
  completionOf(20_000),
  completionOf(DEFAULT_LIMITS.maxMessages),
  stateOf(200_000),
  stateOf(DEFAULT_LIMITS.maxStateKeys),
  { name: 'model answer, 40 MB', goalMs: OTHER_MS, run: longAnswer },
  { name: `import, ${MESSAGES} messages`, goalMs: STORE_MS, run: importLong },
  { name: `export, ${MESSAGES} messages`, needsLong: true, goalMs: STORE_MS, run: exportLong },
  {
    name: 'read as ADK events',
    needsLong: true,
    goalMs: OTHER_MS,
    run: scene => expectStatus(readAdk(scene, 'long'), 200),
  },
  {
    name: 'session detail',
    needsLong: true,
    goalMs: STORE_MS,
    run: scene => expectStatus(get(scene, '/api/sessions/long'), 200),
  },
  {
    name: 'lint',
    needsLong: true,
    goalMs: OTHER_MS,
    run: scene => expectStatus(get(scene, '/api/sessions/long/lint'), 200),
  },
  { name: 'search', needsLong: true, goalMs: STORE_MS, run: searchSessions },
  {
    name: 'fork',
    needsLong: true,
    goalMs: STORE_MS,
    run: scene => expectStatus(post(scene, '/api/sessions/long/fork', { sessionId: 'copy' }), 201),
  },
  {
    name: 'delete',
    goalMs: STORE_MS,
    run: scene => expectStatus(send(scene, 'DELETE', '/api/sessions/copy'), 204),
  },
  {
    name: 'backup',
    needsLong: true,
    goalMs: STORE_MS,
    run: scene => command(scene, ['backup', join(scene.folder, 'backup.db')]),
  },
  {
    name: 'erase',
    needsLong: true,
    goalMs: STORE_MS,
    run: scene => command(scene, ['erase', '--user', 'user', '--yes']),
  },
]

const only = optionOf('--only')
const onlyStore = optionOf('--store')
const rows: Row[] = []
const model = await startLoadModel()
for (const store of ['sqlite', 'postgres'] as const) {
  if (onlyStore === undefined || onlyStore === store) await measureStore(store)
}
model.close()
if (process.argv.includes('--json')) console.log(JSON.stringify(rows, null, 2))
else printRows()
process.exit(rows.some(row => row.met === false) ? 1 : 0)

function optionOf(name: string): string | undefined {
  const at = process.argv.indexOf(name)
  return at < 0 ? undefined : process.argv[at + 1]
}

async function measureStore(store: StoreName): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'lango-bench-'))
  const postgres = store === 'postgres' ? await startPostgres({ durable: true }) : undefined
  try {
    const scene = await startScene(store, folder, postgres?.url)
    try {
      for (const load of LOADS) {
        const isWanted = only === undefined || load.name === 'idle' || load.name.includes(only)
        if (isWanted && (load.only ?? store) === store) await measure(scene, load)
      }
    } finally {
      await scene.stop()
    }
  } finally {
    await postgres?.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

async function startScene(store: StoreName, folder: string, url: string | undefined): Promise<Scene> {
  const server = await startWatchedServer(folder, {
    store: url ?? 'sqlite:./lango.db',
    agent: { model: 'local/model' },
    providers: { local: model.provider },
    server: { streamsPerUser: 2000, runsPerUser: 2000, ...raisedLimits() },
  })
  const scene = { ...server, store }
  // Compiled code and lazy parts are loaded by a run of each kind, so that they are not measured.
  for (const text of ['warm-up', 'again']) await complete(scene, [{ role: 'user', content: text }])
  await post(scene, '/api/sessions', { sessionId: 'warm' })
  await readAdk(scene, 'warm')
  return scene
}

/** What is refused by default can be measured as well. */
function raisedLimits(): object {
  return RAISED ? { maxMessages: 20_000, maxStateKeys: 200_000, maxValues: 300_000 } : {}
}

async function measure(scene: Scene, load: Load): Promise<void> {
  process.stderr.write(`${scene.store}: ${load.name} …\n`)
  const watched = [scene.server, scene.client, scene.control]
  await prepare(scene, load)
  await Promise.all(watched.map(one => one.ask('reset')))
  const writer = startWriter(scene)
  const started = performance.now()
  const outcome = await load.run(scene)
  const seconds = (performance.now() - started) / 1000
  const written = await writer.stop()
  // The delay of a stall is recorded after it.
  await sleep(100)
  const [server, client, control] = await Promise.all(watched.map(one => one.ask('read')))
  if (!server || !client || !control) return
  const met = outcome === 'skipped' ? null : server.max <= load.goalMs
  rows.push({
    bench: 'stall',
    store: scene.store,
    load: load.name,
    outcome: [outcome, written].filter(Boolean).join(', '),
    seconds: round(seconds),
    healthP999: round(client.health.p999),
    healthMax: round(client.health.max),
    loopP999: round(server.p999),
    loopMax: round(server.max),
    loopClock: round(server.clock),
    controlMax: round(control.clock),
    goalMs: load.goalMs,
    met,
  })
  const { loopMax, loopClock, controlMax, healthMax } = rows.at(-1) ?? {}
  process.stderr.write(
    `  ${JSON.stringify({ outcome, seconds: round(seconds), healthMax, loopMax, loopClock, controlMax })}\n`,
  )
}

/** With `--only`, a load that needs the long session finds it imported. */
async function prepare(scene: Scene, load: Load): Promise<void> {
  if (only !== undefined && load.needsLong) await importLong(scene)
}

/** A client that writes to the store every 100 ms: it shows what a load does to the writes of others. */
function startWriter(scene: Scene): { stop(): Promise<string> } {
  let isOver = false
  let refused = 0
  const work = (async () => {
    while (!isOver) {
      const { status } = await post(scene, '/api/sessions', {})
      if (status !== 201) refused += 1
      await sleep(100)
    }
  })()
  return {
    stop: async () => {
      isOver = true
      await work
      return refused === 0 ? '' : `${refused} writes refused`
    },
  }
}

async function foreignLock({ folder }: Scene): Promise<string> {
  const database = new DatabaseSync(join(folder, 'lango.db'))
  database.exec('BEGIN IMMEDIATE')
  await sleep(LOCK_MS)
  database.exec('COMMIT')
  database.close()
  return ''
}

/** A completion with so many messages; more than the default limit are refused, unless limits are raised. */
function completionOf(count: number): Load {
  const run = async (scene: Scene) => {
    const messages = Array.from({ length: count - 1 }, (_, index) => ({
      role: index % 2 === 0 ? 'assistant' : 'user',
      content: `Message number ${index}, with some words in it.`,
    }))
    const isRefused = !RAISED && count > DEFAULT_LIMITS.maxMessages
    return expectStatus(
      complete(scene, [...messages, { role: 'user', content: 'short' }]),
      isRefused ? 413 : 200,
    )
  }
  return { name: `chat completion, ${count} messages`, goalMs: OTHER_MS, run }
}

/** A new session with so many state keys. */
function stateOf(count: number): Load {
  const run = async (scene: Scene) => {
    const state = Object.fromEntries(Array.from({ length: count }, (_, index) => [`key-${index}`, index]))
    const isRefused = !RAISED && count > DEFAULT_LIMITS.maxStateKeys
    const created = post(scene, '/apps/lango/users/user/sessions', { sessionId: `wide-${count}`, state })
    return expectStatus(created, isRefused ? 413 : 200)
  }
  return { name: `session with ${count} state keys`, goalMs: OTHER_MS, run }
}

async function longAnswer(scene: Scene): Promise<string> {
  return expectStatus(complete(scene, [{ role: 'user', content: 'long' }]), 200)
}

async function importLong({ folder, lango }: Scene): Promise<string> {
  const file = join(folder, 'long.jsonl')
  const key = { appName: 'lango', userId: 'user', sessionId: 'long' }
  const header = { lango: 'session', version: 1, key, state: {}, createdAt: 1, messages: MESSAGES }
  const lines = Array.from({ length: MESSAGES }, (_, index) =>
    JSON.stringify({
      role: index % 2 === 0 ? 'user' : 'assistant',
      author: index % 2 === 0 ? 'user' : 'agent',
      content: `Message number ${index}: ${'some words '.repeat(20)}`,
      id: `event-${index}`,
      timestamp: index,
    }),
  )
  await writeFile(file, `${[JSON.stringify(header), ...lines].join('\n')}\n`)
  const { code, errors } = await lango(['sessions', 'import', file])
  return code === 0 ? '' : `exit ${code}: ${errors.slice(0, 200)}`
}

async function exportLong({ folder, lango }: Scene): Promise<string> {
  const { code, errors } = await lango(['sessions', 'export', 'long', '-o', join(folder, 'out.jsonl')])
  return code === 0 ? '' : `exit ${code}: ${errors.slice(0, 200)}`
}

async function searchSessions(scene: Scene): Promise<string> {
  return expectStatus(get(scene, '/api/sessions?search=long&limit=100'), 200)
}

/** A command of the terminal that a release may not have yet. */
async function command({ lango }: Scene, args: readonly string[]): Promise<string> {
  const help = await lango(['--help'])
  if (!new RegExp(`^\\s+${args[0]}\\b`, 'm').test(help.output)) return 'skipped'
  const { code, errors } = await lango(args)
  return code === 0 ? '' : `exit ${code}: ${errors.slice(0, 200)}`
}

async function expectStatus(answer: Promise<Answer>, wanted: number): Promise<string> {
  const { status, bytes, text } = await answer
  return status === wanted ? `${status}, ${(bytes / 1e6).toFixed(1)} MB` : `${status}: ${text.slice(0, 300)}`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

function printRows(): void {
  const header = [
    'store',
    'load',
    's',
    'health p99.9',
    'max',
    'loop p99.9',
    'max',
    'clock',
    'control',
    'goal',
    '',
    '',
  ]
  const cells = rows.map(row => [
    row.store,
    row.load,
    String(row.seconds),
    ...[row.healthP999, row.healthMax, row.loopP999, row.loopMax, row.loopClock, row.controlMax].map(String),
    `≤ ${row.goalMs} ms`,
    row.met === null ? '' : row.met ? 'met' : 'MISSED',
    row.outcome,
  ])
  const widths = header.map((title, at) => Math.max(title.length, ...cells.map(row => row[at]?.length ?? 0)))
  for (const line of [header, ...cells])
    console.log(
      line
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
    )
}
