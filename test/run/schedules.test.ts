/** Schedules: one run for each tick, whichever processes serve the app, and missed ticks by policy. */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { AgentError } from '../../src/errors.js'
import { silentLogger } from '../../src/logger.js'
import type { RuntimeOptions, ScheduleOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { Schedules } from '../../src/runtime/schedules.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { type Child, runScript } from '../support/child.js'
import { eventually } from '../support/eventually.js'
import { obedientProvider } from '../support/obedient-provider.js'
import { createStoreDatabase, type TestDatabase } from '../support/postgres.js'
import { startServer } from '../support/start-server.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { LONG } from '../support/tiers.js'

let database: TestDatabase
beforeAll(async () => {
  database = await createStoreDatabase()
})
afterAll(() => database.drop())

const PLACES: Record<string, () => Promise<string>> = {
  memory: async () => 'memory:',
  SQLite: async () => `sqlite:${join(await temporaryFolder(), 'runs.db')}`,
  PostgreSQL: async () => database.url,
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** Eleven o'clock, a day ago: what is due then is due now. */
const ELEVEN = Math.floor(Date.now() / (24 * HOUR)) * 24 * HOUR - 13 * HOUR

interface Stage {
  runtime: Runtime
  /** Schedules of a process with a clock of its own, begun and then looked at again with every `at`. */
  process(
    schedules: readonly ScheduleOptions[],
    start: number,
  ): Promise<{ at(time: number): Promise<void>; all: Schedules }>
}

async function stage(url: string): Promise<Stage> {
  const runtime = await createRuntime({
    store: url,
    providers: { play: obedientProvider },
    agent: { name: 'root', model: 'play/model' },
  })
  onTestFinished(() => runtime.close())
  return {
    runtime,
    process: async (schedules, start) => {
      let now = start
      const parts = { appName: 'lango', store: runtime.store, logger: silentLogger, schedules }
      const begin = async () => {
        const all = new Schedules({ ...parts, start: input => runtime.start(input), now: () => now })
        await all.begin()
        await all.close()
        return all
      }
      // Each look is that of a process that has just started: nothing but the store is remembered.
      const all = await begin()
      return {
        all,
        at: async time => {
          now = time
          await begin()
        },
      }
    },
  }
}

async function ticksOf(
  store: SessionStore,
  sessionId: string,
  { userId = 'user', appName = 'lango' } = {},
): Promise<number[]> {
  const key = { appName, userId, sessionId }
  // In this order: a run that is released in between is read twice.
  const later = await store.runs.listUnfinished({ appName, key, scheduled: 'only' })
  const runs = new Map([...later, ...(await store.runs.listRuns(key))].map(run => [run.runId, run]))
  return Array.from(runs.values(), ({ dueAt = 0 }) => dueAt).sort((one, other) => one - other)
}

describe.each(Object.keys(PLACES))('on %s', place => {
  const newStage = async () => stage((await PLACES[place]?.()) ?? '')
  const everyHour = (more: Partial<ScheduleOptions> = {}): ScheduleOptions => {
    const name = `s${randomUUID().slice(0, 8)}`
    return { name, cron: '0 * * * *', session: name, text: 'say 1', ...more }
  }

  test('a new schedule begins with its next tick; each tick is one run of its session', async () => {
    const { runtime, process } = await newStage()
    const schedule = everyHour({ user: 'ann' })
    const one = await process([schedule], ELEVEN - 1)
    expect(await ticksOf(runtime.store, schedule.session, { userId: 'ann' })).toEqual([])
    await one.at(ELEVEN + 5)
    await one.at(ELEVEN + 20)
    await one.at(ELEVEN + HOUR)
    const ticks = [ELEVEN, ELEVEN + HOUR]
    expect(await ticksOf(runtime.store, schedule.session, { userId: 'ann' })).toEqual(ticks)
    const key = { appName: 'lango', userId: 'ann', sessionId: schedule.session }
    await eventually(async () => (await runtime.listRuns(key)).map(run => run.finishReason)).toEqual([
      'stop',
      'stop',
    ])
    const messages = await runtime.store.readMessages(key)
    expect(messages.filter(({ role }) => role === 'user')).toHaveLength(2)
    const [state] = await one.all.list()
    expect(state).toMatchObject({ lastTick: ELEVEN + HOUR, lastRun: { finishReason: 'stop' } })
    expect(state?.next).toEqual([ELEVEN + 2 * HOUR, ELEVEN + 3 * HOUR, ELEVEN + 4 * HOUR])
  })

  test('two processes with different clocks have one run for each tick', async () => {
    const { runtime, process } = await newStage()
    const schedule = everyHour()
    const [one, two] = [await process([schedule], ELEVEN - 1), await process([schedule], ELEVEN - 1)]
    await Promise.all([one.at(ELEVEN + 10_000), two.at(ELEVEN + 3)])
    await Promise.all([two.at(ELEVEN + HOUR), one.at(ELEVEN + HOUR + 10_000)])
    expect(await ticksOf(runtime.store, schedule.session)).toEqual([ELEVEN, ELEVEN + HOUR])
  })

  test.each([
    ['skip', []],
    ['latest', [3]],
    ['all', [1, 2, 3]],
  ] as const)('missed ticks are made up for by the policy %s', async (missed, made) => {
    const { runtime, process } = await newStage()
    const schedule = everyHour({ missed })
    const one = await process([schedule], ELEVEN - 1)
    await one.at(ELEVEN)
    await one.at(ELEVEN + 3 * HOUR + 30 * MINUTE)
    expect(await ticksOf(runtime.store, schedule.session)).toEqual([
      ELEVEN,
      ...made.map(hours => ELEVEN + hours * HOUR),
    ])
    await one.at(ELEVEN + 4 * HOUR + 1)
    expect((await ticksOf(runtime.store, schedule.session)).at(-1)).toBe(ELEVEN + 4 * HOUR)
  })

  test('at most the newest hundred missed ticks are made up for', async () => {
    const { runtime, process } = await newStage()
    const schedule = everyHour({ cron: '* * * * *', missed: 'all', session: 'new' })
    const started: unknown[] = []
    const parts = { appName: 'lango', store: runtime.store, logger: silentLogger, schedules: [schedule] }
    await (await process([schedule], ELEVEN)).at(ELEVEN)
    const all = new Schedules({
      ...parts,
      start: async input => {
        started.push(input.at)
        return { runId: randomUUID(), sessionId: 's' }
      },
      now: () => ELEVEN + 150 * MINUTE,
    })
    await all.begin()
    await all.close()
    expect(started).toEqual(Array.from({ length: 100 }, (_, index) => ELEVEN + (index + 51) * MINUTE))
  })

  test('a tick whose previous run has not ended waits in the queue, or is left out with overlap: skip', async () => {
    const { runtime, process } = await newStage()
    const queue = everyHour({ text: 'hang' })
    const skip = everyHour({ text: 'hang', overlap: 'skip' })
    const one = await process([queue, skip], ELEVEN - 1)
    await one.at(ELEVEN)
    await one.at(ELEVEN + HOUR)
    expect(await ticksOf(runtime.store, queue.session)).toEqual([ELEVEN, ELEVEN + HOUR])
    expect(await ticksOf(runtime.store, skip.session)).toEqual([ELEVEN])
    const key = { appName: 'lango', userId: 'user', sessionId: skip.session }
    // A tick is listed once its run is released into the queue.
    await eventually(async () => (await runtime.listRuns(key)).length).toBe(1)
    const [first] = await runtime.listRuns(key)
    await runtime.stop(first?.runId ?? '')
    await eventually(async () => (await runtime.findRun(first?.runId ?? ''))?.finished).toBe(true)
    await one.at(ELEVEN + 2 * HOUR)
    expect(await ticksOf(runtime.store, skip.session)).toEqual([ELEVEN, ELEVEN + 2 * HOUR])
    for (const run of await runtime.store.runs.listRuns({ ...key, sessionId: queue.session }))
      await runtime.stop(run.runId)
    for (const run of await runtime.store.runs.listRuns(key)) await runtime.stop(run.runId)
  })

  test('session: new gives each tick its own session, and runNow refuses an unknown name', async () => {
    const { runtime, process } = await newStage()
    const schedule = everyHour({ session: 'new' })
    const one = await process([schedule], ELEVEN - 1)
    await one.at(ELEVEN)
    const sessionId = `${schedule.name}-${new Date(ELEVEN).toISOString()}`
    expect(await ticksOf(runtime.store, sessionId)).toEqual([ELEVEN])
    const now = await one.all.runNow(schedule.name)
    expect(now.sessionId).toMatch(new RegExp(`^${schedule.name}-`))
    await expect(one.all.runNow('nothing')).rejects.toThrow(`Known: ${schedule.name}`)
  })

  test('a schedule that is changed or removed leaves no missed ticks behind', async () => {
    const { runtime, process } = await newStage()
    const schedule = everyHour({ missed: 'all' })
    await (await process([schedule], ELEVEN - 1)).at(ELEVEN)
    const other = { ...schedule, cron: '30 * * * *' }
    await (await process([other], ELEVEN + 3 * HOUR)).at(ELEVEN + 3 * HOUR + 30 * MINUTE)
    const ticks = [ELEVEN, ELEVEN + 3 * HOUR + 30 * MINUTE]
    expect(await ticksOf(runtime.store, schedule.session)).toEqual(ticks)
    await process([], ELEVEN + 4 * HOUR)
    expect(await runtime.store.schedules.read('lango')).toEqual([])
    await process([other], ELEVEN + 9 * HOUR)
    expect(await ticksOf(runtime.store, schedule.session)).toEqual(ticks)
  })
})

async function untilBegun(child: Child): Promise<Child> {
  await child.untilLines(1)
  expect(child.lines[0], child.errors()).toBe('begun')
  return child
}

function start(url: string, ...args: string[]): Child {
  const child = runScript('schedule-child.ts', [url, ...args])
  onTestFinished(async () => {
    child.process.kill('SIGKILL')
    await child.ended
  })
  return child
}

async function expectOneRunPerTick(place: string): Promise<void> {
  const url = (await PLACES[place]?.()) ?? ''
  const app = randomUUID()
  const generation = (time: number) => [1, 2].map(() => start(url, app, String(time)))
  const store = await openStore(url)
  onTestFinished(() => store.close())
  const ticks = (policy: string) => ticksOf(store, policy, { appName: app })
  const policies = ['skip', 'latest', 'all']
  // Shortly before eleven by their clocks.
  const first = generation(ELEVEN - 3000)
  await Promise.all(first.map(untilBegun))
  for (const policy of policies) await eventually(() => ticks(policy)).toEqual([ELEVEN])
  for (const child of first) child.process.kill('SIGKILL')
  await Promise.all(first.map(child => child.ended))
  // Half past two.
  await Promise.all(generation(ELEVEN + 3.5 * HOUR).map(untilBegun))
  expect(await ticks('skip')).toEqual([ELEVEN])
  expect(await ticks('latest')).toEqual([ELEVEN, ELEVEN + 3 * HOUR])
  expect(await ticks('all')).toEqual([0, 1, 2, 3].map(hours => ELEVEN + hours * HOUR))
  for (const policy of policies) {
    const key = { appName: app, userId: 'user', sessionId: policy }
    const count = (await ticks(policy)).length
    const ended = async () => (await store.runs.listRuns(key)).filter(run => run.finishReason === 'stop')
    await eventually(async () => (await ended()).length).toBe(count)
    const messages = await store.readMessages(key)
    expect(messages.filter(({ role }) => role === 'user')).toHaveLength(count)
  }
}

const TICKS =
  'processes on %s that are killed have one run for a tick, and missed ticks are made up for by policy'
test.each(['SQLite'])(TICKS, expectOneRunPerTick)
test.each(['PostgreSQL'])(TICKS, LONG, expectOneRunPerTick)

test('a runtime that is ready begins its schedules and lists them', async () => {
  const options: RuntimeOptions = {
    store: 'memory:',
    providers: { play: obedientProvider },
    agent: { name: 'root', model: 'play/model' },
    schedules: [
      { name: 'report', cron: '0 9 * * MON-FRI', timeZone: 'Europe/Berlin', session: 'r', text: 'say 1' },
      { name: 'other', cron: '0 0 * * *', session: 'o', text: 'say 2', user: 'ann' },
    ],
  }
  const runtime = await createRuntime(options)
  onTestFinished(() => runtime.close())
  await runtime.ready()
  await eventually(async () =>
    (await (await runtime.schedules()).list()).filter(state => state.lastTick),
  ).toHaveLength(2)
  const [report] = await (await runtime.schedules()).list()
  expect(report).toMatchObject({ name: 'report', missed: 'skip', overlap: 'queue', user: 'user' })
  const { runId } = await (await runtime.schedules()).runNow('report')
  for await (const event of runtime.follow(runId))
    if (event.type === 'run-finish') expect(event.finishReason).toBe('stop')
  await expect((await runtime.schedules()).runNow('reprot')).rejects.toBeInstanceOf(AgentError)
})

test('GET /api/schedules lists the schedules of the caller', async () => {
  const { url, runtime } = await startServer({
    schedules: [
      { name: 'mine', cron: '0 9 * * *', session: 's', text: 'say 1' },
      { name: 'others', cron: '0 9 * * *', session: 's', text: 'say 1', user: 'ann' },
    ],
  })
  const { schedules } = (await (await fetch(`${url}/api/schedules`)).json()) as {
    schedules: Record<string, unknown>[]
  }
  expect(schedules).toMatchObject([{ name: 'mine', timeZone: 'UTC', missed: 'skip', overlap: 'queue' }])
  expect(schedules[0]?.next).toHaveLength(3)
  expect(await (await runtime.schedules()).list()).toHaveLength(2)
})

test('createRuntime refuses schedules on a store that cannot keep them', async () => {
  const store = await openStore('memory:')
  Object.assign(store, { schedules: undefined })
  const schedules = [{ name: 'a', cron: '0 9 * * *', session: 's', text: 't' }]
  await expect(createRuntime({ store, agent: { model: 'demo/demo' }, schedules })).rejects.toThrow(
    'schedules',
  )
})
