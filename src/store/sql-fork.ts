/**
 * Copies of sessions. A short one is copied in one transaction. A long one is copied in slices to a session that nobody
 * can name, so that the event loop stays free, and gets its name when it is complete.
 */
import { randomUUID } from 'node:crypto'
import { createPause } from '../base/pause.js'
import type { Session, SessionKey } from '../session/message.js'
import { titleColumns, titleIn } from './listing.js'
import { CONTENT_COLUMNS, CONTENT_PLACES, entryToRow } from './log/log-rows.js'
import { indexedId, MESSAGE_COLUMNS, MESSAGES, rowToMessage, STARTS_TURN } from './rows.js'
import { copyArtifacts, hasArtifactsTask } from './sql-artifacts.js'
import {
  type Dialect,
  namesOf,
  numberIn,
  type Row,
  SESSION_KEY,
  type SqlDatabase,
  sql,
  type Task,
  textIn,
  touched,
} from './sql-database.js'
import { COPYING } from './sql-detach.js'
import { deleteCopy } from './sql-erase.js'
import { findSession, viewSession } from './sql-load.js'
import { insertSession, keyLockTask } from './sql-sessions.js'
import { copySessionState } from './sql-state.js'
import { restoreText } from './storable-text.js'
import { sessionExists, sessionNotFound, throughSeqOutOfRange } from './store-errors.js'

interface Fork {
  key: SessionKey
  newKey: SessionKey
  throughSeq: number | undefined
}

export async function forkSession(database: SqlDatabase, fork: Fork): Promise<Session> {
  const { dialect } = database
  const source = await database.read(() => findSession(fork.key))
  const last = lastSeq(source, fork)
  const hasArtifacts = await database.read(() => hasArtifactsTask(numberIn(source, 'pk')))
  if (last <= SHORT && !hasArtifacts) return database.write(() => forkTask(dialect, fork))
  await database.read(() => refuseExisting(fork.newKey))
  const hidden = { ...COPYING, sessionId: randomUUID() }
  const pk = await database.write(() => insertSession(dialect, hidden, {}))
  try {
    const pause = createPause()
    for (let after = 0; after < last; after += SLICE) {
      const through = Math.min(after + SLICE, last)
      await database.write(() => copyTask(dialect, { fromPk: numberIn(source, 'pk'), pk, after, through }))
      await pause()
    }
    await copyArtifacts(database, numberIn(source, 'pk'), pk)
    return await database.write(() => nameTask(dialect, fork, { fromPk: numberIn(source, 'pk'), pk, last }))
  } catch (error) {
    await deleteCopy(database, pk).catch(() => {})
    throw database.isDuplicate(error) ? sessionExists(fork.newKey) : error
  }
}

const SHORT = 200
const SLICE = 100

function lastSeq(source: Row, { throughSeq }: Fork): number {
  const total = numberIn(source, 'message_count')
  if (throughSeq !== undefined && throughSeq > total) throw throughSeqOutOfRange(throughSeq, total)
  return throughSeq ?? total
}

function* forkTask(dialect: Dialect, fork: Fork): Task<Session> {
  // The source may grow meanwhile, but not be deleted.
  const source = yield* findSession(fork.key, dialect.forKeyShare)
  const fromPk = numberIn(source, 'pk')
  const pk = yield* insertSession(dialect, fork.newKey, titleIn(source.title))
  const last = lastSeq(source, fork)
  for (let after = 0; after < last; after += SLICE)
    yield* copyTask(dialect, { fromPk, pk, after, through: Math.min(after + SLICE, last) })
  return yield* completeTask(dialect, fork.newKey, { fromPk, pk, last })
}

/** The source must still be the session that was copied. */
function* nameTask(dialect: Dialect, fork: Fork, copy: Copy): Task<Session> {
  const source = yield* findSession(fork.key, dialect.forKeyShare)
  if (numberIn(source, 'pk') !== copy.fromPk) throw sessionNotFound(fork.key)
  const { newKey } = fork
  yield* keyLockTask(dialect, newKey)
  yield* refuseExisting(newKey)
  // As a session that is created takes over the lease of its key.
  const [lease] = yield sql(
    `DELETE FROM lango_leases WHERE ${SESSION_KEY} RETURNING fence, holder, lease_until, lease_ms`,
    ...namesOf(newKey),
  )
  yield sql(
    `UPDATE lango_sessions SET app_name = ?, user_id = ?, session_id = ?, title = ?, search = ?,
      fence = ?, holder = ?, lease_until = ?, lease_ms = ?, created_at = ${dialect.now}, ${touched(dialect)} WHERE pk = ?`,
    ...namesOf(newKey),
    ...titleColumns(titleIn(source.title).title, newKey.sessionId),
    ...[numberIn(lease, 'fence'), textIn(lease, 'holder')],
    ...[numberIn(lease, 'lease_until'), numberIn(lease, 'lease_ms')],
    copy.pk,
  )
  return yield* completeTask(dialect, newKey, copy)
}

function* refuseExisting(key: SessionKey): Task<void> {
  const found = yield sql(`SELECT pk FROM lango_sessions WHERE ${SESSION_KEY}`, ...namesOf(key))
  if (found.length > 0) throw sessionExists(key)
}

/** The messages through `last` are copied. */
interface Copy {
  fromPk: number
  pk: number
  last: number
}

function* completeTask(dialect: Dialect, newKey: SessionKey, copy: Copy): Task<Session> {
  yield* copySessionState(copy.fromPk, copy.pk)
  yield* copyObservations(copy)
  yield* copyUnknownCalls(dialect, copy)
  return yield* viewSession(newKey, yield* findSession(newKey), {})
}

/**
 * What is known of the copied messages. An observation that was superseded by one of later messages is current again. The
 * index is built when it is needed.
 */
function* copyObservations({ fromPk, pk, last }: Copy): Task<void> {
  yield sql(
    `INSERT INTO lango_memory (session_pk, observed_seq, observations)
      SELECT CAST(? AS BIGINT), CASE WHEN observed_seq < ? THEN observed_seq ELSE CAST(? AS BIGINT) END, observations
      FROM lango_memory WHERE session_pk = ?`,
    ...[pk, last, last, fromPk],
  )
  yield sql(
    `INSERT INTO lango_observations (session_pk, number, kind, priority, text, time, from_seq, to_seq, superseded_by, origin, created_at)
      SELECT CAST(? AS BIGINT), number, kind, priority, text, time, from_seq, to_seq,
        (SELECT n.number FROM lango_observations n
          WHERE n.session_pk = o.session_pk AND n.number = o.superseded_by AND n.to_seq <= ?), origin, created_at
      FROM lango_observations o WHERE session_pk = ? AND to_seq <= ?`,
    ...[pk, last, fromPk, last],
  )
}

/**
 * Calls whose outcome is unknown may have taken effect: equal ones of the copy must not repeat it unasked. Those of
 * messages that are not copied are left out; of a call whose message is in another session that is not known.
 */
function* copyUnknownCalls(dialect: Dialect, { fromPk, pk, last }: Copy): Task<void> {
  const calls = yield sql(
    `SELECT run_id, call_key, id FROM lango_tool_calls WHERE session_pk = ? AND status = 'unknown'`,
    fromPk,
  )
  if (calls.length === 0) return
  const ids = new Map(calls.map(row => [row, messageIds(restoreText(textIn(row, 'id')))]))
  const messages = yield sql(
    `SELECT event_id, seq FROM ${MESSAGES} AS lango_messages
      WHERE session_pk = ? AND event_id IS NOT NULL AND event_id ${dialect.among('TEXT')}`,
    fromPk,
    JSON.stringify([...ids.values()].flat()),
  )
  const seqs = new Map(messages.map(row => [textIn(row, 'event_id'), numberIn(row, 'seq')]))
  for (const [row, candidates] of ids) {
    const id = candidates.find(candidate => seqs.has(candidate))
    if (id !== undefined && (seqs.get(id) ?? 0) > last) continue
    yield sql(COPY_CALL, pk, fromPk, textIn(row, 'run_id'), textIn(row, 'call_key'))
  }
  yield sql(
    `UPDATE lango_sessions SET call_count = COALESCE((SELECT max(number) FROM lango_tool_calls WHERE session_pk = ?), 0)
      WHERE pk = ?`,
    ...[pk, pk],
  )
}

/** The ids that the message of a call may have, as they are indexed, longest first: both ids may contain a slash. */
function messageIds(id: string): string[] {
  const parts = id.split('/').slice(0, MOST_PARTS)
  return parts.map((_, index) => indexedId(parts.slice(0, parts.length - index).join('/'))).slice(1)
}

/** More slashes than ids of messages have. */
const MOST_PARTS = 32

const CALL_COLUMNS = `run_id, call_key, number, id, call_id, tool, effect, digest, args, ordinal, attempt, status, result,
  actions, answer, changed_at`
const COPY_CALL = `INSERT INTO lango_tool_calls (session_pk, ${CALL_COLUMNS})
  SELECT CAST(? AS BIGINT), ${CALL_COLUMNS} FROM lango_tool_calls
    WHERE session_pk = ? AND run_id = ? AND call_key = ?`

interface Slice {
  fromPk: number
  pk: number
  after: number
  through: number
}

/** Copies messages as entries of the new log, which have digests of their own, and counts them. */
function* copyTask(dialect: Dialect, { fromPk, pk, after, through }: Slice): Task<void> {
  const rows = yield sql(READ_SLICE, fromPk, after, through)
  const copies = rows.map(row => {
    const { seq, tokens: _tokens, ...message } = rowToMessage(row)
    return { seq, ...entryToRow({ kind: 'message', message }) }
  })
  for (let start = 0; start < copies.length; ) {
    // Few texts, whatever the number of messages.
    const size = ROWS_PER_STATEMENT.find(most => most <= copies.length - start) ?? 1
    const some = copies.slice(start, start + size)
    yield sql(
      `INSERT INTO lango_entries (session_pk, seq, at, message_pk, message_seq, ${CONTENT_COLUMNS.join(', ')})
        SELECT s.pk, v.column1, ${dialect.now}, s.pk, v.column1, ${COPIED} FROM (VALUES ${some.map(() => PLACES).join(', ')}) AS v
          CROSS JOIN lango_sessions s WHERE s.pk = ?`,
      ...some.flatMap(({ seq, values }) => [seq, ...values]),
      pk,
    )
    start += size
  }
  const tokens = copies.reduce((all, { message }) => all + (message?.tokens ?? 0), 0)
  const turn = copies.findLast(({ message }) => ((message?.flags ?? 0) & STARTS_TURN) !== 0)
  yield sql(
    `UPDATE lango_sessions SET entry_count = entry_count + ?, message_count = message_count + ?,
      token_total = token_total + ?, turn_seq = COALESCE(CAST(? AS BIGINT), turn_seq) WHERE pk = ?`,
    ...[copies.length, copies.length, tokens, turn?.seq ?? null, pk],
  )
}

const READ_SLICE = `SELECT seq, ${MESSAGE_COLUMNS.join(', ')} FROM ${MESSAGES} AS lango_messages
  WHERE session_pk = ? AND seq > ? AND seq <= ? ORDER BY seq`
const ROWS_PER_STATEMENT = [32, 8, 1]
const PLACES = `(CAST(? AS BIGINT), ${CONTENT_PLACES})`
const COPIED = CONTENT_COLUMNS.map((_, index) => `v.column${index + 2}`).join(', ')
