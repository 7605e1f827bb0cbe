// `lango mcp` and `/mcp` as the MCP SDK's client sees them.
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { PassThrough } from 'node:stream'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { runCommandLine } from '../../src/cli/run-command-line.js'
import { BUILT_LANGO } from '../support/built-lango.js'
import { eventually } from '../support/eventually.js'
import { gate, type PacedRequest, type Piece } from '../support/paced-model.js'
import { createStoreDatabase, type TestDatabase } from '../support/postgres.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { longUnless } from '../support/tiers.js'
import { folderWith } from './acp-editor.js'
import { commandEnvironment, lango, startLango } from './lango.js'
import { memoryIo } from './memory-io.js'

// Starting processes takes long on a busy machine.
vi.setConfig({ testTimeout: 240_000 })

const WRITER = { agent: { name: 'coder', model: 'play/gpt-4.1', tools: ['write_file'] } }

function* writer({ results }: PacedRequest): Iterable<Piece> {
  if (results === 0) {
    yield 'Writing. '
    yield { call: 'write_file', args: { path: 'notes.txt', content: 'hello\n' } }
  } else yield 'Written.'
}

interface Connected {
  client: Client
  asked: string[]
  progress: string[]
  call(name: string, args?: Record<string, unknown>, signal?: AbortSignal): Promise<Answer>
  kill(): Promise<void>
}

interface Answer {
  isError: boolean
  text: string
  facts: { sessionId: string; runId: string; finishReason?: string; waitsFor?: { callId: string }[] }
}

/** Starts a process and connects to it. `answer`: what the user of a client that can ask chooses. */
type Connect = (cwd: string, answer?: string) => Promise<Connected>

async function connected(transport: Transport, answer: string | undefined, kill: () => Promise<void>) {
  const capabilities = answer === undefined ? {} : { elicitation: {} }
  const client = new Client({ name: 'test', version: '1' }, { capabilities })
  const [asked, progress]: [string[], string[]] = [[], []]
  if (answer !== undefined)
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      asked.push(params.message)
      return { action: 'accept', content: { answer } }
    })
  await client.connect(transport)
  onTestFinished(() => client.close())
  const call: Connected['call'] = async (name, args = {}, signal) => {
    const onprogress = ({ message = '' }: { message?: string | undefined }) => void progress.push(message)
    const limits = { onprogress, timeout: 200_000, ...(signal ? { signal } : {}) }
    const result = await client.callTool({ name, arguments: args }, undefined, limits)
    const [first] = result.content as { text: string }[]
    const facts = (result.structuredContent ?? {}) as Answer['facts']
    return { isError: result.isError === true, text: first?.text ?? '', facts }
  }
  return { client, asked, progress, call, kill }
}

const overStdio: Connect = async (cwd, answer) => {
  const env = commandEnvironment(cwd)
  const args = [BUILT_LANGO, 'mcp']
  const transport = new StdioClientTransport({ command: process.execPath, args, cwd, env })
  const kill = async () => {
    const ended = new Promise<void>(resolve => {
      transport.onclose = resolve
    })
    if (transport.pid) process.kill(transport.pid, 'SIGKILL')
    await ended
  }
  return connected(transport, answer, kill)
}

/** `lango mcp` in this process: what carries the messages works the same at both ends. */
const overPipesHere: Connect = async (cwd, answer) => {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()]
  const io = { ...memoryIo({ cwd, env: commandEnvironment(cwd) }), stdin, stdout }
  const ended = runCommandLine(io, ['mcp'])
  const end = async () => {
    stdin.end()
    await ended
  }
  onTestFinished(end)
  return connected(new StdioServerTransport(stdout, stdin), answer, end)
}

async function serve(cwd: string): Promise<{ url: URL; kill: () => Promise<void> }> {
  const child = startLango(['serve', '--json', '--port', '0'], { cwd })
  const ended = new Promise<void>(resolve => void child.once('close', () => resolve()))
  const kill = () => {
    child.kill('SIGKILL')
    return ended
  }
  onTestFinished(kill)
  const lines = createInterface({ input: child.stdout ?? process.stdin })[Symbol.asyncIterator]()
  const { url } = JSON.parse((await lines.next()).value ?? '{}') as { url: string }
  return { url: new URL('/mcp', url), kill }
}

const overHttp: Connect = async (cwd, answer) => {
  const { url, kill } = await serve(cwd)
  // The SDK's types were not written for exactOptionalPropertyTypes; the class is a Transport.
  return connected(new StreamableHTTPClientTransport(url) as Transport, answer, kill)
}

let database: TestDatabase
beforeAll(async () => {
  database = await createStoreDatabase()
})
afterAll(() => database.drop())

/** Each way and each store once: what carries the protocol knows nothing of the store. */
const PLACES: [string, Connect, () => { store?: string }][] = [
  ['standard input and output, SQLite', overStdio, () => ({})],
  ['HTTP, PostgreSQL', overHttp, () => ({ store: database.url })],
]

for (const [name, connect, store] of PLACES) {
  // A kill is the same for both: one of them stays in the short tier.
  const killed = longUnless(connect === overStdio)

  test(`ask over ${name} streams its progress, a call is approved by the user, and the conversation continues`, async () => {
    // The client of the SDK drops progress that it reads together with the result: the answer ends when its text is there.
    const seen: string[][] = []
    const { cwd } = await folderWith(
      async function* (request) {
        yield* writer(request)
        if (request.results > 0) await eventually(() => seen.flat()).toContain('Written.')
      },
      { ...WRITER, ...store() },
    )
    const { call, asked, progress } = await connect(cwd, 'always')
    seen.push(progress)
    const first = await call('ask', { text: 'Write notes.txt' })
    expect(first).toMatchObject({ text: 'Writing. \n\nWritten.', facts: { finishReason: 'stop' } })
    expect(asked).toEqual([expect.stringContaining('write_file needs approval')])
    expect(progress.join('\n')).toMatch(/Writing\. \n→ write_file .*\n← write_file\nWritten\.$/s)
    expect(existsSync(join(cwd, 'notes.txt'))).toBe(true)
    const { sessionId } = first.facts
    expect(await call('ask', { text: 'Again', sessionId })).toMatchObject({ text: 'Writing. \n\nWritten.' })
    expect(asked).toHaveLength(1)
    const listed = JSON.parse((await call('list_sessions')).text)
    expect(listed.sessions[0]).toMatchObject({ sessionId, title: 'Write notes.txt' })
    const read = JSON.parse((await call('read_session', { sessionId, limit: 1 })).text)
    expect(read.messages).toMatchObject([{ role: 'assistant', parts: [{ text: 'Written.' }] }])
    const found = JSON.parse((await call('search_messages', { text: 'notes.txt' })).text)
    expect(found.found[0]).toMatchObject({ sessionId })
    expect(JSON.parse((await call('lint', { sessionId })).text)).toMatchObject({ sessionId, messages: 8 })
  })

  test(
    `a run that waits is answered over ${name} after its process was killed, and continues`,
    killed,
    async () => {
      const { cwd } = await folderWith(writer, { ...WRITER, ...store() })
      const first = await connect(cwd)
      const waiting = await first.call('ask', { text: 'Write notes.txt' })
      expect(waiting.text).toContain('The run waits: write_file needs approval')
      const { runId, sessionId, waitsFor = [] } = waiting.facts
      await first.kill()
      const second = await connect(cwd)
      const read = JSON.parse((await second.call('read_session', { sessionId })).text)
      expect(read.runs).toMatchObject([{ runId }])
      const done = await second.call('answer', { runId, callId: waitsFor[0]?.callId, answer: 'once' })
      expect(done).toMatchObject({ text: 'Writing. \n\nWritten.', facts: { runId, finishReason: 'stop' } })
      expect(existsSync(join(cwd, 'notes.txt'))).toBe(true)
    },
  )

  test(
    `follow_run over ${name} returns the answer that a kill of an earlier process has cut off`,
    killed,
    async () => {
      const late = gate()
      const sessionId = randomUUID()
      const { cwd, model } = await folderWith(async function* () {
        yield 'Half '
        if (model.requests.length === 1) await late.passed
        yield 'and whole.'
      }, store())
      const first = await connect(cwd)
      first.call('ask', { text: 'Tell me', sessionId }).catch(() => {})
      await eventually(() => first.progress).toContain('Half ')
      await first.kill()
      const second = await connect(cwd)
      const read = JSON.parse((await second.call('read_session', { sessionId })).text)
      const followed = await second.call('follow_run', { runId: read.runs[0].runId })
      expect(followed).toMatchObject({ text: 'Half and whole.', facts: { finishReason: 'stop' } })
      late.open()
    },
  )
}

for (const [name, connect] of [
  ['standard input and output', overPipesHere],
  ['HTTP', overHttp],
] as const) {
  test(
    `a call over ${name} that is cancelled stops its run`,
    longUnless(connect === overPipesHere),
    async () => {
      const { cwd } = await folderWith(async function* () {
        yield 'Soon '
        await new Promise(() => {})
      })
      const { call, progress } = await connect(cwd)
      const stop = new AbortController()
      const asked = call('ask', { text: 'Wait', sessionId: 'w' }, stop.signal)
      asked.catch(() => {})
      await eventually(() => progress).toContain('Soon ')
      stop.abort('enough')
      await expect(asked).rejects.toThrow('enough')
      const stateOf = async () => JSON.parse((await call('read_session', { sessionId: 'w' })).text).runs
      await eventually(stateOf).toMatchObject([{ state: 'finished' }])
    },
  )

  test(`wrong arguments, unknown ids and a failing model are errors of the call over ${name}`, async () => {
    const { cwd } = await folderWith(() => [{ status: 401, message: 'no such key' }])
    const { call } = await connect(cwd)
    const refused = async (name: string, args: Record<string, unknown>, words: string) =>
      expect(await call(name, args)).toMatchObject({ isError: true, text: expect.stringContaining(words) })
    await refused('ask', {}, 'text')
    await refused('ask', { text: 'hi', model: 'nobody/x' }, 'nobody')
    await refused('read_session', { sessionId: 'none' }, 'There is no session "none"')
    await refused('follow_run', { runId: 'none' }, 'There is no run "none"')
    await refused('answer', { runId: 'none', callId: 'x', answer: 'once' }, 'There is no run "none"')
    await refused('lint', {}, 'Pass either sessionId or text.')
    await refused('nonsense', {}, 'nonsense')
    await refused('ask', { text: 'hi' }, '(run ')
    const broken = { model: 'gpt-4.1', messages: [{ role: 'tool', tool_call_id: 'a', content: 'x' }] }
    expect((await call('lint', { text: JSON.stringify(broken) })).text).toContain('openai')
  })
}

test('lango mcp keeps standard output for the protocol when a configuration prints, and doctor checks the installation', async () => {
  const cwd = await temporaryFolder()
  expect(await lango(['run', '--session', 's1', 'hello there'], { cwd })).toMatchObject({ code: 0 })
  const print = "console.log('printed by the folder')\nexport default { agent: { model: 'demo/demo' } }\n"
  await writeFile(join(cwd, 'lango.config.mjs'), print)
  const { call } = await overStdio(cwd)
  const { checks } = JSON.parse((await call('doctor')).text)
  expect(checks.map(({ name }: { name: string }) => name)).toEqual(expect.arrayContaining(['node', 'store']))
  expect(JSON.parse((await call('list_sessions')).text).sessions).toMatchObject([{ sessionId: 's1' }])
})

test('MCP over HTTP needs the token of the server, and a session of the protocol belongs to its user', async () => {
  const [ada, bob] = ['a-long-token-of-ada-0123456789', 'a-long-token-of-bob-0123456789']
  const { cwd } = await folderWith(() => ['Hello.'], { server: { tokens: { [ada]: 'ada', [bob]: 'bob' } } })
  const { url } = await serve(cwd)
  const open = (token?: string) =>
    new StreamableHTTPClientTransport(url, {
      requestInit: { headers: token === undefined ? {} : { authorization: `Bearer ${token}` } },
    })
  const stranger = new Client({ name: 'test', version: '1' })
  await expect(stranger.connect(open() as Transport)).rejects.toThrow()
  const transport = open(ada)
  const own = await connected(transport as Transport, undefined, async () => {})
  const { facts } = await own.call('ask', { text: 'Hi' })
  const other = await connected(open(bob) as Transport, undefined, async () => {})
  expect(await other.call('read_session', { sessionId: facts.sessionId })).toMatchObject({ isError: true })
  expect(await other.call('follow_run', { runId: facts.runId })).toMatchObject({ isError: true })
  expect((await other.client.listTools()).tools.map(({ name }) => name)).not.toContain('doctor')
  const stolen = await fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${bob}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': transport.sessionId ?? '',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 9, method: 'tools/list' }),
  })
  expect([stolen.status, await stolen.json()]).toMatchObject([
    404,
    { jsonrpc: '2.0', error: { code: -32000 } },
  ])
})
