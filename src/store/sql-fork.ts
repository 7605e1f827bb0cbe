/**
 * Copies of sessions. A short one is copied in one transaction. A long one is copied in slices to a session that nobody
 * can name, so that the event loop stays free, and gets its name when it is complete.
 */
import { randomUUID } from 'node:crypto'
import { createPause } from '../base/pause.js'
import type { Session, SessionKey } from '../session/message.js'
import { titleColumns, titleIn } from './listing.js'
import { MESSAGE_COLUMNS, STARTS_TURN } from './rows.js'
import { copyArtifacts, hasArtifactsTask } from './sql-artifacts.js'
import { type Dialect, numberIn, type Row, type SqlDatabase, sql, type Task } from './sql-database.js'
import { COPYING } from './sql-detach.js'
import { deleteCopy } from './sql-erase.js'
import { findSession, viewSession } from './sql-load.js'
import { insertSession } from './sql-sessions.js'
import { copySessionState } from './sql-state.js'
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
      await database.write(() => copyTask(numberIn(source, 'pk'), pk, after, through))
      await pause()
    }
    await copyArtifacts(database, numberIn(source, 'pk'), pk)
    return await database.write(() => nameTask(dialect, fork, numberIn(source, 'pk'), pk))
  } catch (error) {
    await deleteCopy(database, pk).catch(() => {})
    throw database.isDuplicate(error) ? sessionExists(fork.newKey) : error
  }
}

const SHORT = 1000
const SLICE = 200

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
  yield* copyTask(fromPk, pk, 0, lastSeq(source, fork))
  return yield* completeTask(fork, fromPk, pk)
}

/** The source must still be the session that was copied. */
function* nameTask(dialect: Dialect, fork: Fork, fromPk: number, pk: number): Task<Session> {
  const source = yield* findSession(fork.key, dialect.forKeyShare)
  if (numberIn(source, 'pk') !== fromPk) throw sessionNotFound(fork.key)
  yield* refuseExisting(fork.newKey)
  const { appName, userId, sessionId } = fork.newKey
  yield sql(
    `UPDATE lango_sessions SET app_name = ?, user_id = ?, session_id = ?, title = ?, search = ?,
      created_at = ${dialect.now}, updated_at = ${dialect.now} WHERE pk = ?`,
    appName,
    userId,
    sessionId,
    ...titleColumns(titleIn(source.title).title, sessionId),
    pk,
  )
  return yield* completeTask(fork, fromPk, pk)
}

function* refuseExisting(key: SessionKey): Task<void> {
  const found = yield sql(
    'SELECT pk FROM lango_sessions WHERE app_name = ? AND user_id = ? AND session_id = ?',
    key.appName,
    key.userId,
    key.sessionId,
  )
  if (found.length > 0) throw sessionExists(key)
}

function* completeTask({ newKey, throughSeq }: Fork, fromPk: number, pk: number): Task<Session> {
  yield* copySessionState(fromPk, pk)
  yield* copyObservations(fromPk, pk, throughSeq)
  return yield* viewSession(newKey, yield* findSession(newKey), {})
}

/**
 * What is known of the copied messages. An observation that was superseded by one of later messages is current again. The
 * index is built when it is needed.
 */
function* copyObservations(fromPk: number, pk: number, throughSeq: number | undefined): Task<void> {
  const last = throughSeq ?? Number.MAX_SAFE_INTEGER
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

/** Copies messages and counts them. Each slice counts its own, because counting a long session holds the event loop. */
function* copyTask(fromPk: number, pk: number, after: number, through: number): Task<void> {
  const columns = MESSAGE_COLUMNS.join(', ')
  yield sql(
    `INSERT INTO lango_messages (session_pk, seq, ${columns}) SELECT CAST(? AS BIGINT), seq, ${columns}
      FROM lango_messages WHERE session_pk = ? AND seq > ? AND seq <= ? ORDER BY seq`,
    ...[pk, fromPk, after, through],
  )
  const slice = [pk, after, through]
  yield sql(COUNT_COPIED, ...slice, ...slice, ...slice, pk)
}

const OF_SLICE = 'FROM lango_messages WHERE session_pk = ? AND seq > ? AND seq <= ?'
const COUNT_COPIED = `UPDATE lango_sessions SET
  message_count = message_count + (SELECT count(*) ${OF_SLICE}),
  token_total = token_total + (SELECT COALESCE(sum(tokens), 0) ${OF_SLICE}),
  turn_seq = COALESCE((SELECT max(seq) ${OF_SLICE} AND flags & ${STARTS_TURN} <> 0), turn_seq)
  WHERE pk = ?`
