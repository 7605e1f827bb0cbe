import { expect, test } from 'vitest'
import { SessionQueue } from './session-queue.js'

const key = { appName: 'app', userId: 'user', sessionId: 's' }

test('serves one session in the order of arrival and others beside it', async () => {
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

test('rejects at once when asked to', async () => {
  const queue = new SessionQueue()
  const leave = await queue.enter(key, 'reject')
  await expect(queue.enter(key, 'reject')).rejects.toMatchObject({ code: 'session-busy', retryable: true })
  leave()
  const next = await queue.enter(key, 'queue')
  next()
})

test('lets a waiting run be aborted without blocking those behind it', async () => {
  const queue = new SessionQueue()
  const leave = await queue.enter(key, 'queue')
  const abort = new AbortController()
  const impatient = queue.enter(key, 'queue', abort.signal)
  const patient = queue.enter(key, 'queue')
  abort.abort()
  await expect(impatient).rejects.toMatchObject({ code: 'aborted' })
  leave()
  const last = await patient
  last()
})
