/** A store in a SQL database: the contract of sessions over the log. */
import { randomBytes } from 'node:crypto'
import { defined } from '../base/defined.js'
import { AgentError, invariant } from '../errors.js'
import type { LeaseRequest, NewRun } from '../session/log-store.js'
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
import { LeaseHolder, type OpeningAttempt } from './hold-lease.js'
import { SqlLog } from './log/sql-log.js'
import { migrate } from './migrations.js'
import { SqlSchedules } from './schedules.js'
import { SqlArtifacts } from './sql-artifacts.js'
import { type SqlDatabase, sql, textIn } from './sql-database.js'
import { loadTask } from './sql-load.js'
import { SqlMemory } from './sql-memory.js'
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
  readonly #log: SqlLog
  readonly #leases: LeaseHolder
  /** A probe for space on the disk that has not ended. */
  #probe: Promise<void> | undefined
  #closing: Promise<void> | undefined

  constructor(database: SqlDatabase) {
    this.#database = database
    this.#log = new SqlLog(database)
    this.#leases = new LeaseHolder(this.#log)
    this.runs = new SqlRuns(database, this.#log)
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
    const [seq = 0] = await this.#append(key, [message], options)
    return { seq }
  }

  async appendMessages(
    key: SessionKey,
    messages: readonly Message[],
    options: AppendOptions = {},
  ): Promise<{ seq: number }[]> {
    const { stateDelta, fence } = options
    const appended: { seq: number }[] = []
    for (let start = 0; start < messages.length; start = appended.length) {
      const some = firstMessages(messages, start)
      const isLast = start + some.length === messages.length
      const seqs = await this.#append(
        key,
        some,
        defined({ fence, stateDelta: isLast ? stateDelta : undefined }),
      )
      appended.push(...seqs.map(seq => ({ seq })))
      if (!isLast) await new Promise(resume => setImmediate(resume))
    }
    return appended
  }

  async #append(
    key: SessionKey,
    messages: readonly Message[],
    { fence, stateDelta }: AppendOptions,
  ): Promise<readonly number[]> {
    const entries = messages.map(message => ({ kind: 'message', message }) as const)
    const under = fence === undefined ? undefined : { fence }
    const write = { key, entries, ...defined({ under, also: stateDelta && { state: stateDelta } }) }
    return (await this.#log.append(write)).messageSeqs
  }

  async updateState(key: SessionKey, delta: State, { fence }: { fence?: number } = {}): Promise<void> {
    const under = fence === undefined ? undefined : { fence }
    await this.#log.append({ key, entries: [], also: { state: delta }, ...defined({ under }) })
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

  async secret(): Promise<string> {
    const [found] = await this.#database.run(READ_SECRET)
    if (found) return textIn(found, 'value')
    // Of several processes that open a new store the first one decides.
    await this.#database.run(sql(MAKE_SECRET, randomBytes(32).toString('hex')))
    const [made] = await this.#database.run(READ_SECRET)
    return made === undefined ? '' : textIn(made, 'value')
  }

  /**
   * Also loads what is loaded on use: a server that is ready loads nothing more. After a write that failed because the disk
   * was full, it fails until a session of some size can be stored.
   */
  async check(): Promise<void> {
    await Promise.all([import('./sql-erase.js'), import('./sql-fork.js'), import('./sql-prune.js')])
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

  async openRun(opening: RunOpening, options: LeaseOptions = {}): Promise<OpenedRun> {
    return this.#leases.openRun(opening.key, options, lease => this.#open(opening, lease))
  }

  async #open(opening: RunOpening, lease: LeaseRequest): Promise<OpeningAttempt> {
    const when = opening.orQueue ? 'begin-or-queue' : 'begin'
    const accepted = await this.#log.accept(newRun(opening, when), lease)
    if (accepted === 'known') return { answer: { known: true } }
    if (accepted === 'busy') return { busy: undefined }
    if ('begun' in accepted) {
      this.runs.noteBegun(opening.key, opening.runId, accepted.partCount)
      const { begun: lease, messageSeq: seq, previousRunId } = accepted
      return { lease, seq, ...defined({ previousRunId }) }
    }
    invariant(!('dueAt' in accepted), 'a run that is opened is due')
    return { answer: accepted }
  }

  async queueRun(opening: RunOpening): Promise<AcceptedRun> {
    const { dueAt } = opening
    const accepted = await this.#log.accept(
      newRun(opening, dueAt === undefined ? 'queue' : { dueAt }),
      NO_LEASE,
    )
    if (accepted === 'known') return { known: true }
    invariant(
      accepted !== 'busy' && ('queued' in accepted || 'dueAt' in accepted),
      'a queued run does not begin',
    )
    return accepted
  }

  async beginRun(begin: RunBegin): Promise<{ seq: number } | undefined> {
    return this.runs.begin(begin)
  }

  close(): Promise<void> {
    this.#closing ??= this.#leases.close().then(() => this.#log.close())
    return this.#closing
  }
}

/** A run that is queued takes no lease. */
const NO_LEASE: LeaseRequest = { ttlMs: 0, holder: '' }

function newRun(
  { key, runId, title, message, events, input, orQueue }: RunOpening,
  when: NewRun['when'],
): NewRun {
  const accepted = orQueue?.events ?? (when === 'begin' ? [] : events)
  return { key, runId, message, when, events: { begun: events, accepted }, ...defined({ title, input }) }
}

/** The messages of one transaction: few enough that other writers and the event loop wait for milliseconds only. */
function firstMessages(messages: readonly Message[], start: number): readonly Message[] {
  const ids = new Set<string>()
  let length = 0
  let count = 0
  for (const { id, content, toolCalls, extra } of messages.slice(start, start + MOST_ROWS)) {
    // A message that replaces one before it needs a write of its own.
    if (count > 0 && (length > MOST_LENGTH || (id !== undefined && ids.has(id)))) break
    if (id !== undefined) ids.add(id)
    length += content.length + lengthOf(toolCalls) + lengthOf(extra)
    count += 1
  }
  return messages.slice(start, start + count)
}

function lengthOf(value: unknown): number {
  return value === undefined ? 0 : JSON.stringify(value).length
}

const MOST_ROWS = 128
const MOST_LENGTH = 500_000
