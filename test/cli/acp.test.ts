// `lango acp` as an editor sees it. Where its process, its exit code or what else it prints counts, over the pipes of one.
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import type { McpServer } from '@agentclientprotocol/sdk'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { eventually } from '../support/eventually.js'
import { gate, type PacedRequest, type Piece } from '../support/paced-model.js'
import { createStoreDatabase, type TestDatabase } from '../support/postgres.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { longUnless } from '../support/tiers.js'
import { folderWith, openEditor, openSession } from './acp-editor.js'
import { langoProcess, startLango } from './lango.js'

// Starting processes takes long on a busy machine.
vi.setConfig({ testTimeout: 240_000 })

const FILES = { fs: { readTextFile: true, writeTextFile: true } }
const WRITE = { call: 'write_file', args: { path: 'notes.txt', content: 'hello\n' } }

/** Thinks, writes a file, and says so. */
function* writer({ results }: PacedRequest): Iterable<Piece> {
  if (results === 0) {
    yield { reasoning: 'A file is needed.' }
    yield 'Writing. '
    yield WRITE
  } else yield 'Written.'
}

const WRITER = {
  agent: { name: 'coder', model: 'play/gpt-4.1', tools: ['read_file', 'write_file', 'edit_file'] },
}

let database: TestDatabase
beforeAll(async () => {
  database = await createStoreDatabase()
})
afterAll(() => database.drop())

for (const name of ['SQLite', 'PostgreSQL']) {
  // The conformance suite proves each store.
  const tier = longUnless(name === 'SQLite')
  const store = () => (name === 'SQLite' ? {} : { store: database.url })

  test(
    `on ${name} a prompt is streamed, its call approved, its file written, and the session loaded by another process`,
    tier,
    async () => {
      const { cwd } = await folderWith(writer, { ...WRITER, ...store() })
      const editor = await openEditor({ cwd, isProcess: true, answer: () => 'once' })
      const { sessionId, prompt, offered } = await openSession(editor, cwd)
      expect(offered.modes?.availableModes.map(({ id }) => id)).toEqual(['ask', 'allow'])
      expect(await prompt('Write notes.txt')).toEqual({ stopReason: 'end_turn' })
      expect(editor.texts()).toBe('Writing. Written.')
      expect(editor.texts('agent_thought_chunk')).toBe('A file is needed.')
      const path = join(cwd, 'notes.txt')
      const diff = { type: 'diff', path, oldText: null, newText: 'hello\n' }
      expect(editor.of('tool_call')).toMatchObject([
        {
          name: 'write_file',
          kind: 'edit',
          title: 'write_file notes.txt',
          locations: [{ path }],
          content: [diff],
        },
      ])
      const [asked] = editor.asked
      expect(asked?.options.map(({ kind }) => kind)).toEqual(['allow_once', 'allow_always', 'reject_once'])
      expect(asked?.toolCall).toMatchObject({ status: 'pending', content: [diff] })
      expect(editor.of('tool_call_update').map(({ status }) => status)).toEqual([
        'pending',
        'in_progress',
        'completed',
      ])
      expect(await readFile(path, 'utf8')).toBe('hello\n')
      expect(await editor.leave()).toBe(0)

      const other = await openEditor({ cwd })
      const listed = await other.agent.request('session/list', { cwd })
      expect(listed.sessions).toMatchObject([{ sessionId, cwd, title: 'Write notes.txt' }])
      await other.agent.request('session/load', { sessionId, cwd, mcpServers: [] })
      expect(other.updates.map(({ sessionUpdate }) => sessionUpdate)).toEqual([
        'user_message_chunk',
        'agent_thought_chunk',
        'agent_message_chunk',
        'tool_call',
        'agent_message_chunk',
      ])
      expect(other.of('tool_call')).toMatchObject([{ status: 'completed', content: [diff] }])
      expect(other.texts('user_message_chunk')).toBe('Write notes.txt')
    },
  )

  test(
    `on ${name} a killed lango acp leaves a question that the next process asks, and the run continues`,
    tier,
    async () => {
      const { cwd, model } = await folderWith(writer, { ...WRITER, ...store() })
      const first = await openEditor({ cwd, isProcess: true })
      const { sessionId, prompt } = await openSession(first, cwd)
      prompt('Write notes.txt').catch(() => {})
      await eventually(() => first.asked.length).toBe(1)
      await first.kill()
      const second = await openEditor({ cwd, answer: () => 'always' })
      await second.agent.request('session/load', { sessionId, cwd, mcpServers: [] })
      await eventually(() => second.texts()).toContain('Written.')
      expect(second.asked).toHaveLength(1)
      expect(second.texts('user_message_chunk')).toBe('Write notes.txt')
      expect(second.of('tool_call')).toHaveLength(1)
      expect(await readFile(join(cwd, 'notes.txt'), 'utf8')).toBe('hello\n')
      // Approved for the session: the second file is written without a question.
      const again = { sessionId, prompt: [{ type: 'text' as const, text: 'Again' }] }
      expect(await second.agent.request('session/prompt', again)).toEqual({ stopReason: 'end_turn' })
      expect(second.asked).toHaveLength(1)
      expect(model.requests).toHaveLength(4)
    },
  )

  test(
    `on ${name} an answer that was cut off by a kill restarts after the session is loaded`,
    tier,
    async () => {
      const late = gate()
      const { cwd, model } = await folderWith(async function* () {
        yield 'Half '
        if (model.requests.length === 1) await late.passed
        yield 'and whole.'
      }, store())
      const first = await openEditor({ cwd, isProcess: true })
      const { sessionId, prompt } = await openSession(first, cwd)
      prompt('Tell me').catch(() => {})
      await eventually(() => first.texts()).toBe('Half ')
      await first.kill()
      const second = await openEditor({ cwd, capabilities: { session: { notices: {} } } })
      await second.agent.request('session/resume', { sessionId, cwd, mcpServers: [] })
      await eventually(() => second.texts()).toContain('Half and whole.')
      expect(second.of('notice').map(({ title }) => title)).toContain(
        'The answer restarts: discard the text since the last complete step.',
      )
      late.open()
    },
  )
}

test('lango acp reads and writes files in the buffers of the editor, unsaved text included', async () => {
  const { cwd } = await folderWith(function* ({ results, body }) {
    if (results === 0) yield { call: 'read_file', args: { path: 'a.txt' } }
    else if (results === 1) {
      expect(JSON.stringify(body)).toContain('unsaved')
      yield { call: 'edit_file', args: { path: 'a.txt', old_text: 'unsaved', new_text: 'edited' } }
    } else if (results === 2) yield WRITE
    else yield 'Done.'
  }, WRITER)
  await writeFile(join(cwd, 'a.txt'), 'saved')
  await writeFile(join(cwd, 'notes.txt'), 'old')
  const editor = await openEditor({ cwd, capabilities: FILES, answer: () => 'once' })
  editor.buffers.set(join(cwd, 'a.txt'), 'unsaved text')
  editor.buffers.set(join(cwd, 'notes.txt'), 'old')
  const { prompt } = await openSession(editor, cwd)
  await prompt('Edit')
  expect(editor.texts()).toBe('Done.')
  expect(editor.buffers.get(join(cwd, 'a.txt'))).toBe('edited text')
  expect(editor.buffers.get(join(cwd, 'notes.txt'))).toBe('hello\n')
  expect(await readFile(join(cwd, 'a.txt'), 'utf8')).toBe('saved')
  expect(editor.asked.map(({ toolCall }) => toolCall.content)).toMatchObject([
    [{ type: 'diff', oldText: 'unsaved', newText: 'edited' }],
    [{ type: 'diff', oldText: 'old', newText: 'hello\n' }],
  ])
})

test('a call that the editor rejects is not made, and a cancelled turn ends as cancelled', async () => {
  const { cwd } = await folderWith(async function* ({ text, results }) {
    if (text === 'Wait') {
      yield 'Soon '
      await new Promise(() => {})
    } else if (results === 0) yield WRITE
    else yield 'Not written.'
  }, WRITER)
  const editor = await openEditor({ cwd, answer: () => 'no' })
  const { sessionId, prompt } = await openSession(editor, cwd)
  expect(await prompt('Write')).toEqual({ stopReason: 'end_turn' })
  expect(editor.of('tool_call_update').at(-1)?.status).toBe('failed')
  expect(existsSync(join(cwd, 'notes.txt'))).toBe(false)
  const turn = prompt('Wait')
  await eventually(() => editor.texts()).toContain('Soon ')
  await editor.agent.notify('session/cancel', { sessionId })
  expect(await turn).toEqual({ stopReason: 'cancelled' })
})

test('a cancel while the editor is asked stops the run, and the mode "allow" asks nothing', async () => {
  const { cwd } = await folderWith(writer, WRITER)
  const editor = await openEditor({ cwd })
  const { sessionId, prompt } = await openSession(editor, cwd)
  const turn = prompt('Write')
  await eventually(() => editor.asked.length).toBe(1)
  await editor.agent.notify('session/cancel', { sessionId })
  expect(await turn).toEqual({ stopReason: 'cancelled' })
  expect(existsSync(join(cwd, 'notes.txt'))).toBe(false)
  await editor.agent.request('session/set_mode', { sessionId, modeId: 'allow' })
  expect(await prompt('Write')).toEqual({ stopReason: 'end_turn' })
  expect(editor.asked).toHaveLength(1)
  expect(existsSync(join(cwd, 'notes.txt'))).toBe(true)
})

test('images, linked and embedded files of an editor reach the model, and its options set model and thinking', async () => {
  const { cwd, model } = await folderWith(() => ['Seen.'])
  const editor = await openEditor({ cwd })
  const { sessionId } = await openSession(editor, cwd)
  const uri = pathToFileURL(join(cwd, 'src/a.ts')).href
  const data = Buffer.from('a picture').toString('base64')
  await editor.agent.request('session/prompt', {
    sessionId,
    prompt: [
      { type: 'text', text: 'Look at' },
      { type: 'image', mimeType: 'image/png', data },
      { type: 'resource_link', name: 'a.ts', uri },
      { type: 'resource', resource: { uri, text: 'const a = 1' } },
    ],
  })
  const sent = JSON.stringify(model.requests[0]?.body)
  expect(sent).toContain(`data:image/png;base64,${data}`)
  expect(sent).toContain('a.ts (src/a.ts)')
  expect(sent).toContain('src/a.ts:\\n\\nconst a = 1')
  const set = (configId: string, value: string) =>
    editor.agent.request('session/set_config_option', { sessionId, configId, value })
  const { configOptions } = await set('model', 'demo/demo')
  expect(configOptions.map(option => [option.id, option.currentValue])).toEqual([
    ['mode', 'ask'],
    ['model', 'demo/demo'],
    ['thinking', 'default'],
  ])
  await editor.agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'And you?' }] })
  expect(editor.texts()).toContain('demo')
  expect(model.requests).toHaveLength(1)
})

test('lango acp refuses wrong requests with errors that say what to do', async () => {
  const { cwd } = await folderWith(() => [{ status: 401, message: 'no such key' }])
  const editor = await openEditor({ cwd })
  const { agent } = editor
  const { sessionId, prompt } = await openSession(editor, cwd)
  const refused = (method: string, params: object) => expect(agent.request(method, params)).rejects
  await refused('session/new', { cwd: 'relative', mcpServers: [] }).toMatchObject({
    code: -32602,
    message: 'cwd is "relative", but must be an absolute path.',
  })
  await refused('session/new', { cwd: join(cwd, 'none'), mcpServers: [] }).toMatchObject({ code: -32602 })
  await refused('session/new', { mcpServers: [] }).toMatchObject({ code: -32602 })
  const sse = { type: 'sse', name: 'old', url: 'http://127.0.0.1:1', headers: [] }
  await refused('session/new', { cwd, mcpServers: [sse] }).toMatchObject({
    code: -32602,
    message: expect.stringContaining('speaks SSE'),
  })
  const text = [{ type: 'text', text: 'hi' }]
  await refused('session/load', { sessionId: 'none', cwd, mcpServers: [] }).toMatchObject({ code: -32002 })
  await refused('session/prompt', { sessionId: 'none', prompt: text }).toMatchObject({ code: -32002 })
  await refused('session/prompt', { sessionId, prompt: [] }).toMatchObject({ code: -32602 })
  const image = { type: 'image', mimeType: 'image/png', data: 'not base64!' }
  await refused('session/prompt', { sessionId, prompt: [image] }).toMatchObject({
    message: 'prompt[0] has no base64 data.',
  })
  await refused('session/set_mode', { sessionId, modeId: 'yolo' }).toMatchObject({
    message: 'There is no mode "yolo". Use one of: ask, allow.',
  })
  await refused('session/unheard_of', {}).toMatchObject({ code: -32601 })
  await expect(prompt('hi')).rejects.toMatchObject({ code: -32603, data: { code: 'provider-auth' } })
})

test('lango acp prints what agent files print on standard error, and takes the tools of an MCP server of the editor', async () => {
  const cwd = await temporaryFolder()
  await writeFile(
    join(cwd, 'lango.config.mjs'),
    "console.log('printed by the folder')\nexport default { agent: { model: 'demo/demo' } }\n",
  )
  const server = join(import.meta.dirname, '../../node_modules/@modelcontextprotocol/sdk/dist/esm')
  await writeFile(
    join(cwd, 'server.mjs'),
    `import { McpServer } from '${server}/server/mcp.js'
     import { StdioServerTransport } from '${server}/server/stdio.js'
     const server = new McpServer({ name: 'weather', version: '1' })
     server.registerTool('weather', { description: 'Tells the weather.' }, () => ({ content: [{ type: 'text', text: process.env.WEATHER }] }))
     await server.connect(new StdioServerTransport())`,
  )
  const editor = await openEditor({ cwd, isProcess: true })
  const mcpServers: McpServer[] = [
    {
      name: 'my weather',
      command: process.execPath,
      args: [join(cwd, 'server.mjs')],
      env: [{ name: 'WEATHER', value: 'sunny' }],
    },
  ]
  const { sessionId } = await editor.agent.request('session/new', { cwd, mcpServers })
  await editor.agent.request('session/prompt', {
    sessionId,
    prompt: [{ type: 'text', text: 'What is the weather?' }],
  })
  expect(editor.of('tool_call')).toMatchObject([{ name: 'my_weather_weather', kind: 'other' }])
  expect(editor.of('tool_call_update').at(-1)?.status).toBe('completed')
  expect(editor.texts()).toContain('sunny')
  expect(editor.log()).toContain('printed by the folder')
})

test('lango acp takes the next prompt as the result that a run waits for', async () => {
  const cwd = await temporaryFolder()
  await writeFile(
    join(cwd, 'agent.mjs'),
    `import { LlmAgent, LongRunningFunctionTool } from '@google/adk'
     const ticket = new LongRunningFunctionTool({ name: 'open_ticket', description: 'Opens a ticket.', execute: () => undefined })
     export const rootAgent = new LlmAgent({ name: 'desk', model: 'demo/demo', tools: [ticket] })`,
  )
  const editor = await openEditor({ cwd })
  const { sessionId, prompt } = await openSession(editor, cwd)
  expect(await prompt('Open a ticket')).toEqual({ stopReason: 'end_turn' })
  expect(editor.texts()).toContain('open_ticket waits for its result')
  expect(editor.of('tool_call')).toMatchObject([{ name: 'open_ticket', status: 'pending' }])
  expect(await prompt('number 12')).toEqual({ stopReason: 'end_turn' })
  expect(editor.texts()).toContain('number 12')
  await editor.agent.request('session/delete', { sessionId })
  expect((await editor.agent.request('session/list', { cwd })).sessions).toEqual([])
})

test('lango acp answers lines that are no requests with errors and keeps the connection', async () => {
  const cwd = await temporaryFolder()
  const child = startLango(['acp'], { cwd, input: null })
  const lines = createInterface({ input: child.stdout ?? process.stdin })[Symbol.asyncIterator]()
  const say = async (line: string) => {
    child.stdin?.write(`${line}\n`)
    return JSON.parse((await lines.next()).value ?? '{}')
  }
  expect(await say('{ nonsense')).toMatchObject({ error: { code: -32700 } })
  expect(await say('{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}')).toMatchObject({
    id: 1,
    error: { code: -32600 },
  })
  const initialize = { protocolVersion: 1, clientCapabilities: {} }
  expect(
    await say(JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'initialize', params: initialize })),
  ).toMatchObject({ id: 2, result: { protocolVersion: 1, agentCapabilities: { loadSession: true } } })
  child.kill('SIGTERM')
  expect(await new Promise(resolve => child.once('close', resolve))).toBe(0)
})

test('lango acp without its SDK says in one sentence how to install it', async () => {
  const cwd = await temporaryFolder()
  const guard = pathToFileURL(join(import.meta.dirname, 'refuse-packages.mjs')).href
  const env = { REFUSED_PACKAGES: '^@agentclientprotocol' }
  const { code, stdout, stderr } = await langoProcess(['acp'], { cwd, env, imports: [guard] })
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(/^lango: .*npm install @agentclientprotocol\/sdk@2 \(or: lango add acp\)\n$/)
})

test('lango acp refuses a folder that is not trusted, and runs nothing of it', async () => {
  const cwd = await temporaryFolder()
  await writeFile(join(cwd, 'agent.mjs'), "throw new Error('it ran')\n")
  const editor = await openEditor({ cwd, env: { LANGO_TRUST: '0' } })
  await expect(editor.agent.request('session/new', { cwd, mcpServers: [] })).rejects.toMatchObject({
    code: -32602,
    message: expect.stringContaining("run 'lango trust'"),
  })
})
