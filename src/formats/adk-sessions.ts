/**
 * Sessions of ADK: its databases (`DatabaseSessionService` of TypeScript and of Python, Python's `SqliteSessionService`)
 * and sessions as JSON. They are only read.
 */

import { open, readFile } from 'node:fs/promises'
import { isRecord } from '../base/is-record.js'
import { parseJson, withoutBom } from '../base/json.js'
import { AgentError, messageOf } from '../errors.js'
import type { Message, SessionKey, State } from '../session/message.js'
import type { ForeignDatabase } from '../store/open-store.js'
import { eventsToMessages } from './adk-events.js'
import { readPickle } from './python-pickle.js'
import type { Fields } from './wire-parts.js'

/** A session of another program, converted to Lango's types. */
export interface ForeignSession {
  key: SessionKey
  state: State
  title?: string
  messages: Message[]
  /** What of the session is not among the messages. */
  notes?: readonly string[]
  leftOut?: readonly string[]
}

/** Whether the file is JSON with sessions of ADK. False for Lango's own exports and anything unknown. */
export async function isAdkFile(file: string): Promise<boolean> {
  const data = await readJson(file)
  return sessionsIn(data).length > 0
}

/** The sessions of an ADK file with JSON, one after the other. */
export async function* readAdkFile(file: string): AsyncGenerator<ForeignSession> {
  const sessions = sessionsIn(await readJson(file))
  if (sessions.length === 0) {
    throw new AgentError('invalid-argument', `${file} is not an ADK session.`)
  }
  for (const session of sessions) yield readAdkSession(session)
}

/** One session of ADK as its JSON has it. */
export function readAdkSession(session: Fields): ForeignSession {
  const { events } = session
  return {
    key: {
      appName: String(session.appName ?? session.app_name ?? 'lango'),
      userId: String(session.userId ?? session.user_id ?? 'user'),
      sessionId: String(session.id ?? session.sessionId ?? session.session_id ?? ''),
    },
    state: isRecord(session.state) ? withoutTemporary(session.state) : {},
    messages: eventsToMessages(Array.isArray(events) ? events : []),
  }
}

/** Whether parsed JSON is a session of ADK. */
export function isAdkSession(data: unknown): data is Fields {
  if (!isRecord(data) || !Array.isArray(data.events)) return false
  return typeof (data.id ?? data.sessionId ?? data.session_id) === 'string'
}

const SQLITE_MAGIC = 'SQLite format 3\u0000'

/** Whether a file is a database. */
export async function isSqlite(file: string): Promise<boolean> {
  return (await beginningOf(file, SQLITE_MAGIC.length)) === SQLITE_MAGIC
}

/** Whether the bytes of a file are a database. */
export function isSqliteData(data: Buffer): boolean {
  return data.toString('latin1', 0, SQLITE_MAGIC.length) === SQLITE_MAGIC
}

async function beginningOf(file: string, bytes: number): Promise<string> {
  const handle = await open(file).catch(cause => {
    throw new AgentError('invalid-argument', `Cannot read ${file}: ${messageOf(cause)}`, { cause })
  })
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytes), 0, bytes, 0)
    return buffer.toString('utf8', 0, bytesRead)
  } finally {
    await handle.close()
  }
}

/** The sessions of an ADK database. `columns` are those of its events. */
export async function* readAdkDatabase(
  database: ForeignDatabase,
  columns: ReadonlySet<string>,
): AsyncGenerator<ForeignSession> {
  const toEvent = columns.has('event_data') ? eventOfJson : eventOfColumns
  const sessions = await database.rows(
    `SELECT app_name, user_id, id, state FROM sessions ORDER BY update_time, ${database.insertion}`,
  )
  for (const row of sessions) {
    const key = { appName: text(row.app_name), userId: text(row.user_id), sessionId: text(row.id) }
    // Times may be equal; then the order of insertion decides.
    const rows = await database.rows(
      `SELECT * FROM events WHERE app_name = ? AND user_id = ? AND session_id = ? ORDER BY timestamp, ${database.insertion}`,
      ...[key.appName, key.userId, key.sessionId],
    )
    const unread = new Set<string>()
    const events = inOwnOrder(rows, event => toEvent(event, unread))
    const notes = [...unread].map(unreadActions)
    const state = await stateOf(database, key, row.state)
    yield { key, state, messages: eventsToMessages(events), notes }
  }
}

function unreadActions(why: string): string {
  return `Actions of its events are left out. ${why} The state that they set is in the session; transfers and requests are not. To have them too, convert the database with ADK for Python (adk migrate session --source_db_url=… --dest_db_url=…) and import the new one.`
}

/** A server may keep whole seconds alone: events of one second are in the order of the times that they have inside. */
function inOwnOrder(rows: readonly Fields[], toEvent: (row: Fields) => Fields): Fields[] {
  const seconds = new Map<string, Fields[]>()
  for (const row of rows) {
    const second = String(row.timestamp)
    seconds.set(second, [...(seconds.get(second) ?? []), toEvent(row)])
  }
  return [...seconds.values()].flatMap(events =>
    events.every(({ timestamp }) => typeof timestamp === 'number')
      ? events.sort((one, other) => Number(one.timestamp) - Number(other.timestamp))
      : events,
  )
}

/** State of app and user is stored in separate tables, without the prefixes. */
async function stateOf(
  database: ForeignDatabase,
  { appName, userId }: SessionKey,
  own: unknown,
): Promise<State> {
  const app = await database.rows('SELECT state FROM app_states WHERE app_name = ?', appName)
  const user = await database.rows(
    'SELECT state FROM user_states WHERE app_name = ? AND user_id = ?',
    appName,
    userId,
  )
  return {
    ...withPrefix('app:', jsonOf(app[0]?.state)),
    ...withPrefix('user:', jsonOf(user[0]?.state)),
    ...withoutTemporary(jsonOf(own)),
  }
}

function withPrefix(prefix: string, state: Fields): Fields {
  return Object.fromEntries(Object.entries(state).map(([key, value]) => [`${prefix}${key}`, value]))
}

function withoutTemporary(state: Fields): Fields {
  return Object.fromEntries(Object.entries(state).filter(([key]) => !key.startsWith('temp:')))
}

/** Since version 1 of ADK's schema an event is one JSON document. */
function eventOfJson(row: Fields): Fields {
  const data = jsonOf(row.event_data)
  return { timestamp: row.timestamp, ...data, id: row.id, invocationId: row.invocation_id }
}

/** Before version 1 each field had its column, and the actions are a pickled Python object. */
function eventOfColumns(row: Fields, unread: Set<string>): Fields {
  const { actions, long_running_tool_ids_json: ids, ...others } = row
  const event: Fields = {}
  for (const [name, value] of Object.entries(others)) {
    if (KEY_COLUMNS.has(name) || value === null) continue
    event[name] = typeof value === 'string' && JSON_COLUMNS.test(name) ? parseJson(value) : value
    if (FLAG_COLUMNS.has(name)) event[name] = Boolean(value)
  }
  const parsed = typeof ids === 'string' ? parseJson(ids) : undefined
  const pickled = actions instanceof Uint8Array ? actionsOf(actions, unread) : undefined
  return {
    ...event,
    ...(pickled ? { actions: pickled } : {}),
    ...(Array.isArray(parsed) ? { longRunningToolIds: parsed } : {}),
  }
}

/** A pickle that cannot be read costs the actions of its event, not the session. */
function actionsOf(pickled: Uint8Array, unread: Set<string>): Fields | undefined {
  try {
    const actions = readPickle(pickled)
    if (isRecord(actions)) return actions
    unread.add('The pickled object is no object with fields.')
  } catch (error) {
    if (!(error instanceof AgentError)) throw error
    unread.add(error.message)
  }
  return undefined
}

const KEY_COLUMNS = new Set(['app_name', 'user_id', 'session_id'])
const FLAG_COLUMNS = new Set(['partial', 'turn_complete', 'interrupted'])
const JSON_COLUMNS = /^(content|.*_metadata|.*_transcription)$/

function jsonOf(value: unknown): Fields {
  const parsed = typeof value === 'string' ? parseJson(value) : value
  return isRecord(parsed) ? parsed : {}
}

function text(value: unknown): string {
  return String(value ?? '')
}

/** A Lango export may be larger than memory, so it is recognized by its beginning. */
export async function isLangoExport(file: string): Promise<boolean> {
  return /^\uFEFF?\s*\{"lango":/.test(await beginningOf(file, 100))
}

async function readJson(file: string): Promise<unknown> {
  if (await isLangoExport(file)) return undefined
  return parseJson(withoutBom(await readFile(file, 'utf8')))
}

function sessionsIn(data: unknown): Fields[] {
  if (Array.isArray(data)) return data.every(isAdkSession) ? data : []
  return isAdkSession(data) ? [data] : []
}
