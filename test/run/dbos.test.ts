// `engine: 'dbos'`: DBOS dispatches the runs, and nothing else changes. One database for the file; DBOS is there once in a
// process, so the runtimes come one after the other. Processes that are killed: test/run/chaos.test.ts.
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { DbosOptions } from '../../src/engine/engine-options.js'
import type { RunEvent } from '../../src/run/run-event.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { defineTool } from '../../src/tool.js'
import { eventually } from '../support/eventually.js'
import { createStoreDatabase, type TestDatabase } from '../support/postgres.js'

let database: TestDatabase

beforeAll(async () => {
  database = await createStoreDatabase()
})
afterAll(() => database.drop())

const ENGINE: DbosOptions = { name: 'dbos', pollMs: 50 }
const payments: string[] = []
/** What a tool waits for, as long as a test wants it to. */
let hold: Promise<void> | undefined
let working = 0
let mostWorking = 0

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  parameters: z.object({ to: z.string() }),
  effect: 'once',
  execute: async ({ to }) => {
    working += 1
    mostWorking = Math.max(mostWorking, working)
    await hold
    working -= 1
    payments.push(to)
    return { paid: to }
  },
})

async function open(
  engine: RuntimeOptions['engine'],
  options: { needsApproval?: boolean; app?: string } = {},
): Promise<Runtime> {
  const { needsApproval = false, app = 'lango' } = options
  const provider = new ScriptedProvider(
    ({ messages }) => {
      const last = messages.at(-1)
      const text = JSON.stringify(last)
      return text.includes('tool-result')
        ? { text: 'Paid.' }
        : { toolCalls: [{ name: 'pay', args: { to: /secret-\d+/.exec(text)?.[0] ?? '?' } }] }
    },
    { id: 'play' },
  )
  const runtime = await createRuntime({
    ...{ store: database.url, engine, app },
    providers: { play: provider },
    agent: { name: 'clerk', model: 'play/m', tools: [{ ...pay, needsApproval }] },
  })
  let isClosed = false
  const close = runtime.close.bind(runtime)
  runtime.close = async () => {
    if (!isClosed) await close()
    isClosed = true
  }
  onTestFinished(() => runtime.close())
  await runtime.ready()
  return runtime
}

async function finishOf(runtime: Runtime, runId: string): Promise<RunEvent | undefined> {
  let last: RunEvent | undefined
  for await (const event of runtime.follow(runId)) last = event
  return last
}

async function workflow(runId: string) {
  const [row] = await database.query('SELECT * FROM dbos.workflow_status WHERE workflow_uuid = $1', [runId])
  return row
}

/** Everything in DBOS' tables, as text. */
async function everythingInDbos(): Promise<string> {
  const tables = await database.query(
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'dbos' AND table_type = 'BASE TABLE'`,
  )
  const texts: string[] = []
  for (const { name } of tables) {
    const rows = await database.query(`SELECT t::text AS row FROM dbos."${name}" t`)
    texts.push(...rows.map(({ row }) => String(row)))
  }
  return texts.join('\n')
}

test('runs on DBOS are workflows with their ids, in order within a session, and leave no texts in DBOS', async () => {
  const runtime = await open(ENGINE)
  const started = []
  for (const number of [1, 2, 3])
    started.push(
      await runtime.start({ sessionId: 'ordered', userId: 'private-name', text: `To secret-${number}.` }),
    )
  for (const { runId } of started)
    expect(await finishOf(runtime, runId)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  expect(payments.splice(0)).toEqual(['secret-1', 'secret-2', 'secret-3'])
  const [first = { runId: '' }] = started
  await eventually(async () => (await workflow(first.runId))?.status).toBe('SUCCESS')
  const kept = await everythingInDbos()
  expect(kept).toContain(first.runId)
  expect(kept).not.toMatch(/secret|private-name|Paid/)

  await runtime.erase('private-name')
  expect(await workflow(first.runId)).toBeUndefined()
  expect(await everythingInDbos()).not.toContain(first.runId)
})

test('on DBOS the same run id is one run, and a queued run can be stopped', async () => {
  const runtime = await open(ENGINE)
  let free = () => {}
  hold = new Promise(resolve => {
    free = resolve
  })
  const first = await runtime.start({ sessionId: 'stopped', text: 'To secret-1.' })
  await eventually(async () => working).toBe(1)
  const queued = await runtime.start({ sessionId: 'stopped', text: 'To secret-2.' })
  const last = await runtime.start({ sessionId: 'stopped', text: 'To secret-3.' })
  await expect(runtime.start({ ...last, text: 'To secret-3.' })).resolves.toEqual(last)
  await expect(
    runtime.runAndCollect({ sessionId: 'stopped', text: 'now', whenBusy: 'reject' }),
  ).rejects.toMatchObject({ code: 'session-busy' })
  await runtime.stop(queued.runId)
  free()
  expect(await finishOf(runtime, last.runId)).toMatchObject({ finishReason: 'stop' })
  expect(await finishOf(runtime, queued.runId)).toMatchObject({ finishReason: 'aborted' })
  expect(await finishOf(runtime, first.runId)).toMatchObject({ finishReason: 'stop' })
  expect(payments.splice(0)).toEqual(['secret-1', 'secret-3'])
})

test('the sweep of DBOS finds runs that other processes accepted or left', async () => {
  let free = () => {}
  hold = new Promise(resolve => {
    free = resolve
  })
  const plain = await open('leases')
  const first = await plain.start({ sessionId: 'left', text: 'To secret-1.' })
  await eventually(async () => working).toBe(1)
  const queued = await plain.start({ sessionId: 'left', text: 'To secret-2.' })
  const closed = plain.close()
  free()
  await closed
  expect(await workflow(queued.runId)).toBeUndefined()
  hold = undefined
  const runtime = await open(ENGINE)
  expect(await finishOf(runtime, first.runId)).toMatchObject({ finishReason: 'stop' })
  expect(await finishOf(runtime, queued.runId)).toMatchObject({ finishReason: 'stop' })
  expect(payments.splice(0)).toEqual(['secret-1', 'secret-2'])
})

test('a run that waits frees its DBOS workflow, and another version of the program answers it', async () => {
  hold = undefined
  const one = await open({ ...ENGINE, version: 'one' }, { needsApproval: true })
  const { runId } = await one.start({ sessionId: 'asked', text: 'To secret-1.' })
  await eventually(async () => (await one.store.runs.findRun(runId))?.state).toBe('waiting')
  await eventually(async () => (await workflow(runId))?.status).toBe('SUCCESS')
  await one.close()
  const two = await open({ ...ENGINE, version: 'two' }, { needsApproval: true })
  const asked = await eventRequest(two, runId)
  await two.answer(runId, asked, 'once')
  expect(await finishOf(two, runId)).toMatchObject({ finishReason: 'stop' })
  expect((await workflow(runId))?.application_version).toBe('lango:lango@two')
  expect(payments.splice(0)).toEqual(['secret-1'])
})

async function eventRequest(runtime: Runtime, runId: string): Promise<string> {
  const events = await runtime.store.runs.readEvents(runId)
  const request = events.find(({ type }) => type === 'approval-request')
  return String(request?.id)
}

test('perUser and perModel of DBOS limit how many runs work at once', async () => {
  let free = () => {}
  hold = new Promise(resolve => {
    free = resolve
  })
  mostWorking = 0
  const queues = { fleet: 10, perUser: 2, perModel: 3 }
  const runtime = await open({ ...ENGINE, queues }, { app: 'limited' })
  const started = []
  for (const number of [1, 2, 3, 4, 5, 6]) {
    const userId = number <= 4 ? 'ann' : `user-${number}`
    started.push(await runtime.start({ userId, sessionId: `s${number}`, text: `To secret-${number}.` }))
  }
  await eventually(async () => working).toBe(3)
  const [counted] = await database.query(
    `SELECT count(*)::int AS count FROM dbos.workflow_status WHERE application_name = 'lango:limited'
      AND name = 'lango.run' AND status = 'PENDING'`,
  )
  // Two of ann and one of each other user; one of them waits for the model.
  expect(counted?.count).toBe(4)
  free()
  for (const { runId } of started)
    expect(await finishOf(runtime, runId)).toMatchObject({ finishReason: 'stop' })
  expect(mostWorking).toBe(3)
  expect(payments.splice(0).sort()).toEqual([1, 2, 3, 4, 5, 6].map(number => `secret-${number}`))
})

test.each([
  ['a SQLite store', { store: 'sqlite:./never.db', engine: 'dbos' as const }, /needs a PostgreSQL store/],
  ['an unknown name', { store: 'memory:', engine: 'temporal' as 'dbos' }, /must be one of: leases, dbos/],
  [
    'a limit of 0',
    { store: 'postgres://x@localhost/y', engine: { name: 'dbos' as const, queues: { fleet: 0 } } },
    /at least 1/,
  ],
])('DBOS with %s is refused', async (_name, options, expected) => {
  await expect(createRuntime({ ...options, agent: { model: 'demo/demo' } })).rejects.toMatchObject({
    code: 'invalid-config',
    message: expect.stringMatching(expected),
  })
})

test('a second runtime with DBOS in one process is refused', async () => {
  await open(ENGINE)
  await expect(open(ENGINE)).rejects.toMatchObject({
    code: 'invalid-config',
    message: expect.stringContaining('DBOS is in use in this process already'),
  })
})
