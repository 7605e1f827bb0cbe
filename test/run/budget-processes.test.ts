// One user, a budget of $1 a day, many runs at once in several processes: the server's own bill never exceeds it.
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startBilling } from '../support/billing-provider.js'
import { runScript } from '../support/child.js'
import { createStoreDatabase } from '../support/postgres.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { LONG } from '../support/tiers.js'

async function newStore(driver: string): Promise<string> {
  if (driver === 'SQLite') return `sqlite:${join(await temporaryFolder(), 'spend.db')}`
  const database = await createStoreDatabase()
  onTestFinished(database.drop)
  return database.url
}

/** Number of processes, and of runs that each starts at once. */
interface Load {
  driver: string
  processes: number
  runs: number
}

async function start({ driver, processes, runs }: Load, baseUrl: string) {
  const store = await newStore(driver)
  return Array.from({ length: processes }, (_, index) =>
    runScript('spend-child.ts', [store, baseUrl, `process-${index}`, String(runs)]),
  )
}

/** Answers that cost little in the end; at their output limit of 32,000 tokens each is $1.28. */
async function expectAllDone(load: Load): Promise<void> {
  const billed = await startBilling(() => ({ text: 'Done.', outputTokens: 50 }))
  onTestFinished(() => billed.server.close())
  const children = await start(load, billed.server.baseUrl)
  for (const child of children) expect((await child.ended).code, child.errors()).toBe(0)
  const results = children.flatMap(({ lines }) => lines.slice(1))
  expect(results).toHaveLength(load.processes * load.runs)
  expect(results.filter(line => line !== 'stop Done.')).toEqual([])
  expect(billed.peak()).toBeLessThanOrEqual(1)
}

interface Overload extends Load {
  /** All answers together cost more than $2. */
  outputTokens: number
  /** After how many answers the first process is killed, the second, and so on. */
  killAfter: readonly number[]
}

async function expectEndAtBudget({ outputTokens, killAfter, ...load }: Overload): Promise<void> {
  let answered = 0
  const billed = await startBilling(async () => {
    answered += 1
    // Requests of killed processes are answered and billed all the same.
    await new Promise(resolve => setTimeout(resolve, 30))
    return { text: 'Done.', outputTokens }
  })
  onTestFinished(() => billed.server.close())
  const children = await start(load, billed.server.baseUrl)
  for (const [index, after] of killAfter.entries()) {
    const child = children[index]
    while (answered < after && child?.process.exitCode === null)
      await new Promise(resolve => setTimeout(resolve, 5))
    child?.process.kill('SIGKILL')
  }
  const [first] = await Promise.all(children.slice(0, killAfter.length).map(child => child.ended))
  // What it had reserved may end the runs of the next one before that is killed.
  expect(first?.signal).toBe('SIGKILL')
  const others = children.slice(killAfter.length)
  for (const child of others) expect((await child.ended).code, child.errors()).toBe(0)
  const results = others.flatMap(({ lines }) => lines.slice(1))
  expect(results).toHaveLength(others.length * load.runs)
  // What the killed processes had reserved stays spent, so there may be nothing left for the others.
  expect(results.filter(line => !/^(stop|budget) /.test(line))).toEqual([])
  expect(results.some(line => line.startsWith('budget'))).toBe(true)
  expect(billed.bill()).toBeGreaterThan(0)
  expect(billed.peak()).toBeLessThanOrEqual(1)
}

test('30 runs of 2 processes on SQLite that fit the budget are done, although not one of them fits at its limit', () =>
  expectAllDone({ driver: 'SQLite', processes: 2, runs: 15 }))

test('30 runs of 2 processes on SQLite that exceed the budget end at it, also when one process is killed', () =>
  expectEndAtBudget({ driver: 'SQLite', processes: 2, runs: 15, outputTokens: 1800, killAfter: [3] }))

test.each(['SQLite', 'PostgreSQL'])(
  '100 runs of 4 processes on %s that fit the budget are done, although not one of them fits at its limit',
  { ...LONG, timeout: 240_000 },
  driver => expectAllDone({ driver, processes: 4, runs: 25 }),
)

test.each(['SQLite', 'PostgreSQL'])(
  '100 runs of 4 processes on %s that exceed the budget end at it, also when two processes are killed',
  { ...LONG, timeout: 240_000 },
  driver => expectEndAtBudget({ driver, processes: 4, runs: 25, outputTokens: 800, killAfter: [3, 10] }),
)
