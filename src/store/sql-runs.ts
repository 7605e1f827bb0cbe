import type { SessionKey } from '../session/message.js'
import type {
  AppRunsQuery,
  PendingSignal,
  PrunedCounts,
  PruneOptions,
  QueuedRun,
  ResumableRun,
  RunEventRecord,
  RunSignal,
  RunState,
  RunStore,
  RunSummary,
  ToolCallRecord,
  UnfinishedQuery,
} from '../session/run-store.js'
import type { CalibrationStore, Observation } from '../session/session-store.js'
import { storableJson } from './check-input.js'
import { callsOfRun, rowToCall, unknownCalls } from './sql-calls.js'
import {
  numberIn,
  type Row,
  type SqlDatabase,
  type SqlValue,
  type Statement,
  sql,
  type Task,
  textIn,
} from './sql-database.js'
import { type EventRow, eventRows, insertEvents, readEventRows } from './sql-event-rows.js'
import { readResumableTask } from './sql-journal.js'
import { pruneRuns } from './sql-prune.js'
import {
  endQueuedTask,
  QUEUE_PLACE,
  queuedStatement,
  rowToQueued,
  unfinishedConditions,
} from './sql-queue.js'
import { findRun, isDeleted, readRequestsTask, saveRequestTask } from './sql-requests.js'
import type { SqlTickets } from './sql-tickets.js'
import { runHasEnded, runOfAnotherSession } from './store-errors.js'

/** What is loaded on use. */
type RunWrites = Required<Pick<RunStore, 'saveStep' | 'resumeRun' | 'releaseDue'>>

/** Run events, requests and signals in tables of their own. */
export class SqlRuns implements RunStore {
  readonly saveStep: RunWrites['saveStep']
  readonly resumeRun: RunWrites['resumeRun']
  readonly releaseDue: RunWrites['releaseDue']
  readonly #tickets: SqlTickets
  readonly #database: SqlDatabase
  readonly #now: string

  constructor(database: SqlDatabase, tickets: SqlTickets, { saveStep, resumeRun, releaseDue }: RunWrites) {
    this.#database = database
    this.#tickets = tickets
    this.saveStep = saveStep
    this.resumeRun = resumeRun
    this.releaseDue = releaseDue
    this.#now = database.dialect.now
  }

  async appendEvents(key: SessionKey, runId: string, events: readonly RunEventRecord[]): Promise<void> {
    const rows = eventRows(events, { key, runId })
    await this.#database.write(() => this.appendTask(key, runId, rows))
  }

  async readEvents(
    runId: string,
    options: { afterSeq?: number; limit?: number } = {},
  ): Promise<RunEventRecord[]> {
    const { afterSeq = -1, limit = 1000 } = options
    const rows = await this.#database.run(
      sql(
        `SELECT seq, event, (SELECT session_id FROM lango_runs WHERE run_id = ?) AS session_id
          FROM lango_run_events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?`,
        runId,
        runId,
        afterSeq,
        limit,
      ),
    )
    return readEventRows(this.#database, runId, rows)
  }

  async findRun(runId: string): Promise<RunSummary | undefined> {
    const [row] = await this.#database.run(findRunStatement(runId))
    return row && rowToSummary(row)
  }

  async findRuns(runIds: readonly string[]): Promise<RunSummary[]> {
    const { eachValue } = this.#database.dialect
    const rows = await this.#database.run(
      sql(
        `${SUMMARY} WHERE r.run_id IN (SELECT value FROM ${eachValue}) AND r.deleted_at IS NULL`,
        JSON.stringify(runIds),
      ),
    )
    return rows.map(rowToSummary)
  }

  async listRuns(key: SessionKey, options: { limit?: number } = {}): Promise<RunSummary[]> {
    const names = [key.appName, key.userId, key.sessionId]
    const rows = await this.#database.run(listRunsStatement(names, options.limit ?? 50))
    return rows.map(rowToSummary)
  }

  async listAppRuns(query: AppRunsQuery): Promise<RunSummary[]> {
    const rows = await this.#database.run(appRunsStatement(query))
    return rows.map(rowToSummary)
  }

  async listUnfinished(query: UnfinishedQuery): Promise<RunSummary[]> {
    const gone = query.abandoned ? await this.#tickets.goneHolders() : []
    const { text, parameters } = unfinishedConditions(this.#database.dialect, query, gone)
    const rows = await this.#database.run(sql(`${SUMMARY} WHERE ${text}`, ...parameters))
    return rows.map(rowToSummary)
  }

  async listQueued(key: SessionKey, { limit = 100 }: { limit?: number } = {}): Promise<QueuedRun[]> {
    const rows = await this.#database.run(queuedStatement(key, limit))
    return rows.flatMap(row => rowToQueued(key, row))
  }

  async endQueued(runId: string, events: readonly RunEventRecord[]): Promise<boolean> {
    return this.#database.write(() => endQueuedTask(this.#database.dialect, runId, events))
  }

  async readResumable(runId: string): Promise<ResumableRun | undefined> {
    return this.#database.read(() => readResumableTask(runId))
  }

  async readCalls(runId: string): Promise<ToolCallRecord[]> {
    return (await this.#database.run(callsOfRun(runId))).map(rowToCall)
  }

  async listUnknownCalls(key: SessionKey): Promise<ToolCallRecord[]> {
    return (await this.#database.run(unknownCalls(key))).map(rowToCall)
  }

  async saveRequest(runId: string, step: number, record: Record<string, unknown>): Promise<void> {
    const json = storableJson('record', record)
    await this.#database.write(() => saveRequestTask(this.#database.dialect, runId, step, json))
  }

  async readRequests(runId: string): Promise<{ step: number; record: Record<string, unknown> }[]> {
    const requests = await this.#database.read(() => readRequestsTask(this.#database.dialect, runId))
    return requests.map(({ step, json }) => ({ step, record: JSON.parse(json) as Record<string, unknown> }))
  }

  async sendSignal(runId: string, signal: RunSignal): Promise<void> {
    await this.#database.run(
      sql(
        `INSERT INTO lango_run_signals (run_id, stored_at, signal) VALUES (?, ${this.#now}, ?)`,
        runId,
        storableJson('signal', signal),
      ),
    )
  }

  async signalled(runIds: readonly string[]): Promise<string[]> {
    const { eachValue } = this.#database.dialect
    const rows = await this.#database.run(
      sql(
        `SELECT DISTINCT run_id FROM lango_run_signals WHERE run_id IN (SELECT value FROM ${eachValue})`,
        JSON.stringify(runIds),
      ),
    )
    return rows.map(row => textIn(row, 'run_id'))
  }

  async readSignals(runId: string): Promise<PendingSignal[]> {
    const rows = await this.#database.run(
      sql('SELECT id, signal FROM lango_run_signals WHERE run_id = ? ORDER BY id', runId),
    )
    return rows.map(row => ({
      id: numberIn(row, 'id'),
      signal: JSON.parse(textIn(row, 'signal')) as RunSignal,
    }))
  }

  async takeSignals(runId: string): Promise<RunSignal[]> {
    // Most polls find nothing: reading first avoids the write lock.
    const [waiting] = await this.#database.run(
      sql('SELECT id FROM lango_run_signals WHERE run_id = ? LIMIT 1', runId),
    )
    if (waiting === undefined) return []
    const rows = await this.#database.run(
      sql('DELETE FROM lango_run_signals WHERE run_id = ? RETURNING id, signal', runId),
    )
    return [...rows]
      .sort((one, other) => numberIn(one, 'id') - numberIn(other, 'id'))
      .map(row => JSON.parse(textIn(row, 'signal')) as RunSignal)
  }

  async prune(options: PruneOptions): Promise<PrunedCounts> {
    return pruneRuns(this.#database, options)
  }

  /** An ended run accepts its own events again, and no others: another process may have written its end, with higher numbers. */
  *#checkEndedTask(runId: string, rows: readonly EventRow[]): Task<void> {
    const stored = yield sql(
      'SELECT seq, event FROM lango_run_events WHERE run_id = ? AND seq >= ? ORDER BY seq LIMIT ?',
      runId,
      Math.min(...rows.map(({ seq }) => seq)),
      rows.length,
    )
    const events = new Map(stored.map(row => [numberIn(row, 'seq'), textIn(row, 'event')]))
    if (rows.some(({ seq, json }) => events.get(seq) !== json)) throw runHasEnded(runId)
  }

  /** Stores events, and the run itself with its first ones. */
  *appendTask(key: SessionKey, runId: string, rows: readonly EventRow[]): Task<void> {
    const names = [key.appName, key.userId, key.sessionId]
    const { dialect } = this.#database
    // Only its first events find no run.
    const [known] = yield findRun(dialect, runId)
    // A run whose session was deleted before its first event is not stored: the session is locked until the commit.
    if (known === undefined)
      yield sql(
        `INSERT INTO lango_runs (run_id, app_name, user_id, session_id, started_at, after_seq, state)
        SELECT CAST(? AS TEXT), app_name, user_id, session_id, ${this.#now}, message_count, 'running' FROM lango_sessions
          WHERE app_name = ? AND user_id = ? AND session_id = ?${dialect.forKeyShare}
        ON CONFLICT (run_id) DO NOTHING`,
        runId,
        ...names,
      )
    const [run = known] = known ? [] : yield findRun(dialect, runId)
    if (run === undefined || isDeleted(run)) return
    if (names.join('\0') !== [run.app_name, run.user_id, run.session_id].join('\0'))
      throw runOfAnotherSession(runId)
    // The end of a run is stored with its last event.
    const [last] = run.state === 'finished' && rows.length > 0 ? yield sql(LAST_EVENT, runId) : []
    if (last) yield* this.#checkEndedTask(runId, rows)
    yield* insertEvents(dialect, runId, rows)
  }
}

const LAST_EVENT = 'SELECT seq FROM lango_run_events WHERE run_id = ? ORDER BY seq DESC LIMIT 1'

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
    await this.#database.run(observationStatement({ model, bytes, tokens }))
  }
}

export function observationStatement({ model, bytes, tokens }: Observation): Statement {
  return sql(
    `INSERT INTO lango_calibration (model, bytes, tokens) VALUES (?, ?, ?) ON CONFLICT (model) DO UPDATE SET
      bytes = lango_calibration.bytes + excluded.bytes, tokens = lango_calibration.tokens + excluded.tokens`,
    model,
    bytes,
    tokens,
  )
}

/** The finish reason, if the last event is `run-finish`. Events that were pruned leave none. */
function finishOf(lastEvent: unknown): Pick<RunSummary, 'finishReason'> {
  if (typeof lastEvent !== 'string') return {}
  const { type, finishReason } = JSON.parse(lastEvent) as { type?: unknown; finishReason?: unknown }
  return type === 'run-finish' && typeof finishReason === 'string' ? { finishReason } : {}
}

function findRunStatement(runId: string): Statement {
  return sql(`${SUMMARY} WHERE r.run_id = ? AND r.deleted_at IS NULL`, runId)
}

function listRunsStatement(names: readonly SqlValue[], limit: number): Statement {
  return sql(
    `${SUMMARY} WHERE r.app_name = ? AND r.user_id = ? AND r.session_id = ? AND r.deleted_at IS NULL
        AND r.state <> 'scheduled' ORDER BY ${NEWEST_FIRST} LIMIT ?`,
    ...names,
    limit,
  )
}

/** The rows are chosen before their events are read: an app may have many runs. */
function appRunsStatement({ appName, userId, limit = 50 }: AppRunsQuery): Statement {
  const ofUser = userId === undefined ? '' : 'AND r.user_id = ?'
  return sql(
    `${SUMMARY} WHERE r.run_id IN (SELECT r.run_id FROM lango_runs r WHERE r.app_name = ? ${ofUser}
        AND r.deleted_at IS NULL ORDER BY ${NEWEST_FIRST} LIMIT ?) ORDER BY ${NEWEST_FIRST}`,
    ...[appName, ...(userId === undefined ? [] : [userId]), limit],
  )
}

const NEWEST_FIRST = 'r.started_at DESC, r.place DESC, r.run_id'

function rowToSummary(row: Row): RunSummary {
  return {
    runId: textIn(row, 'run_id'),
    key: {
      appName: textIn(row, 'app_name'),
      userId: textIn(row, 'user_id'),
      sessionId: textIn(row, 'session_id'),
    },
    startedAt: numberIn(row, 'started_at'),
    ...(row.due_at === null ? {} : { dueAt: numberIn(row, 'due_at') }),
    ...(row.after_seq === null ? {} : { afterSeq: numberIn(row, 'after_seq') }),
    lastSeq: numberIn(row, 'last_seq'),
    ...stateOf(row),
  }
}

function stateOf(row: Row): Pick<RunSummary, 'finished' | 'finishReason' | 'state' | 'place'> {
  const stored = textIn(row, 'state') as RunState | 'handover'
  const state = stored === 'handover' ? 'running' : stored
  const place = row.place === null ? {} : { place: numberIn(row, 'place') }
  return { ...finishOf(row.last_event), finished: state === 'finished', state, ...place }
}

const EVENTS = 'FROM lango_run_events e WHERE e.run_id = r.run_id'

const SUMMARY = `SELECT r.run_id, r.app_name, r.user_id, r.session_id, r.started_at, r.after_seq, r.state, r.due_at,
    ${QUEUE_PLACE} AS place,
    COALESCE((SELECT max(e.seq) ${EVENTS}), 0) AS last_seq,
    (SELECT e.event ${EVENTS} ORDER BY e.seq DESC LIMIT 1) AS last_event
  FROM lango_runs r`
