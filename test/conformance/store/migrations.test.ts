import { DatabaseSync } from '@photostructure/sqlite'
import { describe, expect, test } from 'vitest'
import { KNOWN_VERSION, migrate } from '../../../src/store/migrations.js'
import { openStore } from '../../../src/store/open-store.js'
import { sql } from '../../../src/store/sql-database.js'
import { runScript } from '../../support/child.js'
import { longUnless } from '../../support/tiers.js'
import { failureOf, newKey, openDatabase, SHARED_DRIVERS } from './drivers.js'

/** The rows of `lango_schema` in a database of this release. */
const ALL_VERSIONS = Array.from({ length: 13 }, (_, index) => ({ version: index + 1 }))

/** A database as the first schema left it: one session with a call and its answer. */
async function writeFirstSchema(url: string, appName: string): Promise<void> {
  const database = await openDatabase(url)
  await migrate(database, 1)
  await database.run(
    sql(
      `INSERT INTO lango_sessions (app_name, user_id, session_id, message_count, token_total, turn_seq, created_at, updated_at, updated_hour)
        VALUES (?, 'ann', 'one', 3, 60, 1, 1000, 2000, 0)`,
      appName,
    ),
  )
  const calls = JSON.stringify([{ id: 'c', name: 'search', input: '{}' }])
  const outputs = JSON.stringify([{ id: 'c', name: 'search', output: '{"found":1}' }])
  const rows = [
    [1, 3, 'user', 'find it', null],
    [2, 0, 'assistant', '', calls],
    [3, 0, 'tool', null, outputs],
  ] as const
  for (const [seq, flags, role, content, toolCalls] of rows) {
    await database.run(
      sql(
        `INSERT INTO lango_messages (session_pk, seq, flags, tokens, timestamp, role, content, tool_calls, event_id)
          VALUES (1, ?, ?, 20, 5, ?, ?, ?, ?)`,
        seq,
        flags,
        role,
        content,
        toolCalls,
        `e${seq}`,
      ),
    )
  }
  await database.close()
}

describe.each(SHARED_DRIVERS)('the schema of $name', driver => {
  test(`an empty ${driver.name} database gets the newest schema, and opening again changes nothing`, async () => {
    const started = await driver.startEmpty()
    const key = newKey()
    const first = await openStore(started.url)
    await first.createSession(key, { a: 1 })
    await first.close()
    const second = await openStore(started.url)
    expect((await second.loadSession(key))?.state).toEqual({ a: 1 })
    await second.close()
    const database = await openDatabase(started.url)
    expect(await database.run(sql('SELECT version FROM lango_schema ORDER BY version'))).toEqual(ALL_VERSIONS)
    await database.close()
    await started.stop()
  })

  test(`a ${driver.name} database of the first schema keeps its history and gains what is new`, async () => {
    const started = await driver.startEmpty()
    const { appName } = newKey()
    await writeFirstSchema(started.url, appName)
    const store = await openStore(started.url)
    const key = { appName, userId: 'ann', sessionId: 'one' }
    const session = await store.loadSession(key)
    expect(session).toMatchObject({ totalMessages: 3, createdAt: 1000, updatedAt: 2000 })
    expect(session?.messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'find it'],
      ['assistant', ''],
      ['tool', '{"found":1}'],
    ])
    expect(await store.appendMessage(key, { role: 'assistant', content: 'found', timestamp: 1 })).toEqual({
      seq: 4,
    })
    await store.calibration.record('model', 4, 1)
    expect(await store.calibration.read('model')).toEqual({ bytes: 4, tokens: 1 })
    await store.close()
    await started.stop()
  })

  // From the first schema on, every migration is made; upgrades.test.ts opens a SQLite file of each.
  for (let version = 1; version < KNOWN_VERSION; version++)
    test(
      `a ${driver.name} database of schema ${version} opens, and a run can be stored in it`,
      longUnless(version === 1 || version === KNOWN_VERSION - 1),
      async () => {
        const started = await driver.startEmpty()
        const database = await openDatabase(started.url)
        await migrate(database, version)
        await database.run(
          sql(
            `INSERT INTO lango_sessions (app_name, user_id, session_id, message_count, token_total, turn_seq, created_at, updated_at, updated_hour)
          VALUES ('app', 'ann', 'one', 0, 0, 0, 1000, 2000, 0)`,
          ),
        )
        // A ticket that its process left: it has expired.
        await database.run(
          sql(
            "INSERT INTO lango_leases (app_name, user_id, session_id, expires_at) VALUES ('app', 'ann', 'one', 1)",
          ),
        )
        await database.close()
        const store = await openStore(started.url)
        const key = { appName: 'app', userId: 'ann', sessionId: 'one' }
        const message = { role: 'user', content: 'Hello', timestamp: 1, id: 'e1' }
        const opened = await store.openRun?.({
          key,
          runId: 'r1',
          message,
          events: [{ seq: 1, type: 'run-start' }],
        })
        expect(opened).toMatchObject({ seq: 1 })
        expect((await store.loadSession(key))?.messages).toMatchObject([message])
        const ask = { id: 'i', key, runId: 'r1', limits: { run: 9 }, wants: 10, enough: 5, least: 1 }
        expect(await store.spending?.reserve(ask)).toEqual({ granted: 9 })
        const later = { key, runId: 'r2', message: { ...message, id: 'e2' }, events: [], dueAt: 1 }
        expect(await store.queueRun?.(later)).toEqual({ dueAt: 1 })
        expect(await store.runs.releaseDue?.({ appName: 'app' })).toEqual({
          released: [{ runId: 'r2', key }],
        })
        expect((await store.erase?.({ appName: 'app', userId: 'ann' }))?.sessions).toBe(1)
        await store.close()
        await started.stop()
      },
    )

  test(`runs of schema 6 in ${driver.name} have the state that their events tell, and block no new run`, async () => {
    const started = await driver.startEmpty()
    const database = await openDatabase(started.url)
    await migrate(database, 6)
    const key = { appName: 'app', userId: 'ann', sessionId: 'one' }
    await database.run(
      sql(
        `INSERT INTO lango_sessions (app_name, user_id, session_id, message_count, token_total, turn_seq, created_at, updated_at, updated_hour)
          VALUES ('app', 'ann', 'one', 0, 0, 0, 1000, 2000, 0)`,
      ),
    )
    for (const [runId, type] of [
      ['ended', 'run-finish'],
      ['open', 'run-start'],
    ] as const) {
      await database.run(
        sql(
          "INSERT INTO lango_runs (run_id, app_name, user_id, session_id, started_at, after_seq) VALUES (?, 'app', 'ann', 'one', 5, 0)",
          runId,
        ),
      )
      await database.run(
        sql(
          'INSERT INTO lango_run_events (run_id, seq, stored_at, event) VALUES (?, 1, 5, ?)',
          runId,
          JSON.stringify({ seq: 1, type }),
        ),
      )
    }
    await database.close()
    const store = await openStore(started.url)
    expect(await store.runs.findRun('ended')).toMatchObject({ state: 'finished', finished: true })
    expect(await store.runs.findRun('open')).toMatchObject({ state: 'running', finished: false })
    expect(await store.runs.listUnfinished?.({ abandoned: true, appName: 'app' })).toEqual([])
    await store.runs.appendEvents(key, 'open', [{ seq: 2, type: 'run-finish' }])
    expect(await store.runs.findRun('open')).toMatchObject({ state: 'finished', finished: true })
    const run = { key, runId: 'new', message: { role: 'user', content: 'Hello', timestamp: 1, id: 'e1' } }
    const opened = await store.openRun?.({ ...run, events: [{ seq: 1, type: 'run-start' }] })
    if (!opened || !('lease' in opened)) throw new TypeError('the run was not opened')
    const { fence } = opened.lease
    const call = { callId: 'c', tool: 't', effect: 'once', digest: 'd', args: {} } as const
    const calls = [{ id: 'm/c', status: 'intent', call } as const]
    expect(await store.runs.saveStep?.({ key, runId: 'new', fence, calls })).toEqual({
      calls: [{ id: 'm/c', ordinal: 0, attempt: 0 }],
    })
    expect(await store.queueRun?.({ ...run, runId: 'next', events: [] })).toEqual({ queued: 1 })
    await opened.lease.release()
    await store.close()
    await started.stop()
  })

  test(`a run of schema 7 in ${driver.name} can be resumed, with its ledger and lease`, async () => {
    const started = await driver.startEmpty()
    const database = await openDatabase(started.url)
    await migrate(database, 7)
    const key = { appName: 'app', userId: 'ann', sessionId: 'one' }
    for (const text of [
      `INSERT INTO lango_sessions (app_name, user_id, session_id, message_count, token_total, turn_seq, created_at,
        updated_at, updated_hour, call_count) VALUES ('app', 'ann', 'one', 2, 2, 2, 1000, 2000, 0, 1)`,
      `INSERT INTO lango_messages (session_pk, seq, flags, tokens, timestamp, role, content, event_id)
        VALUES (1, 1, 0, 1, 5, 'assistant', 'Hello', 'e1'), (1, 2, 3, 1, 5, 'user', 'Pay', 'e2')`,
      `INSERT INTO lango_runs (run_id, app_name, user_id, session_id, started_at, after_seq, state, input, place)
        VALUES ('r', 'app', 'ann', 'one', 5, 1, 'running', '{"input":{"model":"m"}}', 1)`,
      `INSERT INTO lango_run_events (run_id, seq, stored_at, event) VALUES ('r', 1, 5, '{"seq":1,"type":"run-start"}')`,
      `INSERT INTO lango_tool_calls (session_pk, run_id, call_key, number, id, call_id, tool, effect, digest, args, ordinal,
        attempt, status, result, changed_at) VALUES (1, 'r', 'm/c', 1, 'm/c', 'c', 't', 'once', 'd', '{}', 0, 1, 'done', '1', 5)`,
      `INSERT INTO lango_leases (app_name, user_id, session_id, expires_at, ttl_ms)
        VALUES ('app', 'ann', 'one', ${Date.now() + 600_000}, 600000)`,
    ])
      await database.run(sql(text))
    const store = await openStore(started.url)
    expect((await failureOf(store.acquireLease(key))).code).toBe('session-busy')
    await database.run(sql('UPDATE lango_leases SET expires_at = 1'))
    await database.close()
    expect(await store.runs.readResumable?.('r')).toMatchObject({
      input: { model: 'm' },
      message: { id: 'e2', seq: 2 },
      journal: [],
      state: 'running',
      attempt: 1,
    })
    const [call] = (await store.runs.readCalls?.('r')) ?? []
    expect(call).toMatchObject({ status: 'done', result: 1 })
    expect(call).not.toHaveProperty('actions')
    const { fence } = await store.acquireLease(key)
    const events = [{ seq: 2, type: 'run-resumed' }]
    expect(await store.runs.resumeRun?.({ key, runId: 'r', fence, events })).toEqual({ attempt: 2 })
    const entry = { id: 'e3', kind: 'model', scope: '', author: 'root', branch: '' } as const
    const message = { role: 'assistant', content: 'Paid.', timestamp: 6, id: 'e3' }
    await store.runs.saveStep?.({ key, runId: 'r', fence, message, journal: [entry] })
    expect(await store.runs.readResumable?.('r')).toMatchObject({
      journal: [{ ...entry, seq: 3 }],
      attempt: 1,
    })
    await store.close()
    await started.stop()
  })

  test(`requests of schema 11 in ${driver.name}, which share parts within their run, are read and deleted with their run`, async () => {
    const started = await driver.startEmpty()
    const database = await openDatabase(started.url)
    await migrate(database, 11)
    const body = { text: 'x'.repeat(6000) }
    const statements = [
      `INSERT INTO lango_sessions (app_name, user_id, session_id, message_count, token_total, turn_seq, created_at, updated_at, updated_hour)
        VALUES ('app', 'ann', 'one', 0, 0, 0, 1000, 2000, 0)`,
      "INSERT INTO lango_runs (run_id, app_name, user_id, session_id, state) VALUES ('r1', 'app', 'ann', 'one', 'finished')",
      `INSERT INTO lango_run_parts (run_id, digest, part) VALUES ('r1', 'a', ' {"body":'), ('r1', 'b', ' ${JSON.stringify(body)}}')`,
      "INSERT INTO lango_run_requests (run_id, step, stored_at, record) VALUES ('r1', 1, 1, 'parts 1+1')",
    ]
    for (const text of statements) await database.run(sql(text))
    await database.close()
    const store = await openStore(started.url)
    await store.runs.saveRequest('r1', 2, { body, more: body })
    expect(await store.runs.readRequests('r1')).toEqual([
      { step: 1, record: { body } },
      { step: 2, record: { body, more: body } },
    ])
    const erased = await store.erase?.({ appName: 'app', userId: 'ann' })
    expect(erased?.requestParts).toBeGreaterThan(2)
    expect(await store.runs.readRequests('r1')).toEqual([])
    await store.close()
    await started.stop()
  })

  test(`an event is stored in ${driver.name} without the columns of its row, and one of an earlier release is read as it is`, async () => {
    const started = await driver.startEmpty()
    const store = await openStore(started.url)
    const key = newKey()
    const runId = 'a-run-with-a-long-id'
    await store.createSession(key)
    const event = { type: 'text-delta', text: 'x', sessionId: key.sessionId, runId, seq: 1 }
    await store.runs.appendEvents(key, runId, [event])
    const database = await openDatabase(started.url)
    const rows = await database.run(sql('SELECT event FROM lango_run_events WHERE run_id = ?', runId))
    expect(rows).toEqual([{ event: JSON.stringify({ type: 'text-delta', text: 'x' }) }])
    const earlier = { ...event, seq: 2 }
    await database.run(
      sql(
        'INSERT INTO lango_run_events (run_id, seq, stored_at, event) VALUES (?, 2, 5, ?)',
        runId,
        JSON.stringify(earlier),
      ),
    )
    await database.close()
    expect(await store.runs.readEvents(runId)).toEqual([event, earlier])
    await store.close()
    await started.stop()
  })

  test(`processes that open a ${driver.name} database of the first schema at once migrate it once`, async () => {
    const started = await driver.startEmpty()
    await writeFirstSchema(started.url, 'app')
    const children = Array.from({ length: 3 }, () => runScript('store-child.ts', ['open', started.url]))
    for (const child of children) expect(await child.ended, child.errors()).toEqual({ code: 0, signal: null })
    const database = await openDatabase(started.url)
    expect(await database.run(sql('SELECT version FROM lango_schema ORDER BY version'))).toEqual(ALL_VERSIONS)
    await database.close()
    await started.stop()
  })

  test(`a ${driver.name} database of a newer schema is refused and left alone`, async () => {
    const started = await driver.startEmpty()
    await (await openStore(started.url)).close()
    const database = await openDatabase(started.url)
    await database.run(sql('INSERT INTO lango_schema (version) VALUES (99)'))
    await database.close()
    const failure = await failureOf(openStore(started.url))
    expect(failure.code).toBe('store-newer-schema')
    expect(failure.message).toContain('version 99')
    expect(failure.message).toContain('Upgrade Lango')
    const child = runScript('store-child.ts', ['open', started.url])
    expect((await child.ended).code).toBe(1)
    expect(child.errors()).toContain('store-newer-schema: ')
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
      await database.run(sql('SELECT seq FROM lango_messages WHERE content IS NULL ORDER BY seq')),
    ).toEqual([{ seq: 1 }, { seq: 3 }])
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
  raw.exec("UPDATE lango_messages SET extra = '{oops'")
  raw.close()
  const failure = await failureOf(store.loadSession(key))
  expect(failure.code).toBe('store-corrupt')
  expect(failure.message).toContain('Column extra of message 1')
  await store.close()
  await started?.stop()
})
