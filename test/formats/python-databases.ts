/** Databases as frameworks for Python write them, by their published schemas: these do not run here. */
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { temporaryFolder } from '../support/temporary-folder.js'

export async function database(
  tables: string,
): Promise<{ file: string; opened: InstanceType<typeof DatabaseSync> }> {
  const file = join(await temporaryFolder(), 'other.db')
  const opened = new DatabaseSync(file)
  opened.exec(tables)
  return { file, opened }
}

export const AGENTS = `
  CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
  CREATE TABLE agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, message_data TEXT NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
`

export const ITEMS = [
  { role: 'user', content: 'Weather in Rome?' },
  {
    type: 'function_call',
    id: 'fc_1',
    call_id: 'c1',
    name: 'get_weather',
    arguments: '{"city":"Rome"}',
    status: 'completed',
  },
  { type: 'function_call_output', call_id: 'c1', output: 'rain' },
  {
    ...{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed' },
    content: [{ type: 'output_text', text: 'It rains.', annotations: [] }],
  },
]

/** What a test needs of MessagePack. An extension is `{ ext, of }`. */
export function pack(value: unknown): Buffer {
  if (value === null) return Buffer.from([0xc0])
  if (typeof value === 'boolean') return Buffer.from([value ? 0xc3 : 0xc2])
  if (typeof value === 'bigint') {
    const bytes = Buffer.alloc(9, 0xcf)
    bytes.writeBigUInt64BE(value, 1)
    return bytes
  }
  if (typeof value === 'number') {
    if (Number.isInteger(value) && value >= 0 && value < 128) return Buffer.from([value])
    const bytes = Buffer.alloc(9, 0xcb)
    bytes.writeDoubleBE(value, 1)
    return bytes
  }
  if (typeof value === 'string') {
    const bytes = Buffer.from(value)
    return Buffer.concat([sized(0xdb, bytes.length), bytes])
  }
  if (Array.isArray(value)) return Buffer.concat([sized(0xdd, value.length), ...value.map(pack)])
  const fields = value as Record<string, unknown>
  if (typeof fields.ext === 'number') {
    const inside = pack(fields.of)
    return Buffer.concat([sized(0xc9, inside.length), Buffer.from([fields.ext]), inside])
  }
  const entries = Object.entries(fields).flatMap(([key, item]) => [pack(key), pack(item)])
  return Buffer.concat([sized(0xdf, entries.length / 2), ...entries])
}

function sized(code: number, length: number): Buffer {
  const bytes = Buffer.alloc(5, code)
  bytes.writeUInt32BE(length, 1)
  return bytes
}

/** A message as Pydantic dumps it. */
export function pydantic(name: string, fields: object): object {
  return { ext: 5, of: ['langchain_core.messages', name, fields, 'model_validate_json'] }
}

export const CHECKPOINTS = `
  CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
  CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL, idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
`
