// Everything that can be imported, in the middle of a tool: each session is imported, linted, healed, and goes on with a
// model of every profile. Files of Claude Code, Codex, pi and Mastra were written by the programs themselves, the others by
// hand, by the forms of their programs; those that run here write theirs in test/clients/histories.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { importSessions } from '../../src/cli/sessions-import.js'
import { appendAll } from '../../src/session/session-pages.js'
import { openStore } from '../../src/store/open-store.js'
import { mintSignature } from '../../src/testing/strict/mint-signature.js'
import { STRICT_PROFILES, type StrictProfile } from '../../src/testing/strict/profile.js'
import { captured } from '../cli/doctor-output.js'
import { BRICKED, type Writer, writeAdkDatabase } from '../cli/import-adk-database.js'
import { type EveryProfile, startEveryProfile } from '../support/every-profile.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { LONG } from '../support/tiers.js'
import {
  AGENTS_ITEMS,
  LANGCHAIN_MESSAGES,
  MASTRA_MESSAGES,
  MODEL_MESSAGES,
  SIGNATURE,
  UI_MESSAGES,
} from './foreign-conversations.js'
import { AGENTS, CHECKPOINTS, database, ITEMS, pack, pydantic } from './python-databases.js'

let every: EveryProfile
beforeAll(async () => {
  every = await startEveryProfile()
})
afterAll(async () => {
  await every.close()
})

const CLIENTS = join(import.meta.dirname, '../clients')
const killed = (program: string) => join(CLIENTS, 'transcripts', program, 'killed-during-a-command.jsonl')

/** Makes what is imported: a file. */
type Source = () => Promise<string> | string

function adk(writer: Writer): Source {
  return async () => {
    const file = join(await temporaryFolder(), 'adk.db')
    writeAdkDatabase(file, writer, BRICKED)
    return file
  }
}

/** With a signature that the strict servers of its vendor accept. */
function json(content: unknown, signature = mintSignature('anthropic', { thinking: 'A picture.' })): Source {
  return async () => {
    const file = join(await temporaryFolder(), 'history.json')
    await writeFile(file, JSON.stringify(content).replaceAll(SIGNATURE, signature))
    return file
  }
}

/** Without the rows whose text has a word in it. */
function without<Row>(rows: readonly Row[], pattern: RegExp): Row[] {
  return rows.filter(row => !pattern.test(JSON.stringify(row)))
}

async function agents(): Promise<string> {
  const { file, opened } = await database(AGENTS)
  opened.prepare("INSERT INTO agent_sessions (session_id) VALUES ('s1')").run()
  const insert = opened.prepare("INSERT INTO agent_messages (session_id, message_data) VALUES ('s1', ?)")
  for (const item of without(ITEMS, /function_call_output/)) insert.run(JSON.stringify(item))
  opened.close()
  return file
}

async function checkpoints(): Promise<string> {
  const { file, opened } = await database(CHECKPOINTS)
  const calls = [{ name: 'look', args: {}, id: 'c1', type: 'tool_call' }]
  const messages = [
    pydantic('HumanMessage', { type: 'human', content: 'Look.' }),
    pydantic('AIMessage', { type: 'ai', content: '', tool_calls: calls }),
  ]
  opened
    .prepare(
      "INSERT INTO checkpoints (thread_id, checkpoint_id, type, checkpoint) VALUES ('s1', '1', 'msgpack', ?)",
    )
    .run(pack({ v: 4, channel_values: { messages } }))
  opened.close()
  return file
}

/** Calls without a result, as the AI SDK and Mastra have them: the state of the part says so. */
function waiting(content: unknown): unknown {
  const text = JSON.stringify(content)
  return JSON.parse(
    text
      .replace('"state":"output-error"', '"state":"input-available"')
      .replace(
        '"state":"result","step":0,"toolCallId":"call_2"',
        '"state":"call","step":0,"toolCallId":"call_2"',
      )
      .replaceAll(/,"(?:errorText|result)":"too dark"/g, ''),
  )
}

const SOURCES: [string, Source][] = [
  ['ADK for TypeScript', adk('typescript')],
  ['ADK for Python, schema 1', adk('python-1')],
  ['ADK for Python, schema 0 with pickled actions', adk('python-0')],
  ['ADK for Python, SqliteSessionService', adk('python-sqlite')],
  ['Mastra on libSQL', () => join(CLIENTS, 'histories/mastra/mastra.db')],
  ['Mastra, messages', json(waiting(MASTRA_MESSAGES))],
  ['LangGraph for Python', checkpoints],
  ['LangChain, messages', json(without(LANGCHAIN_MESSAGES.serialized, /too dark/))],
  ['OpenAI Agents for Python', agents],
  ['OpenAI Agents, items', json(without(AGENTS_ITEMS, /too dark/), mintSignature('openai'))],
  ['AI SDK, UI messages', json(waiting(UI_MESSAGES))],
  ['AI SDK, model messages', json(MODEL_MESSAGES.map(withoutSecondResult))],
  ['Claude Code', () => killed('claude-code')],
  ['Codex', () => killed('codex')],
  ['pi', () => killed('pi')],
]

function withoutSecondResult({ role, content }: { role: string; content: readonly unknown[] }): object {
  return { role, content: role === 'tool' ? content.slice(0, 1) : content }
}

const memory = await openStore('memory:')

/** Imports a file and expects a broken session that can be healed and continued with each of the profiles. */
async function expectImportContinues(
  userId: string,
  source: Source,
  profiles: readonly StrictProfile[],
): Promise<void> {
  const url = `sqlite:${join(await temporaryFolder(), 'lango.db')}?sync=normal`
  const place = await source()
  const { code } = await captured(io =>
    importSessions(io, [place], { store: url, app: 'lango', agent: 'root' }),
  )
  expect(code).toBe(0)
  const file = await openStore(url)
  const { sessions } = await file.listSessions({ appName: 'lango', limit: 200 })
  // Of a program that kept several: one that waits for a person.
  const found = sessions.find(({ key }) => sessions.length === 1 || /not decided yet/.test(key.sessionId))
  const messages = found ? await file.readMessages(found.key, { limit: 1000 }) : []
  await file.close()
  // A run per profile follows: in memory.
  const key = { appName: 'lango', userId, sessionId: 'imported' }
  await memory.createSession(key)
  await appendAll(memory, key, messages)
  expect(await every.expectHealsAndGoesOn(memory, key, profiles)).toContain('call-without-result')
}

for (const [index, [name, source]] of SOURCES.entries()) {
  // Another profile for each importer.
  const profile = STRICT_PROFILES[index % STRICT_PROFILES.length] as StrictProfile

  test(`a broken session of ${name} is imported, healed and continued with ${profile}`, () =>
    expectImportContinues(name, source, [profile]))

  test(`a broken session of ${name} is imported, healed and continued with every profile`, LONG, () =>
    expectImportContinues(`${name}, every profile`, source, STRICT_PROFILES),
  )
}
