// Simulated processes over one store with a virtual clock: crashes, pauses and failures at every boundary, by seed.
// `npm run simulate` runs as many simulations as one likes.
import { expect, test } from 'vitest'
import { Random } from '../../chaos/random.js'
import { Clock, installVirtualTime, type Owner, ownerScope, useClock } from '../../simulate/clock.js'
import { MUTATIONS } from '../../simulate/mutations.js'
import { type SimulationOptions, type SimulationReport, simulate } from '../../simulate/run-simulation.js'
import { openSqlStore } from '../../src/store/sql-store.js'
import { createMemoryDatabase } from '../../src/store/sqlite-memory.js'
import { LONG } from '../support/tiers.js'

/** Seeds of the general simulations: `npm test` takes the first ones, `npm run test:long` the others. */
const FIRST = 60
const ALL = 300
/** Each mistake is found earlier. */
const MOST_SEEDS = 300

function* seedsFrom(first: number, count: number): Generator<string> {
  for (let seed = first; seed < first + count; seed++) yield String(seed)
}

async function reportsOf(
  seeds: Iterable<string>,
  options: SimulationOptions = {},
): Promise<SimulationReport[]> {
  const reports: SimulationReport[] = []
  await simulate(seeds, options, report => void reports.push(report))
  return reports
}

const MODES = [
  ['resumed', true],
  ['ended', false],
] as const

test.each(MODES)(
  'interrupted runs are %s: nothing is lost, doubled, interleaved, illegal or stuck',
  { timeout: 900_000 },
  (_name, resume) => expectSound(1, FIRST, resume),
)

test.each(MODES)(
  'interrupted runs are %s: nothing is lost, doubled, interleaved, illegal or stuck with many more seeds',
  { ...LONG, timeout: 900_000 },
  (_name, resume) => expectSound(FIRST + 1, ALL - FIRST, resume),
)

async function expectSound(first: number, count: number, resume: boolean): Promise<void> {
  const totals = { simulations: 0, runs: 0, faults: 0, effects: 0, interrupted: 0, resumed: 0 }
  const failed: string[] = []
  await simulate(
    seedsFrom(first, count),
    { resume, confirmations: true },
    ({ seed, problems, ...report }) => {
      totals.simulations += 1
      for (const name of ['runs', 'faults', 'effects', 'interrupted', 'resumed'] as const)
        totals[name] += report[name]
      if (problems.length === 0) return true
      const command = `npm run simulate -- --count 1 --seed ${seed} --resume ${resume ? 'on' : 'off'}`
      failed.push(`${command}: ${JSON.stringify(problems)}`)
      return failed.length < 5
    },
  )
  console.log(`simulated: ${JSON.stringify(totals)}`)
  expect(failed).toEqual([])
  expect(totals.simulations).toBe(count)
  expect(totals.faults).toBeGreaterThan(count)
  expect(resume ? totals.resumed : totals.interrupted).toBeGreaterThan(count / 4)
}

function expectNoProblems(reports: readonly SimulationReport[]): void {
  expect(reports.flatMap(({ seed, problems }) => problems.map(problem => ({ seed, problem })))).toEqual([])
}

const CRASHES = { mostFaults: 40, actions: ['crash', 'pause', 'close'] } as const

test("a person's answer about one execution does not hold for the next when processes crash repeatedly", {
  timeout: 900_000,
}, async () => {
  // These pay twice where an answer about a call of another run is used for every execution of its repetition.
  const seeds = ['100411', '100675']
  const reports = await reportsOf(seeds, CRASHES)
  expectNoProblems(reports)
  expect(reports.reduce((all, { crashes }) => all + crashes, 0)).toBeGreaterThan(seeds.length)
})

test('the outcome of an earlier execution stays unknown when processes crash, fail and pause repeatedly', {
  timeout: 900_000,
}, async () => {
  // These pay twice where a repeated execution that fails ends a call that was cut off before.
  expectNoProblems(await reportsOf(['5024', '5090', '5186'], { mostFaults: 40 }))
  // This one where an execution begins before the person's answer that allows it is stored.
  expectNoProblems(await reportsOf(['70360'], { mostFaults: 40, actions: ['crash', 'outage'] }))
  const confirmed = { mostFaults: 40, confirmations: true }
  // These end as aborted, the third with two answers to a call, where a failure between two rounds ends the run. The last
  // two pay twice where a call that could not be stored is left behind when ADK asks for a confirmation.
  expectNoProblems(await reportsOf(['920911', '921411', '920965', '1200022', '1200299'], confirmed))
  // This one loses the answer of a refused call next to one that needs a confirmation.
  expectNoProblems(await reportsOf(['950220'], { ...confirmed, actions: ['crash', 'close', 'pause'] }))
  // This one answers a call twice where a run is stopped while its end, after a write without an acknowledgement, is stored.
  expectNoProblems(await reportsOf(['6960'], { ...confirmed, actions: ['crash', 'fail'] }))
})

test('a process that was frozen after it had stored the start of a payment does not pay without its lease', {
  timeout: 900_000,
}, async () => {
  expectNoProblems(await reportsOf(['500131'], { mostFaults: 12, confirmations: true }))
})

test('no payment is made twice when processes crash, fail and pause repeatedly, with many more seeds', {
  ...LONG,
  timeout: 900_000,
}, async () => {
  const crashed = await reportsOf(seedsFrom(200_000, 60), CRASHES)
  expectNoProblems(crashed)
  expect(crashed.reduce((all, { crashes }) => all + crashes, 0)).toBeGreaterThan(60)
  expectNoProblems(await reportsOf(seedsFrom(300_000, 30), { mostFaults: 40 }))
})

test(
  'runs of the only process continue when it is opened after it was closed for an hour',
  {
    timeout: 900_000,
  },
  () => expectContinuedAfterAnHour(400_000, 4),
)

test(
  'runs of the only process continue when it is opened after it was closed for an hour, with many more seeds',
  {
    ...LONG,
    timeout: 900_000,
  },
  () => expectContinuedAfterAnHour(400_004, 16),
)

async function expectContinuedAfterAnHour(first: number, count: number): Promise<void> {
  const hour = { processes: 1, actions: ['pause'] as const, pauseMs: 3_600_000 }
  const reports = await reportsOf(seedsFrom(first, count), { ...hour, confirmations: true })
  expectNoProblems(reports)
  const closed = reports.filter(({ pauses }) => pauses > 0)
  expect(closed.length).toBeGreaterThan(count / 2)
  expect(closed.every(({ virtualMs }) => virtualMs > 3_600_000)).toBe(true)
}

test('equal seeds give equal simulations in any order', async () => {
  const seeds = ['3', '10', '1357', '64']
  const once = await reportsOf(seeds)
  const again = await reportsOf(seeds.toReversed())
  expect(once.map(({ trace }) => trace)).toEqual(again.toReversed().map(({ trace }) => trace))
  expect(once.every(({ trace }) => trace.length > 50)).toBe(true)
  expect(once[0]?.trace).not.toEqual(once[1]?.trace)
})

test.each(MUTATIONS)('the simulations find the mistake %s', { timeout: 300_000 }, async mutation => {
  const kinds: string[] = []
  await simulate(seedsFrom(1, MOST_SEEDS), { mutation, resume: false }, ({ problems }) => {
    kinds.push(...problems.map(({ kind }) => kind))
    return problems.length === 0
  })
  const expected = {
    'early-answer': ['lost', 'interleaved'],
    'no-fence': ['interleaved', 'doubled', 'illegal'],
  }
  expect(mutation in expected ? expected[mutation as keyof typeof expected] : ['doubled']).toContain(kinds[0])
})

test('a write that a crashed process has not committed is lost, and delays no other process', async () => {
  const clock = new Clock(new Random('crash'))
  const restore = installVirtualTime()
  const database = await createMemoryDatabase(() => clock.wallMs())
  const [one, other] = [await openSqlStore(database.open()), await openSqlStore(database.open())]
  const create = (owner: Owner, store: typeof one) =>
    ownerScope.run(owner, () => store.createSession(keyOf(owner)))
  try {
    useClock(clock)
    void create(CRASHED, one)
    const created = create(ALIVE, other)
    await clock.run(() => false, 1000)
    expect(await created).toMatchObject({ key: keyOf(ALIVE), createdAt: clock.wallMs() })
    expect(await other.describeSession(keyOf(CRASHED))).toBeUndefined()
  } finally {
    restore()
    database.close()
  }
})

const ALIVE: Owner = { name: 'alive', isCrashed: false, pausedUntil: 0 }
const CRASHED: Owner = { name: 'crashed', isCrashed: true, pausedUntil: 0 }

function keyOf({ name }: Owner) {
  return { appName: 'lango', userId: 'user', sessionId: name }
}
