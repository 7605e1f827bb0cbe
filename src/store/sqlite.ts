/**
 * SQLite through `@photostructure/sqlite`: the API of `node:sqlite` with a SQLite of its own, because the
 * one inside a Node may lack the repair of the WAL-reset corruption (3.51.3).
 */
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { DatabaseSyncInstance } from '@photostructure/sqlite'
import { AgentError } from '../errors.js'
import type { ForeignDatabase, ForeignRow, SqlDatabase } from './sql-database.js'
import {
  CHECKPOINT_PAGES,
  LARGE_LOG,
  loadDriver,
  SqliteDatabase,
  setClock,
  whileBusy,
} from './sqlite-database.js'
import {
  BUSY_TIMEOUT_MS,
  checkPlace,
  FileGuard,
  prepareFile,
  toAgentError,
  unavailable,
  viewOf,
} from './sqlite-file.js'
import { SearchableSqlite } from './sqlite-search.js'

/** A SQLite file. With `create`, its folder is created when it is missing. */
export interface SqlitePlace {
  path: string
  sync: 'full' | 'normal'
  create?: boolean
}

/** Opens the file, creating it when it is missing. `now` is its clock, in milliseconds since 1970. */
export async function openSqlite(
  { path, sync, create = false }: SqlitePlace,
  now?: () => number,
): Promise<SqlDatabase> {
  const file = resolve(path)
  await prepareFile(file, create)
  const { DatabaseSync } = await loadDriver()
  let connection: DatabaseSyncInstance | undefined
  try {
    const opened = new DatabaseSync(file, { timeout: 0 })
    connection = opened
    setClock(opened, now)
    await whileBusy(() => configure(opened, sync))
    await whileBusy(() => refuseForeignCode(opened, file))
    return await whileBusy(
      () => new SearchableSqlite([opened, file, new FileGuard(file, viewOf(opened)), sync]),
    )
  } catch (error) {
    connection?.close()
    throw toAgentError(error, file)
  }
}

/** Reads a version from the file, if there is one, without creating or changing it. */
export async function inspectSqlite<Version extends object>(
  { path, create = false }: Pick<SqlitePlace, 'path' | 'create'>,
  read: (database: SqlDatabase) => Promise<Version>,
): Promise<Version & { driver: 'sqlite'; exists: boolean }> {
  const file = resolve(path)
  const found = await stat(file).catch(() => undefined)
  if (found === undefined) await checkPlace(file, create)
  else await prepareFile(file, create)
  const { DatabaseSync } = await loadDriver()
  try {
    const connection = new DatabaseSync(found ? file : ':memory:', { timeout: 0 })
    const database = await whileBusy(() => new SqliteDatabase(connection, file))
    try {
      return { driver: 'sqlite', exists: found !== undefined, ...(await read(database)) }
    } finally {
      await database.close()
    }
  } catch (error) {
    throw toAgentError(error, file)
  }
}

/** Opens another program's SQLite file for reading only. */
export async function openForeignSqlite(path: string): Promise<ForeignDatabase> {
  const file = resolve(path)
  const { DatabaseSync } = await loadDriver()
  const guarded = <Result>(work: () => Result): Result => {
    try {
      return work()
    } catch (error) {
      throw toAgentError(error, file)
    }
  }
  const connection = guarded(() => new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS }))
  const rows = (text: string, ...parameters: (string | number)[]): ForeignRow[] =>
    guarded(() => connection.prepare(text).all(...parameters) as ForeignRow[])
  const columnsOf = (table: string): Set<string> =>
    new Set(rows('SELECT name FROM pragma_table_info(?)', table).map(({ name }) => String(name)))
  return {
    insertion: 'rowid',
    tables: async () => {
      const names = rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
      return new Map(names.map(({ name }) => [String(name), columnsOf(String(name))]))
    },
    rows: async (text, ...parameters) => rows(text, ...parameters),
    close: async () => connection.close(),
  }
}

/** Rows of 2 to 4 kB waste the least space on small pages; the size can only be chosen before the first table. */
const PAGE_SIZE = 2048

function configure(connection: DatabaseSyncInstance, sync: 'full' | 'normal'): void {
  const { version } = connection.prepare('SELECT sqlite_version() AS version').get() as { version: string }
  if (isOlder(version, OLDEST_SQLITE)) {
    throw unavailable(
      `The SQLite driver brings SQLite ${version}, which can corrupt a database: version ${OLDEST_SQLITE.join('.')} ` +
        'or newer is needed. Update @photostructure/sqlite',
    )
  }
  connection.exec(`PRAGMA page_size = ${PAGE_SIZE}`)
  connection.exec(`PRAGMA synchronous = ${sync}`)
  connection.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
  connection.exec(`PRAGMA journal_size_limit = ${LARGE_LOG - 1_000_000}`)
  // Deleted text is overwritten with zeros; without this it stays readable in the file until its page is used again.
  connection.exec('PRAGMA secure_delete = ON')
}

/**
 * A trigger is code that came with the file: it could approve tools or add messages to every new session. Lango
 * creates no trigger, and one view.
 */
function refuseForeignCode(connection: DatabaseSyncInstance, file: string): void {
  connection.exec('PRAGMA trusted_schema = OFF')
  const found = connection
    .prepare(
      `SELECT type, name FROM sqlite_master WHERE type = 'trigger'
       OR (type = 'view' AND name LIKE 'lango%' AND name <> 'lango_messages_readable')`,
    )
    .get() as { type: string; name: string } | undefined
  if (!found) return
  throw new AgentError(
    'store-corrupt',
    `${file} has the ${found.type} "${found.name}", which Lango did not create and which could change stored data. Drop it if it is yours, or use another file`,
    { details: { file, ...found } },
  )
}

const OLDEST_SQLITE = [3, 51, 3]

function isOlder(version: string, than: readonly number[]): boolean {
  const numbers = version.split('.').map(Number)
  for (const [index, least] of than.entries()) {
    const number = numbers[index] ?? 0
    if (number !== least) return number < least
  }
  return false
}
