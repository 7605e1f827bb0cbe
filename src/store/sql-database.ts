/**
 * What the SQL store requires of a driver. A `Task` is a generator that yields statements and receives their
 * rows: SQLite runs it synchronously, so that nothing can come between begin and commit, and PostgreSQL runs
 * the very same task over a connection. So each piece of SQL logic is written once.
 */

import type { SessionKey } from '../session/message.js'
import type { BackupOptions, BackupReceipt } from '../session/session-store.js'

export type SqlValue = string | number | null

export type Row = Readonly<Record<string, SqlValue>>

/** One statement with `?` placeholders. Its text must be one of few: drivers keep it prepared. */
export interface Statement {
  readonly text: string
  readonly parameters: readonly SqlValue[]
  /** A write that may run twice: sent again when the connection broke and it is unknown whether it arrived. */
  readonly repeatable?: boolean
  /** A write that changes rows of one session alone: it may share a commit with those of other sessions. */
  readonly joining?: Joining
}

export interface Joining {
  readonly session: string
  /** Those that share a commit are executed in this order, so that two groups acquire their locks in the same one. */
  readonly order: string
}

export type Task<T> = Generator<Statement, T, readonly Row[]>

export interface SqlDatabase {
  readonly dialect: Dialect
  /**
   * What the database was asked for: statements, BEGIN and COMMIT that were sent over a network, and commits of writes.
   */
  readonly work: { statements: number; control: number; commits: number }
  /** Runs the task in one transaction. It may run again from the start if the database requires it. */
  write<T>(task: () => Task<T>): Promise<T>
  /** Runs the task over one consistent view of the data. */
  read<T>(task: () => Task<T>): Promise<T>
  /** Runs one statement by itself, in one round trip. */
  run(statement: Statement): Promise<readonly Row[]>
  /** As `run`, for a search that may take long: without blocking the event loop. Absent where nothing blocks it. */
  search?(statement: Statement): Promise<readonly Row[]>
  /**
   * Empties the write-ahead log, so that no deleted text stays in it. `false` when a reader or writer needs the log
   * right now; never waits. Absent where the server owns the log.
   */
  emptyLog?(): Promise<boolean>
  /** Copies the database to a new file. Absent where the server has tools for it. */
  backup?(path: string, options: BackupOptions): Promise<BackupReceipt>
  /** Whether the error reports a violated unique index. */
  isDuplicate(error: unknown): boolean
  /** A write has failed because the disk was full. Set by the database, taken back by its user. */
  isFull: boolean
  /** Fails when the database cannot be reached, or its file is not the one that was opened. */
  check(): Promise<void>
  close(): Promise<void>
}

/** A row of another program: any value that the driver returns. */
export type ForeignRow = Readonly<Record<string, unknown>>

/** Another program's database: read only. */
export interface ForeignDatabase {
  /** The columns of each table. */
  tables(): Promise<ReadonlyMap<string, ReadonlySet<string>>>
  /** The expression by which rows without another order are in the order of insertion. */
  readonly insertion: string
  rows(text: string, ...parameters: (string | number)[]): Promise<readonly ForeignRow[]>
  close(): Promise<void>
}

/** Where the SQL of the two databases differs. */
export interface Dialect {
  readonly name: 'sqlite' | 'postgres'
  /** Milliseconds since 1970 by the database's clock. */
  readonly now: string
  /** Column type of a key that counts up and is never used again. */
  readonly identity: string
  readonly integer: string
  readonly real: string
  /** Reserves space next to rows that change often. */
  readonly roomForUpdates: string
  /** Locks the rows that are read. SQLite's write transactions are alone anyway. */
  readonly forUpdate: string
  /** Keeps the rows that are read from being deleted until the transaction ends. */
  readonly forKeyShare: string
  /** Selects `present`: 1 when Lango's version table exists. */
  readonly versionTableExists: string
  /** Acquired first by a migration; empty where the transaction is enough. */
  readonly migrationLock: string
  /** Keeps tickets for one key, given as the parameter, from being taken; empty where writers never run concurrently. */
  readonly ticketLock: string
  /** Shared by all writers of requests; empty where writers never run concurrently. */
  readonly requestLock: string
  /** Excludes writers of requests, so that no request refers to parts that are being deleted. */
  readonly pruneLock: string
  /** The texts or numbers of a JSON array, given as the parameter, as a table with the column `value`. */
  readonly eachValue: string
  /** The outputs of `tool_calls` as one text, for the readable view. */
  readonly joinedOutputs: string
}

/** Sets when a session was last written to. */
export function touched({ now }: Dialect): string {
  return `updated_at = ${now}, updated_hour = ${now} / ${HOUR_MS}`
}

/** Sessions are indexed by the hour of their last change. */
export const HOUR_MS = 3_600_000

export const DAY_MS = 24 * HOUR_MS

export function sql(text: string, ...parameters: SqlValue[]): Statement {
  return { text, parameters }
}

/** A write whose second run changes nothing that the first did not. */
export function repeatableSql(text: string, ...parameters: SqlValue[]): Statement {
  return { text, parameters, repeatable: true }
}

/**
 * The write of a session under a ticket, or the one that takes it. What sessions share comes last: they wait for it while
 * they hold everything else.
 */
export function joined(
  statement: Statement,
  key: SessionKey,
  under: { ticket: number; shared?: string | undefined } | 'taking',
): Statement {
  const session = JSON.stringify(namesOf(key))
  if (under === 'taking') return { ...statement, joining: { session, order: `1${session}` } }
  const { ticket, shared } = under
  const number = String(ticket).padStart(16, '0')
  return {
    ...statement,
    joining: { session, order: shared === undefined ? `0${number}` : `2${shared} ${number}` },
  }
}

/** The number in a column that is never null. */
export function numberIn(row: Row | undefined, column: string): number {
  return Number(row?.[column] ?? 0)
}

/** The text in a column that is never null. */
export function textIn(row: Row | undefined, column: string): string {
  return String(row?.[column] ?? '')
}

/** The condition that names one session, and what it takes, in its order. */
export const SESSION_KEY = 'app_name = ? AND user_id = ? AND session_id = ?'

export function namesOf({ appName, userId, sessionId }: SessionKey): [string, string, string] {
  return [appName, userId, sessionId]
}
