/** Entries as rows, and back. */
import { createHash, randomFillSync } from 'node:crypto'
import type { AlsoWritten, Entry, EntryData, EntryKind, NewEntry } from '../../session/log-store.js'
import type { Message, SessionKey } from '../../session/message.js'
import { storableJson } from '../check-input.js'
import { CAST_PLACES, MESSAGE_COLUMNS, type MessageRow, messageToRow, rowToMessage } from '../rows.js'
import { numberIn, type Row, type SqlValue, textIn } from '../sql-database.js'
import { restoreText, storableText } from '../storable-text.js'
import { packEvents, type RunNames, unpackEvents } from './stored-events.js'

/** The rules by which views are derived from entries of this release. */
const DERIVATION = 1

/** An entry as the columns that do not depend on its place in the log. */
export interface EntryRow {
  readonly entry: NewEntry
  readonly message: MessageRow | undefined
  /** In the order of `CONTENT_COLUMNS`. */
  readonly values: readonly SqlValue[]
  /** Identifies its content. */
  readonly content: string
}

export const CONTENT_COLUMNS = [
  'kind',
  'version',
  'events',
  'event_seq',
  'entry_key',
  'pending',
  'digest',
  'salt',
  ...MESSAGE_COLUMNS,
  'data',
] as const

/** Places for `CONTENT_COLUMNS`. In a SELECT the server cannot infer the type of a placeholder. */
export const CONTENT_PLACES = `CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS TEXT),
  CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), ${CAST_PLACES}, CAST(? AS TEXT)`

const NO_MESSAGE = MESSAGE_COLUMNS.map(() => null)

/** `about`: of a post, the call that it is about. */
export function entryToRow(entry: NewEntry, context: RowContext = {}): EntryRow {
  const { kind, key, runId = '', events = [] } = entry
  const { sessionId = '', about, previous } = context
  const message = entry.message && messageToRow(entry.message)
  const reported = kind === 'ended' ? previous : entry.message
  const data = dataOf(entry, { runId, sessionId }, reported)
  const json = data === undefined ? null : storableJson('data', data)
  const storedKey = key === undefined ? null : storableText(key)
  const content = hashOf(kind, storedKey, message?.values, json)
  const salt = newSalt()
  const values = [
    kind,
    DERIVATION,
    events.length === 0 ? null : events.length,
    events.length === 0 ? null : Math.max(...events.map(({ seq }) => seq)),
    storedKey,
    about === undefined ? null : storableText(about),
    digestOf(salt, content),
    salt,
    ...(message?.values ?? NO_MESSAGE),
    json,
  ]
  return { entry, message, values, content }
}

export interface RowContext {
  /** The session of the log. */
  readonly sessionId?: string
  /** Of a post: the call that it is about. */
  readonly about?: string | undefined
  /** The message of the entry before it in the same write: the end of a run repeats its last answer. */
  readonly previous?: Message | undefined
}

function dataOf(
  { data, events = [] }: NewEntry,
  names: RunNames,
  message: Message | undefined,
): EntryData | undefined {
  if (events.length === 0) return data
  return { ...data, events: packEvents(events, names, message) }
}

/**
 * Identifies the content of an entry by the texts that are stored. Those of JSON escape NUL and lone surrogates, others are
 * storable text: both have one form in UTF-8.
 */
function hashOf(
  kind: string,
  key: string | null,
  message: readonly SqlValue[] | undefined,
  data: string | null,
): string {
  // The first two columns of a message, its flags and its tokens, are derived from the others.
  const fields = [kind, key, ...(message?.slice(2) ?? []), data]
  const hash = createHash('sha256')
  hash.update(fields.map(field => (field === null ? '-' : String(field).length)).join())
  for (const field of fields) if (field !== null) hash.update(String(field))
  return hash.digest('base64url')
}

/** 16 random bytes. They are made for many entries at a time. */
function newSalt(): string {
  if (saltAt === SALTS.length) {
    randomFillSync(SALTS)
    saltAt = 0
  }
  saltAt += SALT_BYTES
  return SALTS.toString('base64url', saltAt - SALT_BYTES, saltAt)
}

const SALT_BYTES = 16
const SALTS = Buffer.alloc(256 * SALT_BYTES)
let saltAt = SALTS.length

/** Identifies the content of an entry. */
export function contentOf(entry: NewEntry, context?: RowContext): string {
  return entryToRow(entry, context).content
}

/** Without the salt, it is not possible to tell from the digest what the content was. */
export function digestOf(salt: string, content: string): string {
  return createHash('sha256').update(salt).update(content).digest('base64url')
}

/** True if the content of a stored entry is what was written; `undefined` when it was pruned. */
export function isAuthentic(row: Row): boolean | undefined {
  if (row.salt === null) return undefined
  const message = row.role === null ? undefined : MESSAGE_COLUMNS.map(column => row[column] ?? null)
  const key = row.entry_key === null ? null : textIn(row, 'entry_key')
  const data = row.data === null ? null : textIn(row, 'data')
  const content = hashOf(textIn(row, 'kind'), key, message, data)
  return digestOf(textIn(row, 'salt'), content) === textIn(row, 'digest')
}

/** Identifies a write: the same entries sent again, with the same changes, have the same digest. */
export function digestOfWrite(rows: readonly EntryRow[], also: AlsoWritten): string {
  const hash = createHash('sha256').update(changesText(also))
  for (const { entry, content } of rows) {
    const place = JSON.stringify([entry.runId, entry.nested && keyText(entry.nested)])
    hash.update(`${place.length} ${place}${content}`)
  }
  return hash.digest('base64url').slice(0, WRITE_DIGEST)
}

/** 132 bits: it is compared with that of one other write. */
const WRITE_DIGEST = 22

/** Changes of which the entries of a write may say nothing. */
function changesText({ run, release, calibration, calls }: AlsoWritten): string {
  const state = run?.state === 'running' ? undefined : run?.state
  const changed = calls?.map(({ runId, id, status, answer, ordinal }) => [runId, id, status, answer, ordinal])
  return JSON.stringify([state, release, calibration, changed])
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
    ...contentIn(row, message ?? previousIn(row)),
  }
}

/** The text of the message in the entry before that of a run's end. */
export function previousIn(row: Row): Message | undefined {
  if (typeof row.previous !== 'string') return undefined
  return { role: '', content: restoreText(row.previous), timestamp: 0 }
}

/** The data of an entry, and the events in it. */
function contentIn(row: Row, message: Message | undefined): Pick<Entry, 'data' | 'events'> {
  if (row.data === null) return {}
  const { events, ...data } = JSON.parse(textIn(row, 'data')) as EntryData
  if (events === undefined) return { data }
  const names = { runId: textIn(row, 'run_id'), sessionId: textIn(row, 'session_id') }
  const found = unpackEvents(events, names, () => message)
  return { ...(Object.keys(data).length > 0 ? { data } : {}), events: found }
}

function messageIn(row: Row): { message?: Message; messageSeq?: number } {
  const numbered = row.message_seq === null ? {} : { messageSeq: numberIn(row, 'message_seq') }
  if (row.role === null) return numbered
  const { seq: _seq, tokens: _tokens, ...message } = rowToMessage(row)
  return { ...numbered, message }
}

function nestedIn(row: Row): Pick<Entry, 'nested'> {
  if (row.nested_app === null || row.nested_app === undefined) return {}
  const nested = {
    appName: textIn(row, 'nested_app'),
    userId: textIn(row, 'nested_user'),
    sessionId: textIn(row, 'nested_id'),
  }
  return { nested }
}
