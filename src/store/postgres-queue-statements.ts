/** Accepting a run into its queue, and beginning it, as one statement each, for PostgreSQL, which is a network away. */
import { tidyTitle } from '../base/title.js'
import type { RunBegin, RunOpening } from '../session/run-store.js'
import { storableJson } from './check-input.js'
import { titleColumns } from './listing.js'
import { eachOf, Query } from './postgres-query.js'
import { addEvents, addMessage, addSession } from './postgres-step-statements.js'
import { messageToRow } from './rows.js'
import {
  type Dialect,
  HOUR_MS,
  joined,
  namesOf,
  SESSION_KEY,
  type Statement,
  touched,
} from './sql-database.js'
import { eventRows, withPlace } from './sql-event-rows.js'
import { begunInput } from './sql-journal.js'
import { ALONE, NOT_HELD_UP, QUEUE_LENGTH } from './sql-queue.js'

/**
 * Stores a run that does not begin yet, and gives back the ticket that was taken for its place in this transaction.
 * `stored` is 0 when the run is known; a run that another process has just stored violates a unique index.
 */
export function queueStatement(dialect: Dialect, opening: RunOpening, ticket: number): Statement {
  const { key, runId, title, message, input, orQueue, dueAt } = opening
  const names = namesOf(key)
  const query = new Query()
  query.with('known AS MATERIALIZED', 'SELECT run_id FROM lango_runs WHERE run_id = ?', runId)
  query.with('line AS MATERIALIZED', QUEUE_LENGTH, ...names)
  query.with('returned AS', `DELETE FROM lango_leases WHERE id = ? AND ${SESSION_KEY}`, ticket, ...names)
  query.with(
    'session AS',
    `INSERT INTO lango_sessions (app_name, user_id, session_id, title, search, message_count, token_total, turn_seq,
        created_at, updated_at, updated_hour)
      SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), 0, 0, 0, clock.now,
        clock.now, clock.now / ${HOUR_MS} FROM (SELECT ${dialect.now} AS now) AS clock
      WHERE NOT EXISTS (SELECT 1 FROM known)
      ON CONFLICT (app_name, user_id, session_id) DO UPDATE SET ${touched(dialect)} RETURNING pk`,
    ...names,
    ...titleColumns(tidyTitle(title), key.sessionId),
  )
  query.with(
    'run AS',
    `INSERT INTO lango_runs (run_id, app_name, user_id, session_id, place, input, started_at, state, due_at)
      SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS TEXT),
        ${dialect.now}, CAST(? AS TEXT), CAST(? AS BIGINT) FROM session RETURNING run_id`,
    ...[runId, ...names, ticket, storableJson('input', { message, input })],
    ...(dueAt === undefined ? ['queued', null] : ['scheduled', dueAt]),
  )
  const given = orQueue?.events ?? opening.events
  const events = eventRows(dueAt === undefined ? withPlace(given, UNKNOWN_PLACE) : given, { key, runId })
  query.with(
    'events AS',
    `INSERT INTO lango_run_events (run_id, seq, stored_at, event)
      SELECT CAST(? AS TEXT), CAST(e ->> 0 AS BIGINT), ${dialect.now},
        replace(e ->> 1, '"place":${UNKNOWN_PLACE}', '"place":' || (length + 1))
      FROM session CROSS JOIN line CROSS JOIN ${eachOf('e')}`,
    runId,
    JSON.stringify(events.map(({ seq, json }) => [seq, json])),
  )
  return query.select('SELECT (SELECT count(*) FROM run) AS stored, length + 1 AS queued FROM line')
}

/** Stands for the place that the statement finds out. In a text of the event, its quotes would be escaped. */
const UNKNOWN_PLACE = -1

/** Begins a queued run whose input is known. Without a row, something forbids it. Locks ticket, run, session in this order. */
export function beginStatement(dialect: Dialect, begin: RunBegin): Statement {
  const { key, runId, fence, message, events, alone } = begin
  const names = namesOf(key)
  const row = messageToRow(message)
  const query = new Query()
  query.with(
    'ticket AS MATERIALIZED',
    `SELECT id FROM lango_leases WHERE id = ? AND ${SESSION_KEY}${dialect.forKeyShare}`,
    fence,
    ...names,
  )
  query.with(
    'run AS',
    `UPDATE lango_runs r SET state = 'running', input = ?,
        after_seq = (SELECT message_count FROM lango_sessions WHERE ${SESSION_KEY})
      WHERE r.run_id = ? AND r.app_name = ? AND r.user_id = ? AND r.session_id = ? AND r.state = 'queued'
        AND ${alone ? ALONE : NOT_HELD_UP} AND EXISTS (SELECT 1 FROM ticket) RETURNING r.run_id`,
    ...[begunInput(begin), ...names, runId, ...names],
  )
  addSession(query, dialect, { name: 'session', key }, { row, changes: [], calls: [] }, ['run'])
  addMessage(query, row)
  addEvents(query, dialect, runId, eventRows(events, { key, runId }))
  return joined(query.select('SELECT seq FROM session'), key, { ticket: fence })
}
