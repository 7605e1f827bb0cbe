import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type ForeignSession, isAdkFile, isSqlite, readAdkFile } from '../../src/formats/adk-sessions.js'
import { readForeignDatabase } from '../../src/formats/foreign-databases.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { BRICKED, SIGNATURE, type Writer, writeAdkDatabase } from './import-adk-database.js'

const WRITERS: Writer[] = ['typescript', 'python-1', 'python-0', 'python-sqlite']

async function read(file: string): Promise<ForeignSession[]> {
  const sessions: ForeignSession[] = []
  const found = (await isSqlite(file))
    ? (await readForeignDatabase(file, { app: 'lango' })).sessions
    : readAdkFile(file)
  for await (const session of found) sessions.push(session)
  return sessions
}

test.each(WRITERS)('a database written by %s is read whole', async writer => {
  const file = join(await temporaryFolder(), 'adk.db')
  writeAdkDatabase(file, writer, BRICKED)
  const [session, ...others] = await read(file)
  expect(others).toEqual([])
  expect(session).toMatchObject({
    key: { appName: 'shop', userId: 'ann', sessionId: 's1' },
    state: { cart: { itemCount: 2 }, 'app:currency': 'EUR', 'user:name': 'Ann' },
    messages: [
      {
        role: 'user',
        author: 'user',
        content: 'find it',
        timestamp: 1_700_000_000_250,
        id: 'e1',
        invocationId: 'i1',
      },
      {
        role: 'assistant',
        author: 'root',
        timestamp: 1_700_000_001_000,
        toolCalls: [
          // Keys that people chose stay as they are, whatever the case of those around them.
          {
            id: 'adk-1',
            name: 'search',
            input: '{"q":"x","max_results":3}',
            signature: SIGNATURE,
            kind: 'call',
          },
          { id: 'adk-2', name: 'search', input: '{"q":"y"}', kind: 'call' },
        ],
        extra: { usageMetadata: { promptTokenCount: 11 } },
      },
      {
        role: 'tool',
        toolCalls: [{ id: 'adk-1', name: 'search', output: '{"item_count":1}', kind: 'response' }],
      },
      { role: 'user', content: 'well?' },
    ],
  })
  expect(session?.messages[2]?.extra).toMatchObject({ actions: { stateDelta: { last_query: 'x' } } })
  expect(session?.notes).toEqual([])
})

const CAMEL = {
  id: 's1',
  appName: 'shop',
  userId: 'ann',
  state: { a: 1, 'temp:b': 2 },
  events: [
    {
      id: 'e1',
      author: 'user',
      timestamp: 1_700_000_000.25,
      content: {
        role: 'user',
        parts: [{ text: 'hi' }, { inlineData: { mimeType: 'image/png', data: 'a-_w' } }],
      },
    },
    {
      id: 'e2',
      author: 'root',
      partial: true,
      timestamp: 2,
      content: { role: 'model', parts: [{ text: 'he' }] },
    },
    { id: 'e1', author: 'root', timestamp: 3, content: { role: 'model', parts: [{ text: 'hello' }] } },
    { id: 'e4', author: 'root', timestamp: 4, actions: { stateDelta: { a: 1 } } },
  ],
}

test('a session as JSON is read: bytes in the plain alphabet, no glimpses, and no id twice', async () => {
  const file = join(await temporaryFolder(), 's1.session.json')
  await writeFile(file, JSON.stringify(CAMEL))
  expect(await isAdkFile(file)).toBe(true)
  const [session] = await read(file)
  expect(session).toMatchObject({ key: { appName: 'shop', userId: 'ann', sessionId: 's1' }, state: { a: 1 } })
  expect(session?.state).not.toHaveProperty('temp:b')
  expect(session?.messages).toHaveLength(2)
  expect(session?.messages[0]).toMatchObject({ id: 'e1', timestamp: 1_700_000_000_250, content: 'hi' })
  expect(JSON.stringify(session?.messages[0]?.extra)).toContain('"data":"a+/w"')
  expect(session?.messages[1]).toMatchObject({ role: 'assistant', content: 'hello' })
  expect(session?.messages[1]).not.toHaveProperty('id')
})

test('exports of Lango, other JSON, other databases and other files are not taken for ADK’s', async () => {
  const folder = await temporaryFolder()
  const contents = {
    'ours.jsonl': '{"lango":"session","version":1}\n{}',
    'other.json': '{"a":1}',
    'notes.txt': 'hello',
  }
  for (const [name, content] of Object.entries(contents)) {
    await writeFile(join(folder, name), content)
    expect(await isAdkFile(join(folder, name)), name).toBe(false)
  }
  await expect(read(join(folder, 'other.json'))).rejects.toMatchObject({ code: 'invalid-argument' })
  await expect(isAdkFile(join(folder, 'missing'))).rejects.toMatchObject({ code: 'invalid-argument' })
  const { openStore } = await import('../../src/store/open-store.js')
  const store = await openStore(`sqlite:${join(folder, 'lango.db')}`)
  await store.close()
  await expect(read(join(folder, 'lango.db'))).rejects.toThrow(/is a Lango store\. Use it with --store/)
  const { DatabaseSync } = await import('@photostructure/sqlite')
  const other = new DatabaseSync(join(folder, 'other.db'))
  other.exec('CREATE TABLE notes (text)')
  other.close()
  await expect(read(join(folder, 'other.db'))).rejects.toThrow(
    /holds no sessions that can be imported\. Its tables: notes\. Known are those of ADK \(sessions, events\), Mastra/,
  )
})
