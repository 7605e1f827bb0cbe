// Real processes of `lango serve` that are killed or stopped in the middle of a run: the run continues and ends once.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { LangoClient } from '../../src/client/client.js'
import { createClient } from '../../src/client/create-client.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import type { ScriptStep } from '../../src/testing/strict/script.js'
import { startLango } from '../cli/lango.js'
import { gapsIn } from '../support/event-numbers.js'
import { eventually } from '../support/eventually.js'
import { expireLeases } from '../support/expire-leases.js'
import { createStoreDatabase } from '../support/postgres.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { LONG, longUnless } from '../support/tiers.js'

// Starting processes takes long on a busy machine.
vi.setConfig({ testTimeout: 240_000 })

const CALL: ScriptStep = { text: 'Let me see.', toolCalls: [{ name: 'current_time', args: {} }] }
const LATE: ScriptStep = { text: 'This comes late.' }
const DONE: ScriptStep = { text: 'It is late.' }

/** A model that calls a tool, holds its second answer until it is released, and then answers at once. */
async function startModel() {
  let release = (_step: ScriptStep) => {}
  const held = new Promise<ScriptStep>(resolve => {
    release = resolve
  })
  const steps = [CALL, held]
  const script = (_request: unknown, index: number) => steps[index] ?? DONE
  const model = await startStrictProvider({ profile: 'openai-chat', script })
  onTestFinished(() => model.close())
  return { ...model, release: () => release(LATE), asked: () => model.requests.length }
}

type Model = Awaited<ReturnType<typeof startModel>>

type StoreName = 'SQLite' | 'PostgreSQL'

/** The address of a new store in a folder or a database, and a way to let its leases expire at once. */
async function newStore(name: StoreName, folder: string) {
  if (name === 'SQLite') {
    const url = `sqlite:${join(folder, 'lango.db')}`
    return { url, expire: async () => expireLeases(url) }
  }
  const database = await createStoreDatabase()
  onTestFinished(() => database.drop())
  return { url: database.url, expire: () => database.query('UPDATE lango_sessions SET lease_until = 0') }
}

/** A folder with the configuration of servers on one store and one model. */
async function stage(name: StoreName) {
  const model = await startModel()
  const cwd = await temporaryFolder()
  const { url, expire } = await newStore(name, cwd)
  const play = { type: 'openai-compatible', baseUrl: model.baseUrl, apiKey: 'test', profile: 'openai-chat' }
  const agent = { name: 'root', model: 'play/gpt-4.1', tools: ['current_time'] }
  const config = { store: url, providers: { play }, agent }
  await writeFile(join(cwd, 'lango.config.json'), JSON.stringify(config))
  return { model, expire, start: (port = 0) => startServe(cwd, port) }
}

interface Served {
  client: LangoClient
  port: number
  signal(name: NodeJS.Signals): void
  kill(): Promise<void>
}

async function startServe(cwd: string, port: number): Promise<Served> {
  const child = startLango(['serve', '--json', '--port', String(port)], { cwd })
  const ended = new Promise<void>(resolve => void child.once('close', () => resolve()))
  const kill = () => {
    child.kill('SIGKILL')
    return ended
  }
  onTestFinished(kill)
  let log = ''
  child.stderr?.on('data', chunk => {
    log += chunk
  })
  const lines = createInterface({ input: child.stdout ?? process.stdin })[Symbol.asyncIterator]()
  const line: string | undefined = (await lines.next()).value
  if (line === undefined) throw new Error(`lango serve did not start: ${log}`)
  const { url } = JSON.parse(line) as { url: string }
  const client = createClient({ baseUrl: url })
  return { client, port: Number(new URL(url).port), signal: name => void child.kill(name), kill }
}

async function collect(client: LangoClient, runId: string): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of client.follow(runId)) events.push(event)
  return events
}

/** Starts a run and resolves when its model is asked for the second step: the first one and its tool call are stored. */
async function inMidRun({ client }: Served, model: Model, sessionId: string): Promise<string> {
  const { runId } = await client.start(sessionId, { text: 'What time is it?' })
  await eventually(model.asked).toBe(2)
  return runId
}

function expectOneEnd(events: readonly RunEvent[]): void {
  expect(gapsIn(events)).toEqual([])
  expect(events.filter(({ type }) => type === 'run-finish')).toHaveLength(1)
  expect(events.filter(({ type }) => type === 'tool-call')).toHaveLength(1)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
}

/** What the session has as text, in order. */
async function textsOf({ client }: Served, sessionId: string): Promise<string[]> {
  const { messages } = await client.messages(sessionId)
  return messages.flatMap(({ parts }) => parts.flatMap(part => (part.type === 'text' ? part.text : [])))
}

test('a server that is killed and started again continues the run, and a client that follows it sees that', async () => {
  const { model, start } = await stage('SQLite')
  const first = await start()
  const runId = await inMidRun(first, model, 's1')
  const followed = collect(first.client, runId)
  await first.kill()
  const second = await start(first.port)
  const events = await followed
  expectOneEnd(events)
  expect(events.find(({ type }) => type === 'run-resumed')).toMatchObject({ attempt: 2, replayedSteps: 1 })
  expect(await textsOf(second, 's1')).toEqual(['What time is it?', CALL.text, DONE.text])
  expect(model.asked()).toBe(3)
})

test(
  'of two servers on PostgreSQL, the one that is left continues the run of the one that was killed',
  LONG,
  async () => {
    const { model, start } = await stage('PostgreSQL')
    const [one, other] = [await start(), await start()]
    const runId = await inMidRun(one, model, 'killed')
    const followed = collect(other.client, runId)
    await one.kill()
    const events = await followed
    expectOneEnd(events)
    expect(events.find(({ type }) => type === 'run-resumed')).toMatchObject({ attempt: 2, replayedSteps: 1 })
    expect(model.asked()).toBe(3)
  },
)

const STORES: readonly StoreName[] = ['SQLite', 'PostgreSQL']

for (const name of STORES) {
  const title = `a server on ${name} that is stopped for longer than its lease writes nothing more to a run that another one has continued`
  test(title, longUnless(name === 'SQLite'), async () => {
    const { model, start, expire } = await stage(name)
    const [one, other] = [await start(), await start()]
    const runId = await inMidRun(one, model, 'stopped')
    one.signal('SIGSTOP')
    await expire()
    const events = await collect(other.client, runId)
    expectOneEnd(events)
    const texts = await textsOf(other, 'stopped')
    model.release()
    one.signal('SIGCONT')
    const next = await one.client.start('stopped', { text: 'And now?' })
    expect((await collect(one.client, next.runId)).at(-1)).toMatchObject({ finishReason: 'stop' })
    expect(await collect(other.client, runId)).toEqual(events)
    expect(await textsOf(other, 'stopped')).toEqual([...texts, 'And now?', DONE.text])
  })
}

test.each(STORES)(
  'a laptop on %s that is closed in mid-run and opened when the lease has long expired ends the run normally',
  LONG,
  async name => {
    const { model, start, expire } = await stage(name)
    const server = await start()
    const runId = await inMidRun(server, model, 'laptop')
    server.signal('SIGSTOP')
    await expire()
    model.release()
    server.signal('SIGCONT')
    const events = await collect(server.client, runId)
    expectOneEnd(events)
    const [question, look, answer, ...more] = await textsOf(server, 'laptop')
    expect([question, look, more]).toEqual(['What time is it?', CALL.text, []])
    expect([LATE.text, DONE.text]).toContain(answer)
  },
)
