/** Changes that are stored with the entries of a write: state, the run's row, and rows of other tables about its events. */

import { answeredCalls } from '../../session/answered-calls.js'
import type { AlsoWritten, RunChange } from '../../session/log-store.js'
import type { Observation } from '../../session/run-store.js'
import { usageOfEvent } from '../../session/usage.js'
import { UNSETTLED } from '../sql-calls.js'
import { type Dialect, type Mark, namesOf, type Statement, sql } from '../sql-database.js'
import { usageOfRun } from '../sql-spending.js'
import { STATE_TABLES } from '../sql-state.js'
import type { StateChange } from '../state-scopes.js'
import { storableText } from '../storable-text.js'
import type { PreparedWrite } from './prepared-write.js'

/** State of a nested session is found by its names: it may be changed without a message. */
export function stateStatement(
  { also }: PreparedWrite,
  { scope, key, json }: StateChange,
  mark: Mark,
): Statement {
  const { table, columns } = STATE_TABLES[scope]
  const name = storableText(key)
  const owner = also.stateOf ? 'n' : 's'
  const nested = also.stateOf ? namesOf(also.stateOf) : []
  const source = `FROM lango_sessions s ${also.stateOf ? `JOIN lango_sessions n ON n.app_name = ? AND n.user_id = ? AND n.session_id = ?` : ''}`
  const owners = columns.map(column => (column === 'session_pk' ? `${owner}.pk` : `${owner}.${column}`))
  if (json === undefined) {
    const isOwner = columns.map((column, index) => `${table}.${column} = ${owners[index]}`).join(' AND ')
    return sql(
      `DELETE FROM ${table} WHERE key = ? AND EXISTS (SELECT 1 ${source} WHERE ${mark.text} AND ${isOwner})`,
      ...[name, ...nested, ...mark.parameters],
    )
  }
  return sql(
    `INSERT INTO ${table} (${columns.join(', ')}, key, value)
      SELECT ${owners.join(', ')}, CAST(? AS TEXT), CAST(? AS TEXT) ${source} WHERE ${mark.text}
      ON CONFLICT (${columns.join(', ')}, key) DO UPDATE SET value = excluded.value`,
    ...[name, json, ...nested, ...mark.parameters],
  )
}

/** A run that ends with a call that was started has not settled it: its outcome is unknown. */
export function runStatements({ also, runId }: PreparedWrite, mark: Mark): Statement[] {
  const { run } = also
  if (!run) return []
  const changed = changedRun(run, mark)
  if (run.state !== 'finished' || run.isSettled) return [changed]
  const unsettled = `${UNSETTLED} AND EXISTS (SELECT 1 FROM lango_sessions s WHERE ${mark.text})`
  return [changed, sql(unsettled, runId ?? run.runId, ...mark.parameters)]
}

function changedRun(run: RunChange, mark: Mark): Statement {
  const isEnd = run.state === 'finished'
  return sql(
    `UPDATE lango_runs SET state = ?, finish_reason = ?, is_between = ?, attempt = COALESCE(CAST(? AS BIGINT), attempt)
      ${isEnd ? `, input = NULL, last_seq = (SELECT s.entry_count FROM lango_sessions s WHERE ${mark.text})` : ''}
      WHERE run_id = ? AND EXISTS (SELECT 1 FROM lango_sessions s WHERE ${mark.text})`,
    ...[run.state, run.finishReason ?? null, run.isBetween ? 1 : 0, run.attempt ?? null],
    ...(isEnd ? mark.parameters : []),
    ...[run.runId, ...mark.parameters],
  )
}

/** Usage and recorded answers from the events of a write, parts of requests, and counts of tokens. */
export function recordStatements(dialect: Dialect, write: PreparedWrite, mark: Mark): Statement[] {
  const { rows, also, runId, pk, id } = write
  const events = rows.flatMap(({ entry }) => entry.events ?? [])
  const used = events.flatMap(event => {
    const usage = runId !== undefined && event.type === 'usage' ? usageOfEvent(event) : undefined
    return usage && runId ? [usageOfRun(dialect, { pk, writeId: id }, runId, event.seq, usage)] : []
  })
  const answered = runId === undefined ? [] : answeredCalls(events)
  const recorded = answered.map(callId =>
    sql(
      `UPDATE lango_entries SET pending = NULL WHERE pending = ? AND kind = 'reply'
        AND run_pk = (SELECT r.pk FROM lango_runs r WHERE r.run_id = ?)
        AND EXISTS (SELECT 1 FROM lango_sessions s WHERE ${mark.text})`,
      ...[storableText(callId), runId ?? '', ...mark.parameters],
    ),
  )
  const counts = byModel(also.calibration ?? []).map(each => countStatement(each, mark))
  return [...used, ...recorded, ...(also.parts ? partStatements(dialect, also.parts, mark) : []), ...counts]
}

function partStatements(
  dialect: Dialect,
  { added }: NonNullable<AlsoWritten['parts']>,
  mark: Mark,
): Statement[] {
  if (added.length === 0) return []
  const records = added.map((part, index) => ({ ...part, after: added.length - 1 - index }))
  return [
    sql(
      `INSERT INTO lango_request_parts (session_pk, number, digest, part)
        SELECT s.pk, s.part_count - record.after, record.digest, record.part
        FROM ${dialect.eachRecord({ after: 'BIGINT', digest: 'TEXT', part: 'TEXT' })} CROSS JOIN lango_sessions s
        WHERE ${mark.text}`,
      ...[JSON.stringify(records), ...mark.parameters],
    ),
  ]
}

/** In a fixed order: two transactions that change the same rows would otherwise wait for each other. */
function byModel(observations: readonly Observation[]): Observation[] {
  return observations.toSorted((one, other) => (one.model < other.model ? -1 : 1))
}

function countStatement({ model, bytes, tokens }: Observation, mark: Mark): Statement {
  return sql(
    `INSERT INTO lango_calibration (model, bytes, tokens)
      SELECT CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT) FROM lango_sessions s WHERE ${mark.text}
      ON CONFLICT (model) DO UPDATE SET bytes = lango_calibration.bytes + excluded.bytes,
        tokens = lango_calibration.tokens + excluded.tokens`,
    ...[model, bytes, tokens, ...mark.parameters],
  )
}
