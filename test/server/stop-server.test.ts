// SIGTERM with ten runs in flight that cannot end: the process exits in time, and the next server ends the runs.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createClient } from '../../src/client/create-client.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import type { Fault, ScriptStep } from '../../src/testing/strict/script.js'
import { startLango } from '../cli/lango.js'
import { eventually } from '../support/eventually.js'
import { createStoreDatabase } from '../support/postgres.js'
import { startTcpProxy } from '../support/tcp-proxy.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { longUnless, PROOF } from '../support/tiers.js'

// Starting processes takes long on a busy machine.
vi.setConfig({ testTimeout: 240_000 })

const RUNS = 10
/** Stopping has 8 s by default; the rest is for a machine that is busy with other tests. */
const LIMIT_MS = 15_000

interface Situation {
  fault?: Fault
  step?: ScriptStep
  usesPostgres?: true
  /** Times for stopping in place of the defaults. */
  times?: { graceMs: number; closeMs: number }
  /** In `npm test`. */
  isShort?: true
}

const SITUATIONS: Readonly<Record<string, Situation>> = {
  'a model that does not answer': { fault: { kind: 'hang' } },
  'a tool that ignores its signal': { step: { toolCalls: [{ name: 'deaf' }] } },
  'a tool that ignores its signal, and little time to stop': {
    step: { toolCalls: [{ name: 'deaf' }] },
    times: { graceMs: 100, closeMs: 2500 },
    isShort: true,
  },
  'a model that is rate limited': { fault: { kind: '429', retryAfter: 60 } },
  'a database that is gone': { fault: { kind: 'hang' }, usesPostgres: true },
}

/** The tool notes that it has begun, keeps a timer, and never ends. */
const DEAF_TOOL = `{
  name: 'deaf', description: 'Does not end.', parameters: { type: 'object' }, effect: 'once',
  execute: () => {
    appendFileSync('begun.txt', '.')
    return new Promise(() => setInterval(() => {}, 1000))
  },
}`

async function startModel({ fault, step }: Situation) {
  const model = await startStrictProvider({
    profile: 'openai-chat',
    script: () => step ?? { text: 'All is done.' },
    ...(fault ? { faults: [fault] } : {}),
  })
  onTestFinished(() => model.close())
  return model
}

async function configure(
  cwd: string,
  store: string,
  baseUrl: string,
  times: Situation['times'] | undefined,
): Promise<void> {
  const play = { type: 'openai-compatible', baseUrl, apiKey: 'test', profile: 'openai-chat' }
  const config = {
    store,
    providers: { play },
    server: { runsPerUser: RUNS, ...times },
    log: { level: 'info' },
  }
  const source = `import { appendFileSync } from 'node:fs'
export default { ...${JSON.stringify(config)}, agent: { name: 'root', model: 'play/gpt-4.1', tools: [${DEAF_TOOL}] } }`
  await writeFile(join(cwd, 'lango.config.mjs'), source)
}

async function startServe(cwd: string) {
  const child = startLango(['serve', '--json', '--port', '0'], { cwd })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = new Promise<number | null>(resolve => child.once('close', resolve))
  let log = ''
  child.stderr?.on('data', chunk => {
    log += chunk
  })
  const lines = createInterface({ input: child.stdout ?? process.stdin })[Symbol.asyncIterator]()
  const line: string | undefined = (await lines.next()).value
  if (line === undefined) throw new Error(`lango serve did not start: ${log}`)
  const { url } = JSON.parse(line) as { url: string }
  const stop = async () => {
    const began = performance.now()
    child.kill('SIGTERM')
    return { code: await ended, ms: performance.now() - began, log }
  }
  return { client: createClient({ baseUrl: url }), stop }
}

async function stage(situation: Situation) {
  const cwd = await temporaryFolder()
  const database = situation.usesPostgres ? await createStoreDatabase() : undefined
  if (database) onTestFinished(() => database.drop())
  const store = database?.url ?? `sqlite:${join(cwd, 'lango.db')}`
  const proxy = database ? await startTcpProxy(Number(new URL(store).port)) : undefined
  if (proxy) onTestFinished(() => proxy.close())
  const model = await startModel(situation)
  const proxied = proxy ? Object.assign(new URL(store), { port: String(proxy.port) }).href : store
  await configure(cwd, proxied, model.baseUrl, situation.times)
  const begun = async () => (await readFile(join(cwd, 'begun.txt'), 'utf8').catch(() => '')).length
  const isInFlight = async () => {
    if (situation.step) return (await begun()) === RUNS
    // Under a rate limit, one refused request makes the others wait.
    return model.requests.length >= (situation.fault?.kind === '429' ? 1 : RUNS)
  }
  const cut = () => {
    proxy?.silence()
    proxy?.leadTo(1)
  }
  return { cwd, store, isInFlight, cut }
}

async function expectStopped(name: string, situation: Situation): Promise<void> {
  const { cwd, store, isInFlight, cut } = await stage(situation)
  const first = await startServe(cwd)
  const runs = await Promise.all(
    Array.from({ length: RUNS }, (_, index) => first.client.start(`${cwd} ${index}`, { text: 'Go.' })),
  )
  await eventually(isInFlight).toBe(true)
  cut()
  const { code, ms, log } = await first.stop()
  console.info(`${name}: exit after ${Math.round(ms)} ms`)
  expect({ code, isInTime: ms < LIMIT_MS }, `${ms} ms\n${log}`).toEqual({ code: 0, isInTime: true })
  expect(log.trimEnd().split('\n').at(-1)).toContain('Server stopped')

  await configure(cwd, store, (await startModel({})).baseUrl, situation.times)
  const second = await startServe(cwd)
  for (const { runId } of runs) {
    const events = []
    for await (const event of second.client.follow(runId)) events.push(event)
    expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop', text: 'All is done.' })
    expect(events.filter(({ type }) => type === 'run-finish')).toHaveLength(1)
  }
}

for (const [name, situation] of Object.entries(SITUATIONS)) {
  const title = `SIGTERM during ten runs with ${name}: the server exits in time, and the next one ends the runs`
  test(title, longUnless(situation.isShort === true), () => expectStopped(name, situation))
}

/** How often a server is stopped in each situation in `npm run proof`. */
const STOPS = 5

for (const [name, situation] of Object.entries(SITUATIONS))
  for (let stop = 1; stop <= STOPS; stop += 1)
    test(
      `stop ${stop} of ${STOPS} by SIGTERM during ten runs with ${name} is in time, and the next server ends the runs`,
      PROOF,
      () => expectStopped(name, situation),
    )
