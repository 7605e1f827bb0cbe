/** The log in SQL, for every dialect. */
import { randomUUID } from 'node:crypto'
import { AgentError } from '../../errors.js'
import type {
  Acceptance,
  Appended,
  Entry,
  GrantedLease,
  LeaseRequest,
  LogLease,
  LogStore,
  LogWrite,
  NewEntry,
  NewRun,
  Post,
  ReadQuery,
  RefusingLease,
  RunQuery,
  RunRow,
  Unread,
} from '../../session/log-store.js'
import type { SessionKey } from '../../session/message.js'
import { isGone, thisProcess } from '../lease-process.js'
import {
  namesOf,
  numberIn,
  type Row,
  SESSION_KEY,
  type SqlDatabase,
  type Statement,
  sql,
  textIn,
} from '../sql-database.js'
import { leaseLost, runHasEnded, sessionBusy, sessionNotFound } from '../store-errors.js'
import { keyText, rowToEntry } from './log-rows.js'
import { findStatement, readStatement, rowToRun, runsByIds, runsByQuery } from './read-log.js'
import { appendBatch, type PreparedWrite, prepareWrite, type WriteConditions } from './write-entries.js'
import {
  acquireBatch,
  leaseStatement,
  limitBatch,
  releaseBatch,
  renewKeyBatch,
  renewStatement,
} from './write-lease.js'
import {
  acceptBatch,
  begunStatement,
  endQueuedBatch,
  IS_QUEUED,
  lockSession,
  postBatch,
  queueBatch,
} from './write-runs.js'

/** The rows of sessions by their keys. A row number is never used again, so that an outdated one finds nothing. */
const MOST_KNOWN = 10_000

export class SqlLog implements LogStore {
  readonly #database: SqlDatabase
  readonly #pks = new Map<string, number>()
  readonly #writer = randomUUID().slice(0, 8)
  #writes = 0

  constructor(database: SqlDatabase) {
    this.#database = database
  }

  async accept(run: NewRun, lease: LeaseRequest): Promise<Acceptance> {
    try {
      if (run.when !== 'begin' && run.when !== 'begin-or-queue') return await this.#queue(run)
      const begun = await this.#beginNow(run, lease)
      if (begun) return begun
      if (await this.#isKnown(run.runId)) return 'known'
      const afterGone = await this.#beginForGone(run, lease)
      if (afterGone) return afterGone
      const unfinished = await this.#unfinished(run.key)
      if (unfinished.length > 0) return { unfinished }
      return run.when === 'begin' ? 'busy' : await this.#queue(run)
    } catch (error) {
      // A duplicate may also be the id of the message.
      if (this.#database.isDuplicate(error) && (await this.#isKnown(run.runId))) return 'known'
      throw error
    }
  }

  async acquire(key: SessionKey, lease: LeaseRequest): Promise<GrantedLease | RefusingLease> {
    const rows = await this.#database.batch(acquireBatch(this.#database.dialect, key, lease))
    const [session] = rows.at(-2) ?? []
    const [own] = rows.at(-1) ?? []
    if (session) {
      this.#know(key, numberIn(session, 'pk'))
      return { key, fence: numberIn(session, 'fence'), posts: numberIn(session, 'post_count') }
    }
    if (own) return { key, fence: numberIn(own, 'fence'), posts: 0 }
    return this.#refusing(key)
  }

  async renew(leases: readonly LogLease[]): Promise<ReadonlySet<number>> {
    const { dialect } = this.#database
    const known = leases.flatMap(lease => this.#pks.get(keyText(lease.key)) ?? [])
    const fences = leases.map(({ fence }) => fence)
    const rows = await this.#database.run(renewStatement(dialect, known, fences))
    const renewed = new Set(rows.map(row => numberIn(row, 'fence')))
    // Keys that had no session, or whose session was created again.
    for (const lease of leases.filter(({ fence }) => !renewed.has(fence))) {
      const found = await this.#database.batch(renewKeyBatch(dialect, lease))
      if (found.some(each => each.length > 0)) renewed.add(lease.fence)
    }
    return renewed
  }

  async release(lease: LogLease): Promise<void> {
    await this.#database.batch(releaseBatch(lease))
  }

  async append(write: LogWrite): Promise<Appended> {
    const appended = await this.#append(write, {})
    if ('unread' in appended) throw unexplained(write.key)
    return appended
  }

  async pause(write: LogWrite, posts: number): Promise<Appended | Unread> {
    return this.#append(write, { posts })
  }

  async begin(runId: string, write: LogWrite): Promise<Appended | undefined> {
    const { dialect } = this.#database
    const prepared = await this.#prepare(write)
    const { statements, session } = appendBatch(dialect, prepared, {
      lock: [lockSession(dialect, prepared.pk)],
      where: { text: IS_QUEUED, parameters: [runId] },
    })
    const rows = await this.#database.batch([...statements, begunStatement(runId, prepared.pk, prepared.id)])
    const [row] = rows[session] ?? []
    if (row) return appendedIn(prepared, row, rows.slice(session + 1))
    const found = await this.#rowOf(write.key)
    const stored = await this.#repeated(write, prepared, found)
    if (stored) return stored
    const [run] = await this.findRuns([runId])
    if (run?.state !== 'queued') return undefined
    throw await this.#refusal(write, found)
  }

  async endQueued(runId: string, entries: readonly NewEntry[]): Promise<boolean> {
    const batch = endQueuedBatch(this.#database.dialect, runId, this.#nextId(), entries)
    const rows = await this.#database.batch(batch)
    return (rows[1]?.length ?? 0) > 0
  }

  async post(post: Post): Promise<{ seq: number }> {
    const rows = await this.#database.batch(postBatch(this.#database.dialect, post, this.#nextId()))
    const [stored] = rows[1] ?? []
    if (stored) return { seq: numberIn(stored, 'entry_count') }
    const [run] = await this.findRuns([post.runId])
    const [known] = run && post.key !== undefined ? await this.find(run.key, [post.key]) : []
    if (known) return { seq: known.seq }
    throw run ? runHasEnded(post.runId) : noSuchRun(post.runId)
  }

  async read(key: SessionKey, query: ReadQuery = {}): Promise<Entry[]> {
    return (await this.#database.run(readStatement(this.#database.dialect, key, query))).map(rowToEntry)
  }

  async find(key: SessionKey, keys: readonly string[]): Promise<Entry[]> {
    return (await this.#database.run(findStatement(this.#database.dialect, key, keys))).map(rowToEntry)
  }

  async findRuns(runIds: readonly string[]): Promise<RunRow[]> {
    return (await this.#database.run(runsByIds(this.#database.dialect, runIds))).map(rowToRun)
  }

  async listRuns(query: RunQuery): Promise<RunRow[]> {
    const gone = query.isAbandoned ? await this.#goneHolders(query) : []
    return (await this.#database.run(runsByQuery(this.#database.dialect, query, gone))).map(rowToRun)
  }

  close(): Promise<void> {
    return this.#database.close()
  }

  async #beginNow(run: NewRun, lease: LeaseRequest): Promise<Acceptance | undefined> {
    const batch = acceptBatch(this.#database.dialect, run, this.#nextId(), lease)
    const [session] = (await this.#database.batch(batch)).at(-3) ?? []
    if (!session) return undefined
    this.#know(run.key, numberIn(session, 'pk'))
    const begun = { key: run.key, fence: numberIn(session, 'fence'), posts: numberIn(session, 'post_count') }
    return { begun, seq: numberIn(session, 'entry_count'), messageSeq: numberIn(session, 'message_count') }
  }

  /** The process that holds the lease may be gone. */
  async #beginForGone(run: NewRun, lease: LeaseRequest): Promise<Acceptance | undefined> {
    const { holder } = await this.#refusing(run.key)
    return isGone(holder) ? this.#beginNow(run, { ...lease, gone: holder }) : undefined
  }

  async #queue(run: NewRun): Promise<Acceptance> {
    const rows = await this.#database.batch(queueBatch(this.#database.dialect, run, this.#nextId()))
    if (typeof run.when === 'object') return { dueAt: run.when.dueAt }
    return { queued: numberIn(rows.at(-1)?.[0], 'place') }
  }

  /** The runs of a session that a process had begun and nobody executes. */
  async #unfinished(key: SessionKey): Promise<string[]> {
    const { appName } = key
    const states = ['running', 'handover'] as const
    const runs = await this.listRuns({ appName, key, states, isAbandoned: true, limit: 100 })
    return runs.map(({ runId }) => runId)
  }

  /** The holder of the lease that refused a request. */
  async #refusing(key: SessionKey): Promise<RefusingLease> {
    const [lease] = await this.#database.run(leaseStatement(this.#database.dialect, key))
    if (numberIn(lease, 'is_ahead') === 1) await this.#database.batch(limitBatch(this.#database.dialect, key))
    return { holder: textIn(lease, 'holder') }
  }

  async #append(write: LogWrite, conditions: WriteConditions): Promise<Appended | Unread> {
    const { key, under } = write
    const prepared = await this.#prepare(write)
    const { statements, session } = appendBatch(this.#database.dialect, prepared, conditions)
    let rows: readonly (readonly Row[])[] = []
    try {
      rows = await this.#database.batch(joined(statements, prepared))
    } catch (error) {
      // Sent twice because the first answer was lost: the second finds the numbers of its entries taken.
      if (!(under && this.#database.isDuplicate(error))) throw error
      const stored = await this.#repeated(write, prepared, await this.#rowOf(key))
      if (!stored) throw error
      return stored
    }
    const [row] = rows[session] ?? []
    if (row) return appendedIn(prepared, row, rows.slice(session + 1))
    const found = await this.#rowOf(key)
    if (found && numberIn(found, 'pk') !== prepared.pk) {
      // The session was deleted and created again.
      this.#know(key, numberIn(found, 'pk'))
      return this.#append(write, conditions)
    }
    const stored = await this.#repeated(write, prepared, found)
    if (stored) return stored
    const received = numberIn(found, 'post_count')
    const isUnread = conditions.posts !== undefined && received !== conditions.posts
    if (isUnread && isNext(under, found)) return { unread: received }
    throw await this.#refusal(write, found)
  }

  async #prepare(write: LogWrite): Promise<PreparedWrite> {
    const pk = await this.#pkOf(write.key)
    for (const { nested } of write.entries) if (nested) await this.#pkOf(nested)
    return prepareWrite(pk, this.#nextId(), write)
  }

  /** Why a write was not stored. `row`: the session as it is by now. */
  async #refusal({ key, under }: LogWrite, row: Row | undefined): Promise<AgentError> {
    if (!row) {
      this.#pks.delete(keyText(key))
      return sessionNotFound(key)
    }
    if (!under) {
      await this.#refusing(key)
      return sessionBusy(key)
    }
    if (numberIn(row, 'fence') !== under.fence) return leaseLost(key, under.fence)
    return isNext(under, row)
      ? unexplained(key)
      : anotherWrite(key, under.number, numberIn(row, 'write_number'))
  }

  /** The answer to a write that is stored already. */
  async #repeated(
    { key, entries }: LogWrite,
    { under, rows }: PreparedWrite,
    row: Row | undefined,
  ): Promise<Appended | undefined> {
    if (!under || numberIn(row, 'write_number') !== under.number) return undefined
    const digest = textIn(row, 'write_digest')
    if (digest !== under.digest) {
      if (!digest.startsWith(`${under.fence}:`)) return undefined
      throw anotherWrite(key, under.number, under.number)
    }
    const seq = numberIn(row, 'write_entry')
    const stored = await this.read(key, { afterSeq: seq - 1, limit: rows.length })
    const messageSeqs = stored.flatMap(({ messageSeq }) => (messageSeq === undefined ? [] : [messageSeq]))
    return { seq, messageSeqs: entries.length === 0 ? [] : messageSeqs, posts: numberIn(row, 'post_count') }
  }

  async #rowOf(key: SessionKey): Promise<Row | undefined> {
    const [row] = await this.#database.run(
      sql(
        `SELECT pk, fence, write_number, write_digest, write_entry, post_count FROM lango_sessions WHERE ${SESSION_KEY}`,
        ...namesOf(key),
      ),
    )
    return row
  }

  async #pkOf(key: SessionKey): Promise<number> {
    const known = this.#pks.get(keyText(key))
    if (known !== undefined) return known
    const row = await this.#rowOf(key)
    if (!row) throw sessionNotFound(key)
    const pk = numberIn(row, 'pk')
    this.#know(key, pk)
    return pk
  }

  /** True for any run with this id, also a deleted one. */
  async #isKnown(runId: string): Promise<boolean> {
    const rows = await this.#database.run(sql('SELECT 1 AS known FROM lango_runs WHERE run_id = ?', runId))
    return rows.length > 0
  }

  #know(key: SessionKey, pk: number): void {
    const [oldest] = this.#pks.keys()
    if (this.#pks.size >= MOST_KNOWN && oldest !== undefined) this.#pks.delete(oldest)
    this.#pks.set(keyText(key), pk)
  }

  #nextId(): string {
    this.#writes += 1
    return `${this.#writer}.${this.#writes}`
  }

  /** Processes of this machine that hold leases of sessions with unfinished runs, and no longer exist. */
  async #goneHolders({ appName }: RunQuery): Promise<string[]> {
    const { holder, machine } = thisProcess()
    const rows = await this.#database.run(
      sql(
        `SELECT DISTINCT s.holder FROM lango_runs r JOIN lango_sessions s ON s.pk = r.session_pk
          WHERE r.app_name = ? AND r.state <> 'finished' AND s.holder <> ? AND substr(s.holder, 1, ?) = ?`,
        ...[appName, holder, machine.length, machine],
      ),
    )
    return rows.map(row => textIn(row, 'holder')).filter(isGone)
  }
}

/** Writes of several sessions may share a commit, unless they change rows that sessions share. */
function joined(statements: readonly Statement[], { pk, changes }: PreparedWrite): readonly Statement[] {
  const [first, ...others] = statements
  const isShared = changes.some(({ scope }) => scope !== 'session')
  if (!first || isShared) return statements
  const joining = { session: String(pk), order: String(pk).padStart(16, '0') }
  return [{ ...first, joining }, ...others]
}

/** `further`: the rows of the statements after that of the session; first those of nested sessions. */
function appendedIn(
  { rows, sessions }: PreparedWrite,
  session: Row,
  further: readonly (readonly Row[])[],
): Appended {
  const counts = [session, ...sessions.slice(1).map((_, index) => further[index]?.[0])]
  const left = new Map(sessions.map(({ key, count }) => [key && keyText(key), count]))
  const lasts = new Map(
    sessions.map(({ key }, index) => [key && keyText(key), numberIn(counts[index], 'message_count')]),
  )
  const messageSeqs = rows.flatMap(({ entry, message }) => {
    const name = entry.nested && keyText(entry.nested)
    const after = (left.get(name) ?? 0) - 1
    if (!message) return []
    left.set(name, after)
    return [(lasts.get(name) ?? 0) - after]
  })
  const seq = numberIn(session, 'entry_count') - rows.length + 1
  return { seq, messageSeqs, posts: numberIn(session, 'post_count') }
}

/** True if this is the write that the lease expects, and no other one. */
function isNext(under: LogWrite['under'], row: Row | undefined): boolean {
  if (!under || numberIn(row, 'fence') !== under.fence) return false
  return numberIn(row, 'write_number') === under.number - 1
}

function noSuchRun(runId: string): AgentError {
  return new AgentError('run-not-found', `There is no run "${runId}", or its records were pruned.`)
}

/** Two writers use one lease, or one has lost count. */
function anotherWrite({ sessionId }: SessionKey, number: number, last: number): AgentError {
  return new AgentError(
    'internal',
    `Write ${number} of session "${sessionId}" was refused: write ${last} under the same lease is stored and holds other entries. This is a defect in Lango: please report it.`,
    { details: { number, last } },
  )
}

function unexplained({ sessionId }: SessionKey): AgentError {
  return new AgentError(
    'store-unavailable',
    `A write to session "${sessionId}" was refused, and the reason is gone: try again.`,
    { retryable: true },
  )
}
