import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Message } from '../../../src/session/message.js'
import { openStore } from '../../../src/store/open-store.js'
import { createDatabase } from '../../support/postgres.js'
import { temporaryFolder } from '../../support/temporary-folder.js'

/** Text that no compression helps with. */
function noise(length: number, seed: number): string {
  let state = seed + 1
  let text = ''
  for (let index = 0; index < length; index++) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    text += String.fromCharCode(33 + ((state >> 16) % 90))
  }
  return text
}

/** An event as ADK has it, and the message that it becomes. */
function eventOf(index: number, size: number): { json: string; message: Message } {
  const id = noise(8, index)
  const invocationId = `e-${noise(36, index)}`
  const isTool = index % 3 === 2
  const output = { result: noise(size, index) }
  const part = isTool
    ? { functionResponse: { id: `adk-${id}`, name: 'search', response: output } }
    : { text: noise(size, index) }
  const event = {
    id,
    invocationId,
    author: 'agent',
    timestamp: 1_794_784_945_639 + index,
    actions: { stateDelta: {}, artifactDelta: {}, requestedAuthConfigs: {}, requestedToolConfirmations: {} },
    content: { role: isTool ? 'user' : 'model', parts: [part] },
  }
  const common = { author: 'agent', timestamp: event.timestamp, id, invocationId }
  const toolCalls = [
    { id: `adk-${id}`, name: 'search', output: JSON.stringify(output), kind: 'response' as const },
  ]
  const message: Message = isTool
    ? { role: 'tool', content: JSON.stringify(output), toolCalls, ...common }
    : { role: 'assistant', content: 'text' in part ? (part.text ?? '') : '', ...common }
  return { json: JSON.stringify(event), message }
}

async function fill(url: string, size: number, count: number): Promise<number> {
  const store = await openStore(url)
  const keys = ['a', 'b', 'c'].map(sessionId => ({ appName: 'app', userId: 'ann', sessionId }))
  for (const key of keys) await store.createSession(key)
  let bytes = 0
  for (let index = 0; index < count; index++) {
    const { json, message } = eventOf(index, size)
    bytes += Buffer.byteLength(json)
    await store.appendMessage(keys[index % keys.length] ?? keys[0]!, message)
  }
  await store.close()
  return bytes
}

const SIZES = [
  { size: 20, limit: 2 },
  { size: 300, limit: 2 },
  { size: 1000, limit: 2 },
  { size: 2000, limit: 1.5 },
  { size: 3000, limit: 1.5 },
  { size: 6000, limit: 1.5 },
]

describe('the size of a database', () => {
  test.each(SIZES)(
    'in SQLite, events with $size characters take at most $limit times their JSON',
    async ({ size, limit }) => {
      const file = join(await temporaryFolder(), 'size.db')
      const bytes = await fill(`sqlite:${file}?sync=normal`, size, 1200)
      expect((await stat(file)).size / bytes).toBeLessThanOrEqual(limit)
    },
  )

  test.each(SIZES)(
    'in PostgreSQL, events with $size characters take at most $limit times their JSON',
    async ({ size, limit }) => {
      const database = await createDatabase()
      const bytes = await fill(database.url, size, 1200)
      const [row] = await database.query(
        "SELECT sum(pg_total_relation_size(oid))::float8 AS size FROM pg_class WHERE relname LIKE 'lango_%' AND relkind = 'r'",
      )
      expect(Number(row?.size) / bytes).toBeLessThanOrEqual(limit)
      await database.drop()
    },
  )
})
