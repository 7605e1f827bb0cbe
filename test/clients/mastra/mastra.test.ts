// Mastra writes its threads to libSQL and to PostgreSQL, in a process of Node 22 that reaches nothing but loopback: they are
// imported whole, linted, healed, and go on with a model of every profile.
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { isRecord } from '../../../src/base/is-record.js'
import { importSessions } from '../../../src/cli/sessions-import.js'
import { openForeignDatabase, openStore } from '../../../src/store/open-store.js'
import { captured } from '../../cli/doctor-output.js'
import { type EveryProfile, startEveryProfile } from '../../support/every-profile.js'
import { createDatabase } from '../../support/postgres.js'
import { makeFolder, removeFolder } from '../../support/temporary-folder.js'
import { lintFile, lostValues } from '../histories/support/imported.js'
import { APPROVAL_SCENES, SCENES } from '../histories/support/scenes.js'
import { playMastra } from './play.js'

let folder = ''
let every: EveryProfile
beforeAll(async () => {
  folder = await makeFolder()
  every = await startEveryProfile()
})
afterAll(async () => {
  await every.close()
  await removeFolder(folder)
})

const NAMES = [
  'three calls at once',
  'a picture from the user',
  'a tool that fails',
  'a call that is not decided yet',
]
const PLAYED = [...SCENES, ...APPROVAL_SCENES].filter(({ name }) => NAMES.includes(name))

test.each(['libsql', 'postgres'])(
  'threads that Mastra writes to %s are imported whole, healed, and go on',
  async kind => {
    const place = kind === 'libsql' ? join(folder, 'mastra.db') : await postgres()
    expect(await playMastra(kind === 'libsql' ? `file:${place}` : place, PLAYED)).toBe(0)
    if (kind === 'libsql')
      expect(await lintFile(place, 'openai-chat')).toEqual({
        format: 'mastra',
        breaks: ['call-without-result'],
      })
    const url = `sqlite:${join(folder, `lango-${kind}.db`)}?sync=normal`
    const flags = { store: url, json: true, app: 'lango', agent: 'root' }
    const { text } = await captured(io => importSessions(io, [place], flags))
    const imported: { sessionId: string; leftOut?: string[] }[] = JSON.parse(text).imported
    expect(imported.map(({ sessionId }) => sessionId).sort()).toEqual([...NAMES].sort())
    const threads = await threadsOf(place)
    const store = await openStore(url)
    onTestFinished(() => store.close())
    for (const { sessionId, leftOut = [] } of imported) {
      const key = { appName: 'lango', userId: 'ann', sessionId }
      const messages = await store.readMessages(key)
      expect(lostValues(threads.get(sessionId), { messages, leftOut }), sessionId).toEqual([])
      const broken = sessionId === 'a call that is not decided yet' ? ['call-without-result'] : []
      expect(await every.expectHealsAndGoesOn(store, key), sessionId).toEqual(broken)
    }
  },
)

async function postgres(): Promise<string> {
  const database = await createDatabase()
  onTestFinished(() => database.drop())
  return database.url
}

/** The content of every message, by thread, read apart from the importer. */
async function threadsOf(place: string): Promise<Map<string, unknown[]>> {
  const database = await openForeignDatabase(place)
  const rows = await database.rows('SELECT thread_id, content FROM mastra_messages ORDER BY "createdAt"')
  await database.close()
  const threads = new Map<string, unknown[]>()
  for (const { thread_id: id, content } of rows) {
    const read: unknown = typeof content === 'string' ? JSON.parse(content) : content
    expect(isRecord(read)).toBe(true)
    threads.set(String(id), [...(threads.get(String(id)) ?? []), { content: read }])
  }
  return threads
}
