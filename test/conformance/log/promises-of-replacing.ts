/** Promises of the log about messages that replace earlier ones, and about parts of requests. */
import { expect } from 'vitest'
import type { NewEntry } from '../../../src/session/log-store.js'
import type { Message, SessionKey } from '../../../src/session/message.js'
import { contentOf, digestOf } from '../../../src/store/log/log-rows.js'
import { type Row, type SqlDatabase, sql } from '../../../src/store/sql-database.js'
import { failureOf, newKey } from '../store/drivers.js'
import {
  acquired,
  beginRun,
  createSession,
  dump,
  ending,
  expire,
  LEASE,
  message,
  newRunId,
  runOf,
  sessionRow,
  setSession,
} from './drivers.js'
import type { Check } from './promises-of-writes.js'

async function messagesOf(database: SqlDatabase, key: SessionKey): Promise<readonly Row[]> {
  const pk = Number((await sessionRow(database, key)).pk)
  return database.run(
    sql(
      `SELECT message_seq AS seq, content, tokens, flags FROM lango_entries
        WHERE message_pk = ? AND message_seq IS NOT NULL ORDER BY message_seq`,
      pk,
    ),
  )
}

/** The counters of a session are those of its messages. */
async function expectCounted(
  database: SqlDatabase,
  key: SessionKey,
  contents: readonly string[],
): Promise<void> {
  const rows = await messagesOf(database, key)
  expect(rows.map(({ seq, content }) => [Number(seq), content])).toEqual(
    contents.map((content, index) => [index + 1, content]),
  )
  const turns = rows.filter(({ flags }) => (Number(flags) & 1) !== 0).map(({ seq }) => Number(seq))
  expect(await sessionRow(database, key)).toMatchObject({
    message_count: contents.length,
    token_total: rows.reduce((all, { tokens }) => all + Number(tokens), 0),
    turn_seq: turns.at(-1) ?? 0,
  })
}

function assistant(content: string, id: string): Message {
  return { ...message(content, id), role: 'assistant' }
}

export const REPLACING = {
  async 'stores a message with the id of an earlier one under its number, and keeps the earlier entry'({
    log,
    another,
    database,
  }) {
    const { key, runId, write } = await beginRun(log)
    const begun = `Message of ${runId}`
    const said = (text: Message): NewEntry => ({ kind: 'answer', runId, message: text })
    await log.append(write(1, [said(message('a question', 'm1')), said(message('one more', 'm2'))]))
    await expectCounted(database, key, [begun, 'a question', 'one more'])
    const longer = message('a question that is much longer than it was before', 'm1')
    const second = write(2, [said(longer), said(assistant('an answer', 'm3'))])
    const stored = await log.append(second)
    expect(stored).toEqual({ seq: 4, messageSeqs: [2, 4], posts: 0 })
    await expectCounted(database, key, [begun, longer.content, 'one more', 'an answer'])
    const before = await dump(database)
    for (const store of [log, another()]) expect(await store.append(second)).toEqual(stored)
    expect(await dump(database)).toBe(before)
    // Another version again, and the last message that starts a turn does so no more.
    expect(await log.append(write(3, [said(assistant('b', 'm2')), said(message('c', 'm1'))]))).toEqual({
      ...{ seq: 6, messageSeqs: [3, 2], posts: 0 },
    })
    await expectCounted(database, key, [begun, 'c', 'b', 'an answer'])
    expect(await log.append(write(4, [said(message('d', 'm4'))]))).toMatchObject({ messageSeqs: [5] })
    await expectCounted(database, key, [begun, 'c', 'b', 'an answer', 'd'])
    const entries = await log.read(key)
    expect(entries.map(({ seq, messageSeq, message: text }) => [seq, messageSeq, text?.content])).toEqual([
      [1, 1, begun],
      [2, undefined, 'a question'],
      [3, undefined, 'one more'],
      [4, undefined, longer.content],
      [5, 4, 'an answer'],
      [6, 3, 'b'],
      [7, 2, 'c'],
      [8, 5, 'd'],
    ])
    for (const entry of entries) expect(digestOf(entry.salt ?? '', contentOf(entry))).toBe(entry.digest)
  },

  async 'replaces a message in its own session only, nested or not'({ log, database }) {
    const { key, runId, write } = await beginRun(log)
    const begun = `Message of ${runId}`
    const nested = { ...key, appName: `nested-${key.appName}` }
    await createSession(database, nested)
    const own = (content: string, id: string): NewEntry => ({
      kind: 'answer',
      runId,
      message: message(content, id),
    })
    const inner = (content: string, id: string) => ({ ...own(content, id), nested })
    await log.append(write(1, [inner('a', 'm1'), inner('b', 'm2'), own('one', 'm2')]))
    expect(await log.append(write(2, [inner('other b', 'm2')]))).toMatchObject({ messageSeqs: [2] })
    await expectCounted(database, nested, ['a', 'other b'])
    await expectCounted(database, key, [begun, 'one'])
    // One id in both sessions: in one of them it is new.
    expect(await log.append(write(3, [inner('other a', 'm1'), own('two', 'm1')]))).toMatchObject({
      messageSeqs: [1, 3],
    })
    await expectCounted(database, nested, ['other a', 'other b'])
    await expectCounted(database, key, [begun, 'one', 'two'])
    // In both of them it is known.
    expect(await log.append(write(4, [own('uno', 'm2'), inner('third b', 'm2')]))).toMatchObject({
      messageSeqs: [2, 2],
    })
    await expectCounted(database, nested, ['other a', 'third b'])
    await expectCounted(database, key, [begun, 'uno', 'two'])
  },

  async 'lets memory read a message that was replaced again'({ log, database }) {
    const { key, runId, write } = await beginRun(log)
    const other = await beginRun(log)
    const said = (content: string, id: string): NewEntry => ({
      kind: 'answer',
      runId,
      message: message(content, id),
    })
    await log.append(write(1, [said('one', 'm1'), said('two', 'm2'), said('three', 'm3')]))
    for (const each of [key, other.key])
      await database.run(
        sql(
          'INSERT INTO lango_memory (session_pk, indexed_seq) VALUES (?, 3)',
          Number((await sessionRow(database, each)).pk),
        ),
      )
    const indexed = async (each: SessionKey) => {
      const pk = Number((await sessionRow(database, each)).pk)
      const [row] = await database.run(sql('SELECT indexed_seq FROM lango_memory WHERE session_pk = ?', pk))
      return Number(row?.indexed_seq)
    }
    await log.append(write(2, [said('other three', 'm3')]))
    expect(await indexed(key)).toBe(3)
    await log.append(write(3, [said('other one', 'm1')]))
    expect(await indexed(key)).toBe(1)
    expect(await indexed(other.key)).toBe(3)
  },

  async 'replaces nothing when the lease is lost before the write is sent again with what it replaces'({
    over,
    another,
    database,
  }) {
    let taken = () => Promise.resolve()
    const log = over(base => ({
      // The first attempt finds the id; before the second one another process takes the lease over.
      batch: statements =>
        base.batch(statements).catch(async error => {
          await taken()
          throw error
        }),
    }))
    const { key, runId, write } = await beginRun(log)
    await log.append(write(1, [{ kind: 'answer', runId, message: message('first', 'm1') }]))
    let before = ''
    taken = async () => {
      await expire(database, key)
      await acquired(another(), key)
      await setSession(database, key, 'turn_seq = 1')
      const { pk } = await sessionRow(database, key)
      await database.run(sql('INSERT INTO lango_memory (session_pk, indexed_seq) VALUES (?, 2)', Number(pk)))
      before = await dump(database)
    }
    const entries = [{ kind: 'answer', runId, message: message('second', 'm1') }] as const
    expect((await failureOf(log.append(write(2, entries)))).code).toBe('lease-lost')
    expect(before).not.toBe('')
    expect(await dump(database)).toBe(before)
  },

  async 'stores parts of requests with a write that knows their number'({ log, another, database }) {
    const { key, runId, write } = await beginRun(log)
    const notice = [{ kind: 'notice', runId }] as const
    const parts = (before: number, ...digests: string[]) => ({
      parts: { before, added: digests.map(digest => ({ digest, part: `part ${digest}` })) },
    })
    const stored = async () => {
      const pk = Number((await sessionRow(database, key)).pk)
      const rows = await database.run(
        sql('SELECT number, digest, part FROM lango_request_parts WHERE session_pk = ? ORDER BY number', pk),
      )
      return rows.map(({ number, digest, part }) => [Number(number), digest, part])
    }
    await log.append(write(1, notice, parts(0, 'a', 'b')))
    await log.append(write(2, notice, parts(2)))
    const before = await dump(database)
    for (const known of [0, 1, 3]) {
      const outdated = write(3, notice, { ...parts(known, 'c'), state: { a: 1 }, release: true })
      const refusal = { code: 'store-unavailable', retryable: true }
      expect(await failureOf(log.append(outdated))).toMatchObject(refusal)
      expect(await failureOf(log.pause(outdated, 0))).toMatchObject(refusal)
      expect(await failureOf(another().append(outdated))).toMatchObject(refusal)
      const imported = { key, entries: notice, also: parts(known) }
      expect((await failureOf(log.append(imported))).code).toBe('session-busy')
    }
    expect(await dump(database)).toBe(before)
    const last = write(3, notice, parts(2, 'c'))
    const appended = await log.append(last)
    expect(await log.append(last)).toEqual(appended)
    expect(await stored()).toEqual([
      [1, 'a', 'part a'],
      [2, 'b', 'part b'],
      [3, 'c', 'part c'],
    ])
    await log.append(ending({ key, runId, write, lease: { key, fence: 0, posts: 0 } }, 4))
    expect(await another().accept(runOf(key, newRunId()), LEASE)).toMatchObject({ partCount: 3 })
    expect(await log.accept(runOf(newKey(), newRunId()), LEASE)).toMatchObject({ partCount: 0 })
  },
} as const satisfies Record<string, Check>
