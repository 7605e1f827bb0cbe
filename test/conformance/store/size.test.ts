import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Message } from '../../../src/session/message.js'
import { openStore } from '../../../src/store/open-store.js'
import { createStoreDatabase, type TestDatabase } from '../../support/postgres.js'
import { temporaryFolder } from '../../support/temporary-folder.js'
import { longUnless } from '../../support/tiers.js'

/** Text that no compression helps with, and that no other seed below 5000 has. */
function noise(length: number, seed: number): string {
  const from = (seed * 97) % 500_000
  return NOISE.slice(from, from + length)
}

const NOISE = (() => {
  let state = 1
  const bytes = Buffer.alloc(510_000)
  for (let index = 0; index < bytes.length; index++) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    bytes[index] = 33 + ((state >> 16) % 90)
  }
  return bytes.toString('latin1')
})()

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

/** The smaller the events, the more of them: empty tables have a size as well. */
const SIZES = [
  { size: 20, limit: 2, count: 4000 },
  { size: 300, limit: 2, count: 2400 },
  { size: 1000, limit: 2, count: 1200 },
  { size: 2000, limit: 1.5, count: 2400 },
  { size: 3000, limit: 1.5, count: 1200 },
  { size: 6000, limit: 1.5, count: 1200 },
]

/** One for each limit, and the narrower one for PostgreSQL. */
const SHORT = { sqlite: [1000, 3000], postgres: [3000] }

/**
 * What the tables take once old versions of rows are gone, as they are on a server in earnest. A transaction of
 * another test keeps the server from removing them, so it is tried until that one is over.
 */
async function vacuumedSize(database: TestDatabase, goal: number): Promise<number> {
  let size = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < 40 && size > goal; attempt++) {
    if (attempt > 0) await new Promise(resolve => setTimeout(resolve, 250))
    await database.query('VACUUM FULL lango_sessions')
    const [row] = await database.query(
      "SELECT sum(pg_total_relation_size(oid))::float8 AS size FROM pg_class WHERE relname LIKE 'lango_%' AND relkind = 'r'",
    )
    size = Number(row?.size)
  }
  return size
}

for (const { size, limit, count } of SIZES) {
  test(
    `events with ${size} characters take at most ${limit} times their JSON in SQLite`,
    longUnless(SHORT.sqlite.includes(size)),
    async () => {
      const file = join(await temporaryFolder(), 'size.db')
      const bytes = await fill(`sqlite:${file}?sync=normal`, size, count)
      expect((await stat(file)).size / bytes).toBeLessThanOrEqual(limit)
    },
  )

  test(
    `events with ${size} characters take at most ${limit} times their JSON in PostgreSQL`,
    longUnless(SHORT.postgres.includes(size)),
    async () => {
      const database = await createStoreDatabase()
      const bytes = await fill(database.url, size, count)
      expect(await vacuumedSize(database, limit * bytes)).toBeLessThanOrEqual(limit * bytes)
      await database.drop()
    },
  )
}

test.each(['sqlite', 'postgres'])(
  'the requests of a run take little more in %s than its last one',
  async driver => {
    const database = driver === 'postgres' ? await createStoreDatabase() : undefined
    const file = join(await temporaryFolder(), 'size.db')
    const store = await openStore(database?.url ?? `sqlite:${file}?sync=normal`)
    const key = { appName: 'app', userId: 'ann', sessionId: 'one' }
    await store.createSession(key)
    await store.runs.appendEvents(key, 'run', [{ seq: 1 }])
    const messages: object[] = []
    let last = ''
    for (let step = 1; step <= 80; step++) {
      messages.push({ role: 'tool', content: noise(2000, step) })
      const record = { model: 'm', body: { messages, tools: [{ name: 'look' }] }, history: { step } }
      last = JSON.stringify(record)
      await store.runs.saveRequest('run', step, record)
    }
    expect(JSON.stringify((await store.runs.readRequests('run')).at(-1)?.record)).toBe(last)
    await store.close()
    const [row] = (await database?.query(
      "SELECT sum(pg_total_relation_size(oid))::float8 AS size FROM pg_class WHERE relname IN ('lango_entries', 'lango_request_parts')",
    )) ?? [{ size: (await stat(file)).size }]
    // Stored whole, they would take forty times as much. Empty tables and indexes take some.
    expect(Number(row?.size) / last.length).toBeLessThanOrEqual(5)
    await database?.drop()
  },
)
