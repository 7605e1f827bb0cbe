import { describe, expect, test } from 'vitest'
import type { Message, SessionKey } from '../../../src/session/message.js'
import type { Lease, RunOpening, SessionStore } from '../../../src/session/session-store.js'
import { DRIVERS, failureOf, newKey, useStore } from './drivers.js'

const START = { seq: 1, type: 'run-start' }
const QUESTION: Message = { role: 'user', author: 'user', content: 'Why?', timestamp: 1, id: 'question' }
const ANSWER: Message = { role: 'assistant', author: 'root', content: 'Because.', timestamp: 2, id: 'answer' }

function opening(key: SessionKey): RunOpening {
  return { key, runId: `run-${key.appName}`, title: 'Why?', message: QUESTION, events: [START] }
}

describe.each(DRIVERS)('openings and steps of runs in $name', driver => {
  const place = useStore(driver)

  async function open(store: SessionStore, key: SessionKey): Promise<{ lease: Lease; seq: number }> {
    const opened = await store.openRun?.(opening(key))
    if (!opened || 'known' in opened) throw new TypeError('the run was not opened')
    return opened
  }

  test('opening a run creates the session, stores the message and the first event, and holds the lease', async () => {
    const key = newKey()
    const { lease, seq } = await open(place.store, key)
    expect(seq).toBe(1)
    const session = await place.store.loadSession(key)
    expect(session?.title).toBe('Why?')
    expect(session?.messages.map(({ content }) => content)).toEqual(['Why?'])
    const { runId } = opening(key)
    expect(await place.store.runs.readEvents(runId)).toEqual([START])
    expect(await place.store.runs.findRun(runId)).toMatchObject({ key, afterSeq: 0, finished: false })
    expect((await failureOf(place.store.acquireLease(key))).code).toBe('session-busy')
    await lease.release()
    await (await place.store.acquireLease(key)).release()
  })

  test('a run that exists is reported as known, and nothing is stored', async () => {
    const key = newKey()
    const { lease } = await open(place.store, key)
    await lease.release()
    expect(await place.store.openRun?.(opening(key))).toEqual({ known: true })
    expect((await place.store.readMessages(key)).length).toBe(1)
    await (await place.store.acquireLease(key)).release()
  })

  test('a run whose session is busy is not stored; it is opened when the lease is free', async () => {
    const key = newKey()
    const holder = await place.store.acquireLease(key)
    const refused = place.store.openRun?.(opening(key))
    expect((await failureOf(refused as Promise<unknown>)).code).toBe('session-busy')
    expect(await place.store.runs.findRun(opening(key).runId)).toBeUndefined()
    const waiting = place.store.openRun?.(opening(key), { waitMs: 20_000 })
    await holder.release()
    expect(await waiting).toMatchObject({ seq: 1 })
  })

  test('a step stores its message, state, events, requests and counts', async () => {
    const key = newKey()
    const { lease } = await open(place.store, key)
    const { runId } = opening(key)
    const model = `model-${key.appName}`
    const events = [{ seq: 2, type: 'usage' }]
    const step = { key, runId, fence: lease.fence }
    const requests = [{ step: 1, record: { body: 'x'.repeat(10_000) } }]
    const stateDelta = { mood: 'calm' }
    expect(
      await place.store.runs.saveStep?.({ ...step, message: ANSWER, stateDelta, events, requests }),
    ).toEqual({ seq: 2 })
    const calibration = [{ model, bytes: 4, tokens: 1 }]
    const last = [{ seq: 3, type: 'run-finish' }]
    await place.store.runs.saveStep?.({ ...step, events: last, calibration, release: true })
    lease.released?.()
    const session = await place.store.loadSession(key)
    expect(session?.messages.map(({ content }) => content)).toEqual(['Why?', 'Because.'])
    expect(session?.state).toEqual({ mood: 'calm' })
    expect(await place.store.runs.readEvents(runId)).toEqual([START, ...events, ...last])
    expect(await place.store.runs.readRequests(runId)).toEqual(requests)
    expect(await place.store.calibration.read(model)).toEqual({ bytes: 4, tokens: 1 })
    await (await place.store.acquireLease(key)).release()
  })

  test('a step under a lost lease stores nothing at all', async () => {
    const key = newKey()
    const { lease } = await open(place.store, key)
    const { runId } = opening(key)
    await lease.release()
    const next = await place.store.acquireLease(key)
    const step = { key, runId, fence: lease.fence, message: ANSWER, stateDelta: { mood: 'calm' } }
    const failure = await failureOf(
      place.store.runs.saveStep?.({ ...step, events: [{ seq: 2 }] }) as Promise<unknown>,
    )
    expect(failure.code).toBe('lease-lost')
    expect((await place.store.loadSession(key))?.state).toEqual({})
    expect(await place.store.runs.readEvents(runId)).toEqual([START])
    await next.release()
  })

  test('a step of a run that has ended stores nothing at all', async () => {
    const key = newKey()
    const { lease } = await open(place.store, key)
    const { runId } = opening(key)
    await place.store.runs.appendEvents(key, runId, [{ seq: 2, type: 'run-finish' }])
    const step = { key, runId, fence: lease.fence, message: ANSWER, events: [{ seq: 3 }] }
    expect((await failureOf(place.store.runs.saveStep?.(step) as Promise<unknown>)).code).toBe(
      'run-interrupted',
    )
    expect((await place.store.readMessages(key)).length).toBe(1)
    await lease.release()
  })

  test('a session can be loaded as it was before a message', async () => {
    const key = newKey()
    await place.store.createSession(key)
    for (const number of [1, 2, 3, 4]) {
      const role = number % 2 === 1 ? 'user' : 'assistant'
      await place.store.appendMessage(key, { role, content: `text ${number}`, timestamp: number })
    }
    const whole = await place.store.loadSession(key)
    const before = await place.store.loadSession(key, { throughSeq: 2, budgetTokens: 1000 })
    expect(before?.messages).toEqual(whole?.messages.slice(0, 2))
    expect(before?.totalMessages).toBe(2)
    const nothing = await place.store.loadSession(key, { throughSeq: 0 })
    expect(nothing).toMatchObject({ messages: [], totalMessages: 0 })
    const cut = await place.store.loadSession(key, { throughSeq: 3, budgetTokens: 1 })
    expect(cut?.messages.map(({ seq }) => seq)).toEqual([3])
    expect(cut?.cut).toMatchObject({ messages: 2, keptMessages: 1 })
  })
})
