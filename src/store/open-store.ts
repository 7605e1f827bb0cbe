import type { SessionStore } from '../session/session-store.js'
import type { ForeignDatabase } from './sqlite.js'
import { parseStoreUrl } from './store-url.js'

export type { ForeignDatabase }

/**
 * Opens the store that the URL names: `memory:`, `sqlite:path` (`?sync=normal` trades the last moments before
 * a power cut for speed) or `postgres://…` (`?pool=10`). A driver is loaded only when its store is opened.
 */
export async function openStore(url: string): Promise<SessionStore> {
  const location = parseStoreUrl(url)
  switch (location.driver) {
    case 'memory': {
      const { MemoryStore } = await import('./memory-store.js')
      return new MemoryStore()
    }
    case 'sqlite': {
      const [{ openSqlite }, { openSqlStore }] = await Promise.all([
        import('./sqlite.js'),
        import('./sql-store.js'),
      ])
      return openSqlStore(await openSqlite(location))
    }
    case 'postgres': {
      const [{ openPostgres }, { openSqlStore }] = await Promise.all([
        import('./postgres.js'),
        import('./sql-store.js'),
      ])
      return openSqlStore(await openPostgres(location))
    }
  }
}

/** Opens another program's SQLite file for reading only, to take sessions over from it. */
export async function openForeignSqlite(path: string): Promise<ForeignDatabase> {
  const { openForeignSqlite: open } = await import('./sqlite.js')
  return open(path)
}

/** What is found where a store is, or would be. */
export interface StoreState {
  driver: 'memory' | 'sqlite' | 'postgres'
  /** False when a file would have to be made first. */
  exists: boolean
  /** The version of the schema: 0 when the tables are not there yet. */
  version: number
  /** The newest version that this release knows. */
  known: number
}

/** Looks at a store without creating or migrating anything. Fails as opening it would. */
export async function inspectStore(url: string): Promise<StoreState> {
  const location = parseStoreUrl(url)
  if (location.driver === 'memory') return { driver: 'memory', exists: true, version: 0, known: 0 }
  const { schemaVersion } = await import('./migrations.js')
  if (location.driver === 'sqlite') {
    const { inspectSqlite } = await import('./sqlite.js')
    return inspectSqlite(location.path, schemaVersion)
  }
  const { openPostgres } = await import('./postgres.js')
  const database = await openPostgres(location)
  try {
    return { driver: 'postgres', exists: true, ...(await schemaVersion(database)) }
  } finally {
    await database.close()
  }
}
