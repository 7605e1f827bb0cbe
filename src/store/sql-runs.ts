/** Runs over the log: their rows, and what is derived from their entries. */

import { randomUUID } from 'node:crypto'
import { defined } from '../base/defined.js'
import type { Appended, LogWrite, NewEntry } from '../session/log-store.js'
import type { SessionKey } from '../session/message.js'
import { type RunStatus, transition } from '../session/run-status.js'
import type {
  AppRunsQuery,
  DueQuery,
  PendingSignal,
  PrunedCounts,
  PruneOptions,
  QueuedRun,
  ReleasedRuns,
  ResumableRun,
  RunBegin,
  RunEventRecord,
  RunRequest,
  RunResume,
  RunSignal,
  RunStep,
  RunStore,
  RunSummary,
  SavedStep,
  ToolCallRecord,
  UnfinishedQuery,
} from '../session/run-store.js'
import type { CalibrationStore } from '../session/session-store.js'
import { appendEventsTask, countRequestTask } from './log/late-events.js'
import { inputIn } from './log/read-log.js'
import type { SqlLog } from './log/sql-log.js'
import { type PackedRequests, RequestParts, readRequests } from './request-parts.js'
import { eventsStatement, readEventRows, resumableFrom, resumableStatements } from './run-entries.js'
import {
  appRunsStatement,
  dueStatement,
  findRunsStatement,
  listRunsStatement,
  queuedStatement,
  releaseTask,
  rowToQueued,
  rowToSummary,
  unfinishedStatement,
} from './run-rows.js'
import { callsOfRun, rowToCall, unknownCalls } from './sql-calls.js'
import { numberIn, type Row, type SqlDatabase, sql, textIn } from './sql-database.js'
import { alsoOf, changesCallsAlone, runChange, stepEntries, type WorkingRun } from './step-entries.js'
import { leaseLost, noSuchRun, runOfAnotherSession, storeIsBusy } from './store-errors.js'

export class SqlRuns implements RunStore {
  readonly #database: SqlDatabase
  readonly #log: SqlLog
  readonly #parts: RequestParts
  /** The runs that this process works on, as far as they are not `OTHER_RUN`. */
  readonly #working = new Map<string, WorkingRun>()

  constructor(database: SqlDatabase, log: SqlLog) {
    this.#database = database
    this.#log = log
    this.#parts = new RequestParts(database)
  }

  /** A run has begun in this process, in a session with so many parts of requests. */
  noteBegun(key: SessionKey, runId: string, partCount: number): void {
    this.#parts.noteCount(key, partCount)
    this.#note(runId, { ...OTHER_RUN, isSettled: true })
  }

  #note(runId: string, run: WorkingRun): void {
    this.#working.set(runId, run)
    const [oldest] = this.#working.keys()
    if (this.#working.size > MOST_WORKING && oldest !== undefined) this.#working.delete(oldest)
  }

  async saveStep(step: RunStep): Promise<SavedStep> {
    const { key, runId, fence, requests = [], calls = [] } = step
    const { status, isSettled } = this.#working.get(runId) ?? OTHER_RUN
    const working = { status, isSettled: isSettled && !calls.some(call => call.status === 'started') }
    const entries = stepEntries(step)
    const write = {
      key,
      runId,
      under: { fence, number: 'next' },
      entries,
      mayHaveEnded: changesCallsAlone(step),
      also: alsoOf(step, entries, working),
    } as const
    if (isSettled !== working.isSettled) this.#note(runId, working)
    const appended = await this.#append(write, requests)
    if (step.release) {
      this.#parts.forgetRun(runId)
      this.#working.delete(runId)
    } else if (write.also.run) this.#note(runId, { ...working, status: entries.reduce(transition, status) })
    return defined({
      seq: step.message && appended.messageSeqs[0],
      calls: step.calls && (appended.calls ?? []),
    })
  }

  async #append(write: LogWrite, requests: readonly RunRequest[]): Promise<Appended> {
    if (requests.length === 0) return this.#log.append(write)
    return this.#storeRequests(write.key, write.runId ?? '', requests, async ({ entries, parts }) => {
      const also = { ...write.also, ...defined({ parts }) }
      const appended = await this.#log.tryAppend({ ...write, entries: [...entries, ...write.entries], also })
      return 'partCount' in appended ? undefined : appended
    })
  }

  /** Stores requests with the parts that the session does not have yet. `store`: `undefined` when it has others. */
  #storeRequests<T>(
    key: SessionKey,
    runId: string,
    requests: readonly RunRequest[],
    store: (packed: PackedRequests) => Promise<T | undefined>,
  ): Promise<T> {
    return this.#parts.inTurn(key, async () => {
      for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
        const packed = await this.#parts.pack(key, runId, requests)
        const stored = await store(packed)
        if (stored !== undefined) {
          this.#parts.stored(key, runId, packed)
          return stored
        }
        this.#parts.forget(key)
      }
      throw storeIsBusy(key)
    })
  }

  async begin({
    key,
    runId,
    fence,
    message,
    events,
    input,
    alone = false,
  }: RunBegin): Promise<{ seq: number } | undefined> {
    const kept = input ?? (await this.#inputOf(runId))
    const entry: NewEntry = {
      kind: 'begun',
      runId,
      message,
      events,
      ...(kept ? { data: { input: kept } } : {}),
    }
    const under = { fence }
    const begun = await this.#log.begin(runId, { key, runId, under, entries: [entry] }, { alone })
    const [seq] = begun?.messageSeqs ?? []
    return seq === undefined ? undefined : { seq }
  }

  async #inputOf(runId: string): Promise<RunBegin['input']> {
    const [row] = await this.#database.run(
      sql("SELECT input FROM lango_runs WHERE run_id = ? AND state = 'queued'", runId),
    )
    return row && inputIn(row).input
  }

  async resumeRun({ key, runId, fence, events }: RunResume): Promise<{ attempt: number } | undefined> {
    const [row] = await this.#database.run(sql(READ_STATE, runId, key.appName, key.userId, key.sessionId))
    if (numberIn(row, 'fence') !== fence) throw leaseLost(key, fence)
    const before = statusIn(row)
    if (!before) return undefined
    const entry: NewEntry = { kind: 'attempt', runId, events }
    const status = transition(before, entry)
    const run = runChange(runId, before, status)
    await this.#log.append({ key, runId, under: { fence }, entries: [entry], also: defined({ run }) })
    // Another process may have stored requests since this one did.
    this.#parts.forgetRun(runId)
    this.#note(runId, { status, isSettled: false })
    return 'attempt' in status ? { attempt: status.attempt } : undefined
  }

  async appendEvents(key: SessionKey, runId: string, events: readonly RunEventRecord[]): Promise<void> {
    const { dialect } = this.#database
    const id = `late.${randomUUID()}`
    const outcome = await this.#database.write(() => appendEventsTask(dialect, { key, runId, events, id }))
    if (outcome === 'another-session') throw runOfAnotherSession(runId)
  }

  async readEvents(
    runId: string,
    options: { afterSeq?: number; limit?: number } = {},
  ): Promise<RunEventRecord[]> {
    const { afterSeq = -1, limit = 1000 } = options
    return readEventRows(await this.#database.run(eventsStatement(runId, afterSeq, limit)), {
      runId,
      afterSeq,
      limit,
    })
  }

  async findRun(runId: string): Promise<RunSummary | undefined> {
    return (await this.findRuns([runId]))[0]
  }

  async findRuns(runIds: readonly string[]): Promise<RunSummary[]> {
    const rows = await this.#database.run(findRunsStatement(this.#database.dialect, runIds))
    return rows.map(rowToSummary)
  }

  async listRuns(key: SessionKey, options: { limit?: number } = {}): Promise<RunSummary[]> {
    const rows = await this.#database.run(listRunsStatement(key, options.limit ?? 50))
    return rows.map(rowToSummary)
  }

  async listAppRuns(query: AppRunsQuery): Promise<RunSummary[]> {
    return (await this.#database.run(appRunsStatement(query))).map(rowToSummary)
  }

  async listUnfinished(query: UnfinishedQuery): Promise<RunSummary[]> {
    const gone = query.abandoned ? await this.#log.goneHolders() : []
    const statement = unfinishedStatement(this.#database.dialect, query, gone)
    return (await this.#database.run(statement)).map(rowToSummary)
  }

  async listQueued(key: SessionKey, { limit = 100 }: { limit?: number } = {}): Promise<QueuedRun[]> {
    const rows = await this.#database.run(queuedStatement(key, limit))
    return rows.flatMap(row => rowToQueued(key, row))
  }

  /** One write for each run: it gets its place in the queue of its session. */
  async releaseDue(query: DueQuery): Promise<ReleasedRuns> {
    const { appName, runId, limit = 100 } = query
    const released: { runId: string; key: SessionKey }[] = []
    const found = await this.#database.run(dueStatement(this.#database.dialect, query))
    for (const [index, row] of found.entries()) {
      const dueInMs = numberIn(row, 'due_in')
      const isDue = runId !== undefined || dueInMs <= 0
      if (!isDue || index >= limit) return { released, nextInMs: Math.max(0, dueInMs) }
      const key = { appName, userId: textIn(row, 'user_id'), sessionId: textIn(row, 'session_id') }
      const run = { runId: textIn(row, 'run_id'), key }
      const isReleased = await this.#database.write(() =>
        releaseTask(this.#database.dialect, run.runId, numberIn(row, 'session_pk')),
      )
      if (isReleased) released.push(run)
    }
    return { released }
  }

  async endQueued(runId: string, events: readonly RunEventRecord[]): Promise<boolean> {
    return this.#log.endQueued(runId, [{ kind: 'ended', runId, events }])
  }

  async readResumable(runId: string): Promise<ResumableRun | undefined> {
    return resumableFrom(await this.#database.batch(resumableStatements(runId)))
  }

  async readCalls(runId: string): Promise<ToolCallRecord[]> {
    return (await this.#database.run(callsOfRun(runId))).map(rowToCall)
  }

  async listUnknownCalls(key: SessionKey): Promise<ToolCallRecord[]> {
    return (await this.#database.run(unknownCalls(key))).map(rowToCall)
  }

  async saveRequest(runId: string, step: number, record: Record<string, unknown>): Promise<void> {
    const [row] = await this.#database.run(sql(READ_OWNER, runId))
    if (!row) throw noSuchRun(runId)
    if ((row.deleted_at ?? null) !== null) return
    const key = {
      appName: textIn(row, 'app_name'),
      userId: textIn(row, 'user_id'),
      sessionId: textIn(row, 'session_id'),
    }
    const { dialect } = this.#database
    await this.#storeRequests(key, runId, [{ step, record }], async ({ entries, parts }) => {
      const late = { key, runId, id: `late.${randomUUID()}`, entries, ...defined({ parts }) }
      return (await this.#database.write(() => countRequestTask(dialect, late))) || undefined
    })
  }

  async readRequests(runId: string): Promise<{ step: number; record: Record<string, unknown> }[]> {
    return readRequests(this.#database, runId, await this.#database.run(sql(READ_REQUESTS, runId)))
  }

  async sendSignal(runId: string, signal: RunSignal): Promise<void> {
    const isStop = signal.type === 'stop'
    await this.#log.post({
      runId,
      kind: isStop ? 'stop' : 'reply',
      about: isStop ? '' : signal.callId,
      data: { signal },
    })
  }

  async signalled(runIds: readonly string[]): Promise<string[]> {
    const { eachValue } = this.#database.dialect
    const rows = await this.#database.run(
      sql(
        `SELECT DISTINCT r.run_id FROM lango_runs r JOIN lango_entries e ON e.run_pk = r.pk AND e.pending IS NOT NULL
          WHERE r.run_id IN (SELECT value FROM ${eachValue})`,
        JSON.stringify(runIds),
      ),
    )
    return rows.map(row => textIn(row, 'run_id'))
  }

  async readSignals(runId: string): Promise<PendingSignal[]> {
    const rows = await this.#database.run(sql(`SELECT e.seq, e.data ${PENDING} ORDER BY e.seq`, runId))
    return rows.map(row => ({ id: numberIn(row, 'seq'), signal: signalIn(row) }))
  }

  async takeSignals(runId: string): Promise<RunSignal[]> {
    // Most polls find nothing: reading first avoids the write lock.
    const pending = await this.readSignals(runId)
    if (pending.length === 0) return []
    const rows = await this.#database.run(
      sql(
        `UPDATE lango_entries SET pending = NULL WHERE pending IS NOT NULL
          AND run_pk = (SELECT r.pk FROM lango_runs r WHERE r.run_id = ?) RETURNING seq, data`,
        runId,
      ),
    )
    return [...rows].sort((one, other) => numberIn(one, 'seq') - numberIn(other, 'seq')).map(signalIn)
  }

  async prune(options: PruneOptions): Promise<PrunedCounts> {
    const { pruneRuns } = await import('./sql-prune.js')
    return pruneRuns(this.#database, options)
  }
}

/** How often a write is prepared again because the session has other parts than were known. */
const MOST_ATTEMPTS = 5

/** Runs that left this process without a last step are forgotten in the end. */
const MOST_WORKING = 10_000

/** A run of which this process knows nothing more. */
const OTHER_RUN: WorkingRun = { status: { state: 'running', attempt: 1 }, isSettled: false }

/** The status of a run that was begun and has not ended. */
function statusIn(row: Row | undefined): RunStatus | undefined {
  const state = textIn(row, 'state')
  const attempt = numberIn(row, 'attempt')
  if (state === 'running' || state === 'handover') return { state, attempt }
  return state === 'waiting' ? { state, attempt, isBetween: numberIn(row, 'is_between') === 1 } : undefined
}

const READ_STATE = `SELECT r.state, r.attempt, r.is_between, s.fence FROM lango_sessions s
  LEFT JOIN lango_runs r ON r.session_pk = s.pk AND r.run_id = ?
  WHERE s.app_name = ? AND s.user_id = ? AND s.session_id = ?`

const READ_OWNER = `SELECT r.deleted_at, s.app_name, s.user_id, s.session_id FROM lango_runs r
  LEFT JOIN lango_sessions s ON s.pk = r.session_pk WHERE r.run_id = ?`

const READ_REQUESTS = `SELECT e.session_pk, e.data FROM lango_runs r JOIN lango_entries e ON e.session_pk = r.session_pk
  AND e.run_pk = r.pk AND e.seq >= r.first_seq AND e.kind = 'request' AND e.data IS NOT NULL
  WHERE r.run_id = ? ORDER BY e.seq`

const PENDING = `FROM lango_runs r JOIN lango_entries e ON e.run_pk = r.pk AND e.pending IS NOT NULL WHERE r.run_id = ?`

function signalIn(row: Row): RunSignal {
  return (JSON.parse(textIn(row, 'data')) as { signal: RunSignal }).signal
}

/** Token calibration: sums, so that concurrent observations all count. */
export class SqlCalibration implements CalibrationStore {
  readonly #database: SqlDatabase

  constructor(database: SqlDatabase) {
    this.#database = database
  }

  async read(model: string): Promise<{ bytes: number; tokens: number } | undefined> {
    const [row] = await this.#database.run(
      sql('SELECT bytes, tokens FROM lango_calibration WHERE model = ?', model),
    )
    return row === undefined ? undefined : { bytes: numberIn(row, 'bytes'), tokens: numberIn(row, 'tokens') }
  }

  async record(model: string, bytes: number, tokens: number): Promise<void> {
    await this.#database.run(
      sql(
        `INSERT INTO lango_calibration (model, bytes, tokens) VALUES (?, ?, ?) ON CONFLICT (model) DO UPDATE SET
          bytes = lango_calibration.bytes + excluded.bytes, tokens = lango_calibration.tokens + excluded.tokens`,
        ...[model, bytes, tokens],
      ),
    )
  }
}
