import { randomBytes } from 'node:crypto'
import { AgentError } from '../errors.js'
import type { Message, Session, SessionKey, State, StoredMessage } from '../session/message.js'
import type { AcceptedRun, OpenedRun, RunBegin, RunOpening } from '../session/run-store.js'
import type {
  AppendOptions,
  BackupOptions,
  BackupReceipt,
  CreateOptions,
  EraseOptions,
  EraseReceipt,
  ExpireOptions,
  ExpireReceipt,
  Lease,
  LeaseOptions,
  ListQuery,
  LoadOptions,
  ReadOptions,
  SessionPage,
  SessionStore,
  SessionSummary,
  UserKey,
} from '../session/session-store.js'
import { LeaseHolder } from './hold-lease.js'
import { migrate } from './migrations.js'
import { type MessageRow, messageToRow } from './rows.js'
import { SqlSchedules } from './schedules.js'
import { type Append, type AppendSql, appendSql } from './sql-append.js'
import { SqlArtifacts } from './sql-artifacts.js'
import { type SqlDatabase, sql, type Task, textIn } from './sql-database.js'
import { loadTask } from './sql-load.js'
import { SqlMemory } from './sql-memory.js'
import type { RunWriter, StepParts } from './sql-run-steps.js'
import { SqlCalibration, SqlRuns } from './sql-runs.js'
import {
  createTask,
  describeStatement,
  listStatement,
  readRows,
  readStatement,
  renameStatement,
  toPage,
} from './sql-sessions.js'
import { SqlSpending } from './sql-spending.js'
import { SqlTickets } from './sql-tickets.js'
import { SqlVariants } from './sql-variants.js'
import { splitDelta } from './state-scopes.js'
import { sessionNotFound } from './store-errors.js'

/** Migrates the database and opens a store of the given class over it. Closes the database when that fails. */
export async function openSqlStore(database: SqlDatabase, Store = SqlStore): Promise<SessionStore> {
  try {
    await migrate(database)
  } catch (error) {
    await database.close()
    throw error
  }
  return new Store(database)
}

/** Stored and deleted to find out whether the database can grow. */
const PROBE: SessionKey = { appName: 'lango:probe', userId: 'lango:probe', sessionId: 'probe' }
const PROBE_BYTES = 64 * 1024

const READ_SECRET = sql("SELECT value FROM lango_app_state WHERE app_name = 'lango:store' AND key = 'secret'")
const MAKE_SECRET = `INSERT INTO lango_app_state (app_name, key, value) VALUES ('lango:store', 'secret', ?)
  ON CONFLICT (app_name, key) DO NOTHING`

export class SqlStore implements SessionStore {
  readonly runs: SqlRuns
  readonly calibration: SqlCalibration
  readonly memory: SqlMemory
  readonly artifacts: SqlArtifacts
  readonly spending: SqlSpending
  readonly schedules: SqlSchedules
  readonly variants: SqlVariants
  readonly #database: SqlDatabase
  readonly #append: AppendSql
  readonly #tickets: SqlTickets
  readonly #leases: LeaseHolder
  /** A probe for space on the disk that has not ended. */
  #probe: Promise<void> | undefined
  #writer: Promise<RunWriter> | undefined
  #closing: Promise<void> | undefined

  constructor(database: SqlDatabase) {
    this.#database = database
    this.#append = appendSql(database.dialect)
    this.#tickets = new SqlTickets(database)
    this.#leases = new LeaseHolder(this.#tickets)
    this.runs = new SqlRuns(database, this.#tickets, {
      saveStep: async step => (await this.#runWriter()).save(step),
      resumeRun: async resume => (await this.#runWriter()).resume(resume),
      releaseDue: async query => (await this.#runWriter()).release(query),
    })
    this.calibration = new SqlCalibration(database)
    this.memory = new SqlMemory(database)
    this.artifacts = new SqlArtifacts(database)
    this.spending = new SqlSpending(database)
    this.schedules = new SqlSchedules(database)
    this.variants = new SqlVariants(database)
  }

  async createSession(key: SessionKey, state: State = {}, options: CreateOptions = {}): Promise<Session> {
    const changes = splitDelta('state', state)
    return this.#database.write(() => createTask(this.#database.dialect, key, changes, options))
  }

  async loadSession(key: SessionKey, options: LoadOptions = {}): Promise<Session | undefined> {
    return this.#database.read(() => loadTask(key, options))
  }

  async readMessages(key: SessionKey, options: ReadOptions = {}): Promise<StoredMessage[]> {
    return readRows(await this.#database.run(readStatement(key, options)))
  }

  async appendMessage(
    key: SessionKey,
    message: Message,
    options: AppendOptions = {},
  ): Promise<{ seq: number }> {
    const { stateDelta, fence } = options
    const append = { key, row: messageToRow(message), changes: splitDelta('stateDelta', stateDelta), fence }
    return { seq: await this.append(append) }
  }

  protected append(append: Append): Promise<number> {
    return this.#write(append.key, () => this.#append.appendTask(append))
  }

  async appendMessages(
    key: SessionKey,
    messages: readonly Message[],
    options: AppendOptions = {},
  ): Promise<{ seq: number }[]> {
    const { stateDelta, fence } = options
    const appended: { seq: number }[] = []
    for (let start = 0; start < messages.length; start = appended.length) {
      const rows = firstRows(messages, start)
      const isLast = start + rows.length === messages.length
      const changes = splitDelta('stateDelta', isLast ? stateDelta : undefined)
      const append = { key, rows, changes, fence }
      const seqs = await this.#write(key, () => this.#append.appendAllTask(append))
      appended.push(...seqs.map(seq => ({ seq })))
      if (!isLast) await new Promise(resume => setImmediate(resume))
    }
    return appended
  }

  async updateState(key: SessionKey, delta: State, options: { fence?: number } = {}): Promise<void> {
    const changes = splitDelta('delta', delta)
    await this.#write(key, () => this.#append.updateStateTask({ key, changes, fence: options.fence }))
  }

  async forkSession(
    key: SessionKey,
    newSessionId: string,
    options: { throughSeq?: number } = {},
  ): Promise<Session> {
    const newKey = { ...key, sessionId: newSessionId }
    const { forkSession } = await import('./sql-fork.js')
    return forkSession(this.#database, { key, newKey, throughSeq: options.throughSeq })
  }

  async describeSession(key: SessionKey): Promise<SessionSummary | undefined> {
    const rows = await this.#database.run(describeStatement(key))
    return toPage(rows, key.appName, 1).sessions[0]
  }

  async renameSession(key: SessionKey, title: string): Promise<void> {
    const [session] = await this.#database.run(renameStatement(key, title))
    if (session === undefined) throw sessionNotFound(key)
  }

  async listSessions(query: ListQuery): Promise<SessionPage> {
    const limit = Math.min(query.limit ?? 50, 1000)
    return toPage(await this.#database.run(listStatement({ ...query, limit })), query.appName, limit)
  }

  async listApps(): Promise<string[]> {
    const rows = await this.#database.run(
      sql('SELECT DISTINCT app_name FROM lango_sessions WHERE nested_in IS NULL'),
    )
    return rows.map(row => textIn(row, 'app_name')).sort()
  }

  async deleteSession(key: SessionKey): Promise<boolean> {
    const { deleteSession } = await import('./sql-erase.js')
    return deleteSession(this.#database, key)
  }

  async erase(owner: UserKey, options: EraseOptions = {}): Promise<EraseReceipt> {
    const { eraseUser } = await import('./sql-erase.js')
    return eraseUser(this.#database, owner, options)
  }

  async expire(options: ExpireOptions): Promise<ExpireReceipt> {
    const { expireOld } = await import('./sql-erase.js')
    return expireOld(this.#database, this.runs, options)
  }

  async backup(path: string, options: BackupOptions = {}): Promise<BackupReceipt> {
    return this.#database.backup(path, options)
  }

  async acquireLease(key: SessionKey, options: LeaseOptions = {}): Promise<Lease> {
    return this.#leases.acquire(key, options)
  }

  /**
   * Also loads what is loaded on use: a server that is ready loads nothing more. After a write that failed because the disk
   * was full, it fails until a session of some size can be stored.
   */
  async secret(): Promise<string> {
    const [found] = await this.#database.run(READ_SECRET)
    if (found) return textIn(found, 'value')
    // Of several processes that open a new store the first one decides.
    await this.#database.run(sql(MAKE_SECRET, randomBytes(32).toString('hex')))
    const [made] = await this.#database.run(READ_SECRET)
    return made === undefined ? '' : textIn(made, 'value')
  }

  async check(): Promise<void> {
    await Promise.all([this.#runWriter(), import('./sql-erase.js'), import('./sql-fork.js')])
    await this.#database.check()
    if (!this.#database.isFull) return
    // Checks at the same time share one probe: none of them passes before it has succeeded.
    this.#probe ??= this.#probeSpace().finally(() => {
      this.#probe = undefined
    })
    await this.#probe
  }

  async #probeSpace(): Promise<void> {
    await this.deleteSession(PROBE)
    try {
      // Random: a database may compress what it stores.
      await this.createSession(PROBE, { probe: randomBytes(PROBE_BYTES).toString('hex') })
    } catch (error) {
      // Another process has stored its probe meanwhile, so there is space.
      if (!(error instanceof AgentError && error.code === 'session-exists')) throw error
    }
    await this.deleteSession(PROBE)
    this.#database.isFull = false
  }

  #runWriter(): Promise<RunWriter> {
    this.#writer ??= this.newWriter({
      dialect: this.#database.dialect,
      append: this.#append,
      takeTicket: (key, ttlMs) => this.#tickets.takeTask(key, ttlMs),
      isFirst: (key, ticket) => this.#tickets.firstTask(key, ticket),
      isFree: (key, ticket) => this.#tickets.freeTask(key, ticket),
      giveBack: (key, ticket) => this.#tickets.giveBackStatement(key, ticket),
      storeEvents: (key, runId, rows) => this.runs.appendTask(key, runId, rows),
    })
    return this.#writer
  }

  /** Loaded on use, as erasing and copying are: commands that only list sessions start faster without it. */
  protected async newWriter(parts: StepParts): Promise<RunWriter> {
    const { RunWriter: Writer } = await import('./sql-run-steps.js')
    return new Writer(this.#database, parts)
  }

  async openRun(opening: RunOpening, options: LeaseOptions = {}): Promise<OpenedRun> {
    const writer = await this.#runWriter()
    return this.#leases.openRun(opening.key, options, writer.opening(opening))
  }

  async queueRun(opening: RunOpening): Promise<AcceptedRun> {
    return (await this.#runWriter()).queue(opening)
  }

  async beginRun(begin: RunBegin): Promise<{ seq: number } | undefined> {
    return (await this.#runWriter()).begin(begin)
  }

  close(): Promise<void> {
    this.#closing ??= this.#leases.close().then(() => this.#database.close())
    return this.#closing
  }

  /** A write that a lease may forbid. One that was stored before the clock was set back must not forbid it for long. */
  async #write<T>(key: SessionKey, task: () => Task<T>): Promise<T> {
    try {
      return await this.#database.write(task)
    } catch (error) {
      if (error instanceof AgentError && error.code === 'session-busy') await this.#tickets.limit(key)
      throw error
    }
  }
}

/** The rows of one transaction: few enough that other writers and the event loop wait for milliseconds only. */
function firstRows(messages: readonly Message[], start: number): MessageRow[] {
  const rows: MessageRow[] = []
  for (let length = 0; rows.length < MOST_ROWS && length < MOST_LENGTH; ) {
    const message = messages[start + rows.length]
    if (message === undefined) break
    const row = messageToRow(message)
    length += row.values.reduce<number>(
      (all, value) => all + (typeof value === 'string' ? value.length : 8),
      0,
    )
    rows.push(row)
  }
  return rows
}

const MOST_ROWS = 128
const MOST_LENGTH = 500_000
