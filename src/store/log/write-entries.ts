/**
 * Appending entries. The first statement of a batch changes the session's row, if the conditions of the write hold, and
 * marks that row with an id of the write. Every later statement takes what it stores from the row with that mark: so
 * nothing is stored when a condition does not hold, and no statement needs the answer to another one.
 */
import type { SessionKey } from '../../session/message.js'
import { MESSAGES, STARTS_TURN } from '../rows.js'
import { type CallRow, callStatements } from '../sql-calls.js'
import {
  type Dialect,
  type Mark,
  namesOf,
  repeatableSql,
  SESSION_KEY,
  type SqlValue,
  type Statement,
  sql,
  touched,
} from '../sql-database.js'
import { recordStatements, runStatements, stateStatement } from './also-written.js'
import { CONTENT_COLUMNS, CONTENT_PLACES, type EntryRow, keyText } from './log-rows.js'
import {
  isOf,
  messagesOf,
  type PreparedWrite,
  type Replaced,
  type SessionMessages,
} from './prepared-write.js'

/** Conditions of a write beyond its lease. */
export interface WriteConditions {
  /** The posts that the holder has read. */
  readonly posts?: number
  /** Statements that lock what a condition looks at, and that condition. */
  readonly lock?: readonly Statement[]
  readonly where?: { readonly text: string; readonly parameters: readonly SqlValue[] }
}

/** The rows of the statement at `session` are the session's row; it has none when nothing was stored. */
export interface Batch {
  readonly statements: readonly Statement[]
  readonly session: number
  /** The first statement of the ledger, one for each change. */
  readonly calls: number
}

export function appendBatch(dialect: Dialect, write: PreparedWrite, conditions: WriteConditions = {}): Batch {
  const lock = conditions.lock ?? []
  const mark = markOf(write)
  const before = [
    ...lock,
    sessionStatement(dialect, write, conditions),
    ...write.sessions.slice(1).map(nested => nestedStatement(dialect, write, nested, mark)),
    ...entryStatements(dialect, write, mark),
    ...write.changes.map(change => stateStatement(write, change, mark)),
  ]
  const statements = [
    ...before,
    ...callStatements(dialect, mark, write.runId ?? '', write.calls),
    ...runStatements(write, mark),
    ...recordStatements(dialect, write, mark),
  ]
  return { statements, session: lock.length, calls: before.length }
}

function markOf({ pk, id }: PreparedWrite): Mark {
  return { text: 's.pk = ? AND s.write_id = ?', parameters: [pk, id] }
}

/** `counted`: what the messages of a write add to the counters of their session. Parameters of `COUNTERS`. */
export function counted(write: PreparedWrite, { key, count, tokens, turn }: SessionMessages): SqlValue[] {
  const entries = key ? 0 : write.rows.length
  const replaced = write.replaced.filter(({ nested }) => isOf({ nested }, key))
  const fewer = replaced.reduce((all, { tokens: old }) => all + old, 0)
  return [entries, count - replaced.length, tokens - fewer, turn, turn, write.id]
}

export const COUNTERS = `entry_count = entry_count + ?, message_count = message_count + ?, token_total = token_total + ?,
  turn_seq = CASE WHEN CAST(? AS BIGINT) = 0 THEN turn_seq ELSE message_count + CAST(? AS BIGINT) END, write_id = ?`

const RETURNED = 'RETURNING pk, entry_count, message_count, post_count'

function sessionStatement(
  dialect: Dialect,
  write: PreparedWrite,
  { posts, where }: WriteConditions,
): Statement {
  const { pk, under, sessions, also, runId, calls } = write
  const [own = messagesOf([], undefined)] = sessions
  const isEnd = also.run?.state === 'finished'
  const sets: string[] = [COUNTERS, touched(dialect)]
  const values: SqlValue[] = counted(write, own)
  const add = (text: string, ...parameters: SqlValue[]) => {
    sets.push(text)
    values.push(...parameters)
  }
  if (calls.length > 0) add('call_count = call_count + ?', calls.length)
  if (also.parts) add('part_count = part_count + ?', also.parts.added.length)
  if (isEnd) add('open_runs = open_runs - 1')
  const conditions = ['pk = ?']
  const parameters: SqlValue[] = [pk]
  const onlyIf = (text: string, ...given: readonly SqlValue[]) => {
    conditions.push(text)
    parameters.push(...given)
  }
  if (under) {
    add(also.release ? RELEASED : `lease_until = ${dialect.now} + lease_ms`)
    onlyIf('fence = ?', under.fence)
  } else {
    // The holder of a lease that has expired finds it gone.
    add(RELEASED)
    onlyIf(`lease_until <= ${dialect.now}`)
  }
  if (under?.number !== undefined) {
    add('write_number = ?, write_digest = ?, write_entry = entry_count + 1', under.number, under.digest)
    onlyIf('write_number = ?', under.number - 1)
  }
  if (runId !== undefined && !write.mayHaveEnded) onlyIf(IS_OPEN, runId)
  if (also.parts) onlyIf('part_count = ?', also.parts.before)
  if (posts !== undefined) onlyIf('post_count = ?', posts)
  for (const { callKey, runId: owner } of earlierCalls(calls)) onlyIf(HAS_CALL, owner, callKey)
  if (where) onlyIf(where.text, ...where.parameters)
  const text = `UPDATE lango_sessions SET ${sets.join(', ')} WHERE ${conditions.join(' AND ')} ${RETURNED}`
  const statement = under?.number === undefined ? sql : repeatableSql
  return statement(text, ...values, ...parameters)
}

/** The run of a write has not ended. */
const IS_OPEN = `EXISTS (SELECT 1 FROM lango_runs r WHERE r.run_id = ? AND r.session_pk = lango_sessions.pk
  AND r.state <> 'finished')`

/** A change without the facts of its call is one of a call in the ledger. */
const HAS_CALL = `EXISTS (SELECT 1 FROM lango_tool_calls c WHERE c.run_id = ? AND c.call_key = ?
  AND c.session_pk = lango_sessions.pk)`

/** The calls that must be in the ledger: those that are changed and not added before in the same write. */
export function earlierCalls(calls: readonly CallRow[]): CallRow[] {
  const nameOf = ({ runId, callKey }: CallRow) => JSON.stringify([runId, callKey])
  return calls.filter(
    (call, index) =>
      !call.facts && !calls.slice(0, index).some(other => other.facts && nameOf(other) === nameOf(call)),
  )
}

/** The fence goes, too: nothing can be written under it any more. */
export const RELEASED = "lease_until = 0, holder = '', fence = 0"

/** A nested session is locked after the session of the log. It needs no lease of its own. */
function nestedStatement(
  dialect: Dialect,
  write: PreparedWrite,
  messages: SessionMessages,
  mark: Mark,
): Statement {
  return sql(
    `UPDATE lango_sessions SET ${COUNTERS}, ${touched(dialect)}
      WHERE ${SESSION_KEY} AND EXISTS (SELECT 1 FROM lango_sessions s WHERE ${mark.text}) RETURNING message_count`,
    ...counted(write, messages),
    ...(messages.key ? namesOf(messages.key) : []),
    ...mark.parameters,
  )
}

/** All entries, and what the messages that they replace require. */
export function entryStatements(dialect: Dialect, write: PreparedWrite, mark: Mark): Statement[] {
  const places = placesOf(write)
  const inserts = write.sessions.flatMap(({ key }) => {
    const own = places.filter(({ row }) => isOf(row.entry, key))
    const chunks: Statement[] = []
    for (let start = 0; start < own.length; ) {
      // Few texts, whatever the number of entries: large statements first, then smaller ones.
      const size = ROWS_PER_STATEMENT.find(most => most <= own.length - start) ?? 1
      chunks.push(insertStatement(dialect, own.slice(start, start + size), key, mark))
      start += size
    }
    return chunks
  })
  const { replaced } = write
  if (replaced.length === 0) return inserts
  return [
    ...replaced.map(each => unnumberStatement(each, mark)),
    ...inserts,
    ...afterReplacing(replaced, mark),
  ]
}

const ROWS_PER_STATEMENT = [16, 4, 3, 2, 1]

/** Where an entry of a write comes. */
interface EntryPlace {
  readonly row: EntryRow
  /** How many entries of the write come after it. */
  readonly entriesAfter: number
  /** How many new messages of its session come after it. */
  readonly messagesAfter: number | null
  /** The number of the message that it replaces. */
  readonly fixed: number | null
}

function placesOf({ rows, replaced }: PreparedWrite): EntryPlace[] {
  const after = new Map<string, number>()
  return rows
    .toReversed()
    .map((row, entriesAfter) => {
      const { entry, message } = row
      const name = entry.nested ? keyText(entry.nested) : ''
      const old = replacedBy(row, replaced)
      if (!message || old) return { row, entriesAfter, messagesAfter: null, fixed: old?.seq ?? null }
      const messagesAfter = after.get(name) ?? 0
      after.set(name, messagesAfter + 1)
      return { row, entriesAfter, messagesAfter, fixed: null }
    })
    .reverse()
}

/** The stored message that the message of an entry replaces. */
export function replacedBy(
  { entry, message }: EntryRow,
  replaced: readonly Replaced[],
): Replaced | undefined {
  return replaced.find(({ eventId, nested }) => eventId === message?.eventId && isOf(entry, nested))
}

function insertStatement(
  dialect: Dialect,
  places: readonly EntryPlace[],
  nested: SessionKey | undefined,
  mark: Mark,
): Statement {
  return sql(
    insertText(dialect, places.length, nested !== undefined, mark.text),
    ...places.flatMap(({ row, entriesAfter, messagesAfter, fixed }) => [
      ...[entriesAfter, row.entry.runId ?? null, messagesAfter, fixed],
      ...row.values,
    ]),
    ...(nested ? namesOf(nested) : []),
    ...mark.parameters,
  )
}

/** The texts of inserts: each is one of few, and long. */
const INSERTS = new Map<string, string>()

/** A nested session that was deleted has no row here: `message_pk` is then NULL, which a message must not have. */
function insertText({ now }: Dialect, count: number, isNested: boolean, mark: string): string {
  const name = `${count} ${isNested} ${now} ${mark}`
  const known = INSERTS.get(name)
  if (known !== undefined) return known
  const owner = isNested ? 'n' : 's'
  const columns = CONTENT_COLUMNS.map((_, index) => `v.column${index + 5}`).join(', ')
  const join = isNested
    ? 'LEFT JOIN lango_sessions n ON n.app_name = ? AND n.user_id = ? AND n.session_id = ? AND n.write_id = s.write_id'
    : ''
  const text = `INSERT INTO lango_entries (session_pk, seq, at, run_pk, message_pk, message_seq, ${CONTENT_COLUMNS.join(', ')})
      SELECT s.pk, s.entry_count - v.column1, ${now}, (SELECT r.pk FROM lango_runs r WHERE r.run_id = v.column2),
        CASE WHEN COALESCE(v.column3, v.column4) IS NOT NULL THEN ${owner}.pk END,
        COALESCE(v.column4, ${owner}.message_count - v.column3), ${columns}
      FROM (VALUES ${Array.from({ length: count }, () => ENTRY_PLACES).join(', ')}) AS v CROSS JOIN lango_sessions s ${join}
      WHERE ${mark}`
  INSERTS.set(name, text)
  return text
}

const ENTRY_PLACES = `(CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT), ${CONTENT_PLACES})`

/** A message that was replaced keeps its entry, and loses its number to the entry that replaces it. */
function unnumberStatement({ pk, seq }: Replaced, mark: Mark): Statement {
  return sql(
    `UPDATE lango_entries SET message_seq = NULL WHERE message_pk = ? AND message_seq = ?
      AND EXISTS (SELECT 1 FROM lango_sessions s WHERE ${mark.text})`,
    ...[pk, seq, ...mark.parameters],
  )
}

/** Replacing may have made or unmade the last message that starts a turn, and memory reads the message again. */
function afterReplacing(replaced: readonly Replaced[], mark: Mark): Statement[] {
  return replaced.flatMap(({ pk, seq }) => [
    sql(
      `UPDATE lango_sessions SET turn_seq = COALESCE((SELECT max(m.seq) FROM ${MESSAGES} AS m
          WHERE m.session_pk = lango_sessions.pk AND m.flags & ${STARTS_TURN} <> 0), 0)
        WHERE pk = ? AND EXISTS (SELECT 1 FROM lango_sessions s WHERE ${mark.text})`,
      ...[pk, ...mark.parameters],
    ),
    sql(
      `UPDATE lango_memory SET indexed_seq = ? WHERE session_pk = ? AND indexed_seq >= ?
        AND EXISTS (SELECT 1 FROM lango_sessions s WHERE ${mark.text})`,
      ...[seq - 1, pk, seq, ...mark.parameters],
    ),
  ])
}
