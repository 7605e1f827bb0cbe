/**
 * Databases of other frameworks, recognized by their tables: ADK, Mastra, LangGraph's checkpoints, sessions of the OpenAI
 * Agents SDK. They are only read. One database may hold those of several.
 */

import { isRecord } from '../base/is-record.js'
import { parseJson } from '../base/json.js'
import { AgentError } from '../errors.js'
import { type ForeignDatabase, isDatabaseUrl, openForeignDatabase } from '../store/open-store.js'
import { type ForeignSession, readAdkDatabase } from './adk-sessions.js'
import { readMastraMessages } from './ai-sdk-messages.js'
import { isLangChainMessage, readLangChain } from './langchain-messages.js'
import { leftOut } from './left-out.js'
import { readMessagePack } from './message-pack.js'
import { neutralToMessages } from './neutral-to-messages.js'
import { isAgentsItem, readAgentsItems } from './openai-agents-items.js'
import type { HistoryFormat } from './recognize.js'
import { readResponses } from './wire-messages.js'
import { type Fields, recordsOf, text, type WireMessage } from './wire-parts.js'

export interface DatabaseOptions {
  /** The app and the agent that sessions of frameworks without either are stored under. */
  app: string
  author?: string | undefined
}

export interface FoundDatabase {
  formats: HistoryFormat[]
  sessions: AsyncGenerator<ForeignSession>
}

/** Opens a SQLite file or a URL of PostgreSQL. It is closed when the last session was read. */
export async function readForeignDatabase(place: string, options: DatabaseOptions): Promise<FoundDatabase> {
  const database = await openForeignDatabase(place)
  try {
    const tables = await database.tables()
    const found = READERS.filter(({ needs }) =>
      needs.every(([table, column]) => tables.get(table)?.has(column)),
    )
    if (found.length === 0) throw unknownTables(place, [...tables.keys()])
    const sessions = async function* (): AsyncGenerator<ForeignSession> {
      try {
        for (const { read } of found) yield* read(database, options, tables)
      } finally {
        await database.close()
      }
    }
    return { formats: found.map(({ format }) => format), sessions: sessions() }
  } catch (error) {
    await database.close()
    throw error
  }
}

type Tables = ReadonlyMap<string, ReadonlySet<string>>

interface Reader {
  name: string
  format: HistoryFormat
  /** A column of each table that the reader needs. */
  needs: readonly [table: string, column: string][]
  read(database: ForeignDatabase, options: DatabaseOptions, tables: Tables): AsyncGenerator<ForeignSession>
}

const READERS: readonly Reader[] = [
  {
    name: 'ADK',
    format: 'adk',
    needs: [
      ['sessions', 'app_name'],
      ['events', 'session_id'],
    ],
    read: (database, _options, tables) => readAdkDatabase(database, tables.get('events') ?? new Set()),
  },
  {
    name: 'Mastra',
    format: 'mastra',
    needs: [
      ['mastra_threads', 'id'],
      ['mastra_messages', 'thread_id'],
    ],
    read: readMastra,
  },
  { name: 'LangGraph', format: 'langchain', needs: [['checkpoints', 'checkpoint_id']], read: readLangGraph },
  {
    name: 'OpenAI Agents',
    format: 'openai-agents',
    needs: [
      ['agent_sessions', 'session_id'],
      ['agent_messages', 'message_data'],
    ],
    read: readAgents,
  },
]

function unknownTables(place: string, tables: readonly string[]): AgentError {
  const source = isDatabaseUrl(place) ? 'The database' : place
  if (tables.includes('lango_schema')) {
    const url = isDatabaseUrl(place) ? 'its URL' : `sqlite:${place}`
    return new AgentError('invalid-argument', `${source} is a Lango store. Use it with --store ${url}.`)
  }
  const shown = tables.slice(0, MOST_NAMED).join(', ') + (tables.length > MOST_NAMED ? ', …' : '')
  const known = READERS.map(({ name, needs }) => `${name} (${needs.map(([table]) => table).join(', ')})`)
  return new AgentError(
    'invalid-argument',
    `${source} holds no sessions that can be imported. Its tables: ${shown || 'none'}. Known are those of ${known.join(', ')}.`,
  )
}

const MOST_NAMED = 20

/** A session of neutral messages, with what of its rows is not in them. */
function session(
  key: ForeignSession['key'],
  rows: readonly Fields[],
  messages: readonly WireMessage[],
  { author }: DatabaseOptions,
): ForeignSession {
  return {
    key,
    state: {},
    messages: neutralToMessages(messages, { author, now: Date.now() }),
    leftOut: leftOut(rows, messages),
  }
}

async function* readMastra(
  database: ForeignDatabase,
  options: DatabaseOptions,
): AsyncGenerator<ForeignSession> {
  const threads = await database.rows(
    `SELECT * FROM mastra_threads ORDER BY "updatedAt", ${database.insertion}`,
  )
  for (const { id, resourceId, title, metadata } of threads) {
    const rows = await database.rows(
      `SELECT * FROM mastra_messages WHERE thread_id = ? ORDER BY "createdAt", ${database.insertion}`,
      text(id),
    )
    const messages = rows.map(row => ({ ...row, content: jsonOr(row.content) }))
    const key = { appName: options.app, userId: text(resourceId) || 'user', sessionId: text(id) }
    const working = jsonOr(metadata)
    yield {
      ...session(key, messages, readMastraMessages(messages), options),
      ...(text(title) === '' ? {} : { title: text(title) }),
      state: isRecord(working) ? working : {},
    }
  }
}

/** Python's sessions hold items of the Responses API, JavaScript's those of the SDK. */
async function* readAgents(
  database: ForeignDatabase,
  options: DatabaseOptions,
): AsyncGenerator<ForeignSession> {
  const sessions = await database.rows(
    `SELECT session_id FROM agent_sessions ORDER BY updated_at, ${database.insertion}`,
  )
  for (const { session_id: id } of sessions) {
    const rows = await database.rows(
      'SELECT message_data FROM agent_messages WHERE session_id = ? ORDER BY id',
      text(id),
    )
    const items = recordsOf(rows.map(row => jsonOr(row.message_data)))
    const messages = items.some(isAgentsItem) ? readAgentsItems(items) : readResponses({ input: items })
    const key = { appName: options.app, userId: 'user', sessionId: text(id) }
    yield session(key, items, messages, options)
  }
}

/**
 * Each thread has a chain of checkpoints: the last one holds all of its state. What tasks have written after it is there
 * when the program was stopped in between.
 */
async function* readLangGraph(
  database: ForeignDatabase,
  options: DatabaseOptions,
  tables: Tables,
): AsyncGenerator<ForeignSession> {
  const threads = await database.rows(
    `SELECT thread_id, checkpoint_ns, max(checkpoint_id) AS checkpoint_id FROM checkpoints
     GROUP BY thread_id, checkpoint_ns ORDER BY max(checkpoint_id)`,
  )
  for (const { thread_id: thread, checkpoint_ns: part, checkpoint_id: checkpoint } of threads) {
    const place = [text(thread), text(part), text(checkpoint)] as const
    const [row] = await database.rows(
      'SELECT * FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?',
      ...place,
    )
    const writes = ['writes', 'checkpoint_writes'].find(name => tables.has(name))
    const pending = writes
      ? await database.rows(
          `SELECT * FROM ${writes} WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? ORDER BY task_id, idx`,
          ...place,
        )
      : []
    const blobs = tables.has('checkpoint_blobs')
      ? await database.rows(
          'SELECT * FROM checkpoint_blobs WHERE thread_id = ? AND checkpoint_ns = ?',
          ...place.slice(0, 2),
        )
      : []
    // Graphs inside a graph have a name of their own in the same thread.
    const sessionId = place[1] === '' ? place[0] : `${place[0]} (${place[1]})`
    yield threadOf(sessionId, { row: row ?? {}, pending, blobs }, options)
  }
}

interface ThreadRows {
  row: Fields
  pending: readonly Fields[]
  /** On PostgreSQL the values of channels have a table of their own, all of their versions. */
  blobs: readonly Fields[]
}

function threadOf(
  sessionId: string,
  { row, pending, blobs }: ThreadRows,
  options: DatabaseOptions,
): ForeignSession {
  const checkpoint = decoded(row.type, row.checkpoint)
  const values = isRecord(checkpoint)
    ? { ...fieldsOf(checkpoint.channel_values), ...blobValues(checkpoint, blobs) }
    : {}
  const channels = Object.entries(values).filter(([name]) => !/^(__|branch:)/.test(name))
  const name = channels.find(([, value]) => areMessages(value))?.[0] ?? 'messages'
  const kept = recordsOf(values[name])
  const written = pending.flatMap(write => {
    const value = write.channel === name ? decoded(write.type, write.value ?? write.blob) : undefined
    return (Array.isArray(value) ? value : [value]).filter(isLangChainMessage)
  })
  const messages = [...kept, ...written]
  const state = Object.fromEntries(channels.filter(([channel]) => channel !== name))
  const key = { appName: options.app, userId: 'user', sessionId }
  return { ...session(key, messages, readLangChain(messages), options), state }
}

function fieldsOf(value: unknown): Fields {
  return isRecord(value) ? value : {}
}

/** The values that the checkpoint names by their versions. */
function blobValues(checkpoint: Fields, blobs: readonly Fields[]): Fields {
  const versions = fieldsOf(checkpoint.channel_versions)
  const named = blobs.filter(
    ({ channel, version, type }) => type !== 'empty' && String(versions[text(channel)]) === String(version),
  )
  return Object.fromEntries(named.map(({ channel, type, blob }) => [text(channel), decoded(type, blob)]))
}

function areMessages(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(isLangChainMessage)
}

/** LangGraph for JavaScript writes JSON, for Python MessagePack. */
function decoded(type: unknown, value: unknown): unknown {
  if (type === 'null') return null
  if (!(value instanceof Uint8Array) && typeof value !== 'string') return value
  if (type === 'msgpack' && typeof value !== 'string') return readMessagePack(value)
  if (type === 'bytes') return Buffer.from(value).toString('base64')
  const written = Buffer.from(value).toString('utf8')
  const read = parseJson(written)
  if (read !== written) return read
  throw new AgentError(
    'unsupported',
    `A checkpoint is stored as "${text(type)}", which cannot be read. Known are json and msgpack.`,
  )
}

function jsonOr(value: unknown): unknown {
  const written = value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : value
  if (typeof written !== 'string') return written
  return /^\s*[[{"]/.test(written) ? parseJson(written) : written
}
