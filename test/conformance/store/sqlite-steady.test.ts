import { copyFileSync, readdirSync, renameSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Message } from '../../../src/session/message.js'
import { openStore } from '../../../src/store/open-store.js'
import { openSqlStore } from '../../../src/store/sql-store.js'
import { openSqlite } from '../../../src/store/sqlite.js'
import { runScript } from '../../support/child.js'
import { temporaryFolder } from '../../support/temporary-folder.js'
import { failureOf, newKey } from './drivers.js'

const text = (content: string): Message => ({ role: 'user', content, timestamp: 1 })

async function openInFolder() {
  // In memory a thousand writes fit into the 50 ms between two checks of the log, and a checkpoint hides what happened.
  const folder = await temporaryFolder({ on: 'disk' })
  const file = join(folder, 'store.db')
  const key = newKey()
  const first = await openStore(`sqlite:${file}`)
  await first.createSession(key)
  // Closing moves everything from the log into the file.
  await first.close()
  const store = await openStore(`sqlite:${file}`)
  onTestFinished(() => store.close())
  return { folder, file, store, key }
}

/** Another process locks the file; killing it releases the lock. */
async function lockElsewhere(file: string): Promise<() => Promise<unknown>> {
  const child = runScript('lock-database.ts', [file])
  await child.untilLines(1)
  expect(child.lines).toEqual(['locked'])
  return () => {
    child.process.kill('SIGKILL')
    return child.ended
  }
}

test('writes to a locked SQLite file wait in order, while timers run and reads answer', async () => {
  const { file, store, key } = await openInFolder()
  await store.appendMessage(key, text('before'))
  const unlock = await lockElsewhere(file)
  let settled = 0
  const writes = Array.from({ length: 5 }, (_, index) =>
    store.appendMessage(key, text(`m${index}`)).finally(() => settled++),
  )
  const lease = store.acquireLease({ ...key, sessionId: 'other' })
  for (let turn = 0; turn < 5; turn++) {
    await new Promise(resolve => setTimeout(resolve, 10))
    expect((await store.readMessages(key)).map(({ content }) => content)).toEqual(['before'])
    expect((await store.loadSession(key))?.totalMessages).toBe(1)
  }
  expect(settled).toBe(0)
  await unlock()
  expect((await Promise.all(writes)).map(({ seq }) => seq)).toEqual([2, 3, 4, 5, 6])
  await (await lease).release()
  expect((await store.readMessages(key)).map(({ content }) => content)).toEqual([
    'before',
    ...writes.map((_, index) => `m${index}`),
  ])
})

test('opening a new SQLite file waits for the lock of another process', async () => {
  const file = join(await temporaryFolder(), 'store.db')
  const unlock = await lockElsewhere(file)
  const opening = openStore(`sqlite:${file}`)
  await new Promise(resolve => setTimeout(resolve, 30))
  await unlock()
  await (await opening).close()
})

test.each<[string, (file: string) => void, string]>([
  ['deleted', file => rmSync(file), 'store.db was deleted or moved'],
  ['moved', file => renameSync(file, `${file}.moved`), 'store.db was deleted or moved'],
  [
    'replaced',
    file => {
      copyFileSync(file, `${file}.copy`)
      renameSync(`${file}.copy`, file)
    },
    'store.db was replaced',
  ],
  ['emptied', file => truncateSync(file, 0), 'store.db was truncated'],
  ['truncated', file => truncateSync(file, 4096), 'store.db was truncated'],
  ['left without its log', file => rmSync(`${file}-wal`), 'store.db-wal was deleted or moved'],
  ['left with an empty log', file => truncateSync(`${file}-wal`, 0), 'store.db-wal was truncated'],
])('no write to an open SQLite file is acknowledged after it was %s', async (_, change, reason) => {
  const { file, store, key } = await openInFolder()
  await store.appendMessage(key, text('kept'))
  await store.check()
  change(file)
  // The log is not examined for every commit.
  await new Promise(resolve => setTimeout(resolve, 100))
  const append = await failureOf(store.appendMessage(key, text('lost')))
  expect(append.code).toBe('store-unavailable')
  expect(append.message).toContain(reason)
  expect(append.message).toContain('restore a backup, and start Lango again')
  const check = store.check()
  expect((await failureOf(check)).message).toContain(reason)
  expect((await failureOf(store.updateState(key, { a: 1 }))).code).toBe('store-unavailable')
})

test('a SQLite file that was moved away and back is used again', async () => {
  const { file, store, key } = await openInFolder()
  renameSync(file, `${file}.moved`)
  expect((await failureOf(store.appendMessage(key, text('refused')))).code).toBe('store-unavailable')
  renameSync(`${file}.moved`, file)
  const { seq } = await store.appendMessage(key, text('kept'))
  expect((await store.readMessages(key)).at(-1)).toMatchObject({ seq, content: 'kept' })
  await store.check()
})

test('a SQLite file that another process vacuums, truncating its log, stays in use', async () => {
  const { file, store, key } = await openInFolder()
  await store.appendMessages(
    key,
    Array.from({ length: 300 }, () => text('x'.repeat(5000))),
  )
  await store.deleteSession(key)
  const child = runScript('lock-database.ts', [file, 'VACUUM; PRAGMA wal_checkpoint(TRUNCATE)'])
  await child.untilLines(1)
  await store.createSession(key)
  expect(await store.appendMessage(key, text('after'))).toEqual({ seq: 1 })
  child.process.kill('SIGKILL')
  await child.ended
})

test('appends to a SQLite file fail soon after its log was truncated', async () => {
  const { file, store, key } = await openInFolder()
  await store.appendMessage(key, text('kept'))
  await store.check()
  truncateSync(`${file}-wal`, 0)
  // Those of the next 50 ms are acknowledged, and make the log as long as before.
  const append = async () => {
    for (let count = 0; count < 100_000; count++) await store.appendMessage(key, text('lost'))
  }
  const failure = await failureOf(append())
  expect(failure.code).toBe('store-unavailable')
  expect(failure.message).toContain('store.db-wal was truncated')
})

test('closing a SQLite store stores pending writes, and leaves one file', async () => {
  const { folder, file, store, key } = await openInFolder()
  const writes = Array.from({ length: 20 }, (_, index) => store.appendMessage(key, text(`${index}`)))
  await store.close()
  expect((await Promise.all(writes)).map(({ seq }) => seq)).toEqual(writes.map((_, index) => index + 1))
  expect(readdirSync(folder)).toEqual(['store.db'])
  expect((await failureOf(store.appendMessage(key, text('late')))).code).toBe('store-unavailable')
  const again = await openStore(`sqlite:${file}`)
  expect(await again.readMessages(key)).toHaveLength(20)
  await again.close()
})

test('closing a SQLite store and exiting at once leaves one complete file', async () => {
  const { folder, file, store, key } = await openInFolder()
  await store.close()
  const child = runScript('store-child.ts', ['quit', `sqlite:${file}`, key.appName, key.sessionId, '50'])
  expect(await child.ended).toEqual({ code: 0, signal: null })
  expect(readdirSync(folder)).toEqual(['store.db'])
  const again = await openStore(`sqlite:${file}`)
  expect(await again.readMessages(key)).toHaveLength(50)
  await again.close()
})

test('writes to SQLite at the same time share commits, and each fails by itself', async () => {
  const database = await openSqlite({ path: join(await temporaryFolder(), 'store.db'), sync: 'full' })
  const store = await openSqlStore(database)
  onTestFinished(() => store.close())
  const key = newKey()
  await store.createSession(key)
  const before = database.work.commits
  const outcomes = await Promise.allSettled(
    Array.from({ length: 40 }, (_, index) =>
      store.appendMessage(index % 4 === 3 ? newKey() : key, text(`${index}`)),
    ),
  )
  expect(database.work.commits - before).toBeLessThan(20)
  expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(10)
  const messages = await store.readMessages(key)
  expect(messages.map(({ seq }) => seq)).toEqual(Array.from({ length: 30 }, (_, index) => index + 1))
  expect(messages.map(({ content }) => Number(content))).toEqual(
    Array.from({ length: 40 }, (_, index) => index).filter(index => index % 4 !== 3),
  )
})

test('in SQLite an opening is six statements, a load three, a step two, a call one more, and the end of a run two more', async () => {
  const database = await openSqlite({ path: join(await temporaryFolder(), 'store.db'), sync: 'full' })
  const store = await openSqlStore(database)
  onTestFinished(() => store.close())
  const key = newKey()
  const costOf = async <T>(work: () => Promise<T>): Promise<[T, number]> => {
    const before = database.work.statements
    const result = await work()
    return [result, database.work.statements - before]
  }
  const message = { ...text('Why?'), id: 'question' }
  const run = { key, runId: 'run' }
  const [opened, opening] = await costOf(() =>
    store.openRun({ ...run, message, events: [{ seq: 1, type: 'run-start' }] }),
  )
  expect(opening).toBe(6)
  if (!('lease' in opened)) throw new TypeError('the run was not opened')
  expect((await costOf(() => store.loadSession(key, { throughSeq: 0 })))[1]).toBe(2)
  expect((await costOf(() => store.loadSession(key, { throughSeq: 1 })))[1]).toBe(3)
  const { fence } = opened.lease
  const call = { callId: 'c', tool: 't', effect: 'once', digest: 'd', args: {} } as const
  const entry = { id: 'noted', kind: 'model', scope: '', author: 'root', branch: '' } as const
  const steps = [
    { message: { ...message, id: 'call' }, calls: [{ id: 'a', status: 'intent', call }], statements: 3 },
    { calls: [{ id: 'a', status: 'started' }], events: [], statements: 3 },
    { message: { ...message, id: 'result' }, calls: [{ id: 'a', status: 'done', result: 1 }], statements: 3 },
    { message: { ...message, id: 'answer' }, calls: [], statements: 2 },
    { message: { ...message, id: 'noted' }, calls: [], journal: [entry], statements: 2 },
    { events: [{ seq: 9, type: 'run-finish' }], release: true, statements: 4 },
  ] as const
  for (const [index, { statements, ...step }] of steps.entries()) {
    const events = [{ seq: index + 2, type: 'usage' }]
    const [, cost] = await costOf(() => store.runs.saveStep({ ...run, fence, events, ...step }))
    expect(cost).toBe(statements)
  }
  opened.lease.released()
  expect(await store.runs.findRun('run')).toMatchObject({ state: 'finished' })
  expect((await store.runs.readCalls('run'))[0]).toMatchObject({ status: 'done', attempt: 1, result: 1 })
})
