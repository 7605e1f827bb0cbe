/** The tables of the log. */
import { MESSAGE_COLUMNS } from '../rows.js'
import type { Dialect } from '../sql-database.js'

export function logSchema(dialect: Dialect): readonly string[] {
  return [...sessionTables(dialect), ...entryTables(dialect), ...runTables(dialect), ...stateTables(dialect)]
}

/**
 * The row of a session is what its writers lock. It has the counters that number entries and messages, the lease, and the
 * last write under that lease. No index has a column that changes with every write.
 */
function sessionTables(dialect: Dialect): readonly string[] {
  const { identity, integer, roomForUpdates } = dialect
  return [
    `CREATE TABLE lango_sessions (
      pk ${identity},
      app_name TEXT NOT NULL,
      user_id TEXT NOT NULL,
      session_id TEXT NOT NULL,
      title TEXT,
      search TEXT,
      nested_in TEXT,
      entry_count ${integer} NOT NULL DEFAULT 0,
      message_count ${integer} NOT NULL DEFAULT 0,
      token_total ${integer} NOT NULL DEFAULT 0,
      turn_seq ${integer} NOT NULL DEFAULT 0,
      post_count ${integer} NOT NULL DEFAULT 0,
      open_runs ${integer} NOT NULL DEFAULT 0,
      created_at ${integer} NOT NULL,
      updated_at ${integer} NOT NULL,
      updated_hour ${integer} NOT NULL,
      fence ${integer} NOT NULL DEFAULT 0,
      holder TEXT NOT NULL DEFAULT '',
      lease_until ${integer} NOT NULL DEFAULT 0,
      lease_ms ${integer} NOT NULL DEFAULT 0,
      write_number ${integer} NOT NULL DEFAULT 0,
      write_digest TEXT NOT NULL DEFAULT '',
      write_entry ${integer} NOT NULL DEFAULT 0,
      write_id TEXT NOT NULL DEFAULT '',
      UNIQUE (app_name, user_id, session_id)
    )${roomForUpdates}`,
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

/** `nested_pk` is the nested session that the message belongs to, 0 for the session of the log. */
function entryTables({ integer, real }: Dialect): readonly string[] {
  return [
    `CREATE TABLE lango_entries (
      session_pk ${integer} NOT NULL,
      seq ${integer} NOT NULL,
      kind TEXT NOT NULL,
      at ${integer} NOT NULL,
      run_pk ${integer},
      nested_pk ${integer} NOT NULL,
      message_seq ${integer},
      version ${integer} NOT NULL,
      entry_key TEXT,
      digest TEXT NOT NULL,
      salt TEXT,
      ${MESSAGE_COLUMNS.map(column => `${column} ${typeOf(column, { integer, real })}`).join(', ')},
      data TEXT,
      PRIMARY KEY (session_pk, seq)
    )`,
    `CREATE UNIQUE INDEX lango_entries_message ON lango_entries (session_pk, nested_pk, message_seq)
      WHERE message_seq IS NOT NULL`,
    `CREATE UNIQUE INDEX lango_entries_event ON lango_entries (session_pk, nested_pk, event_id)
      WHERE event_id IS NOT NULL`,
    'CREATE UNIQUE INDEX lango_entries_key ON lango_entries (session_pk, entry_key) WHERE entry_key IS NOT NULL',
  ]
}

function typeOf(
  column: (typeof MESSAGE_COLUMNS)[number],
  { integer, real }: Pick<Dialect, 'integer' | 'real'>,
): string {
  if (column === 'flags' || column === 'tokens') return integer
  return column === 'timestamp' ? real : 'TEXT'
}

/** `posted_seq` is the newest post; it is 0 when a later change of the run's state has taken note of it. */
function runTables({ identity, integer, roomForUpdates }: Dialect): readonly string[] {
  return [
    `CREATE TABLE lango_runs (
      pk ${identity},
      run_id TEXT NOT NULL UNIQUE,
      session_pk ${integer} NOT NULL,
      app_name TEXT NOT NULL,
      state TEXT NOT NULL,
      accepted_at ${integer} NOT NULL,
      due_at ${integer},
      first_seq ${integer},
      last_seq ${integer},
      posted_seq ${integer} NOT NULL DEFAULT 0,
      finish_reason TEXT,
      input TEXT,
      deleted_at ${integer}
    )${roomForUpdates}`,
    'CREATE INDEX lango_runs_session ON lango_runs (session_pk, pk)',
    `CREATE INDEX lango_runs_unfinished ON lango_runs (app_name, pk) WHERE state <> 'finished'`,
  ]
}

function stateTables({ integer }: Dialect): readonly string[] {
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
