/**
 * The append: guard, number, message, counters and state in one transaction whose cost does not depend on
 * the length of the history.
 */
import type { SessionKey } from '../session/message.js'
import { MESSAGE_COLUMNS, type MessageRow, STARTS_TURN } from './rows.js'
import {
  type Dialect,
  namesOf,
  numberIn,
  type Row,
  SESSION_KEY,
  sql,
  type Task,
  touched,
} from './sql-database.js'
import { applyState } from './sql-state.js'
import type { StateChange } from './state-scopes.js'
import { leaseLost, sessionBusy, sessionNotFound } from './store-errors.js'

export interface Append {
  key: SessionKey
  /** The session of the lease, when the message goes to one that is nested in it. */
  leaseOf?: SessionKey | undefined
  /** The session, when the transaction has locked it already. */
  locked?: Row | undefined
  row: MessageRow
  changes: readonly StateChange[]
  fence: number | undefined
}

/** Several messages of one session. */
export interface BulkAppend extends Omit<Append, 'row'> {
  rows: readonly MessageRow[]
}

/** A change of state alone. */
export type StateUpdate = Omit<Append, 'row'>

export interface AppendSql {
  /** The whole append, replacing included. */
  appendTask(append: Append): Task<number>
  /** Appends all rows in order, and then applies the state. */
  appendAllTask(append: BulkAppend): Task<number[]>
  /** Locks a session for writing and checks that the caller may write. */
  lockTask(key: SessionKey, fence: number | undefined, leaseOf?: SessionKey): Task<Row>
  updateStateTask(change: StateUpdate): Task<void>
}

export function appendSql(dialect: Dialect): AppendSql {
  const texts = appendTexts(dialect)

  const lockTask = (key: SessionKey, fence: number | undefined, leaseOf = key) =>
    lockSession(dialect, texts, key, fence, leaseOf)

  function* appendTask({ key, row, changes, fence, leaseOf, locked }: Append): Task<number> {
    const session = locked ?? (yield* lockTask(key, fence, leaseOf))
    const pk = numberIn(session, 'pk')
    const next = numberIn(session, 'message_count') + 1
    const isNew = (yield sql(texts.insert, pk, next, ...row.values)).length > 0
    const seq = isNew ? next : yield* replaceTask(texts, pk, row)
    if (isNew) {
      const turnSeq = (row.flags & STARTS_TURN) !== 0 ? seq : numberIn(session, 'turn_seq')
      yield sql(texts.count, seq, row.tokens, turnSeq, pk)
    }
    yield* applyState(key, pk, changes)
    return seq
  }

  function* appendAllTask({ rows, ...append }: BulkAppend): Task<number[]> {
    const { key, changes, fence } = append
    const session = yield* lockTask(key, fence)
    const pk = numberIn(session, 'pk')
    const seqs: number[] = []
    if (yield* replacesAny(texts.findEvents, pk, rows)) {
      for (const row of rows) seqs.push(yield* appendTask({ ...append, row, changes: [] }))
    } else {
      const before = numberIn(session, 'message_count')
      seqs.push(...rows.map((_, index) => before + 1 + index))
      yield* insertAll(pk, before, rows)
      const turn = rows.findLastIndex(row => (row.flags & STARTS_TURN) !== 0)
      const turnSeq = turn < 0 ? numberIn(session, 'turn_seq') : before + 1 + turn
      const tokens = rows.reduce((all, row) => all + row.tokens, 0)
      yield sql(texts.count, before + rows.length, tokens, turnSeq, pk)
    }
    yield* applyState(key, pk, changes)
    return seqs
  }

  function* updateStateTask({ key, changes, fence, leaseOf }: StateUpdate): Task<void> {
    const pk = numberIn(yield* lockTask(key, fence, leaseOf), 'pk')
    yield* applyState(key, pk, changes)
    yield sql(texts.touch, pk)
  }

  return { appendTask, appendAllTask, lockTask, updateStateTask }
}

/** Replaces the message that has the id of the row. */
function* replaceTask(texts: AppendTexts, pk: number, row: MessageRow): Task<number> {
  const [same] = yield sql(texts.findEvent, pk, row.eventId)
  const seq = numberIn(same, 'seq')
  yield sql(texts.replace, ...row.values, pk, seq)
  yield sql(texts.recount, row.tokens - numberIn(same, 'tokens'), pk, pk)
  yield sql(texts.indexAgain, seq - 1, pk, seq)
  return seq
}

/**
 * With a fence the ticket is locked before the session, as in deleting a session. Without one the session comes
 * first: a lease that is taken meanwhile is then either visible, or granted after this write.
 */
function* lockSession(
  { tickets }: Dialect,
  texts: AppendTexts,
  key: SessionKey,
  fence: number | undefined,
  leaseOf: SessionKey,
): Task<Row> {
  const names = namesOf(key)
  if (fence !== undefined) {
    const session = yield* tickets.lockSession(names, fence, namesOf(leaseOf))
    if (session === undefined) throw sessionNotFound(key)
    if (session.ticket === null) throw leaseLost(leaseOf, fence)
    return session
  }
  const [session] = yield sql(texts.lockSession, ...names)
  if (session === undefined) throw sessionNotFound(key)
  if (yield* isTaken(texts, names)) throw sessionBusy(key)
  return session
}

/** A writer without a lease takes the session from holders that are late: they find their tickets gone. */
function* isTaken(texts: AppendTexts, names: readonly string[]): Task<boolean> {
  if ((yield sql(texts.anyTicket, ...names)).length === 0) return false
  yield sql(texts.deleteExpired, ...names)
  return (yield sql(texts.anyTicket, ...names)).length > 0
}

/** Whether a row has the id of a stored message, or of a row before it. */
function* replacesAny(findEvents: string, pk: number, rows: readonly MessageRow[]): Task<boolean> {
  const ids = rows.flatMap(({ eventId }) => eventId ?? [])
  if (ids.length === 0) return false
  return new Set(ids).size < ids.length || (yield sql(findEvents, pk, JSON.stringify(ids))).length > 0
}

/** Few statement texts, whatever the number of rows: full statements first, then single rows. */
function* insertAll(pk: number, before: number, rows: readonly MessageRow[]): Task<void> {
  for (let start = 0; start < rows.length; ) {
    const some = rows.slice(start, start + ROWS_PER_STATEMENT)
    const together = some.length === ROWS_PER_STATEMENT ? some : some.slice(0, 1)
    const values = together.flatMap((row, index) => [pk, before + 1 + start + index, ...row.values])
    yield sql(
      `INSERT INTO lango_messages (session_pk, seq, ${COLUMNS}) VALUES ${together.map(() => `(?, ?, ${PLACES})`).join(', ')}`,
      ...values,
    )
    start += together.length
  }
}

const ROWS_PER_STATEMENT = 16

const COLUMNS = MESSAGE_COLUMNS.join(', ')
const PLACES = MESSAGE_COLUMNS.map(() => '?').join(', ')

/** The columns of a locked session. */
export const LOCKED_COLUMNS = 'pk, message_count, turn_seq, call_count'

type AppendTexts = ReturnType<typeof appendTexts>

function appendTexts(dialect: Dialect) {
  const { now, forUpdate, eachValue } = dialect
  const touch = touched(dialect)
  return {
    anyTicket: `SELECT id FROM lango_leases WHERE ${SESSION_KEY} LIMIT 1`,
    deleteExpired: `DELETE FROM lango_leases WHERE ${SESSION_KEY} AND expires_at <= ${now}`,
    lockSession: `SELECT ${LOCKED_COLUMNS} FROM lango_sessions WHERE ${SESSION_KEY}${forUpdate}`,
    findEvent: 'SELECT seq, tokens FROM lango_messages WHERE session_pk = ? AND event_id = ?',
    findEvents: `SELECT seq FROM lango_messages WHERE session_pk = ? AND event_id IN (SELECT value FROM ${eachValue}) LIMIT 1`,
    // No row when the session has a message with this id.
    insert: `INSERT INTO lango_messages (session_pk, seq, ${COLUMNS}) VALUES (?, ?, ${PLACES})
      ON CONFLICT (session_pk, event_id) WHERE event_id IS NOT NULL DO NOTHING RETURNING seq`,
    count: `UPDATE lango_sessions SET message_count = ?, token_total = token_total + ?, turn_seq = ?,
      ${touch} WHERE pk = ?`,
    replace: `UPDATE lango_messages SET ${MESSAGE_COLUMNS.map(column => `${column} = ?`).join(', ')}
      WHERE session_pk = ? AND seq = ?`,
    // Replacing may have made or unmade the last message by a person.
    recount: `UPDATE lango_sessions SET token_total = token_total + ?, ${touch},
      turn_seq = COALESCE((SELECT max(seq) FROM lango_messages WHERE session_pk = ? AND flags & ${STARTS_TURN} <> 0), 0)
      WHERE pk = ?`,
    // Memory reads the message again.
    indexAgain: 'UPDATE lango_memory SET indexed_seq = ? WHERE session_pk = ? AND indexed_seq >= ?',
    touch: `UPDATE lango_sessions SET ${touch} WHERE pk = ?`,
  }
}
