/**
 * How soon a client that follows a run learns that it is continued when its server was killed: one that is started again
 * on SQLite, and another one on PostgreSQL, for a process of the same machine and for one of another machine. Real
 * processes of `lango serve`, a real client, and a model that does not answer while the server lives.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'
import type { LangoClient } from '../../src/client/client.js'
import { createClient } from '../../src/client/create-client.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import type { ScriptStep } from '../../src/testing/strict/script.js'
import { startLango } from '../../test/cli/lango.js'
import { startPostgres } from '../../test/support/postgres-server.js'
import type { Report } from './report.js'

const KILLS = 5
/** What a client may wait for a server that is ready. */
const MOST_MS = 2000
/** A follower looks every two seconds whether the process is there; elsewhere the lease must end. */
const LOOK_MS = 2000
const LEASE_MS = 10_000

export async function measureServers(report: Report, folder: string): Promise<void> {
  report.progress('servers that are killed and started again on SQLite …')
  const again = await samples(report, async nth => {
    const place = await stage(join(folder, `again-${nth}`))
    return startedAgain(place)
  })
  report.figure('SQLite: a killed server is ready again → `run-resumed`, slowest', 'ms', again, MOST_MS)
  const postgres = await startPostgres()
  try {
    report.progress('one of two servers on PostgreSQL is killed …')
    for (const [machine, isForeign] of [
      ['this', false],
      ['another', true],
    ] as const) {
      const taken = await samples(report, async nth => {
        const place = await stage(join(folder, `${machine}-${nth}`), postgres.url)
        return takenOver(place, postgres.url, isForeign)
      })
      const name = `PostgreSQL: a process of ${machine} machine is killed → \`run-resumed\`, slowest`
      report.figure(name, 'ms', taken, isForeign ? LEASE_MS + MOST_MS : LOOK_MS + 1000)
    }
  } finally {
    await postgres.stop()
  }
}

/** The slowest of some. */
async function samples(report: Report, measure: (nth: number) => Promise<number>): Promise<number> {
  const times: number[] = []
  for (let nth = 0; nth < KILLS; nth++) times.push(await measure(nth))
  report.progress(`  ${times.map(ms => ms.toFixed(0)).join(', ')} ms`)
  return Math.max(...times)
}

interface Place {
  cwd: string
  asked(): number
  close(): Promise<void>
}

/** A folder with the configuration of servers whose model answers every request but the second of a run. */
async function stage(cwd: string, store = `sqlite:${join(cwd, 'lango.db')}`): Promise<Place> {
  const call: ScriptStep = { text: 'Let me see.', toolCalls: [{ name: 'current_time', args: {} }] }
  const steps = [call, new Promise<ScriptStep>(() => {})]
  const script = (_request: unknown, index: number) => steps[index] ?? { text: 'It is late.' }
  const model = await startStrictProvider({ profile: 'openai-chat', script })
  const play = { type: 'openai-compatible', baseUrl: model.baseUrl, apiKey: 'bench', profile: 'openai-chat' }
  const agent = { name: 'root', model: 'play/gpt-4.1', tools: ['current_time'] }
  await mkdir(cwd)
  await writeFile(join(cwd, 'lango.config.json'), JSON.stringify({ store, providers: { play }, agent }))
  return { cwd, asked: () => model.requests.length, close: () => model.close() }
}

async function startedAgain(place: Place): Promise<number> {
  const first = await startServer(place.cwd)
  const { resumed } = await inMidRun(place, first, first.client)
  await first.kill()
  const second = await startServer(place.cwd, first.port)
  const ready = performance.now()
  const taken = (await resumed) - ready
  await second.kill()
  await place.close()
  return taken
}

async function takenOver(place: Place, url: string, isForeign: boolean): Promise<number> {
  const [one, other] = [await startServer(place.cwd), await startServer(place.cwd)]
  const { resumed, runId } = await inMidRun(place, one, other.client)
  if (isForeign) await moveLease(url, runId)
  await one.kill()
  const killed = performance.now()
  const taken = (await resumed) - killed
  await other.kill()
  await place.close()
  return taken
}

/** The holder of the lease counts as a process of another machine: whether it is gone cannot be looked up. */
async function moveLease(url: string, runId: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const sql = `UPDATE lango_sessions SET holder = 'elsewhere ' || holder
    WHERE pk = (SELECT session_pk FROM lango_runs WHERE run_id = $1) AND fence <> 0`
  const { rowCount } = await client.query(sql, [runId])
  await client.end()
  if (rowCount !== 1) throw new RangeError(`${rowCount} leases belong to the run, not 1.`)
}

/** Starts a run; its model is asked for the second step. `resumed` is when the client read that it is continued; it has ended. */
async function inMidRun(
  { cwd, asked }: Place,
  server: Server,
  follower: LangoClient,
): Promise<{ runId: string; resumed: Promise<number> }> {
  const { runId } = await server.client.start(basename(cwd), { text: 'What time is it?' })
  const resumed = timeOf(follower, runId)
  while (asked() < 2) await new Promise(resolve => setTimeout(resolve, 10))
  return { runId, resumed }
}

async function timeOf(client: LangoClient, runId: string): Promise<number> {
  let resumedAt: number | undefined
  for await (const event of client.follow(runId))
    if (event.type === 'run-resumed') resumedAt ??= performance.now()
  if (resumedAt === undefined) throw new RangeError('The run ended and was not resumed.')
  return resumedAt
}

interface Server {
  client: LangoClient
  port: number
  kill(): Promise<void>
}

async function startServer(cwd: string, port = 0): Promise<Server> {
  const child = startLango(['serve', '--json', '--port', String(port)], { cwd })
  const ended = new Promise<void>(resolve => void child.once('close', () => resolve()))
  child.stderr?.resume()
  const lines = createInterface({ input: child.stdout ?? process.stdin })[Symbol.asyncIterator]()
  const line: string | undefined = (await lines.next()).value
  if (line === undefined) throw new RangeError('lango serve did not start.')
  const { url } = JSON.parse(line) as { url: string }
  const kill = () => {
    child.kill('SIGKILL')
    return ended
  }
  return { client: createClient({ baseUrl: url }), port: Number(new URL(url).port), kill }
}
