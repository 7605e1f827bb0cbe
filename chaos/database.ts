/** The store that the servers share, and what can happen to it. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { startPgBouncer } from '../test/support/pgbouncer.js'
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

/** `sqlite`, `postgres`, `pgbouncer-session`, `pgbouncer-transaction`, or the URL of a store. */
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
  const pooled = /^pgbouncer-(session|transaction)$/.exec(store)
  if (pooled) return openPooled(pooled[1] === 'session' ? 'session' : 'transaction')
  if (!store.startsWith('postgres'))
    return { name: store.split(':')[0] ?? store, url: store, close: async () => {} }
  return { name: 'PostgreSQL', url: store, disconnect: () => disconnect(store), close: async () => {} }
}

/** PostgreSQL behind PgBouncer. Disturbances happen to the server, behind the pooler's back. */
async function openPooled(poolMode: 'session' | 'transaction'): Promise<ChaosDatabase> {
  const { url, restart, stop } = await startPostgres({ durable: true })
  // In session mode every connection of every server needs one.
  const pooler = await startPgBouncer(url, { poolMode, poolSize: poolMode === 'session' ? 80 : 10 })
  return {
    name: `PgBouncer in ${poolMode} mode`,
    url: pooler.url,
    restart,
    disconnect: () => disconnect(url),
    close: async () => {
      await pooler.stop()
      await stop()
    },
  }
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
