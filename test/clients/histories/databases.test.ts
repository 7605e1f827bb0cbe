// Databases that real frameworks wrote: every session is imported as it was, linted, and goes on with a model of every
// profile after it was repaired.
import { join } from 'node:path'
import { type LogLevel, setLogLevel } from '@google/adk'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { messagesToProvider } from '../../../src/adk/messages-to-provider.js'
import { importSessions } from '../../../src/cli/sessions-import.js'
import type { SessionKey, StoredMessage } from '../../../src/session/message.js'
import type { SessionStore } from '../../../src/session/session-store.js'
import { openStore } from '../../../src/store/open-store.js'
import { captured } from '../../cli/doctor-output.js'
import { type EveryProfile, startEveryProfile } from '../../support/every-profile.js'
import { createDatabase } from '../../support/postgres.js'
import { makeFolder, removeFolder } from '../../support/temporary-folder.js'
import { ADK_APP, openAdk, playAdk } from './support/adk.js'
import { lintFile, lostValues } from './support/imported.js'
import { openPostgresSaver, openSaver, playLangChain } from './support/langchain.js'
import { HANDOFF_SCENES, SCENES, type Scene } from './support/scenes.js'

let folder = ''
let every: EveryProfile
beforeAll(async () => {
  // ADK has no level that says nothing.
  setLogLevel(99 as LogLevel)
  folder = await makeFolder()
  every = await startEveryProfile()
})
afterAll(async () => {
  await every.close()
  await removeFolder(folder)
})

/** One that is legal, one that broke, and one with media. */
const GO_ON = ['three calls at once', 'killed while a tool works', 'a picture from the user']
const goesOn = ({ name }: Scene) => GO_ON.includes(name)

interface Imported {
  store: SessionStore
  report: { sessionId: string; messages: number; leftOut?: string[] }[]
  unknownAgents: string[] | undefined
}

let stores = 0

async function importAll(place: string, more: Record<string, unknown> = {}): Promise<Imported> {
  stores += 1
  const url = `sqlite:${join(folder, `lango-${stores}.db`)}?sync=normal`
  const flags = { store: url, json: true, app: 'lango', agent: 'root', ...more }
  const { text, code } = await captured(io => importSessions(io, [place], flags))
  expect(code).toBe(0)
  const { imported, unknownAgents } = JSON.parse(text)
  const store = await openStore(url)
  onTestFinished(() => store.close())
  return { store, report: imported, unknownAgents }
}

function messagesOf(store: SessionStore, key: SessionKey): Promise<StoredMessage[]> {
  return store.readMessages(key, { limit: 1000 })
}

describe.each(['sqlite', 'postgres'])('ADK on %s', kind => {
  test('every session is imported whole, in its order, and goes on', async () => {
    const place = kind === 'sqlite' ? join(folder, 'adk.db') : await postgres()
    const scenes = kind === 'sqlite' ? [...SCENES, ...HANDOFF_SCENES] : SCENES.filter(goesOn)
    const { service, close } = openAdk(place)
    const written = new Map<string, Awaited<ReturnType<typeof playAdk>>['session']>()
    for (const scene of scenes) written.set(scene.name, (await playAdk(scene, service)).session)
    await close()
    if (kind === 'sqlite') expect(await lintFile(place, 'gemini-3')).toMatchObject({ format: 'adk' })
    const { store, report, unknownAgents } = await importAll(place, { author: ['clerk=root'] })
    expect(report).toHaveLength(scenes.length)
    expect(unknownAgents).toEqual(kind === 'sqlite' ? ['root', 'helper'] : ['root'])
    for (const scene of scenes) {
      const key = { appName: 'lango', userId: 'ann', sessionId: scene.name }
      const messages = await messagesOf(store, key)
      const { events } = JSON.parse(JSON.stringify(written.get(scene.name)))
      expect(messages.map(({ id }) => id)).toEqual(events.map(({ id }: { id: string }) => id))
      const renamed = JSON.parse(JSON.stringify(events).replaceAll('"author":"clerk"', '"author":"root"'))
      expect(lostValues(renamed, { messages, leftOut: [] })).toEqual([])
      const session = await store.loadSession(key, { maxMessages: 1 })
      expect(session?.state).toMatchObject({ scene: scene.name, 'user:city': 'Rome', 'app:open': true })
      if (goesOn(scene)) await expectGoesOn(store, key)
    }
    expect(ADK_APP).not.toBe('lango')
  })
})

async function postgres(): Promise<string> {
  const database = await createDatabase()
  onTestFinished(() => database.drop())
  return database.url
}

/** `mastra/README.md` says how the file was written. */
const MASTRA = new URL('mastra/mastra.db', import.meta.url).pathname

/** Read apart from the product: the content of every message, by thread. */
function mastraThreads(): Map<string, unknown[]> {
  const database = new DatabaseSync(MASTRA, { readOnly: true })
  const rows = database.prepare('select thread_id, content from mastra_messages order by createdAt').all()
  database.close()
  const threads = new Map<string, unknown[]>()
  for (const { thread_id, content } of rows) {
    const thread = threads.get(String(thread_id)) ?? []
    thread.push({ content: JSON.parse(String(content)) })
    threads.set(String(thread_id), thread)
  }
  return threads
}

test('threads of Mastra are imported whole, and go on', async () => {
  // A call that waits for a person, and one whose process was killed.
  expect(await lintFile(MASTRA, 'openai-chat')).toEqual({ format: 'mastra', breaks: ['call-without-result'] })
  const { store, report } = await importAll(MASTRA)
  const threads = mastraThreads()
  expect(report.map(({ sessionId }) => sessionId).sort()).toEqual([...threads.keys()].sort())
  expect(threads.size).toBeGreaterThanOrEqual(20)
  const metadata =
    /^(id|thread_id|resourceId|content\.(format|metadata(\.\w+)*|parts\.(createdAt|model)))( \(\d+\))?$/
  for (const { sessionId, leftOut = [] } of report) {
    const key = { appName: 'lango', userId: 'ann', sessionId }
    const messages = await messagesOf(store, key)
    expect(lostValues(threads.get(sessionId), { messages, leftOut }), sessionId).toEqual([])
    expect(
      leftOut.filter(path => !metadata.test(path)),
      sessionId,
    ).toEqual([])
    if (GO_ON.includes(sessionId)) await expectGoesOn(store, key)
  }
})

test.each(['sqlite', 'postgres'])(
  'checkpoints of LangGraph on %s: the messages of each thread are imported, and go on',
  async kind => {
    const place = kind === 'sqlite' ? join(folder, 'graph.db') : await postgres()
    const scenes = kind === 'sqlite' ? SCENES : SCENES.filter(goesOn)
    const { saver, close } = kind === 'sqlite' ? openSaver(place) : await openPostgresSaver(place)
    const written = new Map<string, unknown>()
    for (const scene of scenes) written.set(scene.name, (await playLangChain(scene, saver)).stored)
    await close()
    if (kind === 'sqlite') expect(await lintFile(place, 'openai-chat')).toMatchObject({ format: 'langchain' })
    const { store, report } = await importAll(place)
    expect(report.map(({ sessionId }) => sessionId).sort()).toEqual(scenes.map(({ name }) => name).sort())
    for (const scene of scenes.filter(({ abortAfter }) => abortAfter === undefined)) {
      const key = { appName: 'lango', userId: 'user', sessionId: scene.name }
      const messages = await messagesOf(store, key)
      const { leftOut = [] } = report.find(({ sessionId }) => sessionId === scene.name) ?? {}
      // Checkpoints hold the serialized form of the same messages.
      const named = leftOut.map(path => path.replace(/^kwargs\b/, 'data'))
      expect(lostValues(written.get(scene.name), { messages, leftOut: named })).toEqual([])
      if (goesOn(scene)) await expectGoesOn(store, key)
    }
  },
)

/** As it was imported, and healed. */
async function expectGoesOn(store: SessionStore, key: SessionKey): Promise<void> {
  await every.expectNextMessageWorks(store, key)
  await every.expectHealsAndGoesOn(store, key)
}

test('an ADK session under the name of another agent: its calls reach the model as calls only with --author', async () => {
  const place = join(folder, 'authors.db')
  const { service, close } = openAdk(place)
  const scene = SCENES.find(({ name }) => name === 'a call and its result') as Scene
  await playAdk(scene, service)
  await close()
  const key = { appName: 'lango', userId: 'ann', sessionId: scene.name }
  const own = await importAll(place, { author: ['clerk=root'] })
  const messages = messagesToProvider(await messagesOf(own.store, key))
  expect(messages.flatMap(({ parts }) => parts.map(({ type }) => type))).toContain('tool-call')
  expect((await importAll(place)).unknownAgents).toEqual(['clerk'])
})
