/** The store that the servers share, and what can happen to it. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { startPostgres } from '../test/support/postgres-server.js'

export interface ChaosDatabase {
  name: string
  url: string
  /** Ends all connections. */
  disconnect?(): Promise<void>
  /** Ends the server in the midst of its work and starts it again. */
  restart?(): Promise<void>
  close(): Promise<void>
}

/** `sqlite`, `postgres`, or the URL of a store. */
export async function openDatabase(store: string, folder: string): Promise<ChaosDatabase> {
  if (store === 'sqlite') {
    await mkdir(folder, { recursive: true })
    return { name: 'SQLite', url: `sqlite:${join(folder, 'chaos.db')}`, close: async () => {} }
  }
  if (store === 'postgres') {
    // Acknowledged means on disk here too: otherwise a restart loses what was committed.
    const { url, restart, stop } = await startPostgres({ durable: true })
    return { name: 'PostgreSQL', url, restart, disconnect: () => disconnect(url), close: stop }
  }
  if (!store.startsWith('postgres'))
    return { name: store.split(':')[0] ?? store, url: store, close: async () => {} }
  return { name: 'PostgreSQL', url: store, disconnect: () => disconnect(store), close: async () => {} }
}

async function disconnect(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    )
  } finally {
    await client.end()
  }
}
