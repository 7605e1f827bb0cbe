import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite'
import { Share, within } from '../base/pause.js'
import { AgentError, messageOf } from '../errors.js'
import type { BackupOptions, BackupReceipt } from '../session/session-store.js'
import type { SqliteTools } from './backup.js'
import type { Row, SqlDatabase, SqlValue, Statement, Task } from './sql-database.js'
import { SqliteDialect } from './sqlite-dialect.js'
import {
  BUSY_TIMEOUT_MS,
  checkpointInThread,
  type FileGuard,
  isBusy,
  isDuplicate,
  isFull,
  LOG_CHECKED_FOR_MS,
  toAgentError,
  unavailable,
} from './sqlite-file.js'
import { storeClosed } from './store-errors.js'

/** The part of the driver's connection that a database uses. */
export type Connection = Pick<DatabaseSyncInstance, 'prepare' | 'exec' | 'close' | 'isOpen' | 'isTransaction'>

/** A write that waits for the next transaction. */
interface Pending {
  /** Until when a lock of another process is waited for. */
  readonly deadline: number
  /** Runs the task; what it returns is called after the commit. */
  run(): () => void
  reject(error: unknown): void
}

/**
 * Writes that arrive while the event loop is busy share one transaction and one fsync. The transaction runs
 * synchronously from begin to commit, so no other work of this process can run in between, and is limited in
 * time. A lock of another process is waited for with timers: the event loop stays free, and reads work meanwhile.
 */
export class SqliteDatabase implements SqlDatabase {
  readonly dialect = new SqliteDialect()
  readonly work = { statements: 0, control: 0, commits: 0, trips: 0 }
  readonly isDuplicate = isDuplicate
  isFull = false
  readonly #connection: Connection
  readonly #file: string
  readonly #guard: FileGuard | undefined
  /** Where commits do not wait for the disk, looking at the files after each would take a quarter of the time. */
  readonly #checkNow: boolean
  readonly #prepared = new Map<string, StatementSyncInstance>()
  readonly #readers = new Map<string, Reader>()
  #queue: Pending[] = []
  #isScheduled = false
  readonly #share = new Share()
  #attempts = 0
  #nextCheckpoint = 0
  #closing: Promise<void> | undefined
  #onIdle: () => void = () => {}
  /** A file gets its log with the first write: a command that only reads leaves the file as it is. */
  #needsLog: boolean

  constructor(connection: Connection, file: string, guard?: FileGuard, sync?: 'full' | 'normal') {
    this.#connection = connection
    this.#needsLog = journalOf(connection) === 'delete'
    this.#checkNow = sync !== 'normal'
    this.#file = file
    this.#guard = guard
  }

  write<T>(task: () => Task<T>): Promise<T> {
    return new Promise((fulfil, reject) => {
      if (this.#closing) return reject(storeClosed())
      const run = () => {
        const result = this.#steps(task)
        return () => fulfil(result)
      }
      this.#queue.push({ deadline: performance.now() + BUSY_TIMEOUT_MS, run, reject })
      this.#schedule()
    })
  }

  async read<T>(task: () => Task<T>): Promise<T> {
    return this.#reading(() => {
      try {
        this.#prepare('BEGIN').run()
        const result = this.#steps(task)
        this.#prepare('COMMIT').run()
        return result
      } finally {
        this.#rollback()
      }
    })
  }

  batch(statements: readonly Statement[]): Promise<readonly (readonly Row[])[]> {
    return this.write(function* (): Task<readonly (readonly Row[])[]> {
      const rows: (readonly Row[])[] = []
      for (const statement of statements) rows.push(yield statement)
      return rows
    })
  }

  async run(statement: Statement): Promise<readonly Row[]> {
    // A VACUUM refuses to run inside a transaction.
    if (/^\s*(SELECT|VACUUM)\b/.test(statement.text)) return this.#reading(() => this.#all(statement))
    return this.write(function* (): Task<readonly Row[]> {
      return yield statement
    })
  }

  search(statement: Statement): Promise<readonly Row[]> {
    return this.run(statement)
  }

  async check(): Promise<void> {
    await this.#reading(() => this.#guard?.check())
    await this.run({ text: 'SELECT 1 FROM lango_schema LIMIT 1', parameters: [] })
  }

  async emptyLog(): Promise<boolean> {
    if (!this.#connection.isOpen) throw storeClosed()
    try {
      const row = this.#connection.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number }
      return row.busy === 0
    } catch (error) {
      if (isBusy(error)) return false
      throw toAgentError(error, this.#file)
    }
  }

  /** Deleted bytes are overwritten at once (`secure_delete`). */
  async vacuum(_tables: ReadonlySet<string>, rewrite: boolean): Promise<'none'> {
    if (rewrite) await this.run({ text: 'VACUUM', parameters: [] })
    return 'none'
  }

  async backup(path: string, options: BackupOptions): Promise<BackupReceipt> {
    const { backUp } = await import('./backup.js')
    try {
      return await backUp(await sqliteTools(), this.#file, path, options)
    } catch (error) {
      throw toAgentError(error, path)
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /** What was accepted is stored first, if no other process keeps the file locked. */
  async #close(): Promise<void> {
    if (this.#queue.length > 0) {
      await within(CLOSE_TIMEOUT_MS, new Promise<void>(idle => (this.#onIdle = idle)))
    }
    for (const { reject } of this.#queue.splice(0)) reject(storeClosed())
    this.#prepared.clear()
    this.#readers.clear()
    if (!this.#connection.isOpen) return
    try {
      this.#guard?.check()
      if (this.#guard && !this.#needsLog) leaveOneFile(this.#connection)
    } catch {
      // Another process uses the file, or the file is gone: nothing is left to do here.
    }
    this.#connection.close()
  }

  async #reading<T>(work: () => T): Promise<T> {
    try {
      return await whileBusy(() => {
        if (!this.#connection.isOpen) throw storeClosed()
        return work()
      })
    } catch (error) {
      throw toAgentError(error, this.#file)
    }
  }

  /** After the current phase of the event loop, so that all writes which become ready in it join. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#flush())
  }

  #flush(): void {
    if (!this.#share.mayBegin()) {
      setImmediate(() => this.#flush())
      return
    }
    this.#isScheduled = false
    if (this.#queue.length > 0 && this.#begin()) this.#runGroup()
    this.#share.ended()
    if (this.#queue.length === 0) this.#onIdle()
    else this.#schedule()
  }

  /** `false` when another process holds the lock, or the file cannot be used. */
  #begin(): boolean {
    try {
      this.#guard?.checkAfter(LOG_CHECKED_FOR_MS)
      if (this.#needsLog) switchToLog(this.#connection)
      this.#needsLog = false
      this.#prepare('BEGIN IMMEDIATE').run()
      this.#attempts = 0
      return true
    } catch (error) {
      const now = performance.now()
      const failed = isBusy(error) ? this.#queue.filter(({ deadline }) => deadline <= now) : this.#queue
      this.#queue = this.#queue.filter(pending => !failed.includes(pending))
      for (const { reject } of failed) reject(toAgentError(error, this.#file))
      if (this.#queue.length > 0) {
        this.#isScheduled = true
        setTimeout(() => this.#flush(), pauseMs(++this.#attempts))
      }
      return false
    }
  }

  /** One transaction: each task succeeds or fails by itself, and is acknowledged after the commit. */
  #runGroup(): void {
    const until = performance.now() + GROUP_MS
    const isAlone = this.#queue.length === 1
    const group: Pending[] = []
    const settle: (() => void)[] = []
    try {
      do {
        const pending = this.#queue.shift()
        if (pending === undefined) break
        group.push(pending)
        settle.push(isAlone ? pending.run() : this.#runInSavepoint(pending))
      } while (group.length < LEAST_GROUP || performance.now() < until)
      this.#prepare('COMMIT').run()
      this.work.commits++
      this.#checkpoint(this.#checkCommit())
    } catch (error) {
      this.#rollback()
      const reason = this.#reasonOf(error)
      for (const { reject } of group) reject(reason)
      return
    }
    for (const each of settle) each()
  }

  #checkCommit(): number {
    if (this.#guard === undefined) return 0
    return this.#checkNow ? this.#guard.checkCommit() : this.#guard.checkAfter(CHECK_PAUSE_MS)
  }

  /** A file that has changed explains most errors better than SQLite does. */
  #reasonOf(error: unknown): unknown {
    this.isFull ||= isFull(error)
    try {
      if (!(error instanceof AgentError)) this.#guard?.check()
      return toAgentError(error, this.#file)
    } catch (changed) {
      return changed
    }
  }

  #runInSavepoint(pending: Pending): () => void {
    this.#prepare('SAVEPOINT task').run()
    try {
      const fulfil = pending.run()
      this.#prepare('RELEASE task').run()
      return fulfil
    } catch (error) {
      // Some errors (a full disk) have rolled back the whole transaction.
      if (!this.#connection.isTransaction) throw error
      this.#prepare('ROLLBACK TO task').run()
      this.#prepare('RELEASE task').run()
      return () => pending.reject(this.#reasonOf(error))
    }
  }

  #steps<T>(task: () => Task<T>): T {
    const steps = task()
    let step = steps.next()
    while (!step.done) step = steps.next(this.#all(step.value))
    return step.value
  }

  #all({ text, parameters }: Statement): Row[] {
    this.work.statements++
    const reader = this.#readers.get(text) ?? this.#prepareReader(text)
    const rows = reader.statement.all(...parameters) as unknown as SqlValue[][]
    return rows.map(values => toRow(reader.columns, values))
  }

  /** The driver returns lists: it needs less than half the time for them, and the objects are made here. */
  #prepareReader(text: string): Reader {
    if (!this.#connection.isOpen) throw storeClosed()
    const statement = this.#connection.prepare(text)
    statement.setReturnArrays(true)
    const reader = { statement, columns: statement.columns().map(({ name }) => name) }
    this.#readers.set(text, reader)
    return reader
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

  /**
   * Commits copy a log of ordinary size into the database by themselves, in milliseconds. A reader of another process
   * can make the log large; a thread copies a large one, because that takes long.
   */
  #checkpoint(logSize: number): void {
    const now = performance.now()
    if (logSize < LARGE_LOG || now < this.#nextCheckpoint || this.#closing) return
    this.#nextCheckpoint = Number.POSITIVE_INFINITY
    this.#connection.exec('PRAGMA wal_autocheckpoint = 0')
    const done = (isWhole: boolean) => {
      this.#nextCheckpoint = performance.now() + CHECKPOINT_PAUSE_MS
      if (isWhole && this.#connection.isOpen)
        this.#connection.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
    }
    checkpointInThread(this.#file).then(done, () => done(true))
  }
}

/** A statement that returns rows as lists, and the names of its columns. */
interface Reader {
  readonly statement: StatementSyncInstance
  readonly columns: readonly string[]
}

function toRow(columns: readonly string[], values: readonly SqlValue[]): Row {
  const row: Record<string, SqlValue> = {}
  for (let at = 0; at < columns.length; at++) row[columns[at] as string] = values[at] as SqlValue
  return row
}

const CLOSE_TIMEOUT_MS = 2000
/** How long one transaction may keep the event loop, before its commit. */
const GROUP_MS = 10
/** What one run writes in one tick shares a commit, however slow the machine is. */
const LEAST_GROUP = 8
/** SQLite's own default: a commit that finds so many pages in the log copies them. */
export const CHECKPOINT_PAGES = 1000
const CHECK_PAUSE_MS = 5
const CHECKPOINT_PAUSE_MS = 1000
/** In bytes. */
export const LARGE_LOG = 4_000_000

/** Retries while another process holds a lock, with timers. */
export async function whileBusy<T>(work: () => T): Promise<T> {
  const deadline = performance.now() + BUSY_TIMEOUT_MS
  for (let attempt = 1; ; attempt++) {
    try {
      return work()
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error
      await new Promise(resume => setTimeout(resume, pauseMs(attempt)))
    }
  }
}

/** Short at first, as locks are; by chance, so that waiting processes do not meet again. */
function pauseMs(attempt: number): number {
  return 1 + Math.random() * Math.min(25, 2 * attempt)
}

function journalOf(connection: Connection): string {
  return (connection.prepare('PRAGMA journal_mode').get() as { journal_mode: string }).journal_mode
}

function switchToLog(connection: Connection): void {
  // Not by exec: its errors have no code.
  const row = connection.prepare('PRAGMA journal_mode = WAL').get() as { journal_mode: string }
  const journal = row.journal_mode
  if (journal === 'wal') return
  throw unavailable(
    `The database cannot use a write-ahead log (its journal is "${journal}"): ` +
      'the file system does not support shared memory. Put the file on a local disk',
  )
}

/**
 * Copies the log into the database and removes it, unless another process uses the file. Closing alone would leave
 * it: the driver cannot finalize statements. The next start switches to a log again.
 */
function leaveOneFile(connection: Connection): void {
  connection.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  connection.exec('PRAGMA journal_mode = DELETE')
}

/**
 * Gives the statements of a connection their time. To SQLite, a deterministic function is one that it may evaluate once
 * per statement: without that, a scan would ask the clock for every row.
 */
export function setClock(connection: DatabaseSyncInstance, now = () => Date.now()): void {
  connection.function('lango_now', { deterministic: true }, now)
}

export async function loadDriver(): Promise<typeof import('@photostructure/sqlite')> {
  try {
    return await import('@photostructure/sqlite')
  } catch (cause) {
    throw unavailable(
      `The SQLite driver cannot be loaded (${messageOf(cause)}): run npm install @photostructure/sqlite. ` +
        'It is native: a bundler must leave it out (external), and the package be installed beside the bundle',
      cause,
    )
  }
}

/** What copying a database needs. */
export async function sqliteTools(): Promise<SqliteTools<DatabaseSyncInstance>> {
  const { DatabaseSync, backup } = await loadDriver()
  return { open: (file, options) => new DatabaseSync(file, options), copy: backup }
}
