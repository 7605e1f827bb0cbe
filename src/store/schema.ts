/**
 * The tables of a store. After the first release a version is never edited: databases record a digest of its statements,
 * and one with another digest is refused. A change of the schema is a new version at the end of the list.
 */
import { MESSAGE_COLUMNS } from './rows.js'
import type { Dialect } from './sql-database.js'

/** The statements that make a version of the schema from the one before it. */
export type SchemaVersion = (dialect: Dialect) => readonly string[]

export const VERSIONS: readonly SchemaVersion[] = [
  dialect => [
    ...sessions(dialect),
    ...entries(dialect),
    ...states(dialect),
    ...runs(dialect),
    ...sharedParts(dialect),
    ...toolCalls(dialect),
    ...memory(dialect),
    ...artifacts(dialect),
    ...spending(dialect),
    ...schedules(dialect),
  ],
]

/**
 * The row of a session is what its writers lock: it has the counters that number entries, messages, calls and parts of
 * requests, the lease, and the last write under that lease. No index has a column that changes with every write. A session
 * may be nested in one of another app, of the same user and id.
 */
function sessions(dialect: Dialect): readonly string[] {
  const { identity, integer, roomForUpdates } = dialect
  const counter = `${integer} NOT NULL DEFAULT 0`
  return [
    `CREATE TABLE lango_sessions (
      pk ${identity},
      app_name TEXT NOT NULL,
      user_id TEXT NOT NULL,
      session_id TEXT NOT NULL,
      nested_in TEXT,
      title TEXT,
      search TEXT NOT NULL,
      entry_count ${counter},
      message_count ${counter},
      token_total ${counter},
      turn_seq ${counter},
      call_count ${counter},
      part_count ${counter},
      post_count ${counter},
      open_runs ${counter},
      created_at ${integer} NOT NULL,
      updated_at ${integer} NOT NULL,
      updated_hour ${integer} NOT NULL,
      fence ${counter},
      holder TEXT NOT NULL DEFAULT '',
      lease_until ${counter},
      lease_ms ${counter},
      write_number ${counter},
      write_digest TEXT NOT NULL DEFAULT '',
      write_entry ${counter},
      write_id TEXT NOT NULL DEFAULT '',
      UNIQUE (app_name, user_id, session_id)
    )${roomForUpdates}`,
    // By the hour, so that an append rarely touches it: an index on the moment would be rewritten every time.
    'CREATE INDEX lango_sessions_recent ON lango_sessions (app_name, updated_hour)',
    `CREATE INDEX lango_sessions_nested ON lango_sessions (user_id, session_id, nested_in)
      WHERE nested_in IS NOT NULL`,
    // Leases of keys that have no session yet.
    `CREATE TABLE lango_leases (
      app_name TEXT NOT NULL, user_id TEXT NOT NULL, session_id TEXT NOT NULL, fence ${integer} NOT NULL,
      holder TEXT NOT NULL, lease_until ${integer} NOT NULL, lease_ms ${integer} NOT NULL,
      PRIMARY KEY (app_name, user_id, session_id)
    )`,
    ...dialect.fences.create,
  ]
}

/**
 * The log of each session. `message_pk` is the session that the message belongs to: that of the log, or one nested in it.
 * A message that was replaced has no `message_seq` any more. `events` run events are in the entry, the last of which has
 * the number `event_seq`. `pending` is the call that a post is about, or empty, until the run has recorded the post.
 */
function entries({ integer, real, wideRows, joinedOutputs }: Dialect): readonly string[] {
  const typeOf = (column: (typeof MESSAGE_COLUMNS)[number]) =>
    column === 'flags' || column === 'tokens' ? integer : column === 'timestamp' ? real : 'TEXT'
  return [
    `CREATE TABLE lango_entries (
      session_pk ${integer} NOT NULL,
      seq ${integer} NOT NULL,
      kind TEXT NOT NULL,
      at ${integer} NOT NULL,
      run_pk ${integer},
      message_pk ${integer},
      message_seq ${integer},
      events ${integer},
      event_seq ${integer},
      version ${integer} NOT NULL,
      entry_key TEXT,
      pending TEXT,
      digest TEXT NOT NULL,
      salt TEXT,
      ${MESSAGE_COLUMNS.map(column => `${column} ${typeOf(column)}`).join(', ')},
      data TEXT,
      PRIMARY KEY (session_pk, seq),
      CHECK (role IS NULL OR message_pk IS NOT NULL)
    )${wideRows}`,
    `CREATE UNIQUE INDEX lango_entries_message ON lango_entries (message_pk, message_seq)
      WHERE message_seq IS NOT NULL`,
    `CREATE UNIQUE INDEX lango_entries_event ON lango_entries (message_pk, event_id)
      WHERE event_id IS NOT NULL AND message_seq IS NOT NULL`,
    'CREATE UNIQUE INDEX lango_entries_key ON lango_entries (session_pk, entry_key) WHERE entry_key IS NOT NULL',
    'CREATE INDEX lango_entries_pending ON lango_entries (run_pk) WHERE pending IS NOT NULL',
    `CREATE VIEW lango_messages_readable AS
      SELECT s.app_name, s.user_id, s.session_id, m.message_seq AS seq, m.role, m.author, m.timestamp,
        COALESCE(m.content, ${joinedOutputs}) AS content, m.tool_calls, m.extra, m.tokens
      FROM lango_entries m JOIN lango_sessions s ON s.pk = m.message_pk WHERE m.message_seq IS NOT NULL`,
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
 * Runs are stored when they are accepted. One that has not begun keeps its message and input in its own row, because
 * acceptance is no place in the log, and the events of its acceptance: their numbers are below those of its first entry.
 * `place` orders the runs of a session, `queue_place` is how far it was from the front of its queue when it was accepted, `after_seq` is the number of messages that the session had when the run began, and
 * `due_at` is set for runs that were accepted for later. A run that waits between its rounds (`is_between`) ends when the next message
 * comes. The id of a deleted run is kept for a while.
 */
function runs({ identity, integer, roomForUpdates }: Dialect): readonly string[] {
  return [
    `CREATE TABLE lango_runs (
      pk ${identity},
      run_id TEXT NOT NULL UNIQUE,
      session_pk ${integer} NOT NULL,
      app_name TEXT NOT NULL,
      state TEXT NOT NULL,
      place ${integer} NOT NULL,
      queue_place ${integer},
      attempt ${integer} NOT NULL DEFAULT 1,
      is_between ${integer} NOT NULL DEFAULT 0,
      accepted_at ${integer} NOT NULL,
      due_at ${integer},
      after_seq ${integer},
      first_seq ${integer},
      last_seq ${integer},
      finish_reason TEXT,
      events TEXT,
      input TEXT,
      deleted_at ${integer}
    )${roomForUpdates}`,
    'CREATE INDEX lango_runs_session ON lango_runs (session_pk, place)',
    `CREATE INDEX lango_runs_unfinished ON lango_runs (app_name, place) WHERE state <> 'finished'`,
    "CREATE INDEX lango_runs_due ON lango_runs (app_name, due_at) WHERE state = 'scheduled'",
    'CREATE INDEX lango_runs_deleted ON lango_runs (deleted_at) WHERE deleted_at IS NOT NULL',
  ]
}

/** Parts that the requests of a session share are stored once. Sums of counted and estimated tokens are kept by model. */
function sharedParts({ integer }: Dialect): readonly string[] {
  return [
    `CREATE TABLE lango_request_parts (
      session_pk ${integer} NOT NULL, number ${integer} NOT NULL, digest TEXT NOT NULL, part TEXT NOT NULL,
      PRIMARY KEY (session_pk, number)
    )`,
    `CREATE TABLE lango_calibration (
      model TEXT PRIMARY KEY, bytes ${integer} NOT NULL, tokens ${integer} NOT NULL
    )`,
  ]
}

/** An index of the log: the outcome of each call, and the number of each among equal calls of its session. */
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
      id TEXT PRIMARY KEY, ${owner}, session_pk ${integer} NOT NULL, kind TEXT NOT NULL,
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
