/**
 * SQLite through `@photostructure/sqlite`: the API of `node:sqlite` with a SQLite of its own, because the
 * one inside a Node may lack the repair of the WAL-reset corruption (3.51.3).
 */
import { access, constants, mkdir, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite'
import { AgentError, messageOf } from '../errors.js'
import type { Dialect, Row, SqlDatabase, Statement, Task } from './sql-database.js'
import { storeClosed } from './store-errors.js'

/** Opens the file, creating it and its folder when they are missing. */
export async function openSqlite({
  path,
  sync,
}: {
  path: string
  sync: 'full' | 'normal'
}): Promise<SqlDatabase> {
  const file = resolve(path)
  await prepareFile(file)
  const { DatabaseSync } = await loadDriver()
  let connection: DatabaseSyncInstance | undefined
  try {
    connection = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS })
    await configure(connection, sync)
    refuseForeignCode(connection, file)
  } catch (error) {
    connection?.close()
    throw toAgentError(error, file)
  }
  return new SqliteDatabase(connection, file)
}

const BUSY_TIMEOUT_MS = 10_000

/** Reads a version from the file, if there is one, without creating or changing it. */
export async function inspectSqlite<Version extends object>(
  path: string,
  read: (database: SqlDatabase) => Promise<Version>,
): Promise<Version & { driver: 'sqlite'; exists: boolean }> {
  const file = resolve(path)
  const found = await stat(file).catch(() => undefined)
  if (found === undefined) await checkPlace(file)
  else await prepareFile(file)
  const { DatabaseSync } = await loadDriver()
  try {
    const connection = new DatabaseSync(found ? file : ':memory:', { timeout: BUSY_TIMEOUT_MS })
    const database = new SqliteDatabase(connection, file)
    try {
      return { driver: 'sqlite', exists: found !== undefined, ...(await read(database)) }
    } finally {
      await database.close()
    }
  } catch (error) {
    throw toAgentError(error, file)
  }
}

/** Whether a file could be created there: the nearest folder that exists must be writable. */
async function checkPlace(file: string): Promise<void> {
  let folder = dirname(file)
  while (folder !== dirname(folder) && !(await stat(folder).catch(() => undefined))) folder = dirname(folder)
  try {
    await access(folder, constants.W_OK)
  } catch (cause) {
    throw unavailable(`Nothing can be written in ${folder}: make it writable, or choose another path`, cause)
  }
}

/** Another program's database: read only. */
export interface ForeignDatabase {
  rows(text: string, ...parameters: (string | number)[]): Row[]
  close(): void
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
  return {
    rows: (text, ...parameters) => guarded(() => connection.prepare(text).all(...parameters) as Row[]),
    close: () => connection.close(),
  }
}

class SqliteDatabase implements SqlDatabase {
  readonly dialect = SQLITE
  readonly #connection: DatabaseSyncInstance
  readonly #file: string
  readonly #prepared = new Map<string, StatementSyncInstance>()

  constructor(connection: DatabaseSyncInstance, file: string) {
    this.#connection = connection
    this.#file = file
  }

  async write<T>(task: () => Task<T>): Promise<T> {
    return this.#transaction('BEGIN IMMEDIATE', task)
  }

  async read<T>(task: () => Task<T>): Promise<T> {
    return this.#transaction('BEGIN', task)
  }

  async run({ text, parameters }: Statement): Promise<readonly Row[]> {
    try {
      return this.#prepare(text).all(...parameters) as Row[]
    } catch (error) {
      throw toAgentError(error, this.#file)
    }
  }

  isDuplicate(error: unknown): boolean {
    const code = errcodeOf(error) ?? errcodeOf((error as { cause?: unknown }).cause)
    return code === 1555 || code === 2067
  }

  async close(): Promise<void> {
    this.#prepared.clear()
    if (this.#connection.isOpen) this.#connection.close()
  }

  /** Synchronous from begin to commit: no other work of this process can run in between. */
  #transaction<T>(begin: string, task: () => Task<T>): T {
    if (!this.#connection.isOpen) throw storeClosed()
    try {
      this.#prepare(begin).run()
      const steps = task()
      let step = steps.next()
      while (!step.done)
        step = steps.next(this.#prepare(step.value.text).all(...step.value.parameters) as Row[])
      this.#prepare('COMMIT').run()
      return step.value
    } catch (error) {
      this.#rollback()
      throw toAgentError(error, this.#file)
    }
  }

  #rollback(): void {
    // Some errors (a full disk) have rolled back already.
    if (this.#connection.isOpen && this.#connection.isTransaction) this.#prepare('ROLLBACK').run()
  }

  #prepare(text: string): StatementSyncInstance {
    const known = this.#prepared.get(text)
    if (known !== undefined) return known
    if (!this.#connection.isOpen) throw storeClosed()
    const statement = this.#connection.prepare(text)
    this.#prepared.set(text, statement)
    return statement
  }
}

const SQLITE: Dialect = {
  name: 'sqlite',
  now: "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)",
  identity: 'INTEGER PRIMARY KEY AUTOINCREMENT',
  integer: 'INTEGER',
  real: 'REAL',
  roomForUpdates: '',
  forUpdate: '',
  forKeyShare: '',
  versionTableExists: "SELECT count(*) AS present FROM sqlite_master WHERE name = 'lango_schema'",
  migrationLock: '',
  ticketLock: '',
  requestLock: '',
  pruneLock: '',
  textsIn: '(SELECT value FROM json_each(?))',
  joinedOutputs: `(SELECT group_concat(value ->> '$.output', char(10)) FROM json_each(m.tool_calls))`,
}

/** One folder at a time: Node's recursive mkdir does not return on file systems that report an existing parent as missing. */
async function makeFolder(folder: string): Promise<void> {
  if (await isFolder(folder)) return
  const parent = dirname(folder)
  if (parent !== folder) await makeFolder(parent)
  await mkdir(folder).catch(async (error: unknown) => {
    // Another process may have created it meanwhile.
    if (!(await isFolder(folder))) throw error
  })
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false
}

async function prepareFile(file: string): Promise<void> {
  try {
    await makeFolder(dirname(file))
  } catch (cause) {
    throw unavailable(
      `The folder of ${file} cannot be created (${messageOf(cause)}): choose another path`,
      cause,
    )
  }
  const found = await stat(file).catch(() => undefined)
  if (found === undefined) return
  if (found.isDirectory()) {
    throw new AgentError(
      'invalid-argument',
      `${file} is a folder: name a file in it, such as sqlite:${file}/lango.db`,
    )
  }
  // The superuser could write anyway, but the file was made read-only on purpose.
  if ((found.mode & 0o222) === 0) throw readOnly(file, undefined)
}

async function loadDriver(): Promise<typeof import('@photostructure/sqlite')> {
  try {
    return await import('@photostructure/sqlite')
  } catch (cause) {
    throw unavailable(
      `The SQLite driver cannot be loaded (${messageOf(cause)}): run npm install @photostructure/sqlite`,
      cause,
    )
  }
}

/** Rows of 2 to 4 kB waste the least space on small pages; the size can only be chosen before the first table. */
const PAGE_SIZE = 2048

async function configure(connection: DatabaseSyncInstance, sync: 'full' | 'normal'): Promise<void> {
  const { version } = connection.prepare('SELECT sqlite_version() AS version').get() as { version: string }
  if (isOlder(version, OLDEST_SQLITE)) {
    throw unavailable(
      `The SQLite driver brings SQLite ${version}, which can corrupt a database: version ${OLDEST_SQLITE.join('.')} ` +
        'or newer is needed. Update @photostructure/sqlite',
    )
  }
  connection.exec(`PRAGMA page_size = ${PAGE_SIZE}`)
  await switchToWal(connection)
  connection.exec(`PRAGMA synchronous = ${sync}`)
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

/** Changing the journal mode ignores the busy timeout, so processes that start together retry here. */
async function switchToWal(connection: DatabaseSyncInstance): Promise<void> {
  const deadline = performance.now() + BUSY_TIMEOUT_MS
  for (;;) {
    try {
      const row = connection.prepare('PRAGMA journal_mode = WAL').get() as { journal_mode: string }
      if (row.journal_mode === 'wal') return
      throw unavailable(
        `The database cannot use a write-ahead log (its journal is "${row.journal_mode}"): ` +
          'the file system does not support shared memory. Put the file on a local disk',
      )
    } catch (error) {
      if (errcodeOf(error) === undefined || !isBusy(error) || performance.now() > deadline) throw error
      await new Promise(resume => setTimeout(resume, 5 + Math.random() * 20))
    }
  }
}

function errcodeOf(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | undefined)?.errcode
  return typeof code === 'number' ? code : undefined
}

function isBusy(error: unknown): boolean {
  const primary = (errcodeOf(error) ?? 0) & 0xff
  return primary === 5 || primary === 6
}

/** Maps SQLite's error codes to AgentErrors. An AgentError is returned unchanged. */
function toAgentError(error: unknown, file: string): unknown {
  const code = errcodeOf(error)
  if (error instanceof AgentError || code === undefined) return error
  switch (code & 0xff) {
    case 5:
    case 6:
      return unavailable(
        `${file} has been locked by another process for more than ${BUSY_TIMEOUT_MS / 1000} s: ` +
          'stop the process that holds the lock, or try again',
        error,
        true,
      )
    case 8:
      return readOnly(file, error)
    case 11:
    case 26:
      return new AgentError(
        'store-corrupt',
        `${file} is not a usable SQLite database (${messageOf(error)}): ` +
          'restore it from a backup, or name another file',
        { cause: error },
      )
    case 13:
      return unavailable(`${file} cannot grow: the disk is full. Free some space`, error, true)
    case 3:
    case 10:
    case 14:
    case 23:
      return unavailable(
        `${file} cannot be opened or written (${messageOf(error)}): ` +
          'check that the file and its folder exist and may be read and written',
        error,
      )
    default:
      return new AgentError('internal', `SQLite failed on ${file}: ${messageOf(error)}`, { cause: error })
  }
}

function readOnly(file: string, cause: unknown): AgentError {
  return unavailable(`${file} is read-only: make it writable (chmod u+w), or name another file`, cause)
}

function unavailable(message: string, cause?: unknown, retryable = false): AgentError {
  return new AgentError('store-unavailable', message, { cause, retryable })
}
