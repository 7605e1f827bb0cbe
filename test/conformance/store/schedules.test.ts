import { describe, expect, test } from 'vitest'
import { openStore } from '../../../src/store/open-store.js'
import { DRIVERS, failureOf, newKey, SHARED_DRIVERS, useStore } from './drivers.js'

describe.each(DRIVERS)('schedules in $name', driver => {
  const place = useStore(driver)

  test('the newest tick of a schedule is kept with its run, another rule begins anew, and unlisted schedules are deleted', async () => {
    const { schedules } = place.store
    const { appName } = newKey()
    const one = { appName, name: 'one', rule: '0 9 * * * UTC', tick: 100 }
    expect(await schedules.read(appName)).toEqual([])
    await schedules.save({ ...one, runId: 'r1' })
    await schedules.save({ ...one, tick: 50, runId: 'late' })
    await schedules.save({ ...one, tick: 200 })
    await schedules.save({ ...one, name: 'two' })
    expect(await schedules.read(appName)).toEqual([
      { name: 'one', rule: one.rule, tick: 200, runId: 'r1' },
      { name: 'two', rule: one.rule, tick: 100 },
    ])
    await schedules.save({ ...one, rule: 'other', tick: 10 })
    await schedules.keep(appName, ['one', 'three'])
    expect(await schedules.read(appName)).toEqual([{ name: 'one', rule: 'other', tick: 10, runId: 'r1' }])
    await schedules.keep(newKey().appName, [])
    await schedules.keep(appName, [])
    expect(await schedules.read(appName)).toEqual([])
  })

  test('invalid records of schedules are refused', async () => {
    const { schedules } = place.store
    const record = { appName: 'a', name: 'n', rule: 'r', tick: 1 }
    const refused = [
      schedules.save({ ...record, name: '' }),
      schedules.save({ ...record, tick: -1 }),
      schedules.save({ ...record, tick: 0.5 }),
      schedules.read(''),
      schedules.keep('', []),
    ]
    for (const promise of refused) expect((await failureOf(promise)).code).toBe('invalid-argument')
  })
})

describe.each(SHARED_DRIVERS)('schedules of two stores on one $name database', driver => {
  const place = useStore(driver)

  test('two stores that save ticks of a schedule at the same time leave the newest', async () => {
    const other = await openStore(place.url)
    const { appName } = newKey()
    const saves = Array.from({ length: 20 }, (_, index) =>
      (index % 2 === 0 ? place.store : other).schedules.save({
        ...{ appName, name: 'one', rule: 'r', tick: (index * 7) % 20 },
        runId: `run-${(index * 7) % 20}`,
      }),
    )
    await Promise.all(saves)
    expect(await other.schedules.read(appName)).toEqual([
      { name: 'one', rule: 'r', tick: 19, runId: 'run-19' },
    ])
    await other.close()
  })
})
