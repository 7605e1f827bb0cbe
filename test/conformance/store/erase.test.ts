import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterEach, describe, expect, test } from 'vitest'
import type { SessionKey } from '../../../src/session/message.js'
import type { EraseReceipt, SessionStore } from '../../../src/session/session-store.js'
import { openStore } from '../../../src/store/open-store.js'
import { detachSessionTask } from '../../../src/store/sql-detach.js'
import { createStoreDatabase } from '../../support/postgres.js'
import { makeFolder, removeFolder } from '../../support/temporary-folder.js'
import {
  DRIVERS,
  failureOf,
  fired,
  newKey,
  openDatabase,
  type Place,
  SHARED_DRIVERS,
  useStore,
} from './drivers.js'

const MARK = 'zebra-crossing-4711'

function erase(store: SessionStore, { appName, userId }: SessionKey): Promise<EraseReceipt> {
  return store.erase({ appName, userId })
}

/** Every kind of data that a store keeps, with a text that can be searched for. */
async function fill(store: SessionStore, key: SessionKey, mark = MARK): Promise<string> {
  const inner = { ...key, appName: `${key.appName}-inner` }
  // The id of a deleted run is kept for a day, so it must not name the user.
  const runId = randomUUID()
  await store.createSession(key, { color: mark, 'user:name': mark }, { title: `title ${mark}` })
  await store.createSession(inner, { 'user:inner': mark }, { nestedIn: key.appName })
  const messages = Array.from({ length: 40 }, (_, index) => ({
    ...{ role: 'user', timestamp: 1, id: `${index}` },
    content: `${mark} ${index} ${'x'.repeat((index % 7) * 900)}`,
  }))
  await store.appendMessages(key, messages)
  await store.appendMessage(key, { role: 'user', content: `${mark} again`, timestamp: 1, id: '3' })
  await store.appendMessage(inner, { role: 'user', content: `inner ${mark}`, timestamp: 1 })
  await store.runs.appendEvents(key, runId, [{ seq: 1, type: 'text-delta', text: mark }])
  for (const step of [1, 2]) {
    const messages = Array.from({ length: 20 }, (_, index) => ({
      text: `${mark} ${index} ${'y'.repeat(400)}`,
    }))
    await store.runs.saveRequest(runId, step, { body: { messages, step } })
  }
  await store.runs.sendSignal(runId, { type: 'stop', reason: mark })
  return runId
}

describe.each(DRIVERS)('erasing a user in $name', driver => {
  const place = useStore(driver)

  test('erasing a user deletes every kind of data, counts it, and leaves other users and apps alone', async () => {
    const key = newKey()
    const other = { ...key, userId: 'bob' }
    const runId = await fill(place.store, key)
    await fill(place.store, { ...key, sessionId: 'two' })
    const otherRun = await fill(place.store, other)
    const before = await place.store.loadSession(other)
    const receipt = await erase(place.store, key)
    expect(receipt).toMatchObject({ sessions: 4, messages: 82, runs: 2, events: 2, requests: 4, signals: 2 })
    // Besides the messages, an entry for each replaced message, event, request and signal.
    expect(receipt.entries).toBe(92)
    // Per session one key of its own; one "user:" key in each of the two apps.
    expect(receipt.stateKeys).toBe(4)
    expect(receipt.at).toBeGreaterThan(0)
    expect(JSON.stringify(receipt)).not.toContain(key.userId)
    expect(await place.store.loadSession(key)).toBeUndefined()
    expect(await place.store.runs.findRun(runId)).toBeUndefined()
    expect(await place.store.runs.readEvents(runId)).toEqual([])
    expect(await place.store.runs.readRequests(runId)).toEqual([])
    expect(await place.store.runs.takeSignals(runId)).toEqual([])
    expect((await place.store.createSession(key)).state).toEqual({})
    expect(await place.store.loadSession(other)).toEqual(before)
    expect(await place.store.runs.readRequests(otherRun)).toHaveLength(2)
  })

  test('erasing a user again, or one without data, deletes nothing', async () => {
    const key = newKey()
    await fill(place.store, key)
    await erase(place.store, key)
    const { at: _at, residue: _residue, ...counts } = await erase(place.store, key)
    expect(Object.values(counts).every(count => count === 0)).toBe(true)
  })

  test('erasing keeps the state of a user in an inner app while the user has sessions there', async () => {
    const key = newKey()
    const inner = { ...key, appName: `${key.appName}-inner`, sessionId: 'own' }
    await fill(place.store, key)
    await place.store.createSession(inner)
    await erase(place.store, key)
    expect((await place.store.loadSession(inner))?.state).toEqual({ 'user:inner': MARK })
  })

  test('after an erasure the holder of a lease is refused, and its run stores nothing', async () => {
    const key = newKey()
    const runId = await fill(place.store, key)
    // A renewal finds out, after a third of its time.
    const lease = await place.store.acquireLease(key, { ttlMs: 300 })
    expect((await erase(place.store, key)).leases).toBe(1)
    const append = place.store.appendMessage(
      key,
      { role: 'user', content: 'late', timestamp: 1 },
      { fence: lease.fence },
    )
    expect((await failureOf(append)).code).toBe('session-not-found')
    const create = place.store.createSession(key, {}, { title: 'late', fence: lease.fence })
    expect((await failureOf(create)).code).toBe('lease-lost')
    const nested = { ...key, appName: 'late' }
    const inner = place.store.createSession(nested, {}, { nestedIn: key.appName })
    expect((await failureOf(inner)).code).toBe('session-not-found')
    await place.store.runs.appendEvents(key, runId, [{ seq: 9, text: 'late' }])
    await place.store.runs.appendEvents(key, `${runId}-unknown`, [{ seq: 1, text: 'late' }])
    await place.store.runs.saveRequest(runId, 9, { late: true })
    expect(await place.store.runs.readEvents(runId)).toEqual([])
    expect(await place.store.runs.readEvents(`${runId}-unknown`)).toEqual([])
    expect(await place.store.runs.readRequests(runId)).toEqual([])
    await fired(lease.lost)
    expect(String(lease.lost.reason)).toContain('the session was deleted')
  })

  test('a writer that waits for an erased session fails instead of creating it again', async () => {
    const key = newKey()
    await fill(place.store, key)
    await place.store.acquireLease(key)
    const waiting = failureOf(place.store.acquireLease(key, { ttlMs: 1500, waitMs: 60_000 }))
    // The attempt of the writer that waits has been refused before this one.
    expect((await failureOf(place.store.acquireLease(key))).code).toBe('session-busy')
    expect((await erase(place.store, key)).leases).toBe(1)
    const { code } = await waiting
    expect(code).toBe('lease-lost')
  })

  test('erasing a user without a name is refused', async () => {
    const failure = await failureOf(erase(place.store, { ...newKey(), userId: '' }))
    expect(failure).toMatchObject({ code: 'invalid-argument', message: expect.stringContaining('userId') })
  })
})

describe.each(SHARED_DRIVERS)('erasing in $name', driver => {
  const place = useStore(driver)

  test('an erasure that was interrupted is finished by the next one', async () => {
    const key = newKey()
    await fill(place.store, key)
    // As a process leaves it that is killed after detaching.
    await change(
      place,
      "UPDATE lango_sessions SET app_name = '', user_id = '', session_id = 'erased-' || pk, title = NULL, search = '', nested_in = NULL",
    )
    await change(place, "UPDATE lango_runs SET app_name = '', deleted_at = 1")
    await erase(place.store, newKey())
    for (const table of [
      'lango_entries',
      'lango_session_state',
      'lango_request_parts',
      'lango_sessions',
      'lango_runs',
    ])
      expect({ table, rows: await rows(place, `SELECT count(*) AS count FROM ${table}`) }).toEqual({
        table,
        rows: [{ count: 0 }],
      })
  })
})

describe.each(SHARED_DRIVERS)('deleting a nested session in $name', driver => {
  const place = useStore(driver)

  /** A run that has a message of its own and one of a nested session. */
  async function runWithNested(): Promise<{ key: SessionKey; inner: SessionKey }> {
    const key = newKey()
    const inner = { ...key, appName: `${key.appName}-inner` }
    const runId = randomUUID()
    const message = { role: 'user', content: 'outer', timestamp: 1, id: 'outer' }
    const opened = await place.store.openRun({ key, runId, message, events: [{ seq: 1 }] })
    if (!('lease' in opened)) expect.fail('the run was not opened')
    await place.store.createSession(inner, {}, { nestedIn: key.appName })
    const step = { key, runId, fence: opened.lease.fence }
    for (const content of [`old ${MARK}`, `new ${MARK}`]) {
      const nested = { role: 'assistant', content, timestamp: 1, id: 'inner' }
      await place.store.runs.saveStep({ ...step, message: nested, at: inner })
    }
    await place.store.runs.saveStep({ ...step, message: { ...message, content: 'last', id: 'last' } })
    await opened.lease.release()
    return { key, inner }
  }

  const withMark = () =>
    rows(place, `SELECT count(*) AS count FROM lango_entries WHERE content LIKE '%${MARK}%'`)

  test('deleting a nested session empties its messages in the log of the outer one, replaced ones too', async () => {
    const { key, inner } = await runWithNested()
    expect(await place.store.deleteSession(inner)).toBe(true)
    expect(await withMark()).toEqual([{ count: 0 }])
    expect(await place.store.loadSession(inner)).toBeUndefined()
    const session = await place.store.loadSession(key)
    expect(session?.messages.map(({ content }) => content)).toEqual(['outer', 'last'])
    const ofApp = `FROM lango_sessions WHERE app_name = '${key.appName}'`
    const gapless = `SELECT (SELECT entry_count ${ofApp}) - count(*) AS count FROM lango_entries
      WHERE session_pk = (SELECT pk ${ofApp})`
    expect(await rows(place, gapless)).toEqual([{ count: 0 }])
    expect(await place.store.deleteSession(key)).toBe(true)
  })

  test('erasing a user in the app of a nested session empties its messages in the log of the outer one', async () => {
    const { key, inner } = await runWithNested()
    expect(await erase(place.store, inner)).toMatchObject({ sessions: 1, messages: 1, entries: 0 })
    expect(await withMark()).toEqual([{ count: 0 }])
    expect((await place.store.loadSession(key))?.messages).toHaveLength(2)
    expect(await erase(place.store, key)).toMatchObject({ sessions: 1, messages: 2, entries: 4 })
  })

  test('the deletion of a nested session that was interrupted is finished by the next erasure', async () => {
    const { key, inner } = await runWithNested()
    await detach(place, inner)
    expect(await withMark()).toEqual([{ count: 2 }])
    await erase(place.store, newKey())
    expect(await withMark()).toEqual([{ count: 0 }])
    expect(await place.store.deleteSession(key)).toBe(true)
  })

  test('a store that knows a session writes nothing to it once another process deletes it', async () => {
    const key = newKey()
    await place.store.createSession(key)
    const message = { role: 'user', content: 'x', timestamp: 1 }
    await place.store.appendMessage(key, message)
    await detach(place, key)
    expect((await failureOf(place.store.appendMessage(key, message))).code).toBe('session-not-found')
    expect((await failureOf(place.store.updateState(key, { a: 1 }))).code).toBe('session-not-found')
    const kept = "SELECT count(*) AS count FROM lango_entries WHERE content = 'x'"
    expect(await rows(place, kept)).toEqual([{ count: 1 }])
    await erase(place.store, newKey())
    expect(await rows(place, kept)).toEqual([{ count: 0 }])
  })
})

/** The first step of a deletion, as a process leaves it that is killed after it. */
async function detach(place: Place, key: SessionKey): Promise<void> {
  const database = await openDatabase(place.url)
  await database.write(() => detachSessionTask(database.dialect, key))
  await database.close()
}

describe.each(SHARED_DRIVERS)('deleting by age in $name', driver => {
  const place = useStore(driver)
  const DAY_MS = 86_400_000

  async function aged(key: SessionKey, days: number): Promise<void> {
    const [clock] = await rows(
      place,
      `UPDATE lango_sessions SET updated_at = updated_at - ${days} * CAST(86400000 AS BIGINT),
        updated_hour = updated_hour - ${days * 24}
        WHERE app_name = '${key.appName}' AND session_id = '${key.sessionId}' RETURNING pk`,
    )
    expect(clock).toBeDefined()
  }

  test('expiry deletes idle sessions with nested ones; changed and leased ones and other apps stay', async () => {
    const key = newKey()
    const named = (sessionId: string) => ({ ...key, sessionId })
    const foreign = { ...newKey(), sessionId: 'idle' }
    for (const each of ['idle', 'leased', 'fresh', 'recent']) await fill(place.store, named(each))
    await fill(place.store, foreign)
    for (const each of [named('idle'), named('leased'), foreign]) await aged(each, 40)
    await aged(named('recent'), 2)
    const lease = await place.store.acquireLease(named('leased'))
    const receipt = await place.store.expire({ appName: key.appName, sessionsMs: 30 * DAY_MS })
    expect(receipt).toMatchObject({ sessions: 2, events: 0 })
    expect(receipt.clockAheadMs).toBeUndefined()
    const { sessions } = await place.store.listSessions({ appName: key.appName })
    expect(sessions.map(({ key: { sessionId } }) => sessionId).sort()).toEqual(['fresh', 'leased', 'recent'])
    expect(
      await place.store.loadSession({ ...named('idle'), appName: `${key.appName}-inner` }),
    ).toBeUndefined()
    expect(await place.store.loadSession(foreign)).toBeDefined()
    await lease.release()
  })

  test('expiry deletes nothing while the clock is far ahead of what was stored, unless it is trusted', async () => {
    const key = newKey()
    await fill(place.store, key)
    await aged(key, 400)
    // Stored under the wrong clock.
    await fill(place.store, { ...key, sessionId: 'new' })
    const options = { appName: key.appName, sessionsMs: 30 * DAY_MS }
    const held = await place.store.expire(options)
    expect(held).toMatchObject({ sessions: 0, clockAheadMs: expect.any(Number) })
    expect(held.clockAheadMs).toBeGreaterThan(399 * DAY_MS)
    expect(await place.store.loadSession(key)).toBeDefined()
    expect(await place.store.expire({ ...options, trustClock: true })).toMatchObject({ sessions: 2 })
    expect(await place.store.loadSession(key)).toBeUndefined()
  })
})

/** Runs SQL past the store. */
async function rows(place: Place, text: string): Promise<Record<string, unknown>[]> {
  if (place.url.startsWith('postgres')) {
    const { default: pg } = await import('pg')
    const client = new pg.Client({ connectionString: place.url })
    await client.connect()
    try {
      const { rows: found } = await client.query(text)
      return found.map(row => ('count' in row ? { ...row, count: Number(row.count) } : row))
    } finally {
      await client.end()
    }
  }
  const database = new DatabaseSync(place.url.replace(/^sqlite:|\?.*$/g, ''), { timeout: 5000 })
  try {
    return database
      .prepare(text)
      .all()
      .map(row => ({ ...(row as Record<string, unknown>) }))
  } finally {
    database.close()
  }
}

async function change(place: Place, text: string): Promise<void> {
  await rows(place, text)
}

/** Which of the files hold the text. */
function filesWith(folder: string, text: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .filter(file => existsSync(file) && readFileSync(file).includes(text))
}

describe('the files of a SQLite database', () => {
  let folder = ''
  afterEach(() => removeFolder(folder))

  async function filled(): Promise<{
    store: SessionStore
    other: SessionStore
    key: SessionKey
    users: string[]
  }> {
    folder = await makeFolder()
    const store = await openStore(`sqlite:${join(folder, 'store.db')}`)
    // A second connection keeps the log from being removed by closing.
    const other = await openStore(`sqlite:${join(folder, 'store.db')}`)
    const key = { appName: 'app', userId: 'user-to-forget', sessionId: 'one' }
    const users = ['ann', 'bob'].map(name => `kept-${name}`)
    for (const sessionId of ['one', 'two']) {
      await fill(store, { ...key, sessionId })
      for (const userId of users) await fill(store, { appName: 'app', userId, sessionId }, `keep ${userId}`)
    }
    return { store, other, key, users }
  }

  test('the files of a SQLite database hold neither text nor name of an erased user, while others use the store', async () => {
    const { store, other, key } = await filled()
    expect(filesWith(folder, MARK)).not.toEqual([])
    expect((await erase(store, key)).residue).toBe('none')
    expect(filesWith(folder, MARK)).toEqual([])
    expect(filesWith(folder, key.userId)).toEqual([])
    expect(filesWith(folder, 'keep kept-bob')).not.toEqual([])
    await Promise.all([store.close(), other.close()])
  })

  test('the files of a SQLite database hold nothing of a deleted session', async () => {
    const { store, other, key } = await filled()
    for (const sessionId of ['one', 'two']) await store.deleteSession({ ...key, sessionId })
    // State of the user is not part of a session.
    expect(filesWith(folder, `${MARK} 1`)).toEqual([])
    expect(filesWith(folder, `inner ${MARK}`)).toEqual([])
    expect(filesWith(folder, `title ${MARK}`)).toEqual([])
    await Promise.all([store.close(), other.close()])
  })

  test('erasing in SQLite reports that the log holds the text while a reader needs it', async () => {
    const { store, other, key } = await filled()
    const reader = new DatabaseSync(join(folder, 'store.db'))
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM lango_messages_readable').get()
    expect((await erase(store, key)).residue).toBe('log')
    reader.exec('COMMIT')
    reader.close()
    expect((await erase(store, key)).residue).toBe('none')
    expect(filesWith(folder, MARK)).toEqual([])
    await Promise.all([store.close(), other.close()])
  })

  test('a rewrite removes from a SQLite file what another program deleted without overwriting', async () => {
    folder = await makeFolder()
    const file = join(folder, 'store.db')
    const store = await openStore(`sqlite:${file}`)
    const key = { appName: 'app', userId: 'user-to-forget', sessionId: 'one' }
    await fill(store, key)
    await store.close()
    const program = new DatabaseSync(file)
    program.exec('PRAGMA secure_delete = OFF')
    program.exec('DELETE FROM lango_entries')
    program.close()
    expect(filesWith(folder, `${MARK} 1`)).not.toEqual([])
    const again = await openStore(`sqlite:${file}`)
    await again.erase(key, { rewrite: true })
    expect(filesWith(folder, MARK)).toEqual([])
    await again.close()
  })
})

test('the files of a PostgreSQL database hold nothing of an erased user after a rewrite and a checkpoint', async () => {
  const database = await createStoreDatabase()
  const store = await openStore(database.url)
  const key = { appName: 'app', userId: 'user-to-forget', sessionId: 'one' }
  await fill(store, key)
  await fill(store, { ...key, userId: 'kept' }, 'keep this')
  await database.query('CHECKPOINT')
  const [place] = await database.query(
    "SELECT current_setting('data_directory') AS folder, oid FROM pg_database WHERE datname = current_database()",
  )
  const folder = join(String(place?.folder), 'base', String(place?.oid))
  expect(existsSync(dirname(folder))).toBe(true)
  expect(filesWith(folder, MARK)).not.toEqual([])
  expect((await erase(store, key)).residue).toBe('free-space')
  expect((await store.erase(key, { rewrite: true })).residue).toBe('log')
  await database.query('CHECKPOINT')
  expect(filesWith(folder, MARK)).toEqual([])
  expect(filesWith(folder, key.userId)).toEqual([])
  expect(filesWith(folder, 'keep this')).not.toEqual([])
  await store.close()
  await database.drop()
})

test('the log of PostgreSQL holds nothing of an erased user once old segments are removed instead of recycled', async () => {
  const database = await createStoreDatabase()
  const store = await openStore(database.url)
  const key = { appName: 'app', userId: 'ann', sessionId: 'one' }
  const mark = `log-${randomUUID()}`
  await fill(store, key, mark)
  const [place] = await database.query("SELECT current_setting('data_directory') AS folder")
  const log = join(String(place?.folder), 'pg_wal')
  await store.erase(key, { rewrite: true })
  expect(filesWith(log, mark)).not.toEqual([])
  await database.query('ALTER SYSTEM SET wal_recycle = off')
  await database.query('SELECT pg_reload_conf()')
  await expect
    .poll(
      async () => {
        await database.query('SELECT pg_switch_wal()')
        await database.query('CHECKPOINT')
        return filesWith(log, mark)
      },
      { timeout: 60_000 },
    )
    .toEqual([])
  await database.query('ALTER SYSTEM RESET wal_recycle')
  await database.query('SELECT pg_reload_conf()')
  await store.close()
  await database.drop()
})
