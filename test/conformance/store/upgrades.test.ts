// Databases that earlier sources wrote (test/fixtures/schemas): each opens with these ones, with all that it has, and is
// worked on. The first schema was never alone in a file that was kept; migrations.test.ts constructs one.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { DatabaseSync } from '@photostructure/sqlite'
import { expect, test } from 'vitest'
import { createRuntime } from '../../../src/runtime/runtime.js'
import { KNOWN_VERSION } from '../../../src/store/migrations.js'
import { temporaryFolder } from '../../support/temporary-folder.js'

const SCHEMAS = join(import.meta.dirname, '../../fixtures/schemas')

/** Before it, runs were not in the store by themselves: those files have no second session. */
const FIRST_WITH_RUNTIME = 5

const versions = readdirSync(SCHEMAS)
  .map(name => Number(/^v(\d+)\.db\.gz$/.exec(name)?.[1]))
  .sort((one, other) => one - other)

test('there is a database of every schema from the second to the one before this', () => {
  expect(versions).toEqual(versions.map((_, index) => index + 2))
  expect(versions.length).toBeGreaterThanOrEqual(11)
  expect(versions.at(-1)).toBeLessThanOrEqual(KNOWN_VERSION)
})

test.each(versions)(
  'a database that was written with schema %i opens complete, and runs continue in it',
  async version => {
    const file = join(await temporaryFolder(), 'lango.db')
    writeFileSync(file, gunzipSync(readFileSync(join(SCHEMAS, `v${version}.db.gz`))))
    expect(versionIn(file)).toBe(version)
    const runtime = await createRuntime({
      app: 'app',
      store: `sqlite:${file}`,
      agent: { name: 'agent', model: 'demo/demo' },
    })
    const { store } = runtime
    const key = { appName: 'app', userId: 'ann', sessionId: 'one' }
    const session = await store.loadSession(key)
    expect(session?.state).toEqual({ city: 'Graz', 'user:name': 'Ann', 'app:season': 'autumn' })
    expect(session?.messages.map(({ role, content, id }) => [role, content, id])).toEqual([
      ['user', 'Where is the key?', 'e1'],
      ['assistant', '', 'e2'],
      ['tool', '{"found":"a key \\u2603"}', 'e3'],
      ['assistant', 'In the drawer.', 'e4'],
    ])
    expect(session?.messages[1]?.toolCalls).toMatchObject([
      { id: 'c1', name: 'look', input: '{"place":"drawer"}' },
    ])
    const names = { sessionId: 'one', runId: 'run-1' }
    expect(await store.runs.readEvents('run-1')).toEqual([
      { type: 'run-start', ...names, seq: 1 },
      { type: 'text-delta', author: 'agent', text: 'In the drawer.', ...names, seq: 2 },
      { type: 'run-finish', finishReason: 'stop', ...names, seq: 3 },
    ])
    expect(await store.runs.readRequests('run-1')).toEqual([
      { step: 1, record: { model: 'm', body: { messages: ['x'.repeat(9000)] } } },
    ])
    const sessionIds = version < FIRST_WITH_RUNTIME ? ['one'] : ['one', 'two']
    for (const sessionId of sessionIds) {
      const before = (await store.loadSession({ ...key, sessionId }))?.totalMessages ?? 0
      const { finishReason } = await runtime.runAndCollect({ userId: 'ann', sessionId, text: 'And now?' })
      expect(finishReason).toBe('stop')
      expect((await store.loadSession({ ...key, sessionId }))?.totalMessages).toBe(before + 2)
    }
    await runtime.close()
    expect(versionIn(file)).toBe(KNOWN_VERSION)
  },
)

function versionIn(file: string): unknown {
  const database = new DatabaseSync(file, { readOnly: true })
  const row = database.prepare('SELECT max(version) AS version FROM lango_schema').get()
  database.close()
  return row?.version
}
