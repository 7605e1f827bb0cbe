// The official MCP servers, started as processes: every tool, images on the wire, progress, cancelling, questions, the model,
// tasks; over HTTP a late start, a wrong token and a changed list.
import { spawn } from 'node:child_process'
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { createServer, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import type { StrictProfile } from '../../src/testing/strict/profile.js'
import { connectMcpServers, type McpHost, type McpServerConfig } from '../../src/tools/mcp.js'
import { strictTarget } from '../providers/strict-profiles.js'
import { eventually } from '../support/eventually.js'
import { freePort } from '../tools/mcp-service.js'
import { useTool } from '../tools/use-tool.js'

function server(name: string, ...args: string[]): McpServerConfig {
  const path = `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`
  return { command: process.execPath, args: [fileURLToPath(new URL(path, import.meta.url)), ...args] }
}

async function folder(): Promise<string> {
  const path = await realpath(await mkdtemp(join(tmpdir(), 'lango-mcp-')))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

async function connect(config: McpServerConfig, host: McpHost = {}) {
  const connections = await connectMcpServers({ x: config }, host)
  onTestFinished(() => connections.close())
  const names = () => connections.tools().map(({ name }) => name.slice(2))
  const use = (name: string, args: Record<string, unknown> = {}, signal?: AbortSignal) => {
    const tool = connections.tools().find(each => each.name === `x_${name}`)
    return useTool(tool ?? expect.unreachable(`no tool ${name}`), args, signal ? { signal } : {})
  }
  return { connections, names, use }
}

/** Calls every tool with the arguments that are given for it, and expects no error. */
async function useAll(
  { names, use }: Awaited<ReturnType<typeof connect>>,
  calls: readonly (readonly [string, Record<string, unknown>])[],
) {
  expect(names().filter(name => !calls.some(([called]) => called === name))).toEqual([])
  const results = new Map<string, Record<string, unknown>>()
  for (const [name, args] of calls) {
    const result = await use(name, args)
    expect(result, name).not.toHaveProperty('error')
    results.set(name, result)
  }
  return results
}

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

test('filesystem: every tool', async () => {
  const root = await folder()
  const at = (name: string) => join(root, name)
  await writeFile(at('dot.png'), Buffer.from(PNG, 'base64'))
  const connection = await connect(server('filesystem', root))
  const results = await useAll(connection, [
    ['write_file', { path: at('a.txt'), content: 'one\ntwo\n' }],
    ['read_file', { path: at('a.txt') }],
    ['read_text_file', { path: at('a.txt'), head: 1 }],
    ['read_media_file', { path: at('dot.png') }],
    ['read_multiple_files', { paths: [at('a.txt')] }],
    ['edit_file', { path: at('a.txt'), edits: [{ oldText: 'two', newText: 'three' }] }],
    ['create_directory', { path: at('d') }],
    ['list_directory', { path: root }],
    ['list_directory_with_sizes', { path: root }],
    ['directory_tree', { path: root }],
    ['move_file', { source: at('a.txt'), destination: at('d/b.txt') }],
    ['search_files', { path: root, pattern: '**/*.txt' }],
    ['get_file_info', { path: at('d/b.txt') }],
    ['list_allowed_directories', {}],
  ])
  expect(results.get('read_media_file')).toMatchObject({
    'lango:media': [{ mimeType: 'image/png', data: PNG }],
  })
  expect(await connection.use('read_file', { path: '/etc/passwd' })).toHaveProperty('error')
})

test('memory: every tool', async () => {
  const config = { ...server('memory'), env: { MEMORY_FILE_PATH: join(await folder(), 'memory.json') } }
  const entities = [{ name: 'Ada', entityType: 'person', observations: ['counts'] }]
  const relations = [{ from: 'Ada', to: 'Ada', relationType: 'is' }]
  const results = await useAll(await connect(config), [
    ['create_entities', { entities }],
    ['create_relations', { relations }],
    ['add_observations', { observations: [{ entityName: 'Ada', contents: ['writes'] }] }],
    ['read_graph', {}],
    ['search_nodes', { query: 'Ada' }],
    ['open_nodes', { names: ['Ada'] }],
    ['delete_observations', { deletions: [{ entityName: 'Ada', observations: ['counts'] }] }],
    ['delete_relations', { relations }],
    ['delete_entities', { entityNames: ['Ada'] }],
  ])
  expect(JSON.stringify(results.get('read_graph'))).toContain('writes')
})

test('sequential-thinking: its tool', async () => {
  const thought = { thought: 'First.', nextThoughtNeeded: true, thoughtNumber: 1, totalThoughts: 2 }
  await useAll(await connect(server('sequential-thinking')), [['sequentialthinking', thought]])
})

/**
 * Tools that the server offers to clients that can answer them. Two more, trigger-sampling-request-async and
 * trigger-elicitation-request-async, are offered only to clients that answer requests as tasks, which Lango does not.
 */
const WHEN_ABLE = [
  'get-roots-list',
  'trigger-elicitation-request',
  'trigger-sampling-request',
  'trigger-url-elicitation',
  'simulate-research-query',
]

/** Starts server-everything over HTTP. */
function startEverything(port: number): void {
  const { command, args } = server('everything', 'streamableHttp') as { command: string; args: string[] }
  // It listens on every address unless it is told otherwise, which it has no option for.
  const local = `import net from 'node:net'
    const { listen } = net.Server.prototype
    net.Server.prototype.listen = function (port, ...rest) {
      return listen.call(this, { port: Number(port), host: '127.0.0.1' }, rest.find(each => typeof each === 'function'))
    }`
  const preload = ['--import', `data:text/javascript,${encodeURIComponent(local)}`]
  const child = spawn(command, [...preload, ...args], {
    env: { PATH: process.env.PATH, PORT: String(port) },
    stdio: 'ignore',
  })
  onTestFinished(() => void child.kill('SIGKILL'))
}

/** A server before another one, which demands a token. */
async function startTokenProxy(port: number): Promise<{ url: string; token: string }> {
  const state = { url: '', token: 'mine' }
  const proxy = createServer((request, response) => {
    if (request.headers.authorization !== `Bearer ${state.token}`)
      return void response.writeHead(401).end('wrong token')
    const { method = 'GET', url: path = '/', headers } = request
    const upstream = send({ host: '127.0.0.1', port, path, method, headers }, answer => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    upstream.on('error', () => response.headersSent || response.writeHead(502).end('down'))
    request.pipe(upstream)
    response.on('close', () => upstream.destroy())
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  state.url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  return state
}

describe('everything', () => {
  const host: McpHost = {
    ask: async ({ url, schema }) => {
      if (url) return { action: 'accept' }
      const isResearch = JSON.stringify(schema).includes('interpretation')
      return {
        action: 'accept',
        content: isResearch ? { interpretation: 'snake' } : { name: 'Ada', check: true },
      }
    },
    complete: async () => ({ text: 'forty-two', model: 'm', stopReason: 'endTurn' }),
  }

  test('every tool that it offers', async () => {
    const config = { ...server('everything'), sampling: true, roots: ['/tmp'], env: { GREETING: 'hello' } }
    const connection = await connect(config, host)
    // The server adds tools when it has seen what the client can do.
    await eventually(() => connection.names()).toEqual(expect.arrayContaining([...WHEN_ABLE]))
    const results = await useAll(connection, [
      ['echo', { message: 'hi' }],
      ['get-annotated-message', { messageType: 'success', includeImage: true }],
      ['get-env', {}],
      ['get-resource-links', { count: 2 }],
      ['get-resource-reference', { resourceType: 'Text', resourceId: 1 }],
      ['get-structured-content', { location: 'New York' }],
      ['get-sum', { a: 1, b: 2 }],
      ['get-tiny-image', {}],
      [
        'gzip-file-as-resource',
        { name: 'x.gz', data: 'data:text/plain;base64,aGVsbG8=', outputType: 'resource' },
      ],
      ['toggle-simulated-logging', {}],
      ['toggle-simulated-logging', {}],
      ['toggle-subscriber-updates', {}],
      ['toggle-subscriber-updates', {}],
      ['trigger-long-running-operation', { duration: 1, steps: 2 }],
      ['get-roots-list', {}],
      ['trigger-elicitation-request', {}],
      ['trigger-sampling-request', { prompt: 'x' }],
      ['trigger-url-elicitation', { url: 'https://example.com/', message: 'Open it.' }],
      ['simulate-research-query', { topic: 'python', ambiguous: true }],
    ])
    const shown = (name: string) => JSON.stringify(results.get(name))
    expect(results.get('echo')).toEqual({ result: 'Echo: hi' })
    expect(shown('get-sum')).toContain('3')
    expect(shown('get-env')).toContain('hello')
    expect(shown('get-env')).not.toContain('npm_config')
    expect(shown('get-resource-reference')).toContain('demo://resource/dynamic/text/1')
    expect(shown('gzip-file-as-resource')).not.toContain('H4sI')
    expect(shown('trigger-elicitation-request')).toContain('Ada')
    expect(shown('trigger-sampling-request')).toContain('forty-two')
    expect(shown('trigger-url-elicitation')).toContain('User completed')
    // A task: it asks in the middle, and its reports count as progress.
    expect(shown('simulate-research-query')).toContain('Research Report: python (snake)')
    expect(shown('get-roots-list')).toContain('file:///tmp')
    const image = results.get('get-tiny-image')
    expect(image).toMatchObject({ 'lango:media': [{ mimeType: 'image/png' }] })
    expect(String(image?.result)).not.toContain('iVBOR')
  })

  test('a page that must be opened first is a question; the call is repeated when it was opened', async () => {
    const opened: string[] = []
    const ask: McpHost['ask'] = async ({ url = '' }) => {
      opened.push(url)
      return { action: 'accept' }
    }
    const connection = await connect(server('everything'), { ...host, ask })
    await eventually(() => connection.names()).toContain('trigger-url-elicitation')
    const page = { url: 'https://example.com/', errorPath: true }
    expect(JSON.stringify(await connection.use('trigger-url-elicitation', page))).toContain('User completed')
    expect(opened).toEqual(['https://modelcontextprotocol.io', 'https://example.com/'])
  })

  test('a task that is stopped leaves the connection as it was', async () => {
    const connection = await connect(server('everything'), host)
    await eventually(() => connection.names()).toContain('simulate-research-query')
    const stop = new AbortController()
    const stopped = connection.use('simulate-research-query', { topic: 'x' }, stop.signal)
    stop.abort()
    expect(await stopped).toEqual({ error: expect.stringContaining('stopped') })
    expect(await connection.use('echo', { message: 'hi' })).toEqual({ result: 'Echo: hi' })
  })

  // The list of the other packages never changes, and they speak over standard input and output alone.
  test('over HTTP: a late start, a wrong token, and a list that changes', async () => {
    const port = await freePort()
    const token = await startTokenProxy(port)
    const connections = await connectMcpServers(
      { x: { url: `${token.url}/mcp`, headers: { authorization: 'Bearer mine' }, sampling: true } },
      { ...host, restartDelayMs: 1, retryDelayMs: 20 },
    )
    onTestFinished(() => connections.close())
    expect(connections.missing()).toMatchObject([
      { server: 'x', problem: expect.stringContaining('(HTTP 502)') },
    ])
    token.token = 'other'
    await eventually(() => connections.missing()[0]?.problem).toMatch(
      /It refuses the credentials \(HTTP 401\)/,
    )
    startEverything(port)
    token.token = 'mine'
    const names = () => connections.tools().map(({ name }) => name.slice(2))
    await eventually(names).toContain('echo')
    // The server adds these when it knows the client: they come at the end.
    await eventually(names).toEqual(expect.arrayContaining(['trigger-sampling-request']))
    expect(names().slice(0, 2)).toEqual(['echo', 'get-annotated-message'])
    const tool = connections.tools().find(({ name }) => name === 'x_trigger-elicitation-request')
    const result = await useTool(tool ?? expect.unreachable(), {})
    expect(JSON.stringify(result)).toContain('Ada')
  })

  test('progress extends the time of a call, and a cancelled one leaves the connection as it was', async () => {
    const connection = await connect({ ...server('everything'), timeoutMs: 8_000 })
    const result = await connection.use('trigger-long-running-operation', { duration: 10, steps: 40 })
    expect(String(result.result)).toContain('completed')
    const stop = new AbortController()
    const stopped = connection.use(
      'trigger-long-running-operation',
      { duration: 600, steps: 6000 },
      stop.signal,
    )
    stop.abort()
    expect(await stopped).toEqual({ error: expect.stringContaining('stopped') })
    expect(await connection.use('echo', { message: 'hi' })).toEqual({ result: 'Echo: hi' })
  })

  test.each<[StrictProfile, RegExp]>([
    ['gemini-3', /"inlineData":\{"mimeType":"image\/png","data":"iVBOR/],
    ['anthropic-4.6', /"source":\{"type":"base64","media_type":"image\/png","data":"iVBOR/],
    ['openai-chat', /"image_url":\{"url":"data:image\/png;base64,iVBOR/],
    ['openai-responses', /"image_url":"data:image\/png;base64,iVBOR/],
  ])('%s sees its image', async (profile, wire) => {
    const model = await startStrictProvider({
      profile,
      script: (_, index) =>
        index === 0 ? { toolCalls: [{ name: 'x_get-tiny-image', args: {} }] } : { text: 'I see it.' },
    })
    onTestFinished(() => model.close())
    const target = strictTarget(profile, model.baseUrl, {})
    const runtime = await createRuntime({
      store: 'memory:',
      providers: { play: target.provider },
      agent: { model: `play/${target.model}` },
      mcpServers: { x: server('everything') },
    })
    onTestFinished(() => runtime.close())
    const events: RunEvent[] = []
    for await (const event of runtime.run({ sessionId: 's', text: 'Look.' })) events.push(event)
    expect(events.at(-1)).toMatchObject({ type: 'run-finish', text: 'I see it.' })
    expect(model.violations).toEqual([])
    const body = JSON.stringify(model.requests.at(-1)?.body)
    expect(body).toMatch(wire)
    expect(body.match(/iVBOR/g)).toHaveLength(1)
  })
})
