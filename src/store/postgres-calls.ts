/** The changes of the ledger as parts of one statement. */
import type { SessionKey } from '../session/message.js'
import type { ToolCallPlace } from '../session/run-store.js'
import type { NamedQuery } from './postgres-query.js'
import { CALL_COLUMNS, type CallRow, callChanges, MOVED_CALL, orChangeCall, toPlace } from './sql-calls.js'
import { type Dialect, namesOf, type Row, SESSION_KEY } from './sql-database.js'

/** True when one statement can apply the changes: each row once, and no change that alters the ordinal of another. */
export function fitsOneStatement(rows: readonly CallRow[]): boolean {
  const keys = new Set(rows.map(({ runId, callKey }) => `${runId}\0${callKey}`))
  const added = rows.filter(({ facts }) => facts).length
  const isPlain = rows.length < 2 || rows.every(({ status }) => status !== 'unknown')
  return keys.size === rows.length && isPlain && (added === 0 || added === rows.length)
}

/** The changes as a table, and the condition under which they can be applied. */
export function callConditions(key: SessionKey, rows: readonly CallRow[]): NamedQuery[] {
  const list = JSON.stringify(
    rows.map(({ runId, callKey, status, attempt, result, actions, answer, moved, facts = [] }) => [
      ...[runId, callKey, status, attempt, result, actions, answer, moved],
      ...facts,
    ]),
  )
  const changed: NamedQuery = [
    'changed AS MATERIALIZED',
    `SELECT c ->> 0 AS run_id, c ->> 1 AS call_key, c ->> 2 AS status, CAST(c ->> 3 AS BIGINT) AS attempt,
        c ->> 4 AS result, c ->> 5 AS actions, c ->> 6 AS answer, CAST(c ->> 7 AS BIGINT) AS moved, c ->> 8 AS id,
        c ->> 9 AS call_id, c ->> 10 AS tool, c ->> 11 AS effect, c ->> 12 AS digest, c ->> 13 AS args, place
      FROM json_array_elements(CAST(? AS json)) WITH ORDINALITY AS each (c, place)`,
    list,
  ]
  if (addsCalls(rows)) return [changed]
  return [
    changed,
    [
      'complete AS MATERIALIZED',
      `SELECT found FROM (SELECT count(*) AS found FROM changed c JOIN lango_tool_calls t ON ${SAME_CALL}
        AND t.session_pk = (SELECT pk FROM lango_sessions WHERE ${SESSION_KEY})) AS all_found WHERE found = ?`,
      ...namesOf(key),
      rows.length,
    ],
  ]
}

/** True when the list adds calls; then all of it does, as `fitsOneStatement` requires. */
export function addsCalls(rows: readonly CallRow[]): boolean {
  return rows.some(({ facts }) => facts)
}

/** Stores the changes for the row of `session`. */
export function callQuery({ now }: Dialect, key: SessionKey, rows: readonly CallRow[]): NamedQuery {
  const returned = 'RETURNING run_id, call_key, session_pk, digest, number, ordinal, attempt'
  if (!addsCalls(rows))
    return [
      'calls AS',
      `UPDATE lango_tool_calls SET ${callChanges('c', now)}, ${MOVED_CALL} FROM session CROSS JOIN changed c
        WHERE lango_tool_calls.run_id = c.run_id AND lango_tool_calls.call_key = c.call_key
          AND session_pk = (SELECT pk FROM lango_sessions WHERE ${SESSION_KEY})
        RETURNING lango_tool_calls.run_id, lango_tool_calls.call_key, session_pk, lango_tool_calls.digest, number, ordinal,
          lango_tool_calls.attempt`,
      ...namesOf(key),
    ]
  return [
    'calls AS',
    `INSERT INTO lango_tool_calls (${CALL_COLUMNS})
      SELECT session.pk, c.run_id, c.call_key, session.call_count - ? + c.place, c.id, c.call_id, c.tool, c.effect, c.digest,
        c.args, (SELECT count(*) FROM lango_tool_calls t WHERE t.session_pk = session.pk AND t.digest = c.digest
          AND t.status <> 'unknown') + (SELECT count(*) FROM changed e WHERE e.place < c.place AND e.digest = c.digest
          AND NOT EXISTS (SELECT 1 FROM lango_tool_calls t WHERE t.run_id = e.run_id AND t.call_key = e.call_key
            AND t.session_pk = session.pk AND (t.status <> 'unknown' OR e.status = 'intent'))),
        c.attempt, c.status, c.result, c.actions, c.answer, ${now}
      FROM session CROSS JOIN changed c ${orChangeCall(now)} ${returned}`,
    rows.length,
  ]
}

/** The places of the changed calls as one JSON text. The table is read as it was before the statement. */
export const CALLS_JSON = `(SELECT CAST(json_agg(json_build_object('ordinal', n.ordinal, 'attempt', n.attempt,
    'twin_run', t.run_id, 'twin_id', t.id, 'twin_attempt', t.attempt, 'twin_answer', t.answer) ORDER BY c.place) AS TEXT)
  FROM changed c JOIN calls n ON n.run_id = c.run_id AND n.call_key = c.call_key LEFT JOIN LATERAL (
    SELECT t.run_id, t.id, t.attempt, t.answer FROM lango_tool_calls t
    WHERE t.session_pk = n.session_pk AND t.digest = n.digest AND t.status = 'unknown' AND t.number <> n.number
      AND NOT EXISTS (SELECT 1 FROM changed e WHERE e.run_id = t.run_id AND e.call_key = t.call_key
        AND e.status <> 'intent')
    ORDER BY t.number DESC LIMIT 1
  ) AS t ON true)`

/** The reverse of `CALLS_JSON`. */
export function readPlaces(json: string, rows: readonly CallRow[]): ToolCallPlace[] {
  const found = JSON.parse(json) as Row[]
  return rows.map(({ id }, index) => toPlace(id, found[index] ?? {}))
}

const SAME_CALL = 't.run_id = c.run_id AND t.call_key = c.call_key'
