/**
 * The ledger of tool calls. A row belongs to its session and is never deleted before it: the ordinals of later calls,
 * and so their idempotency keys, count the earlier ones. Rows are written under the lease. New ones are numbered by a
 * counter in the session's row, which makes steps that add calls at the same time wait for each other.
 */
import { defined } from '../base/defined.js'
import type { SessionKey } from '../session/message.js'
import type { RunStep, ToolCallChange, ToolCallPlace, ToolCallRecord } from '../session/run-store.js'
import { storableJson } from './check-input.js'
import { indexedId } from './rows.js'
import {
  type Dialect,
  numberIn,
  type Row,
  SESSION_KEY,
  type SqlValue,
  type Statement,
  sql,
  type Task,
  textIn,
} from './sql-database.js'
import { restoreText, storableText } from './storable-text.js'
import { callWithoutFacts } from './store-errors.js'

/** A change as it is stored. */
export interface CallRow {
  id: string
  runId: string
  callKey: string
  status: ToolCallChange['status']
  /** Added to the attempts: -1 takes one back. */
  attempt: number
  result: string | null
  actions: string | null
  answer: string | null
  /** Replaces the ordinal of a call that is stored. */
  moved: number | null
  /** id, call_id, tool, effect, digest, args; for a call that may be new. */
  facts: readonly [string, string, string, string, string, string] | undefined
}

export function callRows({ runId: own, calls = [] }: RunStep): CallRow[] {
  return calls.map(({ id, status, call, result, actions, answer, ordinal, isTakenBack, runId = own }) => ({
    id,
    runId,
    callKey: indexedId(id),
    status,
    attempt: isTakenBack ? -1 : status === 'started' ? 1 : 0,
    result: hasResult(status) && result !== undefined ? storableJson('result', result) : null,
    actions: hasResult(status) && actions !== undefined ? storableJson('actions', actions) : null,
    answer: answer ?? null,
    moved: ordinal ?? null,
    // A call is added to the run of the step only.
    facts:
      call === undefined || runId !== own
        ? undefined
        : [
            storableText(id),
            storableText(call.callId),
            storableText(call.tool),
            storableText(call.effect),
            call.digest,
            storableJson('args', call.args),
          ],
  }))
}

/** Whether a result is kept with that status. */
function hasResult(status: ToolCallChange['status']): boolean {
  return status === 'done' || status === 'failed'
}

/**
 * Applies changes in order; `session` is locked. An attempt is counted unless the last event of the step is stored: then
 * the step is sent again, because its acknowledgement was lost.
 */
export function* changeCallsTask(
  { now }: Dialect,
  session: Row,
  rows: readonly CallRow[],
  lastEvent: readonly [runId: string, seq: number],
): Task<ToolCallPlace[]> {
  const pk = numberIn(session, 'pk')
  const before = numberIn(session, 'call_count')
  let only: Row | undefined
  for (const [index, row] of rows.entries()) {
    const { runId, callKey, status, attempt, result, actions, answer, moved, facts } = row
    const [changed]: readonly Row[] = facts
      ? yield sql(
          `INSERT INTO lango_tool_calls (${CALL_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
            (SELECT count(*) FROM lango_tool_calls WHERE session_pk = ? AND digest = ? AND status <> 'unknown'),
            ${UNLESS_STORED}, ?, ?, ?, ?, ${now}) ${orChangeCall(now)} ${PLACE_OF_ONE}`,
          ...[pk, runId, callKey, before + index + 1, ...facts, pk, facts[4]],
          ...[attempt, ...lastEvent, status, result, actions, answer],
        )
      : yield sql(
          `UPDATE lango_tool_calls SET ${callChanges('c', now)}, ${MOVED_CALL} FROM (SELECT CAST(? AS TEXT) AS status,
              ${UNLESS_STORED} AS attempt, CAST(? AS TEXT) AS result, CAST(? AS TEXT) AS actions, CAST(? AS TEXT) AS answer,
              CAST(? AS INTEGER) AS moved) AS c
            WHERE run_id = ? AND call_key = ? AND session_pk = ? ${PLACE_OF_ONE}`,
          ...[status, attempt, ...lastEvent, result, actions, answer, moved, runId, callKey, pk],
        )
    if (changed === undefined) throw callWithoutFacts(runId, row.id)
    if (rows.length === 1 && changed.twin === null) only = changed
  }
  if (rows.some(({ facts }) => facts))
    yield sql('UPDATE lango_sessions SET call_count = call_count + ? WHERE pk = ?', rows.length, pk)
  const places: ToolCallPlace[] = []
  for (const { id, runId, callKey } of rows) {
    const [found] = only ? [only] : yield sql(PLACE, runId, callKey, pk)
    places.push(toPlace(id, found ?? {}))
  }
  return places
}

export function callsOfRun(runId: string): Statement {
  return sql(`${SELECT_CALLS} WHERE run_id = ? ORDER BY session_pk, number`, runId)
}

export function unknownCalls({ appName, userId, sessionId }: SessionKey): Statement {
  return sql(
    `${SELECT_CALLS} WHERE session_pk = (SELECT pk FROM lango_sessions WHERE ${SESSION_KEY}) AND status = 'unknown'
      ORDER BY number`,
    appName,
    userId,
    sessionId,
  )
}

export function rowToCall(row: Row): ToolCallRecord {
  const read = (column: string) => restoreText(textIn(row, column))
  return {
    id: read('id'),
    runId: textIn(row, 'run_id'),
    callId: read('call_id'),
    tool: read('tool'),
    // Written as it came, so it is one of the union.
    effect: read('effect') as ToolCallRecord['effect'],
    digest: textIn(row, 'digest'),
    args: JSON.parse(textIn(row, 'args')) as ToolCallRecord['args'],
    ordinal: numberIn(row, 'ordinal'),
    attempt: numberIn(row, 'attempt'),
    status: textIn(row, 'status') as ToolCallRecord['status'],
    ...(row.result === null ? {} : { result: JSON.parse(textIn(row, 'result')) as unknown }),
    ...(row.actions === null
      ? {}
      : { actions: JSON.parse(textIn(row, 'actions')) as Record<string, unknown> }),
    ...answerIn(row.answer),
    changedAt: numberIn(row, 'changed_at'),
  }
}

export function toPlace(id: string, row: Row): ToolCallPlace {
  const place = { id, ordinal: numberIn(row, 'ordinal'), attempt: numberIn(row, 'attempt') }
  if ((row.twin_run ?? null) === null) return place
  const unknownTwin = {
    runId: textIn(row, 'twin_run'),
    id: restoreText(textIn(row, 'twin_id')),
    attempt: numberIn(row, 'twin_attempt'),
    ...answerIn(row.twin_answer),
  }
  return { ...place, unknownTwin }
}

function answerIn(answer: SqlValue | undefined): Pick<ToolCallRecord, 'answer'> {
  return defined({ answer: (answer ?? undefined) as ToolCallRecord['answer'] })
}

export const CALL_COLUMNS = `session_pk, run_id, call_key, number, id, call_id, tool, effect, digest, args, ordinal, attempt, status,
  result, actions, answer, changed_at`

/** The request for a call that is in progress, or over, changes nothing; an attempt that is taken back makes it a request again. */
export function callChanges(from: string, now: string): string {
  const own = (column: string) => `lango_tool_calls.${column}`
  const unlessIntent = (column: string, value: string) =>
    `${column} = CASE WHEN ${from}.status = 'intent' AND ${from}.attempt = 0 THEN ${own(column)} ELSE ${value} END`
  const ofEnd = (column: string) =>
    `CASE WHEN ${from}.status IN ('done', 'failed') THEN COALESCE(${from}.${column}, ${own(column)}) END`
  return [
    unlessIntent('status', `${from}.status`),
    `attempt = ${own('attempt')} + ${from}.attempt`,
    unlessIntent('result', ofEnd('result')),
    unlessIntent('actions', ofEnd('actions')),
    unlessIntent('answer', `COALESCE(${from}.answer, ${own('answer')})`),
    unlessIntent('changed_at', now),
  ].join(', ')
}

/** A number, or 0 when an event is stored. */
const UNLESS_STORED =
  'CAST(? AS INTEGER) * (1 - (SELECT count(*) FROM lango_run_events WHERE run_id = ? AND seq = ?))'

/** Only a change of a stored call moves it. */
export const MOVED_CALL = 'ordinal = COALESCE(c.moved, lango_tool_calls.ordinal)'

export function orChangeCall(now: string): string {
  return `ON CONFLICT (run_id, call_key, session_pk) DO UPDATE SET ${callChanges('excluded', now)}`
}

const SELECT_CALLS = `SELECT ${CALL_COLUMNS} FROM lango_tool_calls`

/** The place of the only changed call, and the number of the newest other unknown one that equals it. */
const PLACE_OF_ONE = `RETURNING lango_tool_calls.ordinal, lango_tool_calls.attempt, (SELECT max(u.number) FROM lango_tool_calls u
  WHERE u.session_pk = lango_tool_calls.session_pk AND u.digest = lango_tool_calls.digest AND u.status = 'unknown'
    AND u.number <> lango_tool_calls.number) AS twin`

/** A call with the newest other unknown one that equals it. */
const PLACE = `SELECT c.ordinal, c.attempt, t.run_id AS twin_run, t.id AS twin_id, t.attempt AS twin_attempt,
    t.answer AS twin_answer
  FROM lango_tool_calls c LEFT JOIN lango_tool_calls t ON t.session_pk = c.session_pk AND t.digest = c.digest
    AND t.number = (SELECT max(u.number) FROM lango_tool_calls u WHERE u.session_pk = c.session_pk
      AND u.digest = c.digest AND u.status = 'unknown' AND u.number <> c.number)
  WHERE c.run_id = ? AND c.call_key = ? AND c.session_pk = ?`
