// Databases of frameworks that do not run here, by their published schemas; agents that are not known; and files that fit
// two formats. Those of frameworks that run here are in test/clients/histories.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { expect, test } from 'vitest'
import { messagesToProvider } from '../../src/adk/messages-to-provider.js'
import { lint } from '../../src/cli/lint.js'
import { importSessions } from '../../src/cli/sessions-import.js'
import { readMessagePack } from '../../src/formats/message-pack.js'
import { readPickle } from '../../src/formats/python-pickle.js'
import type { StoredMessage } from '../../src/session/message.js'
import { openStore } from '../../src/store/open-store.js'
import { captured } from '../cli/doctor-output.js'
import { BRICKED, writeAdkDatabase } from '../cli/import-adk-database.js'
import { memoryIo } from '../cli/memory-io.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { CODEX_LINES, PI_LINES } from './foreign-conversations.js'
import { AGENTS, CHECKPOINTS, database, ITEMS, pack, pydantic } from './python-databases.js'
import { pickle } from './python-pickles.js'

interface Outcome {
  code: number
  text: string
  notes: string
  store: string
}

async function imported(file: string, flags: object = {}, store?: string): Promise<Outcome> {
  const url = store ?? `sqlite:${join(await temporaryFolder(), 'lango.db')}`
  const outcome = await captured(io => importSessions(io, [file], { store: url, app: 'lango', ...flags }))
  return { ...outcome, store: url }
}

async function messagesIn(url: string, sessionId: string, userId = 'user'): Promise<StoredMessage[]> {
  const store = await openStore(url)
  const messages = await store.readMessages({ appName: 'lango', userId, sessionId })
  await store.close()
  return messages
}

test('sessions of the OpenAI Agents SDK for Python are imported, each under its id', async () => {
  const { file, opened } = await database(AGENTS)
  for (const id of ['one', 'two']) {
    opened.prepare('INSERT INTO agent_sessions (session_id) VALUES (?)').run(id)
    const insert = opened.prepare('INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)')
    for (const item of ITEMS) insert.run(id, JSON.stringify(item))
  }
  opened.close()
  const { text, store } = await imported(file)
  expect(text).toBe('Imported one of user user: 4 messages.\nImported two of user user: 4 messages.\n')
  const [, call, result, answer] = await messagesIn(store, 'two')
  expect(call?.toolCalls).toMatchObject([{ id: 'c1', name: 'get_weather', input: '{"city":"Rome"}' }])
  expect(result?.toolCalls).toMatchObject([{ id: 'c1', name: 'get_weather', output: '{"result":"rain"}' }])
  expect(answer?.content).toBe('It rains.')
  await expect(imported(file, {}, store)).rejects.toMatchObject({ code: 'session-exists' })
})

test('the last checkpoint of LangGraph for Python is imported, with the writes after it', async () => {
  const calls = [{ name: 'look', args: { big: 2n ** 60n }, id: 'c1', type: 'tool_call' }]
  const asked = pydantic('HumanMessage', { type: 'human', content: 'Look.' })
  const called = pydantic('AIMessage', { type: 'ai', content: '', tool_calls: calls, id: 'run-1' })
  const answered = pydantic('ToolMessage', {
    type: 'tool',
    content: 'a cat',
    tool_call_id: 'c1',
    name: 'look',
  })
  const { file, opened } = await database(CHECKPOINTS)
  const insert = opened.prepare(
    'INSERT INTO checkpoints (thread_id, checkpoint_id, type, checkpoint) VALUES (?, ?, ?, ?)',
  )
  const values = (messages: object[]) => ({
    v: 4,
    channel_values: { messages, mood: 'good', 'branch:to:x': null },
  })
  insert.run('t1', '1ef', 'msgpack', pack(values([asked])))
  insert.run('t1', '1f0', 'msgpack', pack(values([asked, called])))
  opened
    .prepare("INSERT INTO writes VALUES ('t1', '', '1f0', 'task', 0, 'messages', 'msgpack', ?)")
    .run(pack([answered]))
  opened.close()
  const { text, store } = await imported(file, { json: true })
  expect(JSON.parse(text).imported).toMatchObject([{ sessionId: 't1', messages: 3, leftOut: ['id'] }])
  const messages = messagesToProvider(await messagesIn(store, 't1'))
  expect(messages.flatMap(({ parts }) => parts)).toMatchObject([
    { type: 'text', text: 'Look.' },
    { type: 'tool-call', id: 'c1', args: { big: '1152921504606846976' } },
    { type: 'tool-result', id: 'c1', result: { result: 'a cat' } },
  ])
})

test.each([
  ['ends too early', pack({ a: 'text' }).subarray(0, 8)],
  ['is nested too deeply', Buffer.alloc(2000, 0x91)],
  ['has an unknown kind of value', Buffer.from([0xc1])],
])('MessagePack that %s is refused', (why, bytes) => {
  expect(() => readMessagePack(bytes)).toThrow(why)
})

test('a checkpoint in an unknown form is reported, and nothing is stored', async () => {
  const { file, opened } = await database(CHECKPOINTS)
  opened
    .prepare(
      "INSERT INTO checkpoints (thread_id, checkpoint_id, type, checkpoint) VALUES ('t', '1', 'pickle', ?)",
    )
    .run(Buffer.from([0x80, 0x05]))
  opened.close()
  await expect(imported(file)).rejects.toThrow('A checkpoint is stored as "pickle", which cannot be read.')
})

test('the import of a session by an unknown agent says how to continue it as the configured agent', async () => {
  const file = join(await temporaryFolder(), 'adk.db')
  writeAdkDatabase(file, 'typescript', BRICKED)
  const { notes, store } = await imported(file)
  expect(notes).toContain('The answers of "root" are from an agent that this configuration does not have')
  expect(notes).toContain('import with --author root=lango-agent')
  const again = await imported(file, { author: ['root=lango-agent'], as: 'mine' }, store)
  expect(again.notes).toBe('')
  const authors = (await messagesIn(store, 'mine', 'ann')).map(({ author }) => author)
  expect(authors).toEqual(['user', 'lango-agent', 'lango-agent', 'user'])
})

test.each(['root', '=x', 'root=', 'root=user', 'root=a b'])(
  'sessions import refuses --author %s',
  async pair => {
    const file = join(await temporaryFolder(), 'adk.db')
    writeAdkDatabase(file, 'typescript', BRICKED)
    await expect(imported(file, { author: [pair] })).rejects.toThrow('Write --author NAME=AGENT')
  },
)

test('sessions import --dry-run lists the sessions of a database and creates no store', async () => {
  const folder = await temporaryFolder()
  writeAdkDatabase(join(folder, 'adk.db'), 'python-0', BRICKED)
  const store = `sqlite:${join(folder, 'none.db')}`
  const { text, notes } = await imported(join(folder, 'adk.db'), { 'dry-run': true }, store)
  expect(text).toBe('Found s1 of user ann: 4 messages.\n')
  expect(notes).toContain('Nothing was stored.')
  const { existsSync } = await import('node:fs')
  expect(existsSync(join(folder, 'none.db'))).toBe(false)
})

const chatCall = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{}' } }],
}
const claudeResult = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'ok' }] }
const modelResult = {
  role: 'tool',
  content: [{ type: 'tool-result', toolCallId: 'a', toolName: 'f', output: { type: 'text', value: 'ok' } }],
}
const uiPart = { role: 'assistant', parts: [{ type: 'text', text: 'b' }] }
const geminiRow = { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] }
const responsesCall = { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' }
const agentsResult = { type: 'function_call_result', callId: 'a', name: 'f', output: 'ok' }
const mastraRow = { role: 'user', threadId: 't', resourceId: 'r', content: { format: 2, parts: [] } }
const lines = (rows: readonly unknown[]) => rows.map(row => JSON.stringify(row)).join('\n')

/** Pieces of two programs in one file, as people paste them: each reads differently by each of the two. */
const AMBIGUOUS: [string, unknown, string[]][] = [
  ['a call of OpenAI, a result of Anthropic', [chatCall, claudeResult], ['anthropic', 'openai-chat']],
  ['a call of OpenAI, a result of the AI SDK', [chatCall, modelResult], ['ai-sdk-model', 'openai-chat']],
  ['a result of Anthropic and one of the AI SDK', [claudeResult, modelResult], ['ai-sdk-model', 'anthropic']],
  ['parts of Gemini and of the AI SDK', [geminiRow, uiPart], ['gemini', 'ai-sdk-ui']],
  [
    'parts of both in one message',
    [{ role: 'user', parts: [{ text: 'a' }, ...uiPart.parts] }],
    ['gemini', 'ai-sdk-ui'],
  ],
  [
    'items of the API and of the Agents SDK',
    [responsesCall, agentsResult],
    ['openai-agents', 'openai-responses'],
  ],
  ['items and Chat messages', [responsesCall, chatCall], ['openai-responses', 'openai-chat']],
  ['messages of Mastra and of the AI SDK', [mastraRow, uiPart], ['ai-sdk-ui', 'mastra']],
  ['messages of Mastra and Chat messages', [mastraRow, chatCall], ['mastra', 'openai-chat']],
  ['lines of two programs', lines([...PI_LINES, ...CODEX_LINES]), ['codex', 'pi']],
]

test.each(AMBIGUOUS)(
  'a file with %s is refused as ambiguous by lint and import',
  async (_, content, formats) => {
    const file = join(await temporaryFolder(), 'history.json')
    await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
    const failures = [
      await failureOf(() => lint(memoryIo(), file, {})),
      await failureOf(() => imported(file)),
    ]
    for (const failure of failures) {
      // Every error ends the command with exit code 1.
      expect(failure).toMatchObject({ code: 'invalid-argument' })
      expect(failure.message).toMatch(/: not sure, it could be .+ or .+\. Choose with --format/)
      for (const format of formats) expect(failure.message).toContain(`--format ${format}`)
    }
    for (const format of formats) {
      const { text } = await captured(io => lint(io, file, { format, json: true }))
      expect(JSON.parse(text).format).toBe(format)
    }
  },
)

async function failureOf(work: () => Promise<unknown>): Promise<{ code?: string; message: string }> {
  try {
    await work()
  } catch (error) {
    return error as { code?: string; message: string }
  }
  return { message: 'It did not fail.' }
}

test('a session of another program is named by the first words of its user', async () => {
  const file = join(await temporaryFolder(), 'chat.json')
  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Plan a trip to Porto.\nBy train.' },
    { role: 'assistant', content: 'By the river.' },
  ]
  await writeFile(file, JSON.stringify({ model: 'gpt-5', messages }))
  const { store: url } = await imported(file)
  const store = await openStore(url)
  const { sessions } = await store.listSessions({ appName: 'lango' })
  await store.close()
  expect(sessions).toMatchObject([{ key: { sessionId: 'chat' }, title: 'Plan a trip to Porto. By train.' }])
})

test.each(['protocol3', 'protocol4', 'protocol5'] as const)(
  'fields, times, numbers and bytes of a Python pickle with %s are read',
  name => {
    expect(readPickle(pickle(name))).toEqual({
      skip_summarization: null,
      state_delta: {
        ...{ last_query: 'x', 'user:name': 'Ann', n: -3, big: '1180591620717411303424', ok: true, f: 1.5 },
        ...{
          l: [1, [2, 3], [4]],
          b: 'AQI=',
          d: '2026-03-01T10:00:05.000250',
          day: '2026-03-01',
          m: 'good',
        },
        ...{ e: '1.10', o: { a: 1 }, none: null, z: 'é'.repeat(300) },
      },
      artifact_delta: { 'a.txt': 0 },
      transfer_to_agent: 'helper',
      escalate: true,
      requested_auth_configs: {},
      requested_tool_confirmations: { 'adk-1': { hint: 'Pay?', confirmed: false, payload: null } },
    })
  },
)

test('a call in a Python pickle is read as data, and its function is not called', () => {
  const actions = readPickle(pickle('callsSystem')) as { state_delta: { a: unknown } }
  expect(actions.state_delta.a).toMatch(/^touch /)
})

const whole = pickle('protocol5')
test.each([
  ['a value is inside itself', pickle('insideItself')],
  ['it is too large', pickle('doubling')],
  ['it ends too early', whole.subarray(0, whole.length - 3)],
  ['it ends too early', new Uint8Array()],
  ['it has the instruction 0x50, which is not known', new Uint8Array([0x80, 5, 0x50])],
  ['it names a value that it does not have', new Uint8Array([0x80, 5, 0x68, 7, 0x2e])],
  ['it ends a group that it did not begin', new Uint8Array([0x80, 5, 0x74, 0x2e])],
])('a Python pickle is refused when %s (row %#)', (why, bytes) => {
  expect(() => readPickle(bytes)).toThrow(`The pickled object cannot be read: ${why}.`)
})

test('pickled actions that cannot be read are left out with a note that says how to convert them', async () => {
  const file = join(await temporaryFolder(), 'adk.db')
  writeAdkDatabase(file, 'python-0', BRICKED)
  const opened = new DatabaseSync(file)
  opened.prepare("UPDATE events SET actions = ? WHERE id = 'e3'").run(new Uint8Array([0x80, 5, 0x95]))
  opened.close()
  const { text, notes, store } = await imported(file)
  expect(text).toBe('Imported s1 of user ann: 4 messages.\n')
  expect(notes).toContain(
    'Actions of its events are left out. The pickled object cannot be read: it ends too early.',
  )
  expect(notes).toContain('adk migrate session')
  expect((await messagesIn(store, 's1', 'ann'))[2]?.extra).not.toHaveProperty('actions')
})
