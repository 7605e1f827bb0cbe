/**
 * Money in SQL. The sums of a run, a session and a user's day are rows of `lango_spend`. A change of them writes
 * the row of the day first, so that all reservations of a user's day come one after another, and no two wait for each
 * other. What runs without a budget have spent is not in these rows: it is added up from `lango_usage` by an index that
 * holds nothing else.
 */
import { randomUUID } from 'node:crypto'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { SessionKey } from '../session/message.js'
import {
  byDay,
  DAY_MS,
  dayName,
  dayNumber,
  grantOf,
  RESERVED_MS,
  type SpendingAsk,
  type SpendingGrant,
  type SpendingLimits,
  type SpendingScope,
  type SpendingStore,
  tightest,
  toNanos,
  toUsd,
  type UsageLine,
  type UsageQuery,
} from '../session/spending.js'
import type { UsageKind, UsageRecord } from '../session/usage.js'
import {
  type Dialect,
  numberIn,
  type Row,
  type SqlDatabase,
  type SqlValue,
  type Statement,
  sql,
  type Task,
  textIn,
} from './sql-database.js'
import { sessionNotFound } from './store-errors.js'

export class SqlSpending implements SpendingStore {
  readonly #database: SqlDatabase

  constructor(database: SqlDatabase) {
    this.#database = database
  }

  reserve(ask: SpendingAsk): Promise<SpendingGrant> {
    return this.#database.write(() => reserveTask(this.#database.dialect, ask))
  }

  settle(id: string, spent: number): Promise<void> {
    return this.#database.write(() => settleTask(id, spent))
  }

  async usage(query: UsageQuery): Promise<UsageLine[]> {
    return (await this.#database.run(usageStatement(query))).map(toLine).sort(byDay)
  }
}

/** The rows that count for a call, the day first. */
interface Scopes {
  owner: readonly [appName: string, userId: string]
  day: string
  session: string
  run: string
}

function scopesOf(row: Row, appName: string, userId: string, runId: string): Scopes {
  return {
    owner: [appName, userId],
    day: `day/${numberIn(row, 'day')}`,
    session: `session/${numberIn(row, 'session_pk')}`,
    run: `run/${runId}`,
  }
}

function* reserveTask(dialect: Dialect, ask: SpendingAsk): Task<SpendingGrant> {
  const { key, runId, limits } = ask
  const { appName, userId } = key
  const [session] = yield sql(
    `SELECT pk AS session_pk, ${dialect.now} / ${DAY_MS} AS day FROM lango_sessions
      WHERE app_name = ? AND user_id = ? AND session_id = ?`,
    ...[appName, userId, key.sessionId],
  )
  if (session === undefined) throw sessionNotFound(key)
  const scopes = scopesOf(session, appName, userId, runId)
  const sums = yield addStatement(scopes, 0)
  const sumOf = (scope: SpendingScope) =>
    numberIn(
      sums.find(row => row.scope === scopes[scope]),
      'total',
    )
  const unbudgeted = yield* unbudgetedTask(session, key, limits)
  const left: SpendingLimits = {}
  for (const scope of ['run', 'session', 'day'] as const) {
    const limit = limits[scope]
    if (limit !== undefined) left[scope] = limit - sumOf(scope) - numberIn(unbudgeted, scope)
  }
  const granted = grantOf(left, ask)
  if (granted === 0) return yield* refusalTask(dialect, ask, session, left)
  yield addStatement(scopes, granted)
  yield sql(
    `INSERT INTO lango_reservations (id, app_name, user_id, session_pk, run_id, day, amount, at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ${dialect.now})`,
    ...[ask.id, appName, userId, numberIn(session, 'session_pk'), runId, numberIn(session, 'day'), granted],
  )
  return { granted }
}

/** Adds to the sums and returns them. The rows are locked in this order. */
function addStatement({ owner, day, session, run }: Scopes, amount: number): Statement {
  const rows = [day, session, run].flatMap<SqlValue>(scope => [...owner, scope, amount])
  return sql(ADD, ...rows)
}

const ADD = `INSERT INTO lango_spend (app_name, user_id, scope, total) VALUES (?, ?, ?, ?), (?, ?, ?, ?), (?, ?, ?, ?)
  ON CONFLICT (app_name, user_id, scope) DO UPDATE SET total = lango_spend.total + excluded.total
  RETURNING scope, total`

/** What runs without a budget have spent. */
function* unbudgetedTask(
  session: Row,
  { appName, userId }: SessionKey,
  limits: SpendingLimits,
): Task<Row | undefined> {
  if (limits.session === undefined && limits.day === undefined) return undefined
  const [row] = yield sql(
    UNBUDGETED,
    numberIn(session, 'session_pk'),
    appName,
    userId,
    numberIn(session, 'day'),
  )
  return row
}

const UNBUDGETED = `SELECT
  (SELECT sum(cost) FROM lango_usage WHERE session_pk = ? AND budgeted = 0) AS session,
  (SELECT sum(cost) FROM lango_usage WHERE app_name = ? AND user_id = ? AND day = ? AND budgeted = 0) AS day`

function* refusalTask(
  dialect: Dialect,
  { key, runId, limits }: SpendingAsk,
  session: Row,
  left: SpendingLimits,
): Task<SpendingGrant> {
  const scope = tightest(left)
  const owner = {
    run: ['run_id = ?', runId],
    session: ['session_pk = ?', numberIn(session, 'session_pk')],
    day: ['day = ?', numberIn(session, 'day')],
  } as const
  const [condition, value] = owner[scope]
  const [row] = yield sql(
    `SELECT sum(amount) AS pending FROM lango_reservations
      WHERE app_name = ? AND user_id = ? AND ${condition} AND at > ${dialect.now} - ${RESERVED_MS}`,
    ...[key.appName, key.userId, value],
  )
  const pending = numberIn(row, 'pending')
  return { granted: 0, scope, limit: limits[scope] ?? 0, left: left[scope] ?? 0, pending }
}

function* settleTask(id: string, spent: number): Task<void> {
  const [reserved] = yield sql(
    `DELETE FROM lango_reservations WHERE id = ? RETURNING app_name, user_id, session_pk, run_id, day, amount`,
    id,
  )
  if (reserved === undefined) return
  const names = [
    textIn(reserved, 'app_name'),
    textIn(reserved, 'user_id'),
    textIn(reserved, 'run_id'),
  ] as const
  yield addStatement(scopesOf(reserved, ...names), spent - numberIn(reserved, 'amount'))
}

const TOKENS = [
  'input_tokens',
  'output_tokens',
  'cached_tokens',
  'cache_write_tokens',
  'reasoning_tokens',
  'total_tokens',
] as const

/** The row of a model call of a run, in a write that has marked the session of the run. */
export function usageOfRun(
  dialect: Dialect,
  { pk, writeId }: { pk: number; writeId: string },
  runId: string,
  seq: number,
  record: UsageRecord,
): Statement {
  const source = 'lango_sessions s WHERE s.pk = ? AND s.write_id = ?'
  return insertUsage(dialect, { id: `${runId}/${seq}`, runId, record, source, owner: [pk, writeId] })
}

/** The row of calls for the memory of a session. */
export function usageOfMemory(dialect: Dialect, pk: number, runId: string, record: UsageRecord): Statement {
  const source = 'lango_sessions s WHERE s.pk = ?'
  return insertUsage(dialect, { id: `memory/${randomUUID()}`, runId, record, source, owner: [pk] })
}

interface NewUsage {
  id: string
  runId: string
  record: UsageRecord
  /** Where the session is found, and by what. */
  source: string
  owner: readonly SqlValue[]
}

/** Whether the run has a budget is known by its sum. */
function insertUsage({ now }: Dialect, { id, runId, record, source, owner }: NewUsage): Statement {
  const { kind, model, calls, usage } = record
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens, totalTokens } =
    usage
  return sql(
    `INSERT INTO lango_usage (id, app_name, user_id, session_pk, kind, model, day, calls,
        ${TOKENS.join(', ')}, cost, budgeted)
      SELECT CAST(? AS TEXT), s.app_name, s.user_id, s.pk, CAST(? AS TEXT), CAST(? AS TEXT),
        ${now} / ${DAY_MS}, ${'CAST(? AS BIGINT), '.repeat(8)} (SELECT count(*) FROM lango_spend t
          WHERE t.app_name = s.app_name AND t.user_id = s.user_id AND t.scope = CAST(? AS TEXT))
      FROM ${source} ON CONFLICT (id) DO NOTHING`,
    ...[id, kind, model, calls],
    ...[inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens, totalTokens],
    ...[usage.cost === undefined ? null : toNanos(usage.cost), `run/${runId}`, ...owner],
  )
}

function usageStatement({ appName, userId, model, from, to }: UsageQuery): Statement {
  const conditions: [string, SqlValue | undefined][] = [
    ['app_name = ?', appName],
    ['user_id = ?', userId],
    ['model = ?', model],
    ['day >= ?', from === undefined ? undefined : dayNumber(from)],
    ['day <= ?', to === undefined ? undefined : dayNumber(to)],
  ]
  const given = conditions.flatMap(([text, value]) => (value === undefined ? [] : [{ text, value }]))
  return sql(
    `SELECT day, user_id, model, kind, sum(calls) AS calls, ${TOKENS.map(name => `sum(${name}) AS ${name}`).join(', ')},
        sum(cost) AS cost, sum(CASE WHEN cost IS NULL THEN calls ELSE 0 END) AS unpriced
      FROM lango_usage WHERE ${given.map(({ text }) => text).join(' AND ')}
      GROUP BY day, user_id, model, kind`,
    ...given.map(({ value }) => value),
  )
}

/**
 * Deletes the rows of an app up to a day, user by user as the index has them, in slices. What runs without a budget have
 * spent is moved to the sum of their session first: deleting does not refill its budget.
 */
export async function expireUsage(
  database: SqlDatabase,
  appName: string,
  lastDay: number,
  signal: AbortSignal | undefined,
): Promise<number> {
  let deleted = 0
  const isStopped = () => signal?.aborted === true
  for (let userId: string | undefined; !isStopped(); ) {
    const [next] = await database.run(
      userId === undefined
        ? sql('SELECT min(user_id) AS user_id FROM lango_usage WHERE app_name = ?', appName)
        : sql(
            'SELECT min(user_id) AS user_id FROM lango_usage WHERE app_name = ? AND user_id > ?',
            appName,
            userId,
          ),
    )
    if (typeof next?.user_id !== 'string') break
    userId = next.user_id
    const owner = [appName, userId] as const
    for (let count = EXPIRED_AT_ONCE; count === EXPIRED_AT_ONCE && !isStopped(); deleted += count) {
      count = await database.write(() => expireTask(database.dialect, owner, lastDay))
      await yieldToEventLoop()
    }
  }
  return deleted
}

const EXPIRED_AT_ONCE = 200

function* expireTask(
  dialect: Dialect,
  owner: readonly [appName: string, userId: string],
  lastDay: number,
): Task<number> {
  const rows = yield sql(
    `${dialect.deleteSome('lango_usage', 'app_name = ? AND user_id = ? AND day <= ?')}
      RETURNING session_pk, cost, budgeted`,
    ...owner,
    lastDay,
    EXPIRED_AT_ONCE,
  )
  const moved = new Map<number, number>()
  for (const row of rows) {
    const pk = numberIn(row, 'session_pk')
    if (numberIn(row, 'budgeted') === 0) moved.set(pk, (moved.get(pk) ?? 0) + numberIn(row, 'cost'))
  }
  // In one order everywhere, so that no two wait for each other.
  for (const [pk, cost] of [...moved].sort(([one], [other]) => one - other)) {
    if (cost > 0) yield sql(ADD_TO_SESSION, ...owner, `session/${pk}`, cost)
  }
  return rows.length
}

const ADD_TO_SESSION = `INSERT INTO lango_spend (app_name, user_id, scope, total) VALUES (?, ?, ?, ?)
  ON CONFLICT (app_name, user_id, scope) DO UPDATE SET total = lango_spend.total + excluded.total`

function toLine(row: Row): UsageLine {
  const unpricedCalls = numberIn(row, 'unpriced')
  const usage = {
    inputTokens: numberIn(row, 'input_tokens'),
    outputTokens: numberIn(row, 'output_tokens'),
    cachedInputTokens: numberIn(row, 'cached_tokens'),
    cacheWriteTokens: numberIn(row, 'cache_write_tokens'),
    reasoningTokens: numberIn(row, 'reasoning_tokens'),
    totalTokens: numberIn(row, 'total_tokens'),
  }
  return {
    day: dayName(numberIn(row, 'day')),
    userId: textIn(row, 'user_id'),
    model: textIn(row, 'model'),
    kind: textIn(row, 'kind') as UsageKind,
    calls: numberIn(row, 'calls'),
    usage: unpricedCalls > 0 ? usage : { ...usage, cost: toUsd(numberIn(row, 'cost')) },
    unpricedCalls,
  }
}
