/**
 * Brings a database to the newest version of the schema. A database written by any release opens in every later one. A
 * newer one is refused, and so is one whose version has other statements than the release: it was written during the
 * development of that version.
 */
import { createHash } from 'node:crypto'
import { AgentError } from '../errors.js'
import { type SchemaVersion, VERSIONS } from './schema.js'
import { type Dialect, numberIn, type Row, type SqlDatabase, sql, type Task } from './sql-database.js'

/** Migrates a database under a lock, so that any number of processes may start at once. */
export async function migrate(database: SqlDatabase, versions = VERSIONS): Promise<void> {
  const { version, known } = await schemaVersion(database, versions)
  if (version > known) throw newerSchema(version, known)
  if (version < known) await database.write(() => applyMissing(database.dialect, versions))
}

/** The schema version of a database, and the newest that this release supports. Nothing is changed. */
export async function schemaVersion(
  database: SqlDatabase,
  versions = VERSIONS,
): Promise<{ version: number; known: number }> {
  const { dialect } = database
  const version = await database.read(function* (): Task<number> {
    const [table] = yield sql(dialect.versionTableExists)
    return numberIn(table, 'present') === 0 ? 0 : yield* readVersion(dialect, versions)
  })
  return { version, known: versions.length }
}

function* applyMissing(dialect: Dialect, versions: readonly SchemaVersion[]): Task<void> {
  yield* dialect.lock('migration')
  yield sql('CREATE TABLE IF NOT EXISTS lango_schema (version INTEGER PRIMARY KEY, digest TEXT NOT NULL)')
  // Read again: another process may have migrated while this one waited for the lock.
  const version = yield* readVersion(dialect, versions)
  if (version > versions.length) throw newerSchema(version, versions.length)
  for (const [index, statementsOf] of versions.entries()) {
    if (index < version) continue
    const statements = statementsOf(dialect)
    for (const text of statements) yield sql(text)
    yield sql('INSERT INTO lango_schema (version, digest) VALUES (?, ?)', index + 1, digestOf(statements))
  }
}

function* readVersion(dialect: Dialect, versions: readonly SchemaVersion[]): Task<number> {
  // All columns: a table without digests is found by the same statement.
  const rows = yield sql('SELECT * FROM lango_schema ORDER BY version')
  const isAltered = (row: Row) => {
    const statementsOf = versions[numberIn(row, 'version') - 1]
    return statementsOf !== undefined && row.digest !== digestOf(statementsOf(dialect))
  }
  if (rows.some(isAltered)) throw developmentSchema()
  return numberIn(rows.at(-1), 'version')
}

/** Line breaks and indentation do not count. */
function digestOf(statements: readonly string[]): string {
  const text = statements.map(statement => statement.replaceAll(/\s+/g, ' ').trim()).join(';')
  return createHash('sha256').update(text).digest('hex')
}

function newerSchema(version: number, known: number): AgentError {
  return new AgentError(
    'store-newer-schema',
    `The database has schema version ${version}, written by a newer Lango; this release supports up to ${known}. ` +
      'Upgrade Lango, or open another database',
    { details: { version, known } },
  )
}

function developmentSchema(): AgentError {
  return new AgentError(
    'store-corrupt',
    'The database was written by a development version of Lango before its first release and cannot be opened: ' +
      'use another file or database, and export its sessions with the version that wrote it (lango sessions export --all)',
  )
}
