import { defined } from '../base/defined.js'
import { effectiveLimits, type Truncated, tokenBudgetTruncate } from '../session/budget.js'
import type { Session, SessionKey, StoredMessage } from '../session/message.js'
import type { LoadOptions } from '../session/session-store.js'
import { titleIn } from './listing.js'
import { MESSAGE_COLUMNS, MESSAGES, rowToMessage, STARTS_TURN } from './rows.js'
import { numberIn, type Row, type Statement, sql, type Task } from './sql-database.js'
import { readState } from './sql-state.js'
import { sessionNotFound } from './store-errors.js'

export function* loadTask(key: SessionKey, options: LoadOptions): Task<Session | undefined> {
  const [session] = yield findBefore(key, options.throughSeq)
  return session === undefined ? undefined : yield* viewSession(key, session, options)
}

const SESSION_KEY = 'app_name = ? AND user_id = ? AND session_id = ?'

function findStatement(key: SessionKey, lock = ''): Statement {
  return sql(
    `SELECT pk, message_count, token_total, turn_seq, created_at, updated_at, title
      FROM lango_sessions WHERE ${SESSION_KEY}${lock}`,
    key.appName,
    key.userId,
    key.sessionId,
  )
}

/** A session with its counters as they were before the messages after `throughSeq`. */
function findBefore(key: SessionKey, throughSeq: number | undefined): Statement {
  if (throughSeq === undefined) return findStatement(key)
  const { appName, userId, sessionId } = key
  return sql(FIND_BEFORE, throughSeq, throughSeq, throughSeq, appName, userId, sessionId)
}

export function* findSession(key: SessionKey, lock = ''): Task<Row> {
  const [session] = yield findStatement(key, lock)
  if (session === undefined) throw sessionNotFound(key)
  return session
}

export function* viewSession(key: SessionKey, row: Row, options: LoadOptions): Task<Session> {
  const state = yield* readState(key, numberIn(row, 'pk'))
  const source = yield* tailSource(row, options.throughSeq)
  return toSession(key, row, {
    state,
    totalMessages: source.totalMessages,
    ...(yield* readTail(source, options)),
  })
}

export function toSession(
  key: SessionKey,
  row: Row,
  {
    state,
    totalMessages,
    messages,
    cut,
  }: Truncated<StoredMessage> & Pick<Session, 'state' | 'totalMessages'>,
): Session {
  return {
    key: { appName: key.appName, userId: key.userId, sessionId: key.sessionId },
    state,
    messages,
    totalMessages,
    ...defined({ cut }),
    ...titleIn(row.title),
    createdAt: numberIn(row, 'created_at'),
    updatedAt: numberIn(row, 'updated_at'),
  }
}

/** The counters of a session's row. */
interface TailSource {
  pk: number
  totalMessages: number
  totalTokens: number
  /** The last message by a person, 0 when there is none. */
  turnSeq: number
}

/** The counters of a session, or what they were before the messages after `throughSeq`. */
function* tailSource(row: Row, throughSeq: number | undefined): Task<TailSource> {
  const source = sourceOf(row)
  if (throughSeq === undefined || throughSeq >= source.totalMessages) return source
  const [later] = row.later_tokens === undefined ? yield sql(TOKENS_AFTER, source.pk, throughSeq) : [row]
  const [turn] = row.turn_before === undefined ? yield sql(TURN_BEFORE, source.pk, throughSeq) : [row]
  return {
    pk: source.pk,
    totalMessages: throughSeq,
    totalTokens: source.totalTokens - numberIn(later, 'later_tokens'),
    turnSeq: source.turnSeq <= throughSeq ? source.turnSeq : numberIn(turn, 'turn_before'),
  }
}

export function sourceOf(row: Row): TailSource {
  return {
    pk: numberIn(row, 'pk'),
    totalMessages: numberIn(row, 'message_count'),
    totalTokens: numberIn(row, 'token_total'),
    turnSeq: numberIn(row, 'turn_seq'),
  }
}

const TOKENS_AFTER = `SELECT COALESCE(sum(tokens), 0) AS later_tokens FROM ${MESSAGES} AS lango_messages WHERE session_pk = ? AND seq > ?`
const TURN_BEFORE = `SELECT seq AS turn_before FROM ${MESSAGES} AS lango_messages WHERE session_pk = ? AND seq <= ?
  AND flags & ${STARTS_TURN} <> 0 ORDER BY seq DESC LIMIT 1`
const FIND_BEFORE = `SELECT pk, message_count, token_total, turn_seq, created_at, updated_at, title,
    (SELECT COALESCE(sum(tokens), 0) FROM ${MESSAGES} AS lango_messages WHERE session_pk = pk AND seq > ?) AS later_tokens,
    CASE WHEN turn_seq > ? THEN (SELECT seq FROM ${MESSAGES} AS lango_messages WHERE session_pk = pk AND seq <= ?
      AND flags & ${STARTS_TURN} <> 0 ORDER BY seq DESC LIMIT 1) END AS turn_before
  FROM lango_sessions WHERE ${SESSION_KEY}`

/**
 * The part of a history that fits, read from its end and no further than needed: until the budget or the
 * limit is exceeded, the current turn is complete, and every kept answer has its call. The cost does not depend on
 * the length of the session.
 */
function* readTail(source: TailSource, options: LoadOptions): Task<Truncated<StoredMessage>> {
  const limits = effectiveLimits(options.budgetTokens, options.maxMessages)
  const maxMessages = limits.maxMessages ?? Number.POSITIVE_INFINITY
  const tail = new Tail(source)
  let pageSize = firstPage(source, limits.budgetTokens, maxMessages)
  while (tail.hasMore() && !tail.isEnough(limits.budgetTokens, maxMessages)) {
    yield* tail.readPage(pageSize)
    pageSize = LARGEST_PAGE
  }
  let fitted = tail.fit(options)
  const soFar = tail.size
  while (fitted.missesCall && tail.hasMore() && tail.size - soFar < FARTHEST_CALL) {
    yield* tail.readPage(LARGEST_PAGE)
    fitted = tail.fit(options)
  }
  return fitted
}

export const LARGEST_PAGE = 500

/** How much further back the call of a late answer is searched for. Beyond that, repair treats it as missing. */
const FARTHEST_CALL = 2000

/** As many rows as the budget should take, going by the session's average. */
function firstPage(source: TailSource, budgetTokens: number, maxMessages: number): number {
  const average = Math.max(1, source.totalTokens / Math.max(1, source.totalMessages))
  const expected = Math.min(Math.ceil((budgetTokens / average) * 1.1) + 8, maxMessages + 8)
  const currentTurn = source.turnSeq === 0 ? 0 : source.totalMessages - source.turnSeq + 1
  return Math.min(Math.max(expected, currentTurn), LARGEST_PAGE)
}

export class Tail {
  readonly #source: TailSource
  #newestFirst: StoredMessage[] = []
  #tokens = 0
  #oldestSeq: number

  constructor(source: TailSource) {
    this.#source = source
    this.#oldestSeq = source.totalMessages + 1
  }

  get size(): number {
    return this.#newestFirst.length
  }

  hasMore(): boolean {
    return this.#oldestSeq > 1
  }

  isEnough(budgetTokens: number, maxMessages: number): boolean {
    const isSpent = this.#tokens > budgetTokens || this.size > maxMessages
    return isSpent && this.#oldestSeq <= (this.#source.turnSeq || Number.POSITIVE_INFINITY)
  }

  *readPage(size: number): Task<void> {
    const rows = yield sql(READ_OLDER, this.#source.pk, this.#oldestSeq, size)
    this.add(rows)
  }

  /** Adds rows, newest first. */
  add(rows: readonly Row[]): void {
    for (const row of rows) {
      const message = rowToMessage(row)
      this.#newestFirst.push(message)
      this.#tokens += message.tokens
    }
    // A page without rows ends the search, even if the counters say that there are more.
    this.#oldestSeq = rows.length === 0 ? 1 : (this.#newestFirst.at(-1)?.seq ?? 1)
  }

  fit({ budgetTokens, maxMessages, steady }: LoadOptions): Truncated<StoredMessage> {
    const preceding = {
      messages: this.#source.totalMessages - this.size,
      tokens: this.#source.totalTokens - this.#tokens,
    }
    return tokenBudgetTruncate(this.#newestFirst.toReversed(), budgetTokens, {
      maxMessages,
      steady,
      preceding,
    })
  }
}

const READ_OLDER = `SELECT seq, ${MESSAGE_COLUMNS.join(', ')} FROM ${MESSAGES} AS lango_messages
  WHERE session_pk = ? AND seq < ? ORDER BY seq DESC LIMIT ?`
