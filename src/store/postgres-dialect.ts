import { PostgresWords } from './postgres-words.js'
import { type Dialect, type Statement, sql, type Task } from './sql-database.js'

export class PostgresDialect implements Dialect {
  readonly now = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint'
  readonly identity = 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY'
  readonly integer = 'BIGINT'
  readonly real = 'DOUBLE PRECISION'
  readonly bytewiseText = 'TEXT COLLATE "C"'
  readonly roomForUpdates = ' WITH (fillfactor = 70)'
  readonly wideRows = ' WITH (toast_tuple_target = 4080)'
  readonly forUpdate = ' FOR UPDATE'
  readonly forNoKeyUpdate = ' FOR NO KEY UPDATE'
  readonly forKeyShare = ' FOR KEY SHARE'
  readonly versionTableExists = "SELECT count(to_regclass('lango_schema')) AS present"
  readonly eachValue = 'json_array_elements_text(CAST(? AS json))'
  readonly eachEntry = 'json_each_text(CAST(? AS json))'
  // Escapes that no text can hold are left as JSON rather than failing the whole view.
  readonly joinedOutputs = `CASE WHEN m.tool_calls ~ '\\\\u(0000|[dD][89a-fA-F])' THEN m.tool_calls ELSE (
        SELECT string_agg(call ->> 'output', chr(10) ORDER BY place)
        FROM json_array_elements(m.tool_calls::json) WITH ORDINALITY AS calls (call, place)
      ) END`
  readonly words = new PostgresWords()
  readonly fences = { create: ['CREATE SEQUENCE lango_fences'], take: [], next: "nextval('lango_fences')" }

  keyLock(key: string): readonly Statement[] {
    return [sql(KEY_LOCK, key)]
  }

  eachRecord(columns: Readonly<Record<string, string>>): string {
    const fields = Object.entries(columns).map(([name, type]) => `${name} ${type}`)
    return `json_to_recordset(CAST(? AS json)) AS record (${fields.join(', ')})`
  }

  /** As an array: the server would read a joined table whole. */
  among(type: 'BIGINT' | 'TEXT'): string {
    return `= ANY (ARRAY(SELECT CAST(value AS ${type}) FROM ${this.eachValue}))`
  }

  /** As an array: the server finds rows by their place only in one. */
  deleteSome(table: string, condition: string): string {
    return `DELETE FROM ${table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM ${table} WHERE ${condition} LIMIT ?))`
  }

  *lock(work: keyof typeof LOCKS): Task<void> {
    yield sql(LOCKS[work])
  }

  *lockRows(statement: Statement): Task<void> {
    yield statement
  }
}

/** Released when the transaction ends, as those of `LOCKS`. */
const KEY_LOCK = 'SELECT pg_advisory_xact_lock(hashtextextended(?, 1280329301))'

/** Two arbitrary numbers identify a lock; they are the same in every release. */
export const LOCKS = {
  migration: 'SELECT pg_advisory_xact_lock(1280329301, 1)',
}
