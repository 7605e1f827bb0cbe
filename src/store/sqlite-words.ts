/** Words are rows of a full-text table with the ids of `lango_memory_documents`. */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { type IndexRow, numberIn, type SqlDatabase, sql, type Task, type WordIndex } from './sql-database.js'

export class SqliteWords implements WordIndex {
  readonly columns = ''
  // Deleted text is overwritten, as in ordinary tables.
  readonly schema = [
    'CREATE VIRTUAL TABLE lango_memory_search USING fts5(scope, terms, tokenize = ascii, detail = none)',
    `INSERT INTO lango_memory_search (lango_memory_search, rank) VALUES ('secure-delete', 1)`,
  ]
  readonly terms = 'w.terms'
  readonly termsJoin = 'JOIN lango_memory_search w ON w.rowid = d.id'

  /** The full-text table first: SQLite would otherwise begin with the sessions of the user. */
  find(token: string, condition: string): string {
    return `SELECT s.session_id, d.seq, d.number, d.at, w.terms FROM lango_memory_search w
    CROSS JOIN lango_memory_documents d ON d.id = w.rowid CROSS JOIN lango_sessions s ON s.pk = d.session_pk
    WHERE lango_memory_search MATCH '"' || ${token} || '" AND ' || ?
      AND ${condition} AND d.at >= ? AND d.at < ? ORDER BY w.rowid DESC LIMIT ?`
  }

  anyOf(terms: readonly string[]): string {
    return `(${terms.map(term => `"${term}"`).join(' OR ')})`
  }

  *add(pk: number, scope: string, documents: readonly IndexRow[]): Task<void> {
    const added = yield sql(ADD_DOCUMENTS, pk, JSON.stringify(documents))
    const texts = added.map((row, index) => [numberIn(row, 'id'), documents[index]?.terms ?? ''])
    yield sql(ADD_WORDS, scope, JSON.stringify(texts))
  }

  *remove(ids: string): Task<void> {
    yield sql(
      'DELETE FROM lango_memory_search WHERE rowid IN (SELECT CAST(value AS BIGINT) FROM json_each(?))',
      ids,
    )
  }

  async removeSession(database: SqlDatabase, pk: number): Promise<void> {
    for (let after = 0; ; ) {
      const rows = await database.run(sql(SOME_DOCUMENTS, pk, after))
      const last = rows.at(-1)
      if (last === undefined) return
      await database.run(sql(`DELETE FROM lango_memory_search WHERE rowid IN (${SOME_DOCUMENTS})`, pk, after))
      after = numberIn(last, 'id')
      await yieldToEventLoop()
    }
  }
}

const ADD_DOCUMENTS = `INSERT INTO lango_memory_documents (session_pk, seq, number, at)
  SELECT ?, value ->> 'seq', value ->> 'number', value ->> 'at' FROM json_each(?) ORDER BY key RETURNING id`

const ADD_WORDS = `INSERT INTO lango_memory_search (rowid, scope, terms)
  SELECT each.value ->> 0, own.scope, each.value ->> 1
  FROM (SELECT ? AS scope) AS own, json_each(?) AS each`

const SOME_DOCUMENTS =
  'SELECT id FROM lango_memory_documents WHERE session_pk = ? AND id > ? ORDER BY id LIMIT 100'
