/** Entries as rows, and back. */
import { createHash, randomBytes } from 'node:crypto'
import { stableJson } from '../../base/stable-json.js'
import type { Entry, EntryData, EntryKind, NewEntry } from '../../session/log-store.js'
import type { Message, SessionKey } from '../../session/message.js'
import { storableJson } from '../check-input.js'
import { CAST_PLACES, MESSAGE_COLUMNS, type MessageRow, messageToRow, rowToMessage } from '../rows.js'
import { numberIn, type Row, type SqlValue, textIn } from '../sql-database.js'
import { restoreText, storableText } from '../storable-text.js'

/** The rules by which views are derived from entries of this release. */
const DERIVATION = 1

/** An entry as the columns that do not depend on its place in the log. */
export interface EntryRow {
  readonly entry: NewEntry
  readonly message: MessageRow | undefined
  /** In the order of `CONTENT_COLUMNS`. */
  readonly values: readonly SqlValue[]
  /** The canonical form of its content. */
  readonly content: string
}

export const CONTENT_COLUMNS = [
  'kind',
  'version',
  'entry_key',
  'digest',
  'salt',
  ...MESSAGE_COLUMNS,
  'data',
] as const

/** Places for `CONTENT_COLUMNS`. In a SELECT the server cannot infer the type of a placeholder. */
export const CONTENT_PLACES = `CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT),
  ${CAST_PLACES}, CAST(? AS TEXT)`

const NO_MESSAGE = MESSAGE_COLUMNS.map(() => null)

export function entryToRow(entry: NewEntry): EntryRow {
  const { kind, key, data } = entry
  const message = entry.message && messageToRow(entry.message)
  const json = data === undefined ? null : storableJson('data', data)
  const content = contentOf(entry)
  const salt = randomBytes(16).toString('base64url')
  const values = [
    kind,
    DERIVATION,
    key === undefined ? null : storableText(key),
    digestOf(salt, content),
    salt,
    ...(message?.values ?? NO_MESSAGE),
    json,
  ]
  return { entry, message, values, content }
}

/** JSON escapes NUL and lone surrogates, so that every content has one form in UTF-8. */
export function contentOf({ kind, key, message, data }: NewEntry): string {
  return stableJson([kind, key ?? null, message ? storedFields(message) : null, data ?? null])
}

/** A message that a store returned has further fields, which are not stored with it. */
function storedFields(message: Message): object {
  const { role, author, content, toolCalls, timestamp, id, invocationId, branch, extra } = message
  return { role, author, content, toolCalls, timestamp, id, invocationId, branch, extra }
}

/** Without the salt, nobody can tell from the digest what the content was. */
export function digestOf(salt: string, content: string): string {
  return createHash('sha256').update(salt).update(content).digest('base64url')
}

/** Identifies a write: the same entries sent again have the same digest. */
export function digestOfWrite(rows: readonly EntryRow[]): string {
  const hash = createHash('sha256')
  for (const { entry, content } of rows) {
    const place = JSON.stringify([entry.runId, entry.nested && keyText(entry.nested)])
    hash.update(String(place.length)).update(place).update(String(content.length)).update(content)
  }
  return hash.digest('base64url')
}

export function keyText({ appName, userId, sessionId }: SessionKey): string {
  return JSON.stringify([appName, userId, sessionId])
}

/** A row with `run_id` and the names of the nested session, if it has one. */
export function rowToEntry(row: Row): Entry {
  const { message, messageSeq } = messageIn(row)
  const isPruned = row.salt === null
  return {
    seq: numberIn(row, 'seq'),
    kind: textIn(row, 'kind') as EntryKind,
    at: numberIn(row, 'at'),
    ...(row.run_id === null ? {} : { runId: textIn(row, 'run_id') }),
    ...(row.entry_key === null ? {} : { key: restoreText(textIn(row, 'entry_key')) }),
    ...(message === undefined ? {} : { message }),
    ...(messageSeq === undefined ? {} : { messageSeq }),
    ...nestedIn(row),
    version: numberIn(row, 'version'),
    digest: textIn(row, 'digest'),
    ...(isPruned ? { isPruned } : { salt: textIn(row, 'salt') }),
    ...(row.data === null ? {} : { data: JSON.parse(textIn(row, 'data')) as EntryData }),
  }
}

function messageIn(row: Row): { message?: Message; messageSeq?: number } {
  const numbered = row.message_seq === null ? {} : { messageSeq: numberIn(row, 'message_seq') }
  if (row.role === null) return numbered
  const { seq: _seq, tokens: _tokens, ...message } = rowToMessage(row)
  return { ...numbered, message }
}

function nestedIn(row: Row): Pick<Entry, 'nested'> {
  if (numberIn(row, 'nested_pk') === 0) return {}
  const nested = {
    appName: textIn(row, 'nested_app'),
    userId: textIn(row, 'nested_user'),
    sessionId: textIn(row, 'nested_id'),
  }
  return { nested }
}
