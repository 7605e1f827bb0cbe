import { expect, test } from 'vitest'
import { RunSlots, SessionQueue } from './run-admission.js'
import { runScope } from './run-scope.js'

const key = { appName: 'app', userId: 'user', sessionId: 's' }

test('runs of one session enter in the order of arrival, runs of other sessions at once', async () => {
  const queue = new SessionQueue()
  const order: string[] = []
  const first = await queue.enter(key, 'queue')
  const waiting = ['a', 'b', 'c'].map(async name => {
    const leave = await queue.enter(key, 'queue')
    order.push(name)
    leave()
  })
  const other = await queue.enter({ ...key, sessionId: 'other' }, 'reject')
  order.push('first')
  first()
  await Promise.all(waiting)
  other()
  expect(order).toEqual(['first', 'a', 'b', 'c'])
})

test('with "reject" a busy session fails at once', async () => {
  const queue = new SessionQueue()
  const leave = await queue.enter(key, 'reject')
  await expect(queue.enter(key, 'reject')).rejects.toMatchObject({ code: 'session-busy', retryable: true })
  leave()
  const next = await queue.enter(key, 'queue')
  next()
})

test('an aborted run leaves the queue and the next one enters', async () => {
  const queue = new SessionQueue()
  const leave = await queue.enter(key, 'queue')
  const abort = new AbortController()
  const abortedRun = queue.enter(key, 'queue', abort.signal)
  const next = queue.enter(key, 'queue')
  abort.abort()
  await expect(abortedRun).rejects.toMatchObject({ code: 'aborted' })
  leave()
  const last = await next
  last()
})

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
