import { describe, expect, test } from 'vitest'
import type { RunSignal } from '../../../src/session/session-store.js'
import { DRIVERS, failureOf, newKey, useStore } from './drivers.js'

describe.each(DRIVERS)('runs in $name', driver => {
  const place = useStore(driver)

  async function run() {
    const key = newKey()
    await place.store.createSession(key)
    return { key, runId: `run-${key.appName}` }
  }

  test('events come back in the order of their numbers, page by page', async () => {
    const { key, runId } = await run()
    const events = Array.from({ length: 70 }, (_, index) => ({
      seq: index,
      type: 'text-delta',
      text: `\0${index}\ud800`,
    }))
    await place.store.runs.appendEvents(key, runId, events.slice(35))
    await place.store.runs.appendEvents(key, runId, events.slice(0, 35))
    await place.store.runs.appendEvents(key, runId, [])
    expect(await place.store.runs.readEvents(runId)).toEqual(events)
    expect(await place.store.runs.readEvents(runId, { afterSeq: 60 })).toEqual(events.slice(61))
    expect(await place.store.runs.readEvents(runId, { afterSeq: 9, limit: 5 })).toEqual(events.slice(10, 15))
    expect(await place.store.runs.readEvents('nobody')).toEqual([])
  })

  test('storing a number again changes nothing', async () => {
    const { key, runId } = await run()
    await place.store.runs.appendEvents(key, runId, [{ seq: 1, first: true }])
    await place.store.runs.appendEvents(key, runId, [{ seq: 1, first: false }, { seq: 2 }])
    expect(await place.store.runs.readEvents(runId)).toEqual([{ seq: 1, first: true }, { seq: 2 }])
  })

  test('a run belongs to one session', async () => {
    const { key, runId } = await run()
    await place.store.runs.appendEvents(key, runId, [{ seq: 1 }])
    const failure = await failureOf(place.store.runs.appendEvents(newKey(), runId, [{ seq: 2 }]))
    expect(failure.code).toBe('invalid-argument')
    expect(failure.message).toContain(runId)
  })

  test('requests come back by step, and a step saved again is replaced', async () => {
    const { runId } = await run()
    await place.store.runs.saveRequest(runId, 2, { body: 'second' })
    await place.store.runs.saveRequest(runId, 1, { body: 'old' })
    await place.store.runs.saveRequest(runId, 1, { body: { messages: [{ '\0': '\ud800' }] } })
    expect(await place.store.runs.readRequests(runId)).toEqual([
      { step: 1, record: { body: { messages: [{ '\0': '\ud800' }] } } },
      { step: 2, record: { body: 'second' } },
    ])
  })

  test('each signal is taken exactly once, oldest first', async () => {
    const { runId } = await run()
    const signals: RunSignal[] = [
      { type: 'approval', callId: 'c1', answer: 'once' },
      { type: 'stop', reason: 'enough' },
      { type: 'approval', callId: 'c2', answer: 'no' },
    ]
    for (const signal of signals) await place.store.runs.sendSignal(runId, signal)
    const taken = await Promise.all(Array.from({ length: 6 }, () => place.store.runs.takeSignals(runId)))
    expect(taken.filter(some => some.length > 0)).toEqual([signals])
    expect(await place.store.runs.takeSignals(runId)).toEqual([])
  })

  test('pruning forgets what is older and never touches messages', async () => {
    const { key, runId } = await run()
    await place.store.appendMessage(key, { role: 'user', content: 'kept', timestamp: 1 })
    await place.store.runs.appendEvents(key, runId, [{ seq: 1 }, { seq: 2 }])
    await place.store.runs.saveRequest(runId, 1, {})
    await place.store.runs.sendSignal(runId, { type: 'stop' })
    expect(await place.store.runs.prune({ before: 1 })).toEqual({ events: 0, requests: 0, signals: 0 })
    expect(await place.store.runs.readEvents(runId)).toHaveLength(2)
    const pruned = await place.store.runs.prune({ before: Date.now() + 60_000 })
    expect(pruned.events).toBeGreaterThanOrEqual(2)
    expect(pruned.requests).toBeGreaterThanOrEqual(1)
    expect(pruned.signals).toBeGreaterThanOrEqual(1)
    expect(await place.store.runs.readEvents(runId)).toEqual([])
    expect(await place.store.runs.readRequests(runId)).toEqual([])
    expect(await place.store.runs.takeSignals(runId)).toEqual([])
    expect(await place.store.readMessages(key)).toHaveLength(1)
  })

  test('observations of a model add up', async () => {
    const model = newKey().appName
    expect(await place.store.calibration.read(model)).toBeUndefined()
    await Promise.all(Array.from({ length: 10 }, () => place.store.calibration.record(model, 400, 90)))
    expect(await place.store.calibration.read(model)).toEqual({ bytes: 4000, tokens: 900 })
  })
})
