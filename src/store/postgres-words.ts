/** Words are a `tsvector` in `lango_memory_documents`, with a GIN index. */
import { type IndexRow, sql, type Task, type WordIndex } from './sql-database.js'

export class PostgresWords implements WordIndex {
  readonly columns = ', terms TEXT NOT NULL, words TSVECTOR NOT NULL'
  readonly schema = ['CREATE INDEX lango_memory_documents_words ON lango_memory_documents USING gin (words)']
  readonly terms = 'd.terms'
  readonly termsJoin = ''

  /** The index of words first, also before the server has statistics that say so. */
  find(token: string, condition: string): string {
    return `SELECT s.session_id, d.seq, d.number, d.at, d.terms FROM (
      SELECT id, session_pk, seq, number, at, terms FROM lango_memory_documents
      WHERE words @@ CAST('''' || ${token} || ''' & ' || ? AS tsquery) OFFSET 0
    ) AS d JOIN lango_sessions s ON s.pk = d.session_pk
    WHERE ${condition} AND d.at >= ? AND d.at < ? ORDER BY d.id DESC LIMIT ?`
  }

  anyOf(terms: readonly string[]): string {
    return `(${terms.map(term => `'${term}'`).join(' | ')})`
  }

  *add(pk: number, scope: string, documents: readonly IndexRow[]): Task<void> {
    yield sql(ADD_DOCUMENTS, pk, scope, JSON.stringify(documents))
  }

  /** Deleted with their documents. */
  *remove(): Task<void> {}

  /** Deleted with their documents. */
  async removeSession(): Promise<void> {}
}

const ADD_DOCUMENTS = `INSERT INTO lango_memory_documents (session_pk, seq, number, at, terms, words)
  SELECT CAST(? AS BIGINT), d.seq, d.number, d.at, d.terms,
    array_to_tsvector(string_to_array(CAST(? AS TEXT) || ' ' || d.terms, ' '))
  FROM json_to_recordset(CAST(? AS json)) AS d (seq BIGINT, number BIGINT, at DOUBLE PRECISION, terms TEXT)`
