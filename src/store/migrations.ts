/**
 * The schema, version by version. A database written by any release opens in every later one: versions are
 * only ever added, and what one of them did is never edited afterwards.
 */
import { AgentError } from '../errors.js'
import { type Dialect, numberIn, type SqlDatabase, sql, type Task } from './sql-database.js'

/** Migrates a database under a lock, so that any number of processes may start at once. */
export async function migrate(database: SqlDatabase, upTo = MIGRATIONS.length): Promise<void> {
  const version = await database.read(() => readVersion(database.dialect))
  if (version > MIGRATIONS.length) throw newerSchema(version)
  if (version >= upTo) return
  await database.write(() => applyMissing(database.dialect, upTo))
}

/** The schema version of a database, and the newest that this release supports. Nothing is changed. */
export async function schemaVersion(database: SqlDatabase): Promise<{ version: number; known: number }> {
  const version = await database.read(() => readVersion(database.dialect))
  return { version, known: MIGRATIONS.length }
}

function* readVersion(dialect: Dialect): Task<number> {
  const [table] = yield sql(dialect.versionTableExists)
  if (numberIn(table, 'present') === 0) return 0
  const [row] = yield sql('SELECT max(version) AS version FROM lango_schema')
  return numberIn(row, 'version')
}

function* applyMissing(dialect: Dialect, upTo: number): Task<void> {
  if (dialect.migrationLock !== '') yield sql(dialect.migrationLock)
  yield sql('CREATE TABLE IF NOT EXISTS lango_schema (version INTEGER PRIMARY KEY)')
  // Read again: another process may have migrated while this one waited for the lock.
  const version = yield* readVersion(dialect)
  for (const [index, statements] of MIGRATIONS.slice(0, upTo).entries()) {
    if (index < version) continue
    for (const text of statements(dialect)) yield sql(text)
    yield sql('INSERT INTO lango_schema (version) VALUES (?)', index + 1)
  }
}

function newerSchema(version: number): AgentError {
  return new AgentError(
    'store-newer-schema',
    `The database has schema version ${version}, written by a newer Lango; this release supports up to ${MIGRATIONS.length}. ` +
      'Upgrade Lango, or open another database',
    { details: { version, known: MIGRATIONS.length } },
  )
}

const MIGRATIONS: readonly ((dialect: Dialect) => readonly string[])[] = [
  sessionsAndRuns,
  calibrationAndView,
  nestedSessions,
  requestParts,
  titlesAndRuns,
  leaseTimes,
  queuedRunsAndCalls,
  resumableRuns,
  memory,
  artifacts,
  spending,
  sharedParts,
  dueRunsAndSchedules,
]

/** The newest schema version that this release supports. */
export const KNOWN_VERSION = MIGRATIONS.length

function sessionsAndRuns(dialect: Dialect): readonly string[] {
  return [...sessionTables(dialect), ...stateTables(), ...leaseTables(dialect), ...runTables(dialect)]
}

function sessionTables({ identity, integer, real, roomForUpdates }: Dialect): readonly string[] {
  return [
    `CREATE TABLE lango_sessions (
      pk ${identity},
      app_name TEXT NOT NULL,
      user_id TEXT NOT NULL,
      session_id TEXT NOT NULL,
      message_count ${integer} NOT NULL,
      token_total ${integer} NOT NULL,
      turn_seq ${integer} NOT NULL,
      created_at ${integer} NOT NULL,
      updated_at ${integer} NOT NULL,
      updated_hour ${integer} NOT NULL,
      UNIQUE (app_name, user_id, session_id)
    )${roomForUpdates}`,
    // By the hour, so that an append rarely touches it: an index on the moment would be rewritten every time.
    'CREATE INDEX lango_sessions_recent ON lango_sessions (app_name, updated_hour)',
    `CREATE TABLE lango_messages (
      session_pk ${integer} NOT NULL,
      seq ${integer} NOT NULL,
      flags ${integer} NOT NULL,
      tokens ${integer} NOT NULL,
      timestamp ${real} NOT NULL,
      role TEXT NOT NULL,
      author TEXT,
      event_id TEXT,
      long_event_id TEXT,
      invocation_id TEXT,
      branch TEXT,
      content TEXT,
      tool_calls TEXT,
      extra TEXT,
      PRIMARY KEY (session_pk, seq)
    )`,
    `CREATE UNIQUE INDEX lango_messages_event ON lango_messages (session_pk, event_id) WHERE event_id IS NOT NULL`,
  ]
}

function stateTables(): readonly string[] {
  return [
    `CREATE TABLE lango_app_state (
      app_name TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (app_name, key)
    )`,
    `CREATE TABLE lango_user_state (
      app_name TEXT NOT NULL, user_id TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
      PRIMARY KEY (app_name, user_id, key)
    )`,
    `CREATE TABLE lango_session_state (
      session_pk BIGINT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (session_pk, key)
    )`,
  ]
}

function leaseTables({ identity, integer }: Dialect): readonly string[] {
  return [
    `CREATE TABLE lango_leases (
      id ${identity},
      app_name TEXT NOT NULL,
      user_id TEXT NOT NULL,
      session_id TEXT NOT NULL,
      expires_at ${integer} NOT NULL
    )`,
    'CREATE INDEX lango_leases_line ON lango_leases (app_name, user_id, session_id, id)',
  ]
}

function runTables({ identity, integer }: Dialect): readonly string[] {
  return [
    `CREATE TABLE lango_runs (
      run_id TEXT PRIMARY KEY, app_name TEXT NOT NULL, user_id TEXT NOT NULL, session_id TEXT NOT NULL
    )`,
    'CREATE INDEX lango_runs_session ON lango_runs (app_name, user_id, session_id)',
    `CREATE TABLE lango_run_events (
      run_id TEXT NOT NULL, seq ${integer} NOT NULL, stored_at ${integer} NOT NULL, event TEXT NOT NULL,
      PRIMARY KEY (run_id, seq)
    )`,
    `CREATE TABLE lango_run_requests (
      run_id TEXT NOT NULL, step ${integer} NOT NULL, stored_at ${integer} NOT NULL, record TEXT NOT NULL,
      PRIMARY KEY (run_id, step)
    )`,
    `CREATE TABLE lango_run_signals (
      id ${identity}, run_id TEXT NOT NULL, stored_at ${integer} NOT NULL, signal TEXT NOT NULL
    )`,
    'CREATE INDEX lango_run_signals_run ON lango_run_signals (run_id, id)',
  ]
}

function calibrationAndView({ integer, joinedOutputs }: Dialect): readonly string[] {
  return [
    `CREATE TABLE lango_calibration (
      model TEXT PRIMARY KEY, bytes ${integer} NOT NULL, tokens ${integer} NOT NULL
    )`,
    `CREATE VIEW lango_messages_readable AS
      SELECT s.app_name, s.user_id, s.session_id, m.seq, m.role, m.author, m.timestamp,
        COALESCE(m.content, ${joinedOutputs}) AS content, m.tool_calls, m.extra, m.tokens
      FROM lango_messages m JOIN lango_sessions s ON s.pk = m.session_pk`,
  ]
}

/** A session may belong to one of another app, of the same user and id. */
function nestedSessions(): readonly string[] {
  return [
    'ALTER TABLE lango_sessions ADD COLUMN nested_in TEXT',
    `CREATE INDEX lango_sessions_nested ON lango_sessions (user_id, session_id, nested_in)
      WHERE nested_in IS NOT NULL`,
  ]
}

/** Parts that the requests of a run share are stored once; ids of deleted runs are kept for a while; indexes by age serve pruning. */
function requestParts({ identity, integer }: Dialect): readonly string[] {
  return [
    `CREATE TABLE lango_run_parts (
      id ${identity}, run_id TEXT NOT NULL, digest TEXT NOT NULL, part TEXT NOT NULL, UNIQUE (run_id, digest)
    )`,
    `ALTER TABLE lango_runs ADD COLUMN deleted_at ${integer}`,
    'CREATE INDEX lango_runs_deleted ON lango_runs (deleted_at) WHERE deleted_at IS NOT NULL',
    'CREATE INDEX lango_run_events_age ON lango_run_events (stored_at)',
    'CREATE INDEX lango_run_requests_age ON lango_run_requests (stored_at)',
  ]
}

/** Sessions get a title that can be searched; runs record when they began and after which message. */
function titlesAndRuns({ integer }: Dialect): readonly string[] {
  return [
    'ALTER TABLE lango_sessions ADD COLUMN title TEXT',
    'ALTER TABLE lango_sessions ADD COLUMN search TEXT',
    `ALTER TABLE lango_runs ADD COLUMN started_at ${integer}`,
    `ALTER TABLE lango_runs ADD COLUMN after_seq ${integer}`,
  ]
}

/** A ticket records its own time, so that one process renews many at once and a clock that was set back is noticed. */
function leaseTimes({ integer }: Dialect): readonly string[] {
  return [`ALTER TABLE lango_leases ADD COLUMN ttl_ms ${integer}`]
}

/**
 * Runs are stored when they are accepted, with what another process needs to execute them. Runs of older releases have
 * no state: their events say whether they ended. The ledger of tool calls is numbered by a counter of the session.
 */
function queuedRunsAndCalls({ integer, roomForUpdates }: Dialect): readonly string[] {
  return [
    'ALTER TABLE lango_runs ADD COLUMN state TEXT',
    'ALTER TABLE lango_runs ADD COLUMN input TEXT',
    `ALTER TABLE lango_runs ADD COLUMN place ${integer}`,
    `CREATE INDEX lango_runs_unfinished ON lango_runs (app_name, user_id, session_id, place)
      WHERE state <> 'finished'`,
    `ALTER TABLE lango_sessions ADD COLUMN call_count ${integer} NOT NULL DEFAULT 0`,
    `CREATE TABLE lango_tool_calls (
      session_pk ${integer} NOT NULL,
      run_id TEXT NOT NULL,
      call_key TEXT NOT NULL,
      number ${integer} NOT NULL,
      id TEXT NOT NULL,
      call_id TEXT NOT NULL,
      tool TEXT NOT NULL,
      effect TEXT NOT NULL,
      digest TEXT NOT NULL,
      args TEXT NOT NULL,
      ordinal ${integer} NOT NULL,
      attempt ${integer} NOT NULL,
      status TEXT NOT NULL,
      result TEXT,
      answer TEXT,
      changed_at ${integer} NOT NULL,
      PRIMARY KEY (run_id, call_key, session_pk)
    )${roomForUpdates}`,
    'CREATE INDEX lango_tool_calls_equal ON lango_tool_calls (session_pk, digest, number)',
  ]
}

/**
 * Runs are resumed: what ADK appended is kept until they end, with the number of attempts. Calls keep what else their tools
 * requested. A ticket names the process that took it, so that the lease of one that was killed is free at once.
 */
function resumableRuns({ identity, integer }: Dialect): readonly string[] {
  return [
    `CREATE TABLE lango_run_journal (
      place ${identity}, run_id TEXT NOT NULL, entry_key TEXT NOT NULL, seq ${integer}, entry TEXT NOT NULL,
      UNIQUE (run_id, entry_key)
    )`,
    `ALTER TABLE lango_runs ADD COLUMN attempt ${integer}`,
    'ALTER TABLE lango_tool_calls ADD COLUMN actions TEXT',
    'ALTER TABLE lango_leases ADD COLUMN holder TEXT',
  ]
}

/**
 * Memory: observations, the index of words, and how far both have got. SQLite overwrites what it deletes, in the
 * full-text table too.
 */
function memory(dialect: Dialect): readonly string[] {
  const { identity, integer, real, roomForUpdates } = dialect
  const isSqlite = dialect.name === 'sqlite'
  return [
    `CREATE TABLE lango_memory (
      session_pk ${integer} PRIMARY KEY,
      version ${integer} NOT NULL DEFAULT 0,
      indexed_seq ${integer} NOT NULL DEFAULT 0,
      documents ${integer} NOT NULL DEFAULT 0,
      terms ${integer} NOT NULL DEFAULT 0,
      observed_seq ${integer} NOT NULL DEFAULT 0,
      observations ${integer} NOT NULL DEFAULT 0,
      log TEXT,
      usage TEXT
    )${roomForUpdates}`,
    `CREATE TABLE lango_observations (
      session_pk ${integer} NOT NULL,
      number ${integer} NOT NULL,
      kind TEXT NOT NULL,
      priority ${integer} NOT NULL,
      text TEXT NOT NULL,
      time ${real} NOT NULL,
      from_seq ${integer} NOT NULL,
      to_seq ${integer} NOT NULL,
      superseded_by ${integer},
      origin TEXT NOT NULL,
      created_at ${integer} NOT NULL,
      PRIMARY KEY (session_pk, number)
    )`,
    `CREATE TABLE lango_memory_documents (
      id ${identity}, session_pk ${integer} NOT NULL, seq ${integer} NOT NULL, number ${integer} NOT NULL,
      at ${real} NOT NULL${isSqlite ? '' : ', terms TEXT NOT NULL, words TSVECTOR NOT NULL'}
    )`,
    'CREATE UNIQUE INDEX lango_memory_documents_place ON lango_memory_documents (session_pk, number, seq)',
    'CREATE INDEX lango_memory_documents_time ON lango_memory_documents (session_pk, at)',
    `CREATE TABLE lango_memory_terms (
      session_pk ${integer} NOT NULL, term TEXT ${isSqlite ? '' : 'COLLATE "C"'} NOT NULL, documents ${integer} NOT NULL,
      PRIMARY KEY (session_pk, term)
    )${roomForUpdates}`,
    ...(isSqlite
      ? [
          'CREATE VIRTUAL TABLE lango_memory_search USING fts5(scope, terms, tokenize = ascii, detail = none)',
          `INSERT INTO lango_memory_search (lango_memory_search, rank) VALUES ('secure-delete', 1)`,
        ]
      : ['CREATE INDEX lango_memory_documents_words ON lango_memory_documents USING gin (words)']),
  ]
}

/**
 * Files of agents. A row belongs to a session, or, with the session 0, to a user of an app. Bodies are texts (base64 for
 * binary data) in pieces, so that no statement is long.
 */
function artifacts({ integer }: Dialect): readonly string[] {
  const owner = `session_pk ${integer} NOT NULL, app_name TEXT NOT NULL, user_id TEXT NOT NULL`
  return [
    `CREATE TABLE lango_artifacts (
      ${owner}, name TEXT NOT NULL, version ${integer} NOT NULL, blob TEXT NOT NULL, pieces ${integer} NOT NULL,
      header TEXT NOT NULL,
      PRIMARY KEY (session_pk, app_name, user_id, name, version)
    )`,
    'CREATE INDEX lango_artifacts_user ON lango_artifacts (app_name, user_id)',
    `CREATE TABLE lango_artifact_pieces (
      ${owner}, blob TEXT NOT NULL, number ${integer} NOT NULL, data TEXT NOT NULL,
      PRIMARY KEY (session_pk, app_name, user_id, blob, number)
    )`,
    'CREATE INDEX lango_artifact_pieces_user ON lango_artifact_pieces (app_name, user_id)',
  ]
}

/**
 * Money: a row for each model call, the sums that budgets are checked against, and what calls under way have reserved.
 * Amounts are billionths of a dollar, days are counted from 1970. Calls of runs without a budget have an index of
 * their own: they are in no sum.
 */
function spending({ integer, roomForUpdates }: Dialect): readonly string[] {
  const owner = `app_name TEXT NOT NULL, user_id TEXT NOT NULL`
  return [
    `CREATE TABLE lango_usage (
      id TEXT PRIMARY KEY, ${owner}, session_pk ${integer} NOT NULL, run_id TEXT NOT NULL, kind TEXT NOT NULL,
      model TEXT NOT NULL, day ${integer} NOT NULL, calls ${integer} NOT NULL, input_tokens ${integer} NOT NULL,
      output_tokens ${integer} NOT NULL, cached_tokens ${integer} NOT NULL, cache_write_tokens ${integer} NOT NULL,
      reasoning_tokens ${integer} NOT NULL, total_tokens ${integer} NOT NULL, cost ${integer}, budgeted ${integer} NOT NULL
    )`,
    'CREATE INDEX lango_usage_user ON lango_usage (app_name, user_id, day)',
    'CREATE INDEX lango_usage_unbudgeted ON lango_usage (app_name, user_id, day) WHERE budgeted = 0',
    'CREATE INDEX lango_usage_session ON lango_usage (session_pk) WHERE budgeted = 0',
    `CREATE TABLE lango_spend (
      ${owner}, scope TEXT NOT NULL, total ${integer} NOT NULL, PRIMARY KEY (app_name, user_id, scope)
    )${roomForUpdates}`,
    `CREATE TABLE lango_reservations (
      id TEXT PRIMARY KEY, ${owner}, session_pk ${integer} NOT NULL, run_id TEXT NOT NULL, day ${integer} NOT NULL,
      amount ${integer} NOT NULL, at ${integer} NOT NULL
    )`,
    'CREATE INDEX lango_reservations_user ON lango_reservations (app_name, user_id)',
  ]
}

/** Parts that the requests of a session share are stored once; those of older requests stay where they are. */
function sharedParts({ identity, integer }: Dialect): readonly string[] {
  return [
    `CREATE TABLE lango_request_parts (
      id ${identity}, session_pk ${integer} NOT NULL, digest TEXT NOT NULL, part TEXT NOT NULL,
      UNIQUE (session_pk, digest)
    )`,
  ]
}

/**
 * Runs that were accepted for later are outside the queues until they are due. Of each schedule the newest tick that was
 * dealt with is kept, with the rule that it belongs to.
 */
function dueRunsAndSchedules({ integer }: Dialect): readonly string[] {
  return [
    `ALTER TABLE lango_runs ADD COLUMN due_at ${integer}`,
    "CREATE INDEX lango_runs_due ON lango_runs (app_name, due_at) WHERE state = 'scheduled'",
    `CREATE TABLE lango_schedules (
      app_name TEXT NOT NULL, name TEXT NOT NULL, rule TEXT NOT NULL, tick ${integer} NOT NULL, run_id TEXT,
      PRIMARY KEY (app_name, name)
    )`,
  ]
}
