/**
 * The documents of memory, and their index of words (`WordIndex`). Each document also carries a token of its session and
 * one of its user, so that the database itself leaves out everybody else's documents. `lango_memory_terms` counts the
 * documents of each term: a search begins with rare terms, and a misspelt one is compared with those that exist.
 */
import type { SessionKey } from '../session/message.js'
import type {
  DocumentQuery,
  FoundDocument,
  IndexedDocument,
  IndexStep,
  MemoryScope,
} from '../session/session-memory.js'
import { type Dialect, numberIn, type Row, type Statement, sql, type Task, textIn } from './sql-database.js'

/** Whose documents are written. */
interface Place {
  pk: number
  owner: string
}

interface Document extends IndexedDocument {
  observation?: number
}

/** A token that all documents of a user have. Terms are letters and digits: no term equals it. */
export function ownerToken({ appName, userId }: Pick<SessionKey, 'appName' | 'userId'>): string {
  const { createHash } = process.getBuiltinModule('node:crypto')
  const digest = createHash('sha256')
    .update(JSON.stringify([appName, userId]))
    .digest('hex')
  return `§u${digest.slice(0, 20)}`
}

function sessionToken(pk: number | string): string {
  return `§s${pk}`
}

/** Replaces what is indexed after `afterSeq`. */
export function* indexTask(dialect: Dialect, place: Place, step: IndexStep): Task<void> {
  const { version, afterSeq, throughSeq, documents } = step
  yield* removeDocumentsTask(dialect, place.pk, { messages: { afterSeq, throughSeq } })
  yield* addDocumentsTask(dialect, place, documents, { version, throughSeq })
}

export function* addDocumentsTask(
  dialect: Dialect,
  { pk, owner }: Place,
  documents: readonly Document[],
  indexedTo?: IndexedTo,
): Task<void> {
  const indexed = documents.filter(({ terms }) => terms.length > 0)
  if (indexed.length === 0) {
    yield* countTask(dialect, { pk, sign: 1, indexedTo }, [])
    return
  }
  const rows = indexed.map(({ seq, at, terms, observation = 0 }) => {
    return { seq, at, number: observation, terms: terms.join(' ') }
  })
  yield* dialect.words.add(pk, `${sessionToken(pk)} ${owner}`, rows)
  yield* countTask(
    dialect,
    { pk, sign: 1, indexedTo },
    indexed.map(({ terms }) => terms),
  )
}

/** How far the index has got, when messages were added. */
type IndexedTo = Pick<IndexStep, 'version' | 'throughSeq'>

interface Count {
  pk: number
  sign: 1 | -1
  indexedTo?: IndexedTo | undefined
}

/** Adds documents to the counts, or takes them away. */
function* countTask(
  dialect: Dialect,
  { pk, sign, indexedTo }: Count,
  documents: readonly (readonly string[])[],
): Task<void> {
  const counts = new Map<string, number>()
  for (const terms of documents)
    for (const term of new Set(terms)) counts.set(term, (counts.get(term) ?? 0) + sign)
  if (counts.size > 0) yield sql(addCounts(dialect), pk, JSON.stringify(Object.fromEntries(counts)))
  if (sign < 0) yield sql('DELETE FROM lango_memory_terms WHERE session_pk = ? AND documents <= 0', pk)
  const length = documents.reduce((all, terms) => all + terms.length, 0)
  const { version = null, throughSeq = null } = indexedTo ?? {}
  yield sql(
    `UPDATE lango_memory SET documents = documents + ?, terms = terms + ?,
      version = COALESCE(CAST(? AS BIGINT), version), indexed_seq = COALESCE(CAST(? AS BIGINT), indexed_seq)
      WHERE session_pk = ?`,
    ...[sign * documents.length, sign * length, version, throughSeq, pk],
  )
}

/** The row of `lango_memory` is locked, so that no two writers add to the counts of a session. */
function addCounts({ eachEntry }: Dialect): string {
  return `INSERT INTO lango_memory_terms (session_pk, term, documents)
    SELECT CAST(? AS BIGINT), key, CAST(value AS BIGINT) FROM ${eachEntry} WHERE true
    ON CONFLICT (session_pk, term) DO UPDATE SET documents = lango_memory_terms.documents + excluded.documents`
}

interface Removal {
  messages?: { afterSeq: number; throughSeq?: number }
  observations?: readonly number[] | 'all'
  limit?: number
}

/** Removes documents of messages, or of observations, and returns how many. */
export function* removeDocumentsTask(dialect: Dialect, pk: number, removal: Removal): Task<number> {
  const { messages, observations, limit = -1 } = removal
  const { words } = dialect
  const [condition, parameters] = messages
    ? ['d.number = 0 AND d.seq > ? AND d.seq <= ?', [messages.afterSeq, messages.throughSeq ?? 2 ** 50]]
    : observations === 'all'
      ? ['d.number > 0', []]
      : [`d.number > 0 AND d.number ${dialect.among('BIGINT')}`, [JSON.stringify(observations ?? [])]]
  const rows = yield sql(
    `SELECT d.id, ${words.terms} FROM lango_memory_documents d ${words.termsJoin} WHERE d.session_pk = ? AND ${condition}
      ${limit > 0 ? `LIMIT ${limit}` : ''}`,
    pk,
    ...parameters,
  )
  if (rows.length === 0) return 0
  const ids = JSON.stringify(rows.map(row => numberIn(row, 'id')))
  yield* words.remove(ids)
  yield sql(`DELETE FROM lango_memory_documents WHERE id ${dialect.among('BIGINT')}`, ids)
  yield* countTask(dialect, { pk, sign: -1 }, rows.map(termsIn))
  return rows.length
}

function termsIn(row: Row): string[] {
  return textIn(row, 'terms').split(' ')
}

function ownerOf({ appName, userId, sessionId }: MemoryScope): { condition: string; names: string[] } {
  if (sessionId === undefined)
    return { condition: 's.app_name = ? AND s.user_id = ?', names: [appName, userId] }
  return {
    condition: 's.app_name = ? AND s.user_id = ? AND s.session_id = ?',
    names: [appName, userId, sessionId],
  }
}

/** A row for each term, and one without a term for the index as a whole. */
export function countTermsStatement(
  dialect: Dialect,
  scope: MemoryScope,
  terms: readonly string[],
): Statement {
  const { condition, names } = ownerOf(scope)
  return sql(
    `SELECT '' AS term, sum(m.documents) AS documents, sum(m.terms) AS terms FROM lango_sessions s
      JOIN lango_memory m ON m.session_pk = s.pk WHERE ${condition}
    UNION ALL SELECT t.term, sum(t.documents), 0 FROM lango_sessions s
      JOIN lango_memory_terms t ON t.session_pk = s.pk AND t.term ${dialect.among('TEXT')}
      WHERE ${condition} GROUP BY t.term`,
    ...names,
    JSON.stringify(terms),
    ...names,
  )
}

export function similarTermsStatement(scope: MemoryScope, prefix: string, limit: number): Statement {
  const { condition, names } = ownerOf(scope)
  return sql(
    `SELECT t.term, sum(t.documents) AS documents FROM lango_sessions s
      JOIN lango_memory_terms t ON t.session_pk = s.pk AND t.term >= ? AND t.term < ?
      WHERE ${condition} GROUP BY t.term ORDER BY documents DESC, t.term LIMIT ?`,
    prefix,
    `${prefix}\u{10ffff}`,
    ...names,
    limit,
  )
}

/** Terms hold neither quotes nor spaces; only documents of the scope are compared. */
export function findStatement({ words }: Dialect, scope: MemoryScope, query: DocumentQuery): Statement {
  const { condition, names } = ownerOf(scope)
  const { terms, after = -1e15, before = 1e15, limit } = query
  const range = [after, before]
  if (terms.length === 0) {
    return sql(
      `SELECT s.session_id, d.seq, d.number, d.at, ${words.terms} AS terms FROM lango_sessions s
        JOIN lango_memory_documents d ON d.session_pk = s.pk ${words.termsJoin}
        WHERE ${condition} AND d.at >= ? AND d.at < ? ORDER BY d.at DESC, d.seq DESC LIMIT ?`,
      ...[...names, ...range, limit],
    )
  }
  const token = scope.sessionId === undefined ? '?' : SESSION_TOKEN
  const tokenOf = scope.sessionId === undefined ? [ownerToken(scope)] : names
  return sql(words.find(token, condition), ...[...tokenOf, words.anyOf(terms), ...names, ...range, limit])
}

const SESSION_TOKEN = `COALESCE((SELECT '§s' || pk FROM lango_sessions
      WHERE app_name = ? AND user_id = ? AND session_id = ?), '§')`

export function readFound(rows: readonly Row[]): FoundDocument[] {
  return rows.map(row => {
    const number = numberIn(row, 'number')
    return {
      sessionId: textIn(row, 'session_id'),
      seq: numberIn(row, 'seq'),
      ...(number > 0 ? { observation: number } : {}),
      at: numberIn(row, 'at'),
      terms: termsIn(row),
    }
  })
}
