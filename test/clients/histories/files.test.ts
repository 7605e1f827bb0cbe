// Files that real frameworks wrote, their models being strict providers: each is recognized, linted for the model that
// wrote it, and imported; every value is then stored, or named by the import as left out.
import { join } from 'node:path'
import { type LogLevel, setLogLevel } from '@google/adk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readHistoryFile } from '../../../src/formats/history-files.js'
import type { StoredMessage } from '../../../src/session/message.js'
import { appendAll } from '../../../src/session/session-pages.js'
import { openStore } from '../../../src/store/open-store.js'
import { PROFILE_FACTS, type StrictProfile } from '../../../src/testing/strict/profile.js'
import { type EveryProfile, startEveryProfile } from '../../support/every-profile.js'
import { makeFolder, removeFolder } from '../../support/temporary-folder.js'
import { openAdk, playAdk } from './support/adk.js'
import { playAgents } from './support/agents.js'
import { loadAiSdks, playAiSdk } from './support/ai-sdk.js'
import { importFile, lintFile, lostValues, written } from './support/imported.js'
import { openSaver, playLangChain } from './support/langchain.js'
import { APPROVAL_SCENES, HANDOFF_SCENES, SCENES, type Scene } from './support/scenes.js'

let every: EveryProfile
let folder = ''
let store = ''
/** How many files of each format were checked. */
const counts: Record<string, number> = {}

beforeAll(async () => {
  // ADK has no level that says nothing.
  setLogLevel(99 as LogLevel)
  every = await startEveryProfile()
  folder = await makeFolder()
  store = `sqlite:${join(folder, 'lango.db')}?sync=normal`
})
afterAll(async () => {
  await every.close()
  await removeFolder(folder)
})

interface ForeignFile {
  format: string
  /** Tells files of one scene apart. */
  by: string
  content: unknown
  /** What must not be lost of the content; default: all. */
  rows?: unknown
  profile?: StrictProfile
}

/**
 * Ids of messages and items, what a run cost, settings of a framework, and copies of what the message says. Everything
 * that a user, a model or a tool said is stored.
 */
const METADATA =
  /^(id|name|status|(data|kwargs)\.(id|status|name|metadata|additional_kwargs|response_metadata|usage_metadata|tool_call_chunks)|(parts|content)\.(id|providerMetadata|providerOptions|callProviderMetadata|resultProviderMetadata|providerData|annotations|cache_control|state|phase|status)|parts\.(toolMetadata|title|approval)|content\.(approvalId|approved|reason)|providerData|phase|logprobs|tool_calls\.(function\.strict|index))\b/

async function check(
  scene: Scene,
  { format, by, content, rows = content, profile = scene.profile }: ForeignFile,
) {
  const file = await written(folder, `${format} ${by} ${scene.name}`, content)
  const { format: found, candidates } = await readHistoryFile(file)
  // Texts alone have the same form in several formats, and all of them read the same.
  if (found === undefined) expect.soft(hasOnlyTexts(content)).toBe(true)
  expect.soft(candidates).toContain(format)
  const { breaks } = await lintFile(file, profile)
  expect.soft(breaks.filter(code => !scene.mayFind?.includes(code))).toEqual(scene.findings ?? [])
  const imported = await importFile(file, store)
  expect.soft(lostValues(rows, imported)).toEqual([])
  expect.soft(imported.leftOut.filter(path => !METADATA.test(path))).toEqual([])
  counts[format] = (counts[format] ?? 0) + 1
  if (GO_ON.includes(scene.name)) await expectGoesOn(imported.messages)
}

/** One that is legal and one that broke. */
const GO_ON = ['three calls at once', 'killed while a tool works']

async function expectGoesOn(messages: readonly StoredMessage[]): Promise<void> {
  const memory = await openStore('memory:')
  const key = { appName: 'lango', userId: 'user', sessionId: 'imported' }
  await memory.createSession(key)
  await appendAll(memory, key, messages)
  await every.expectHealsAndGoesOn(memory, key)
}

function hasOnlyTexts(content: unknown): boolean {
  return !/"(?:image|file|media|tool|function|reasoning)/i.test(JSON.stringify(content))
}

/** The bodies of the last turn: as long as the conversation was. */
async function checkBody(scene: Scene, profile: StrictProfile, bodies: readonly unknown[], by: string) {
  const body = bodies.at(-1) as Record<string, unknown> | undefined
  if (!body) return
  const rows = body.messages ?? body.contents ?? body.input
  const { findings: _findings, ...legal } = scene
  await check(legal, { format: PROFILE_FACTS[profile].family, by, content: body, rows, profile })
}

function named(scenes: readonly Scene[]): [string, Scene][] {
  return scenes.map(scene => [scene.name, scene])
}

/** The vendor whose rules a version is tried on, except where a scene needs its own. */
const PROFILES: Readonly<Record<number, StrictProfile>> = { 6: 'anthropic-4.6', 7: 'openai-chat' }

const ONLY_ITS_OWN = /thoughts|sources|structured|picture from a tool|PDF|300 kB/

describe.each(await loadAiSdks())('AI SDK $version', ai => {
  const approvals = ai.version === 5 ? [] : APPROVAL_SCENES
  test.each(named([...SCENES, ...approvals]))('%s', async (name, given) => {
    const profile = (ONLY_ITS_OWN.test(name) ? undefined : PROFILES[ai.version]) ?? given.profile
    const scene = { ...given, profile }
    const { ui, model, bodies } = await playAiSdk(ai, scene)
    await check(scene, { format: 'ai-sdk-ui', by: `${ai.version}`, content: ui })
    await check(scene, { format: 'ai-sdk-model', by: `${ai.version}`, content: model })
    await checkBody(scene, profile, bodies, `${ai.version}`)
  })
})

describe('LangChain', () => {
  test.each(named(SCENES))('%s', async (_, scene) => {
    const { saver, close } = openSaver(join(folder, 'graph.db'))
    const { stored, serialized, bodies } = await playLangChain(scene, saver)
    close()
    await check(scene, { format: 'langchain', by: 'stored', content: stored })
    await check(scene, { format: 'langchain', by: 'serialized', content: serialized })
    await checkBody(scene, scene.profile, bodies, 'langchain')
  })
})

describe('OpenAI Agents', () => {
  test.each(named([...SCENES, ...APPROVAL_SCENES, ...HANDOFF_SCENES]))('%s', async (_, given) => {
    const { history, session, state, bodies, scene } = await playAgents(given)
    await check(scene, { format: 'openai-agents', by: 'history', content: history })
    await check(scene, { format: 'openai-agents', by: 'session', content: session })
    if (state)
      await check(
        { ...scene, mayFind: [], findings: ['call-without-result'] },
        { format: 'openai-agents', by: 'state', content: state.content, rows: state.rows },
      )
    await checkBody(scene, scene.profile, bodies, 'agents')
  })
})

describe('ADK', () => {
  test.each(named([...SCENES, ...APPROVAL_SCENES.slice(2), ...HANDOFF_SCENES]))('%s', async (_, scene) => {
    const { service, close } = openAdk(join(folder, 'adk.db'))
    const { session, bodies } = await playAdk(scene, service)
    await close()
    const { state: _state, ...rows } = JSON.parse(JSON.stringify(session))
    await check(scene, {
      format: 'adk',
      by: 'json',
      content: session,
      rows: rows.events,
      profile: 'gemini-3',
    })
    await checkBody(scene, 'gemini-3', bodies, 'adk')
  })
})

test('twenty files or more of each format were checked', () => {
  expect(counts).toMatchObject({})
  for (const [format, count] of Object.entries(counts)) expect(count, format).toBeGreaterThanOrEqual(20)
  expect(Object.keys(counts).sort()).toEqual(
    [
      'adk',
      'ai-sdk-model',
      'ai-sdk-ui',
      'anthropic',
      'gemini',
      'langchain',
      'openai-agents',
      'openai-chat',
      'openai-responses',
    ].sort(),
  )
})
