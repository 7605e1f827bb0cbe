/**
 * SQLite in memory. Several stores can be opened on one database, each with its own queue of writes and its own leases,
 * like processes on one file. They share one connection: a transaction runs synchronously from begin to commit, so no
 * other store can use the connection in between.
 */
import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite'
import type { BackupReceipt } from '../session/session-store.js'
import { type Connection, loadDriver, SqliteDatabase, setClock } from './sqlite-database.js'
import { cannotBackUp, storeClosed } from './store-errors.js'

/** Creates an empty database, which takes its time from `now`, in milliseconds since 1970. */
export async function createMemoryDatabase(now?: () => number): Promise<MemoryDatabase> {
  const { DatabaseSync } = await loadDriver()
  const connection = new DatabaseSync(':memory:')
  setClock(connection, now)
  return new MemoryDatabase(connection)
}

export class MemoryDatabase {
  readonly #connection: DatabaseSyncInstance
  readonly #prepared = new Map<string, StatementSyncInstance>()
  #openCount = 0

  constructor(connection: DatabaseSyncInstance) {
    this.#connection = connection
  }

  /** A database for one store. The content is gone when the last one is closed. */
  open(): SqliteDatabase {
    if (!this.#connection.isOpen) throw storeClosed()
    this.#openCount += 1
    return new SqliteInMemory(
      new SharedConnection(this.#connection, this.#prepared, () => {
        this.#openCount -= 1
        if (this.#openCount === 0) this.close()
      }),
    )
  }

  /** Closes the connection of all stores at once; writes that wait are lost. */
  close(): void {
    this.#prepared.clear()
    if (this.#connection.isOpen) this.#connection.close()
  }
}

class SqliteInMemory extends SqliteDatabase {
  constructor(connection: Connection) {
    super(connection, 'the database in memory')
  }

  override async backup(): Promise<BackupReceipt> {
    throw cannotBackUp('memory')
  }
}

/** The connection as one of several stores uses it. Statements are prepared once for all of them. */
class SharedConnection implements Connection {
  readonly #connection: DatabaseSyncInstance
  readonly #prepared: Map<string, StatementSyncInstance>
  readonly #onClose: () => void
  #isOpen = true

  constructor(
    connection: DatabaseSyncInstance,
    prepared: Map<string, StatementSyncInstance>,
    onClose: () => void,
  ) {
    this.#connection = connection
    this.#prepared = prepared
    this.#onClose = onClose
  }

  get isOpen(): boolean {
    return this.#isOpen && this.#connection.isOpen
  }

  get isTransaction(): boolean {
    return this.#connection.isTransaction
  }

  prepare(text: string): StatementSyncInstance {
    const statement = this.#prepared.get(text) ?? this.#connection.prepare(text)
    this.#prepared.set(text, statement)
    return statement
  }

  exec(text: string): void {
    this.#connection.exec(text)
  }

  close(): void {
    this.#isOpen = false
    this.#onClose()
  }
}
