/**
 * What many runs cost at once: statements and commits of a turn, processor time against bare ADK in memory,
 * thousands of concurrent runs in one process, and a server with many clients against a bare ADK server that
 * stores nothing. At least three interleaved samples per side; the spread is printed.
 *
 *     npm run bench -- load [--json] [--only turn,cpu,crowd,server,bulk,growth]
 */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { type Event, InMemorySessionService, LogLevel, Runner, setLogLevel } from '@google/adk'
import { createRuntime, type Runtime } from '../src/runtime/runtime.js'
import type { SessionStore } from '../src/session/session-store.js'
import { checkedStore } from '../src/store/checked-store.js'
import { openStore } from '../src/store/open-store.js'
import { openPostgres } from '../src/store/postgres.js'
import { PostgresStore } from '../src/store/postgres-store.js'
import type { SqlDatabase } from '../src/store/sql-database.js'
import { openSqlStore, SqlStore } from '../src/store/sql-store.js'
import { openSqlite } from '../src/store/sqlite.js'
import { startPostgres } from '../test/support/postgres-server.js'
import { interleaved, median, SAMPLES, spread } from './support/interleaved.js'
import { measureServer } from './support/load-server.js'
import { oneToolAgent, QUESTION } from './support/one-tool-agent.js'
import { Report } from './support/report.js'

const CPU_RUNS = 500
/** Runs of each side before its processor time is measured: a side with more code is compiled later. */
const CPU_WARM_UP = Number(process.env.LANGO_BENCH_WARM_UP ?? 3000)
const CROWD = Number(process.env.LANGO_BENCH_CROWD ?? 3000)
const IMPORTED = Number(process.env.LANGO_BENCH_IMPORTED ?? 100_000)

setLogLevel(LogLevel.ERROR)

async function main(): Promise<void> {
  const report = new Report('load')
  const only = process.argv.includes('--only')
    ? (process.argv[process.argv.indexOf('--only') + 1] ?? '').split(',')
    : undefined
  const isWanted = (name: string) => only === undefined || only.includes(name)
  const folder = await mkdtemp(join(tmpdir(), 'lango-bench-'))
  const needsPostgres = ['turn', 'crowd', 'server'].some(isWanted)
  const postgres = needsPostgres ? await startPostgres({ durable: true }) : undefined
  const place = { folder, postgresUrl: postgres?.url ?? '' }
  try {
    if (isWanted('turn')) await measureTurn(report, place)
    if (isWanted('cpu')) await measureCpu(report)
    if (isWanted('crowd')) await measureCrowd(report, place)
    if (isWanted('server')) await measureServer(report, place)
    if (isWanted('bulk')) await measureBulk(report, place)
    if (isWanted('growth')) await measureGrowth(report, place)
  } finally {
    await postgres?.stop()
    await rm(folder, { recursive: true, force: true })
  }
  report.finish()
  process.exit()
}

interface Place {
  folder: string
  postgresUrl: string
}

/** A store whose writes are counted, beside what its database counts. */
async function countedStore(
  url: string,
): Promise<{ store: SessionStore; database: SqlDatabase; counts: Counts }> {
  const isFile = url.startsWith('sqlite:')
  const database = isFile
    ? await openSqlite({ path: url.slice('sqlite:'.length), sync: 'full' })
    : await openPostgres({
        connectionString: url,
        poolSize: 10,
        queryTimeoutMs: 60_000,
        shownUrl: 'postgres',
      })
  const counts = { writes: 0 }
  const write = database.write.bind(database)
  database.write = task => {
    counts.writes += 1
    return write(task)
  }
  return {
    store: checkedStore(await openSqlStore(database, isFile ? SqlStore : PostgresStore)),
    database,
    counts,
  }
}

interface Counts {
  writes: number
}

function answer(runtime: Runtime, sessionId: string): Promise<unknown> {
  return runtime.runAndCollect({ sessionId, text: QUESTION })
}

/**
 * What one turn with one tool asks of its database. PostgreSQL gets several statements in one round trip, which is what its
 * time depends on. SQLite gets them one by one. A tool with an effect costs a write more, which stores that it begins.
 */
async function measureTurn(report: Report, { folder, postgresUrl }: Place): Promise<void> {
  for (const [name, url, effect] of [
    ['SQLite', `sqlite:${folder}/turn.db`, 'read'],
    ['PostgreSQL', postgresUrl, 'read'],
    ['SQLite', `sqlite:${folder}/effect.db`, 'once'],
    ['PostgreSQL', postgresUrl, 'once'],
  ] as const) {
    const tool = effect === 'read' ? '' : ' with an effect'
    report.progress(`${name}, a turn with one tool${tool} …`)
    const { store, database } = await countedStore(url)
    const runtime = await createRuntime({
      store,
      rootAgent: oneToolAgent(),
      tools: { effects: { look: effect } },
    })
    for (let index = 0; index < 5; index++) await answer(runtime, 'warm')
    const before = { ...database.work }
    const turns = 20
    for (let index = 0; index < turns; index++) await answer(runtime, `measured ${effect}`)
    const queries = (database.work.statements - before.statements) / turns
    const commits = (database.work.commits - before.commits) / turns
    // SQLite's are not counted: each of its commits has one of both.
    const control = name === 'SQLite' ? 2 * commits : (database.work.control - before.control) / turns
    const trips = (database.work.trips - before.trips) / turns
    report.progress(`  ${queries} statements, ${control} BEGIN and COMMIT, ${trips} round trips`)
    const [work, most] = name === 'PostgreSQL' ? [trips, 5] : [queries + control, 30]
    const unit = name === 'PostgreSQL' ? 'round trips' : 'statements, BEGIN and COMMIT included,'
    report.atMost(`${name}, ${unit} of a turn${tool}`, '', work, effect === 'read' ? most : most * 1.2, 1)
    report.atMost(`${name}, commits of a turn${tool}`, '', commits, effect === 'read' ? 5 : 6, 1)
    await runtime.close()
    await store.close()
  }
}

/** Processor time of a run in memory against the same agent on bare ADK in memory. */
async function measureCpu(report: Report): Promise<void> {
  report.progress('processor time of a run in memory …')
  const agent = oneToolAgent()
  const runtime = await createRuntime({ store: 'memory:', rootAgent: agent, app: 'bench' })
  const sessionService = new InMemorySessionService()
  const ours = () => answer(runtime, randomUUID())
  const peer = () => bareTurn(agent, sessionService)
  report.progress(`  ${CPU_WARM_UP} runs of each side that are not measured`)
  for (let index = 0; index < CPU_WARM_UP; index++) {
    await ours()
    await peer()
  }
  const times = await interleaved(
    () => cpuOf(ours),
    () => cpuOf(peer),
  )
  report.atMost('processor time of a run', 'ms', times.ours, times.peer, 2)
  report.progress(spread(times))
  await runtime.close()
}

async function bareTurn(
  agent: ReturnType<typeof oneToolAgent>,
  sessionService: InMemorySessionService,
  sessionId: string = randomUUID(),
): Promise<Event[]> {
  const runner = new Runner({ appName: 'bench', agent, sessionService })
  await sessionService.getOrCreateSession({ appName: 'bench', userId: 'u', sessionId })
  const newMessage = { role: 'user', parts: [{ text: QUESTION }] }
  const events: Event[] = []
  for await (const event of runner.runAsync({ userId: 'u', sessionId, newMessage })) events.push(event)
  return events
}

async function cpuOf(run: () => Promise<unknown>): Promise<number> {
  for (let index = 0; index < 50; index++) await run()
  const before = process.cpuUsage()
  for (let index = 0; index < CPU_RUNS; index++) await run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000 / CPU_RUNS
}

/** Thousands of runs at once: all are answered, and the event loop stays free. */
async function measureCrowd(report: Report, { folder, postgresUrl }: Place): Promise<void> {
  for (const [name, url, count] of [
    ['SQLite', `sqlite:${folder}/crowd.db`, CROWD],
    ['PostgreSQL', `${postgresUrl}`, 1000],
  ] as const) {
    report.progress(`${name}, ${count} concurrent runs …`)
    const { store, database, counts } = await countedStore(url)
    const runtime = await createRuntime({ store, rootAgent: oneToolAgent() })
    await answer(runtime, 'warm')
    const delay = monitorEventLoopDelay({ resolution: 5 })
    delay.enable()
    const before = { ...database.work }
    const started = performance.now()
    const outcomes = await Promise.allSettled(
      Array.from({ length: count }, (_, index) => answer(runtime, `crowd-${index}`)),
    )
    const seconds = (performance.now() - started) / 1000
    delay.disable()
    const failed = outcomes.filter(({ status }) => status === 'rejected').length
    report.progress(
      `  ${(count / seconds).toFixed(0)} runs per second, ${counts.writes} writes, ${database.work.commits - before.commits} commits`,
    )
    report.atMost(`${name}, ${count} concurrent runs, not answered (+1)`, '', failed + 1, 1, 1)
    if (name === 'SQLite')
      report.atMost(`${name}, longest block of the event loop`, 'ms', delay.max / 1e6, 250, 1)
    await runtime.close()
    await store.close()
  }
  await measureGroups(report, folder)
}

/** Writes that are acknowledged by one fsync, with 100 runs at once. */
async function measureGroups(report: Report, folder: string): Promise<void> {
  const { store, database, counts } = await countedStore(`sqlite:${folder}/groups.db`)
  const runtime = await createRuntime({ store, rootAgent: oneToolAgent() })
  await answer(runtime, 'warm')
  const before = { writes: counts.writes, commits: database.work.commits }
  for (let round = 0; round < 5; round++)
    await Promise.all(Array.from({ length: 100 }, (_, index) => answer(runtime, `r${round}-${index}`)))
  const perCommit = (counts.writes - before.writes) / (database.work.commits - before.commits)
  report.atLeast('SQLite, 100 concurrent runs, writes per fsync (8 wanted)', '', 8, perCommit, 1)
  await runtime.close()
  await store.close()
}

/** An import against raw inserts, and what a large tool result takes on disk. */
async function measureBulk(report: Report, { folder }: Place): Promise<void> {
  report.progress(`import of ${IMPORTED} messages …`)
  const key = { appName: 'bench', userId: 'u', sessionId: 'imported' }
  const messages = Array.from({ length: IMPORTED }, (_, index) => ({
    role: index % 2 === 0 ? ('user' as const) : ('assistant' as const),
    content: `Message ${index}: ${'where is the key that I put away '.repeat(4)}`,
    timestamp: index,
    id: `e${index}`,
  }))
  const store = await openStore(`sqlite:${folder}/bulk.db`)
  await store.createSession(key)
  const started = performance.now()
  await store.appendMessages(key, messages)
  const ours = performance.now() - started
  await store.close()
  const raw = await rawInserts(`${folder}/raw.db`, messages)
  report.atMost(`import of ${IMPORTED} messages against raw inserts`, 'ms', ours, raw)
  await measureLargeResult(report, folder)
}

async function rawInserts(file: string, messages: readonly object[]): Promise<number> {
  const { DatabaseSync } = await import('@photostructure/sqlite')
  const database = new DatabaseSync(file)
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  database.exec('CREATE TABLE events (session TEXT, seq INTEGER, event TEXT, PRIMARY KEY (session, seq))')
  const insert = database.prepare('INSERT INTO events VALUES (?, ?, ?)')
  const started = performance.now()
  for (let start = 0; start < messages.length; start += 100) {
    database.exec('BEGIN')
    for (let index = start; index < Math.min(start + 100, messages.length); index++)
      insert.run('s', index, JSON.stringify(messages[index]))
    database.exec('COMMIT')
  }
  const taken = performance.now() - started
  database.close()
  return taken
}

async function measureLargeResult(report: Report, folder: string): Promise<void> {
  report.progress('a tool result of 10 MB …')
  const { ScriptedProvider } = await import('../src/testing/scripted-provider.js')
  const { defineTool } = await import('../src/tool.js')
  const { z } = await import('zod')
  const size = 10_000_000
  const text = Array.from({ length: size / 16 }, (_, index) => index.toString(36).padStart(16, 'x')).join('')
  const file = `${folder}/large.db`
  const runtime = await createRuntime({
    store: `sqlite:${file}`,
    providers: {
      play: new ScriptedProvider([{ toolCalls: [{ name: 'dump', id: 'c1' }] }, { text: 'Done.' }]),
    },
    agent: {
      name: 'agent',
      model: 'play/model',
      tools: [
        defineTool({
          name: 'dump',
          description: 'Returns a lot',
          parameters: z.object({}),
          effect: 'read',
          execute: () => text,
        }),
      ],
    },
    tools: { outputLimitTokens: 100_000_000 },
    history: { maxMessageTokenBudget: 100_000_000 },
  })
  await runtime.runAndCollect({ text: 'Dump it.' })
  await runtime.close()
  report.atMost('a result of 10 MB, stored', 'MB', (await stat(file)).size / 1e6, size / 1e6, 1.5)
}

/** The 200th turn with a tool against the first, beyond what ADK itself adds. */
async function measureGrowth(report: Report, { folder }: Place): Promise<void> {
  report.progress('the 200th turn of a session …')
  const runtime = await createRuntime({
    store: `sqlite:${folder}/growth.db?sync=normal`,
    rootAgent: oneToolAgent(),
    app: 'bench',
  })
  const sessionService = new InMemorySessionService()
  const agent = oneToolAgent()
  for (let index = 0; index < 30; index++) {
    await answer(runtime, 'warm')
    await bareTurn(agent, sessionService, 'warm')
  }
  const [ours, peer] = [new Growth(), new Growth()]
  for (let sample = 0; sample < SAMPLES; sample++) {
    const sessionId = randomUUID()
    for (let turn = 1; turn <= 200; turn++) {
      await ours.time(turn, () => answer(runtime, sessionId))
      await peer.time(turn, () => bareTurn(agent, sessionService, sessionId))
    }
  }
  const [oursFactor, peerFactor] = [ours.factor(), peer.factor()]
  report.progress(`  Lango ${oursFactor.toFixed(2)}×, ADK ${peerFactor.toFixed(2)}×`)
  report.atMost('the 200th turn against the first, beyond ADK', '×', oursFactor, peerFactor, 1.3)
  await runtime.close()
}

/** First and last turns of sessions: several of each, because one is noise. */
class Growth {
  readonly #first: number[] = []
  readonly #last: number[] = []

  async time(turn: number, run: () => Promise<unknown>): Promise<void> {
    const started = performance.now()
    await run()
    const taken = performance.now() - started
    if (turn <= 5) this.#first.push(taken)
    if (turn > 195) this.#last.push(taken)
  }

  factor(): number {
    return median(this.#last) / median(this.#first)
  }
}

// Last: the classes above must exist before they are used.
await main()
