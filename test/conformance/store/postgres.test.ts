import { type AddressInfo, createServer } from 'node:net'
import pg from 'pg'
import { expect, test } from 'vitest'
import { openStore } from '../../../src/store/open-store.js'
import { createDatabase } from '../../support/postgres.js'
import { failureOf, newKey } from './drivers.js'

test('a store survives a server that drops its connections, idle or at work', async () => {
  const database = await createDatabase()
  const store = await openStore(database.url)
  const key = newKey()
  await store.createSession(key)
  const dropAll = () =>
    database.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    )
  for (let round = 0; round < 5; round++) {
    const writes = Array.from({ length: 20 }, (_, index) =>
      store.appendMessage(key, { role: 'user', content: 'x', timestamp: 1, id: `${round}-${index}` }).then(
        () => 'stored',
        error => (error as { code: string; retryable: boolean }).retryable,
      ),
    )
    await dropAll()
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

test('a user who may not create tables opens an existing store, and gets store-unavailable for a new one', async () => {
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
})

test('a database that does not store text as UTF-8 is refused', async () => {
  const database = await createDatabase()
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
  await client.connect()
  await client.query('BEGIN')
  await client.query('SELECT * FROM lango_sessions FOR UPDATE')
  return () => client.end()
}

test.each(['appendMessage', 'updateState'] as const)(
  '%s times out when a row stays locked, and the error names the setting',
  async method => {
    const database = await createDatabase()
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

test('closing does not wait for a statement that waits for a lock', async () => {
  const database = await createDatabase()
  const store = await openStore(database.url)
  const key = newKey()
  await store.createSession(key)
  const unlock = await lockSessions(database.url)
  const writes = [
    failureOf(store.appendMessage(key, { role: 'user', content: 'x', timestamp: 1 })),
    failureOf(store.updateState(key, { a: 1 })),
  ]
  await database.query('SELECT pg_sleep(0.2)')
  await store.close()
  for (const write of writes) expect((await write).code).toBe('store-unavailable')
  await unlock()
  await database.drop()
})

test('a server that accepts connections and never answers is reported after one timeout, not after five', async () => {
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
