import { describe, expect, test, vi } from 'vitest'
import type { Message, SessionKey } from '../../../src/session/message.js'
import type { RunStep, ToolCallChange, ToolCallFacts } from '../../../src/session/run-store.js'
import type { Lease } from '../../../src/session/session-store.js'
import { DRIVERS, failureOf, newKey, useStore } from './drivers.js'

const QUESTION: Message = { role: 'user', author: 'user', content: 'Why?', timestamp: 1, id: 'question' }

function facts(digest: string, callId = 'c1'): ToolCallFacts {
  return { callId, tool: 'charge', effect: 'once', digest, args: { amount: 5 } }
}

function intent(id: string, digest = 'd1'): ToolCallChange {
  return { id, status: 'intent', call: facts(digest) }
}

interface Run {
  key: SessionKey
  runId: string
  lease: Lease
}

describe.each(DRIVERS)('the ledger of tool calls in $name', driver => {
  const place = useStore(driver)

  async function openRun(key = newKey(), name = 'run'): Promise<Run> {
    const runId = `${name}-${key.appName}`
    const message = { ...QUESTION, id: `question of ${name}` }
    const opened = await place.store.openRun({ key, runId, message, events: [{ seq: 1 }] })
    if (!('lease' in opened)) throw new TypeError('the run was not opened')
    return { key, runId, lease: opened.lease }
  }

  async function save({ key, runId, lease }: Run, calls: ToolCallChange[], more: Partial<RunStep> = {}) {
    const saved = await place.store.runs.saveStep({ key, runId, fence: lease.fence, calls, ...more })
    return saved.calls
  }

  async function finish(run: Run): Promise<void> {
    await save(run, [], { events: [{ seq: 99, type: 'run-finish' }], release: true })
    run.lease.released()
  }

  const rows = (runId: string) => place.store.runs.readCalls(runId)

  test('a call is stored with the message that holds it, and follows its tool', async () => {
    const run = await openRun()
    const message = { role: 'assistant', author: 'root', content: '', timestamp: 2, id: 'm1' }
    const { key, runId, lease } = run
    const step = { key, runId, fence: lease.fence, message, events: [{ seq: 2, type: 'tool-call' }] }
    expect(await place.store.runs.saveStep({ ...step, calls: [intent('m1/c1')] })).toEqual({
      seq: 2,
      calls: [{ id: 'm1/c1', ordinal: 0, attempt: 0 }],
    })
    expect(await rows(runId)).toMatchObject([
      { ...facts('d1'), id: 'm1/c1', runId, ordinal: 0, attempt: 0, status: 'intent' },
    ])
    expect(await save(run, [{ id: 'm1/c1', status: 'started' }])).toEqual([
      { id: 'm1/c1', ordinal: 0, attempt: 1 },
    ])
    expect(await save(run, [{ id: 'm1/c1', status: 'done', result: { ok: true } }])).toEqual([
      { id: 'm1/c1', ordinal: 0, attempt: 1 },
    ])
    const [row] = await rows(runId)
    expect(row).toMatchObject({ status: 'done', result: { ok: true }, attempt: 1 })
    expect(row?.changedAt).toBeGreaterThan(0)
    expect(await rows('unknown')).toEqual([])
    await finish(run)
  })

  test('the ordinal of a tool call counts earlier equal calls of the session, those of the same step in order', async () => {
    const first = await openRun()
    expect(await save(first, [intent('a'), intent('b', 'd2'), intent('c'), intent('d')])).toMatchObject([
      { ordinal: 0 },
      { ordinal: 0 },
      { ordinal: 1 },
      { ordinal: 2 },
    ])
    await finish(first)
    const second = await openRun(first.key, 'second')
    expect(await save(second, [intent('a'), intent('b', 'd3')])).toMatchObject([
      { ordinal: 3 },
      { ordinal: 0 },
    ])
    const elsewhere = await openRun()
    expect(await save(elsewhere, [intent('a')])).toMatchObject([{ ordinal: 0 }])
    for (const run of [second, elsewhere]) await finish(run)
  })

  test('an attempt that is taken back is not counted, also when the step is sent twice', async () => {
    const run = await openRun()
    await save(run, [intent('a'), intent('b', 'd2')])
    const started = [
      { id: 'a', status: 'started' },
      { id: 'b', status: 'started' },
    ] as const
    await save(run, [...started])
    const step = { events: [{ seq: 2, type: 'text-delta' }] }
    const takenBack = { id: 'a', status: 'intent', isTakenBack: true } as const
    for (const _time of [1, 2]) expect(await save(run, [takenBack], step)).toMatchObject([{ attempt: 0 }])
    expect(await rows(run.runId)).toMatchObject([
      { id: 'a', status: 'intent', attempt: 0 },
      { id: 'b', status: 'started', attempt: 1 },
    ])
    await save(run, [
      { id: 'a', status: 'started' },
      { id: 'b', status: 'started' },
    ])
    await save(run, [takenBack, { id: 'b', status: 'started', isTakenBack: true }])
    expect(await rows(run.runId)).toMatchObject([
      { id: 'a', status: 'intent', attempt: 0 },
      { id: 'b', status: 'started', attempt: 1 },
    ])
    await finish(run)
  })

  test('a change may give a stored call another ordinal, alone and together with others', async () => {
    const run = await openRun()
    await save(run, [intent('a'), intent('b'), intent('c')])
    expect(await save(run, [{ id: 'c', status: 'started', ordinal: 0 }])).toMatchObject([{ ordinal: 0 }])
    await save(run, [
      { id: 'b', status: 'unknown', ordinal: 7 },
      { id: 'a', status: 'done' },
    ])
    expect((await rows(run.runId)).map(({ id, ordinal }) => [id, ordinal])).toEqual([
      ['a', 0],
      ['b', 7],
      ['c', 0],
    ])
    await finish(run)
  })

  test('a call that is repeated while its twin is unknown has the same ordinal, and sees the twin', async () => {
    const first = await openRun()
    await save(first, [intent('a'), intent('b')])
    await save(first, [{ id: 'a', status: 'done', result: 1 }])
    await save(first, [{ id: 'b', status: 'started' }])
    expect(await save(first, [{ id: 'b', status: 'unknown' }])).toEqual([{ id: 'b', ordinal: 1, attempt: 1 }])
    await finish(first)
    const { key, runId } = first
    expect(await place.store.runs.listUnknownCalls(key)).toMatchObject([
      { id: 'b', runId, status: 'unknown' },
    ])
    const second = await openRun(key, 'second')
    const twin = { runId, id: 'b', attempt: 1 }
    expect(await save(second, [intent('b')])).toEqual([
      { id: 'b', ordinal: 1, attempt: 0, unknownTwin: twin },
    ])
    const answered = { ...twin, answer: 'happened' }
    await save(second, [{ id: 'b', runId, status: 'unknown', answer: 'happened' }])
    expect(await save(second, [{ id: 'b', status: 'started' }])).toMatchObject([
      { attempt: 1, unknownTwin: answered },
    ])
    await save(second, [{ id: 'b', runId, status: 'done', result: 'found' }])
    expect(await rows(runId)).toMatchObject([
      { id: 'a', status: 'done', result: 1 },
      { id: 'b', status: 'done', result: 'found', ordinal: 1, answer: 'happened' },
    ])
    expect(await place.store.runs.listUnknownCalls(key)).toEqual([])
    expect(await save(second, [intent('c')])).toEqual([{ id: 'c', ordinal: 3, attempt: 0 }])
    await finish(second)
  })

  test('the newest unknown twin is the one that is named', async () => {
    const run = await openRun()
    await save(run, [intent('a'), intent('b')])
    await save(run, [
      { id: 'a', status: 'unknown' },
      { id: 'b', status: 'unknown' },
    ])
    expect(await save(run, [intent('c'), intent('d')])).toMatchObject([
      { ordinal: 0, unknownTwin: { id: 'b' } },
      { ordinal: 1, unknownTwin: { id: 'b' } },
    ])
    expect((await place.store.runs.listUnknownCalls(run.key)).map(({ id }) => id)).toEqual(['a', 'b'])
    await finish(run)
  })

  test('several changes of one call in one step, and changes mixed with new calls, apply in order', async () => {
    const run = await openRun()
    expect(
      await save(run, [intent('a'), { id: 'a', status: 'started' }, { id: 'a', status: 'done', result: 7 }]),
    ).toEqual(Array.from({ length: 3 }, () => ({ id: 'a', ordinal: 0, attempt: 1 })))
    expect(
      await save(run, [
        { id: 'a', status: 'unknown' },
        intent('b'),
        { id: 'a', status: 'started' },
        intent('c'),
      ]),
    ).toEqual([
      { id: 'a', ordinal: 0, attempt: 2 },
      { id: 'b', ordinal: 0, attempt: 0 },
      { id: 'a', ordinal: 0, attempt: 2 },
      { id: 'c', ordinal: 2, attempt: 0 },
    ])
    const [first] = await rows(run.runId)
    expect(first).toMatchObject({ status: 'started' })
    expect(first).not.toHaveProperty('result')
    await finish(run)
  })

  test('a step that is stored again changes no ordinal, and takes nothing back', async () => {
    const run = await openRun()
    for (let round = 0; round < 2; round++)
      expect(await save(run, [intent('a'), intent('b')])).toMatchObject([{ ordinal: 0 }, { ordinal: 1 }])
    await save(run, [{ id: 'a', status: 'started' }])
    await save(run, [{ id: 'a', status: 'done', result: 'kept' }])
    await save(run, [{ id: 'b', status: 'unknown' }])
    expect(await save(run, [intent('a'), intent('b'), intent('c')])).toMatchObject([
      { ordinal: 0, attempt: 1, unknownTwin: { id: 'b' } },
      { ordinal: 1, attempt: 0 },
      { ordinal: 1, attempt: 0 },
    ])
    expect(await rows(run.runId)).toMatchObject([
      { id: 'a', status: 'done', result: 'kept' },
      { id: 'b', status: 'unknown' },
      { id: 'c', status: 'intent' },
    ])
    await finish(run)
  })

  test('calls of many steps that are stored at the same time have different ordinals', async () => {
    const run = await openRun()
    const places = await Promise.all(
      Array.from({ length: 12 }, (_, index) => save(run, [intent(`c${index}`)])),
    )
    const ordinals = places.flatMap(some => some?.map(({ ordinal }) => ordinal) ?? [])
    expect(ordinals.toSorted((one, other) => one - other)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
    await finish(run)
  })

  test('a change of an unknown call without its facts stores nothing of the step', async () => {
    const run = await openRun()
    const events = [{ seq: 2, type: 'usage' }]
    const saved = save(run, [intent('a'), { id: 'b', status: 'done' }], { events, stateDelta: { a: 1 } })
    expect((await failureOf(saved)).code).toBe('invalid-argument')
    expect((await failureOf(save(run, [{ id: 'b', status: 'done' }]))).code).toBe('invalid-argument')
    expect(await rows(run.runId)).toEqual([])
    expect(await place.store.runs.readEvents(run.runId)).toEqual([{ seq: 1 }])
    expect((await place.store.loadSession(run.key))?.state).toEqual({})
    await finish(run)
  })

  test('a call of a run of another session cannot be changed', async () => {
    const [run, other] = [await openRun(), await openRun()]
    await save(other, [intent('a')])
    const failure = await failureOf(save(run, [{ id: 'a', runId: other.runId, status: 'done' }]))
    expect(failure.code).toBe('invalid-argument')
    expect(await rows(other.runId)).toMatchObject([{ status: 'intent' }])
    for (const each of [run, other]) await finish(each)
  })

  test('the ledger is written only under the lease, and in the step that releases it', async () => {
    const run = await openRun()
    await save(run, [intent('a')])
    await save(run, [{ id: 'a', status: 'started' }], { release: true })
    run.lease.released()
    for (const changes of [[{ id: 'a', status: 'done' } as const], [intent('b')]])
      expect((await failureOf(save(run, changes))).code).toBe('lease-lost')
    expect(await rows(run.runId)).toMatchObject([{ id: 'a', status: 'started', attempt: 1 }])
    await (await place.store.acquireLease(run.key)).release()
  })

  test('any id, name and data of a tool call comes back as it was', async () => {
    const run = await openRun()
    const odd = 'nul \0 half \ud83d other \udc00 marker \u0001 escape \\u0000'
    const call = {
      callId: odd,
      tool: odd,
      effect: 'read',
      digest: 'd',
      args: { [odd]: [odd, null] },
    } as const
    const ids = [odd, `${odd}${'x'.repeat(5000)}`, `${odd}${'x'.repeat(5000)}y`, '']
    await save(
      run,
      ids.map(id => ({ id, status: 'intent', call })),
    )
    await save(
      run,
      ids.map(id => ({ id, status: 'failed', result: { text: odd } })),
    )
    const stored = await rows(run.runId)
    expect(stored).toMatchObject(ids.map((id, ordinal) => ({ ...call, id, ordinal, result: { text: odd } })))
    await save(run, [{ id: odd, status: 'done', result: null }])
    expect((await rows(run.runId))[0]).toMatchObject({ status: 'done', result: null })
    await finish(run)
  })

  test('a run that ends with a started call leaves it unknown, in a step and by its events alone', async () => {
    const run = await openRun()
    await save(run, [intent('m1/c1', 'd1'), intent('m1/c2', 'd2'), intent('m1/c3', 'd3')])
    await save(run, [{ id: 'm1/c1', status: 'started' }])
    await save(run, [{ id: 'm1/c2', status: 'started' }])
    const last = [{ id: 'm1/c2', status: 'done' as const, result: { ok: true } }]
    await save(run, last)
    await finish(run)
    const statuses = async ({ runId }: Run) => (await rows(runId)).map(({ status }) => status)
    expect(await statuses(run)).toEqual(['unknown', 'done', 'intent'])
    const other = await openRun(run.key, 'other')
    await save(other, [intent('m2/c1', 'd4')])
    await save(other, [{ id: 'm2/c1', status: 'started' }])
    await place.store.runs.appendEvents(other.key, other.runId, [{ seq: 99, type: 'run-finish' }])
    expect(await statuses(other)).toEqual(['unknown'])
    await other.lease.release()
  })

  test('pruning forgets results of ended runs, and the ordinals go on', async () => {
    const first = await openRun()
    await save(first, [intent('a')])
    await save(first, [{ id: 'a', status: 'done', result: 'x' }])
    await finish(first)
    const second = await openRun(first.key, 'second')
    await save(second, [intent('a')])
    await save(second, [{ id: 'a', status: 'done', result: 'y' }])
    const since = Date.now()
    await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(since))
    await place.store.runs.prune({ appName: first.key.appName, before: Date.now() })
    const [pruned] = await rows(first.runId)
    expect(pruned).toMatchObject({ status: 'done', ordinal: 0, args: { amount: 5 } })
    expect(pruned).not.toHaveProperty('result')
    expect(await rows(second.runId)).toMatchObject([{ result: 'y' }])
    expect(await save(second, [intent('b')])).toMatchObject([{ ordinal: 2 }])
    await finish(second)
  })

  test('a copy of a session has the unknown calls of the messages that it copies, and no others', async () => {
    const run = await openRun()
    for (const id of ['m1', 'm/2']) {
      const message = { role: 'assistant', author: 'root', content: '', timestamp: 2, id }
      await save(run, [intent(`${id}/done`, id), intent(`${id}/c1`, id)], { message })
      await save(run, [{ id: `${id}/done`, status: 'done' }])
      await save(run, [{ id: `${id}/c1`, status: 'unknown' }])
    }
    await save(run, [intent('elsewhere', 'd3')])
    await save(run, [{ id: 'elsewhere', status: 'unknown' }])
    await finish(run)
    const unknown = async (sessionId: string, options?: { throughSeq: number }) => {
      await place.store.forkSession(run.key, sessionId, options)
      const calls = await place.store.runs.listUnknownCalls({ ...run.key, sessionId })
      return calls.map(({ id }) => id)
    }
    expect(await unknown('all')).toEqual(['m1/c1', 'm/2/c1', 'elsewhere'])
    expect(await unknown('part', { throughSeq: 2 })).toEqual(['m1/c1', 'elsewhere'])
    // The message of the last one is not known.
    expect(await unknown('none', { throughSeq: 0 })).toEqual(['elsewhere'])
    const copied = await openRun({ ...run.key, sessionId: 'all' }, 'copied')
    const twin = { runId: run.runId, id: 'm1/c1', attempt: 0 }
    expect(await save(copied, [intent('x', 'm1')])).toMatchObject([{ ordinal: 0, unknownTwin: twin }])
    await save(copied, [{ id: 'm1/c1', runId: run.runId, status: 'done', result: 'found' }])
    await finish(copied)
    const left = async (sessionId: string) => {
      const calls = await place.store.runs.listUnknownCalls({ ...run.key, sessionId })
      return calls.map(({ id }) => id)
    }
    expect(await left('all')).toEqual(['m/2/c1', 'elsewhere'])
    expect(await left(run.key.sessionId)).toEqual(['m1/c1', 'm/2/c1', 'elsewhere'])
    expect(await rows(run.runId)).toMatchObject(
      ['m1/done', 'm1/c1', 'm/2/done', 'm/2/c1', 'elsewhere'].map(id => ({ id })),
    )
    expect(await rows(run.runId)).toHaveLength(5)
  })

  test('a copy of a session starts with an empty ledger; deleting and erasing remove it', async () => {
    const run = await openRun()
    await save(run, [intent('a')])
    await finish(run)
    const copy = { ...run.key, sessionId: 'copy' }
    await place.store.forkSession(run.key, 'copy')
    const copied = await openRun(copy, 'copied')
    expect(await save(copied, [intent('a')])).toMatchObject([{ ordinal: 0 }])
    await finish(copied)
    await place.store.deleteSession(copy)
    expect(await rows(copied.runId)).toEqual([])
    expect(await place.store.erase(run.key)).toMatchObject({ sessions: 1, toolCalls: 1 })
    expect(await rows(run.runId)).toEqual([])
  })

  test('invalid changes of tool calls are refused', async () => {
    const run = await openRun()
    const changes: unknown[] = [
      'a',
      { id: 5, status: 'intent' },
      { id: 'a', status: 'over' },
      { id: 'a', status: 'done', runId: '' },
      { id: 'a', status: 'intent', call: { ...facts('d'), digest: '' } },
      { id: 'a', status: 'intent', call: { ...facts('d'), args: 'x' } },
      { id: 'a', status: 'intent', call: { ...facts('d'), tool: 1 } },
    ]
    for (const change of changes)
      expect((await failureOf(save(run, [change as ToolCallChange]))).code).toBe('invalid-argument')
    expect((await failureOf(save(run, 'x' as never))).code).toBe('invalid-argument')
    await finish(run)
  })
})
