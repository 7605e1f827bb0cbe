/**
 * Measures the start of a command against the least that a Node program can take (`node -e 0`), and the opening of a store
 * in memory. The built package is measured, because that is what people run. Samples take turns, so that a
 * busy moment hits all.
 *
 *     npm run bench -- cold-start [--json]
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openStore } from '../src/store/open-store.js'
import { Report, summarize } from './support/report.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const MAIN = join(ROOT, 'dist/cli/main.js')
const SAMPLES = Number(process.env.LANGO_BENCH_SAMPLES ?? 31)
const YARDSTICK = 'node -e 0'
const MEMORY_MS = 3

const report = new Report('cold-start')
const folder = await mkdtemp(join(tmpdir(), 'lango-bench-'))
try {
  buildIfStale()
  const plain = await prepare('plain')
  const json = await prepare('json')
  await writeFile(join(json, 'lango.config.json'), JSON.stringify({ store: 'sqlite:./lango.db' }))
  const programs: Program[] = [
    { name: YARDSTICK, args: ['-e', '0'], cwd: plain },
    { name: 'lango --version', args: [MAIN, '--version'], cwd: plain, limit: 2 },
    { name: 'lango --help', args: [MAIN, '--help'], cwd: plain, limit: 2 },
    { name: 'lango sessions list', args: [MAIN, 'sessions', 'list'], cwd: plain, limit: 4 },
    {
      name: 'lango sessions list, JSON configuration',
      args: [MAIN, 'sessions', 'list'],
      cwd: json,
      limit: 4,
    },
  ]
  measure(programs)
  await measureMemory()
} finally {
  await rm(folder, { recursive: true, force: true })
}
report.finish()

interface Program {
  name: string
  args: string[]
  cwd: string
  limit?: number
}

function measure(programs: readonly Program[]): void {
  const samples = new Map(programs.map(({ name }) => [name, [] as number[]]))
  for (let round = 0; round <= SAMPLES; round += 1) {
    if (round % 10 === 0) report.progress(`round ${round} of ${SAMPLES} …`)
    for (const program of programs) {
      const taken = start(program)
      // The first round finds cold disks.
      if (round > 0) samples.get(program.name)?.push(taken)
    }
  }
  const median = (name: string) => summarize(samples.get(name) ?? []).median
  for (const { name, limit } of programs) {
    if (limit !== undefined) report.atMost(name, 'ms', median(name), median(YARDSTICK), limit)
  }
}

/** Opening creates the tables. The driver is loaded before. */
async function measureMemory(): Promise<void> {
  const { openStore: openBuilt } = (await import(join(ROOT, 'dist/entries/store.js'))) as {
    openStore: typeof openStore
  }
  const samples: number[] = []
  for (let round = 0; round <= SAMPLES; round += 1) {
    const startedAt = performance.now()
    const store = await openBuilt('memory:')
    if (round > 0) samples.push(performance.now() - startedAt)
    await store.close()
  }
  report.atMost('a store in memory opens', 'ms', summarize(samples).median, MEMORY_MS, 1)
}

function start({ name, args, cwd }: Program): number {
  const startedAt = performance.now()
  const { status, stderr } = spawnSync(process.execPath, args, { cwd, env: quietEnvironment() })
  const taken = performance.now() - startedAt
  if (status !== 0) {
    report.progress(`${name} failed: ${stderr.toString()}`)
    process.exit(1)
  }
  return taken
}

/** What the shell has set must not decide what is loaded. */
function quietEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: process.env.HOME }
}

/** A folder with a store of a few sessions. */
async function prepare(name: string): Promise<string> {
  const place = join(folder, name)
  const store = await openStore(`sqlite:${join(place, 'lango.db')}`)
  for (let index = 0; index < 20; index += 1) {
    const key = { appName: 'lango', userId: 'user', sessionId: `session-${index}` }
    await store.createSession(key)
    await store.appendMessage(key, { role: 'user', content: 'hello', timestamp: index })
  }
  await store.close()
  return place
}

/** Old code would be measured otherwise. */
function buildIfStale(): void {
  const newest = Math.max(
    ...readdirSync(join(ROOT, 'src'), { recursive: true }).map(
      file => statSync(join(ROOT, 'src', String(file))).mtimeMs,
    ),
  )
  if (existsSync(MAIN) && statSync(MAIN).mtimeMs > newest) return
  report.progress('building dist/ …')
  spawnSync(process.execPath, [join(ROOT, 'scripts/build.mjs')], { cwd: ROOT, stdio: ['ignore', 2, 2] })
}
