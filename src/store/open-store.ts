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
