import { type AddressInfo, connect, createServer } from 'node:net'
import pg from 'pg'
import { expect, test, vi } from 'vitest'
import type { RunStep, ToolCallFacts } from '../../../src/session/run-store.js'
import { checkedStore } from '../../../src/store/checked-store.js'
import { openStore } from '../../../src/store/open-store.js'
import { PostgresStore } from '../../../src/store/postgres-store.js'
import { openSqlStore } from '../../../src/store/sql-store.js'
import { createDatabase, createStoreDatabase, type TestDatabase } from '../../support/postgres.js'
import { failureOf, measureCost, newKey, openDatabase } from './drivers.js'

/** Behind a pooler, other statements are sent (`test/store/pgbouncer.test.ts`), and only one user is known. */
const IS_POOLED = Boolean(process.env.LANGO_TEST_POOLER)

test('a store survives a PostgreSQL server that drops its connections, idle or at work', async () => {
  const database = await createStoreDatabase()
  const store = await openStore(database.url)
  const key = newKey()
  await store.createSession(key)
  for (let round = 0; round < 5; round++) {
    const writes = Array.from({ length: 20 }, (_, index) =>
      store.appendMessage(key, { role: 'user', content: 'x', timestamp: 1, id: `${round}-${index}` }).then(
        () => 'stored',
        error => (error as { code: string; retryable: boolean }).retryable,
      ),
    )
    await dropConnections(database)
    // The error of a dropped connection is retryable.
    for (const outcome of await Promise.all(writes)) expect(['stored', true]).toContain(outcome)
  }
  const messages = await store.readMessages(key)
  expect(messages.map(({ seq }) => seq)).toEqual(
    Array.from({ length: messages.length }, (_, index) => index + 1),
  )
  expect(await store.appendMessage(key, { role: 'user', content: 'after', timestamp: 1 })).toEqual({
    seq: messages.length + 1,
  })
  await store.close()
  await database.drop()
})

function dropConnections(database: TestDatabase): Promise<unknown> {
  return database.query(
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
  )
}

test.runIf(!IS_POOLED)(
  'a user who may not create tables opens an existing store, and gets store-unavailable for a new one',
  async () => {
    const database = await createDatabase()
    await database.query("CREATE ROLE lango_guest LOGIN PASSWORD 'guest'")
    const guestUrl = Object.assign(new URL(database.url), { username: 'lango_guest', password: 'guest' }).href
    const failure = await failureOf(openStore(guestUrl))
    expect(failure.code).toBe('store-unavailable')
    expect(failure.message).toContain('grant the user the right to create tables')
    await (await openStore(database.url)).close()
    await database.query('GRANT ALL ON ALL TABLES IN SCHEMA public TO lango_guest')
    const guest = await openStore(guestUrl)
    const key = newKey()
    await guest.createSession(key)
    expect(await guest.appendMessage(key, { role: 'user', content: 'x', timestamp: 1 })).toEqual({ seq: 1 })
    await guest.close()
    await database.query('DROP OWNED BY lango_guest')
    await database.query('DROP ROLE lango_guest')
    await database.drop()
  },
)

test('a backup of a PostgreSQL store is refused with the advice to use pg_dump', async () => {
  const database = await createStoreDatabase()
  const store = await openStore(database.url)
  const failure = await failureOf(Promise.resolve(store.backup('copy.db')))
  expect(failure).toMatchObject({ code: 'unsupported', message: expect.stringContaining('Use pg_dump') })
  await store.close()
  await database.drop()
})

test('a database that does not store text as UTF-8 is refused', async () => {
  const database = await createStoreDatabase()
  const name = `lango_latin_${Date.now()}`
  await database.query(`CREATE DATABASE ${name} ENCODING 'LATIN1' TEMPLATE template0`)
  const failure = await failureOf(
    openStore(Object.assign(new URL(database.url), { pathname: `/${name}` }).href),
  )
  expect(failure.code).toBe('store-unavailable')
  expect(failure.message).toContain("ENCODING 'UTF8'")
  await database.query(`DROP DATABASE ${name} WITH (FORCE)`)
  await database.drop()
})

/** Locks the rows of every session until it is released. */
async function lockSessions(url: string): Promise<() => Promise<void>> {
  const client = new pg.Client(url)
  // A test may drop its connection.
  client.on('error', () => {})
  await client.connect()
  await client.query('BEGIN')
  await client.query('SELECT * FROM lango_sessions FOR UPDATE')
  return () => client.end()
}

test.each(['appendMessage', 'updateState'] as const)(
  '%s times out when a row stays locked, and the error names the setting',
  async method => {
    const database = await createStoreDatabase()
    const store = await openStore(`${database.url}?query_timeout=200`)
    const key = newKey()
    await store.createSession(key)
    const unlock = await lockSessions(database.url)
    const write = () =>
      method === 'appendMessage'
        ? store.appendMessage(key, { role: 'user', content: 'x', timestamp: 1 })
        : store.updateState(key, { a: 1 })
    const failure = await failureOf(write())
    expect(failure.code).toBe('store-unavailable')
    expect(failure.message).toContain('within 200 ms')
    expect(failure.message).toContain('?query_timeout=ms')
    await unlock()
    await write()
    await store.close()
    await database.drop()
  },
)

test('closing a PostgreSQL store does not wait for a statement that waits for a lock', async () => {
  const database = await createStoreDatabase()
  const store = await openStore(database.url)
  const key = newKey()
  await store.createSession(key)
  const unlock = await lockSessions(database.url)
  const writes = [
    failureOf(store.appendMessage(key, { role: 'user', content: 'x', timestamp: 1 })),
    failureOf(store.updateState(key, { a: 1 })),
  ]
  await untilBlocked(database, 2)
  const [, ...failures] = await inFastTime(() => Promise.all([store.close(), ...writes]))
  expect(failures.map(({ code }) => code)).toEqual(['store-unavailable', 'store-unavailable'])
  await unlock()
  await database.drop()
})

/** Timeouts that begin during this work are over at once. */
async function inFastTime<T>(work: () => Promise<T>): Promise<T> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldClearNativeTimers: true })
  try {
    let isOver = false
    const working = work().finally(() => {
      isOver = true
    })
    while (!isOver) {
      await vi.advanceTimersByTimeAsync(100)
      await new Promise(resolve => setImmediate(resolve))
    }
    return await working
  } finally {
    vi.useRealTimers()
  }
}

test('a PostgreSQL server that accepts connections and never answers is reported after one timeout, not after five', async () => {
  let connections = 0
  const server = createServer(() => {
    connections++
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const failure = await failureOf(openStore(`postgres://u:p@127.0.0.1:${port}/d?query_timeout=500`))
  expect(failure.code).toBe('store-unavailable')
  expect(failure.message).toContain('check the network, the firewall')
  expect(connections).toBe(1)
  server.close()
})

test('opening a store waits for a PostgreSQL server that is still starting', async () => {
  const database = await createStoreDatabase()
  const { port, hostname } = new URL(database.url)
  let connections = 0
  const server = createServer(socket => {
    socket.on('error', () => {})
    connections++
    if (connections > 3) {
      const real = connect(Number(port), hostname)
      real.on('error', () => socket.destroy())
      socket.on('close', () => real.destroy())
      socket.pipe(real).pipe(socket)
    } else socket.once('data', () => socket.end(STARTING))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = Object.assign(new URL(database.url), { port: (server.address() as AddressInfo).port })
  const store = await openStore(url.href)
  expect(connections).toBeGreaterThan(3)
  await store.check()
  await store.close()
  server.close()
  await database.drop()
})

/** What a server says until it has replayed its log. */
const STARTING = (() => {
  const fields = Buffer.from('SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0')
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
})()

const QUESTION = { role: 'user', content: 'Why?', timestamp: 1, id: 'question' }
const START = { seq: 1, type: 'run-start' }
const CALL: ToolCallFacts = { callId: 'c', tool: 't', effect: 'once', digest: 'd', args: {} }

test.runIf(!IS_POOLED)('in PostgreSQL a run is queued in one round trip, and begun in one', async () => {
  const place = await createStoreDatabase()
  const database = await openDatabase(place.url)
  const store = checkedStore(await openSqlStore(database, PostgresStore))
  const key = newKey()
  const run = { key, runId: 'queued', message: QUESTION, input: { model: 'm' } }
  const costOf = measureCost(database)
  await store.check()
  const [, queueing] = await costOf(() => store.queueRun({ ...run, events: [START] }))
  expect(queueing).toEqual({ trips: 1, tasks: 0, statements: 6, commits: 1 })
  const lease = await store.acquireLease(key)
  const begin = { ...run, fence: lease.fence, events: [{ ...START, seq: 2 }], alone: true }
  const [, beginning] = await costOf(() => store.beginRun(begin))
  expect(beginning).toEqual({ trips: 1, tasks: 0, statements: 4, commits: 1 })
  const [, finding] = await costOf(() => store.runs.findRuns(['queued', 'unknown']))
  expect(finding).toEqual({ trips: 1, tasks: 0, statements: 1, commits: 0 })
  await lease.release()
  await store.close()
  await place.drop()
})

test.runIf(!IS_POOLED)(
  'in PostgreSQL an opening, a load and every step are one round trip each, with tool calls or without',
  async () => {
    const place = await createStoreDatabase()
    const database = await openDatabase(place.url)
    const store = checkedStore(await openSqlStore(database, PostgresStore))
    const key = newKey()
    const costOf = measureCost(database)
    const [opened, opening] = await costOf(() =>
      store.openRun({ key, runId: 'run', message: QUESTION, events: [START] }),
    )
    expect(opening).toEqual({ trips: 1, tasks: 0, statements: 6, commits: 1 })
    if (!('lease' in opened)) throw new TypeError('the run was not opened')
    const [, loading] = await costOf(() => store.loadSession(key, { throughSeq: 0 }))
    expect(loading).toEqual({ trips: 1, tasks: 0, statements: 1, commits: 0 })
    const messages = Array.from({ length: 10 }, (_, index) => ({ text: `${index} `.repeat(500) }))
    for (let step = 1; step <= 3; step++) {
      const [stored, saving] = await costOf(() =>
        store.runs.saveStep({
          key,
          runId: 'run',
          fence: opened.lease.fence,
          message: { ...QUESTION, id: `answer-${step}` },
          stateDelta: { step, old: undefined, 'user:step': step, 'app:step': step },
          events: [{ seq: step + 1, type: 'usage' }],
          requests: [{ step, record: { messages: messages.slice(0, step * 3) } }],
          calibration: [
            { model: 'm', bytes: 4, tokens: 1 },
            { model: 'm', bytes: 6, tokens: 2 },
          ],
          calls: [1, 2].map(number => ({ id: `answer-${step}/${number}`, status: 'intent', call: CALL })),
        }),
      )
      const ordinals = [step * 2 - 2, step * 2 - 1]
      expect(stored).toEqual({
        seq: step + 1,
        calls: ordinals.map((ordinal, index) => ({ id: `answer-${step}/${index + 1}`, ordinal, attempt: 0 })),
      })
      // From the second step on, the request has parts.
      expect(saving).toEqual({ trips: 1, tasks: 0, statements: step === 1 ? 10 : 11, commits: 1 })
    }
    const one = { id: 'answer-1/1' }
    const twin = { unknownTwin: { runId: 'run', id: 'answer-1/1', attempt: 2 } }
    const changes: [Partial<RunStep>, object[]][] = [
      [{ calls: [{ ...one, status: 'started' }] }, [{ ...one, ordinal: 0, attempt: 1 }]],
      [
        { calls: [{ ...one, status: 'done', result: 5 }], message: QUESTION },
        [{ ...one, ordinal: 0, attempt: 1 }],
      ],
      [
        { calls: [{ ...one, status: 'started' }], stateDelta: { step: 3 } },
        [{ ...one, ordinal: 0, attempt: 2 }],
      ],
      [{ calls: [{ ...one, status: 'unknown' }] }, [{ ...one, ordinal: 0, attempt: 2 }]],
      [
        { calls: [{ id: 'a', status: 'started', call: CALL }] },
        [{ id: 'a', ordinal: 5, attempt: 1, ...twin }],
      ],
      [
        { calls: [{ id: 'a', status: 'failed' }], events: [{ seq: 9, type: 'run-finish' }], release: true },
        [{ id: 'a', ordinal: 5, attempt: 1, ...twin }],
      ],
    ]
    for (const [change, calls] of changes) {
      const message = change.message && { message: { ...QUESTION, id: 'last' } }
      const step = { key, runId: 'run', fence: opened.lease.fence, ...change, ...message }
      const [stored, saving] = await costOf(() => store.runs.saveStep(step))
      expect(stored?.calls).toEqual(calls)
      // An equal call whose outcome is unknown is read after the write.
      const tasks = calls.some(call => 'unknownTwin' in call) ? 1 : 0
      expect(saving).toMatchObject({ trips: 1, tasks, commits: 1 })
      expect(saving.statements).toBeLessThanOrEqual(6)
    }
    expect(await store.runs.findRun('run')).toMatchObject({ state: 'finished', finished: true })
    opened.lease.released()
    expect((await store.runs.readRequests('run')).map(({ record }) => record)).toEqual(
      [3, 6, 9].map(count => ({ messages: messages.slice(0, count) })),
    )
    expect(await store.calibration.read('m')).toEqual({ bytes: 30, tokens: 9 })
    expect((await store.loadSession(key))?.state).toEqual({ step: 3, 'user:step': 3, 'app:step': 3 })
    await (await store.acquireLease(key)).release()
    await store.close()
    await place.drop()
  },
)

test('steps that are stored again after dropped connections leave each message, event, request and tool call once', async () => {
  const database = await createStoreDatabase()
  const store = await openStore(database.url)
  const steps = [1, 2, 3, 4, 5, 6, 7, 8]
  const record = (step: number) => ({ all: steps.slice(0, step).map(number => `${number} `.repeat(1000)) })
  const work = async (runId: string) => {
    const key = newKey()
    const opened = await store.openRun({ key, runId, message: QUESTION, events: [START] })
    if (!('lease' in opened)) throw new TypeError('the run was not opened')
    for (const step of steps) {
      const message = { ...QUESTION, id: `answer-${step}` }
      const calls = [{ id: `answer-${step}/c`, status: 'intent', call: CALL } as const]
      const part = { message, events: [{ seq: step + 1 }], requests: [{ step, record: record(step) }], calls }
      await untilStored(() => store.runs.saveStep({ key, runId, fence: opened.lease.fence, ...part }))
    }
    await opened.lease.release()
    return key
  }
  const runs = ['one', 'two', 'three', 'four']
  const working = Promise.all(runs.map(work))
  for (let drops = 0; drops < 5; drops++) {
    const areAhead = async () => {
      for (const runId of runs) expect((await store.runs.readEvents(runId)).length).toBeGreaterThan(drops)
    }
    await vi.waitFor(areAhead, { timeout: 60_000 })
    await dropConnections(database)
  }
  for (const [index, key] of (await working).entries()) {
    const runId = runs[index] ?? ''
    const messages = await store.readMessages(key)
    expect(messages.map(({ seq, id }) => [seq, id])).toEqual([
      [1, 'question'],
      ...steps.map(step => [step + 1, `answer-${step}`]),
    ])
    expect((await store.runs.readEvents(runId)).map(({ seq }) => seq)).toEqual([
      1,
      ...steps.map(step => step + 1),
    ])
    expect(await store.runs.readRequests(runId)).toEqual(steps.map(step => ({ step, record: record(step) })))
    const calls = await store.runs.readCalls(runId)
    expect(calls.map(({ id, ordinal }) => [id, ordinal])).toEqual(
      steps.map(step => [`answer-${step}/c`, step - 1]),
    )
  }
  await store.close()
  await database.drop()
})

test('a lease is released although its connection is dropped meanwhile', async () => {
  const database = await createStoreDatabase()
  const store = await openStore(database.url)
  const key = newKey()
  await store.createSession(key)
  const lease = await store.acquireLease(key)
  await lockSessions(database.url)
  const releasing = lease.release()
  await untilBlocked(database)
  // The lock goes with the connection that holds it.
  await dropConnections(database)
  await releasing
  await (await store.acquireLease(key, { waitMs: 0 })).release()
  await store.close()
  await database.drop()
})

/** Repeats a write that failed with a retryable error, at most ten times. */
async function untilStored(write: () => Promise<unknown>): Promise<void> {
  for (let attempts = 1; ; attempts++) {
    try {
      await write()
      return
    } catch (error) {
      if (!(error as { retryable?: boolean }).retryable || attempts === 10) throw error
    }
  }
}

/** A transaction of another process, in the middle. */
async function otherTransaction(url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query('BEGIN')
  return client
}

/** Waits until so many statements of the store wait for a lock. */
async function untilBlocked(database: TestDatabase, count = 1): Promise<void> {
  const blocked = `DO $$ BEGIN WHILE (SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()) < ${count} LOOP PERFORM pg_sleep(0.01), pg_stat_clear_snapshot(); END LOOP; END $$`
  await database.query(blocked)
}

test('a run that is opened while another writer appends is numbered after its message', async () => {
  const database = await createStoreDatabase()
  const store = await openStore(database.url)
  const key = newKey()
  await store.createSession(key)
  await store.appendMessage(key, { role: 'user', content: 'first', timestamp: 1 })
  const writer = await otherTransaction(database.url)
  await writer.query(
    'UPDATE lango_sessions SET entry_count = entry_count + 1, message_count = message_count + 1',
  )
  await writer.query(`INSERT INTO lango_entries (session_pk, seq, kind, at, message_pk, message_seq, version, digest, flags,
      tokens, timestamp, role, content)
    SELECT pk, entry_count, 'message', 1, pk, message_count, 1, '', 0, 1, 1, 'user', 'second' FROM lango_sessions`)
  const opening = store.openRun({ key, runId: 'run', message: QUESTION, events: [START] })
  await untilBlocked(database)
  await writer.query('COMMIT')
  await writer.end()
  expect(await opening).toMatchObject({ seq: 3 })
  expect(await store.runs.findRun('run')).toMatchObject({ afterSeq: 2 })
  expect((await store.readMessages(key)).map(({ content }) => content)).toEqual(['first', 'second', 'Why?'])
  await store.close()
  await database.drop()
})

test('a run that is opened while its session is deleted begins in a new session', async () => {
  const database = await createStoreDatabase()
  const store = await openStore(database.url)
  const key = newKey()
  await store.createSession(key, { mood: 'calm' })
  await store.appendMessage(key, { role: 'user', content: 'first', timestamp: 1 })
  const writer = await otherTransaction(database.url)
  await writer.query('DELETE FROM lango_sessions')
  const opening = store.openRun({ key, runId: 'run', message: QUESTION, events: [START] })
  await untilBlocked(database)
  await writer.query('DELETE FROM lango_entries')
  await writer.query('DELETE FROM lango_session_state')
  await writer.query('COMMIT')
  await writer.end()
  expect(await opening).toMatchObject({ seq: 1 })
  const session = await store.loadSession(key)
  expect(session).toMatchObject({ state: {}, messages: [{ content: 'Why?' }] })
  await store.close()
  await database.drop()
})

test('an append without a lease that waits for the opening of a run is refused', async () => {
  const database = await createStoreDatabase()
  const store = await openStore(database.url)
  const key = newKey()
  await store.createSession(key)
  const opener = await otherTransaction(database.url)
  await opener.query(
    `UPDATE lango_sessions SET message_count = message_count + 1, fence = nextval('lango_fences'), lease_ms = 60000,
      lease_until = extract(epoch FROM clock_timestamp()) * 1000 + 60000`,
  )
  const append = failureOf(store.appendMessage(key, { role: 'user', content: 'x', timestamp: 1 }))
  await untilBlocked(database)
  await opener.query('COMMIT')
  await opener.end()
  expect((await append).code).toBe('session-busy')
  await store.close()
  await database.drop()
})

test('a step that waits for the deletion of its session stores nothing', async () => {
  const database = await createStoreDatabase()
  const store = await openStore(database.url)
  const key = newKey()
  const opened = await store.openRun({ key, runId: 'run', message: QUESTION, events: [START] })
  if (!('lease' in opened)) throw new TypeError('the run was not opened')
  const deleter = await otherTransaction(database.url)
  for (const table of ['sessions', 'entries']) await deleter.query(`DELETE FROM lango_${table}`)
  const requests = [{ step: 1, record: { body: 'x'.repeat(5000) } }]
  const step = { key, runId: 'run', fence: opened.lease.fence, events: [{ seq: 2 }], requests }
  const saving = failureOf(store.runs.saveStep({ ...step, message: { ...QUESTION, id: 'answer' } }))
  await untilBlocked(database)
  await deleter.query("UPDATE lango_runs SET deleted_at = 1, app_name = ''")
  await deleter.query('COMMIT')
  await deleter.end()
  expect((await saving).code).toBe('session-not-found')
  const rows = await database.query(`SELECT (SELECT count(*) FROM lango_entries) AS entries,
    (SELECT count(*) FROM lango_request_parts) AS parts`)
  expect(rows).toEqual([{ entries: '0', parts: '0' }])
  await store.close()
  await database.drop()
})

test.runIf(!IS_POOLED)(
  'in PostgreSQL a step with a journal, in a nested session, with a pause or with the end of its run, is one round trip',
  async () => {
    const place = await createStoreDatabase()
    const database = await openDatabase(place.url)
    const store = checkedStore(await openSqlStore(database, PostgresStore))
    const key = newKey()
    const at = { ...key, appName: `${key.appName}-inner` }
    const opening = { key, runId: 'run', message: QUESTION, events: [START], input: { model: 'm' } }
    const opened = await store.openRun(opening)
    if (!('lease' in opened)) throw new TypeError('the run was not opened')
    await store.createSession(at, {}, { nestedIn: key.appName })
    let step = { key, runId: 'run', fence: opened.lease.fence }
    const measured = measureCost(database)
    const saves = async (more: Partial<RunStep>, statements: number) => {
      const [, cost] = await measured(() => store.runs.saveStep({ ...step, ...more }))
      expect(cost).toEqual({ trips: 1, tasks: 0, statements, commits: 1 })
    }
    const entry = (id: string) => ({ id, kind: 'model', scope: '', author: 'root', branch: '' }) as const
    const answer = (id: string) => ({ message: { ...QUESTION, id }, journal: [entry(id)] })
    const call = { id: 'b/1', status: 'intent', call: CALL } as const
    await saves({ ...answer('a'), events: [{ seq: 2 }] }, 2)
    await saves({ ...answer('b'), at, stateDelta: { mood: 'calm', old: undefined } }, 5)
    await saves({ ...answer('c'), at, calls: [call], events: [{ seq: 3 }] }, 4)
    await saves({ ...answer('d'), at, calls: [{ id: 'b/1', status: 'started' }] }, 4)
    await saves({ journal: [entry('e')] }, 2)
    await saves({ events: [{ seq: 4 }], pause: 'waiting', release: true }, 3)
    opened.lease.released()
    const seqs = (await store.runs.readResumable('run'))?.journal.map(({ id, seq }) => [id, seq])
    expect(seqs).toEqual([
      ['a', 2],
      ['b', 1],
      ['c', 2],
      ['d', 3],
      ['e', undefined],
    ])
    const { fence } = await store.acquireLease(key)
    step = { ...step, fence }
    for (const seq of [5, 6])
      await store.runs.resumeRun({ key, runId: 'run', fence, events: [{ seq, type: 'run-resumed' }] })
    expect(await store.runs.readResumable('run')).toMatchObject({ attempt: 2 })
    await saves(answer('f'), 3)
    expect(await store.runs.readResumable('run')).toMatchObject({ attempt: 1 })
    await saves({ ...answer('g'), events: [{ seq: 9, type: 'run-finish' }] }, 4)
    expect(await store.runs.readResumable('run')).toBeUndefined()
    await store.close()
    await place.drop()
  },
)
