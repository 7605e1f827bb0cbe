/**
 * Appending entries. The first statement of a batch changes the session's row, if the conditions of the write hold, and
 * marks that row with an id of the write. Every later statement takes what it stores from the row with that mark: so
 * nothing is stored when a condition does not hold, and no statement needs the answer to another one.
 */
import { invariant } from '../../errors.js'
import type { AlsoWritten, LogWrite, NewEntry } from '../../session/log-store.js'
import type { SessionKey } from '../../session/message.js'
import { STARTS_TURN } from '../rows.js'
import {
  type Dialect,
  namesOf,
  repeatableSql,
  SESSION_KEY,
  type SqlValue,
  type Statement,
  sql,
  touched,
} from '../sql-database.js'
import { STATE_TABLES } from '../sql-state.js'
import { type StateChange, splitDelta } from '../state-scopes.js'
import { storableText } from '../storable-text.js'
import {
  CONTENT_COLUMNS,
  CONTENT_PLACES,
  digestOfWrite,
  type EntryRow,
  entryToRow,
  keyText,
} from './log-rows.js'

/** A write as rows, and the row of the session that it goes to. */
export interface PreparedWrite {
  readonly pk: number
  /** The mark of the write. A write that is sent again has another one. */
  readonly id: string
  readonly rows: readonly EntryRow[]
  readonly under: { readonly fence: number; readonly number: number; readonly digest: string } | undefined
  /** Messages by session: first those of the log's own session. */
  readonly sessions: readonly SessionMessages[]
  readonly changes: readonly StateChange[]
  readonly also: AlsoWritten
}

/** The messages of a write that belong to one session. */
interface SessionMessages {
  readonly key: SessionKey | undefined
  readonly count: number
  readonly tokens: number
  /** The last one that starts a turn, counted from 1; 0 when there is none. */
  readonly turn: number
}

export function prepareWrite(pk: number, id: string, { under, entries, also = {} }: LogWrite): PreparedWrite {
  const rows = entries.map(entryToRow)
  invariant(under || !(also.run || also.release), 'a run and a lease change under that lease only')
  return {
    pk,
    id,
    rows,
    under: under && { ...under, digest: `${under.fence}:${digestOfWrite(rows)}` },
    sessions: [undefined, ...nestedKeys(entries)].map(key => messagesOf(rows, key)),
    changes: splitDelta('state', also.state),
    also,
  }
}

function nestedKeys(entries: readonly NewEntry[]): SessionKey[] {
  const keys = entries.flatMap(({ nested }) => (nested ? [nested] : []))
  return [...new Map(keys.map(key => [keyText(key), key])).values()]
}

function messagesOf(rows: readonly EntryRow[], key: SessionKey | undefined): SessionMessages {
  const own = rows.filter(({ entry, message }) => message && isOf(entry, key)).map(({ message }) => message)
  const turn = own.findLastIndex(message => ((message?.flags ?? 0) & STARTS_TURN) !== 0) + 1
  const tokens = own.reduce((all, message) => all + (message?.tokens ?? 0), 0)
  return { key, count: own.length, tokens, turn }
}

function isOf({ nested }: NewEntry, key: SessionKey | undefined): boolean {
  if (nested === undefined || key === undefined) return nested === key
  return keyText(nested) === keyText(key)
}

/** Conditions of a write beyond its lease. */
export interface WriteConditions {
  /** The posts that the holder has read. */
  readonly posts?: number
  /** Statements that lock what a condition looks at, and that condition. */
  readonly lock?: readonly Statement[]
  readonly where?: { readonly text: string; readonly parameters: readonly SqlValue[] }
}

/** The rows of the first statement are the session's row; it has none when nothing was stored. */
export function appendBatch(
  dialect: Dialect,
  write: PreparedWrite,
  conditions: WriteConditions = {},
): { statements: readonly Statement[]; session: number } {
  const lock = conditions.lock ?? []
  const statements = [
    ...lock,
    sessionStatement(dialect, write, conditions),
    ...write.sessions.slice(1).map(nested => nestedStatement(dialect, write, nested)),
    ...entryStatements(dialect, write),
    ...write.changes.map(change => stateStatement(write, change)),
    ...(write.also.run ? [runStatement(write, write.also.run)] : []),
  ]
  return { statements, session: lock.length }
}

const COUNTERS = `entry_count = entry_count + ?, message_count = message_count + ?, token_total = token_total + ?,
  turn_seq = CASE WHEN CAST(? AS BIGINT) = 0 THEN turn_seq ELSE message_count + CAST(? AS BIGINT) END, write_id = ?`

const RETURNED = 'RETURNING pk, entry_count, message_count, post_count'

function sessionStatement(
  dialect: Dialect,
  { pk, id, rows, under, sessions, also }: PreparedWrite,
  { posts, where }: WriteConditions,
): Statement {
  const { count = 0, tokens = 0, turn = 0 } = sessions[0] ?? {}
  const isEnd = also.run?.state === 'finished'
  const counters = [rows.length, count, tokens, turn, turn, id]
  const further = [
    ...(posts === undefined ? [] : ['AND post_count = ?']),
    ...(where === undefined ? [] : [`AND ${where.text}`]),
  ].join(' ')
  const parameters = [...(posts === undefined ? [] : [posts]), ...(where?.parameters ?? [])]
  if (!under) {
    const text = `UPDATE lango_sessions SET ${COUNTERS}, ${touched(dialect)}
      WHERE pk = ? AND lease_until <= ${dialect.now} ${further} ${RETURNED}`
    return sql(text, ...counters, pk, ...parameters)
  }
  const { fence, number, digest } = under
  const lease = also.release ? RELEASED : `lease_until = ${dialect.now} + lease_ms`
  const text = `UPDATE lango_sessions SET ${COUNTERS}, ${touched(dialect)}, ${lease}, write_number = ?, write_digest = ?,
      write_entry = entry_count + 1${isEnd ? ', open_runs = open_runs - 1' : ''}
    WHERE pk = ? AND fence = ? AND write_number = ? ${further} ${RETURNED}`
  return repeatableSql(text, ...counters, number, digest, pk, fence, number - 1, ...parameters)
}

/** The fence goes, too: nothing can be written under it any more. */
export const RELEASED = "lease_until = 0, holder = '', fence = 0"

/** The row of a session that a write has marked. */
const MARKED = 'FROM lango_sessions s WHERE s.pk = ? AND s.write_id = ?'

/** A nested session is locked after the session of the log. It needs no lease of its own. */
function nestedStatement(
  dialect: Dialect,
  { pk, id }: PreparedWrite,
  { key, count, tokens, turn }: SessionMessages,
): Statement {
  return sql(
    `UPDATE lango_sessions SET ${COUNTERS}, ${touched(dialect)}
      WHERE ${SESSION_KEY} AND EXISTS (SELECT 1 ${MARKED}) RETURNING message_count`,
    ...[0, count, tokens, turn, turn, id],
    ...(key ? namesOf(key) : []),
    ...[pk, id],
  )
}

function entryStatements(dialect: Dialect, write: PreparedWrite): Statement[] {
  const left = new Map(write.sessions.map(({ key, count }) => [key && keyText(key), count]))
  return write.rows.map((row, index) => {
    const name = row.entry.nested && keyText(row.entry.nested)
    const messages = left.get(name) ?? 0
    if (row.message) left.set(name, messages - 1)
    return entryStatement(dialect, write, row, {
      entriesAfter: write.rows.length - 1 - index,
      messagesAfter: row.message ? messages - 1 : undefined,
    })
  })
}

/** `…After`: how many entries and messages of the write come after this one. */
function entryStatement(
  dialect: Dialect,
  { pk, id }: PreparedWrite,
  { entry, values }: EntryRow,
  { entriesAfter, messagesAfter }: { entriesAfter: number; messagesAfter: number | undefined },
): Statement {
  const { runId, nested } = entry
  const session = nested ? 'n' : 's'
  return sql(
    `INSERT INTO lango_entries (session_pk, seq, at, run_pk, nested_pk, message_seq, ${CONTENT_COLUMNS.join(', ')})
      SELECT s.pk, s.entry_count - CAST(? AS BIGINT), ${dialect.now},
        ${runId === undefined ? 'NULL' : '(SELECT r.pk FROM lango_runs r WHERE r.run_id = ?)'},
        ${nested ? 'n.pk' : '0'},
        ${messagesAfter === undefined ? 'CAST(NULL AS BIGINT)' : `${session}.message_count - CAST(? AS BIGINT)`},
        ${CONTENT_PLACES}
      FROM lango_sessions s ${nested ? NESTED : ''} WHERE s.pk = ? AND s.write_id = ?`,
    entriesAfter,
    ...(runId === undefined ? [] : [runId]),
    ...(messagesAfter === undefined ? [] : [messagesAfter]),
    ...values,
    ...(nested ? namesOf(nested) : []),
    ...[pk, id],
  )
}

/** A nested session that was deleted has no row here: `nested_pk` is then NULL, which its column refuses. */
const NESTED = `LEFT JOIN lango_sessions n ON n.app_name = ? AND n.user_id = ? AND n.session_id = ?
  AND n.write_id = s.write_id`

function stateStatement({ pk, id }: PreparedWrite, { scope, key, json }: StateChange): Statement {
  const { table, columns } = STATE_TABLES[scope]
  const name = storableText(key)
  const owners = columns.map(column => (column === 'session_pk' ? 's.pk' : `s.${column}`))
  if (json === undefined) {
    const isOwner = columns.map((column, index) => `${table}.${column} = ${owners[index]}`).join(' AND ')
    return sql(
      `DELETE FROM ${table} WHERE key = ? AND EXISTS (SELECT 1 ${MARKED} AND ${isOwner})`,
      name,
      pk,
      id,
    )
  }
  return sql(
    `INSERT INTO ${table} (${columns.join(', ')}, key, value)
      SELECT ${owners.join(', ')}, CAST(? AS TEXT), CAST(? AS TEXT) ${MARKED}
      ON CONFLICT (${columns.join(', ')}, key) DO UPDATE SET value = excluded.value`,
    name,
    json,
    pk,
    id,
  )
}

/** Posts that came before are noted: the pause of a run is refused when there are others. */
function runStatement({ pk, id }: PreparedWrite, run: NonNullable<AlsoWritten['run']>): Statement {
  const isEnd = run.state === 'finished'
  return sql(
    `UPDATE lango_runs SET state = ?, finish_reason = ?, posted_seq = 0
      ${isEnd ? `, last_seq = (SELECT s.entry_count ${MARKED}), input = NULL` : ''}
      WHERE run_id = ? AND EXISTS (SELECT 1 ${MARKED})`,
    ...[run.state, run.finishReason ?? null],
    ...(isEnd ? [pk, id] : []),
    ...[run.runId, pk, id],
  )
}
