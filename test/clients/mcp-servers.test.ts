// The official MCP servers, started as processes: every tool, images on the wire, progress, cancelling, questions, the model.
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
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

describe('everything', () => {
  const host: McpHost = {
    ask: async ({ url }) => ({ action: 'accept', ...(url ? {} : { content: { name: 'Ada', check: true } }) }),
    complete: async () => ({ text: 'forty-two', model: 'm', stopReason: 'endTurn' }),
  }

  test('a question, a completion, roots, progress and a resource', async () => {
    const config = { ...server('everything'), sampling: true, roots: ['/tmp'] }
    const connection = await connect(config, host)
    // The server adds tools when it has seen what the client can do.
    await eventually(() => connection.names()).toEqual(
      expect.arrayContaining(['trigger-elicitation-request', 'trigger-sampling-request', 'get-roots-list']),
    )
    expect(await connection.use('echo', { message: 'hi' })).toEqual({ result: 'Echo: hi' })
    expect(JSON.stringify(await connection.use('get-sum', { a: 1, b: 2 }))).toContain('3')
    expect(JSON.stringify(await connection.use('trigger-elicitation-request'))).toContain('Ada')
    expect(JSON.stringify(await connection.use('trigger-sampling-request', { prompt: 'x' }))).toContain(
      'forty-two',
    )
    expect(JSON.stringify(await connection.use('get-roots-list'))).toContain('file:///tmp')
    const image = await connection.use('get-tiny-image')
    expect(image).toMatchObject({ 'lango:media': [{ mimeType: 'image/png' }] })
    expect(String(image.result)).not.toContain('iVBOR')
    for (const name of ['get-structured-content', 'get-resource-links', 'get-annotated-message']) {
      const args = name === 'get-structured-content' ? { location: 'New York' } : {}
      expect(
        await connection.use(name, name === 'get-annotated-message' ? { messageType: 'success' } : args),
        name,
      ).not.toHaveProperty('error')
    }
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
