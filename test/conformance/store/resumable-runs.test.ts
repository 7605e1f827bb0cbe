import { describe, expect, test } from 'vitest'
import type { Message, SessionKey } from '../../../src/session/message.js'
import type { JournalEntry, RunOpening, RunStep } from '../../../src/session/run-store.js'
import type { Lease, SessionStore } from '../../../src/session/session-store.js'
import { DRIVERS, failureOf, newKey, useStore } from './drivers.js'

const START = { seq: 1, type: 'run-start' }
const QUEUED = { seq: 1, type: 'run-queued', userId: 'ann', place: 0 }
const FINISH = { seq: 90, type: 'run-finish', finishReason: 'stop' }
const INPUT = { model: 'some model', text: 'a\0b\ud800' }
const CALL = { callId: 'c1', tool: 'pay', effect: 'once', digest: 'digest', args: {} } as const

function answer(id: string, content = 'Because.'): Message {
  return { role: 'assistant', author: 'root', content, timestamp: 2, id }
}

function opening(key: SessionKey, name = 'first'): RunOpening {
  const message: Message = { role: 'user', author: 'user', content: `${name}?`, timestamp: 1, id: name }
  return { key, runId: `${name}-${key.appName}`, message, events: [START], input: INPUT }
}

function orQueue(key: SessionKey, name: string): RunOpening {
  return { ...opening(key, name), orQueue: { events: [QUEUED] } }
}

function entry(id: string, more: Partial<JournalEntry> = {}): JournalEntry {
  return { id, kind: 'model', scope: '', author: 'root', branch: '', ...more }
}

async function open(store: SessionStore, toOpen: RunOpening): Promise<Lease> {
  const opened = await store.openRun(toOpen)
  if (!('lease' in opened)) throw new TypeError(`not opened: ${JSON.stringify(opened)}`)
  return opened.lease
}

describe.each(DRIVERS)('runs that are resumed in $name', driver => {
  const place = useStore(driver)

  /** An open run of a new session, and a step of it. */
  async function begin(key = newKey()) {
    const run = opening(key)
    const lease = await open(place.store, run)
    const step: RunStep = { key, runId: run.runId, fence: lease.fence }
    return { key, run, runId: run.runId, lease, step }
  }

  async function save(step: RunStep) {
    return place.store.runs.saveStep(step)
  }

  function resumable(runId: string) {
    return place.store.runs.readResumable(runId)
  }

  async function resume({ key, runId }: { key: SessionKey; runId: string }, fence: number, seq = 50) {
    const events = [{ seq, type: 'run-resumed' }]
    return place.store.runs.resumeRun({ key, runId, fence, events })
  }

  async function abandonedOf({ appName }: SessionKey) {
    const found = await place.store.runs.listUnfinished({ appName, abandoned: true })
    return found.map(({ runId }) => runId)
  }

  test('a run that was begun is resumable with its input and message until it ends', async () => {
    const { key, runId, lease, step, run } = await begin()
    expect(await resumable(runId)).toMatchObject({
      input: INPUT,
      message: { ...run.message, seq: 1 },
      journal: [],
      state: 'running',
      attempt: 1,
    })
    await save({ ...step, events: [FINISH], release: true })
    lease.released()
    expect(await resumable(runId)).toBeUndefined()
    expect(await place.store.runs.findRun(runId)).toMatchObject({ key, state: 'finished' })
  })

  test('a queued run, an unknown one, and one without input are not resumable', async () => {
    const { key, lease } = await begin()
    const queued = orQueue(key, 'second')
    await place.store.openRun(queued)
    expect(await resumable(queued.runId)).toBeUndefined()
    expect(await resumable(`unknown-${key.appName}`)).toBeUndefined()
    await lease.release()
    const other = newKey()
    const { input, ...bare } = opening(other)
    expect(input).toBeDefined()
    const bareLease = await open(place.store, bare)
    expect(await resumable(bare.runId)).toBeUndefined()
    await bareLease.release()
  })

  test('a run whose message replaced an earlier one is resumable with that message', async () => {
    const key = newKey()
    await place.store.createSession(key)
    await place.store.appendMessage(key, opening(key).message)
    await place.store.appendMessage(key, answer('later'))
    const lease = await open(place.store, opening(key))
    expect((await resumable(opening(key).runId))?.message).toMatchObject({ id: 'first', seq: 1 })
    await lease.release()
  })

  test('a run whose message has no id is resumable with the first message of the run', async () => {
    const key = newKey()
    await place.store.createSession(key)
    await place.store.appendMessage(key, answer('before'))
    const { message, ...rest } = opening(key)
    const { id, ...unnamed } = message
    const lease = await open(place.store, { ...rest, message: unnamed })
    expect((await resumable(rest.runId))?.message).toMatchObject({ ...unnamed, seq: 2 })
    expect(id).toBeDefined()
    await lease.release()
  })

  test('a queued run that was begun is resumable', async () => {
    const { key, lease, step } = await begin()
    const second = orQueue(key, 'second')
    expect(await place.store.openRun(second)).toEqual({ queued: 1 })
    await save({ ...step, events: [FINISH], release: true })
    lease.released()
    const next = await place.store.acquireLease(key)
    const { runId, message } = second
    await place.store.beginRun({ key, runId, fence: next.fence, message, events: [{ ...START, seq: 2 }] })
    expect(await resumable(runId)).toMatchObject({
      input: INPUT,
      message: { id: 'second', seq: 2 },
      state: 'running',
      attempt: 1,
    })
    await next.release()
  })

  test('the journal keeps its entries in order, any text and state, with the numbers of their messages', async () => {
    const { runId, lease, step } = await begin()
    const odd = entry('odd', {
      kind: 'event',
      scope: 'm/c',
      author: 'a\0b',
      branch: 'x.\ud800',
      delta: { 'temp:step': 1, list: [null, { deep: 'é' }], gone: undefined, ['__proto__']: 1 },
      before: { gone: 'value', list: 'nul \0' },
    })
    await save({ ...step, message: answer('a1'), journal: [odd, entry('a1')], events: [{ seq: 2 }] })
    await save({ ...step, journal: [entry('no message', { kind: 'event' })] })
    await save({ ...step, message: answer('a2'), journal: [entry('a2')] })
    const journal = (await resumable(runId))?.journal
    expect(journal).toEqual([
      odd,
      { ...entry('a1'), seq: 2 },
      entry('no message', { kind: 'event' }),
      { ...entry('a2'), seq: 3 },
    ])
    expect(Object.keys(journal?.[0]?.delta ?? {}).sort()).toEqual(['__proto__', 'gone', 'list', 'temp:step'])
    expect(journal?.[2]).not.toHaveProperty('seq')
    await lease.release()
  })

  test('a journal entry with a very long id gets the number of its message', async () => {
    const { runId, lease, step } = await begin()
    const id = 'long '.repeat(1000)
    await save({ ...step, message: answer(id), journal: [entry(id)] })
    expect((await resumable(runId))?.journal).toEqual([{ ...entry(id), seq: 2 }])
    await lease.release()
  })

  test.each(['a step', 'appended events'])(
    'a run that ends by %s is not resumable, and a step after its end is refused',
    async way => {
      const { key, runId, lease, step } = await begin()
      await save({ ...step, message: answer('a1'), journal: [entry('a1')] })
      if (way === 'a step')
        await save({ ...step, message: answer('a2'), journal: [entry('a2')], events: [FINISH] })
      else await place.store.runs.appendEvents(key, runId, [FINISH])
      expect(await resumable(runId)).toBeUndefined()
      const before = await place.store.readMessages(key)
      const late = save({ ...step, message: answer('a3'), journal: [entry('a3')] })
      expect((await failureOf(late)).code).toBe('run-interrupted')
      expect(await place.store.readMessages(key)).toEqual(before)
      await lease.release()
      expect(await place.store.erase(key)).toMatchObject({ runs: 1 })
    },
  )

  test('erasing a user deletes and counts the entries of runs', async () => {
    const { key, runId, step } = await begin()
    await save({ ...step, message: answer('a1'), journal: [entry('a1'), entry('event', { kind: 'event' })] })
    expect(await place.store.erase(key)).toMatchObject({ runs: 1, entries: 2 })
    expect(await place.store.erase(key)).toMatchObject({ runs: 0, entries: 0 })
    expect(await resumable(runId)).toBeUndefined()
  })

  test('deleting a session deletes the entries of its runs', async () => {
    const { key, runId, step } = await begin()
    await save({ ...step, message: answer('a1'), journal: [entry('a1')] })
    await place.store.deleteSession(key)
    expect(await resumable(runId)).toBeUndefined()
    expect(await place.store.erase(key)).toMatchObject({ entries: 0 })
  })

  test('a step stores its message and state in a nested session under the lease of the run', async () => {
    const { key, runId, lease, step } = await begin()
    const at = { ...key, appName: `${key.appName}-inner` }
    await place.store.createSession(at, {}, { nestedIn: key.appName })
    const stateDelta = { mood: 'calm', 'user:name': 'Ann' }
    const events = [{ seq: 2, type: 'usage' }]
    const calls = [{ id: 'n1/c1', status: 'intent', call: CALL }] as const
    const journal = [entry('n1', { scope: 'm/c' })]
    const saved = await save({ ...step, at, message: answer('n1'), stateDelta, journal, events, calls })
    expect(saved).toEqual({ seq: 1, calls: [{ id: 'n1/c1', ordinal: 0, attempt: 0 }] })
    expect(await save({ ...step, at, message: answer('n2') })).toEqual({ seq: 2 })
    await save({ ...step, at, stateDelta: { mood: undefined } })
    const inner = await place.store.loadSession(at)
    expect(inner?.messages.map(({ id }) => id)).toEqual(['n1', 'n2'])
    expect(inner?.state).toEqual({ 'user:name': 'Ann' })
    const outer = await place.store.loadSession(key)
    expect(outer?.messages.map(({ id }) => id)).toEqual(['first'])
    expect(outer?.state).toEqual({})
    expect((await resumable(runId))?.journal).toEqual([{ ...entry('n1', { scope: 'm/c' }), seq: 1, at }])
    expect(await place.store.runs.readEvents(runId)).toEqual([START, ...events])
    expect(await place.store.runs.readCalls(runId)).toMatchObject([{ id: 'n1/c1', status: 'intent' }])
    await lease.release()
    const next = await place.store.acquireLease(key)
    const late = await failureOf(save({ ...step, at, message: answer('n3') }))
    expect(late.code).toBe('lease-lost')
    await next.release()
    expect((await place.store.readMessages(at)).length).toBe(2)
  })

  test('a step for a nested session that does not exist stores nothing', async () => {
    const { key, runId, lease, step } = await begin()
    const at = { ...key, appName: `${key.appName}-inner` }
    const calls = [{ id: 'n1/c1', status: 'intent', call: CALL }] as const
    const failure = await failureOf(save({ ...step, at, message: answer('n1'), calls, events: [{ seq: 2 }] }))
    expect(failure.code).toBe('session-not-found')
    expect(await place.store.runs.readEvents(runId)).toEqual([START])
    expect(await place.store.runs.readCalls(runId)).toEqual([])
    await lease.release()
  })

  test('large arguments in events of a nested session come back', async () => {
    const { key, runId, lease, step } = await begin()
    const at = { ...key, appName: `${key.appName}-inner` }
    await place.store.createSession(at, {}, { nestedIn: key.appName })
    const args = { text: 'x'.repeat(50_000) }
    const toolCalls = [{ id: 'c1', name: 'put', input: JSON.stringify(args), kind: 'call' as const }]
    const events = [{ seq: 2, type: 'tool-call', id: 'c1', name: 'put', args }]
    await save({ ...step, at, message: { ...answer('n1', ''), toolCalls }, events })
    expect(await place.store.runs.readEvents(runId, { afterSeq: 1 })).toEqual(events)
    await lease.release()
  })

  test('the ledger keeps the actions of a call with its result, and prunes both', async () => {
    const { key, runId, lease, step } = await begin()
    const actions = { stateDelta: { 'temp:a': 'nul \0' }, transferToAgent: 'helper' }
    await save({ ...step, calls: [{ id: 'm/c1', status: 'started', call: CALL }] })
    const done = { id: 'm/c1', status: 'done', result: { ok: true }, actions } as const
    await save({ ...step, calls: [done] })
    expect(await place.store.runs.readCalls(runId)).toMatchObject([{ result: { ok: true }, actions }])
    await save({ ...step, calls: [{ id: 'm/c1', status: 'done' }] })
    expect(await place.store.runs.readCalls(runId)).toMatchObject([{ result: { ok: true }, actions }])
    await save({ ...step, events: [FINISH], release: true })
    lease.released()
    await place.store.runs.prune({ appName: key.appName, before: Date.now() + 60_000 })
    const [kept] = await place.store.runs.readCalls(runId)
    expect(kept).toMatchObject({ id: 'm/c1', status: 'done' })
    expect(kept).not.toHaveProperty('actions')
    expect(kept).not.toHaveProperty('result')
    expect(await place.store.erase(key)).toMatchObject({ toolCalls: 1 })
  })

  test('a call that is added as failed keeps its actions', async () => {
    const { runId, lease, step } = await begin()
    const actions = { escalate: true }
    await save({ ...step, calls: [{ id: 'm/c1', status: 'failed', call: CALL, result: 'no', actions }] })
    expect(await place.store.runs.readCalls(runId)).toMatchObject([{ result: 'no', actions }])
    await lease.release()
  })

  test('a run that waits for a person blocks the runs after it, and is due when it has a signal', async () => {
    const { key, runId, lease, step } = await begin()
    await save({ ...step, events: [{ seq: 2, type: 'approval-request' }], pause: 'waiting', release: true })
    lease.released()
    const waiting = { state: 'waiting', finished: false }
    expect(await place.store.runs.findRun(runId)).toMatchObject(waiting)
    expect(await place.store.runs.listRuns(key)).toMatchObject([waiting])
    expect(await resumable(runId)).toMatchObject({ state: 'waiting', attempt: 1 })
    const refused = place.store.openRun(opening(key, 'second'), { waitMs: 5 })
    expect((await failureOf(refused)).code).toBe('session-busy')
    const third = orQueue(key, 'third')
    expect(await place.store.openRun(third)).toEqual({ queued: 1 })
    expect(await place.store.runs.findRun(third.runId)).toMatchObject({ state: 'queued', place: 1 })
    const { appName } = key
    const all = await place.store.runs.listUnfinished({ appName })
    expect(all.map(each => each.runId)).toEqual([runId, third.runId])
    expect(await abandonedOf(key)).toEqual([])
    await place.store.runs.sendSignal(runId, { type: 'stop' })
    expect(await abandonedOf(key)).toEqual([runId])
    const next = await place.store.acquireLease(key)
    expect(await abandonedOf(key)).toEqual([])
    const { message } = third
    const early = { key, runId: third.runId, fence: next.fence, message, events: [{ ...START, seq: 2 }] }
    expect(await place.store.beginRun(early)).toBeUndefined()
    expect(await place.store.runs.findRun(third.runId)).toMatchObject({ state: 'queued', place: 1 })
    expect(await resume({ key, runId }, next.fence)).toEqual({ attempt: 1 })
    expect(await resumable(runId)).toMatchObject({ state: 'running', attempt: 1 })
    await save({ ...step, fence: next.fence, events: [FINISH] })
    expect(await place.store.beginRun(early)).toEqual({ seq: 2 })
    await next.release()
  })

  test('a run that was handed over is running, listed first, and continued without counting an attempt', async () => {
    const { key, runId, lease, step } = await begin()
    await save({ ...step, pause: 'handover', release: true })
    lease.released()
    expect(await place.store.runs.findRun(runId)).toMatchObject({ state: 'running', finished: false })
    expect(await resumable(runId)).toMatchObject({ state: 'handover' })
    expect(await abandonedOf(key)).toEqual([runId])
    expect(await place.store.openRun(orQueue(key, 'second'))).toEqual({ unfinished: [runId] })
    const next = await place.store.acquireLease(key)
    expect(await resume({ key, runId }, next.fence)).toEqual({ attempt: 1 })
    expect(await resumable(runId)).toMatchObject({ state: 'running', attempt: 1 })
    expect(await place.store.runs.readEvents(runId)).toEqual([START, { seq: 50, type: 'run-resumed' }])
    await next.release()
  })

  test('attempts count crashes since the last message or answer that was stored', async () => {
    const { key, runId, lease, step } = await begin()
    await lease.release()
    const next = await place.store.acquireLease(key)
    const { fence } = next
    expect(await resume({ key, runId }, fence, 50)).toEqual({ attempt: 2 })
    expect(await resume({ key, runId }, fence, 51)).toEqual({ attempt: 3 })
    expect(await resumable(runId)).toMatchObject({ attempt: 3 })
    await save({ ...step, fence, events: [{ seq: 52 }] })
    expect(await resumable(runId)).toMatchObject({ attempt: 3 })
    await save({ ...step, fence, message: answer('a1'), journal: [entry('a1')] })
    expect(await resumable(runId)).toMatchObject({ attempt: 1 })
    expect(await resume({ key, runId }, fence, 53)).toEqual({ attempt: 2 })
    // A person's answer is progress too.
    const answered = { seq: 54, type: 'approval-answer', id: 'c1', name: 'pay', answer: 'once' }
    await save({ ...step, fence, events: [answered] })
    expect(await resumable(runId)).toMatchObject({ attempt: 1 })
    expect(await resume({ key, runId }, fence, 55)).toEqual({ attempt: 2 })
    await save({ ...step, fence, pause: 'handover', release: true })
    next.released()
    const last = await place.store.acquireLease(key)
    expect(await resume({ key, runId }, last.fence, 56)).toEqual({ attempt: 2 })
    await last.release()
  })

  test('a run that has ended, is queued, or belongs to another session is not resumed', async () => {
    const { key, runId, lease, step } = await begin()
    const second = orQueue(key, 'second')
    await place.store.openRun(second)
    expect(await resume({ key, runId: second.runId }, lease.fence)).toBeUndefined()
    expect(await resume({ key, runId: `unknown-${key.appName}` }, lease.fence)).toBeUndefined()
    await save({ ...step, events: [FINISH] })
    expect(await resume({ key, runId }, lease.fence)).toBeUndefined()
    await lease.release()
    const lost = resume({ key, runId: second.runId }, lease.fence)
    expect((await failureOf(lost)).code).toBe('lease-lost')
    const other = await begin()
    expect(await resume({ key: other.key, runId: second.runId }, other.lease.fence)).toBeUndefined()
    await other.lease.release()
  })

  test('a step that comes after its run was paused is refused; the pause sent again is answered; both change nothing', async () => {
    const { key, runId, lease, step } = await begin()
    await save({ ...step, events: [{ seq: 2, type: 'usage' }] })
    const pause: RunStep = { ...step, message: answer('a1'), pause: 'waiting', release: true }
    const saved = await save(pause)
    const refused: readonly RunStep[] = [
      { ...step, pause: 'handover', release: true },
      { ...step, journal: [entry('a2')] },
      { ...pause, message: answer('a2') },
    ]
    for (const late of refused) expect((await failureOf(save(late))).code).toBe('lease-lost')
    expect(await save(pause)).toEqual(saved)
    lease.released()
    expect(await resumable(runId)).toMatchObject({ state: 'waiting', journal: [] })
    expect((await place.store.readMessages(key)).length).toBe(2)
  })

  test('steps that store equal entries and change a call differently are steps of their own', async () => {
    const { runId, lease, step } = await begin()
    const one = { id: 'm/c1' }
    await save({ ...step, calls: [{ ...one, status: 'started', call: CALL }] })
    await save({ ...step, calls: [{ ...one, status: 'unknown' }] })
    await save({ ...step, calls: [{ ...one, status: 'unknown', answer: 'run' }] })
    expect(await place.store.runs.readCalls(runId)).toMatchObject([{ status: 'unknown', answer: 'run' }])
    await lease.release()
  })

  test('steps that store nothing in the log are steps of their own', async () => {
    const { key, runId, lease, step } = await begin()
    const model = `model-${key.appName}`
    const calibration = [{ model, bytes: 4, tokens: 1 }]
    await save({ ...step, calibration })
    await save({ ...step, calibration: [{ model, bytes: 6, tokens: 1 }] })
    await save({ ...step, pause: 'handover', release: true })
    lease.released()
    expect(await place.store.calibration.read(model)).toEqual({ bytes: 10, tokens: 2 })
    expect(await resumable(runId)).toMatchObject({ state: 'handover' })
    await (await place.store.acquireLease(key)).release()
  })

  test('a step that is sent again, because its acknowledgement was lost, changes nothing', async () => {
    const { key, runId, lease, step } = await begin()
    const sent: RunStep = {
      ...step,
      message: answer('a1'),
      stateDelta: { mood: 'calm' },
      journal: [entry('a1', { delta: { mood: 'calm' } }), entry('event', { kind: 'event' })],
      events: [
        { seq: 2, type: 'usage' },
        { seq: 3, type: 'step-finish' },
      ],
      calls: [
        { id: 'a1/c1', status: 'started', call: CALL },
        { id: 'a1/c2', status: 'intent', call: { ...CALL, callId: 'c2' } },
      ],
    }
    const first = await save(sent)
    const before = [await resumable(runId), await place.store.runs.readEvents(runId)]
    expect(await save(sent)).toEqual(first)
    expect([await resumable(runId), await place.store.runs.readEvents(runId)]).toEqual(before)
    expect(await place.store.runs.readCalls(runId)).toMatchObject([
      { id: 'a1/c1', ordinal: 0, attempt: 1, status: 'started' },
      { id: 'a1/c2', ordinal: 1, attempt: 0, status: 'intent' },
    ])
    const again = { ...step, calls: [{ id: 'a1/c1', status: 'started' }], events: [{ seq: 4 }] } as const
    expect(await save(again)).toEqual({ calls: [{ id: 'a1/c1', ordinal: 0, attempt: 2 }] })
    expect(await save(again)).toEqual({ calls: [{ id: 'a1/c1', ordinal: 0, attempt: 2 }] })
    expect((await place.store.readMessages(key)).length).toBe(2)
    await lease.release()
  })

  test('pruning leaves the events of a paused run', async () => {
    const { key, runId, lease, step } = await begin()
    await save({ ...step, pause: 'waiting', release: true })
    lease.released()
    await place.store.runs.sendSignal(runId, { type: 'stop' })
    await place.store.runs.prune({ appName: key.appName, before: Date.now() + 60_000 })
    expect(await place.store.runs.readEvents(runId)).toEqual([START])
    expect(await abandonedOf(key)).toEqual([runId])
    expect(await resumable(runId)).toMatchObject({ state: 'waiting' })
    await place.store.deleteSession(key)
  })

  test.each([
    ['at of another user', { at: { appName: 'inner', userId: 'bob', sessionId: 'one' } }, 'at'],
    ['pause without release', { pause: 'waiting' }, 'pause'],
    ['an unknown pause', { pause: 'break', release: true }, 'pause'],
    ['a journal that is no array', { journal: {} }, 'journal'],
    ['an entry without author', { journal: [{ ...entry('a'), author: undefined }] }, 'journal[0].author'],
    ['an entry of an unknown kind', { journal: [{ ...entry('a'), kind: 'x' }] }, 'journal[0].kind'],
    ['two entries with one id', { journal: [entry('a'), entry('a')] }, 'journal[1].id'],
    ['actions that are no object', { calls: [{ id: 'a', status: 'done', actions: 1 }] }, 'calls[0].actions'],
  ])('%s is refused', async (_, more, field) => {
    const step = { key: newKey(), runId: 'run', fence: 1, ...more } as RunStep
    const failure = await failureOf(save(step))
    expect(failure.code).toBe('invalid-argument')
    expect(failure.message).toContain(`${field} must`)
  })
})
