/**
 * Observations and how far memory has got, in SQL. The row of `lango_memory` is locked by every write to the memory of
 * a session; what a writer has read before is compared under that lock, so that of two writers one adds nothing.
 */
import type { SessionKey, StoredMessage } from '../session/message.js'
import type {
  DocumentQuery,
  FoundDocument,
  IndexStep,
  MemoryProgress,
  MemoryScope,
  ObservationKind,
  ObservationLog,
  ObservationQuery,
  ObservationStep,
  Observed,
  ObserverUsage,
  SessionMemory,
  StoredObservation,
  TermCounts,
} from '../session/session-memory.js'
import { joinUsage, memoryUsage } from '../session/session-memory.js'
import { MESSAGE_COLUMNS, MESSAGES, rowToMessage } from './rows.js'
import {
  type Dialect,
  namesOf,
  numberIn,
  type Row,
  type SqlDatabase,
  sql,
  type Task,
  textIn,
} from './sql-database.js'
import {
  addDocumentsTask,
  countTermsStatement,
  findStatement,
  indexTask,
  ownerToken,
  readFound,
  removeDocumentsTask,
  similarTermsStatement,
} from './sql-memory-index.js'
import { usageOfMemory } from './sql-spending.js'
import { restoreText, storableText } from './storable-text.js'
import { leaseLost, sessionNotFound } from './store-errors.js'

export class SqlMemory implements SessionMemory {
  readonly #database: SqlDatabase

  constructor(database: SqlDatabase) {
    this.#database = database
  }

  async progress(key: SessionKey): Promise<MemoryProgress | undefined> {
    const [row] = await this.#database.run(sql(READ_PROGRESS, ...namesOf(key)))
    return row && toProgress(row)
  }

  async index(key: SessionKey, step: IndexStep): Promise<boolean> {
    const { dialect } = this.#database
    return this.#database.write(function* () {
      const memory = yield* lockTask(dialect, key)
      if (numberIn(memory, 'indexed_seq') !== step.afterSeq) return false
      yield* indexTask(dialect, { pk: numberIn(memory, 'session_pk'), owner: ownerToken(key) }, step)
      return true
    })
  }

  async observe(key: SessionKey, step: ObservationStep): Promise<StoredObservation[] | undefined> {
    const { dialect } = this.#database
    return this.#database.write(() => observeTask(dialect, key, step))
  }

  async readObservations(key: SessionKey, query: ObservationQuery = {}): Promise<StoredObservation[]> {
    const { numbers, current = false, afterNumber = 0, limit = 1000 } = query
    const wanted = numbers === undefined ? '' : `AND o.number ${this.#database.dialect.among('BIGINT')}`
    const text = `SELECT o.*, s.session_id FROM lango_observations o JOIN lango_sessions s ON s.pk = o.session_pk
      WHERE ${SESSION_KEY} AND o.number > ? ${current ? 'AND o.superseded_by IS NULL' : ''} ${wanted}
      ORDER BY o.number LIMIT ?`
    const chosen = numbers === undefined ? [] : [JSON.stringify(numbers)]
    const rows = await this.#database.run(sql(text, ...namesOf(key), afterNumber, ...chosen, limit))
    return rows.map(toObservation)
  }

  async forget(key: SessionKey, numbers: readonly number[]): Promise<number> {
    const { dialect } = this.#database
    return this.#database.write(function* () {
      const pk = numberIn(yield* lockTask(dialect, key), 'session_pk')
      const all = yield* withPredecessors(dialect, pk, numbers)
      yield* removeDocumentsTask(dialect, pk, { observations: all })
      const forgotten = yield sql(
        `UPDATE lango_observations SET text = '', kind = 'forgotten', superseded_by = number
          WHERE session_pk = ? AND kind <> 'forgotten'
            AND number ${dialect.among('BIGINT')} RETURNING number`,
        pk,
        JSON.stringify(all),
      )
      return forgotten.length
    })
  }

  async reset(key: SessionKey, what: { index?: boolean; observations?: boolean }): Promise<void> {
    const { dialect } = this.#database
    for (let left = true; left; ) left = await this.#database.write(() => resetTask(dialect, key, what))
  }

  async keepLog(key: SessionKey, log: ObservationLog): Promise<ObservationLog> {
    const { dialect } = this.#database
    return this.#database.write(function* () {
      const memory = yield* lockTask(dialect, key)
      const kept = readLog(memory)
      if (kept?.throughSeq === log.throughSeq) return kept
      const pk = numberIn(memory, 'session_pk')
      yield sql('UPDATE lango_memory SET log = ? WHERE session_pk = ?', JSON.stringify(log), pk)
      return log
    })
  }

  async countTerms(scope: MemoryScope, terms: readonly string[]): Promise<TermCounts> {
    const statement = countTermsStatement(this.#database.dialect, scope, terms)
    const [size, ...rows] = await this.#database.search(statement)
    const counts = new Map(rows.map(row => [textIn(row, 'term'), numberIn(row, 'documents')]))
    return { documents: numberIn(size, 'documents'), terms: numberIn(size, 'terms'), counts }
  }

  async similarTerms(scope: MemoryScope, prefix: string, limit: number): Promise<string[]> {
    const rows = await this.#database.search(similarTermsStatement(scope, prefix, limit))
    return rows.map(row => textIn(row, 'term'))
  }

  async findDocuments(scope: MemoryScope, query: DocumentQuery): Promise<FoundDocument[]> {
    return readFound(await this.#database.search(findStatement(this.#database.dialect, scope, query)))
  }

  async readMessages(key: SessionKey, seqs: readonly number[]): Promise<StoredMessage[]> {
    const text = `SELECT m.seq, ${MESSAGE_COLUMNS.map(column => `m.${column}`).join(', ')}
      FROM lango_sessions s JOIN ${MESSAGES} AS m ON m.session_pk = s.pk
        AND m.seq ${this.#database.dialect.among('BIGINT')}
      WHERE ${SESSION_KEY} ORDER BY m.seq`
    const rows = await this.#database.run(sql(text, JSON.stringify(seqs), ...namesOf(key)))
    return rows.map(rowToMessage)
  }
}

const SESSION_KEY = 's.app_name = ? AND s.user_id = ? AND s.session_id = ?'

const READ_PROGRESS = `SELECT s.message_count, m.* FROM lango_sessions s
  LEFT JOIN lango_memory m ON m.session_pk = s.pk WHERE ${SESSION_KEY}`

function toProgress(row: Row): MemoryProgress {
  const log = readLog(row)
  return {
    totalMessages: numberIn(row, 'message_count'),
    version: numberIn(row, 'version'),
    indexedSeq: numberIn(row, 'indexed_seq'),
    observedSeq: numberIn(row, 'observed_seq'),
    documents: numberIn(row, 'documents'),
    terms: numberIn(row, 'terms'),
    observations: numberIn(row, 'observations'),
    ...(log ? { log } : {}),
    ...(typeof row.usage === 'string' ? { usage: readUsage(row) } : {}),
  }
}

function readUsage(row: Row): ObserverUsage[] {
  return typeof row.usage === 'string' ? (JSON.parse(row.usage) as ObserverUsage[]) : []
}

function readLog(row: Row | undefined): ObservationLog | undefined {
  const log = row?.log
  return typeof log === 'string' ? (JSON.parse(log) as ObservationLog) : undefined
}

/**
 * Locks the memory of a session, which is created on first use. The session cannot be deleted meanwhile, and, with a
 * fence, its lease cannot end.
 */
function* lockTask(dialect: Dialect, key: SessionKey, fence?: number): Task<Row> {
  const { forKeyShare, forNoKeyUpdate, forUpdate } = dialect
  const [session] = yield sql(
    `SELECT s.pk, s.fence FROM lango_sessions s WHERE ${SESSION_KEY}${fence === undefined ? forKeyShare : forNoKeyUpdate}`,
    ...namesOf(key),
  )
  if (session === undefined) throw sessionNotFound(key)
  if (fence !== undefined && numberIn(session, 'fence') !== fence) throw leaseLost(key, fence)
  const pk = numberIn(session, 'pk')
  const read = `SELECT * FROM lango_memory WHERE session_pk = ?${forUpdate}`
  const [memory] = yield sql(read, pk)
  if (memory !== undefined) return memory
  yield sql('INSERT INTO lango_memory (session_pk) VALUES (?) ON CONFLICT (session_pk) DO NOTHING', pk)
  const [added] = yield sql(read, pk)
  return added ?? {}
}

function* observeTask(
  dialect: Dialect,
  key: SessionKey,
  { observed, supersedes = [], observations, fence, usage, runId = '' }: ObservationStep,
): Task<StoredObservation[] | undefined> {
  const memory = yield* lockTask(dialect, key, fence)
  const pk = numberIn(memory, 'session_pk')
  if (observed && numberIn(memory, 'observed_seq') !== observed.afterSeq) return undefined
  if (!(yield* areCurrent(dialect, pk, supersedes))) return undefined
  const before = numberIn(memory, 'observations')
  const added = yield* addObservationsTask(dialect, pk, before, observations)
  if (supersedes.length > 0) {
    yield sql(
      `UPDATE lango_observations SET superseded_by = ? WHERE session_pk = ?
        AND number ${dialect.among('BIGINT')}`,
      ...[before + 1, pk, JSON.stringify(supersedes)],
    )
    yield* removeDocumentsTask(dialect, pk, { observations: supersedes })
  }
  const documents = observations.map(({ fromSeq, time, terms = [] }, index) => {
    return { seq: fromSeq, at: time, terms, observation: before + 1 + index }
  })
  yield* addDocumentsTask(dialect, { pk, owner: ownerToken(key) }, documents)
  yield sql(
    'UPDATE lango_memory SET observations = ?, observed_seq = ?, usage = ? WHERE session_pk = ?',
    before + observations.length,
    observed?.throughSeq ?? numberIn(memory, 'observed_seq'),
    usage ? JSON.stringify(joinUsage(readUsage(memory), usage)) : (memory.usage ?? null),
    pk,
  )
  if (usage) yield usageOfMemory(dialect, pk, runId, memoryUsage(usage))
  return added.map(row => toObservation({ ...row, session_id: key.sessionId }))
}

/** One statement for all of them: by rules, most messages of a range become one each. */
function* addObservationsTask(
  dialect: Dialect,
  pk: number,
  before: number,
  observations: readonly Observed[],
): Task<readonly Row[]> {
  if (observations.length === 0) return []
  const rows = observations.map(({ kind, priority, text, time, fromSeq, toSeq, origin }, index) => {
    const stored = { text: storableText(text), origin: storableText(origin) }
    return { number: before + 1 + index, kind, priority, time, from_seq: fromSeq, to_seq: toSeq, ...stored }
  })
  const added = yield sql(addObservations(dialect), pk, JSON.stringify(rows))
  return added.toSorted((one, other) => numberIn(one, 'number') - numberIn(other, 'number'))
}

function addObservations(dialect: Dialect): string {
  const { integer, real, now } = dialect
  const columns = {
    number: integer,
    kind: 'TEXT',
    priority: integer,
    text: 'TEXT',
    time: real,
    from_seq: integer,
    to_seq: integer,
    origin: 'TEXT',
  }
  const names = Object.keys(columns).join(', ')
  return `INSERT INTO lango_observations (session_pk, ${names}, created_at)
    SELECT CAST(? AS BIGINT), ${names}, ${now} FROM ${dialect.eachRecord(columns)} RETURNING *`
}

function* areCurrent(dialect: Dialect, pk: number, numbers: readonly number[]): Task<boolean> {
  if (numbers.length === 0) return true
  const [found] = yield sql(
    `SELECT count(*) AS current FROM lango_observations WHERE session_pk = ? AND superseded_by IS NULL
      AND number ${dialect.among('BIGINT')}`,
    pk,
    JSON.stringify(numbers),
  )
  return numberIn(found, 'current') === new Set(numbers).size
}

/** A forgotten text must not be found in what it was made of either. */
function* withPredecessors(dialect: Dialect, pk: number, numbers: readonly number[]): Task<number[]> {
  const all = new Set(numbers)
  for (let newest = [...numbers]; newest.length > 0; ) {
    const rows = yield sql(
      `SELECT number FROM lango_observations WHERE session_pk = ?
        AND superseded_by ${dialect.among('BIGINT')}`,
      pk,
      JSON.stringify(newest),
    )
    newest = rows.map(row => numberIn(row, 'number')).filter(number => !all.has(number))
    for (const number of newest) all.add(number)
  }
  return [...all]
}

/** Deletes a slice. `true` when there is more. */
function* resetTask(
  dialect: Dialect,
  key: SessionKey,
  { index, observations }: { index?: boolean; observations?: boolean },
): Task<boolean> {
  const pk = numberIn(yield* lockTask(dialect, key), 'session_pk')
  if (index === true) {
    const gone = yield* removeDocumentsTask(dialect, pk, { messages: { afterSeq: 0 }, limit: RESET_SLICE })
    if (gone === RESET_SLICE) return true
    yield sql('UPDATE lango_memory SET version = 0, indexed_seq = 0 WHERE session_pk = ?', pk)
  }
  if (observations === true) {
    yield* removeDocumentsTask(dialect, pk, { observations: 'all' })
    // What a person has forgotten stays forgotten.
    yield sql(`DELETE FROM lango_observations WHERE session_pk = ? AND kind <> 'forgotten'`, pk)
    yield sql('UPDATE lango_memory SET observed_seq = 0, log = NULL WHERE session_pk = ?', pk)
  }
  return false
}

const RESET_SLICE = 500

function toObservation(row: Row): StoredObservation {
  const supersededBy = row.superseded_by
  return {
    sessionId: textIn(row, 'session_id'),
    number: numberIn(row, 'number'),
    text: restoreText(textIn(row, 'text')),
    kind: textIn(row, 'kind') as ObservationKind,
    priority: numberIn(row, 'priority') as Observed['priority'],
    time: numberIn(row, 'time'),
    fromSeq: numberIn(row, 'from_seq'),
    toSeq: numberIn(row, 'to_seq'),
    origin: restoreText(textIn(row, 'origin')),
    ...(supersededBy === null || supersededBy === undefined ? {} : { supersededBy: Number(supersededBy) }),
    createdAt: numberIn(row, 'created_at'),
  }
}
