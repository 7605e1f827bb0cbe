/**
 * The tables of a store. After the first release a version is never edited: databases record a digest of its statements,
 * and one with another digest is refused. A change of the schema is a new version at the end of the list.
 */
import type { Dialect } from './sql-database.js'

/** The statements that make a version of the schema from the one before it. */
export type SchemaVersion = (dialect: Dialect) => readonly string[]

export const VERSIONS: readonly SchemaVersion[] = [
  dialect => [
    ...sessions(dialect),
    ...states(dialect),
    ...leases(dialect),
    ...runs(dialect),
    ...runRecords(dialect),
    ...toolCalls(dialect),
    ...memory(dialect),
    ...artifacts(dialect),
    ...spending(dialect),
    ...schedules(dialect),
  ],
]

/** A session may be nested in one of another app, of the same user and id. `call_count` numbers the ledger of tool calls. */
function sessions({ identity, integer, real, roomForUpdates, joinedOutputs }: Dialect): readonly string[] {
  return [
    `CREATE TABLE lango_sessions (
      pk ${identity},
      app_name TEXT NOT NULL,
      user_id TEXT NOT NULL,
      session_id TEXT NOT NULL,
      nested_in TEXT,
      title TEXT,
      search TEXT NOT NULL,
      message_count ${integer} NOT NULL,
      token_total ${integer} NOT NULL,
      turn_seq ${integer} NOT NULL,
      call_count ${integer} NOT NULL DEFAULT 0,
      created_at ${integer} NOT NULL,
      updated_at ${integer} NOT NULL,
      updated_hour ${integer} NOT NULL,
      UNIQUE (app_name, user_id, session_id)
    )${roomForUpdates}`,
    // By the hour, so that an append rarely touches it: an index on the moment would be rewritten every time.
    'CREATE INDEX lango_sessions_recent ON lango_sessions (app_name, updated_hour)',
    `CREATE INDEX lango_sessions_nested ON lango_sessions (user_id, session_id, nested_in)
      WHERE nested_in IS NOT NULL`,
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
    `CREATE VIEW lango_messages_readable AS
      SELECT s.app_name, s.user_id, s.session_id, m.seq, m.role, m.author, m.timestamp,
        COALESCE(m.content, ${joinedOutputs}) AS content, m.tool_calls, m.extra, m.tokens
      FROM lango_messages m JOIN lango_sessions s ON s.pk = m.session_pk`,
  ]
}

function states({ integer }: Dialect): readonly string[] {
  return [
    `CREATE TABLE lango_app_state (
      app_name TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (app_name, key)
    )`,
    `CREATE TABLE lango_user_state (
      app_name TEXT NOT NULL, user_id TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
      PRIMARY KEY (app_name, user_id, key)
    )`,
    `CREATE TABLE lango_session_state (
      session_pk ${integer} NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (session_pk, key)
    )`,
  ]
}

/**
 * A ticket records its own time, so that one process renews many at once and a clock that was set back is noticed. It
 * names its process, so that the lease of one that was killed is free at once; `holder` is empty where that is unknown.
 */
function leases({ identity, integer }: Dialect): readonly string[] {
  return [
    `CREATE TABLE lango_leases (
      id ${identity},
      app_name TEXT NOT NULL,
      user_id TEXT NOT NULL,
      session_id TEXT NOT NULL,
      expires_at ${integer} NOT NULL,
      ttl_ms ${integer} NOT NULL,
      holder TEXT NOT NULL
    )`,
    'CREATE INDEX lango_leases_line ON lango_leases (app_name, user_id, session_id, id)',
  ]
}

/**
 * Runs are stored when they are accepted, with the input that another process needs to execute them. `place` orders the
 * runs of a session. `after_seq` is the number of messages that the session had when the run began; `due_at` is set for runs
 * that were accepted for later. The id of a deleted run is kept for a while.
 */
function runs({ integer }: Dialect): readonly string[] {
  return [
    `CREATE TABLE lango_runs (
      run_id TEXT PRIMARY KEY,
      app_name TEXT NOT NULL,
      user_id TEXT NOT NULL,
      session_id TEXT NOT NULL,
      state TEXT NOT NULL,
      place ${integer} NOT NULL DEFAULT 0,
      attempt ${integer} NOT NULL DEFAULT 1,
      started_at ${integer} NOT NULL,
      due_at ${integer},
      after_seq ${integer},
      input TEXT,
      deleted_at ${integer}
    )`,
    'CREATE INDEX lango_runs_session ON lango_runs (app_name, user_id, session_id)',
    `CREATE INDEX lango_runs_unfinished ON lango_runs (app_name, user_id, session_id, place)
      WHERE state <> 'finished'`,
    "CREATE INDEX lango_runs_due ON lango_runs (app_name, due_at) WHERE state = 'scheduled'",
    'CREATE INDEX lango_runs_deleted ON lango_runs (deleted_at) WHERE deleted_at IS NOT NULL',
  ]
}

/**
 * The events, requests, signals and journal of runs. Parts that the requests of a session share are stored once. Indexes by
 * age serve pruning. Sums of counted and estimated tokens are kept by model.
 */
function runRecords({ identity, integer }: Dialect): readonly string[] {
  return [
    `CREATE TABLE lango_run_events (
      run_id TEXT NOT NULL, seq ${integer} NOT NULL, stored_at ${integer} NOT NULL, event TEXT NOT NULL,
      PRIMARY KEY (run_id, seq)
    )`,
    'CREATE INDEX lango_run_events_age ON lango_run_events (stored_at)',
    `CREATE TABLE lango_run_requests (
      run_id TEXT NOT NULL, step ${integer} NOT NULL, stored_at ${integer} NOT NULL, record TEXT NOT NULL,
      PRIMARY KEY (run_id, step)
    )`,
    'CREATE INDEX lango_run_requests_age ON lango_run_requests (stored_at)',
    `CREATE TABLE lango_request_parts (
      id ${identity}, session_pk ${integer} NOT NULL, digest TEXT NOT NULL, part TEXT NOT NULL,
      UNIQUE (session_pk, digest)
    )`,
    `CREATE TABLE lango_run_signals (
      id ${identity}, run_id TEXT NOT NULL, stored_at ${integer} NOT NULL, signal TEXT NOT NULL
    )`,
    'CREATE INDEX lango_run_signals_run ON lango_run_signals (run_id, id)',
    `CREATE TABLE lango_run_journal (
      place ${identity}, run_id TEXT NOT NULL, entry_key TEXT NOT NULL, seq ${integer}, entry TEXT NOT NULL,
      UNIQUE (run_id, entry_key)
    )`,
    `CREATE TABLE lango_calibration (
      model TEXT PRIMARY KEY, bytes ${integer} NOT NULL, tokens ${integer} NOT NULL
    )`,
  ]
}

function toolCalls({ integer, roomForUpdates }: Dialect): readonly string[] {
  return [
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
      actions TEXT,
      answer TEXT,
      changed_at ${integer} NOT NULL,
      PRIMARY KEY (run_id, call_key, session_pk)
    )${roomForUpdates}`,
    'CREATE INDEX lango_tool_calls_equal ON lango_tool_calls (session_pk, digest, number)',
  ]
}

/**
 * Memory: observations, the index of words, and how far both have got. SQLite overwrites what it deletes, in the
 * full-text table too.
 */
function memory(dialect: Dialect): readonly string[] {
  const { identity, integer, real, bytewiseText, roomForUpdates, words } = dialect
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
      at ${real} NOT NULL${words.columns}
    )`,
    'CREATE UNIQUE INDEX lango_memory_documents_place ON lango_memory_documents (session_pk, number, seq)',
    'CREATE INDEX lango_memory_documents_time ON lango_memory_documents (session_pk, at)',
    `CREATE TABLE lango_memory_terms (
      session_pk ${integer} NOT NULL, term ${bytewiseText} NOT NULL, documents ${integer} NOT NULL,
      PRIMARY KEY (session_pk, term)
    )${roomForUpdates}`,
    ...words.schema,
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

/** Of each schedule the newest tick that was dealt with is kept, with the rule that it belongs to. */
function schedules({ integer }: Dialect): readonly string[] {
  return [
    `CREATE TABLE lango_schedules (
      app_name TEXT NOT NULL, name TEXT NOT NULL, rule TEXT NOT NULL, tick ${integer} NOT NULL, run_id TEXT,
      PRIMARY KEY (app_name, name)
    )`,
  ]
}
