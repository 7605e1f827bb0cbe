import { type Dialect, type Statement, sql, type Task } from './sql-database.js'
import { SqliteWords } from './sqlite-words.js'

export class SqliteDialect implements Dialect {
  readonly now = 'CAST(lango_now() AS INTEGER)'
  readonly identity = 'INTEGER PRIMARY KEY AUTOINCREMENT'
  readonly integer = 'INTEGER'
  readonly real = 'REAL'
  readonly bytewiseText = 'TEXT'
  readonly roomForUpdates = ''
  readonly wideRows = ''
  readonly forUpdate = ''
  readonly forNoKeyUpdate = ''
  readonly forKeyShare = ''
  readonly versionTableExists = "SELECT count(*) AS present FROM sqlite_master WHERE name = 'lango_schema'"
  readonly eachValue = 'json_each(?)'
  readonly eachEntry = 'json_each(?)'
  readonly joinedOutputs =
    `(SELECT group_concat(value ->> '$.output', char(10)) FROM json_each(m.tool_calls))`
  readonly words = new SqliteWords()
  readonly fences = {
    create: ['CREATE TABLE lango_fences (last INTEGER NOT NULL)', 'INSERT INTO lango_fences VALUES (0)'],
    take: [sql('UPDATE lango_fences SET last = last + 1')],
    next: '(SELECT last FROM lango_fences)',
  }
  readonly lock = lockNothing
  readonly lockRows = lockNothing

  keyLock(): readonly Statement[] {
    return []
  }

  eachRecord(columns: Readonly<Record<string, string>>): string {
    const fields = Object.keys(columns).map(name => `value ->> '${name}' AS ${name}`)
    return `(SELECT ${fields.join(', ')} FROM json_each(?)) AS record`
  }

  among(type: 'BIGINT' | 'TEXT'): string {
    return `IN (SELECT CAST(value AS ${type}) FROM json_each(?))`
  }

  deleteSome(table: string, condition: string): string {
    return `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE ${condition} LIMIT ?)`
  }
}

/** Write transactions run one at a time. */
function* lockNothing(): Task<void> {}
