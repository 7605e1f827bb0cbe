import { DatabaseSync } from '@photostructure/sqlite'
import { mintSignature } from '../../src/testing/strict/mint-signature.js'
import { pickle } from '../formats/python-pickles.js'

/** Who wrote the file. The tables are those that each of them creates, column by column. */
export type Writer = 'typescript' | 'python-1' | 'python-0' | 'python-sqlite'

export interface AdkRow {
  id: string
  author: string
  /** Milliseconds. */
  timestamp: number
  content?: unknown
  actions?: Record<string, unknown>
  more?: Record<string, unknown>
}

export interface AdkFile {
  events: readonly AdkRow[]
  state?: Record<string, unknown>
  appState?: Record<string, unknown>
  userState?: Record<string, unknown>
}

/** Writes a database with one session, `s1` of the user ann in the app shop. Keys of events are in snake case. */
export function writeAdkDatabase(
  file: string,
  writer: Writer,
  { events, state, appState, userState }: AdkFile,
): void {
  const database = new DatabaseSync(file)
  database.exec(TABLES[writer])
  const time = timeFor(writer, 1_700_000_000_000)
  database
    .prepare('INSERT INTO app_states VALUES (?, ?, ?)')
    .run('shop', JSON.stringify(appState ?? {}), time)
  database
    .prepare('INSERT INTO user_states VALUES (?, ?, ?, ?)')
    .run('shop', 'ann', JSON.stringify(userState ?? {}), time)
  database
    .prepare(
      'INSERT INTO sessions (id, app_name, user_id, state, create_time, update_time) VALUES (?, ?, ?, ?, ?, ?)',
    )
    .run('s1', 'shop', 'ann', JSON.stringify(state ?? {}), time, time)
  for (const event of events) {
    if (writer === 'python-0') insertColumns(database, event)
    else insertDocument(database, writer, event)
  }
  database.close()
}

function insertDocument(database: InstanceType<typeof DatabaseSync>, writer: Writer, event: AdkRow): void {
  const { id, author, timestamp, content, actions, more } = event
  const inside = writer === 'typescript' ? timestamp : timestamp / 1000
  const data = {
    id,
    invocation_id: 'i1',
    author,
    timestamp: inside,
    ...(content === undefined ? {} : { content }),
    actions: { state_delta: {}, artifact_delta: {}, requested_auth_configs: {}, ...actions },
    ...more,
  }
  database
    .prepare(
      'INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data) VALUES (?, ?, ?, ?, ?, ?, ?)',
    )
    .run(id, 'shop', 'ann', 's1', 'i1', timeFor(writer, timestamp), JSON.stringify(data))
}

function insertColumns(database: InstanceType<typeof DatabaseSync>, event: AdkRow): void {
  database
    .prepare(
      `INSERT INTO events (id, app_name, user_id, session_id, invocation_id, author, actions, timestamp, content,
        long_running_tool_ids_json, turn_complete, usage_metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      ...[event.id, 'shop', 'ann', 's1', 'i1', event.author],
      pickle(event.actions === undefined ? 'empty' : 'delta'),
      timeFor('python-0', event.timestamp),
      event.content === undefined ? null : JSON.stringify(event.content),
      '[]',
      1,
      event.more?.usage_metadata === undefined ? null : JSON.stringify(event.more.usage_metadata),
    )
}

function timeFor(writer: Writer, milliseconds: number): string | number {
  if (writer === 'typescript') return milliseconds
  if (writer === 'python-sqlite') return milliseconds / 1000
  const local = new Date(milliseconds - new Date(milliseconds).getTimezoneOffset() * 60_000)
  return local.toISOString().replace('T', ' ').replace('Z', '000')
}

const PYTHON_STATES = `
  CREATE TABLE app_states (app_name VARCHAR(128) NOT NULL, state TEXT NOT NULL, update_time DATETIME NOT NULL, PRIMARY KEY (app_name));
  CREATE TABLE user_states (app_name VARCHAR(128) NOT NULL, user_id VARCHAR(128) NOT NULL, state TEXT NOT NULL, update_time DATETIME NOT NULL, PRIMARY KEY (app_name, user_id));
`
const PYTHON_SESSIONS = `app_name VARCHAR(128) NOT NULL, user_id VARCHAR(128) NOT NULL, id VARCHAR(128) NOT NULL, state TEXT NOT NULL, create_time DATETIME NOT NULL, update_time DATETIME NOT NULL`
const PYTHON_EVENT = `id VARCHAR(128) NOT NULL, app_name VARCHAR(128) NOT NULL, user_id VARCHAR(128) NOT NULL, session_id VARCHAR(128) NOT NULL, invocation_id VARCHAR(256) NOT NULL`
const EVENT_KEYS = `PRIMARY KEY (id, app_name, user_id, session_id), FOREIGN KEY(app_name, user_id, session_id) REFERENCES sessions (app_name, user_id, id) ON DELETE CASCADE`

const TABLES: Readonly<Record<Writer, string>> = {
  // As MikroORM creates them for DatabaseSessionService of @google/adk 2.0.0.
  typescript: `
    CREATE TABLE \`app_states\` (\`app_name\` text not null, \`state\` json not null, \`update_time\` datetime not null, primary key (\`app_name\`));
    CREATE TABLE \`events\` (\`id\` text not null, \`app_name\` text not null, \`user_id\` text not null, \`session_id\` text not null, \`invocation_id\` text not null, \`timestamp\` datetime not null, \`event_data\` json not null, primary key (\`id\`, \`app_name\`, \`user_id\`, \`session_id\`));
    CREATE TABLE \`adk_internal_metadata\` (\`key\` text not null, \`value\` text not null, primary key (\`key\`));
    INSERT INTO adk_internal_metadata VALUES ('schema_version', '1');
    CREATE TABLE \`sessions\` (\`id\` text not null, \`app_name\` text not null, \`user_id\` text not null, \`state\` json not null, \`create_time\` datetime not null, \`update_time\` datetime not null, primary key (\`id\`, \`app_name\`, \`user_id\`));
    CREATE TABLE \`user_states\` (\`app_name\` text not null, \`user_id\` text not null, \`state\` json not null, \`update_time\` datetime not null, primary key (\`app_name\`, \`user_id\`));
  `,
  // As SQLAlchemy creates them for the schemas 1 and 0 of ADK for Python.
  'python-1': `${PYTHON_STATES}
    CREATE TABLE sessions (${PYTHON_SESSIONS}, event_sequence INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (app_name, user_id, id));
    CREATE TABLE events (${PYTHON_EVENT}, timestamp DATETIME NOT NULL, event_data TEXT, ${EVENT_KEYS});
  `,
  'python-0': `${PYTHON_STATES}
    CREATE TABLE sessions (${PYTHON_SESSIONS}, PRIMARY KEY (app_name, user_id, id));
    CREATE TABLE events (${PYTHON_EVENT}, author VARCHAR(256) NOT NULL, actions BLOB NOT NULL,
      long_running_tool_ids_json TEXT, branch VARCHAR(256), timestamp DATETIME NOT NULL, content TEXT,
      grounding_metadata TEXT, custom_metadata TEXT, usage_metadata TEXT, citation_metadata TEXT, partial BOOLEAN,
      turn_complete BOOLEAN, error_code VARCHAR(256), error_message TEXT, interrupted BOOLEAN,
      input_transcription TEXT, output_transcription TEXT, ${EVENT_KEYS});
  `,
  // As SqliteSessionService of ADK for Python creates them.
  'python-sqlite': `
    CREATE TABLE app_states (app_name TEXT PRIMARY KEY, state TEXT NOT NULL, update_time REAL NOT NULL);
    CREATE TABLE user_states (app_name TEXT NOT NULL, user_id TEXT NOT NULL, state TEXT NOT NULL, update_time REAL NOT NULL, PRIMARY KEY (app_name, user_id));
    CREATE TABLE sessions (app_name TEXT NOT NULL, user_id TEXT NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL, create_time REAL NOT NULL, update_time REAL NOT NULL, PRIMARY KEY (app_name, user_id, id));
    CREATE TABLE events (id TEXT NOT NULL, app_name TEXT NOT NULL, user_id TEXT NOT NULL, session_id TEXT NOT NULL, invocation_id TEXT NOT NULL, timestamp REAL NOT NULL, event_data TEXT NOT NULL, PRIMARY KEY (app_name, user_id, session_id, id), FOREIGN KEY (app_name, user_id, session_id) REFERENCES sessions(app_name, user_id, id) ON DELETE CASCADE);
  `,
}

/** What the model that made the call would recognise as its own. It gave no id: ADK made one up. */
export const SIGNATURE = mintSignature('gemini', { name: 'search', args: { q: 'x', max_results: 3 } })

/** A conversation that ADK itself can no longer send: the answer to the second call never came. */
export const BRICKED: AdkFile = {
  state: { cart: { itemCount: 2 } },
  appState: { currency: 'EUR' },
  userState: { name: 'Ann' },
  events: [
    {
      id: 'e1',
      author: 'user',
      timestamp: 1_700_000_000_250,
      content: { role: 'user', parts: [{ text: 'find it' }] },
    },
    {
      id: 'e2',
      author: 'root',
      timestamp: 1_700_000_001_000,
      content: {
        role: 'model',
        parts: [
          {
            function_call: { id: 'adk-1', name: 'search', args: { q: 'x', max_results: 3 } },
            thought_signature: SIGNATURE,
          },
          { function_call: { id: 'adk-2', name: 'search', args: { q: 'y' } } },
        ],
      },
      more: { usage_metadata: { prompt_token_count: 11 } },
    },
    {
      id: 'e3',
      author: 'root',
      timestamp: 1_700_000_001_000,
      content: {
        role: 'user',
        parts: [{ function_response: { id: 'adk-1', name: 'search', response: { item_count: 1 } } }],
      },
      actions: { state_delta: { last_query: 'x' } },
    },
    {
      id: 'e4',
      author: 'user',
      timestamp: 1_700_000_003_000,
      content: { role: 'user', parts: [{ text: 'well?' }] },
    },
  ],
}
