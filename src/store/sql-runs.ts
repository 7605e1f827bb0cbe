import type { SessionKey } from '../session/message.js'
import type { CalibrationStore, RunEventRecord, RunSignal, RunStore } from '../session/session-store.js'
import { checkInteger, checkKey, checkName, toJson } from './check-input.js'
import { checkEvents, checkObservation, checkRecord, checkRunRange, checkSignal } from './check-run-input.js'
import {
  numberIn,
  repeatableSql,
  type SqlDatabase,
  type SqlValue,
  sql,
  type Task,
  textIn,
} from './sql-database.js'
import { runOfAnotherSession } from './store-errors.js'

/** What happened during runs, in tables of its own. */
export class SqlRuns implements RunStore {
  readonly #database: SqlDatabase
  readonly #now: string

  constructor(database: SqlDatabase) {
    this.#database = database
    this.#now = database.dialect.now
  }

  async appendEvents(key: SessionKey, runId: string, events: readonly RunEventRecord[]): Promise<void> {
    checkKey(key)
    checkName('runId', runId)
    checkEvents(events)
    const rows = events.map(event => ({ seq: event.seq, json: toJson('events', event) }))
    await this.#database.write(() => this.#appendTask(key, runId, rows))
  }

  async readEvents(
    runId: string,
    options: { afterSeq?: number; limit?: number } = {},
  ): Promise<RunEventRecord[]> {
    checkName('runId', runId)
    checkRunRange(options)
    const { afterSeq = -1, limit = 1000 } = options
    const rows = await this.#database.run(
      sql(
        'SELECT event FROM lango_run_events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?',
        runId,
        afterSeq,
        limit,
      ),
    )
    return rows.map(row => JSON.parse(textIn(row, 'event')) as RunEventRecord)
  }

  async saveRequest(runId: string, step: number, record: Record<string, unknown>): Promise<void> {
    checkName('runId', runId)
    checkRecord(step, record)
    await this.#database.run(
      repeatableSql(
        `INSERT INTO lango_run_requests (run_id, step, stored_at, record) VALUES (?, ?, ${this.#now}, ?)
          ON CONFLICT (run_id, step) DO UPDATE SET record = excluded.record, stored_at = excluded.stored_at`,
        runId,
        step,
        toJson('record', record),
      ),
    )
  }

  async readRequests(runId: string): Promise<{ step: number; record: Record<string, unknown> }[]> {
    checkName('runId', runId)
    const rows = await this.#database.run(
      sql('SELECT step, record FROM lango_run_requests WHERE run_id = ? ORDER BY step', runId),
    )
    return rows.map(row => ({ step: numberIn(row, 'step'), record: JSON.parse(textIn(row, 'record')) }))
  }

  async sendSignal(runId: string, signal: RunSignal): Promise<void> {
    checkName('runId', runId)
    checkSignal(signal)
    await this.#database.run(
      sql(
        `INSERT INTO lango_run_signals (run_id, stored_at, signal) VALUES (?, ${this.#now}, ?)`,
        runId,
        toJson('signal', signal),
      ),
    )
  }

  async takeSignals(runId: string): Promise<RunSignal[]> {
    checkName('runId', runId)
    // Most looks find nothing: reading first keeps them from taking the writer's place.
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

  async prune({
    before,
  }: {
    before: number
  }): Promise<{ events: number; requests: number; signals: number }> {
    checkInteger('before', before, 0)
    return this.#database.write(() => pruneTask(before))
  }

  *#appendTask(key: SessionKey, runId: string, rows: readonly { seq: number; json: string }[]): Task<void> {
    const names = [key.appName, key.userId, key.sessionId]
    yield sql(
      `INSERT INTO lango_runs (run_id, app_name, user_id, session_id) VALUES (?, ?, ?, ?)
        ON CONFLICT (run_id) DO NOTHING`,
      runId,
      ...names,
    )
    const [run] = yield sql('SELECT app_name, user_id, session_id FROM lango_runs WHERE run_id = ?', runId)
    if (names.join('\0') !== [run?.app_name, run?.user_id, run?.session_id].join('\0'))
      throw runOfAnotherSession(runId)
    for (let start = 0; start < rows.length; start += EVENTS_PER_STATEMENT) {
      const some = rows.slice(start, start + EVENTS_PER_STATEMENT)
      const parameters = some.flatMap<SqlValue>(({ seq, json }) => [runId, seq, json])
      yield sql(
        `INSERT INTO lango_run_events (run_id, seq, stored_at, event)
          VALUES ${some.map(() => `(?, ?, ${this.#now}, ?)`).join(', ')} ON CONFLICT (run_id, seq) DO NOTHING`,
        ...parameters,
      )
    }
  }
}

const EVENTS_PER_STATEMENT = 32

function* pruneTask(before: number): Task<{ events: number; requests: number; signals: number }> {
  const pruned = {
    events: yield* pruneTable('lango_run_events', before),
    requests: yield* pruneTable('lango_run_requests', before),
    signals: yield* pruneTable('lango_run_signals', before),
  }
  yield sql(`DELETE FROM lango_runs WHERE
    NOT EXISTS (SELECT 1 FROM lango_run_events e WHERE e.run_id = lango_runs.run_id)
    AND NOT EXISTS (SELECT 1 FROM lango_run_requests r WHERE r.run_id = lango_runs.run_id)
    AND NOT EXISTS (SELECT 1 FROM lango_run_signals s WHERE s.run_id = lango_runs.run_id)`)
  return pruned
}

function* pruneTable(table: string, before: number): Task<number> {
  const [counted] = yield sql(`SELECT count(*) AS found FROM ${table} WHERE stored_at < ?`, before)
  yield sql(`DELETE FROM ${table} WHERE stored_at < ?`, before)
  return numberIn(counted, 'found')
}

/** Token calibration: sums, so that concurrent observations all count. */
export class SqlCalibration implements CalibrationStore {
  readonly #database: SqlDatabase

  constructor(database: SqlDatabase) {
    this.#database = database
  }

  async read(model: string): Promise<{ bytes: number; tokens: number } | undefined> {
    checkName('model', model)
    const [row] = await this.#database.run(
      sql('SELECT bytes, tokens FROM lango_calibration WHERE model = ?', model),
    )
    return row === undefined ? undefined : { bytes: numberIn(row, 'bytes'), tokens: numberIn(row, 'tokens') }
  }

  async record(model: string, bytes: number, tokens: number): Promise<void> {
    checkObservation(model, bytes, tokens)
    await this.#database.run(
      sql(
        `INSERT INTO lango_calibration (model, bytes, tokens) VALUES (?, ?, ?) ON CONFLICT (model) DO UPDATE SET
          bytes = lango_calibration.bytes + excluded.bytes, tokens = lango_calibration.tokens + excluded.tokens`,
        model,
        bytes,
        tokens,
      ),
    )
  }
}
