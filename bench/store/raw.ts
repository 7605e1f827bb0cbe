import { DatabaseSync } from '@photostructure/sqlite'
import type { Message } from '../../src/entries/store.js'

/** The yardstick: the same row, one prepared insert, the same driver and pragmas, nothing else. */
export function openRaw(file: string, synchronous: 'FULL' | 'NORMAL') {
  const database = new DatabaseSync(file)
  database.exec(`PRAGMA page_size=2048; PRAGMA journal_mode=WAL; PRAGMA synchronous=${synchronous};
    CREATE TABLE messages (session INTEGER NOT NULL, seq INTEGER NOT NULL, event_id TEXT, role TEXT NOT NULL,
      author TEXT, content TEXT, tool_calls TEXT, extra TEXT, invocation_id TEXT, branch TEXT,
      timestamp INTEGER NOT NULL, tokens INTEGER NOT NULL, PRIMARY KEY (session, seq))`)
  const insert = database.prepare('INSERT INTO messages VALUES (1, ?, ?, ?, ?, ?, NULL, NULL, ?, NULL, ?, ?)')
  return {
    append: (seq: number, message: Message) =>
      insert.run(
        seq,
        message.id ?? null,
        message.role,
        message.author ?? null,
        message.content,
        message.invocationId ?? null,
        message.timestamp,
        100,
      ),
    close: () => database.close(),
  }
}
