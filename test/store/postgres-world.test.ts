// PostgreSQL as people run it: networks that fall silent, failovers, replicas, TLS, roles, row-level security, pruning.
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createRuntime } from '../../src/runtime/runtime.js'
import { inspectStore, openForeignDatabase, openStore } from '../../src/store/open-store.js'
import { sql } from '../../src/store/sql-database.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { failureOf, newKey, openDatabase } from '../conformance/store/drivers.js'
import { NOBODY, type PostgresServer, startPostgres } from '../support/postgres-server.js'
import { startTcpProxy } from '../support/tcp-proxy.js'
import { makeFolder, removeFolder } from '../support/temporary-folder.js'
import { searchTool } from '../support/tools.js'

const MESSAGE = { role: 'user', content: 'x', timestamp: 1 }
let server: PostgresServer
let folder: string

beforeAll(async () => {
  folder = await makeFolder()
  makeCertificates(folder)
  server = await startPostgres({
    keepsCommits: true,
    settings: {
      ssl: 'on',
      ssl_cert_file: join(folder, 'server.crt'),
      ssl_key_file: join(folder, 'server.key'),
    },
  })
})
afterAll(async () => {
  await server.stop()
  await removeFolder(folder)
})

/** An authority, and a certificate of it for the name localhost. */
function makeCertificates(place: string): void {
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: place, stdio: 'ignore' })
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=Tests')
  const names = ['-addext', 'subjectAltName=DNS:localhost']
  const signed = ['-CA', 'ca.crt', '-CAkey', 'ca.key']
  openssl(
    'req',
    '-x509',
    ...key,
    ...signed,
    '-keyout',
    'server.key',
    '-out',
    'server.crt',
    '-subj',
    '/CN=localhost',
    ...names,
  )
  chmodSync(place, 0o755)
  chmodSync(join(place, 'server.key'), 0o600)
  if (process.getuid?.() === 0)
    for (const name of ['server.key', 'server.crt']) chownSync(join(place, name), NOBODY.uid, NOBODY.gid)
}

async function admin(text: string, url = server.url): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    const result = await client.query(text)
    return Array.isArray(result) ? [] : result.rows
  } finally {
    await client.end()
  }
}

function urlWith(
  changes: Partial<Record<'hostname' | 'port' | 'username' | 'password' | 'pathname', string>>,
  query = '',
) {
  return `${Object.assign(new URL(server.url), changes).href}${query}`
}

test('a PostgreSQL connection that stops answering fails in time, older ones are dropped with it, and new ones work', async () => {
  const proxy = await startTcpProxy(Number(new URL(server.url).port))
  const store = await openStore(urlWith({ port: String(proxy.port) }, '?query_timeout=1000'))
  const key = newKey()
  await store.createSession(key)
  await Promise.all([1, 2, 3].map(() => store.appendMessage(key, MESSAGE)))
  const before = proxy.accepted()
  proxy.silence()
  const failure = await failureOf(store.appendMessage(key, MESSAGE))
  expect(failure).toMatchObject({ code: 'store-unavailable' })
  expect(failure.message).toContain('did not finish a statement within 1000 ms')
  // Without a second wait.
  await store.readMessages(key)
  expect(await store.appendMessage(key, MESSAGE)).toBeDefined()
  expect(proxy.accepted()).toBeGreaterThan(before)
  await store.close()
  await proxy.close()
})

test('reads and transactions continue after PostgreSQL was restarted, and no acknowledged write is lost', async () => {
  const { port } = new URL(server.url)
  const proxy = await startTcpProxy(Number(port))
  const store = await openStore(urlWith({ port: String(proxy.port) }))
  const key = newKey()
  await store.createSession(key)
  let isOver = false
  const acknowledged: number[] = []
  const working = (async () => {
    for (let index = 0; !isOver; index++) {
      // A transaction: what broke before its commit is repeated.
      await store.updateState(key, { last: index }).then(
        () => acknowledged.push(index),
        error => expect((error as { retryable: boolean }).retryable).toBe(true),
      )
      await store.readMessages(key)
    }
  })()
  await expect.poll(() => acknowledged.length).toBeGreaterThan(3)
  await server.restart()
  const before = acknowledged.length
  await expect.poll(() => acknowledged.length).toBeGreaterThan(before + 3)
  isOver = true
  await working
  expect((await store.loadSession(key))?.state).toEqual({ last: acknowledged.at(-1) })
  await store.close()
  await proxy.close()
})

test('a read-only PostgreSQL database is refused by opening and by doctor, and read by an import', async () => {
  await admin('CREATE DATABASE readers')
  const url = urlWith({ pathname: '/readers' })
  await (await openStore(url)).close()
  await admin('ALTER DATABASE readers SET default_transaction_read_only = on')
  for (const attempt of [() => openStore(url), () => inspectStore(url)]) {
    const failure = await failureOf(attempt())
    expect(failure.code).toBe('store-unavailable')
    expect(failure.message).toContain(
      'only reads (default_transaction_read_only is on): use the address of the primary',
    )
  }
  const foreign = await openForeignDatabase(url)
  expect((await foreign.tables()).has('lango_sessions')).toBe(true)
  await foreign.close()
})

test('a write waits for a PostgreSQL primary that is read-only for a moment', async () => {
  await admin('CREATE DATABASE demoted')
  const url = urlWith({ pathname: '/demoted' })
  const store = await openStore(url)
  const key = newKey()
  await store.createSession(key)
  await admin('ALTER DATABASE demoted SET default_transaction_read_only = on')
  await admin("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'demoted'")
  const writing = store.updateState(key, { a: 1 })
  await admin('ALTER DATABASE demoted SET default_transaction_read_only = off')
  await writing
  expect((await store.loadSession(key))?.state).toEqual({ a: 1 })
  await store.close()
})

test('PostgreSQL ends the transaction of a suspended process after 30 s', async () => {
  const database = await openDatabase(server.url)
  const [row] = await database.run(sql('SHOW idle_in_transaction_session_timeout'))
  expect(row).toEqual({ idle_in_transaction_session_timeout: '30s' })
  await database.close()
})

test('sslmode verify-full and require verify the certificate and the name, no-verify encrypts, disable does not', async () => {
  const ca = `sslrootcert=${encodeURIComponent(join(folder, 'ca.crt'))}`
  const isEncrypted = async (hostname: string, query: string) => {
    const database = await openDatabase(urlWith({ hostname }, `?${query}`))
    const [row] = await database.run(sql('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()'))
    await database.close()
    return row?.ssl
  }
  expect(await isEncrypted('localhost', `sslmode=verify-full&${ca}`)).toBe(true)
  expect(await isEncrypted('localhost', `sslmode=require&${ca}`)).toBe(true)
  expect(await isEncrypted('127.0.0.1', 'sslmode=no-verify')).toBe(true)
  expect(await isEncrypted('127.0.0.1', 'sslmode=disable')).toBe(false)
  for (const [hostname, query] of [
    ['127.0.0.1', `sslmode=verify-full&${ca}`],
    ['localhost', 'sslmode=verify-full'],
    ['localhost', 'sslmode=require'],
  ] as const) {
    const failure = await failureOf(openStore(urlWith({ hostname }, `?${query}`)))
    expect(failure.code).toBe('store-unavailable')
    expect(failure.message).toContain('check TLS: sslmode in the URL')
  }
  const missing = await failureOf(openStore(urlWith({}, '?sslmode=verify-full&sslrootcert=/nowhere.crt')))
  expect(missing).toMatchObject({ code: 'store-unavailable' })
  expect(missing.message).toContain('/nowhere.crt')
})

/** The SQL of a section of the documentation, as it stands there. */
async function sqlOf(heading: string): Promise<string[]> {
  const page = await readFile(new URL('../../docs/operating-postgres.md', import.meta.url), 'utf8')
  const section = page.split(/^##+ /m).find(part => part.startsWith(`${heading}\n`)) ?? ''
  return [...section.matchAll(/```sql\n([\s\S]*?)```/g)].map(([, text = '']) =>
    text.replaceAll('…', 'secret'),
  )
}

/** What people do with a store, once. */
async function useStore(url: string, app: string, userId = 'ann'): Promise<void> {
  const store = await openStore(url)
  try {
    const runtime = await createRuntime({
      store,
      app,
      providers: {
        play: new ScriptedProvider([
          { toolCalls: [{ name: 'search', args: { query: 'x' } }] },
          { text: 'Done.' },
        ]),
      },
      agent: { name: 'agent', model: 'play/model', tools: [searchTool] },
    })
    const { text } = await runtime.runAndCollect({ sessionId: `s-${userId}`, userId, text: 'Look it up.' })
    expect(text).toBe('Done.')
    await runtime.close()
    const key = { appName: app, userId, sessionId: `s-${userId}` }
    await store.renameSession?.(key, 'A title')
    await store.runs.prune({ appName: key.appName, before: Date.now() + 60_000 })
  } finally {
    await store.close()
  }
}

test('with the roles of the documentation, the owner creates the tables in a schema, and the other role can do all the rest', async () => {
  const [create = '', grant = ''] = await sqlOf('Permissions')
  await admin('CREATE DATABASE roles')
  await admin(create, urlWith({ pathname: '/roles' }))
  const owner = urlWith({ pathname: '/roles', username: 'lango_owner', password: 'secret' }, '?schema=lango')
  const app = urlWith({ pathname: '/roles', username: 'lango_app', password: 'secret' }, '?schema=lango')
  const early = await failureOf(openStore(app))
  expect(early.message).toMatch(/has no schema "lango", or the user may not use it|right to create tables/)
  await (await openStore(owner)).close()
  await admin(grant, urlWith({ pathname: '/roles' }))
  await useStore(app, 'shop')
  const store = await openStore(app)
  expect((await store.erase({ appName: 'shop', userId: 'ann' })).sessions).toBe(1)
  await store.close()
  await expect(admin('CREATE TABLE lango.more (a int)', app.split('?')[0])).rejects.toThrow(
    'permission denied',
  )
  await admin('REVOKE INSERT ON lango.lango_sessions FROM lango_app', urlWith({ pathname: '/roles' }))
  const limited = await failureOf(useStore(app, 'shop', 'bob'))
  expect(limited.message).toContain('permission denied for table lango_sessions. Grant the user')
})

test('the queries of the documentation fit the tables', async () => {
  await admin('CREATE DATABASE watched')
  const url = urlWith({ pathname: '/watched' })
  const store = await openStore(url)
  const key = newKey()
  const message = { role: 'user', author: 'user', content: 'Why?', timestamp: 1 }
  await store.queueRun({ key, runId: 'waits', message, events: [{ seq: 1, type: 'run-queued' }] })
  const texts = await Promise.all(
    ['Number of connections', 'Retention and disk usage', 'Monitoring'].map(heading => sqlOf(heading)),
  )
  expect(texts.map(each => each.length)).toEqual([1, 1, 1])
  const client = new pg.Client(url)
  await client.connect()
  try {
    for (const text of texts.flat()) await client.query(text)
    const [unfinished = ''] =
      texts
        .flat()
        .join('')
        .match(/SELECT r\.session_id[^;]*/) ?? []
    const { rows } = await client.query(unfinished)
    expect(rows).toMatchObject([{ run_id: 'waits', state: 'queued', has_lease: false }])
  } finally {
    await client.end()
    await store.close()
  }
})

test('with the row-level security of the documentation, a role sees and writes the rows of its app and user only', async () => {
  const [policies = ''] = await sqlOf('Row-level security')
  await admin('CREATE DATABASE rows')
  const inside = urlWith({ pathname: '/rows' })
  await useStore(inside, 'shop')
  await useStore(inside, 'bank')
  await useStore(inside, 'shop', 'bob')
  await admin(
    "CREATE ROLE lango_shop LOGIN PASSWORD 'secret'; CREATE ROLE lango_ann LOGIN PASSWORD 'secret'",
    inside,
  )
  await admin(policies, inside)
  for (const [username, users] of [
    ['lango_shop', ['ann', 'bob']],
    ['lango_ann', ['ann']],
  ] as const) {
    const url = urlWith({ pathname: '/rows', username, password: 'secret' })
    const seen = await admin('SELECT DISTINCT app_name, user_id FROM lango_sessions ORDER BY user_id', url)
    expect(seen).toEqual(users.map(user_id => ({ app_name: 'shop', user_id })))
    for (const table of ['lango_entries', 'lango_runs', 'lango_tool_calls']) {
      const countOf = `SELECT count(*)::int AS rows FROM ${table} t`
      const own = `${countOf} JOIN lango_sessions s ON s.pk = t.session_pk
        WHERE s.app_name = 'shop' AND s.user_id IN ('${users.join("', '")}')`
      expect(await admin(countOf, url), table).toEqual(await admin(own, inside))
    }
    await useStore(url, 'shop')
    const refused = await failureOf(useStore(url, 'bank'))
    expect(refused.message).toContain('row-level security')
  }
  const [all] = await admin(
    'SELECT count(*)::int AS messages FROM lango_entries WHERE role IS NOT NULL',
    inside,
  )
  expect(all).toEqual({ messages: 3 * 4 + 2 * 4 })
})

test('writers continue while old runs are pruned in PostgreSQL', async () => {
  await admin('CREATE DATABASE pruned')
  const url = urlWith({ pathname: '/pruned' })
  const store = await openStore(url)
  await admin(
    `INSERT INTO lango_sessions (app_name, user_id, session_id, search, entry_count, created_at, updated_at, updated_hour)
        SELECT 'a', 'u', 's' || i, '', 20, 1, 1, 0 FROM generate_series(1, 1000) i;
      INSERT INTO lango_runs (run_id, session_pk, app_name, state, place, accepted_at, first_seq, last_seq)
        SELECT 'r' || pk, pk, 'a', 'finished', pk, 1, 1, 20 FROM lango_sessions;
      INSERT INTO lango_entries (session_pk, seq, kind, at, run_pk, events, event_seq, version, digest, salt, data)
        SELECT session_pk, i, 'notice', 1, pk, 1, i, 1, 'd', 's', '{"events":[]}' FROM lango_runs, generate_series(1, 20) i`,
    url,
  )
  const key = newKey()
  await store.createSession(key)
  await store.runs.appendEvents(key, 'r-new', [{ seq: 1, type: 'run-start' }])
  let isOver = false
  let written = 0
  const writing = (async () => {
    while (!isOver) {
      await store.appendMessage(key, MESSAGE)
      await store.runs.saveRequest('r-new', written, { text: 'long '.repeat(2000) })
      written += 1
    }
  })()
  const { events } = await store.runs.prune({ appName: 'a', before: 1000 })
  const during = written
  isOver = true
  await writing
  expect(events).toBe(20_000)
  expect(during).toBeGreaterThan(5)
  const left = "SELECT count(*)::int AS runs FROM lango_runs WHERE app_name = 'a'"
  expect(await admin(left, url)).toEqual([{ runs: 0 }])
  await store.close()
})

// The last test: the server stays a replica.
test('a PostgreSQL replica is refused by opening and by doctor', async () => {
  await server.restart({ standby: true })
  for (const attempt of [() => openStore(server.url), () => inspectStore(server.url)])
    expect((await failureOf(attempt())).message).toContain(
      'is a replica, which only reads: use the address of the primary',
    )
})
