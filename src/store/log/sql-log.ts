import { within } from '../../base/pause.js'
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
import { numberIn, type Row, type SqlDatabase, sql, textIn } from '../sql-database.js'
import { noSuchRun, runHasEnded, storeIsBusy } from '../store-errors.js'
import { rowToEntry } from './log-rows.js'
import { LogWriter, MOST_ATTEMPTS, type OutdatedParts } from './log-writer.js'
import { type PreparedWrite, prepareWrite } from './prepared-write.js'
import { findStatement, readStatement, rowToRun, runsByIds, runsByQuery } from './read-log.js'
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
  isNext,
  lockSession,
  postBatch,
  queueBatch,
} from './write-runs.js'

/** A database that does not answer must not block closing. */
const CLOSE_TIMEOUT_MS = 2000

export class SqlLog implements LogStore {
  readonly #database: SqlDatabase
  readonly #writer: LogWriter

  constructor(database: SqlDatabase) {
    this.#database = database
    this.#writer = new LogWriter(database)
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
      if (this.#database.isDuplicate(error) && (await this.#isKnown(run.runId))) return 'known'
      throw error
    }
  }

  async acquire(key: SessionKey, lease: LeaseRequest): Promise<GrantedLease | RefusingLease> {
    // Waiting processes ask again and again: most are refused, without a write.
    const refusing = await this.#refusing(key)
    if (refusing.isValid && refusing.holder !== lease.gone) return { holder: refusing.holder }
    const rows = await this.#database.batch(acquireBatch(this.#database.dialect, key, lease))
    const [session] = rows.at(-2) ?? []
    const [own] = rows.at(-1) ?? []
    if (session) {
      const fence = numberIn(session, 'fence')
      this.#writer.granted(key, numberIn(session, 'pk'), fence)
      return { key, fence, posts: numberIn(session, 'post_count') }
    }
    if (own) return { key, fence: numberIn(own, 'fence'), posts: 0 }
    return { holder: (await this.#refusing(key)).holder }
  }

  async renew(leases: readonly LogLease[]): Promise<ReadonlySet<number>> {
    const { dialect } = this.#database
    const known = leases.flatMap(lease => this.#writer.knownPk(lease.key) ?? [])
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
    this.#writer.released(lease.fence)
    await this.#database.batch(releaseBatch(this.#database.dialect, lease))
  }

  async append(write: LogWrite): Promise<Appended> {
    const appended = await this.tryAppend(write)
    if ('partCount' in appended) throw storeIsBusy(write.key)
    return appended
  }

  /** As `append`; tells apart that the session has other parts of requests. */
  async tryAppend(write: LogWrite): Promise<Appended | OutdatedParts> {
    const appended = await this.#writer.append(write, {})
    if ('unread' in appended) throw storeIsBusy(write.key)
    return appended
  }

  async pause(write: LogWrite, posts: number): Promise<Appended | Unread> {
    const paused = await this.#writer.append(write, { posts })
    if ('partCount' in paused) throw storeIsBusy(write.key)
    return paused
  }

  async begin(
    runId: string,
    write: LogWrite,
    { alone = false }: { alone?: boolean } = {},
  ): Promise<Appended | undefined> {
    const pk = await this.#writer.pkOf(write.key)
    const begun = await this.#writer.append(write, {
      lock: [lockSession(this.#database.dialect, pk)],
      where: { text: isNext(alone), parameters: [runId] },
      after: prepared => [begunStatement(runId, prepared)],
      onRefused: () => ({ unread: 0 }),
    })
    return 'seq' in begun ? begun : undefined
  }

  async endQueued(runId: string, entries: readonly NewEntry[]): Promise<boolean> {
    const [run] = await this.findRuns([runId])
    if (!run) return false
    const ended = { runId, sessionId: run.key.sessionId }
    const batch = endQueuedBatch(this.#database.dialect, ended, this.#writer.nextId(), entries)
    const rows = await this.#database.batch(batch)
    return (rows[1]?.length ?? 0) > 0
  }

  async post(post: Post): Promise<{ seq: number }> {
    const rows = await this.#database.batch(postBatch(this.#database.dialect, post, this.#writer.nextId()))
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
    const gone = query.isAbandoned ? await this.goneHolders() : []
    return (await this.#database.run(runsByQuery(this.#database.dialect, query, gone))).map(rowToRun)
  }

  /** Writes that have begun are stored before. */
  async close(): Promise<void> {
    await within(CLOSE_TIMEOUT_MS, this.#writer.settled())
    await this.#database.close()
  }

  async #beginNow(run: NewRun, lease: LeaseRequest): Promise<Acceptance | undefined> {
    const { key, runId, message, input, events } = run
    const entry = {
      kind: 'begun',
      runId,
      message,
      ...(input ? { data: { input } } : {}),
      events: events?.begun ?? [],
    } as const
    let write = prepareWrite(0, this.#writer.nextId(), { key, runId, entries: [entry], under: { fence: 0 } })
    let isKnown = this.#writer.knownPk(key) !== undefined
    for (let attempt = 1; ; attempt += 1) {
      const { statements, session } = acceptBatch(this.#database.dialect, run, write, lease, { isKnown })
      try {
        const [row] = (await this.#database.batch(statements))[session] ?? []
        if (row || !isKnown) return row && this.#begun(run, write, row)
        // It is busy, or was deleted.
        isKnown = false
      } catch (error) {
        const replaced = this.#database.isDuplicate(error) ? await this.#writer.replacedBy(key, write) : []
        if (replaced.length === 0 || attempt >= MOST_ATTEMPTS) throw error
        write = { ...write, id: this.#writer.nextId(), replaced }
      }
    }
  }

  #begun({ key }: NewRun, { replaced }: PreparedWrite, row: Row): Acceptance {
    const fence = numberIn(row, 'fence')
    this.#writer.granted(key, numberIn(row, 'pk'), fence)
    const messageSeq = replaced[0]?.seq ?? numberIn(row, 'message_count')
    return {
      begun: { key, fence, posts: numberIn(row, 'post_count') },
      seq: numberIn(row, 'entry_count'),
      messageSeq,
      partCount: numberIn(row, 'part_count'),
      ...(row.previous_run === null ? {} : { previousRunId: textIn(row, 'previous_run') }),
    }
  }

  /** The process that holds the lease may be gone. */
  async #beginForGone(run: NewRun, lease: LeaseRequest): Promise<Acceptance | undefined> {
    const { holder } = await this.#refusing(run.key)
    return isGone(holder) ? this.#beginNow(run, { ...lease, gone: holder }) : undefined
  }

  async #queue(run: NewRun): Promise<Acceptance> {
    const rows = await this.#database.batch(queueBatch(this.#database.dialect, run, this.#writer.nextId()))
    if (typeof run.when === 'object') return { dueAt: run.when.dueAt }
    return { queued: numberIn(rows.at(-1)?.[0], 'queue_place') }
  }

  /** The runs of a session that a process had begun and that no process executes. */
  async #unfinished(key: SessionKey): Promise<string[]> {
    const { appName } = key
    const states = ['running', 'handover'] as const
    const runs = await this.listRuns({ appName, key, states, isAbandoned: true, limit: 100 })
    return runs.map(({ runId }) => runId)
  }

  /** The lease that refuses a request. One that lasts for too long, because the clock was set back, is limited. */
  async #refusing(key: SessionKey): Promise<RefusingLease & { isValid: boolean }> {
    const [lease] = await this.#database.run(leaseStatement(this.#database.dialect, key))
    if (numberIn(lease, 'is_ahead') === 1) await this.#database.batch(limitBatch(this.#database.dialect, key))
    const isValid = numberIn(lease, 'lease_until') > numberIn(lease, 'now')
    return { holder: textIn(lease, 'holder'), isValid }
  }

  /** True for any run with this id, also a deleted one. */
  async #isKnown(runId: string): Promise<boolean> {
    const rows = await this.#database.run(sql('SELECT 1 AS known FROM lango_runs WHERE run_id = ?', runId))
    return rows.length > 0
  }

  /** Processes of this machine that hold leases of sessions with unfinished runs, and no longer exist. */
  async goneHolders(): Promise<string[]> {
    const { holder, machine } = thisProcess()
    const rows = await this.#database.run(
      sql(
        `SELECT DISTINCT s.holder FROM lango_runs r JOIN lango_sessions s ON s.pk = r.session_pk
          WHERE r.state <> 'finished' AND s.holder <> ? AND substr(s.holder, 1, ?) = ?`,
        ...[holder, machine.length, machine],
      ),
    )
    return rows.map(row => textIn(row, 'holder')).filter(isGone)
  }
}
