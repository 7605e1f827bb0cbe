/**
 * Writes the database that test/conformance/store/upgrades.test.ts opens for a schema, with the release that has it:
 *
 *     node --import tsx test/support/write-schema-fixture.ts
 *
 * A release keeps the file of its schema. The files of the first schemas were written with the sources of their time.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { createRuntime } from '../../src/runtime/runtime.js'
import { KNOWN_VERSION } from '../../src/store/migrations.js'
import { openStore } from '../../src/store/open-store.js'
import { temporaryFolder } from './temporary-folder.js'

const folder = await temporaryFolder()
const file = join(folder, 'lango.db')
const url = `sqlite:${file}`
await writeSession()
await runSession()
const target = join(import.meta.dirname, `../fixtures/schemas/v${KNOWN_VERSION}.db.gz`)
writeFileSync(target, gzipSync(readFileSync(file), { level: 9 }))
console.log(target)

/** A session with state, a call and its result, a run of three events, and a request. */
async function writeSession(): Promise<void> {
  const key = { appName: 'app', userId: 'ann', sessionId: 'one' }
  const store = await openStore(url)
  await store.createSession(key, { city: 'Graz', 'user:name': 'Ann', 'app:season': 'autumn' })
  const at = 1_794_700_000_000
  const agent = { author: 'agent', invocationId: 'i1' }
  const call = { id: 'c1', name: 'look' }
  const output = '{"found":"a key \\u2603"}'
  const messages = [
    {
      role: 'user',
      author: 'user',
      content: 'Where is the key?',
      timestamp: at,
      id: 'e1',
      invocationId: 'i1',
    },
    {
      ...agent,
      role: 'assistant',
      content: '',
      timestamp: at + 1,
      id: 'e2',
      toolCalls: [{ ...call, input: '{"place":"drawer"}' }],
    },
    {
      ...agent,
      role: 'tool',
      content: output,
      timestamp: at + 2,
      id: 'e3',
      toolCalls: [{ ...call, output }],
    },
    {
      ...agent,
      role: 'assistant',
      content: 'In the drawer.',
      timestamp: at + 3,
      id: 'e4',
      extra: { model: 'm' },
    },
  ]
  for (const message of messages) await store.appendMessage(key, message)
  const names = { sessionId: 'one', runId: 'run-1' }
  await store.runs.appendEvents(key, 'run-1', [
    { type: 'run-start', ...names, seq: 1 },
    { type: 'text-delta', author: 'agent', text: 'In the drawer.', ...names, seq: 2 },
    { type: 'run-finish', finishReason: 'stop', ...names, seq: 3 },
  ])
  await store.runs.saveRequest('run-1', 1, { model: 'm', body: { messages: ['x'.repeat(9000)] } })
  await store.close()
}

/** A second session, by a run of the demo model. */
async function runSession(): Promise<void> {
  const runtime = await createRuntime({
    app: 'app',
    store: url,
    agent: { name: 'agent', model: 'demo/demo' },
  })
  await runtime.runAndCollect({ userId: 'ann', sessionId: 'two', text: 'What can you do?' })
  await runtime.close()
}
