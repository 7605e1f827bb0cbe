import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import pg from 'pg'
import { inject } from 'vitest'
import { openStore } from '../../src/store/open-store.js'

/** The run's PostgreSQL server: the URL of its database `postgres`, as superuser. Started by the first caller. */
export async function postgresUrl(): Promise<string> {
  return (await serverUrls())[0] ?? ''
}

/** The server's URL, and the pooler's if there is one. */
function serverUrls(): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(inject('postgresStarter'), '127.0.0.1')
    let answer = ''
    socket.on('data', chunk => {
      answer += chunk
    })
    socket.on('end', () =>
      answer.startsWith('postgres:') ? resolve(answer.split(' ')) : reject(new Error(answer)),
    )
    socket.on('error', reject)
  })
}

export interface TestDatabase {
  url: string
  query(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  drop(): Promise<void>
}

/** A new, empty database on the run's server. Drop it when the tests of the file are over. */
export async function createDatabase(): Promise<TestDatabase> {
  return databaseFrom('template1')
}

/**
 * The same with the tables of a store, for tests that need many: a copy of a database costs a third of the time that the
 * migrations take.
 */
export async function createStoreDatabase(): Promise<TestDatabase> {
  isPrepared ??= prepareTemplate()
  await isPrepared
  return databaseFrom(TEMPLATE)
}

const TEMPLATE = 'lango_template'
let isPrepared: Promise<void> | undefined

/** The first worker makes the template; it gets its name when it is complete. */
async function prepareTemplate(): Promise<void> {
  const server = await postgresUrl()
  await withClient(server, async client => {
    await client.query('SELECT pg_advisory_lock(1)')
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [TEMPLATE])
    if (rowCount) return
    const { pathname } = new URL((await databaseFrom('template1')).url)
    // Not through a pooler: its connection would remain, and a database that is in use can be neither renamed nor copied.
    const store = await openStore(Object.assign(new URL(server), { pathname }).href)
    await store.close()
    await client.query(`ALTER DATABASE ${pathname.slice(1)} RENAME TO ${TEMPLATE}`)
  })
}

async function databaseFrom(template: string): Promise<TestDatabase> {
  const [server = '', pooler] = await serverUrls()
  const name = `lango_${randomBytes(6).toString('hex')}`
  await withClient(server, client => client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`))
  const url = Object.assign(new URL(server), { pathname: `/${name}` }).href
  return {
    url: pooler ? Object.assign(new URL(pooler), { pathname: `/${name}` }).href : url,
    query: (text, values) => withClient(url, async client => (await client.query(text, values)).rows),
    drop: () =>
      withClient(server, async client => void (await client.query(`DROP DATABASE ${name} WITH (FORCE)`))),
  }
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
