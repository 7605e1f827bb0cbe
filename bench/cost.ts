/**
 * The processor time of a run in this checkout against that of another build, both packed and installed side by side,
 * measured in turns. The ratio to bare ADK in memory is reported as well.
 *
 *     npm run bench -- cost --base lango-0.1.0.tgz [--head lango.tgz] [--only text] [--json]
 *
 * A tarball is what `npm pack` writes in the checkout of a commit. Without `--head`, this checkout is packed.
 */
import { type ChildProcess, execFileSync, fork } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { startPostgres } from '../test/support/postgres-server.js'
import { Report } from './support/report.js'

const ROOT = resolve(import.meta.dirname, '..')
const SAMPLES = Number(process.env.LANGO_BENCH_SAMPLES ?? 7)
/** Of the other build's: every row, and the geometric mean of all rows. */
const MOST = 0.8
const MEAN = 0.6

interface CostRow {
  name: string
  store: 'memory' | 'sqlite' | 'postgres'
  effect: 'read' | 'once'
  isStreamed?: boolean
  /** Approvals and a budget are configured. */
  isBounded?: boolean
  atOnce: number
  turns: number
}

const ROWS: readonly CostRow[] = [
  { name: 'memory, read tool', store: 'memory', effect: 'read', atOnce: 1, turns: 1 },
  { name: 'memory, read tool, 20 turns', store: 'memory', effect: 'read', atOnce: 1, turns: 20 },
  { name: 'SQLite, read tool', store: 'sqlite', effect: 'read', atOnce: 1, turns: 1 },
  { name: 'SQLite, read tool, 20 turns', store: 'sqlite', effect: 'read', atOnce: 1, turns: 20 },
  { name: 'SQLite, read tool, 32 at once', store: 'sqlite', effect: 'read', atOnce: 32, turns: 1 },
  { name: 'SQLite, once tool', store: 'sqlite', effect: 'once', atOnce: 1, turns: 1 },
  { name: 'SQLite, once tool, 32 at once', store: 'sqlite', effect: 'once', atOnce: 32, turns: 1 },
  { name: 'SQLite, streamed', store: 'sqlite', effect: 'read', isStreamed: true, atOnce: 1, turns: 1 },
  {
    name: 'SQLite, approvals and budget',
    store: 'sqlite',
    effect: 'once',
    isBounded: true,
    atOnce: 1,
    turns: 1,
  },
  { name: 'PostgreSQL, read tool', store: 'postgres', effect: 'read', atOnce: 1, turns: 1 },
  { name: 'PostgreSQL, read tool, 20 turns', store: 'postgres', effect: 'read', atOnce: 1, turns: 20 },
  { name: 'PostgreSQL, once tool', store: 'postgres', effect: 'once', atOnce: 1, turns: 1 },
  { name: 'PostgreSQL, streamed', store: 'postgres', effect: 'read', isStreamed: true, atOnce: 1, turns: 1 },
]

const { values } = parseArgs({
  options: {
    base: { type: 'string' },
    head: { type: 'string' },
    only: { type: 'string' },
    json: { type: 'boolean' },
  },
})
if (values.base === undefined) {
  console.error('--base is missing: give the tarball that `npm pack` wrote in the checkout to compare with.')
  process.exit(1)
}

let stores = 0
const ratios: number[] = []
const folder = mkdtempSync(join(tmpdir(), 'lango-cost-'))
const report = new Report('cost')
const postgres = await startPostgres({ durable: true })
try {
  const base = installed('base', resolve(values.base))
  const head = installed('head', values.head === undefined ? packed() : resolve(values.head))
  for (const row of ROWS.filter(({ name }) => name.includes(values.only ?? '')))
    await measure(row, base, head)
} finally {
  await postgres.stop()
  rmSync(folder, { recursive: true, force: true })
}
const mean = Math.exp(ratios.reduce((all, ratio) => all + Math.log(ratio), 0) / ratios.length)
report.figure('all rows: geometric mean', '×', mean, MEAN)
report.finish()

function packed(): string {
  report.progress('packing this checkout …')
  const name = execFileSync('npm', ['pack', '--silent', '--pack-destination', folder], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  return join(folder, name.trim().split('\n').at(-1) ?? '')
}

/** The folder of a project that has the package. */
function installed(side: string, tarball: string): string {
  report.progress(`installing ${side} …`)
  const project = join(folder, side)
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: side, private: true, type: 'module' }))
  const options = ['--no-audit', '--no-fund', '--silent', '--legacy-peer-deps']
  execFileSync('npm', ['install', ...options, tarball, 'pg@8.23.1'], { cwd: project, stdio: 'inherit' })
  copyFileSync(join(ROOT, 'bench/support/cost-side.mjs'), join(project, 'side.mjs'))
  return project
}

async function measure(row: CostRow, base: string, head: string): Promise<void> {
  report.progress(`${row.name} …`)
  const sides = [await opened(row, base, 'base'), await opened(row, head, 'head')] as const
  const costs: [number[], number[]] = [[], []]
  const runs = 40 * Math.max(row.atOnce / 4, 1)
  // Warm: the code of both is compiled.
  for (const side of sides) await side.ask('measure', { ...row, runs: 400 })
  for (let sample = 0; sample < SAMPLES; sample += 1)
    for (const at of sample % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const))
      costs[at].push(Number(await sides[at].ask('measure', { ...row, runs })))
  const adk = Number(await sides[1].ask('measureAdk', { ...row, runs: 400 }))
  for (const side of sides) await side.close()
  report.atMost(`${row.name}: CPU of a run`, 'µs', median(costs[1]), median(costs[0]), MOST)
  ratios.push(median(costs[1]) / median(costs[0]))
  report.atMost(`${row.name}: against bare ADK in memory`, 'µs', median(costs[1]), adk)
}

async function opened({ store, effect, isStreamed, isBounded }: CostRow, project: string, name: string) {
  const child = fork(join(project, 'side.mjs'), {
    cwd: project,
    execArgv: [],
    stdio: ['ignore', 2, 2, 'ipc'],
  })
  const ask = asking(child)
  await ask('open', { store: await urlOf(store, project, name), effect, isStreamed, isBounded })
  return {
    ask,
    async close() {
      await ask('close')
      child.disconnect()
    },
  }
}

async function urlOf(store: CostRow['store'], project: string, name: string): Promise<string> {
  stores += 1
  if (store === 'memory') return 'memory:'
  if (store === 'sqlite') return `sqlite:${project}/store-${stores}.db`
  const database = `cost_${name}_${stores}`
  const client = new pg.Client(postgres.url)
  await client.connect()
  await client.query(`CREATE DATABASE ${database}`)
  await client.end()
  return Object.assign(new URL(postgres.url), { pathname: `/${database}` }).href
}

function asking(child: ChildProcess) {
  return (request: string, options?: object): Promise<unknown> =>
    new Promise((fulfil, reject) => {
      child.once('message', (answer: { result?: unknown; error?: string }) =>
        answer.error === undefined ? fulfil(answer.result) : reject(new TypeError(answer.error)),
      )
      child.send({ request, options })
    })
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}
