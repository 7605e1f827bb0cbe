import { describe, expect, test } from 'vitest'
import type { Message, SessionKey, State } from '../../../src/session/message.js'
import type { RunOpening } from '../../../src/session/run-store.js'
import type { Lease, SessionStore } from '../../../src/session/session-store.js'
import { openStore } from '../../../src/store/open-store.js'
import { DRIVERS, failureOf, newKey, SHARED_DRIVERS, useStore } from './drivers.js'

const START = { seq: 1, type: 'run-start' }
const QUESTION: Message = { role: 'user', author: 'user', content: 'Why?', timestamp: 1, id: 'question' }
const ANSWER: Message = { role: 'assistant', author: 'root', content: 'Because.', timestamp: 2, id: 'answer' }

/** Longer than what is stored whole, and different for every number. */
function longBody(number: number): string {
  return `part ${number}, `.repeat(600)
}

function opening(key: SessionKey): RunOpening {
  return { key, runId: `run-${key.appName}`, title: 'Why?', message: QUESTION, events: [START] }
}

describe.each(DRIVERS)('openings and steps of runs in $name', driver => {
  const place = useStore(driver)

  async function open(store: SessionStore, key: SessionKey): Promise<{ lease: Lease; seq: number }> {
    const opened = await store.openRun(opening(key))
    if (!('lease' in opened)) throw new TypeError('the run was not opened')
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
    expect(await place.store.openRun(opening(key))).toEqual({ known: true })
    expect((await place.store.readMessages(key)).length).toBe(1)
    await (await place.store.acquireLease(key)).release()
  })

  test('a run whose session is busy is not stored; it is opened when the lease is free', async () => {
    const key = newKey()
    const holder = await place.store.acquireLease(key)
    const refused = place.store.openRun(opening(key))
    expect((await failureOf(refused)).code).toBe('session-busy')
    expect(await place.store.runs.findRun(opening(key).runId)).toBeUndefined()
    const waiting = place.store.openRun(opening(key), { waitMs: 20_000 })
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
      await place.store.runs.saveStep({ ...step, message: ANSWER, stateDelta, events, requests }),
    ).toEqual({ seq: 2 })
    const calibration = [{ model, bytes: 4, tokens: 1 }]
    const last = [{ seq: 3, type: 'run-finish' }]
    await place.store.runs.saveStep({ ...step, events: last, calibration, release: true })
    lease.released()
    const session = await place.store.loadSession(key)
    expect(session?.messages.map(({ content }) => content)).toEqual(['Why?', 'Because.'])
    expect(session?.state).toEqual({ mood: 'calm' })
    expect(await place.store.runs.readEvents(runId)).toEqual([START, ...events, ...last])
    expect(await place.store.runs.readRequests(runId)).toEqual(requests)
    expect(await place.store.calibration.read(model)).toEqual({ bytes: 4, tokens: 1 })
    await (await place.store.acquireLease(key)).release()
  })

  test('the last message and the end of its run are one step, which a lost lease refuses as a whole', async () => {
    const key = newKey()
    const { lease } = await open(place.store, key)
    const { runId } = opening(key)
    const step = {
      ...{ key, runId, message: ANSWER, release: true },
      events: [
        { seq: 2, type: 'usage' },
        { seq: 3, type: 'run-finish' },
      ],
      requests: [{ step: 1, record: { body: 'x' } }],
      calibration: [{ model: `model-${key.appName}`, bytes: 4, tokens: 1 }],
    }
    const refused = place.store.runs.saveStep({ ...step, fence: lease.fence + 1000 })
    expect((await failureOf(refused)).code).toBe('lease-lost')
    expect((await place.store.runs.findRun(runId))?.finished).toBe(false)
    expect(await place.store.runs.saveStep({ ...step, fence: lease.fence })).toEqual({ seq: 2 })
    lease.released()
    expect((await place.store.runs.findRun(runId))?.finished).toBe(true)
    expect(await place.store.runs.readEvents(runId)).toEqual([START, ...step.events])
    const session = await place.store.loadSession(key)
    expect(session?.messages.map(({ content }) => content)).toEqual(['Why?', 'Because.'])
    await (await place.store.acquireLease(key)).release()
  })

  test('large arguments and results of tools come back with the events, whatever their fields are called', async () => {
    const key = newKey()
    const { lease } = await open(place.store, key)
    const { runId } = opening(key)
    const large = { text: `\0${'x'.repeat(50_000)}\ud800`, '\u0001stored': 'a field of the tool' }
    const small = { ok: true }
    const result: Message = {
      role: 'tool',
      author: 'root',
      content: '',
      timestamp: 3,
      id: 'result',
      toolCalls: [
        { id: 'c1', name: 'dump', output: JSON.stringify(small), kind: 'response' },
        { id: 'c2', name: 'dump', output: JSON.stringify(large), kind: 'response' },
      ],
    }
    const events = [
      { seq: 2, type: 'tool-result', id: 'c1', name: 'dump', result: small, isError: false },
      { seq: 3, type: 'tool-result', id: 'c2', name: 'dump', result: large, isError: false },
      {
        seq: 4,
        type: 'tool-result',
        id: 'c3',
        name: 'dump',
        result: { '\u0001stored': ['a', 'list'] },
        isError: false,
      },
    ]
    const call: Message = {
      role: 'assistant',
      author: 'root',
      content: '',
      timestamp: 3,
      id: 'call',
      toolCalls: [{ id: 'c4', name: 'put', input: JSON.stringify(large), kind: 'call' }],
    }
    const called = { seq: 5, type: 'tool-call', id: 'c4', name: 'put', args: large }
    const step = { key, runId, fence: lease.fence }
    await place.store.runs.saveStep({ ...step, message: result, events })
    await place.store.runs.saveStep({ ...step, message: call, events: [called] })
    expect(await place.store.runs.readEvents(runId, { afterSeq: 1 })).toEqual([...events, called])
    await lease.release()
  })

  test('a step under a lost lease stores nothing at all', async () => {
    const key = newKey()
    const { lease } = await open(place.store, key)
    const { runId } = opening(key)
    await lease.release()
    const next = await place.store.acquireLease(key)
    const step = { key, runId, fence: lease.fence, message: ANSWER, stateDelta: { mood: 'calm' } }
    const failure = await failureOf(place.store.runs.saveStep({ ...step, events: [{ seq: 2 }] }))
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
    expect((await failureOf(place.store.runs.saveStep(step))).code).toBe('run-interrupted')
    expect((await place.store.readMessages(key)).length).toBe(1)
    await lease.release()
  })

  test('a message with the id of a stored one replaces it, in an opening and in a step', async () => {
    const key = newKey()
    await place.store.createSession(key)
    for (const message of [{ ...QUESTION, content: 'What?' }, ANSWER])
      await place.store.appendMessage(key, message)
    const { lease, seq } = await open(place.store, key)
    expect(seq).toBe(1)
    const { runId } = opening(key)
    const step = { key, runId, fence: lease.fence, message: { ...ANSWER, content: 'Why not.' } }
    const events = [{ seq: 2, type: 'usage' }]
    expect(await place.store.runs.saveStep({ ...step, stateDelta: { mood: 'calm' }, events })).toEqual({
      seq: 2,
    })
    const session = await place.store.loadSession(key)
    expect(session?.messages.map(({ content }) => content)).toEqual(['Why?', 'Why not.'])
    expect(session?.state).toEqual({ mood: 'calm' })
    expect(await place.store.runs.readEvents(runId)).toEqual([START, ...events])
    await lease.release()
  })

  test('a step that is stored again, as after a lost answer, changes nothing', async () => {
    const key = newKey()
    const { lease } = await open(place.store, key)
    const { runId } = opening(key)
    const requests = [{ step: 1, record: { body: longBody(1) } }]
    const events = [{ seq: 2, type: 'usage' }]
    const step = { key, runId, fence: lease.fence, message: ANSWER, events, requests }
    for (let round = 0; round < 2; round++) expect(await place.store.runs.saveStep(step)).toEqual({ seq: 2 })
    expect((await place.store.readMessages(key)).length).toBe(2)
    expect(await place.store.runs.readEvents(runId)).toEqual([START, ...events])
    expect(await place.store.runs.readRequests(runId)).toEqual(requests)
    await lease.release()
  })

  test('a step changes and removes state of every scope', async () => {
    const key = newKey()
    const { lease } = await open(place.store, key)
    const step = { key, runId: opening(key).runId, fence: lease.fence }
    const save = (stateDelta: State) => place.store.runs.saveStep({ ...step, stateDelta })
    await save({ a: 1, b: { c: '\0' }, 'user:a': 2, 'user:b': 3, 'app:a': 4, 'app:b': 5, 'temp:x': 6 })
    await save({
      a: undefined,
      'user:a': undefined,
      'app:a': undefined,
      'app:c': null,
      '\0\ud800': 'odd key',
    })
    expect((await place.store.loadSession(key))?.state).toEqual({
      b: { c: '\0' },
      'user:b': 3,
      'app:b': 5,
      'app:c': null,
      '\0\ud800': 'odd key',
    })
    await lease.release()
  })

  test('NUL and lone surrogates in a step come back as they were', async () => {
    const key = newKey()
    const odd = 'nul \0 half \ud83d other \udc00 pair \u{1f600} marker \u0001 escape \\u0000'
    const started = {
      ...opening(key),
      message: { ...QUESTION, content: odd },
      events: [{ ...START, text: odd }],
    }
    const opened = await place.store.openRun(started)
    if (!('lease' in opened)) throw new TypeError('the run was not opened')
    const events = [{ seq: 2, type: 'text-delta', text: odd, [odd]: [odd] }]
    const requests = [
      { step: 1, record: { body: odd } },
      {
        step: 2,
        record: { body: odd.repeat(200), messages: [{ text: odd }, { text: `${odd}${longBody(2)}` }] },
      },
    ]
    const step = { key, runId: started.runId, fence: opened.lease.fence, stateDelta: { text: odd } }
    const message = { ...ANSWER, content: odd, toolCalls: [{ id: odd, name: 'tool', output: odd }] }
    await place.store.runs.saveStep({ ...step, message, events, requests })
    const session = await place.store.loadSession(key)
    expect(session?.messages.map(({ content }) => content)).toEqual([odd, odd])
    expect(session?.messages[1]?.toolCalls).toEqual(message.toolCalls)
    expect(session?.state).toEqual({ text: odd })
    expect(await place.store.runs.readEvents(started.runId)).toEqual([...started.events, ...events])
    expect(await place.store.runs.readRequests(started.runId)).toEqual(requests)
    await opened.lease.release()
  })

  test('long requests of many steps come back exactly, also after those of an earlier run were pruned', async () => {
    const key = newKey()
    const { lease } = await open(place.store, key)
    const { runId } = opening(key)
    const parts = Array.from({ length: 12 }, (_, index) => ({ role: 'user', text: longBody(index) }))
    const request = (step: number) => ({
      step,
      record: { body: { system: longBody(99), messages: parts.slice(0, step) } },
    })
    const save = (...steps: number[]) =>
      place.store.runs.saveStep({ key, runId, fence: lease.fence, requests: steps.map(request) })
    for (const steps of [[1], [2], [3, 4], [2], [5]]) await save(...steps)
    expect(await place.store.runs.readRequests(runId)).toEqual([1, 2, 3, 4, 5].map(request))
    await place.store.runs.saveRequest(runId, 6, request(6).record)
    for (const step of [7, 8]) await save(step)
    const pruneAll = () => place.store.runs.prune({ appName: key.appName, before: Date.now() + 60_000 })
    await pruneAll()
    for (const step of [9, 10]) await save(step)
    expect(await place.store.runs.readRequests(runId)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(request))
    const events = [{ seq: 2, type: 'run-finish' }]
    await place.store.runs.saveStep({ key, runId, fence: lease.fence, events, release: true })
    lease.released()
    await pruneAll()
    expect(await place.store.runs.readRequests(runId)).toEqual([])
    const next = { ...opening(key), runId: `${runId}-next`, message: { ...QUESTION, id: 'next' } }
    const opened = await place.store.openRun(next)
    if (!('lease' in opened)) throw new TypeError('the run was not opened')
    const requests = [11, 12].map(request)
    await place.store.runs.saveStep({ key, runId: next.runId, fence: opened.lease.fence, requests })
    expect(await place.store.runs.readRequests(next.runId)).toEqual(requests)
    await opened.lease.release()
  })

  test('a step of a run whose session was deleted stores nothing', async () => {
    const key = newKey()
    const { lease } = await open(place.store, key)
    const { runId } = opening(key)
    await place.store.deleteSession(key)
    const step = { key, runId, fence: lease.fence }
    const requests = [{ step: 1, record: { body: longBody(1) } }]
    const refused = place.store.runs.saveStep({ ...step, message: ANSWER, events: [{ seq: 2 }], requests })
    expect((await failureOf(refused)).code).toBe('session-not-found')
    const late = place.store.runs.saveStep({ ...step, events: [{ seq: 2 }], requests, release: true })
    expect((await failureOf(late)).code).toBe('session-not-found')
    expect(await place.store.runs.readEvents(runId)).toEqual([])
    expect(await place.store.runs.readRequests(runId)).toEqual([])
    expect(await place.store.loadSession(key)).toBeUndefined()
    await lease.release()
  })

  test('a run without a lease stores no events: another attempt may have gone on with their numbers', async () => {
    const key = newKey()
    const { lease } = await open(place.store, key)
    const { runId } = opening(key)
    await lease.release()
    const events = [{ seq: 2, type: 'run-finish' }]
    const late = place.store.runs.saveStep({ key, runId, fence: lease.fence, events, release: true })
    expect((await failureOf(late)).code).toBe('lease-lost')
    expect(await place.store.runs.findRun(runId)).toMatchObject({ finished: false, lastSeq: 1 })
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

describe.each(SHARED_DRIVERS)('openings of two stores on one $name database', driver => {
  const place = useStore(driver)

  test('a run id that both use at the same time is opened once, in one session and in two', async () => {
    const other = await openStore(place.url)
    for (let round = 0; round < 20; round++) {
      const [key, apart] = [newKey(), newKey()]
      const runId = `run-${key.appName}`
      const keys = round % 2 === 0 ? [key, key] : [key, apart]
      const outcomes = await Promise.all(
        [place.store, other].map((store, index) =>
          store.openRun({ ...opening(keys[index] ?? key), runId }, { waitMs: 20_000 }).then(async opened => {
            if ('lease' in opened) await opened.lease.release()
            return 'lease' in opened ? 'opened' : 'known'
          }),
        ),
      )
      expect(outcomes.toSorted()).toEqual(['known', 'opened'])
      const winner = keys[outcomes.indexOf('opened')] ?? key
      expect(await place.store.runs.findRun(runId)).toMatchObject({ key: winner, lastSeq: 1, afterSeq: 0 })
      expect((await place.store.readMessages(winner)).length).toBe(1)
      const loser = keys.find(each => each !== winner)
      if (loser) expect(await place.store.loadSession(loser)).toBeUndefined()
      for (const each of keys) await (await place.store.acquireLease(each)).release()
    }
    await other.close()
  })

  test('a run that another store continues keeps its requests', async () => {
    const key = newKey()
    const other = await openStore(place.url)
    const opened = await place.store.openRun(opening(key))
    if (!('lease' in opened)) throw new TypeError('the run was not opened')
    const { runId } = opening(key)
    const request = (step: number) => ({
      step,
      record: { all: Array.from({ length: step }, (_, at) => longBody(at)) },
    })
    for (const [index, store] of [place.store, other, place.store, other].entries())
      await store.runs.saveStep({ key, runId, fence: opened.lease.fence, requests: [request(index + 1)] })
    expect(await place.store.runs.readRequests(runId)).toEqual([1, 2, 3, 4].map(request))
    await opened.lease.release()
    await other.close()
  })
})
