/**
 * Erasing a user and deleting by age. Both hold to this:
 *
 * - A session is detached first, in one transaction: its row loses app, user, id and title, and its runs become ids
 *   without an owner. From then on it can neither be read nor be written to, and a run in progress is refused.
 * - Its rows are deleted afterwards, in slices that take a few milliseconds each, with the event loop free between them.
 *   Messages of a nested session in the log of an outer one that stays are emptied: the entries of a log have no gap.
 * - What a crash leaves is found by its detached row and is deleted by the next erasure or expiry.
 */
import { setTimeout as sleep, setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { EntryKind } from '../session/log-store.js'
import type { SessionKey } from '../session/message.js'
import type { RunStore } from '../session/run-store.js'
import type {
  EraseCounts,
  EraseOptions,
  EraseReceipt,
  ExpireOptions,
  ExpireReceipt,
  UserKey,
} from '../session/session-store.js'
import { lastDayBefore } from '../session/spending.js'
import { MESSAGE_COLUMNS } from './rows.js'
import {
  DAY_MS,
  type Dialect,
  HOUR_MS,
  numberIn,
  type Row,
  type SqlDatabase,
  type SqlValue,
  type Statement,
  sql,
  type Task,
  textIn,
} from './sql-database.js'
import {
  COPYING,
  type Detached,
  detachIdleTask,
  detachSessionTask,
  detachUserTask,
  forgetRuns,
  idleStatement,
  logsIn,
  NOTHING,
  OWNER,
  PERSONAL_TABLES,
} from './sql-detach.js'
import { expireUsage } from './sql-spending.js'

/** Sessions and runs are detached before their rows are deleted; they are listed for the vacuum only. */
const TOUCHED_TABLES = new Set(['lango_sessions', 'lango_runs', ...PERSONAL_TABLES.map(({ table }) => table)])

/** Deletes all data of a user. */
export async function eraseUser(
  database: SqlDatabase,
  owner: UserKey,
  { rewrite = false }: EraseOptions = {},
): Promise<EraseReceipt> {
  const eraser = new Eraser(database)
  await eraser.deleteLeftovers()
  const counts = noCounts()
  // Repeated, because a request that was under way may have stored something between two steps.
  for (let pass = 0; pass < MOST_PASSES; pass++) {
    const found = await eraser.erasePass(owner)
    for (const kind of Object.keys(counts) as (keyof EraseCounts)[]) counts[kind] += found[kind]
    if (Object.values(found).every(count => count === 0)) break
  }
  const [clock] = await database.run(sql(`SELECT ${database.dialect.now} AS now`))
  return { ...counts, at: numberIn(clock, 'now'), residue: await removeResidue(database, rewrite) }
}

const MOST_PASSES = 100

/** Deletes a session and those nested in it; `false` when there is none. */
export async function deleteSession(database: SqlDatabase, key: SessionKey): Promise<boolean> {
  const detached = await database.write(() => detachSessionTask(database.dialect, key))
  await new Eraser(database).deleteDetached(detached, noCounts())
  const isDeleted = detached.length > 0
  // The text must not stay readable in the log either.
  if (isDeleted) await emptyLog(database)
  return isDeleted
}

/** Deletes a copy that could not be completed. */
export async function deleteCopy(database: SqlDatabase, pk: number): Promise<void> {
  await new Eraser(database).deleteDetached([{ ...NOTHING, pk }], noCounts())
}

/** A receipt of nothing. */
function noCounts(): EraseCounts {
  return {
    sessions: 0,
    messages: 0,
    runs: 0,
    events: 0,
    requests: 0,
    requestParts: 0,
    signals: 0,
    entries: 0,
    toolCalls: 0,
    observations: 0,
    indexed: 0,
    artifacts: 0,
    artifactPieces: 0,
    leases: 0,
    stateKeys: 0,
    usage: 0,
  }
}

/** Deletes sessions and run records by age. */
export async function expireOld(
  database: SqlDatabase,
  runs: RunStore,
  options: ExpireOptions,
): Promise<ExpireReceipt> {
  const { appName, sessionsMs, runsMs, usageMs, signal, trustClock = false } = options
  const [clock] = await database.run(clockStatement(database.dialect, appName))
  const now = numberIn(clock, 'now')
  const nothing = { sessions: 0, events: 0, requests: 0, signals: 0, usage: 0, now }
  const aheadMs = clockAheadMs(now, clock?.newest === null ? undefined : numberIn(clock, 'newest'))
  if (aheadMs !== undefined && !trustClock) return { ...nothing, clockAheadMs: aheadMs }
  const eraser = new Eraser(database)
  await eraser.deleteLeftovers()
  const sessions =
    sessionsMs === undefined ? 0 : await eraser.expireSessions(appName, now - sessionsMs, signal)
  const isStopped = signal?.aborted === true
  const pruned =
    runsMs === undefined || isStopped
      ? nothing
      : await runs.prune({ appName, before: Math.max(0, now - runsMs) })
  const usage =
    usageMs === undefined ? 0 : await expireUsage(database, appName, lastDayBefore(now - usageMs), signal)
  if (sessions + pruned.events + pruned.requests + usage > 0) await emptyLog(database)
  return { ...nothing, ...pruned, sessions, usage, now }
}

/**
 * How far the clock is ahead of the newest time that was stored before the last day, if that is too far to be
 * believed. The last day does not count: after a jump of the clock, new messages carry the wrong time as well.
 */
function clockAheadMs(now: number, newestBeforeYesterday: number | undefined): number | undefined {
  if (newestBeforeYesterday === undefined) return undefined
  const aheadMs = now - newestBeforeYesterday
  return aheadMs > DAY_MS + BELIEVABLE_PAUSE_MS ? aheadMs : undefined
}

/** A weekend without messages is usual. */
const BELIEVABLE_PAUSE_MS = 3 * DAY_MS

function clockStatement({ now }: Dialect, appName: string): Statement {
  return sql(
    `SELECT clock.now AS now, (
      SELECT max(stored.at) FROM (
        SELECT max(updated_hour) * ${HOUR_MS} AS at FROM lango_sessions
          WHERE app_name = ? AND updated_hour < (${now} - ${DAY_MS}) / ${HOUR_MS}
        UNION ALL SELECT newest.at FROM (SELECT accepted_at AS at FROM lango_runs
          WHERE accepted_at < ${now} - ${DAY_MS} ORDER BY pk DESC LIMIT 1) AS newest
      ) AS stored
    ) AS newest FROM (SELECT ${now} AS now) AS clock`,
    appName,
  )
}

/** Removes deleted bytes from the files as far as the database can. */
async function removeResidue(database: SqlDatabase, rewrite: boolean): Promise<EraseReceipt['residue']> {
  const residue = await database.vacuum(TOUCHED_TABLES, rewrite)
  return (await emptyLog(database)) ? residue : 'log'
}

/** Empties the write-ahead log, trying again while others use it. `false` when they still do. */
async function emptyLog(database: SqlDatabase): Promise<boolean> {
  for (let pauseMs = 2; pauseMs < LONGEST_LOG_PAUSE_MS; pauseMs *= 1.5) {
    if (await database.emptyLog()) return true
    await sleep(pauseMs)
  }
  return database.emptyLog()
}

/** Together about two seconds. */
const LONGEST_LOG_PAUSE_MS = 600

class Eraser {
  readonly #database: SqlDatabase
  #sliceRows = 64

  constructor(database: SqlDatabase) {
    this.#database = database
  }

  /** Deletes what there is now, and counts it. */
  async erasePass({ appName, userId }: UserKey): Promise<EraseCounts> {
    const counts = noCounts()
    for (const { kind, table, belongsTo } of PERSONAL_TABLES)
      if (belongsTo === 'user') counts[kind] += await this.#deleteRows(table, belongsTo, appName, userId)
    const nestedApps = new Set<string>()
    for (let left = true; left; ) {
      const { dialect } = this.#database
      const detached = await this.#database.write(() => detachUserTask(dialect, appName, userId))
      left = detached.length > 0
      for (const { nestedApp } of detached) if (nestedApp !== '') nestedApps.add(nestedApp)
      await this.deleteDetached(detached, counts)
    }
    for (const app of nestedApps) await this.#eraseNested(app, userId, counts)
    return counts
  }

  /** Deletes idle sessions of an app. Their order is that of the index, oldest hour first. */
  async expireSessions(appName: string, before: number, signal: AbortSignal | undefined): Promise<number> {
    const { dialect } = this.#database
    const counts = noCounts()
    const isStopped = () => signal?.aborted === true
    let [afterHour, afterPk] = [-1, -1]
    while (!isStopped()) {
      const page = await this.#database.run(idleStatement(dialect, { appName, before, afterHour, afterPk }))
      for (const row of page) {
        const names = { appName, userId: textIn(row, 'user_id'), sessionId: textIn(row, 'session_id') }
        const detached = await this.#database.write(() => detachIdleTask(dialect, names, before))
        await this.deleteDetached(detached, counts)
        if (isStopped()) break
      }
      const last = page.at(-1)
      if (last === undefined) break
      afterHour = numberIn(last, 'updated_hour')
      afterPk = numberIn(last, 'pk')
    }
    return counts.sessions
  }

  /** Finishes erasures that were interrupted. */
  async deleteLeftovers(): Promise<void> {
    for (let left = true; left; ) {
      const found = await this.#database.run(detachedSessions(this.#database.dialect))
      const sessions = found.map(row => ({ ...NOTHING, pk: numberIn(row, 'pk'), logs: logsIn(row) }))
      await this.deleteDetached(sessions, noCounts())
      left = sessions.length > 0
    }
    await this.#database.run(forgetRuns(this.#database.dialect))
  }

  /** An inner app may also be used by itself: then the user's state in it belongs to those sessions. */
  async #eraseNested(appName: string, userId: string, counts: EraseCounts): Promise<void> {
    const [own] = await this.#database.run(sql(OWN_SESSION, appName, userId))
    if (own === undefined) {
      counts.stateKeys += await this.#deleteRows('lango_user_state', 'user', appName, userId)
    }
  }

  /** Deletes the rows of what was detached, in slices, and counts them. */
  async deleteDetached(detached: readonly Detached[], counts: EraseCounts): Promise<void> {
    for (const { pk, logs, runs, events, leases } of detached) {
      counts.leases += leases
      counts.runs += runs
      counts.events += events
      for (const log of logs) await this.#emptyMessages(log, pk, counts)
      // Before the documents, by which they are found.
      await this.#database.dialect.words.removeSession(this.#database, pk)
      for (const { kind, table, belongsTo } of PERSONAL_TABLES) {
        if (belongsTo !== 'session') continue
        counts[kind] +=
          table === 'lango_entries'
            ? await this.#deleteEntries(pk, counts)
            : await this.#deleteRows(table, belongsTo, pk)
      }
      await this.#database.run(sql('DELETE FROM lango_sessions WHERE pk = ?', pk))
      counts.sessions += 1
    }
  }

  /** Empties the messages of a session in the log of another one. */
  async #emptyMessages(log: number, pk: number, counts: EraseCounts): Promise<void> {
    const { dialect } = this.#database
    const [session] = await this.#database.run(
      sql('SELECT entry_count FROM lango_sessions WHERE pk = ?', log),
    )
    for (let after = 0; after < numberIn(session, 'entry_count'); after += EMPTIED_AT_ONCE) {
      const slice = { log, pk, after, through: after + EMPTIED_AT_ONCE }
      for (const row of await this.#database.write(() => emptyTask(dialect, slice))) addEntry(counts, row)
      await yieldToEventLoop()
    }
  }

  async #deleteEntries(pk: number, counts: EraseCounts): Promise<number> {
    const text = `${this.#database.dialect.deleteSome('lango_entries', OWNER.session)}
      RETURNING kind, message_seq, events`
    return this.#deleteSlices(text, [pk], row => addEntry(counts, row))
  }

  #deleteRows(table: string, belongsTo: keyof typeof OWNER, ...owner: readonly SqlValue[]): Promise<number> {
    const text = `${this.#database.dialect.deleteSome(table, OWNER[belongsTo])} RETURNING 1 AS gone`
    return this.#deleteSlices(text, owner)
  }

  /** Slices grow and shrink with the time that they take: rows have any size. */
  async #deleteSlices(
    text: string,
    owner: readonly SqlValue[],
    onRow: (row: Row) => void = () => {},
  ): Promise<number> {
    for (let deleted = 0; ; ) {
      const started = performance.now()
      const limit = this.#sliceRows
      const rows = await this.#database.run(sql(text, ...owner, limit))
      const tookMs = performance.now() - started
      if (tookMs > SLICE_MS) this.#sliceRows = Math.max(LEAST_ROWS, Math.floor(limit / 2))
      else if (tookMs < SLICE_MS / 4 && rows.length === limit)
        this.#sliceRows = Math.min(MOST_ROWS, limit * 2)
      deleted += rows.length
      rows.forEach(onRow)
      await yieldToEventLoop()
      if (rows.length < limit) return deleted
    }
  }
}

/** Counts the content of an entry. */
function addEntry(counts: EraseCounts, row: Row): void {
  const kind = textIn(row, 'kind')
  if (row.message_seq !== null) counts.messages += 1
  counts.events += numberIn(row, 'events')
  if (kind === 'request') counts.requests += 1
  if (POSTS.has(kind)) counts.signals += 1
}

const POSTS: ReadonlySet<string> = new Set<EntryKind>(['reply', 'stop', 'steer'])

interface EmptiedSlice {
  log: number
  /** The session whose messages are emptied. */
  pk: number
  after: number
  through: number
}

/** Returns the kinds and counts of the entries. */
function* emptyTask(dialect: Dialect, { log, pk, after, through }: EmptiedSlice): Task<readonly Row[]> {
  yield sql(`SELECT pk FROM lango_sessions WHERE pk = ?${dialect.forUpdate}`, log)
  const slice = [log, after, through, pk]
  const held = yield sql(`SELECT kind, message_seq, events FROM lango_entries ${OF_SLICE}`, ...slice)
  if (held.length > 0) yield sql(`UPDATE lango_entries SET ${EMPTIED} ${OF_SLICE}`, ...slice)
  return held
}

const OF_SLICE = 'WHERE session_pk = ? AND seq > ? AND seq <= ? AND message_pk = ?'
const EMPTIED = [
  ...MESSAGE_COLUMNS,
  ...['message_pk', 'message_seq', 'data', 'salt', 'events', 'event_seq', 'pending'],
]
  .map(column => `${column} = NULL`)
  .join(', ')

const EMPTIED_AT_ONCE = 500
const SLICE_MS = 10
const LEAST_ROWS = 4
const MOST_ROWS = 1000

const OWN_SESSION =
  'SELECT pk FROM lango_sessions WHERE app_name = ? AND user_id = ? AND nested_in IS NULL LIMIT 1'

/** Copies that nobody completed within a day belong to a process that is gone. */
function detachedSessions({ now }: Dialect): Statement {
  return sql(
    `SELECT pk, nested_in FROM lango_sessions WHERE app_name = '' AND (
      user_id = '' OR (user_id = ? AND created_at < ${now} - ${DAY_MS})
    ) LIMIT 50`,
    COPYING.userId,
  )
}
