/**
 * Leases. The lease of a session is in the session's row; that of a key without a session is in `lango_leases`, and the
 * session takes it over when it is created. Expiry goes by the store's clock. An expired lease that nobody has taken is
 * renewed as if it had not expired.
 */
import type { LeaseRequest, LogLease } from '../../session/log-store.js'
import type { SessionKey } from '../../session/message.js'
import { type Dialect, namesOf, repeatableSql, SESSION_KEY, type Statement, sql } from '../sql-database.js'
import { keyText } from './log-rows.js'
import { RELEASED } from './write-entries.js'

/** The lease may be granted. Parameter: the holder that no longer exists, or an empty text. */
export function isFree({ now }: Dialect, table = 'lango_sessions'): string {
  return `(${table}.lease_until <= ${now} OR (${table}.holder <> '' AND ${table}.holder = CAST(? AS TEXT)))`
}

/** Grants a lease. Parameters: holder, and twice its time. */
export function granted({ now, fences }: Dialect): string {
  return `fence = ${fences.next}, holder = CAST(? AS TEXT), lease_until = ${now} + CAST(? AS BIGINT),
    lease_ms = CAST(? AS BIGINT), write_number = 0, write_digest = ''`
}

/** Two statements with the lease at the end: of the session, and of a key without one. */
export function acquireBatch(dialect: Dialect, key: SessionKey, lease: LeaseRequest): readonly Statement[] {
  const { holder, ttlMs, gone = '' } = lease
  const names = namesOf(key)
  return [
    ...dialect.keyLock(keyText(key)),
    ...dialect.fences.take,
    sql(
      `UPDATE lango_sessions SET ${granted(dialect)} WHERE ${SESSION_KEY} AND ${isFree(dialect)}
        RETURNING pk, fence, post_count`,
      ...[holder, ttlMs, ttlMs, ...names, gone],
    ),
    sql(
      `INSERT INTO lango_leases (app_name, user_id, session_id, fence, holder, lease_until, lease_ms)
        SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), ${dialect.fences.next}, CAST(? AS TEXT),
          ${dialect.now} + CAST(? AS BIGINT), CAST(? AS BIGINT)
        WHERE NOT EXISTS (SELECT 1 FROM lango_sessions WHERE ${SESSION_KEY})
        ON CONFLICT (app_name, user_id, session_id) DO UPDATE SET fence = excluded.fence, holder = excluded.holder,
          lease_until = excluded.lease_until, lease_ms = excluded.lease_ms WHERE ${isFree(dialect, 'lango_leases')}
        RETURNING fence`,
      ...[...names, holder, ttlMs, ttlMs, ...names, gone],
    ),
  ]
}

/** The lease of a session, or of a key without one, as it is stored. */
export function leaseStatement({ now }: Dialect, key: SessionKey): Statement {
  const names = namesOf(key)
  const columns = `holder, lease_until, ${now} AS now, CASE WHEN lease_until > ${now} + lease_ms THEN 1 ELSE 0 END AS is_ahead`
  return sql(
    `SELECT ${columns} FROM lango_sessions WHERE ${SESSION_KEY}
      UNION ALL SELECT ${columns} FROM lango_leases WHERE ${SESSION_KEY}
        AND NOT EXISTS (SELECT 1 FROM lango_sessions WHERE ${SESSION_KEY})`,
    ...[...names, ...names, ...names],
  )
}

/** A lease that lasts for longer than its time was stored before the clock was set back: it gets its time from now. */
export function limitBatch({ now }: Dialect, key: SessionKey): readonly Statement[] {
  const limit = (table: string) =>
    repeatableSql(
      `UPDATE ${table} SET lease_until = ${now} + lease_ms WHERE ${SESSION_KEY} AND lease_until > ${now} + lease_ms`,
      ...namesOf(key),
    )
  return [limit('lango_sessions'), limit('lango_leases')]
}

/** Leases by the rows of their sessions. Fences are unique in a store, so that each matches its own row only. */
export function renewStatement(
  dialect: Dialect,
  pks: readonly number[],
  fences: readonly number[],
): Statement {
  const { now, eachValue, forUpdate } = dialect
  const values = `SELECT CAST(value AS BIGINT) FROM ${eachValue}`
  return repeatableSql(
    `UPDATE lango_sessions SET lease_until = ${now} + lease_ms WHERE pk IN (
        SELECT pk FROM lango_sessions WHERE pk IN (${values}) ORDER BY pk${forUpdate}
      ) AND fence IN (${values}) RETURNING fence`,
    JSON.stringify(pks),
    JSON.stringify(fences),
  )
}

/** The lease of a key that had no session when it was granted. */
export function renewKeyBatch({ now }: Dialect, { key, fence }: LogLease): readonly Statement[] {
  const renew = (table: string) =>
    repeatableSql(
      `UPDATE ${table} SET lease_until = ${now} + lease_ms WHERE ${SESSION_KEY} AND fence = ? RETURNING fence`,
      ...namesOf(key),
      fence,
    )
  // A lease moves from its own table to the session: searched in this order, it is found in one of them.
  return [renew('lango_leases'), renew('lango_sessions')]
}

export function releaseBatch(dialect: Dialect, { key, fence }: LogLease): readonly Statement[] {
  const names = namesOf(key)
  return [
    // The session must not be created in between: it would take the lease over.
    ...dialect.keyLock(keyText(key)).map(lock => ({ ...lock, repeatable: true })),
    repeatableSql(
      `UPDATE lango_sessions SET ${RELEASED} WHERE ${SESSION_KEY} AND fence = ?`,
      ...names,
      fence,
    ),
    repeatableSql(`DELETE FROM lango_leases WHERE ${SESSION_KEY} AND fence = ?`, ...names, fence),
  ]
}
