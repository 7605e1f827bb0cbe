/**
 * Variants of a chat: sessions of which one is listed. The others hold, in the column for sessions that belong to
 * another one, a sign that no app's name begins with and the id of the listed one. So they are not listed, and they
 * are deleted with it.
 */
import type { SessionKey } from '../session/message.js'
import type { SessionVariants, VariantSummary } from '../session/session-store.js'
import { titleColumns, titleIn } from './listing.js'
import {
  type Dialect,
  HOUR_MS,
  numberIn,
  type Row,
  type SqlDatabase,
  sql,
  type Task,
  textIn,
} from './sql-database.js'
import { sessionNotFound } from './store-errors.js'

const SIGN = '\u0001'

/** What the variants of a chat have in `nested_in`, by the id of the listed one. */
export function variantOf(sessionId: string): string {
  return SIGN + sessionId
}

export class SqlVariants implements SessionVariants {
  readonly #database: SqlDatabase

  constructor(database: SqlDatabase) {
    this.#database = database
  }

  async list(key: SessionKey): Promise<VariantSummary[]> {
    const rows = await this.#database.read(() => groupTask(key))
    return rows.map(row => ({
      sessionId: textIn(row, 'session_id'),
      totalMessages: numberIn(row, 'message_count'),
      createdAt: numberIn(row, 'created_at'),
      isListed: typeof row.nested_in !== 'string',
    }))
  }

  async show(key: SessionKey, of: string): Promise<void> {
    await this.#database.write(() => this.#showTask(key, of))
  }

  /** Two that choose at once choose one after the other. */
  *#showTask(key: SessionKey, of: string): Task<void> {
    const { dialect } = this.#database
    const { forUpdate } = dialect
    const name = JSON.stringify([key.appName, key.userId, `${SIGN}variants`])
    for (const statement of dialect.keyLock(name)) yield statement
    const group = yield* groupTask({ ...key, sessionId: of }, dialect)
    const [chosen] = yield sql(
      `SELECT ${COLUMNS} FROM lango_sessions WHERE ${SESSION_KEY}${forUpdate}`,
      ...namesOf(key),
    )
    if (chosen === undefined) throw sessionNotFound(key)
    const others = group.filter(row => numberIn(row, 'pk') !== numberIn(chosen, 'pk'))
    const listed = others.find(row => typeof row.nested_in !== 'string')
    if (listed === undefined) return
    for (const row of others)
      yield sql(
        'UPDATE lango_sessions SET nested_in = ? WHERE pk = ?',
        variantOf(key.sessionId),
        numberIn(row, 'pk'),
      )
    // The title and the place in the list belong to the chat.
    const updatedAt = Math.max(numberIn(chosen, 'updated_at'), numberIn(listed, 'updated_at'))
    yield sql(
      'UPDATE lango_sessions SET nested_in = NULL, title = ?, search = ?, updated_at = ?, updated_hour = ? WHERE pk = ?',
      ...titleColumns(titleIn(listed.title).title, key.sessionId),
      updatedAt,
      Math.floor(updatedAt / HOUR_MS),
      numberIn(chosen, 'pk'),
    )
  }
}

const COLUMNS = 'pk, session_id, nested_in, title, message_count, created_at, updated_at'
const SESSION_KEY = 'app_name = ? AND user_id = ? AND session_id = ?'

/** The sessions of a chat, oldest first. With a dialect, they are locked. */
function* groupTask(key: SessionKey, locking?: Dialect): Task<readonly Row[]> {
  const lock = locking?.forUpdate ?? ''
  const { appName, userId } = key
  let { sessionId } = key
  const find = (locked: string) =>
    sql(`SELECT nested_in FROM lango_sessions WHERE ${SESSION_KEY}${locked}`, appName, userId, sessionId)
  const [row] = yield find('')
  if (row === undefined) throw sessionNotFound(key)
  const nestedIn = row.nested_in
  if (typeof nestedIn === 'string' && nestedIn.startsWith(SIGN)) sessionId = nestedIn.slice(SIGN.length)
  // The listed one first, as when it is deleted.
  if (locking) yield* locking.lockRows(find(lock))
  return yield sql(
    `SELECT ${COLUMNS} FROM lango_sessions WHERE app_name = ? AND user_id = ?
      AND (session_id = ? OR nested_in = ?) ORDER BY created_at, pk${lock}`,
    appName,
    userId,
    sessionId,
    variantOf(sessionId),
  )
}

function namesOf({ appName, userId, sessionId }: SessionKey): string[] {
  return [appName, userId, sessionId]
}
