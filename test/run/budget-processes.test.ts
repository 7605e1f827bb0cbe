// One user, a budget of $1 a day, 100 runs at once in four processes: the server's own bill never exceeds it.
import { join } from 'node:path'
import { describe, expect, type TestContext, test } from 'vitest'
import { startBilling } from '../support/billing-provider.js'
import { runScript } from '../support/child.js'
import { createStoreDatabase } from '../support/postgres.js'
import { temporaryFolder } from '../support/temporary-folder.js'

type Context = Pick<TestContext, 'onTestFinished'>

const stores = [
  ['SQLite', async () => `sqlite:${join(await temporaryFolder(), 'spend.db')}`],
  [
    'PostgreSQL',
    async ({ onTestFinished }: Context) => {
      const database = await createStoreDatabase()
      onTestFinished(database.drop)
      return database.url
    },
  ],
] as const

const NAMES = ['one', 'two', 'three', 'four']

describe.each(stores)('in %s', (_name, address) => {
  test('work that fits is done, although the worst case of a tenth of it would not fit', async context => {
    // 100 answers cost less than $0.30 together; at their output limit of 32,000 tokens each is $1.28.
    const billed = await startBilling(() => ({ text: 'Done.', outputTokens: 50 }))
    context.onTestFinished(() => billed.server.close())
    const store = await address(context)
    const children = NAMES.map(name =>
      runScript('spend-child.ts', [store, billed.server.baseUrl, name, '25']),
    )
    for (const child of children) expect((await child.ended).code, child.errors()).toBe(0)
    const results = children.flatMap(({ lines }) => lines.slice(1))
    expect(results).toHaveLength(100)
    expect(results.filter(line => line !== 'stop Done.')).toEqual([])
    expect(billed.peak()).toBeLessThanOrEqual(1)
  }, 240_000)

  test('work that does not fit ends at the budget, also when processes are killed', async context => {
    // 100 answers of 800 tokens would cost more than $3.
    let answered = 0
    const billed = await startBilling(async () => {
      answered += 1
      // Requests of killed processes are answered and billed all the same.
      await new Promise(resolve => setTimeout(resolve, 30))
      return { text: 'Done.', outputTokens: 800 }
    })
    context.onTestFinished(() => billed.server.close())
    const store = await address(context)
    const children = NAMES.map(name =>
      runScript('spend-child.ts', [store, billed.server.baseUrl, name, '25']),
    )
    const [first, second, ...others] = children
    for (const [child, after] of [
      [first, 3],
      [second, 10],
    ] as const) {
      while (answered < after && child?.process.exitCode === null)
        await new Promise(resolve => setTimeout(resolve, 5))
      child?.process.kill('SIGKILL')
    }
    await Promise.all([first?.ended, second?.ended])
    for (const child of others) expect((await child.ended).code, child.errors()).toBe(0)
    const results = others.flatMap(({ lines }) => lines.slice(1))
    expect(results).toHaveLength(50)
    // What the killed processes had reserved stays spent, so there may be nothing left for the others.
    expect(results.filter(line => !/^(stop|budget) /.test(line))).toEqual([])
    expect(results.some(line => line.startsWith('budget'))).toBe(true)
    expect(billed.bill()).toBeGreaterThan(0)
    expect(billed.peak()).toBeLessThanOrEqual(1)
  }, 240_000)
})
