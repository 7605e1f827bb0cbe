/** Promises of the log about runs and posts. */
import { expect } from 'vitest'
import type { Acceptance, LogStore, NewEntry, NewRun, RunRowState } from '../../../src/session/log-store.js'
import type { SessionKey } from '../../../src/session/message.js'
import { sql } from '../../../src/store/sql-database.js'
import { restoreText } from '../../../src/store/storable-text.js'
import { failureOf, newKey } from '../store/drivers.js'
import {
  acquired,
  beginRun,
  deleteSession,
  dump,
  ending,
  expire,
  LEASE,
  leaseColumns,
  message,
  newRunId,
  runOf,
  sessionRow,
  writesUnder,
} from './drivers.js'
import type { Check } from './promises-of-writes.js'

const UNFINISHED: readonly RunRowState[] = ['scheduled', 'queued', 'running', 'waiting', 'handover']

/** The ids of the runs of an app that no process executes. */
async function abandoned(log: LogStore, { appName }: SessionKey): Promise<string[]> {
  const runs = await log.listRuns({ appName, states: UNFINISHED, isAbandoned: true, limit: 10 })
  return runs.map(({ runId }) => runId)
}

function accept(log: LogStore, run: NewRun): Promise<Acceptance> {
  return log.accept(run, LEASE)
}

/** Accepts a run behind one that is at work. */
async function queued(log: LogStore, key: SessionKey): Promise<NewRun> {
  const run = { ...runOf(key, newRunId()), when: 'begin-or-queue' } as const
  expect(await accept(log, run)).toMatchObject({ queued: expect.any(Number) })
  return run
}

/** The write that begins a queued run. */
function beginning({ runId, message: text, input }: NewRun) {
  return [{ kind: 'begun', runId, message: text, data: { input } }] as const
}

/** An entry that records the answer of a person to a call. */
function recording(runId: string, id: string) {
  const events = [{ type: 'approval-answer', id, answer: 'approved', seq: 1 }]
  return { kind: 'event', runId, events } as const
}

export const RUNS = {
  async 'begins a run in a new session with its message, its entry, its row and the lease'({
    log,
    database,
  }) {
    const run = { ...runOf(newKey(), newRunId()), title: 'A title' }
    const { key, runId } = run
    const begun = await accept(log, run)
    expect(begun).toEqual({
      begun: { key, fence: expect.any(Number), posts: 0 },
      ...{ seq: 1, messageSeq: 1, partCount: 0 },
    })
    expect(await log.read(key)).toMatchObject([
      { seq: 1, kind: 'begun', runId, messageSeq: 1, message: run.message, data: { input: run.input } },
    ])
    const [row] = await log.findRuns([runId])
    expect(row).toEqual({
      runId,
      key,
      state: 'running',
      acceptedAt: expect.any(Number),
      firstSeq: 1,
      isPosted: false,
    })
    expect(await sessionRow(database, key)).toMatchObject({
      title: 'A title',
      entry_count: 1,
      message_count: 1,
      turn_seq: 1,
      open_runs: 1,
      holder: LEASE.holder,
      lease_ms: LEASE.ttlMs,
    })
    expect(await log.acquire(key, LEASE)).toEqual({ holder: LEASE.holder })
  },

  async 'begins a run after another one has ended, behind its entries'({ log }) {
    const first = await beginRun(log)
    await log.append(first.write(1, [{ kind: 'answer', runId: first.runId, message: message('one') }]))
    await log.append(ending(first, 2))
    const [row] = await log.findRuns([first.runId])
    expect(row).toMatchObject({ state: 'finished', finishReason: 'stop', firstSeq: 1, lastSeq: 3 })
    expect(await accept(log, runOf(first.key, newRunId()))).toMatchObject({ seq: 4, messageSeq: 3 })
  },

  async 'tells a run that begins which one the session had before, and none that is not due'({
    log,
    another,
  }) {
    const first = await beginRun(log)
    await log.append(ending(first, 1))
    const { key } = first
    await log.accept({ ...runOf(key, newRunId()), when: { dueAt: Date.now() + 3_600_000 } }, LEASE)
    const second = runOf(key, newRunId())
    const begun = await accept(another(), second)
    expect(begun).toMatchObject({ previousRunId: first.runId })
    if (typeof begun !== 'object' || !('begun' in begun)) throw new TypeError('the run has not begun')
    const end = { kind: 'ended', runId: second.runId } as const
    const also = { run: { runId: second.runId, state: 'finished' }, release: true } as const
    await another().append({
      key,
      runId: second.runId,
      under: { fence: begun.begun.fence },
      entries: [end],
      also,
    })
    expect(await accept(log, runOf(key, newRunId()))).toMatchObject({ previousRunId: second.runId })
  },

  async 'begins a run in a session that was deleted after the store has used it'({ log, another, database }) {
    const { key } = await beginRun(log)
    await deleteSession(database, key)
    const next = runOf(key, newRunId())
    expect(await accept(log, next)).toMatchObject({ seq: 1, messageSeq: 1, partCount: 0 })
    expect(await sessionRow(database, key)).toMatchObject({ open_runs: 1, entry_count: 1 })
    expect(await accept(log, runOf(key, newRunId()))).toBe('busy')
    await deleteSession(database, key)
    // Not while another process has the lease of its key.
    const lease = await acquired(another(), key)
    const before = await dump(database)
    expect(await accept(log, runOf(key, newRunId()))).toBe('busy')
    expect(await dump(database)).toBe(before)
    await another().release(lease)
    expect(await accept(log, runOf(key, newRunId()))).toMatchObject({ seq: 1 })
  },

  async 'stores no entry and no message of a run that is accepted while another works'({ log, database }) {
    const { key } = await beginRun(log)
    const entries = await log.read(key)
    const before = await sessionRow(database, key)
    const one = { ...runOf(key, newRunId()), when: 'begin-or-queue' } as const
    const two = { ...runOf(key, newRunId()), when: 'queue' } as const
    expect([await accept(log, one), await accept(log, two)]).toEqual([{ queued: 1 }, { queued: 2 }])
    expect(await log.read(key)).toEqual(entries)
    const { entry_count, message_count, turn_seq, token_total, open_runs } = await sessionRow(database, key)
    expect({ entry_count, message_count, turn_seq, token_total }).toEqual({
      entry_count: 1,
      message_count: 1,
      turn_seq: 1,
      token_total: before.token_total,
    })
    expect(open_runs).toBe(3)
    expect((await log.findRuns([one.runId]))[0]).toMatchObject({
      state: 'queued',
      message: one.message,
      input: one.input,
    })
    const { appName } = key
    const listed = await log.listRuns({ appName, key, states: ['queued'], limit: 10 })
    expect(listed.map(({ runId }) => runId)).toEqual([one.runId, two.runId])
    expect(await log.listRuns({ appName, states: ['queued'], limit: 1 })).toHaveLength(1)
  },

  async 'stores a run that is due later, and the session stays free'({ log }) {
    const run = { ...runOf(newKey(), newRunId()), when: { dueAt: 5 } } as const
    expect(await accept(log, run)).toEqual({ dueAt: 5 })
    expect((await log.findRuns([run.runId]))[0]).toMatchObject({
      state: 'scheduled',
      dueAt: 5,
      message: run.message,
      input: run.input,
    })
    expect(await log.read(run.key)).toEqual([])
    expect(await accept(log, runOf(run.key, newRunId()))).toMatchObject({ seq: 1 })
  },

  async 'answers a run that is known as such, in any session, and stores nothing'({
    log,
    another,
    database,
  }) {
    const { key, runId } = await beginRun(log)
    const waiting = await queued(log, key)
    const done = await beginRun(log)
    await log.append(ending(done, 1))
    const left = await beginRun(log)
    await expire(database, left.key)
    const before = await dump(database)
    for (const id of [runId, waiting.runId, done.runId, left.runId])
      for (const session of [key, done.key, left.key, newKey()])
        for (const when of ['begin', 'begin-or-queue', 'queue', { dueAt: 7 }] as const)
          expect(await accept(another(), { ...runOf(session, id), when })).toBe('known')
    expect(await dump(database)).toBe(before)
  },

  async 'refuses a run as busy while another process works, and stores nothing'({ log, another, database }) {
    const { key } = await beginRun(log)
    const before = await dump(database)
    expect(await accept(another(), runOf(key, newRunId()))).toBe('busy')
    expect(await dump(database)).toBe(before)
    const ended = await beginRun(log)
    await log.append(ending(ended, 1))
    await acquired(log, ended.key)
    const taken = await dump(database)
    expect(await accept(another(), runOf(ended.key, newRunId()))).toBe('busy')
    expect(await dump(database)).toBe(taken)
    const free = newKey()
    await acquired(log, free)
    const leased = await dump(database)
    expect(await accept(another(), runOf(free, newRunId()))).toBe('busy')
    expect(await dump(database)).toBe(leased)
  },

  async 'names the runs that no process executes instead of beginning another one'({
    log,
    another,
    database,
  }) {
    const { key, runId, write } = await beginRun(log)
    await log.append(write(1, [], { run: { runId, state: 'handover' }, release: true }))
    const next = runOf(key, newRunId())
    const before = await dump(database)
    for (const when of ['begin', 'begin-or-queue'] as const)
      expect(await accept(another(), { ...next, when })).toEqual({ unfinished: [runId] })
    expect(await dump(database)).toBe(before)
    const other = await beginRun(log)
    await expire(database, other.key)
    expect(await accept(another(), runOf(other.key, newRunId()))).toEqual({ unfinished: [other.runId] })
  },

  async 'begins no run while another one waits for a person'({ log, database }) {
    const { key, runId, write } = await beginRun(log)
    await log.pause(write(1, [], { run: { runId, state: 'waiting' }, release: true }), 0)
    const before = await dump(database)
    expect(await accept(log, runOf(key, newRunId()))).toBe('busy')
    expect(await dump(database)).toBe(before)
    expect(await accept(log, { ...runOf(key, newRunId()), when: 'begin-or-queue' })).toEqual({ queued: 1 })
  },

  async 'begins a run whose message has the id of another one, under the number of that message'({
    log,
    database,
  }) {
    const run = { ...runOf(newKey(), newRunId()), message: message('first', 'm1') }
    const { key } = run
    const begun = await accept(log, run)
    if (typeof begun === 'string' || !('begun' in begun)) throw new TypeError('the run did not begin')
    await log.append(ending({ ...run, lease: begun.begun, write: writesUnder(begun.begun) }, 1))
    const next = { ...runOf(key, newRunId()), message: message('second', 'm1') }
    expect(await accept(log, next)).toMatchObject({ begun: { key }, seq: 3, messageSeq: 1 })
    expect(await sessionRow(database, key)).toMatchObject({ entry_count: 3, message_count: 1, turn_seq: 1 })
    expect(
      (await log.read(key)).map(({ seq, messageSeq, message: text }) => [seq, messageSeq, text]),
    ).toEqual([
      [1, undefined, run.message],
      [2, undefined, undefined],
      [3, 1, next.message],
    ])
    expect((await log.findRuns([next.runId]))[0]).toMatchObject({ state: 'running', firstSeq: 3 })
  },

  async 'begins a queued run once, with its first entry in its row'({ log, database }) {
    const first = await beginRun(log)
    const { key } = first
    const next = await queued(log, key)
    await log.append(ending(first, 1))
    const lease = await acquired(log, key)
    const write = writesUnder(lease)
    const entries = [...beginning(next), { kind: 'notice' as const, runId: next.runId }]
    expect(await log.begin(next.runId, write(1, entries))).toEqual({ seq: 3, messageSeqs: [2], posts: 0 })
    const [row] = await log.findRuns([next.runId])
    expect(row).toEqual({
      runId: next.runId,
      key,
      state: 'running',
      acceptedAt: expect.any(Number),
      firstSeq: 3,
      isPosted: false,
    })
    const before = await dump(database)
    expect(await log.begin(next.runId, write(2, beginning(next)))).toBeUndefined()
    expect(await log.begin(newRunId(), write(2, beginning(next)))).toBeUndefined()
    expect(await dump(database)).toBe(before)
  },

  async 'answers the begin of a queued run that is sent again as before'({ log, database }) {
    const first = await beginRun(log)
    const next = await queued(log, first.key)
    await log.append(ending(first, 1))
    const write = writesUnder(await acquired(log, first.key))
    const begun = await log.begin(next.runId, write(1, beginning(next)))
    const before = await dump(database)
    expect(await log.begin(next.runId, write(1, beginning(next)))).toEqual(begun)
    expect(await dump(database)).toBe(before)
  },

  async 'does not begin a queued run under a lease that was lost'({ log, another, database }) {
    const first = await beginRun(log)
    const next = await queued(log, first.key)
    await expire(database, first.key)
    await acquired(another(), first.key)
    const before = await dump(database)
    expect((await failureOf(log.begin(next.runId, first.write(1, beginning(next))))).code).toBe('lease-lost')
    expect(await dump(database)).toBe(before)
  },

  async 'does not begin a queued run that was ended meanwhile'({ log, another, database }) {
    const first = await beginRun(log)
    const next = await queued(log, first.key)
    const ended = [{ kind: 'ended', runId: next.runId }] as const
    expect(await another().endQueued(next.runId, ended)).toBe(true)
    const before = await dump(database)
    expect(await log.begin(next.runId, first.write(1, beginning(next)))).toBeUndefined()
    expect(await dump(database)).toBe(before)
  },

  async 'ends a run that has not begun once, and frees its session'({ log, database }) {
    const first = await beginRun(log)
    const { key } = first
    const next = await queued(log, key)
    const scheduled = { ...runOf(key, newRunId()), when: { dueAt: 5 } } as const
    await accept(log, scheduled)
    const lease = await leaseColumns(database, key)
    const entries = (runId: string) => [{ kind: 'notice', runId } as const, { kind: 'ended', runId } as const]
    expect(await log.endQueued(next.runId, entries(next.runId))).toBe(true)
    expect(await log.endQueued(scheduled.runId, entries(scheduled.runId))).toBe(true)
    expect(await leaseColumns(database, key)).toEqual(lease)
    const rows = await log.findRuns([next.runId, scheduled.runId])
    expect(rows).toMatchObject([
      { state: 'finished', finishReason: 'aborted', firstSeq: 2, lastSeq: 3 },
      { state: 'finished', finishReason: 'aborted', firstSeq: 4, lastSeq: 5 },
    ])
    for (const row of rows) expect(row).not.toHaveProperty('input')
    const before = await dump(database)
    for (const runId of [next.runId, scheduled.runId, first.runId, newRunId()])
      expect(await log.endQueued(runId, entries(runId))).toBe(false)
    expect(await dump(database)).toBe(before)
    expect((await log.read(key)).map(({ seq, kind, runId }) => [seq, kind, runId])).toEqual([
      [1, 'begun', first.runId],
      [2, 'notice', next.runId],
      [3, 'ended', next.runId],
      [4, 'notice', scheduled.runId],
      [5, 'ended', scheduled.runId],
    ])
    expect(await log.append(ending(first, 1))).toMatchObject({ seq: 6 })
    expect(await accept(log, runOf(key, newRunId()))).toMatchObject({ seq: 7 })
  },

  async 'refuses a message with the end of a run that has not begun, and stores nothing'({ log, database }) {
    const { key } = await beginRun(log)
    const { runId } = await queued(log, key)
    const before = await dump(database)
    const ended = { kind: 'ended', runId, message: message('in the middle of another run') } as const
    expect((await failureOf(log.endQueued(runId, [ended]))).code).toBe('internal')
    expect(await dump(database)).toBe(before)
  },

  async 'changes no column of a lease with a post'({ log, another, database }) {
    const { key, runId, write } = await beginRun(log)
    await log.append(write(1, [{ kind: 'notice', runId }]))
    const post = async () => {
      const before = await leaseColumns(database, key)
      await another().post({ runId, kind: 'reply', data: { yes: true } })
      expect(await leaseColumns(database, key)).toEqual(before)
    }
    await post()
    await expire(database, key)
    await post()
    await log.release((await acquired(log, key)) as { key: SessionKey; fence: number })
    await post()
  },

  async 'stores a post with its key once'({ log, another, database }) {
    const { key, runId } = await beginRun(log)
    for (const name of ['reply-1', 'NUL \0 and half \ud800']) {
      const post = { runId, kind: 'reply', key: name, data: { yes: true } } as const
      const first = await log.post(post)
      const before = await dump(database)
      expect(await log.post(post)).toEqual(first)
      expect(await another().post(post)).toEqual(first)
      expect(await dump(database)).toBe(before)
    }
    expect((await log.read(key, { kinds: ['reply'] })).map(({ seq, data }) => [seq, data])).toEqual([
      [2, { yes: true }],
      [3, { yes: true }],
    ])
    await Promise.all([1, 2, 3].map(() => another().post({ runId, kind: 'steer', key: 'at once' })))
    expect(await sessionRow(database, key)).toMatchObject({ entry_count: 4, post_count: 3 })
  },

  async 'refuses a post to a run that has ended or is unknown, and stores nothing'({ log, database }) {
    const run = await beginRun(log)
    const { runId } = run
    const early = await log.post({ runId, kind: 'stop', key: 'early' })
    await log.append(ending(run, 1))
    const before = await dump(database)
    expect((await failureOf(log.post({ runId, kind: 'stop' }))).code).toBe('run-interrupted')
    expect((await failureOf(log.post({ runId, kind: 'stop', key: 'late' }))).code).toBe('run-interrupted')
    expect((await failureOf(log.post({ runId: newRunId(), kind: 'stop' }))).code).toBe('run-not-found')
    expect(await log.post({ runId, kind: 'stop', key: 'early' })).toEqual(early)
    expect(await dump(database)).toBe(before)
  },

  async 'refuses a pause when the session has received a post that its process has not read'({
    log,
    another,
    database,
  }) {
    const { key, runId, write } = await beginRun(log)
    expect(await log.append(write(1, [{ kind: 'question', runId }]))).toMatchObject({ posts: 0 })
    await another().post({ runId, kind: 'reply' })
    const waiting = { run: { runId, state: 'waiting' }, release: true } as const
    const before = await dump(database)
    expect(await log.pause(write(2, [], waiting), 0)).toEqual({ unread: 1 })
    expect(await dump(database)).toBe(before)
    expect(await log.pause(write(2, [], waiting), 1)).toEqual({ seq: 4, messageSeqs: [], posts: 1 })
    expect(await sessionRow(database, key)).toMatchObject({ fence: 0, holder: '', lease_until: 0 })
    expect((await log.findRuns([runId]))[0]).toMatchObject({ state: 'waiting' })
  },

  async 'lists a waiting run as abandoned when it has received a post, until it has recorded that'({
    log,
    another,
  }) {
    const { key, runId, write } = await beginRun(log)
    const waiting = { run: { runId, state: 'waiting' }, release: true } as const
    const question = [{ kind: 'question', runId }] as const
    expect(await abandoned(log, key)).toEqual([])
    await log.post({ runId, kind: 'reply', about: 'c1' })
    await log.append({ ...write(1, [recording(runId, 'c1')]), runId })
    await log.pause(write(2, question, waiting), 1)
    expect(await abandoned(log, key)).toEqual([])
    await another().post({ runId, kind: 'reply', about: 'c2' })
    expect((await log.findRuns([runId]))[0]).toMatchObject({ state: 'waiting', isPosted: true })
    expect(await abandoned(log, key)).toEqual([runId])
    const lease = await acquired(log, key)
    expect(lease.posts).toBe(2)
    expect(await abandoned(log, key)).toEqual([])
    const next = writesUnder(lease)
    await log.append(next(1, [{ kind: 'attempt', runId }], { run: { runId, state: 'running' } }))
    expect((await log.findRuns([runId]))[0]).toMatchObject({ state: 'running', isPosted: true })
    await log.append({ ...next(2, [recording(runId, 'c2')]), runId })
    expect((await log.findRuns([runId]))[0]).toMatchObject({ state: 'running', isPosted: false })
    await log.pause(next(3, question, waiting), 2)
    expect(await abandoned(log, key)).toEqual([])
  },

  async 'keeps a post pending until its run records an event that answers its call, with that write'({
    log,
    another,
    database,
  }) {
    const { key, runId, lease, write } = await beginRun(log)
    const other = await beginRun(log)
    const post = (about: string, id = runId) => another().post({ runId: id, kind: 'reply', about })
    for (const about of ['c1', 'c1', 'c2', 'half \ud800']) await post(about)
    await post('c1', other.runId)
    const isPosted = async (id: string) => (await log.findRuns([id]))[0]?.isPosted
    const pending = async () => {
      const rows = await database.run(
        sql(
          `SELECT e.pending FROM lango_entries e JOIN lango_runs r ON r.pk = e.run_pk
            WHERE r.run_id = ? AND e.pending IS NOT NULL ORDER BY e.seq`,
          runId,
        ),
      )
      return rows.map(row => restoreText(String(row.pending)))
    }
    const all = ['c1', 'c1', 'c2', 'half \ud800']
    const record = (number: number, events: NonNullable<NewEntry['events']>) =>
      log.append({ ...write(number, [{ kind: 'notice', runId, events }]), runId })
    // Nothing here is an answer.
    await record(1, [
      { type: 'approval-request', id: 'c1', seq: 1 },
      { type: 'approval-answer', id: 'c1', answer: 'aborted', seq: 2 },
      { type: 'tool-unknown', id: 'c1', asks: true, seq: 3 },
      { type: 'tool-result', id: 'c1', seq: 4 },
      { type: 'approval-answer', id: 'c3', answer: 'approved', seq: 5 },
    ])
    await log.append(write(2, [], { run: { runId, state: 'running' } }))
    expect(await pending()).toEqual(all)
    const answer = { ...write(3, [recording(runId, 'c1')]), runId }
    const under = { fence: lease.fence + 1000, number: 3 }
    expect((await failureOf(log.append({ ...answer, under }))).code).toBe('lease-lost')
    expect(await pending()).toEqual(all)
    await log.append(answer)
    expect(await pending()).toEqual(all.slice(2))
    expect([await isPosted(runId), await isPosted(other.runId)]).toEqual([true, true])
    await record(4, [
      { type: 'tool-unknown', id: 'c2', answer: 'happened', seq: 6 },
      { type: 'tool-result', id: 'half \ud800', given: true, seq: 7 },
    ])
    expect(await pending()).toEqual([])
    expect([await isPosted(runId), await isPosted(other.runId)]).toEqual([false, true])
    // A post about no call is not answered by an event, whatever its id.
    await another().post({ runId, kind: 'stop' })
    await record(5, [{ type: 'approval-answer', id: 'c1', answer: 'approved', seq: 8 }])
    await record(6, [{ type: 'approval-answer', id: '', answer: 'approved', seq: 9 }])
    expect(await pending()).toEqual([''])
    expect((await log.read(key, { kinds: ['reply', 'stop'] })).length).toBe(5)
  },

  async 'refuses a write of a run that has ended, but not one that says that it may have'({
    log,
    another,
    database,
  }) {
    const run = await beginRun(log)
    const { key, runId, write } = run
    const call = { callId: 'c', tool: 't', effect: 'once', digest: 'd', args: {} } as const
    await log.append({ ...write(1, [], { calls: [{ id: 'm/c', status: 'started', call }] }), runId })
    const statuses = async () => {
      const rows = await database.run(sql('SELECT status FROM lango_tool_calls WHERE run_id = ?', runId))
      return rows.map(({ status }) => status)
    }
    expect(await statuses()).toEqual(['started'])
    await log.append({ ...ending(run, 2), runId })
    expect(await statuses()).toEqual(['unknown'])
    const next = writesUnder(await acquired(another(), key))
    const settled = { calls: [{ id: 'm/c', status: 'done', result: 1 }] } as const
    const before = await dump(database)
    for (const id of [runId, newRunId()]) {
      const late = { ...next(1, [{ kind: 'answer', runId: id, message: message('late') }]), runId: id }
      expect((await failureOf(another().append(late))).code).toBe('run-interrupted')
      expect((await failureOf(another().pause(late, 0))).code).toBe('run-interrupted')
      const counted = { ...late, under: { fence: late.under?.fence ?? 0, number: 'next' } } as const
      expect((await failureOf(another().append(counted))).code).toBe('run-interrupted')
      expect((await failureOf(log.append({ ...next(1, [], settled), runId: id }))).code).toBe(
        'run-interrupted',
      )
    }
    expect(await dump(database)).toBe(before)
    const entries = [{ kind: 'result', runId }] as const
    const ledger = { ...next(1, entries, settled), runId, mayHaveEnded: true }
    expect(await log.append(ledger)).toMatchObject({ seq: 3, calls: [{ id: 'm/c' }] })
    expect(await statuses()).toEqual(['done'])
    expect((await log.findRuns([runId]))[0]).toMatchObject({ state: 'finished', lastSeq: 2 })
  },

  async 'lists the runs of sessions without a valid lease as abandoned'({ log, database }) {
    const { key, runId, write } = await beginRun(log)
    const next = await queued(log, key)
    expect(await abandoned(log, key)).toEqual([])
    await expire(database, key)
    expect(await abandoned(log, key)).toEqual([runId, next.runId])
    await log.append(write(1, [{ kind: 'notice', runId }]))
    expect(await abandoned(log, key)).toEqual([])
    await log.append(write(2, [], { run: { runId, state: 'handover' }, release: true }))
    expect(await abandoned(log, key)).toEqual([runId, next.runId])
    await log.endQueued(next.runId, [{ kind: 'ended', runId: next.runId }])
    expect(await abandoned(log, key)).toEqual([runId])
  },
} as const satisfies Record<string, Check>
