import type { SessionKey, State } from '../session/message.js'
import { type Statement, sql, type Task, textIn } from './sql-database.js'
import { joinState, type StateChange, type StateScope } from './state-scopes.js'
import { restoreText, storableText } from './storable-text.js'

/** Changes state key by key, so that writers of different keys never overwrite each other. */
export function* applyState(key: SessionKey, pk: number, changes: readonly StateChange[]): Task<void> {
  for (const change of changes) yield changeStatement(key, pk, change)
}

/** App, user and session state in one object. */
export function* readState({ appName, userId }: SessionKey, pk: number): Task<State> {
  const rows = yield sql(`${SHARED_STATE} ?`, appName, appName, userId, pk)
  return joinState(
    rows.map(row => ({
      scope: textIn(row, 'scope') as StateScope,
      key: restoreText(textIn(row, 'key')),
      json: textIn(row, 'value'),
    })),
  )
}

export function* copySessionState(fromPk: number, toPk: number): Task<void> {
  yield sql(
    `INSERT INTO lango_session_state (session_pk, key, value)
      SELECT CAST(? AS BIGINT), key, value FROM lango_session_state WHERE session_pk = ?`,
    toPk,
    fromPk,
  )
}

/** Followed by the number of the session. */
export const SHARED_STATE = `
  SELECT 'app' AS scope, key, value FROM lango_app_state WHERE app_name = ?
  UNION ALL SELECT 'user', key, value FROM lango_user_state WHERE app_name = ? AND user_id = ?
  UNION ALL SELECT 'session', key, value FROM lango_session_state WHERE session_pk =`

function changeStatement(
  { appName, userId }: SessionKey,
  pk: number,
  { scope, key, json }: StateChange,
): Statement {
  const { table, columns } = STATE_TABLES[scope]
  const owner = scope === 'app' ? [appName] : scope === 'user' ? [appName, userId] : [pk]
  const name = storableText(key)
  if (json === undefined) {
    const where = columns.map(column => `${column} = ?`).join(' AND ')
    return sql(`DELETE FROM ${table} WHERE ${where} AND key = ?`, ...owner, name)
  }
  const places = columns.map(() => '?').join(', ')
  return sql(
    `INSERT INTO ${table} (${columns.join(', ')}, key, value) VALUES (${places}, ?, ?)
      ON CONFLICT (${columns.join(', ')}, key) DO UPDATE SET value = excluded.value`,
    ...owner,
    name,
    json,
  )
}

export const STATE_TABLES = {
  app: { table: 'lango_app_state', columns: ['app_name'] },
  user: { table: 'lango_user_state', columns: ['app_name', 'user_id'] },
  session: { table: 'lango_session_state', columns: ['session_pk'] },
} as const satisfies Record<StateScope, { table: string; columns: readonly string[] }>
