/**
 * A fleet: 1 to 4 processes on one PostgreSQL with 10, 100 and 1,000 runs at once, on a model that answers at once and
 * on one that takes 200 ms, beside the same agent on bare ADK in memory and with ADK's database service on the same
 * server. Sides take turns; at least three samples; the processor time of database, generator and workers is accounted.
 *
 *     npm run bench -- fleet [--quick] [--json] [--plot] [--only grid,slots,growth,kill]
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { startPostgres } from '../test/support/postgres-server.js'
import { Member } from './support/fleet-members.js'
import { plotFleet } from './support/fleet-plot.js'
import { type Cell, type Load, measureWindow, type Side, type Window } from './support/fleet-window.js'
import { median, SAMPLES } from './support/interleaved.js'
import { Report } from './support/report.js'

const IS_QUICK = process.argv.includes('--quick')
const PROCESSES = IS_QUICK ? [1, 2] : [1, 2, 4]
const CONCURRENCY = IS_QUICK ? [10, 100] : [10, 100, 1000]
const DELAYS = [0, 200]
const SECONDS = IS_QUICK ? 1 : 2
const KILLS = IS_QUICK ? 2 : 5
const GROWTH_RUNS = IS_QUICK ? 200 : 1000
const CORES = availableParallelism()

const report = new Report('fleet')
const only = process.argv.includes('--only')
  ? process.argv[process.argv.indexOf('--only') + 1]?.split(',')
  : undefined
const isWanted = (part: string) => only?.includes(part) ?? true

async function main(): Promise<void> {
  installPeer()
  const server = await startPostgres({ durable: true })
  try {
    await queryAt(server.url, 'CREATE DATABASE lango')
    await queryAt(server.url, 'CREATE DATABASE adk')
    const place = {
      langoUrl: at(server.url, 'lango'),
      adkUrl: at(server.url, 'adk'),
      serverPid: server.pid(),
    }
    if (isWanted('grid')) await measureGrid(place)
    if (isWanted('slots')) await measureSlots(place)
    if (isWanted('growth')) await measureGrowth(place)
    if (isWanted('kill')) await measureKills(place)
  } finally {
    await server.stop()
  }
  report.finish()
  process.exit()
}

interface Place {
  langoUrl: string
  adkUrl: string
  serverPid: number
}

/** ADK's database service has packages of its own. */
function installPeer(): void {
  const folder = fileURLToPath(new URL('store', import.meta.url))
  if (existsSync(`${folder}/node_modules`)) return
  report.progress('installing the peers of bench/store (once) …')
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
    cwd: folder,
    stdio: ['ignore', 2, 2],
  })
  if (status !== 0) process.exit(1)
}

async function measureGrid(place: Place): Promise<void> {
  const most = Math.max(...PROCESSES)
  const members: Record<Side, Member[]> = {
    Lango: await startAll(most, 'support/fleet-lango.ts', [place.langoUrl]),
    'ADK, database service': await startAll(Math.min(2, most), 'store/fleet-adk.ts', [place.adkUrl]),
    'ADK in memory': await startAll(1, 'store/fleet-adk.ts', ['memory:']),
  }
  const cells: Cell[] = []
  for (const delayMs of DELAYS)
    for (const concurrency of CONCURRENCY)
      for (const processes of PROCESSES) {
        // With 1,000 runs at once the peer takes half a minute for each sample: one process is enough to compare.
        const isLong = concurrency > 100 && processes > 1
        const sides = (Object.keys(members) as Side[]).filter(
          side => processes <= members[side].length && (side === 'Lango' || !isLong),
        )
        cells.push(...(await measureCell(sides, members, { concurrency, delayMs, processes }, place)))
      }
  for (const all of Object.values(members)) for (const member of all) await member.close()
  judgeGrid(cells)
  if (process.argv.includes('--plot')) await plotFleet(cells)
}

async function startAll(count: number, file: string, args: readonly string[]): Promise<Member[]> {
  const members: Member[] = []
  for (let index = 0; index < count; index++) {
    const member = await Member.start(file, args)
    for (let turn = 0; turn < WARM_UP; turn++)
      await member.ask({ kind: 'run', sessionId: `warm-${index}-${turn}-${process.pid}`, delayMs: 0 })
    members.push(member)
  }
  return members
}

const WARM_UP = 30

async function measureCell(
  sides: readonly Side[],
  members: Record<Side, Member[]>,
  { processes, ...load }: { processes: number; concurrency: number; delayMs: number },
  { serverPid, langoUrl, adkUrl }: Place,
): Promise<Cell[]> {
  const windows = new Map<Side, Window[]>(sides.map(side => [side, []]))
  for (let sample = 0; sample < SAMPLES; sample++)
    for (const side of sides) {
      const seconds = load.concurrency > 100 ? SECONDS + 1 : SECONDS
      const url = side === 'Lango' ? langoUrl : adkUrl
      const timed: Load = { ...load, seconds }
      const window = await measureWindow(members[side].slice(0, processes), timed, {
        serverPid,
        connections: async () => (side === 'ADK in memory' ? 0 : connectionsOf(url)),
      })
      windows.get(side)?.push(window)
    }
  return sides.map(side => {
    const all = windows.get(side) ?? []
    const rates = all.map(({ perSecond }) => perSecond)
    const window = all.find(({ perSecond }) => perSecond === median(rates)) as Window
    const cell = { side, processes, ...load, window, rates }
    report.progress(described(cell))
    return cell
  })
}

function described({ side, processes, concurrency, delayMs, window, rates }: Cell): string {
  const { p50, p99, statements, connections, cores, idle } = window
  const used = Object.entries(cores).map(([part, value]) => `${part} ${value.toFixed(2)}`)
  return (
    `${side}, ${processes} × ${concurrency} runs, ${delayMs} ms: ${rates.map(rate => rate.toFixed(0)).join(', ')} /s, ` +
    `p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, ${statements.toFixed(1)} statements, ` +
    `${connections} connections, cores: ${used.join(', ')}, ${(idle * 100).toFixed(0)} % idle`
  )
}

function judgeGrid(cells: readonly Cell[]): void {
  const find = (side: Side, processes: number, concurrency: number, delayMs: number) =>
    cells.find(
      cell =>
        cell.side === side &&
        cell.processes === processes &&
        cell.concurrency === concurrency &&
        cell.delayMs === delayMs,
    )
  for (const delayMs of DELAYS)
    for (const concurrency of CONCURRENCY) {
      const what = `${concurrency} runs at once, ${delayMs} ms`
      const [ours, service, memory] = (['Lango', 'ADK, database service', 'ADK in memory'] as const).map(
        side => find(side, 1, concurrency, delayMs)?.window,
      )
      if (!ours || !service || !memory) continue
      // A model that takes its time limits both sides where few runs wait for it.
      const goal = delayMs === 0 ? 3 : undefined
      report.rate(
        `${what}: runs/s beside ADK's database service`,
        '/s',
        ours.perSecond,
        service.perSecond,
        goal,
      )
      report.rate(`${what}: runs/s beside ADK in memory`, '/s', ours.perSecond, memory.perSecond)
      report.atMost(`${what}: p99 beside ADK's database service`, 'ms', ours.p99, service.p99)
      report.atMost(
        `${what}: statements of a turn beside ADK's database service`,
        '',
        ours.statements,
        service.statements,
        0.5,
      )
      judgeSecond(what, find('Lango', 1, concurrency, delayMs), find('Lango', 2, concurrency, delayMs))
    }
}

/** A second process can add only what the first one lacked: where its core was busy and others were free. */
function judgeSecond(what: string, one: Cell | undefined, two: Cell | undefined): void {
  if (!one || !two) return
  const isEnough = one.window.cores.workers < 0.85 && one.window.idle > LEAST_IDLE
  const reason = isEnough ? 'one process is enough' : limitOf(two.window)
  const added = (two.window.perSecond / one.window.perSecond - 1) * 100
  reportAdded(`${what}: a second process adds`, added, reason)
}

/** What else than the workers limits a window. */
function limitOf({ cores: { database, generator }, idle }: Window): string | undefined {
  if (idle < LEAST_IDLE) return `all ${CORES} cores are busy`
  return generator > 0.85
    ? 'the generator is the limit'
    : database > CORES * 0.85
      ? 'the database is the limit'
      : undefined
}

const LEAST_IDLE = 0.1

function reportAdded(name: string, percent: number, reason: string | undefined): void {
  report.share(`${name}${reason ? ` (not judged: ${reason})` : ''}`, percent, reason ? undefined : 60)
}

/** Where each process executes a limited number of runs, a second one adds its own. */
async function measureSlots({ langoUrl, serverPid }: Place): Promise<void> {
  const members = await startAll(2, 'support/fleet-lango.ts', [langoUrl, '8'])
  const load: Load = { concurrency: 32, delayMs: 200, seconds: SECONDS + 1 }
  const around = { serverPid, connections: () => connectionsOf(langoUrl) }
  const rates: { one: number[]; two: number[] } = { one: [], two: [] }
  let last: Window | undefined
  for (let sample = 0; sample < SAMPLES; sample++) {
    rates.one.push((await measureWindow(members.slice(0, 1), load, around)).perSecond)
    const both = await measureWindow(members, load, around)
    rates.two.push(both.perSecond)
    last = both
    report.progress(described({ side: 'Lango', processes: 2, ...load, window: both, rates: rates.two }))
  }
  for (const member of members) await member.close()
  const added = (median(rates.two) / median(rates.one) - 1) * 100
  reportAdded('processes that execute 8 runs each, 200 ms: a second one adds', added, last && limitOf(last))
}

async function measureGrowth({ langoUrl, adkUrl }: Place): Promise<void> {
  const sizes: Record<string, number> = {}
  for (const [name, file, base] of [
    ['Lango', 'support/fleet-lango.ts', langoUrl],
    ['ADK', 'store/fleet-adk.ts', adkUrl],
  ] as const) {
    report.progress(`growth of the database, ${name} …`)
    const database = `growth_of_${name.toLowerCase()}`
    await queryAt(base, `CREATE DATABASE ${database}`)
    const url = at(base, database)
    const [member] = await startAll(1, file, [url])
    if (!member) continue
    await queryAt(url, 'VACUUM FULL')
    const before = await sizeOf(url)
    for (let done = 0; done < GROWTH_RUNS; done += 50)
      await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          member.ask({ kind: 'run', sessionId: `growth-${Math.floor(done / 250)}-${index}`, delayMs: 0 }),
        ),
      )
    const perThousand = async () => (((await sizeOf(url)) - before) * (1000 / GROWTH_RUNS)) / 1e6
    sizes[name] = await perThousand()
    if (name === 'Lango') {
      await member.ask({ kind: 'prune' })
      await queryAt(url, 'VACUUM FULL')
      report.figure('1,000 runs after pruning and VACUUM FULL', 'MB', await perThousand())
    }
    await member.close()
  }
  report.atMost("1,000 runs in the database, beside ADK's service", 'MB', sizes.Lango ?? 0, sizes.ADK ?? 0)
}

/** From the kill of a process to the next event of its run, which another process goes on with. */
async function measureKills({ langoUrl }: Place): Promise<void> {
  const times: number[] = []
  const [heir] = await startAll(1, 'support/fleet-lango.ts', [langoUrl])
  for (let kill = 0; kill < KILLS; kill++) {
    const [victim] = await startAll(1, 'support/fleet-lango.ts', [langoUrl])
    const sessionId = `killed-${Date.now()}`
    victim?.ask({ kind: 'run', sessionId, delayMs: 3000 }).catch(() => {})
    await until(langoUrl, 'run-start', sessionId)
    victim?.kill()
    const killedAt = performance.now()
    await until(langoUrl, 'run-resumed', sessionId)
    times.push(performance.now() - killedAt)
    report.progress(`  resumed ${times.at(-1)?.toFixed(0)} ms after the kill`)
  }
  await heir?.close()
  report.figure('from the kill of a process to its run being continued, median', 'ms', median(times), 15_000)
}

async function until(url: string, type: string, sessionId: string): Promise<void> {
  for (;;) {
    const rows = await queryAt(
      url,
      `SELECT 1 FROM lango_entries e JOIN lango_sessions s ON s.pk = e.session_pk WHERE s.session_id = $1 AND e.data LIKE $2`,
      [sessionId, `%"type":"${type}"%`],
    )
    if (rows.length > 0) return
    await new Promise(resume => setTimeout(resume, 20))
  }
}

async function sizeOf(url: string): Promise<number> {
  await queryAt(url, 'CHECKPOINT')
  const [row] = await queryAt(url, 'SELECT pg_database_size(current_database())::float8 AS size')
  return Number(row?.size)
}

async function connectionsOf(url: string): Promise<number> {
  const [row] = await queryAt(
    url,
    'SELECT numbackends - 1 AS count FROM pg_stat_database WHERE datname = current_database()',
  )
  return Number(row?.count)
}

async function queryAt(
  url: string,
  text: string,
  values: unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query(text, values)).rows
  } finally {
    await client.end()
  }
}

function at(url: string, database: string): string {
  return Object.assign(new URL(url), { pathname: `/${database}` }).href
}

await main()
