/**
 * The ledger of tool calls. A row belongs to its session and is never deleted before it: the ordinals of later calls,
 * and so their idempotency keys, count the earlier ones. Rows are written under the lease. New ones are numbered by a
 * counter in the session's row, which makes steps that add calls at the same time wait for each other.
 */
import { defined } from '../base/defined.js'
import type { SessionKey } from '../session/message.js'
import type { ToolCallChange, ToolCallPlace, ToolCallRecord } from '../session/run-store.js'
import { storableJson } from './check-input.js'
import { indexedId } from './rows.js'
import {
  type Dialect,
  type Mark,
  numberIn,
  type Row,
  SESSION_KEY,
  type SqlValue,
  type Statement,
  sql,
  textIn,
} from './sql-database.js'
import { restoreText, storableText } from './storable-text.js'

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

export function callRows(own: string, calls: readonly ToolCallChange[]): CallRow[] {
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

/** True if a result is kept with that status. */
function hasResult(status: ToolCallChange['status']): boolean {
  return status === 'done' || status === 'failed'
}

/** A statement for each change, in order. Its row has the place of the call. */
export function callStatements(
  { now }: Dialect,
  mark: Mark,
  own: string,
  rows: readonly CallRow[],
): Statement[] {
  return rows.map((row, index) => {
    const { runId, callKey, status, attempt, result, actions, answer, moved, facts } = row
    if (!facts)
      return sql(
        `UPDATE lango_tool_calls SET ${callChanges('c', now)}, ordinal = COALESCE(c.moved, lango_tool_calls.ordinal)
          FROM (SELECT s.pk, CAST(? AS TEXT) AS status, CAST(? AS BIGINT) AS attempt, CAST(? AS TEXT) AS result,
              CAST(? AS TEXT) AS actions, CAST(? AS TEXT) AS answer, CAST(? AS BIGINT) AS moved
            FROM lango_sessions s WHERE ${mark.text}) AS c
          WHERE run_id = ? AND call_key = ? AND session_pk = c.pk ${RETURNED_PLACE}`,
        ...[status, attempt, result, actions, answer, moved, ...mark.parameters, runId, callKey],
      )
    return sql(
      `INSERT INTO lango_tool_calls (${CALL_COLUMNS})
        SELECT s.pk, CAST(? AS TEXT), CAST(? AS TEXT), s.call_count - CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT),
          CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), (SELECT count(*) FROM lango_tool_calls e
            WHERE e.session_pk = s.pk AND e.digest = CAST(? AS TEXT) AND e.status <> 'unknown'),
          CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), ${now}
        FROM lango_sessions s WHERE ${mark.text}
        ON CONFLICT (run_id, call_key, session_pk) DO UPDATE SET ${callChanges('excluded', now)} ${RETURNED_PLACE}`,
      ...[own, callKey, rows.length - 1 - index, ...facts, facts[4]],
      ...[attempt, status, result, actions, answer, ...mark.parameters],
    )
  })
}

/** The place of a call. `unknown` counts the other unknown calls that equal it: they are rare, and read by themselves. */
const RETURNED_PLACE = `RETURNING lango_tool_calls.ordinal, lango_tool_calls.attempt, (SELECT count(*) FROM lango_tool_calls u
  WHERE u.session_pk = lango_tool_calls.session_pk AND u.digest = lango_tool_calls.digest AND u.status = 'unknown'
    AND u.number <> lango_tool_calls.number) AS unknown`

/** The place of a call as it is now. */
export function placeStatement(pk: number, { runId, callKey }: CallRow): Statement {
  return sql(PLACE, runId, callKey, pk)
}

/** A run that ends with a call that was started has not settled it: its outcome is unknown. */
export const UNSETTLED = `UPDATE lango_tool_calls SET status = 'unknown' WHERE run_id = ? AND status = 'started'`

/** A copy of a session has unknown calls of the same run: they are not listed. */
export function callsOfRun(runId: string): Statement {
  return sql(
    `${SELECT_CALLS} WHERE run_id = ? AND session_pk = COALESCE((SELECT r.session_pk FROM lango_runs r WHERE r.run_id = ?),
      (SELECT min(c.session_pk) FROM lango_tool_calls c WHERE c.run_id = ?)) ORDER BY number`,
    ...[runId, runId, runId],
  )
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

const CALL_COLUMNS = `session_pk, run_id, call_key, number, id, call_id, tool, effect, digest, args, ordinal, attempt, status,
  result, actions, answer, changed_at`

/** The request for a call that is in progress, or over, changes nothing; an attempt that is taken back makes it a request again. */
function callChanges(from: string, now: string): string {
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

const SELECT_CALLS = `SELECT ${CALL_COLUMNS} FROM lango_tool_calls`

/** A call with the newest other unknown one that equals it. */
const PLACE = `SELECT c.ordinal, c.attempt, t.run_id AS twin_run, t.id AS twin_id, t.attempt AS twin_attempt,
    t.answer AS twin_answer
  FROM lango_tool_calls c LEFT JOIN lango_tool_calls t ON t.session_pk = c.session_pk AND t.digest = c.digest
    AND t.number = (SELECT max(u.number) FROM lango_tool_calls u WHERE u.session_pk = c.session_pk
      AND u.digest = c.digest AND u.status = 'unknown' AND u.number <> c.number)
  WHERE c.run_id = ? AND c.call_key = ? AND c.session_pk = ?`
