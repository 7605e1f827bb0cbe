// Simulated processes over one store with a virtual clock: crashes, pauses and failures at every boundary, by seed.
// `npm run simulate` runs as many simulations as one likes.
import { describe, expect, test } from 'vitest'
import { MUTATIONS } from '../../simulate/mutations.js'
import { type SimulationOptions, type SimulationReport, simulate } from '../../simulate/run-simulation.js'
import { MemoryStore } from '../../src/store/memory-store.js'

/** `npm run simulate` explores; here they guard what was found. */
const COUNT = 300
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

test.each([
  ['resumed', true],
  ['ended', false],
])(
  'interrupted runs are %s: nothing is lost, doubled, interleaved, illegal or stuck',
  {
    timeout: 900_000,
  },
  async (_name, resume) => {
    const totals = { simulations: 0, runs: 0, faults: 0, effects: 0, interrupted: 0, resumed: 0 }
    const failed: string[] = []
    await simulate(seedsFrom(1, COUNT), { resume, confirmations: true }, ({ seed, problems, ...report }) => {
      totals.simulations += 1
      for (const name of ['runs', 'faults', 'effects', 'interrupted', 'resumed'] as const)
        totals[name] += report[name]
      if (problems.length === 0) return true
      const command = `npm run simulate -- --count 1 --seed ${seed} --resume ${resume ? 'on' : 'off'}`
      failed.push(`${command}: ${JSON.stringify(problems)}`)
      return failed.length < 5
    })
    console.log(`simulated: ${JSON.stringify(totals)}`)
    expect(failed).toEqual([])
    expect(totals.simulations).toBe(COUNT)
    expect(totals.faults).toBeGreaterThan(COUNT)
    expect(resume ? totals.resumed : totals.interrupted).toBeGreaterThan(COUNT / 4)
  },
)

test("processes that crash again and again: a person's word about one execution does not hold for the next", {
  timeout: 900_000,
}, async () => {
  // The first two pay twice where an answer about a call of another run is used for every execution of its repetition.
  const seeds = ['100411', '100675', ...seedsFrom(200_000, 60)]
  const reports = await reportsOf(seeds, { mostFaults: 40, actions: ['crash', 'pause', 'close'] })
  expect(reports.flatMap(({ seed, problems }) => problems.map(problem => ({ seed, problem })))).toEqual([])
  expect(reports.reduce((all, { crashes }) => all + crashes, 0)).toBeGreaterThan(seeds.length)
})

test('processes that crash, fail and pause again and again: what an earlier execution did stays unknown', {
  timeout: 900_000,
}, async () => {
  // These pay twice where a repeated execution that fails ends a call that was cut off before.
  const failing = await reportsOf(['5024', '5090', '5186', ...seedsFrom(300_000, 30)], { mostFaults: 40 })
  // This one where an execution begins before the person's word that allows it is stored.
  const asking = await reportsOf(['70360'], { mostFaults: 40, actions: ['crash', 'outage'] })
  // These end as aborted, the third with two answers to a call, where a failure between two rounds ends the run. The last
  // two pay twice where a call that could not be stored is left behind when ADK asks for a confirmation.
  const between = await reportsOf(['920911', '921411', '920965', '1200022', '1200299'], {
    mostFaults: 40,
    confirmations: true,
  })
  // This one loses the answer of a refused call beside one that needs a confirmation.
  const refused = await reportsOf(['950220'], {
    mostFaults: 40,
    confirmations: true,
    actions: ['crash', 'close', 'pause'],
  })
  // This one answers a call twice where a run is stopped while its end, after a write without an acknowledgement, is stored.
  const stopped = await reportsOf(['6960'], {
    mostFaults: 40,
    confirmations: true,
    actions: ['crash', 'fail'],
  })
  const reports = [...failing, ...asking, ...between, ...refused, ...stopped]
  expect(reports.flatMap(({ seed, problems }) => problems.map(problem => ({ seed, problem })))).toEqual([])
})

test('the only process is closed for an hour, in the middle of anything: its runs go on when it is opened', {
  timeout: 900_000,
}, async () => {
  const hour = { processes: 1, actions: ['pause'] as const, pauseMs: 3_600_000 }
  const reports = await reportsOf(seedsFrom(400_000, 20), { ...hour, confirmations: true })
  expect(reports.flatMap(({ seed, problems }) => problems.map(problem => ({ seed, problem })))).toEqual([])
  const closed = reports.filter(({ pauses }) => pauses > 0)
  expect(closed.length).toBeGreaterThan(10)
  expect(closed.every(({ virtualMs }) => virtualMs > 3_600_000)).toBe(true)
})

test('equal seeds give equal simulations, in any order', async () => {
  const seeds = ['3', '10', '1357', '64']
  const once = await reportsOf(seeds)
  const again = await reportsOf(seeds.toReversed())
  expect(once.map(({ trace }) => trace)).toEqual(again.toReversed().map(({ trace }) => trace))
  expect(once.every(({ trace }) => trace.length > 50)).toBe(true)
  expect(once[0]?.trace).not.toEqual(once[1]?.trace)
})

describe('the simulations find', () => {
  test.each(MUTATIONS)('%s', { timeout: 300_000 }, async mutation => {
    const kinds: string[] = []
    await simulate(seedsFrom(1, MOST_SEEDS), { mutation, resume: false }, ({ problems }) => {
      kinds.push(...problems.map(({ kind }) => kind))
      return problems.length === 0
    })
    const expected = {
      'early-answer': ['lost', 'interleaved'],
      'no-fence': ['interleaved', 'doubled', 'illegal'],
    }
    expect(mutation in expected ? expected[mutation as keyof typeof expected] : ['doubled']).toContain(
      kinds[0],
    )
  })
})

test('two stores in memory with one content have leases of their own', async () => {
  const key = { appName: 'lango', userId: 'user', sessionId: 's' }
  const one = new MemoryStore()
  const other = new MemoryStore({ shares: one })
  await one.createSession(key)
  const lease = await one.acquireLease(key)
  await expect(other.acquireLease(key)).rejects.toMatchObject({ code: 'session-busy' })
  await lease.release()
  const next = await other.acquireLease(key)
  await other.appendMessage(key, { role: 'user', content: 'Hello', timestamp: 0 }, { fence: next.fence })
  expect((await one.readMessages(key)).map(({ content }) => content)).toEqual(['Hello'])
  await other.close()
  expect(next.lost.aborted).toBe(true)
  await expect(one.acquireLease(key)).resolves.toBeDefined()
  await one.close()
})
