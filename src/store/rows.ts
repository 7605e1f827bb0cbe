import { AgentError, messageOf } from '../errors.js'
import type { Message, StoredMessage, ToolCall } from '../session/message.js'
import { countMessageTokens, joinOutputs, repeatsOutputs } from '../session/tokens.js'
import { startsTurn } from '../session/turn.js'
import { storableJson } from './check-input.js'
import { isReadable } from './listing.js'
import { numberIn, type Row, type SqlValue, textIn } from './sql-database.js'
import { restoreText, storableText } from './storable-text.js'

/** Bits of a row's `flags`, so that lists and loads need not read the text. */
export const STARTS_TURN = 1
export const READABLE = 2

/**
 * The columns of a message after its key, in the order of the table: small ones first, so that a database
 * which chains large rows over pages finds them without following the chain.
 */
export const MESSAGE_COLUMNS = [
  'flags',
  'tokens',
  'timestamp',
  'role',
  'author',
  'event_id',
  'long_event_id',
  'invocation_id',
  'branch',
  'content',
  'tool_calls',
  'extra',
] as const

/**
 * The messages of all sessions, for a FROM clause: `session_pk` is the session that a message belongs to, and `seq` its
 * number there. A sub-select and no view: on PostgreSQL a view reads with the rights of its owner, and would pass by the
 * policies of the role that asks.
 */
export const MESSAGES = `(SELECT message_pk AS session_pk, message_seq AS seq, ${MESSAGE_COLUMNS.join(', ')}
  FROM lango_entries WHERE message_seq IS NOT NULL)`

const TYPES: Partial<Record<(typeof MESSAGE_COLUMNS)[number], string>> = {
  flags: 'BIGINT',
  tokens: 'BIGINT',
  timestamp: 'DOUBLE PRECISION',
}

/** In a SELECT the server cannot infer the type of a placeholder. */
export const CAST_PLACES = MESSAGE_COLUMNS.map(column => `CAST(? AS ${TYPES[column] ?? 'TEXT'})`).join(', ')

export interface MessageRow {
  flags: number
  tokens: number
  eventId: string | null
  /** In the order of `MESSAGE_COLUMNS`. */
  values: SqlValue[]
}

/** Indexes cannot hold entries of any length, so a very long id is indexed by its hash and stored in a column of its own. */
const MAX_INDEXED_ID = 200

export function messageToRow(message: Message): MessageRow {
  const { role, author, content, toolCalls, timestamp, id, invocationId, branch, extra } = message
  const flags = (startsTurn(message) ? STARTS_TURN : 0) | (isReadable(message) ? READABLE : 0)
  const tokens = countMessageTokens(message)
  const eventId = id === undefined ? null : indexedId(id)
  // A tool result is stored once: content that repeats the outputs is derived again on reading.
  const isDerived = toolCalls !== undefined && repeatsOutputs(content, toolCalls)
  const values = [
    flags,
    tokens,
    timestamp,
    storableText(role),
    optionalText(author),
    eventId,
    id === undefined || id.length <= MAX_INDEXED_ID ? null : storableText(id),
    optionalText(invocationId),
    optionalText(branch),
    isDerived ? null : storableText(content),
    toolCalls === undefined ? null : storableJson('message.toolCalls', toolCalls),
    extra === undefined ? null : storableJson('message.extra', extra),
  ]
  return { flags, tokens, eventId, values }
}

export function rowToMessage(row: Row): StoredMessage {
  const id = row.long_event_id ?? row.event_id
  const toolCalls = parse<ToolCall[]>(row, 'tool_calls')
  const content = row.content === null ? joinOutputs(toolCalls ?? []) : restoreText(textIn(row, 'content'))
  const extra = parse<Record<string, unknown>>(row, 'extra')
  // Field by field: spreading optional fields takes several times as long, and this runs for every restored message.
  const message: Partial<StoredMessage> = { role: restoreText(textIn(row, 'role')) }
  if (row.author !== null) message.author = restoreText(textIn(row, 'author'))
  message.content = content ?? ''
  if (toolCalls !== undefined) message.toolCalls = toolCalls
  message.timestamp = numberIn(row, 'timestamp')
  if (id !== null && id !== undefined) message.id = restoreText(String(id))
  if (row.invocation_id !== null) message.invocationId = restoreText(textIn(row, 'invocation_id'))
  if (row.branch !== null) message.branch = restoreText(textIn(row, 'branch'))
  if (extra !== undefined) message.extra = extra
  return Object.assign(message as Message, { seq: numberIn(row, 'seq'), tokens: numberIn(row, 'tokens') })
}

/** An id as the index holds it. */
export function indexedId(id: string): string {
  if (id.length <= MAX_INDEXED_ID) return storableText(id)
  // Loaded on use: importing it would take a tenth of a command's start time.
  const { createHash } = process.getBuiltinModule('node:crypto')
  return `\u0001"sha256:${createHash('sha256').update(JSON.stringify(id)).digest('hex')}"`
}

function optionalText(text: string | undefined): string | null {
  return text === undefined ? null : storableText(text)
}

function parse<T>(row: Row, column: 'tool_calls' | 'extra'): T | undefined {
  const json = row[column]
  if (json === null || json === undefined) return undefined
  try {
    return JSON.parse(String(json)) as T
  } catch (cause) {
    throw new AgentError(
      'store-corrupt',
      `Column ${column} of message ${numberIn(row, 'seq')} does not hold JSON (${messageOf(cause)}): ` +
        'restore the database from a backup, or correct the row',
      { cause },
    )
  }
}
