import { DatabaseSync } from '@photostructure/sqlite'
import { describe, expect, test } from 'vitest'
import { migrate } from '../../../src/store/migrations.js'
import { inspectStore, openStore } from '../../../src/store/open-store.js'
import { VERSIONS } from '../../../src/store/schema.js'
import { type Row, sql } from '../../../src/store/sql-database.js'
import { runScript } from '../../support/child.js'
import { WITH_INVENTED } from '../../support/invented-version.js'
import { type Driver, failureOf, newKey, openDatabase, SHARED_DRIVERS } from './drivers.js'

/**
 * The digest of version 1. After the first release no digest here may change: a released version is never edited, because
 * every database that has it would be refused. A change of the schema is a new version.
 */
const DIGESTS: Readonly<Record<string, string>> = {
  sqlite: '14cf6022f26a9d35d61c80d08ae86b1bb0c68572c35ac0d044d017437ee7df5d',
  postgres: '6b68925616897a92225d3ba62267c1e10118a6b7a44a0d771b531e884ba282f5',
}

const KEY = { appName: 'app', userId: 'ann', sessionId: 'one' }

/** A database of version 1 with a session and a message. */
async function startFilled(driver: Driver) {
  const started = await driver.startEmpty()
  const store = await openStore(started.url)
  await store.createSession(KEY, { a: 1 })
  await store.appendMessage(KEY, { role: 'user', content: 'hello', timestamp: 1 })
  await store.close()
  return started
}

async function query(url: string, ...texts: string[]): Promise<readonly Row[]> {
  const database = await openDatabase(url)
  let rows: readonly Row[] = []
  for (const text of texts) rows = await database.run(sql(text))
  await database.close()
  return rows
}

const versionsIn = (url: string) => query(url, 'SELECT * FROM lango_schema ORDER BY version')

async function expectHello(url: string): Promise<void> {
  const store = await openStore(url)
  expect(await store.loadSession(KEY)).toMatchObject({ state: { a: 1 }, messages: [{ content: 'hello' }] })
  await store.close()
}

describe.each(SHARED_DRIVERS)('the schema of $name', driver => {
  test(`an empty ${driver.name} database gets version 1 with its digest, and opening again changes nothing`, async () => {
    const { url, stop } = await startFilled(driver)
    await expectHello(url)
    expect(await versionsIn(url)).toEqual([{ version: 1, digest: DIGESTS[driver.name] }])
    await stop()
  })

  test(`processes and stores that open a ${driver.name} database of the version before at once migrate it once`, async () => {
    const { url, stop } = await startFilled(driver)
    const children = Array.from({ length: 3 }, () => runScript('migrate-child.ts', [url]))
    const databases = await Promise.all([openDatabase(url), openDatabase(url)])
    await Promise.all(databases.map(database => migrate(database, WITH_INVENTED)))
    for (const child of children) expect(await child.ended, child.errors()).toEqual({ code: 0, signal: null })
    await Promise.all(databases.map(database => database.close()))
    expect((await versionsIn(url)).map(({ version }) => version)).toEqual([1, 2])
    expect(await query(url, 'SELECT session_id, message_count, applied FROM lango_sessions')).toEqual([
      { session_id: 'one', message_count: 1, applied: 1 },
    ])
    expect(await query(url, 'SELECT content FROM lango_messages_readable')).toEqual([{ content: 'hello' }])
    await stop()
  })

  test(`an empty ${driver.name} database gets every version`, async () => {
    const { url, stop } = await driver.startEmpty()
    const database = await openDatabase(url)
    await migrate(database, WITH_INVENTED)
    await database.close()
    expect((await versionsIn(url)).map(({ version }) => version)).toEqual([1, 2])
    await stop()
  })

  test(`a migration of ${driver.name} that fails leaves the version before it whole`, async () => {
    const { url, stop } = await startFilled(driver)
    const before = await versionsIn(url)
    const database = await openDatabase(url)
    const failing = () => [
      'CREATE TABLE lango_invented (a INTEGER)',
      "UPDATE lango_sessions SET session_id = 'changed'",
      'INSERT INTO lango_unknown (a) VALUES (1)',
    ]
    expect((await failureOf(migrate(database, [...VERSIONS, failing]))).message).toContain('lango_unknown')
    await database.close()
    expect(await versionsIn(url)).toEqual(before)
    await expect(query(url, 'SELECT a FROM lango_invented')).rejects.toThrow('lango_invented')
    await expectHello(url)
    await stop()
  })

  test(`a ${driver.name} database of a newer schema is refused and left alone`, async () => {
    const { url, stop } = await startFilled(driver)
    const database = await openDatabase(url)
    await migrate(database, WITH_INVENTED)
    await database.close()
    const before = await versionsIn(url)
    const failure = await failureOf(openStore(url))
    expect(failure.code).toBe('store-newer-schema')
    expect(failure.message).toContain('version 2')
    expect(failure.message).toContain('Upgrade Lango')
    expect(await inspectStore(url)).toMatchObject({ version: 2, known: 1 })
    const child = runScript('store-child.ts', ['open', url])
    expect((await child.ended).code).toBe(1)
    expect(child.errors()).toContain('store-newer-schema: ')
    expect(await versionsIn(url)).toEqual(before)
    expect(await query(url, 'SELECT content FROM lango_messages_readable')).toEqual([{ content: 'hello' }])
    await stop()
  })

  test.each([
    [
      'no digests',
      [
        'DROP TABLE lango_schema',
        'CREATE TABLE lango_schema (version INTEGER PRIMARY KEY)',
        'INSERT INTO lango_schema (version) VALUES (1), (2), (13)',
      ],
    ],
    ['another digest', ["UPDATE lango_schema SET digest = 'other'"]],
    [
      'another digest and a later version',
      ["UPDATE lango_schema SET digest = 'other'", "INSERT INTO lango_schema VALUES (2, 'later')"],
    ],
  ])(
    `a ${driver.name} database with %s was written during development: refused and left alone`,
    async (_, changes) => {
      const { url, stop } = await startFilled(driver)
      await query(url, ...changes)
      const before = await versionsIn(url)
      for (const attempt of [openStore, inspectStore]) {
        const failure = await failureOf(attempt(url))
        expect(failure.code).toBe('store-corrupt')
        expect(failure.message).toContain(
          'written by a development version of Lango before its first release',
        )
        expect(failure.message).toContain('use another file or database')
      }
      expect(await versionsIn(url)).toEqual(before)
      expect(await query(url, 'SELECT content FROM lango_messages_readable')).toEqual([{ content: 'hello' }])
      await stop()
    },
  )

  test(`an event is stored in ${driver.name} without the columns of its row, and one of other names as it is`, async () => {
    const started = await driver.startEmpty()
    const store = await openStore(started.url)
    const key = newKey()
    const runId = 'a-run-with-a-long-id'
    await store.createSession(key)
    const event = { type: 'text-delta', text: 'x', sessionId: key.sessionId, runId, seq: 1 }
    const other = { ...event, sessionId: 'other', seq: 2 }
    await store.runs.appendEvents(key, runId, [event, other])
    const [stored] = await query(started.url, 'SELECT data, events, event_seq FROM lango_entries')
    expect(stored).toMatchObject({ events: 2, event_seq: 2 })
    expect(JSON.parse(String(stored?.data))).toEqual({
      events: [
        { type: 'text-delta', text: 'x', seq: 1 },
        { ...other, '\u0001named': true },
      ],
    })
    expect(await store.runs.readEvents(runId)).toEqual([event, other])
    await store.close()
    await started.stop()
  })

  test(`the readable view in ${driver.name} has contents and outputs, and a tool result is stored once`, async () => {
    const started = await driver.startEmpty()
    const store = await openStore(started.url)
    const key = newKey()
    await store.createSession(key)
    const outputs = ['{"found":1}', '"näxt"']
    const toolCalls = outputs.map((output, index) => ({ id: `c${index}`, name: 'search', output }))
    await store.appendMessage(key, { role: 'tool', content: outputs.join('\n'), toolCalls, timestamp: 1 })
    await store.appendMessage(key, { role: 'user', content: 'plain', timestamp: 1 })
    const odd = '"\0\ud800"'
    await store.appendMessage(key, {
      role: 'tool',
      content: odd,
      toolCalls: [{ id: 'c', name: 't', output: odd }],
      timestamp: 1,
    })
    await store.close()
    const database = await openDatabase(started.url)
    const readable = await database.run(
      sql('SELECT seq, session_id, role, content FROM lango_messages_readable WHERE seq < 3 ORDER BY seq'),
    )
    expect(readable).toEqual([
      { seq: 1, session_id: 'one', role: 'tool', content: outputs.join('\n') },
      { seq: 2, session_id: 'one', role: 'user', content: 'plain' },
    ])
    expect(await database.run(sql('SELECT count(content) AS found FROM lango_messages_readable'))).toEqual([
      { found: 3 },
    ])
    expect(
      await database.run(sql('SELECT message_seq FROM lango_entries WHERE content IS NULL ORDER BY seq')),
    ).toEqual([{ message_seq: 1 }, { message_seq: 3 }])
    await database.close()
    await started.stop()
  })
})

test('a column that does not hold JSON is reported with its message and column', async () => {
  const driver = SHARED_DRIVERS.find(({ name }) => name === 'sqlite')
  const started = await driver?.start()
  const url = started?.url ?? ''
  const store = await openStore(url)
  const key = newKey()
  await store.createSession(key)
  await store.appendMessage(key, { role: 'user', content: 'x', timestamp: 1, extra: { a: 1 } })
  const raw = new DatabaseSync(url.slice('sqlite:'.length))
  raw.exec("UPDATE lango_entries SET extra = '{oops'")
  raw.close()
  const failure = await failureOf(store.loadSession(key))
  expect(failure.code).toBe('store-corrupt')
  expect(failure.message).toContain('Column extra of message 1')
  await store.close()
  await started?.stop()
})
