import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { messagesToProvider } from '../../src/adk/messages-to-provider.js'
import { mcpResult } from '../../src/base/mcp-result.js'
import type { Logger } from '../../src/logger.js'
import { lintHistory } from '../../src/provider/repair/lint-history.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import type { Tool } from '../../src/tool.js'
import {
  connectMcpServers,
  type McpConnections,
  McpNames,
  type McpServerConfig,
} from '../../src/tools/mcp.js'
import { eventually } from '../support/eventually.js'
import { PROTOTYPE_NAMES } from '../support/prototype-names.js'
import { startService } from './mcp-service.js'
import { useTool } from './use-tool.js'

const FIXTURE = fileURLToPath(new URL('mcp-fixture.mjs', import.meta.url))
const STDIO: McpServerConfig = { command: process.execPath, args: [FIXTURE] }
const SMALL_SERVER = fileURLToPath(new URL('mcp-small-server.mjs', import.meta.url))
/** For tests of processes, which start many. */
const SMALL: McpServerConfig = { command: process.execPath, args: [SMALL_SERVER] }
const headers = { authorization: 'Bearer right' }

class Log implements Logger {
  readonly entries: { level: string; message: string; fields: Record<string, unknown> }[] = []
  debug = this.#at('debug')
  info = this.#at('info')
  warn = this.#at('warn')
  error = this.#at('error')

  #at(level: string) {
    return (message: string, fields: Readonly<Record<string, unknown>> = {}) =>
      void this.entries.push({ level, message, fields })
  }
}

type AtEnd = (end: () => Promise<void>) => void

async function connect(
  servers: Record<string, McpServerConfig>,
  log: Logger = new Log(),
  atEnd: AtEnd = onTestFinished,
): Promise<McpConnections> {
  const connections = await connectMcpServers(servers, { logger: log, restartDelayMs: 5 })
  atEnd(() => connections.close())
  return connections
}

async function startHttp(
  atEnd: AtEnd = onTestFinished,
): Promise<{ port: number; url: string; end(): Promise<void> }> {
  const child = spawn(process.execPath, [FIXTURE, 'http', '0'], { stdio: ['ignore', 'pipe', 'ignore'] })
  const closed = once(child, 'close')
  const end = async () => {
    child.kill('SIGKILL')
    await closed
  }
  atEnd(end)
  const [line] = await once(child.stdout, 'data')
  const port = Number(String(line).trim())
  return { port, url: `http://127.0.0.1:${port}/mcp`, end }
}

function echo(server: McpServer): void {
  server.registerTool('echo', { description: 'Echoes.', inputSchema: { word: z.string() } }, ({ word }) => ({
    content: [{ type: 'text', text: word }],
  }))
}

const named = (connections: McpConnections, name: string): Tool => {
  const tool = connections.tools().find(each => each.name === name)
  return tool ?? expect.unreachable(`no tool ${name}`)
}

async function isRunning(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') X ')
  return !/\) [ZX] /.test(stat)
}

/** The same server over both ways. */
const WAYS: [string, (atEnd?: AtEnd) => Promise<McpServerConfig>][] = [
  ['stdio', async () => STDIO],
  ['streamable HTTP', async atEnd => ({ url: (await startHttp(atEnd)).url, headers })],
]

describe.each(WAYS)('over %s', (way, start) => {
  const ends: (() => Promise<void>)[] = []
  let config: McpServerConfig
  let connections: McpConnections
  beforeAll(async () => {
    config = await start(end => void ends.unshift(end))
    connections = await connect({ fix: config }, new Log(), end => void ends.unshift(end))
  })
  afterAll(async () => {
    for (const end of ends) await end()
  })

  test(`tools over ${way} have prefixed names, their schemas and their declared effect`, async () => {
    const tools = connections.tools()
    expect(tools.map(tool => tool.name)).toEqual(
      ['echo', 'add', 'fail', 'die', 'hang', 'picture', 'environment', 'start_child', 'pid'].map(
        name => `fix_${name}`,
      ),
    )
    expect(tools[0]).toMatchObject({
      description: 'Says it again.',
      effect: 'read',
      needsApproval: false,
      parameters: {
        type: 'object',
        properties: {
          word: { type: 'string', description: 'Any word.' },
          times: { type: 'integer', minimum: 1 },
        },
        required: ['word'],
      },
    })
    expect(tools[1]?.effect).toBe('once')
    expect(connections.status()).toEqual([{ name: 'fix', state: 'ready', tools: 9 }])
  })

  test(`calls over ${way} answer with text, with data, or with the error`, async () => {
    const use = (name: string, args = {}) => useTool(named(connections, name), args)
    expect(await use('fix_echo', { word: 'hi', times: 2 })).toEqual({ result: 'hi hi' })
    expect(await use('fix_add', { a: 1, b: 2 })).toEqual({ sum: 3 })
    expect(await use('fix_fail')).toEqual({ error: 'too far' })
    expect(await use('fix_echo', { word: 1 })).toEqual({
      error: expect.stringContaining('Invalid arguments'),
    })
    expect(await use('fix_picture')).toEqual({
      result: 'see\n[image image/png, 70 bytes]\ninner\n[resource file:///y: y]',
      'lango:media': [{ mimeType: 'image/png', data: expect.stringMatching(/^iVBORw0KGgo/) }],
    })
  })

  test(`a call over ${way} that takes too long, and one that is stopped, end as results`, async () => {
    const impatient = await connect({ fix: { ...config, timeoutMs: 50 } })
    expect(await useTool(named(impatient, 'fix_hang'), {})).toEqual({
      error: expect.stringMatching(/MCP server "fix": .*timed out/),
    })
    const stop = new AbortController()
    const stopped = useTool(named(connections, 'fix_hang'), {}, { signal: stop.signal })
    setTimeout(() => stop.abort(), 20)
    expect(await stopped).toEqual({ error: expect.stringContaining('stopped') })
    // The connection is as good as before.
    expect(await useTool(named(connections, 'fix_echo'), { word: 'still here' })).toEqual({
      result: 'still here',
    })
  })
})

test('a server process that ends during a call is an error result, and is started again for the next call', async () => {
  const log = new Log()
  const connections = await connect({ fix: SMALL }, log)
  const [die, pid] = [named(connections, 'fix_die'), named(connections, 'fix_pid')]
  const before = await useTool(pid, {})
  expect(await useTool(die, {})).toEqual({
    error: 'MCP server "fix" exited while "die" was running. Whether the call had an effect is unknown.',
  })
  const after = await useTool(pid, {})
  expect(after.result).toMatch(/^\d+$/)
  expect(after).not.toEqual(before)
  expect(connections.status()).toMatchObject([{ state: 'ready' }])
  expect(log.entries.filter(({ level }) => level === 'warn' || level === 'info')).toMatchObject([
    {
      message: 'MCP server is not available',
      fields: { server: 'fix', problem: 'The server exited.' },
    },
    { message: 'MCP server restarted' },
  ])
})

test('a server process that crashes repeatedly is failed after five restarts and reported', async () => {
  const log = new Log()
  const connections = await connect({ fix: SMALL }, log)
  const die = named(connections, 'fix_die')
  for (let death = 0; death < 6; death++) {
    expect(await useTool(die, {})).toEqual({ error: expect.stringContaining('exited while') })
  }
  await eventually(() => connections.status()[0]?.state).toBe('failed')
  expect(connections.status()[0]?.problem).toContain('Its last output: fixture starts')
  expect(log.entries.filter(({ level }) => level === 'error')).toMatchObject([
    { message: 'MCP server failed, tried again later', fields: { server: 'fix', attempts: 5 } },
  ])
  // Another call is worth another try.
  expect(await useTool(named(connections, 'fix_echo'), { word: 'back' })).toEqual({ result: 'back' })
})

test.each<[string, McpServerConfig, RegExp]>([
  ['does not exist', { command: '/no/such/program' }, /Cannot start/],
  [
    'ends at once',
    { command: process.execPath, args: ['-e', 'console.error("bad day"); process.exit(1)'] },
    /closed|ended/i,
  ],
  ['speaks something else', { command: 'sh', args: ['-c', 'echo hello; exit 0'] }, /closed|exited/i],
])('a server process that %s is reported while the others work', async (_, config, problem) => {
  const connections = await connect({ bad: config, fix: SMALL })
  await eventually(() => connections.status()[0]?.state).toBe('failed')
  expect(connections.status()).toMatchObject([
    { name: 'bad', tools: 0, problem: expect.stringMatching(problem) },
    { name: 'fix', state: 'ready' },
  ])
  expect(await useTool(named(connections, 'fix_echo'), { word: 'x' })).toEqual({ result: 'x' })
})

test('a server process gets none of our keys, only what it is given', async () => {
  vi.stubEnv('OPENAI_API_KEY', 'sk-secret')
  onTestFinished(() => void vi.unstubAllEnvs())
  const connections = await connect({ fix: { ...SMALL, env: { GITHUB_TOKEN: 'given' } } })
  const { result } = await useTool(named(connections, 'fix_environment'), {})
  expect(String(result).split(',')).toEqual(expect.arrayContaining(['PATH', 'GITHUB_TOKEN']))
  expect(String(result).split(',')).not.toContain('OPENAI_API_KEY')
})

test('the error output of a server process is logged', async () => {
  const log = new Log()
  await connect({ fix: SMALL }, log)
  expect(log.entries).toContainEqual({
    level: 'debug',
    message: 'MCP server output',
    fields: { server: 'fix', line: 'fixture starts' },
  })
})

test('a server process receives the notification that a call was stopped', async () => {
  const log = new Log()
  const connections = await connect({ fix: SMALL }, log)
  const said = (line: string) => log.entries.some(({ fields }) => fields.line === line)
  const stop = new AbortController()
  const stopped = useTool(named(connections, 'fix_hang'), {}, { signal: stop.signal })
  await eventually(() => said('hanging')).toBe(true)
  stop.abort()
  await stopped
  await eventually(() => said('cancelled')).toBe(true)
})

test.each([
  ['directly', SMALL],
  [
    'behind a launcher that does not pass signals on',
    { command: 'sh', args: ['-c', `"${process.execPath}" "${SMALL_SERVER}"; true`] },
  ],
])('a server process started %s ends with all that it started', async (_, config) => {
  const connections = await connect({ fix: config })
  const server = Number((await useTool(named(connections, 'fix_pid'), {})).result)
  const child = Number((await useTool(named(connections, 'fix_start_child'), {})).result)
  expect([await isRunning(server), await isRunning(child)]).toEqual([true, true])
  // The server goes on when its input has ended: it is killed after a pause.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: true })
  onTestFinished(() => void vi.useRealTimers())
  const closing = connections.close()
  await vi.advanceTimersByTimeAsync(2_000)
  await closing
  await eventually(async () => [await isRunning(server), await isRunning(child)]).toEqual([false, false])
  expect(connections.status()).toMatchObject([{ state: 'closed' }])
  expect(await useTool(named(connections, 'fix_echo'), { word: 'x' })).toEqual({
    error: expect.stringContaining('not available'),
  })
})

test('a server process ends when its signal is aborted', async () => {
  const stop = new AbortController()
  const connections = await connectMcpServers({ fix: SMALL }, { signal: stop.signal })
  const server = Number((await useTool(named(connections, 'fix_pid'), {})).result)
  stop.abort()
  await eventually(() => isRunning(server)).toBe(false)
})

test('a server at an address that is killed in mid-call is an error result, and is found again when it is back', async () => {
  const first = await startHttp()
  const connections = await connect({ fix: { url: first.url, headers } })
  expect(await useTool(named(connections, 'fix_die'), {})).toEqual({
    error: expect.stringContaining('exited while "die" was running'),
  })
  await eventually(() => connections.status()[0]?.state).toBe('failed')
  expect(await useTool(named(connections, 'fix_echo'), { word: 'x' })).toEqual({
    error: expect.stringContaining('"echo" was not run: MCP server "fix" is not available'),
  })
  await first.end()
  await startService(echo, first.port)
  expect(await useTool(named(connections, 'fix_echo'), { word: 'back' })).toEqual({ result: 'back' })
})

test('a server at an address that has forgotten the session gets a new one', async () => {
  const first = await startService(echo)
  const connections = await connect({ fix: { url: first.url } })
  const tool = named(connections, 'fix_echo')
  await useTool(tool, { word: 'one' })
  await first.close()
  await startService(echo, first.port)
  await eventually(async () => (await useTool(tool, { word: 'two' })).result).toBe('two')
})

test('a server at an address that refuses our headers is reported', async () => {
  const service = await startService(echo)
  service.token = 'right'
  const connections = await connect({
    fix: { url: service.url, headers: { authorization: 'Bearer wrong' } },
  })
  await eventually(() => connections.status()[0]?.state).toBe('failed')
  expect(connections.status()[0]?.problem).toContain('who are you?')
  expect(JSON.stringify(connections.status())).not.toContain('wrong')
})

test.each<[string, unknown, RegExp]>([
  ['nothing', {}, /either `command` or `url`/],
  ['both', { command: 'x', url: 'http://x' }, /either `command` or `url`/],
  ['no address', { url: 'nonsense' }, /not an http or https address/],
  ['another scheme', { url: 'file:///x' }, /not an http or https address/],
])('an MCP server configuration with %s is refused', async (_, config, message) => {
  await expect(connectMcpServers({ fix: config as McpServerConfig })).rejects.toMatchObject({
    code: 'invalid-config',
    message: expect.stringMatching(message),
  })
})

test('names of MCP tools are legal, at most 64 characters, and unique', () => {
  const names = new McpNames()
  const given = [
    ['git hub', 'list.issues'],
    ['git_hub', 'list_issues'],
    ['7', 'x'],
    ['a', 'é'],
    ['long', 'x'.repeat(100)],
    ['long', `${'x'.repeat(99)}y`],
    ['l'.repeat(60), 'abc'],
    ['l'.repeat(60), 'ab.'],
    ['l'.repeat(60), 'ab,'],
  ].map(([server = '', tool = '']) => names.give(server, tool))
  expect(given.slice(0, 4)).toEqual(['git_hub_list_issues', 'git_hub_list_issues_2', '_7_x', 'a__'])
  expect(new Set(given).size).toBe(given.length)
  for (const name of given) expect(name).toMatch(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/)
})

test.each<[string, Parameters<typeof mcpResult>[0], unknown]>([
  ['nothing', {}, ''],
  [
    'an error without words',
    { isError: true, content: [] },
    { error: 'The tool failed and did not say why.' },
  ],
  ['parts that are none', { content: [null, 5, { type: 'video' }] }, 'null\n5\n[video, not shown]'],
  [
    'a resource in bytes',
    { content: [{ type: 'resource', resource: { uri: 'u', blob: 'AAAA' } }] },
    '[resource u undefined, 3 bytes, not shown]',
  ],
  [
    'an image that is none',
    { content: [{ type: 'image', mimeType: 'image/png', data: 'AAAA' }] },
    '[image image/png, 3 bytes, not shown: it is not what its type says]',
  ],
  [
    'an image that is not base64',
    { content: [{ type: 'image', mimeType: 'image/png', data: 'no base64!' }] },
    expect.stringMatching(/^\[image image\/png, \d+ bytes, not shown\]$/),
  ],
  [
    'an image of another type than it says',
    { content: [{ type: 'image', mimeType: 'image/png', data: '/9j/4AAQ' }] },
    { result: '[image image/jpeg, 6 bytes]', 'lango:media': [{ mimeType: 'image/jpeg', data: '/9j/4AAQ' }] },
  ],
  [
    'more media than a request may hold',
    { content: [{ type: 'audio', mimeType: 'audio/wav', data: 'AAAA'.repeat(3_400_000) }] },
    expect.stringContaining('not shown: a result may have 10000000 bytes of media'),
  ],
  [
    'an archive',
    { content: [{ type: 'resource', resource: { uri: 'u', blob: 'AAAA', mimeType: 'application/gzip' } }] },
    '[resource u application/gzip, 3 bytes, not shown]',
  ],
  [
    'text in bytes',
    { content: [{ type: 'resource', resource: { uri: 'u', blob: 'aGk=', mimeType: 'text/plain' } }] },
    'hi',
  ],
  [
    'data with an image',
    { structuredContent: { a: 1 }, content: [{ type: 'image', mimeType: 'image/jpeg', data: '/9j/4AAQ' }] },
    { a: 1, 'lango:media': [{ mimeType: 'image/jpeg', data: '/9j/4AAQ' }] },
  ],
])('an MCP answer of %s is a result', (_, answer, expected) => {
  expect(mcpResult(answer)).toEqual(expected)
})

async function play(config: McpServerConfig) {
  const connections = await connect({ fix: config })
  const provider = new ScriptedProvider(
    [
      { toolCalls: [{ name: 'fix_echo', args: { word: 'hello' } }] },
      { toolCalls: [{ name: 'fix_die', args: {} }] },
      { text: 'The server died, but I go on.' },
    ],
    { id: 'play' },
  )
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { play: provider },
    agent: { model: 'play/m', tools: connections.tools() },
  })
  onTestFinished(() => runtime.close())
  const events: RunEvent[] = []
  for await (const event of runtime.run({ sessionId: 's', text: 'go' })) events.push(event)
  const key = { appName: 'lango', userId: 'user', sessionId: 's' }
  return { events, history: messagesToProvider(await runtime.store.readMessages(key)) }
}

test.each(WAYS)('an agent whose server over %s is killed in mid-call finishes its run', async (_, config) => {
  const { events, history } = await play(await config())
  expect(events.filter(event => event.type === 'tool-result')).toMatchObject([
    { name: 'fix_echo', result: { result: 'hello' }, isError: false },
    {
      name: 'fix_die',
      result: { error: expect.stringContaining('exited while "die" was running') },
      isError: true,
    },
  ])
  expect(events.at(-1)).toMatchObject({
    type: 'run-finish',
    finishReason: 'stop',
    text: 'The server died, but I go on.',
  })
  for (const profile of ['gemini-3', 'openai-chat', 'anthropic-4.6']) {
    expect(lintHistory(history, profile).filter(finding => finding.severity === 'breaks')).toEqual([])
  }
})

test('MCP tools and servers may have names that every object inherits', async () => {
  const fixture = fileURLToPath(new URL('mcp-inherited-names.mjs', import.meta.url))
  const connections = await connect({ constructor: { command: process.execPath, args: [fixture] } })
  expect(connections.tools().map(({ name }) => name)).toEqual(
    PROTOTYPE_NAMES.map(name => `constructor_${name}`),
  )
  for (const name of PROTOTYPE_NAMES.filter(each => each !== '__proto__')) {
    const tool = named(connections, `constructor_${name}`)
    expect(await useTool(tool, {})).toMatchObject({ result: JSON.stringify([name, {}]) })
    expect(await useTool(tool, { [name]: 'x' })).toMatchObject({
      result: JSON.stringify([name, { [name]: 'x' }]),
    })
  }
})
