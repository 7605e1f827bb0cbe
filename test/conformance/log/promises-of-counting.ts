/** Promises of the log about writes that the store numbers. */
import { expect } from 'vitest'
import type { LogStore, LogWrite, NewEntry } from '../../../src/session/log-store.js'
import type { SqlDatabase } from '../../../src/store/sql-database.js'
import { failureOf } from '../store/drivers.js'
import {
  acquired,
  beginRun,
  dump,
  expire,
  LEASE,
  type LogPlace,
  message,
  newRunId,
  type RunAtWork,
  runOf,
  sessionRow,
} from './drivers.js'
import type { Check } from './promises-of-writes.js'

function counted(
  { key, runId, lease }: RunAtWork,
  entries: readonly NewEntry[],
  also: LogWrite['also'] = {},
) {
  return { key, runId, under: { fence: lease.fence, number: 'next' }, entries, also } as const
}

function said({ runId }: RunAtWork, text: string): NewEntry {
  return { kind: 'answer', runId, message: message(text) }
}

/** A store whose next acknowledgement is lost when `isLost` is set. */
function losing({ over }: LogPlace): { log: LogStore; next: { isLost: boolean } } {
  const next = { isLost: false }
  const members = (database: SqlDatabase): Partial<SqlDatabase> => ({
    async batch(statements) {
      const rows = await database.batch(statements)
      if (!next.isLost) return rows
      next.isLost = false
      throw new TypeError('the connection broke')
    },
  })
  return { log: over(members), next }
}

export const COUNTING = {
  async 'stores a write that it numbers once when it is sent again, also by another process'({
    log,
    another,
    database,
  }) {
    const run = await beginRun(log)
    const one = counted(run, [said(run, 'one')], { state: { a: 1 } })
    const first = await log.append(one)
    expect(first).toEqual({ seq: 2, messageSeqs: [2], posts: 0 })
    const before = await dump(database)
    expect(await log.append(one)).toEqual(first)
    expect(await another().append(one)).toEqual(first)
    expect(await dump(database)).toBe(before)
    expect(await log.append(counted(run, [said(run, 'two')]))).toEqual({ seq: 3, messageSeqs: [3], posts: 0 })
    // It is not the write before this one any more.
    expect(await log.append(one)).toEqual({ seq: 4, messageSeqs: [4], posts: 0 })
    expect(await sessionRow(database, run.key)).toMatchObject({ write_number: 3, write_entry: 4 })
  },

  async 'answers a write that it numbers and whose acknowledgement was lost from what is stored'(place) {
    const { database } = place
    const { log, next } = losing(place)
    const run = await beginRun(log)
    const end = { run: { runId: run.runId, state: 'finished', finishReason: 'stop' }, release: true } as const
    for (const [also, seq] of [[{}, 2] as const, [end, 3] as const]) {
      const write = counted(run, [said(run, `entry ${seq}`)], also)
      next.isLost = true
      await expect(log.append(write)).rejects.toThrow('the connection broke')
      const before = await dump(database)
      expect(await log.append(write)).toEqual({ seq, messageSeqs: [seq], posts: 0 })
      expect(await dump(database)).toBe(before)
    }
    // Also when it was acknowledged, and has ended the lease.
    const last = counted(run, [said(run, 'entry 3')], end)
    for (const store of [log, place.another()])
      expect(await store.append(last)).toEqual({ seq: 3, messageSeqs: [3], posts: 0 })
    expect(await sessionRow(database, run.key)).toMatchObject({ fence: 0, open_runs: 0, entry_count: 3 })
  },

  async 'gives a write the next number when the acknowledgement of the one before it was lost'(place) {
    const { log, next } = losing(place)
    const run = await beginRun(log)
    const texts = ['one', 'two', 'three', 'four']
    for (const text of texts) {
      next.isLost = text === 'one' || text === 'three'
      await log.append(counted(run, [said(run, text)])).catch(() => {})
    }
    const entries = await log.read(run.key, { afterSeq: 1 })
    expect(entries.map(each => each.message?.content)).toEqual(texts)
    expect(await sessionRow(place.database, run.key)).toMatchObject({ write_number: 4, message_count: 5 })
  },

  async 'stores writes that it numbers one after another, in the order of their calls'({ log, database }) {
    const run = await beginRun(log)
    const { key, runId } = run
    const once = { kind: 'call', runId, key: 'once' } as const
    await log.append(counted(run, [once]))
    const texts = Array.from({ length: 12 }, (_, index) => `answer ${index}`)
    const writes = await Promise.allSettled(
      // One of them is refused: it takes no number.
      texts.map((text, index) => log.append(counted(run, [said(run, text), ...(index === 5 ? [once] : [])]))),
    )
    expect(writes.map(({ status }) => status === 'fulfilled')).toEqual(texts.map((_, index) => index !== 5))
    const kept = texts.filter((_, index) => index !== 5)
    const entries = await log.read(key, { afterSeq: 2 })
    expect(entries.map(({ seq, message: each }) => [seq, each?.content])).toEqual(
      kept.map((text, index) => [index + 3, text]),
    )
    expect(await sessionRow(database, key)).toMatchObject({ write_number: 12, entry_count: 13 })
  },

  async 'numbers the writes of each lease by itself, and none under a lease that was taken'({
    log,
    another,
    database,
  }) {
    const run = await beginRun(log)
    const other = await beginRun(log)
    const notice = (runId: string) => [{ kind: 'notice', runId } as const]
    await log.append(counted(run, [said(run, 'one')]))
    await log.append(counted(other, [said(other, 'one')]))
    await expire(database, run.key)
    const lease = await acquired(another(), run.key)
    const before = await dump(database)
    for (const entries of [[said(run, 'one')], [said(run, 'two')], []])
      expect((await failureOf(log.append(counted(run, entries)))).code).toBe('lease-lost')
    expect(await dump(database)).toBe(before)
    // Equal entries under another lease are another write.
    expect(await another().append(counted({ ...run, lease }, [said(run, 'one')]))).toMatchObject({ seq: 3 })
    expect(await sessionRow(database, run.key)).toMatchObject({ write_number: 1 })
    expect(await log.append(counted(other, notice(other.runId)))).toMatchObject({ seq: 3 })
    expect(await sessionRow(database, other.key)).toMatchObject({ write_number: 2 })
  },

  async 'answers a pause that it numbers and that is sent again'({ log, database }) {
    const run = await beginRun(log)
    const { key, runId } = run
    const asked = counted(run, [{ kind: 'question', runId }], { run: { runId, state: 'waiting' } })
    expect(await log.pause(asked, 1)).toEqual({ unread: 0 })
    const paused = await log.pause(asked, 0)
    expect(paused).toEqual({ seq: 2, messageSeqs: [], posts: 0 })
    await log.post({ runId, kind: 'reply' })
    const before = await dump(database)
    expect(await log.pause(asked, 0)).toEqual({ ...paused, posts: 1 })
    expect(await dump(database)).toBe(before)
    expect(await sessionRow(database, key)).toMatchObject({ write_number: 1 })
    // Without entries, a write is another one by what it does to the run and to the lease.
    await log.append(counted(run, [], { run: { runId, state: 'handover' } }))
    await log.append(counted(run, [], { run: { runId, state: 'handover' }, release: true }))
    expect(await sessionRow(database, key)).toMatchObject({ write_number: 3, fence: 0 })
    expect((await log.findRuns([runId]))[0]).toMatchObject({ state: 'handover' })
  },

  async 'answers the begin of a queued run that it numbers and that is sent again'({ log, database }) {
    const run = await beginRun(log)
    const { key } = run
    const next = { ...runOf(key, newRunId()), when: 'queue' } as const
    const { runId } = next
    await log.accept(next, LEASE)
    const end = { run: { runId: run.runId, state: 'finished', finishReason: 'stop' } } as const
    await log.append(counted(run, [{ kind: 'ended', runId: run.runId }], end))
    const begun = counted({ ...run, runId }, [{ kind: 'begun', runId, message: next.message }])
    const first = await log.begin(runId, begun)
    expect(first).toEqual({ seq: 3, messageSeqs: [2], posts: 0 })
    const before = await dump(database)
    expect(await log.begin(runId, begun)).toEqual(first)
    expect(await dump(database)).toBe(before)
  },
} as const satisfies Record<string, Check>
