import { describe, expect, test } from 'vitest'
import type { SessionKey } from '../../../src/session/message.js'
import type { RunSignal } from '../../../src/session/run-store.js'
import { openStore } from '../../../src/store/open-store.js'
import { sql } from '../../../src/store/sql-database.js'
import { DRIVERS, failureOf, newKey, openDatabase, useStore } from './drivers.js'

describe.each(DRIVERS)('runs in $name', driver => {
  const place = useStore(driver)

  async function run() {
    const key = newKey()
    await place.store.createSession(key)
    return { key, runId: `run-${key.appName}` }
  }

  test('events of a run come back in the order of their numbers, page by page', async () => {
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

  test('events come back with the ids of their session and run, and with other ids as they were', async () => {
    const { key, runId } = await run()
    const events = [
      { type: 'run-start', sessionId: key.sessionId, runId, seq: 1 },
      { type: 'text-delta', text: 'x', sessionId: key.sessionId, runId: 'another', seq: 2 },
      { type: 'text-delta', text: 'x', sessionId: 'another', runId, seq: 3 },
      { seq: 4, type: 'text-delta', runId },
      { type: 'run-finish', sessionId: key.sessionId, runId, seq: 5 },
    ]
    await place.store.runs.appendEvents(key, runId, events)
    await place.store.runs.appendEvents(key, runId, events)
    expect(JSON.stringify(await place.store.runs.readEvents(runId))).toBe(JSON.stringify(events))
    expect(await place.store.runs.findRun(runId)).toMatchObject({ finished: true, lastSeq: 5 })
  })

  test('storing the event number of a run again changes nothing', async () => {
    const { key, runId } = await run()
    await place.store.runs.appendEvents(key, runId, [{ seq: 1, first: true }])
    await place.store.runs.appendEvents(key, runId, [{ seq: 1, first: false }, { seq: 2 }])
    expect(await place.store.runs.readEvents(runId)).toEqual([{ seq: 1, first: true }, { seq: 2 }])
  })

  test('a run ends once: what comes after its end is refused, and its end may be stored again', async () => {
    const { key, runId } = await run()
    const stored = [
      { seq: 1, type: 'text-delta' },
      { seq: 2, type: 'run-finish' },
    ]
    await place.store.runs.appendEvents(key, runId, stored)
    const late = [
      { seq: 2, type: 'text-delta' },
      { seq: 3, type: 'run-finish' },
    ]
    expect((await failureOf(place.store.runs.appendEvents(key, runId, late))).code).toBe('run-interrupted')
    await place.store.runs.appendEvents(key, runId, stored)
    expect(await place.store.runs.readEvents(runId)).toEqual(stored)
  })

  test('events with the numbers of an end that another process wrote are refused, not counted as stored', async () => {
    const { key, runId } = await run()
    await place.store.runs.appendEvents(key, runId, [{ seq: 1, type: 'text-delta' }])
    const end = [
      { seq: 2, type: 'error' },
      { seq: 3, type: 'run-finish' },
    ]
    await place.store.runs.appendEvents(key, runId, end)
    const own = [{ seq: 2, type: 'text-delta' }]
    expect((await failureOf(place.store.runs.appendEvents(key, runId, own))).code).toBe('run-interrupted')
    expect(await place.store.runs.readEvents(runId, { afterSeq: 1 })).toEqual(end)
  })

  test('events with numbers below an end that another process wrote are refused, too', async () => {
    const { key, runId } = await run()
    const stored = [
      { seq: 1, type: 'run-start' },
      { seq: 2 ** 24, type: 'run-finish' },
    ]
    await place.store.runs.appendEvents(key, runId, stored)
    const own = [{ seq: 5, type: 'text-delta' }]
    expect((await failureOf(place.store.runs.appendEvents(key, runId, own))).code).toBe('run-interrupted')
    await place.store.runs.appendEvents(key, runId, stored)
    expect(await place.store.runs.readEvents(runId)).toEqual(stored)
  })

  test('a run belongs to one session', async () => {
    const { key, runId } = await run()
    await place.store.runs.appendEvents(key, runId, [{ seq: 1 }])
    const failure = await failureOf(place.store.runs.appendEvents(newKey(), runId, [{ seq: 2 }]))
    expect(failure.code).toBe('invalid-argument')
    expect(failure.message).toContain(runId)
  })

  test('a run summary has its session, the message after which it began and whether it has ended', async () => {
    const { key, runId } = await run()
    for (const content of ['one', 'two'])
      await place.store.appendMessage(key, { role: 'user', content, timestamp: 1 })
    expect(await place.store.runs.findRun(runId)).toBeUndefined()
    await place.store.runs.appendEvents(key, runId, [{ seq: 1, type: 'run-start' }])
    const began = await place.store.runs.findRun(runId)
    expect(began).toMatchObject({ runId, key, afterSeq: 2, lastSeq: 1, finished: false })
    expect(Math.abs((began?.startedAt ?? 0) - Date.now())).toBeLessThan(60_000)
    await place.store.appendMessage(key, { role: 'assistant', content: 'three', timestamp: 1 })
    await place.store.runs.appendEvents(key, runId, [
      { seq: 2, type: 'text-delta' },
      { seq: 3, type: 'run-finish', finishReason: 'loop' },
    ])
    expect(await place.store.runs.findRun(runId)).toEqual({
      ...began,
      state: 'finished',
      lastSeq: 3,
      finished: true,
      finishReason: 'loop',
    })
    await place.store.deleteSession(key)
    expect(await place.store.runs.findRun(runId)).toBeUndefined()
  })

  test('the runs of a session are listed newest first, and of no other session', async () => {
    const { key, runId } = await run()
    const other = await run()
    await place.store.runs.appendEvents(other.key, other.runId, [{ seq: 1 }])
    for (const number of [1, 2, 3]) {
      await place.store.runs.appendEvents(key, `${runId}-${number}`, [{ seq: 1, type: 'run-start' }])
      await new Promise(resolve => setTimeout(resolve, 3))
    }
    const listed = await place.store.runs.listRuns(key)
    expect(listed.map(summary => summary.runId)).toEqual([3, 2, 1].map(number => `${runId}-${number}`))
    expect(await place.store.runs.listRuns(key, { limit: 1 })).toEqual(listed.slice(0, 1))
    expect((await failureOf(place.store.runs.listRuns(key, { limit: 0 }))).code).toBe('invalid-argument')
  })

  test('the runs of an app are listed newest first, ended ones included, for one user or for all', async () => {
    const { key, runId } = await run()
    const other = { ...key, userId: `${key.userId}-2`, sessionId: 'other' }
    await place.store.createSession(other)
    for (const [number, owner] of [key, other, key].entries()) {
      const id = `${runId}-${number}`
      await place.store.runs.appendEvents(owner, id, [{ seq: 1, type: 'run-start' }])
      const { startedAt = 0 } = (await place.store.runs.findRun(id)) ?? {}
      await expect.poll(() => Date.now(), { interval: 1 }).toBeGreaterThan(startedAt + 2)
    }
    await place.store.runs.appendEvents(key, `${runId}-0`, [
      { seq: 2, type: 'run-finish', finishReason: 'stop' },
    ])
    const { appName } = key
    const listed = await place.store.runs.listAppRuns({ appName })
    expect(listed.map(summary => summary.runId)).toEqual([2, 1, 0].map(number => `${runId}-${number}`))
    expect(listed[2]).toMatchObject({ state: 'finished', finishReason: 'stop', key })
    expect(await place.store.runs.listAppRuns({ appName, limit: 1 })).toEqual(listed.slice(0, 1))
    expect(await place.store.runs.listAppRuns({ appName, userId: other.userId })).toEqual([listed[1]])
    expect(await place.store.runs.listAppRuns({ appName: 'no-such-app' })).toEqual([])
    await place.store.deleteSession(key)
    expect(await place.store.runs.listAppRuns({ appName })).toEqual([listed[1]])
  })

  test('requests of a run come back by step, and a step saved again is replaced', async () => {
    const { key, runId } = await run()
    await place.store.runs.appendEvents(key, runId, [{ seq: 1 }])
    await place.store.runs.saveRequest(runId, 2, { body: 'second' })
    await place.store.runs.saveRequest(runId, 1, { body: 'old' })
    await place.store.runs.saveRequest(runId, 1, { body: { messages: [{ '\0': '\ud800' }] } })
    expect(await place.store.runs.readRequests(runId)).toEqual([
      { step: 1, record: { body: { messages: [{ '\0': '\ud800' }] } } },
      { step: 2, record: { body: 'second' } },
    ])
  })

  test('a request or a signal of a run that the store does not have is refused', async () => {
    const { runId } = await run()
    const refused = [
      place.store.runs.saveRequest(runId, 1, { body: 'x' }),
      place.store.runs.sendSignal(runId, { type: 'stop' }),
    ]
    for (const promise of refused) expect((await failureOf(promise)).code).toBe('run-not-found')
    expect(await place.store.runs.readRequests(runId)).toEqual([])
    expect(await place.store.runs.takeSignals(runId)).toEqual([])
  })

  test('short requests that two stores save come back exactly', async () => {
    const { key, runId } = await run()
    await place.store.runs.appendEvents(key, runId, [{ seq: 1 }])
    const shortRequest = (step: number) => ({
      body: `The text that all requests have, and ${step}`.repeat(step),
    })
    const steps = [1, 2, 3, 4, 5, 6]
    const other = driver.name === 'memory' ? place.store : await openStore(place.url)
    for (const step of steps)
      await (step % 2 === 0 ? other : place.store).runs.saveRequest(runId, step, shortRequest(step))
    const expected = steps.map(step => ({ step, record: shortRequest(step) }))
    expect(await place.store.runs.readRequests(runId)).toEqual(expected)
    if (other !== place.store) await other.close()
  })

  /** What an agent sends step by step: the conversation grows, and sometimes its beginning is left out. */
  function requestOf(step: number, firstMessage = 0): Record<string, unknown> {
    const messages = Array.from({ length: step * 3 - firstMessage }, (_, index) => ({
      role: index % 2 === 0 ? 'tool' : 'assistant',
      content: `${firstMessage + index} "},{" \0 \ud800 ${'näxt '.repeat(((firstMessage + index) % 5) * 60)}`,
    }))
    const tools = [{ name: 'look', parameters: { type: 'object' } }]
    return { model: 'm', repairs: [`${step}`], body: { system: 's'.repeat(5000), messages, tools }, cuts: [] }
  }

  test('requests that repeat each other come back exactly, whatever is saved in which order', async () => {
    const { key, runId } = await run()
    await place.store.runs.appendEvents(key, runId, [{ seq: 1 }])
    const steps = [3, 1, 2, 7, 6, 5, 4]
    await Promise.all(
      steps.map(step => place.store.runs.saveRequest(runId, step, requestOf(step, step > 5 ? 6 : 0))),
    )
    await place.store.runs.saveRequest(runId, 4, requestOf(9, 2))
    await place.store.runs.saveRequest(runId, 1, {})
    const expected = [
      {},
      requestOf(2),
      requestOf(3),
      requestOf(9, 2),
      requestOf(5),
      requestOf(6, 6),
      requestOf(7, 6),
    ].map((record, index) => ({ step: index + 1, record }))
    expect(await place.store.runs.readRequests(runId)).toEqual(expected)
    // Nobody else is opened on memory.
    if (driver.name === 'memory') return
    const other = await openStore(place.url)
    await other.runs.saveRequest(runId, 8, requestOf(8))
    expect(await other.runs.readRequests(runId)).toEqual([...expected, { step: 8, record: requestOf(8) }])
    await other.close()
  })

  /** Ends a run. */
  function end(key: SessionKey, runId: string): Promise<void> {
    return place.store.runs.appendEvents(key, runId, [{ seq: 9, type: 'run-finish' }])
  }

  test('requests that are left after pruning come back exactly', async () => {
    const { key, runId } = await run()
    const later = `${runId}-later`
    for (const id of [runId, later]) await place.store.runs.appendEvents(key, id, [{ seq: 1 }])
    for (const step of [1, 2]) await place.store.runs.saveRequest(runId, step, requestOf(step + 1))
    for (const step of [3, 4]) await place.store.runs.saveRequest(later, step, requestOf(step + 1))
    await end(key, runId)
    // The clock of the database must have moved on between the two ends.
    await new Promise(resolve => setTimeout(resolve, 50))
    const before = Date.now() - 20
    await end(key, later)
    await place.store.runs.prune({ appName: key.appName, before })
    expect(await place.store.runs.readRequests(runId)).toEqual([])
    expect(await place.store.runs.readRequests(later)).toEqual([
      { step: 3, record: requestOf(4) },
      { step: 4, record: requestOf(5) },
    ])
    await place.store.runs.prune({ appName: key.appName, before: Date.now() + 60_000 })
    const last = `${runId}-last`
    await place.store.runs.appendEvents(key, last, [{ seq: 1 }])
    await place.store.runs.saveRequest(last, 5, requestOf(5))
    expect(await place.store.runs.readRequests(last)).toEqual([{ step: 5, record: requestOf(5) }])
  })

  test('pruning while requests are saved leaves those that can be read', async () => {
    const { key, runId } = await run()
    const steps = [0, 1, 2, 3, 4]
    const ids = Array.from({ length: 8 }, (_, index) => `${runId}-${index}`)
    await Promise.all(
      ids.map(async (id, index) => {
        await place.store.runs.appendEvents(key, id, [{ seq: 1 }])
        await Promise.all(steps.map(step => place.store.runs.saveRequest(id, step, requestOf(step + 2))))
        if (index % 2 === 0) await end(key, id)
        await place.store.runs.prune({ appName: key.appName, before: Date.now() + 60_000 })
      }),
    )
    await place.store.runs.saveRequest(ids[1] ?? '', 99, requestOf(4))
    const expected = steps.map(step => ({ step, record: requestOf(step + 2) }))
    for (const [index, id] of ids.entries()) {
      const more = index === 1 ? [{ step: 99, record: requestOf(4) }] : []
      expect(await place.store.runs.readRequests(id)).toEqual(index % 2 === 0 ? [] : [...expected, ...more])
    }
  })

  /** How many parts of requests the session has; 0 in memory, which keeps requests whole. */
  async function partsOf({ appName }: SessionKey): Promise<number> {
    if (driver.name === 'memory') return 0
    const database = await openDatabase(place.url)
    const [row] = await database.run(
      sql(
        'SELECT count(*) AS n FROM lango_request_parts WHERE session_pk IN (SELECT pk FROM lango_sessions WHERE app_name = ?)',
        appName,
      ),
    )
    await database.close()
    return Number(row?.n)
  }

  test('the requests of later runs share what the session has sent before, until none is left', async () => {
    const { key, runId } = await run()
    const later = Array.from({ length: 8 }, (_, index) => `${runId}-${index}`)
    for (const [index, id] of later.entries()) {
      await place.store.runs.appendEvents(key, id, [{ seq: 1 }])
      await place.store.runs.saveRequest(id, 1, requestOf(4 + index))
      if (index === 1) await place.store.runs.prune({ appName: key.appName, before: 1 })
    }
    for (const [index, id] of later.entries())
      expect(await place.store.runs.readRequests(id)).toEqual([{ step: 1, record: requestOf(4 + index) }])
    const parts = await partsOf(key)
    expect(parts).toBeLessThan(60)
    // Another session that sends the same has parts of its own, which go with it.
    const other = await run()
    await place.store.runs.appendEvents(other.key, other.runId, [{ seq: 1 }])
    await place.store.runs.saveRequest(other.runId, 1, requestOf(4))
    if (driver.name !== 'memory') expect(await partsOf(other.key)).toBeGreaterThan(0)
    await place.store.deleteSession(other.key)
    expect(await place.store.runs.readRequests(later[0] ?? '')).toHaveLength(1)
    expect(await partsOf(key)).toBe(parts)
    await Promise.all(later.slice(1).map(id => end(key, id)))
    await place.store.runs.prune({ appName: key.appName, before: Date.now() + 60_000 })
    expect(await place.store.runs.readRequests(later[0] ?? '')).toHaveLength(1)
    await end(key, later[0] ?? '')
    await place.store.runs.prune({ appName: key.appName, before: Date.now() + 60_000 })
    expect(await partsOf(key)).toBe(0)
  })

  test('records of a run whose session was deleted are dropped', async () => {
    const { key, runId } = await run()
    await place.store.runs.appendEvents(key, runId, [{ seq: 1 }])
    await place.store.runs.saveRequest(runId, 1, requestOf(4))
    await place.store.deleteSession(key)
    await place.store.runs.appendEvents(key, runId, [{ seq: 2 }])
    await place.store.runs.saveRequest(runId, 2, requestOf(5))
    await place.store.runs.prune({ appName: key.appName, before: 1 })
    await place.store.runs.appendEvents(key, runId, [{ seq: 3 }])
    expect(await place.store.runs.readEvents(runId)).toEqual([])
    expect(await place.store.runs.readRequests(runId)).toEqual([])
    // The session of the same name that comes after has runs of its own.
    await place.store.createSession(key)
    await place.store.runs.appendEvents(key, `${runId}-next`, [{ seq: 5 }])
    expect(await place.store.runs.readEvents(`${runId}-next`)).toEqual([{ seq: 5 }])
  })

  test('each signal is taken exactly once, oldest first', async () => {
    const { key, runId } = await run()
    await place.store.runs.appendEvents(key, runId, [{ seq: 1 }])
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

  test('an answer to a call that failed, or whose outcome is unknown, is forgotten', async () => {
    const { key, runId } = await run()
    await place.store.runs.appendEvents(key, runId, [{ seq: 0, type: 'run-start' }])
    for (const callId of ['failed', 'unknown', 'done', 'asked'])
      await place.store.runs.sendSignal(runId, { type: 'response', callId, response: {} })
    await place.store.runs.appendEvents(key, runId, [
      { seq: 1, type: 'tool-result', id: 'failed', isError: true },
      { seq: 2, type: 'tool-unknown', id: 'unknown' },
      { seq: 3, type: 'tool-result', id: 'done', isError: false },
      { seq: 4, type: 'tool-unknown', id: 'asked', asks: true },
    ])
    const left = await place.store.runs.takeSignals(runId)
    expect(left).toMatchObject([{ callId: 'done' }, { callId: 'asked' }])
  })

  test('pruning deletes older records of a run that has ended, and never messages', async () => {
    const { key, runId } = await run()
    const { runs } = place.store
    const nothing = { events: 0, requests: 0, signals: 0 }
    await place.store.appendMessage(key, { role: 'user', content: 'kept', timestamp: 1 })
    await runs.appendEvents(key, runId, [{ seq: 1 }, { seq: 2 }])
    await runs.saveRequest(runId, 1, {})
    await runs.sendSignal(runId, { type: 'stop' })
    const [before, later] = [1, Date.now() + 60_000]
    expect(await runs.prune({ appName: key.appName, before: later })).toEqual(nothing)
    expect(await runs.readRequests(runId)).toHaveLength(1)
    await end(key, runId)
    expect(await runs.prune({ appName: key.appName, before })).toEqual(nothing)
    expect(await runs.readEvents(runId)).toHaveLength(3)
    expect(await runs.prune({ appName: key.appName, before: later })).toEqual({
      events: 3,
      requests: 1,
      signals: 1,
    })
    expect(await runs.prune({ appName: key.appName, before: later })).toEqual(nothing)
    expect(await runs.readEvents(runId)).toEqual([])
    expect(await runs.readRequests(runId)).toEqual([])
    expect(await runs.takeSignals(runId)).toEqual([])
    expect(await place.store.readMessages(key)).toHaveLength(1)
  })

  test('calibrations of a model add up', async () => {
    const model = newKey().appName
    expect(await place.store.calibration.read(model)).toBeUndefined()
    await Promise.all(Array.from({ length: 10 }, () => place.store.calibration.record(model, 400, 90)))
    expect(await place.store.calibration.read(model)).toEqual({ bytes: 4000, tokens: 900 })
  })
})
