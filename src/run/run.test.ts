import { expect, test } from 'vitest'
import { RunSlots } from './run-admission.js'
import { runScope } from './run-scope.js'

test('slots are passed on in the order of arrival, and an aborted run takes none', async () => {
  const slots = new RunSlots(1)
  const order: string[] = []
  const leave = await slots.enter(undefined)
  const abort = new AbortController()
  const aborted = slots.enter(abort.signal)
  const waiting = ['a', 'b'].map(async name => {
    const done = await slots.enter(undefined)
    order.push(name)
    done()
    done()
  })
  abort.abort()
  await expect(aborted).rejects.toMatchObject({ code: 'aborted' })
  order.push('first')
  leave()
  await Promise.all(waiting)
  expect(order).toEqual(['first', 'a', 'b'])
  const again = await slots.enter(undefined)
  again()
})

test('a run that a tool starts does not wait for a slot', async () => {
  const slots = new RunSlots(1)
  const leave = await slots.enter(undefined)
  const inner = await runScope.run({} as never, () => slots.enter(undefined))
  inner()
  leave()
})
