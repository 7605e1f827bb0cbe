// The store behind PgBouncer, where it is installed; elsewhere the tests are skipped. `npm run test:pooler` runs the
// store's conformance suite and a minute of chaos through it as well.
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { checkedStore } from '../../src/store/checked-store.js'
import { openStore } from '../../src/store/open-store.js'
import { PostgresStore } from '../../src/store/postgres-store.js'
import { openSqlStore } from '../../src/store/sql-store.js'
import { failureOf, newKey, openDatabase } from '../conformance/store/drivers.js'
import { type PgBouncer, type PoolMode, pgBouncerVersion, startPgBouncer } from '../support/pgbouncer.js'
import { type PostgresServer, startPostgres } from '../support/postgres-server.js'
import { LONG, longUnless } from '../support/tiers.js'

const version = await pgBouncerVersion()
/** From 1.21 on it keeps prepared statements in transaction mode. */
const keepsStatements = version !== undefined && Number(version.split('.')[1]) >= 21

const MESSAGE = { role: 'user', content: 'x', timestamp: 1 }

let server: PostgresServer
const poolers = {} as Record<PoolMode, PgBouncer>
beforeAll(async () => {
  if (version === undefined) return
  server = await startPostgres({ keepsCommits: true })
  // Two connections for all: statements of one client meet what others have left.
  for (const poolMode of ['session', 'transaction', 'statement'] as const)
    poolers[poolMode] = await startPgBouncer(server.url, {
      poolMode,
      poolSize: poolMode === 'session' ? 30 : 2,
    })
})
afterAll(async () => {
  for (const pooler of Object.values(poolers)) await pooler.stop()
  await server?.stop()
})
beforeEach(({ skip }) =>
  skip(version === undefined, 'PgBouncer is not installed (apt-get install pgbouncer)'),
)

const WAYS: readonly (readonly [PoolMode, string])[] = [
  ['session', ''],
  ['transaction', ''],
  ['session', '?pooler=session'],
  ['session', '?prepare=off'],
  ['transaction', '?pooler=transaction&prepare=off'],
  ['transaction', '?query_timeout=0'],
]
for (const [mode, options] of WAYS)
  test(
    `behind PgBouncer in ${mode} mode with "${options}" two stores write, read and lock at once`,
    longUnless(options === ''),
    async () => {
      const url = `${poolers[mode].url}${options}`
      const stores = await Promise.all([openStore(url), openStore(url)])
      const key = newKey()
      await stores[0].createSession(key)
      const writes = Array.from({ length: 40 }, (_, index) =>
        stores[index % 2]?.appendMessage(key, { ...MESSAGE, id: `m${index}` }),
      )
      const seqs = (await Promise.all(writes)).map(written => written?.seq ?? 0)
      expect(seqs.sort((one, other) => one - other)).toEqual(
        Array.from({ length: 40 }, (_, index) => index + 1),
      )
      const lease = await stores[0].acquireLease(key)
      expect(await failureOf(stores[1].acquireLease(key, { waitMs: 0 }))).toMatchObject({
        code: 'session-busy',
      })
      await lease.release()
      expect((await stores[1].readMessages(key)).length).toBe(40)
      for (const store of stores) await store.close()
    },
  )

test('behind PgBouncer in transaction mode a statement has its time limit, and no setting stays on the connection', async () => {
  const store = await openStore(`${poolers.transaction.url}?query_timeout=700`)
  const key = newKey()
  await store.createSession(key)
  const blocker = new pg.Client(server.url)
  await blocker.connect()
  await blocker.query('BEGIN')
  await blocker.query('SELECT * FROM lango_sessions FOR UPDATE')
  for (const write of [() => store.appendMessage(key, MESSAGE), () => store.updateState(key, { a: 1 })])
    expect((await failureOf(write())).message).toContain('canceling statement due to statement timeout')
  await blocker.end()
  expect(await store.appendMessage(key, MESSAGE)).toEqual({ seq: 1 })
  await store.close()
  // Whoever uses the connections next.
  const others = await Promise.all([1, 2].map(() => stateBehind(poolers.transaction)))
  for (const state of others) expect(state).toEqual({ timeout: '0', idle: '0', prepared: 0 })
})

test('behind PgBouncer in session mode the next client of a connection finds no setting of the last one', async () => {
  const store = await openStore(`${poolers.session.url}?pooler=session&query_timeout=700`)
  await store.createSession(newKey())
  await store.close()
  expect(await stateBehind(poolers.session)).toEqual({ timeout: '0', idle: '0', prepared: 0 })
})

test('behind PgBouncer a role with a time limit of its own needs no transaction around a single statement', async () => {
  const { url } = poolers.transaction
  const costOfAppend = async () => {
    const database = await openDatabase(url)
    const store = checkedStore(await openSqlStore(database, PostgresStore))
    const key = newKey()
    await store.createSession(key)
    const before = database.work.control
    await store.appendMessage(key, MESSAGE)
    const control = database.work.control - before
    await store.close()
    return control
  }
  expect(await costOfAppend()).toBe(2)
  await admin(server.url, 'ALTER ROLE lango SET statement_timeout = 60000')
  await admin(poolers.transaction.consoleUrl, 'RECONNECT')
  // Connections are replaced as they become free.
  await expect.poll(async () => (await stateBehind(poolers.transaction)).timeout).toBe('1min')
  expect(await costOfAppend()).toBe(0)
  await admin(server.url, 'ALTER ROLE lango RESET statement_timeout')
  await admin(poolers.transaction.consoleUrl, 'RECONNECT')
  await expect.poll(async () => (await stateBehind(poolers.transaction)).timeout).toBe('0')
})

test.runIf(!keepsStatements)(
  'behind PgBouncer in transaction mode prepared statements fail with the setting to change, or are not used any more',
  async () => {
    const { url } = poolers.transaction
    const work = async (options: string) => {
      const stores = await Promise.all([1, 2, 3].map(() => openStore(`${url}${options}`)))
      try {
        await Promise.all(
          stores.map(async store => {
            const key = newKey()
            await store.createSession(key)
            for (let index = 0; index < 10; index++) await store.appendMessage(key, MESSAGE)
          }),
        )
      } finally {
        for (const store of stores) await store.close()
      }
    }
    const failure = await failureOf(work('?prepare=on'))
    expect(failure.code).toBe('store-unavailable')
    expect(failure.message).toContain('?prepare=off')
    // As with a pooler that cannot be told from a server.
    await work('?pooler=none&query_timeout=0')
    await admin(poolers.transaction.consoleUrl, 'RECONNECT')
  },
)

test('behind PgBouncer the tables are in the schema of the URL, in both modes', async () => {
  await admin(server.url, 'CREATE SCHEMA "Agents of ""us"""')
  for (const mode of ['session', 'transaction'] as const) {
    const store = await openStore(`${poolers[mode].url}?schema=${encodeURIComponent('Agents of "us"')}`)
    const key = newKey()
    await store.createSession(key)
    expect(await store.appendMessage(key, MESSAGE)).toEqual({ seq: 1 })
    await store.close()
  }
  const [tables] = await admin(
    server.url,
    "SELECT count(*) AS count FROM pg_tables WHERE schemaname = 'Agents of \"us\"' AND tablename = 'lango_sessions'",
  )
  expect(tables).toEqual({ count: '1' })
})

test('PgBouncer in statement mode, and startup options that it does not know, are refused with what to do', async () => {
  expect((await failureOf(openStore(poolers.statement.url))).message).toContain('session or transaction mode')
  const withOptions = `${poolers.session.url}?options=${encodeURIComponent('-c search_path=x')}`
  expect((await failureOf(openStore(withOptions))).message).toContain('no options in the URL')
})

test.each(['session', 'transaction'] as const)(
  'a server that is restarted behind PgBouncer in %s mode loses nothing that was acknowledged',
  LONG,
  async mode => {
    const store = await openStore(poolers[mode].url)
    const key = newKey()
    await store.createSession(key)
    let isOver = false
    const acknowledged: string[] = []
    const writing = (async () => {
      for (let index = 0; !isOver; index++) {
        const id = `m${index}`
        await store.appendMessage(key, { ...MESSAGE, id }).then(
          () => acknowledged.push(id),
          error => expect((error as { retryable: boolean }).retryable).toBe(true),
        )
      }
    })()
    await expect.poll(() => acknowledged.length).toBeGreaterThan(5)
    await server.restart()
    const before = acknowledged.length
    await expect.poll(() => acknowledged.length).toBeGreaterThan(before + 5)
    isOver = true
    await writing
    const stored = (await store.readMessages(key)).map(({ id }) => id)
    expect(stored).toEqual(expect.arrayContaining(acknowledged))
    expect(new Set(stored).size).toBe(stored.length)
    await store.close()
  },
)

async function admin(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

/** What a client that sets nothing finds on a connection. */
async function stateBehind({ url }: PgBouncer): Promise<Record<string, unknown>> {
  const [state] = await admin(
    url,
    `SELECT current_setting('statement_timeout') AS timeout, current_setting('idle_in_transaction_session_timeout') AS idle,
      (SELECT count(*)::int FROM pg_prepared_statements) AS prepared`,
  )
  return state ?? {}
}
