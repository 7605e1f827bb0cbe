import { expect, test } from 'vitest'
import { SessionQueue } from './run.js'

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
