/**
 * Runs that are cut at a call of the store: before it is stored, in the middle, stored without acknowledgement, sent
 * again, or sent by a process that is late. Another process continues from the log alone. `controls.test.ts` shows that
 * the judge sees every defect.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LONG, longUnless } from '../../support/tiers.js'
import type { Cut, Stores } from './cut-harness.js'
import { LOG_DRIVERS, type OpenLog, openLog } from './drivers.js'
import { cutsOf, play } from './play.js'
import { SCENARIO_NAMES } from './scenarios.js'

describe.each(LOG_DRIVERS)('runs over the log in $name', driver => {
  let place: OpenLog
  let stores: Stores
  beforeAll(async () => {
    place = await openLog(driver)
    stores = place.stores
  })
  afterAll(() => place?.stop())

  test.each(SCENARIO_NAMES)('%s: not cut', async name => {
    expect((await play(stores, name)).problems).toEqual([])
  })

  for (const name of SCENARIO_NAMES) {
    test(
      `${name}: cut at every call, nothing is lost or done twice`,
      longUnless(driver.name === 'sqlite'),
      async () => {
        const { calls } = await play(stores, name)
        for (const cut of cutsOf(calls.length)) await expectNoProblem(stores, name, cut)
      },
    )

    test(`${name}: cut at every call and once more, nothing is lost or done twice`, LONG, async () => {
      const { calls } = await play(stores, name)
      for (const cut of cutsOf(calls.length).filter(({ mode }) => mode === 'before' || mode === 'after'))
        for (const second of [1, 2, 3, 4]) await expectNoProblem(stores, name, { ...cut, second })
    })
  }

  test('one cut for every kind of call and every mode: nothing is lost or done twice', async () => {
    const known = new Set<string>()
    for (const name of SCENARIO_NAMES) {
      const { calls } = await play(stores, name)
      for (const cut of cutsOf(calls.length)) {
        const kind = `${calls[cut.call - 1]} ${cut.mode} ${cut.progress}`
        if (!known.has(kind)) await expectNoProblem(stores, name, cut)
        known.add(kind)
      }
    }
    expect(known.size).toBe(56)
  })
})

async function expectNoProblem(stores: Stores, name: string, cut: Cut): Promise<void> {
  const { problems, calls } = await play(stores, name, cut)
  expect(problems, `${name} ${JSON.stringify(cut)}: ${calls.join()}`).toEqual([])
}
