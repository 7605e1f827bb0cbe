import { DatabaseSync } from '@photostructure/sqlite'

/**
 * Ends the leases in an SQLite file, as the passing of their ten seconds does. For tests of what comes after the end of
 * a killed process; that leases expire by the clock of the database is tested with the stores.
 */
export function expireLeases(storeUrl: string): void {
  const database = new DatabaseSync(storeUrl.replace(/^sqlite:/, ''), { timeout: 60_000 })
  for (const table of ['lango_sessions', 'lango_leases'])
    database.prepare(`UPDATE ${table} SET lease_until = 0`).run()
  database.close()
}
