/**
 * What the SQL store requires of a driver. A `Task` is a generator that yields statements and receives their
 * rows: SQLite runs it synchronously, so that nothing can come between begin and commit, and PostgreSQL runs
 * the very same task over a connection. So each piece of SQL logic is written once.
 */

import type { SessionKey } from '../session/message.js'
import type { BackupOptions, BackupReceipt, EraseReceipt } from '../session/session-store.js'

export type SqlValue = string | number | null

export type Row = Readonly<Record<string, SqlValue>>

/** The session that a write has marked, for the statements after it. */
export interface Mark {
  /** A condition on `s`. */
  readonly text: string
  readonly parameters: readonly SqlValue[]
}

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
   * What the database was asked for: statements, BEGIN and COMMIT that were sent over a network, commits of writes, and
   * round trips over the network.
   */
  readonly work: { statements: number; control: number; commits: number; trips: number }
  /** Runs the task in one transaction. It may run again from the start if the database requires it. */
  write<T>(task: () => Task<T>): Promise<T>
  /** Runs the task over one consistent view of the data. */
  read<T>(task: () => Task<T>): Promise<T>
  /**
   * Runs statements in one transaction and one round trip, none of which needs the rows of another. Returns the rows of
   * each. `repeatable` and `joining` of the first one hold for all.
   */
  batch(statements: readonly Statement[]): Promise<readonly (readonly Row[])[]>
  /** Runs one statement by itself, in one round trip. */
  run(statement: Statement): Promise<readonly Row[]>
  /** As `run`, for a search that may take long: without blocking the event loop. */
  search(statement: Statement): Promise<readonly Row[]>
  /**
   * Empties the write-ahead log, so that no deleted text stays in it. `false` when a reader or writer needs the log
   * right now; never waits. `true` where the server owns the log.
   */
  emptyLog(): Promise<boolean>
  /**
   * Removes deleted bytes from the files of tables, as far as the database can; with `rewrite`, also where that takes long.
   * Returns where bytes may remain, apart from a log that `emptyLog` empties.
   */
  vacuum(tables: ReadonlySet<string>, rewrite: boolean): Promise<EraseReceipt['residue']>
  /** Copies the database to a new file. Fails where the server has tools for it. */
  backup(path: string, options: BackupOptions): Promise<BackupReceipt>
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

/**
 * The differences between the SQL of databases. Each database implements them in a class of its own; no other code asks
 * which database it has. Locks last until the transaction ends; SQLite needs none, because its write transactions run one
 * at a time.
 */
export interface Dialect {
  /** Milliseconds since 1970 by the database's clock. */
  readonly now: string
  /** Column type of a key that counts up and is never used again. */
  readonly identity: string
  readonly integer: string
  readonly real: string
  /** Column type of a text that is ordered by its bytes. */
  readonly bytewiseText: string
  /** Reserves space next to rows that change often. */
  readonly roomForUpdates: string
  /** Keeps a row of up to half a page in one piece: its long texts, stored apart, take as much space and more. */
  readonly wideRows: string
  /** Locks the rows that are read. */
  readonly forUpdate: string
  /** As `forUpdate`, for rows that are changed and not deleted. */
  readonly forNoKeyUpdate: string
  /** Keeps the rows that are read from being deleted. */
  readonly forKeyShare: string
  /** Selects `present`: 1 when Lango's version table exists. */
  readonly versionTableExists: string
  /** The texts or numbers of a JSON array, given as the parameter, as a table with the column `value`. */
  readonly eachValue: string
  /** The members of a JSON object, given as the parameter, as a table with the columns `key` and `value`. */
  readonly eachEntry: string
  /** The outputs of `tool_calls` as one text, for the readable view. */
  readonly joinedOutputs: string
  /** The objects of a JSON array, given as the parameter, as a table. Columns are given with their types. */
  eachRecord(columns: Readonly<Record<string, string>>): string
  /** Compares a column with the values of a JSON array, given as the parameter, by the column's index. */
  among(type: 'BIGINT' | 'TEXT'): string
  /** Deletes rows that meet a condition: its parameters come first, then the largest number of rows. */
  deleteSome(table: string, condition: string): string
  readonly words: WordIndex
  /** A migration excludes others. */
  lock(work: 'migration'): Task<void>
  /** Runs a statement that reads rows only to lock them. */
  lockRows(statement: Statement): Task<void>
  /** One counter of the store. `take` is executed before a statement that uses `next`. */
  readonly fences: {
    readonly create: readonly string[]
    readonly take: readonly Statement[]
    readonly next: string
  }
  /** Makes transactions that create a session, or a lease of a key without one, wait for each other. */
  keyLock(key: string): readonly Statement[]
}

/** The index of words over `lango_memory_documents`, which statements call `d`. */
export interface WordIndex {
  /** More columns of a document, each after a comma. */
  readonly columns: string
  /** Creates the rest of the index. */
  readonly schema: readonly string[]
  /** The terms of a document, and the join that gives them. */
  readonly terms: string
  readonly termsJoin: string
  /**
   * Finds the newest documents with a token and one of several terms. The parameters are those of the token, the terms as
   * `anyOf` gives them, those of the condition on the session `s`, the first and last time, and the number of documents.
   */
  find(token: string, condition: string): string
  anyOf(terms: readonly string[]): string
  /** Adds documents of a session. `scope`: the tokens that the documents of the session and of its user have. */
  add(pk: number, scope: string, documents: readonly IndexRow[]): Task<void>
  /** Removes words of documents, given as a JSON array of ids. The documents are deleted afterwards. */
  remove(ids: string): Task<void>
  /** As `remove`, for all documents of a session, in slices. */
  removeSession(database: SqlDatabase, pk: number): Promise<void>
}

/** A document with its terms, separated by spaces. */
export interface IndexRow {
  readonly seq: number
  readonly number: number
  readonly at: number
  readonly terms: string
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

export type SessionNames = readonly [appName: string, userId: string, sessionId: string]

export function namesOf({ appName, userId, sessionId }: SessionKey): SessionNames {
  return [appName, userId, sessionId]
}
