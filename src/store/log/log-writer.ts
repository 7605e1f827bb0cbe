/**
 * Appends to the log. A write that was sent is stored, was stored before, or is refused; a refused one is explained by what
 * the session's row says now, and prepared again if that only shows that the writer knew something outdated.
 */
import { randomUUID } from 'node:crypto'
import { AgentError } from '../../errors.js'
import type { Appended, Entry, LogWrite, RunRow, Unread } from '../../session/log-store.js'
import type { SessionKey } from '../../session/message.js'
import { type CallRow, placeStatement, toPlace } from '../sql-calls.js'
import {
  namesOf,
  numberIn,
  type Row,
  SESSION_KEY,
  type SqlDatabase,
  type Statement,
  sql,
  textIn,
} from '../sql-database.js'
import {
  callWithoutFacts,
  leaseLost,
  runHasEnded,
  sessionBusy,
  sessionNotFound,
  storeIsBusy,
} from '../store-errors.js'
import { keyText, rowToEntry } from './log-rows.js'
import { type PreparedWrite, prepareWrite, type Replaced } from './prepared-write.js'
import { readStatement, rowToRun, runsByIds } from './read-log.js'
import { appendBatch, type Batch, earlierCalls, replacedBy, type WriteConditions } from './write-entries.js'
import { limitBatch } from './write-lease.js'
import { WriteNumbers } from './write-numbers.js'

/** The rows of sessions by their keys. A row number is never used again, so that an outdated one finds nothing. */
const MOST_KNOWN = 10_000

/** How often a write is prepared again because what it depends on has changed. */
export const MOST_ATTEMPTS = 5

/** The session has other parts of requests than the write says. */
export interface OutdatedParts {
  readonly partCount: number
}

export class LogWriter {
  readonly #database: SqlDatabase
  readonly #pks = new Map<string, number>()
  readonly #numbers = new WriteNumbers()
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #id = randomUUID().slice(0, 8)
  #writes = 0

  constructor(database: SqlDatabase) {
    this.#database = database
  }

  /** A lease of a session was granted to this process. */
  granted(key: SessionKey, pk: number, fence: number): void {
    this.#know(key, pk)
    this.#numbers.begin(fence)
  }

  released(fence: number): void {
    this.#numbers.end(fence)
  }

  knownPk(key: SessionKey): number | undefined {
    return this.#pks.get(keyText(key))
  }

  /** Resolves when the writes that have begun are stored or refused. */
  settled(): Promise<unknown> {
    return Promise.allSettled([...this.#underWay])
  }

  /** Writes that the store counts come one after another under each lease. */
  append(write: LogWrite, conditions: AppendConditions): Promise<Appended | Unread | OutdatedParts> {
    const { under } = write
    const append = () => this.#appendNow(write, conditions)
    const writing = under?.number === 'next' ? this.#numbers.inTurn(under.fence, append) : append()
    this.#underWay.add(writing)
    const ended = () => this.#underWay.delete(writing)
    writing.then(ended, ended)
    return writing
  }

  async #appendNow(
    write: LogWrite,
    conditions: AppendConditions,
  ): Promise<Appended | Unread | OutdatedParts> {
    let prepared = await this.#prepare(write)
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
      prepared = await this.#numbered(write, prepared)
      const sent = await this.#send(write, prepared, conditions)
      if (sent.appended) {
        this.#counted(write, prepared)
        return sent.appended
      }
      if (sent.replaced) {
        prepared = { ...prepared, id: this.nextId(), replaced: sent.replaced }
        continue
      }
      const row = await this.#rowOf(write.key)
      if (row && numberIn(row, 'pk') !== prepared.pk) {
        // The session was deleted and created again.
        this.#know(write.key, numberIn(row, 'pk'))
        prepared = await this.#prepare(write)
        continue
      }
      const stored = await this.#repeated(write, prepared, row)
      if (stored) {
        this.#counted(write, prepared)
        return stored
      }
      if (this.#isBehind(write, prepared, row)) continue
      const { parts } = write.also ?? {}
      const partCount = numberIn(row, 'part_count')
      if (parts && partCount !== parts.before && isNextWrite(prepared, row)) return { partCount }
      const received = numberIn(row, 'post_count')
      const isUnread = conditions.posts !== undefined && received !== conditions.posts
      if (isUnread && isNextWrite(prepared, row)) return { unread: received }
      if (conditions.onRefused && isNextWrite(prepared, row)) return conditions.onRefused()
      throw await this.#refusal(write, prepared, row)
    }
    throw storeIsBusy(write.key)
  }

  async #send(
    write: LogWrite,
    prepared: PreparedWrite,
    conditions: AppendConditions,
  ): Promise<{ appended?: Appended; replaced?: readonly Replaced[] }> {
    const batch = appendBatch(this.#database.dialect, prepared, conditions)
    const statements = [...batch.statements, ...(conditions.after?.(prepared) ?? [])]
    try {
      const rows = await this.#database.batch(joined(statements, prepared))
      const [row] = rows[batch.session] ?? []
      return row ? { appended: await this.#appended(prepared, batch, rows, row) } : {}
    } catch (error) {
      await this.#checkNested(prepared)
      if (!this.#database.isDuplicate(error)) throw error
      // Sent twice because the first answer was lost: the second finds the numbers of its entries taken.
      const row = await this.#rowOf(write.key)
      const stored = await this.#repeated(write, prepared, row)
      if (stored) return { appended: stored }
      const replaced = await this.replacedBy(write.key, prepared)
      if (replaced.length === 0 || prepared.replaced.length > 0) throw error
      return { replaced }
    }
  }

  /** A message of a nested session that was deleted cannot be stored. */
  async #checkNested({ sessions }: PreparedWrite): Promise<void> {
    for (const { key } of sessions) if (key && !(await this.#rowOf(key))) throw sessionNotFound(key)
  }

  /** The stored messages that have the ids of messages of a write. */
  async replacedBy(key: SessionKey, { rows, sessions }: PreparedWrite): Promise<Replaced[]> {
    const found: Replaced[] = []
    for (const { key: inner } of sessions) {
      const nested = inner ?? key
      const ids = rows.flatMap(({ entry, message }) =>
        keyText(entry.nested ?? key) === keyText(nested) ? (message?.eventId ?? []) : [],
      )
      const stored = await this.#database.run(
        sql(
          `SELECT e.message_pk, e.event_id, e.message_seq, e.tokens FROM lango_sessions s
            JOIN lango_entries e ON e.message_pk = s.pk AND e.message_seq IS NOT NULL
            WHERE s.app_name = ? AND s.user_id = ? AND s.session_id = ?
              AND e.event_id IN (SELECT value FROM ${this.#database.dialect.eachValue})`,
          ...namesOf(nested),
          JSON.stringify(ids),
        ),
      )
      found.push(
        ...stored.map(row => ({
          pk: numberIn(row, 'message_pk'),
          nested: inner,
          eventId: textIn(row, 'event_id'),
          seq: numberIn(row, 'message_seq'),
          tokens: numberIn(row, 'tokens'),
        })),
      )
    }
    return found
  }

  async #prepare(write: LogWrite): Promise<PreparedWrite> {
    const pk = await this.pkOf(write.key)
    return prepareWrite(pk, this.nextId(), write)
  }

  /** Gives a write its number, if the store counts. */
  async #numbered(write: LogWrite, prepared: PreparedWrite): Promise<PreparedWrite> {
    const { under } = prepared
    if (!under || write.under?.number !== 'next') return prepared
    if (!this.#numbers.has(under.fence)) {
      const row = await this.#rowOf(write.key)
      if (row && numberIn(row, 'fence') === under.fence)
        this.#numbers.set(under.fence, numberIn(row, 'write_number'), textIn(row, 'write_digest'))
    }
    const number = this.#numbers.next(under.fence, under.digest)
    return { ...prepared, id: this.nextId(), under: { ...under, number } }
  }

  #counted({ also }: LogWrite, { under }: PreparedWrite): void {
    if (under?.number === undefined) return
    if (also?.release) this.#numbers.end(under.fence)
    else this.#numbers.set(under.fence, under.number, under.digest)
  }

  /** An earlier write under the lease is stored although its answer was lost: this one comes after it. */
  #isBehind(write: LogWrite, { under }: PreparedWrite, row: Row | undefined): boolean {
    if (write.under?.number !== 'next' || under?.number === undefined) return false
    if (numberIn(row, 'fence') !== under.fence || numberIn(row, 'write_number') < under.number) return false
    this.#numbers.set(under.fence, numberIn(row, 'write_number'), textIn(row, 'write_digest'))
    return true
  }

  /** Why a write was not stored. `row`: the session as it is by now. */
  async #refusal(
    { key, runId, mayHaveEnded }: LogWrite,
    prepared: PreparedWrite,
    row: Row | undefined,
  ): Promise<AgentError> {
    const { under, calls } = prepared
    if (!row) {
      this.#pks.delete(keyText(key))
      return sessionNotFound(key)
    }
    if (!under) {
      // A lease that lasts for too long, because the clock was set back, is limited.
      await this.#database.batch(limitBatch(this.#database.dialect, key))
      return sessionBusy(key)
    }
    if (numberIn(row, 'fence') !== under.fence) return leaseLost(key, under.fence)
    const [run] = runId === undefined || mayHaveEnded ? [] : await this.#findRun(runId)
    if (runId !== undefined && !mayHaveEnded && (!run || run.state === 'finished')) return runHasEnded(runId)
    for (const call of earlierCalls(calls)) {
      const places = await this.#database.run(placeStatement(prepared.pk, call))
      if (places.length === 0) return callWithoutFacts(call.runId, call.id)
    }
    return under.number === undefined || isNextWrite(prepared, row)
      ? storeIsBusy(key)
      : anotherWrite(key, under.number, numberIn(row, 'write_number'))
  }

  async #appended(
    prepared: PreparedWrite,
    batch: Batch,
    rows: readonly (readonly Row[])[],
    session: Row,
  ): Promise<Appended> {
    const nested = rows.slice(batch.session + 1, batch.session + prepared.sessions.length)
    const appended = appendedIn(prepared, session, nested)
    if (prepared.calls.length === 0) return appended
    const places = prepared.calls.map((_, index) => rows[batch.calls + index]?.[0])
    const isFinal = areFinal(prepared.calls) && places.every(row => numberIn(row, 'unknown') === 0)
    if (!isFinal) return this.#withPlaces(prepared, appended)
    return { ...appended, calls: prepared.calls.map(({ id }, index) => toPlace(id, places[index] ?? {})) }
  }

  async #withPlaces({ pk, calls }: PreparedWrite, appended: Appended): Promise<Appended> {
    if (calls.length === 0) return appended
    const rows = await this.#database.read(function* () {
      const found: (readonly Row[])[] = []
      for (const call of calls) found.push(yield placeStatement(pk, call))
      return found
    })
    return { ...appended, calls: calls.map(({ id }, index) => toPlace(id, rows[index]?.[0] ?? {})) }
  }

  /** The answer to a write that is stored already. */
  async #repeated(
    { key, entries, under: given }: LogWrite,
    prepared: PreparedWrite,
    row: Row | undefined,
  ): Promise<Appended | undefined> {
    const { under, rows } = prepared
    if (under?.number === undefined) return undefined
    const digest = textIn(row, 'write_digest')
    const isCounted = given?.number === 'next'
    // The store no longer counts the writes of a lease that has ended.
    const isSameNumber = isCounted || numberIn(row, 'write_number') === under.number
    if (!isSameNumber) return undefined
    if (digest !== under.digest) {
      const isOther = isCounted || !digest.startsWith(`${under.fence}:`) || this.#numbers.has(under.fence)
      if (isOther) return undefined
      throw anotherWrite(key, under.number, under.number)
    }
    const seq = numberIn(row, 'write_entry')
    const stored = await this.#read(key, seq, rows.length)
    const messageSeqs = stored.flatMap(({ messageSeq }) => (messageSeq === undefined ? [] : [messageSeq]))
    const posts = numberIn(row, 'post_count')
    return this.#withPlaces(prepared, {
      seq,
      messageSeqs: entries.length === 0 ? [] : messageSeqs,
      posts,
    })
  }

  async #rowOf(key: SessionKey): Promise<Row | undefined> {
    const [row] = await this.#database.run(
      sql(
        `SELECT pk, fence, write_number, write_digest, write_entry, post_count, part_count FROM lango_sessions
          WHERE ${SESSION_KEY}`,
        ...namesOf(key),
      ),
    )
    return row
  }

  async pkOf(key: SessionKey): Promise<number> {
    const known = this.#pks.get(keyText(key))
    if (known !== undefined) return known
    const row = await this.#rowOf(key)
    if (!row) throw sessionNotFound(key)
    const pk = numberIn(row, 'pk')
    this.#know(key, pk)
    return pk
  }

  async #findRun(runId: string): Promise<RunRow[]> {
    return (await this.#database.run(runsByIds(this.#database.dialect, [runId]))).map(rowToRun)
  }

  async #read(key: SessionKey, seq: number, limit: number): Promise<Entry[]> {
    const query = { afterSeq: seq - 1, limit }
    return (await this.#database.run(readStatement(this.#database.dialect, key, query))).map(rowToEntry)
  }

  #know(key: SessionKey, pk: number): void {
    const [oldest] = this.#pks.keys()
    if (this.#pks.size >= MOST_KNOWN && oldest !== undefined) this.#pks.delete(oldest)
    this.#pks.set(keyText(key), pk)
  }

  nextId(): string {
    this.#writes += 1
    return `${this.#id}.${this.#writes}`
  }
}

export interface AppendConditions extends WriteConditions {
  /** Statements that follow those of the write. */
  after?(prepared: PreparedWrite): readonly Statement[]
  /** The answer when the lease is valid and another condition does not hold. */
  onRefused?(): Unread
}

/** Writes of several sessions may share a commit, unless they change rows that sessions share. */
function joined(
  statements: readonly Statement[],
  { pk, changes, also, sessions }: PreparedWrite,
): readonly Statement[] {
  const [first, ...others] = statements
  const isShared = changes.some(({ scope }) => scope !== 'session') || sessions.length > 1
  const [model, ...models] = new Set(also.calibration?.map(each => each.model))
  if (!first || isShared || models.length > 0) return statements
  // What sessions share comes last: they wait for it while they hold everything else.
  const order = `${model === undefined ? '0' : `1${model} `}${String(pk).padStart(16, '0')}`
  return [{ ...first, joining: { session: String(pk), order } }, ...others]
}

/** True if no change of a call affects what the statement of another one has returned. */
function areFinal(calls: readonly CallRow[]): boolean {
  const names = new Set(calls.map(({ runId, callKey }) => JSON.stringify([runId, callKey])))
  return (
    calls.length === 1 || (names.size === calls.length && calls.every(({ status }) => status !== 'unknown'))
  )
}

/** `nested`: the rows of nested sessions. */
function appendedIn(
  { rows, sessions, replaced }: PreparedWrite,
  session: Row,
  nested: readonly (readonly Row[])[],
): Appended {
  const counts = [session, ...nested.map(([row]) => row)]
  const next = new Map<string, number>()
  sessions.forEach(({ key, count }, index) => {
    const known = replaced.filter(({ nested }) => nameOf(nested) === nameOf(key))
    next.set(nameOf(key), numberIn(counts[index], 'message_count') - (count - known.length) + 1)
  })
  const messageSeqs = rows.flatMap(row => {
    const { entry, message } = row
    if (!message) return []
    const old = replacedBy(row, replaced)
    if (old) return [old.seq]
    const seq = next.get(nameOf(entry.nested)) ?? 0
    next.set(nameOf(entry.nested), seq + 1)
    return [seq]
  })
  const seq = numberIn(session, 'entry_count') - rows.length + 1
  return { seq, messageSeqs, posts: numberIn(session, 'post_count') }
}

function nameOf(key: SessionKey | undefined): string {
  return key ? keyText(key) : ''
}

/** True if this is the write that the lease expects, and no other one. */
function isNextWrite({ under }: PreparedWrite, row: Row | undefined): boolean {
  if (!under || numberIn(row, 'fence') !== under.fence) return false
  return under.number === undefined || numberIn(row, 'write_number') === under.number - 1
}

/** Two writers use one lease, or one has lost count. */
function anotherWrite({ sessionId }: SessionKey, number: number, last: number): AgentError {
  return new AgentError(
    'internal',
    `Write ${number} of session "${sessionId}" was refused: write ${last} under the same lease is stored and holds other entries. This is a defect in Lango: please report it.`,
    { details: { number, last } },
  )
}
