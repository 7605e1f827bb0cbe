import { AgentError } from '../errors.js'
import type { BackupOptions, BackupReceipt, SessionStore } from '../session/session-store.js'
import type { RestoreOptions, RestoreReceipt } from './backup.js'
import { checkedStore } from './checked-store.js'
import type { ForeignDatabase } from './sql-database.js'
import type { SqlitePlace } from './sqlite.js'
import { cannotBackUp } from './store-errors.js'

export type { ForeignDatabase }

/**
 * Opens the store that the URL names: `memory:`, `sqlite:path` (`?sync=normal` is faster and may lose the last
 * writes in a power failure; `?create=1` creates the folder of the file) or `postgres://…` (`?pool=10`). A driver is loaded only when its store is opened.
 *
 * ```ts
 * import { openStore } from 'lango/store'
 *
 * const store = await openStore('sqlite:./sessions.db')
 * const { sessions } = await store.listSessions({ appName: 'lango' })
 * await store.close()
 * ```
 */
export async function openStore(url: string): Promise<SessionStore> {
  const location = parseStoreUrl(url)
  switch (location.driver) {
    case 'memory': {
      const [{ createMemoryDatabase }, { openSqlStore }] = await Promise.all([
        import('./sqlite-memory.js'),
        import('./sql-store.js'),
      ])
      const memory = await createMemoryDatabase()
      return checkedStore(await openSqlStore(memory.open()))
    }
    case 'sqlite': {
      const [{ openSqlite }, { openSqlStore }] = await Promise.all([
        import('./sqlite.js'),
        import('./sql-store.js'),
      ])
      return checkedStore(await openSqlStore(await openSqlite(location)))
    }
    case 'postgres': {
      const [{ openPostgres }, { openSqlStore }, { PostgresStore }] = await Promise.all([
        import('./postgres.js'),
        import('./sql-store.js'),
        import('./postgres-store.js'),
      ])
      return checkedStore(await openSqlStore(await openPostgres(location), PostgresStore))
    }
  }
}

/** Whether a place to import from is a database on a server. */
export function isDatabaseUrl(place: string): boolean {
  return /^postgres(ql)?:/i.test(place)
}

/** Opens another program's database, a SQLite file or a URL of PostgreSQL, to import sessions from it. Only reads. */
export async function openForeignDatabase(place: string): Promise<ForeignDatabase> {
  const location = isDatabaseUrl(place) ? parseStoreUrl(place) : undefined
  if (location?.driver === 'postgres') {
    const { openForeignPostgres } = await import('./postgres.js')
    return openForeignPostgres(location)
  }
  const { openForeignSqlite } = await import('./sqlite.js')
  return openForeignSqlite(place)
}

/** The state of a store, without opening it. */
export interface StoreState {
  driver: 'memory' | 'sqlite' | 'postgres'
  /** False when the file does not exist yet. */
  exists: boolean
  /** The version of the schema: 0 when the tables do not exist yet. */
  version: number
  /** The newest version that this release supports. */
  known: number
}

/** Inspects a store without creating or migrating anything. Fails as opening it would. */
export async function inspectStore(url: string): Promise<StoreState> {
  const location = parseStoreUrl(url)
  if (location.driver === 'memory') return { driver: 'memory', exists: true, version: 0, known: 0 }
  const { schemaVersion } = await import('./migrations.js')
  if (location.driver === 'sqlite') {
    const { inspectSqlite } = await import('./sqlite.js')
    return inspectSqlite(location, schemaVersion)
  }
  const { openPostgres } = await import('./postgres.js')
  const database = await openPostgres(location)
  try {
    return { driver: 'postgres', exists: true, ...(await schemaVersion(database)) }
  } finally {
    await database.close()
  }
}

/** Copies a SQLite store to a file without opening it, so that an older database is copied as it is. */
export async function backupStore(
  url: string,
  path: string,
  options: BackupOptions = {},
): Promise<BackupReceipt> {
  const location = parseStoreUrl(url)
  if (location.driver !== 'sqlite') throw cannotBackUp(location.driver)
  if (!(await inspectStore(url)).exists)
    throw new AgentError('invalid-argument', `${location.path} does not exist: there is nothing to back up`)
  const [{ backUp }, { sqliteTools }] = await Promise.all([
    import('./backup.js'),
    import('./sqlite-database.js'),
  ])
  return backUp(await sqliteTools(), location.path, path, options)
}

/** Replaces a SQLite store with a backup; the earlier file is kept. Fails while another process has it open. */
export async function restoreStore(
  url: string,
  file: string,
  onProgress?: RestoreOptions['onProgress'],
): Promise<RestoreReceipt> {
  const location = parseStoreUrl(url)
  if (location.driver !== 'sqlite')
    throw new AgentError('unsupported', 'Only a SQLite store can be restored from a file')
  const [{ restore }, { sqliteTools }, { inspectSqlite }, { schemaVersion }] = await Promise.all([
    import('./backup.js'),
    import('./sqlite-database.js'),
    import('./sqlite.js'),
    import('./migrations.js'),
  ])
  const inspect = (path: string) => inspectSqlite({ path }, schemaVersion)
  const options = { inspect, ...(onProgress ? { onProgress } : {}) }
  return restore(await sqliteTools(), file, location.path, options)
}

/** Where a store is, read from its URL. */
export type StoreLocation =
  | { driver: 'memory' }
  | ({ driver: 'sqlite' } & SqlitePlace)
  | {
      driver: 'postgres'
      connectionString: string
      poolSize: number
      queryTimeoutMs: number
      shownUrl: string
      pooler?: 'none' | 'session' | 'transaction'
      prepare?: boolean
      schema?: string
    }

/** Reads `memory:`, `sqlite:path`, `sqlite://path`, `postgres://…` and `postgresql://…`. */
export function parseStoreUrl(url: string): StoreLocation {
  if (typeof url !== 'string') throw badUrl('it is not a string', '')
  const scheme = /^([a-z]+):/i.exec(url)?.[1]?.toLowerCase()
  if (scheme === 'memory') return parseMemory(url)
  if (scheme === 'sqlite') return parseSqlite(url)
  if (scheme === 'postgres' || scheme === 'postgresql') return parsePostgres(url)
  throw badUrl(scheme === undefined ? 'it has no scheme' : `"${scheme}:" is not a supported store`, '')
}

const FORMS = 'Use memory:, sqlite:./lango.db or postgres://user:password@host:5432/database'

/** The URL itself is not repeated: it may hold a password. */
function badUrl(why: string, hint: string): AgentError {
  return new AgentError('invalid-argument', `The store URL cannot be used: ${why}. ${hint || FORMS}`, {
    details: { field: 'url' },
  })
}

function parseMemory(url: string): StoreLocation {
  if (!/^memory:(\/\/)?$/i.test(url)) throw badUrl('memory: takes no path', '')
  return { driver: 'memory' }
}

function parseSqlite(url: string): StoreLocation {
  const [rest = '', query] = split(url.slice('sqlite:'.length), '?')
  const path = decode(rest.startsWith('//') ? rest.slice(2) : rest)
  if (path === '' || path === ':memory:' || path.includes('\0')) {
    throw badUrl('it names no file', 'Write sqlite:./lango.db for a file, or memory: for a store in memory')
  }
  const options = new URLSearchParams(query)
  const sync = options.get('sync') ?? 'full'
  if (sync !== 'full' && sync !== 'normal') throw badUrl(`sync is "${sync}"`, 'sync is full or normal')
  const create = options.get('create')
  if (create !== null && create !== '1')
    throw badUrl(`create is "${create}"`, 'create is 1: the folder of the file is created when it is missing')
  refuseUnknown(options, ['sync', 'create'])
  return { driver: 'sqlite', path, sync, ...(create === null ? {} : { create: true }) }
}

function parsePostgres(url: string): StoreLocation {
  let parsed: URL
  try {
    parsed = new URL(url)
  } catch {
    throw badUrl(
      'it is not a valid URL',
      'Write postgres://user:password@host:5432/database, special characters as %xx',
    )
  }
  const pool = parsed.searchParams.get('pool')
  const poolSize = pool === null ? 10 : Number(pool)
  if (!Number.isInteger(poolSize) || poolSize < 1 || poolSize > 1000) {
    throw badUrl(`pool is "${pool}"`, 'pool is the number of connections, from 1 to 1000')
  }
  const timeout = parsed.searchParams.get('query_timeout')
  const queryTimeoutMs = timeout === null ? 60_000 : Number(timeout || Number.NaN)
  if (!Number.isInteger(queryTimeoutMs) || queryTimeoutMs < 0 || queryTimeoutMs > MOST_TIMEOUT_MS) {
    throw badUrl(`query_timeout is "${timeout}"`, 'query_timeout is in milliseconds; 0 disables it')
  }
  const choices = poolerChoices(parsed.searchParams)
  checkTls(parsed.searchParams)
  // All other options are passed to the driver: application_name and so on.
  for (const name of OWN_OPTIONS) parsed.searchParams.delete(name)
  const shownUrl = `postgres://${parsed.host}${parsed.pathname}`
  return { driver: 'postgres', connectionString: parsed.href, poolSize, queryTimeoutMs, shownUrl, ...choices }
}

const OWN_OPTIONS = ['pool', 'query_timeout', 'pooler', 'prepare', 'schema']

function poolerChoices(
  options: URLSearchParams,
): Pick<StoreLocation & { driver: 'postgres' }, 'pooler' | 'prepare' | 'schema'> {
  const pooler = options.get('pooler')
  if (pooler !== null && pooler !== 'none' && pooler !== 'session' && pooler !== 'transaction')
    throw badUrl(
      `pooler is "${pooler}"`,
      'pooler is none, session or transaction; it is found out by default',
    )
  const prepare = options.get('prepare')
  if (prepare !== null && prepare !== 'on' && prepare !== 'off')
    throw badUrl(`prepare is "${prepare}"`, 'prepare is on or off')
  const schema = options.get('schema')
  if (schema !== null && (schema === '' || schema.includes('\0') || Buffer.byteLength(schema) > 63))
    throw badUrl(`schema is "${schema}"`, 'schema is the name of a schema, of 1 to 63 bytes')
  return {
    ...(pooler === null ? {} : { pooler }),
    ...(prepare === null ? {} : { prepare: prepare === 'on' }),
    ...(schema === null ? {} : { schema }),
  }
}

function checkTls(options: URLSearchParams): void {
  const mode = options.get('sslmode')
  if (mode !== null && !TLS_MODES.includes(mode))
    throw badUrl(`sslmode is "${mode}"`, 'sslmode is disable, require, verify-full or no-verify')
}

const TLS_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify']

/** A day: timers are limited to about 24 days. */
const MOST_TIMEOUT_MS = 86_400_000

function split(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator)
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)]
}

/** A path may be written as a URL (`%20`) or plainly, with a `%` in it. */
function decode(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

function refuseUnknown(options: URLSearchParams, known: readonly string[]): void {
  for (const name of options.keys()) {
    if (!known.includes(name))
      throw badUrl(`"${name}" is not an option of this store`, `Options: ${known.join(', ')}`)
  }
}
