// MCP servers that come late, refuse their token, or change their tools, as agents and their models see them.
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'
import { connectMcpServers, type McpConnections } from '../../src/tools/mcp.js'
import { eventually } from '../support/eventually.js'
import { freePort, type McpService, startService } from './mcp-service.js'
import { useTool } from './use-tool.js'

const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })

function echo(server: McpServer): void {
  server.registerTool('echo', { description: 'Echoes.', inputSchema: { word: z.string() } }, ({ word }) =>
    text(word),
  )
}

function named(connections: McpConnections, name: string) {
  const tool = connections.tools().find(each => each.name === name)
  return tool ?? expect.unreachable(`no tool ${name}`)
}

interface Play {
  runtime: Runtime
  provider: ScriptedProvider
  say(text?: string): Promise<RunEvent[]>
  /** The names of the tools of each request, in their order. */
  tools(): string[][]
  /** The instruction of each request. */
  instructions(): string[]
}

type Agent = NonNullable<Parameters<typeof createRuntime>[0]>['agent']

async function play(
  url: string,
  agent: Partial<Agent>,
  steps: (index: number) => ScriptStep,
  headers = {},
): Promise<Play> {
  let index = 0
  const provider = new ScriptedProvider(() => steps(index++), { id: 'play' })
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { play: provider },
    agent: { name: 'root', model: 'play/m', instruction: 'Be brief.', ...agent },
    mcpServers: { late: { url, headers } },
  })
  onTestFinished(() => runtime.close())
  return {
    runtime,
    provider,
    say: async (words = 'Go.') => {
      const events: RunEvent[] = []
      for await (const event of runtime.run({ sessionId: 's', text: words })) events.push(event)
      return events
    },
    tools: () => provider.requests.map(({ tools = [] }) => tools.map(({ name }) => name)),
    instructions: () =>
      provider.requests.map(({ messages }) =>
        JSON.stringify(messages.filter(({ role }) => role === 'system')),
      ),
  }
}

const OK = (): ScriptStep => ({ text: 'Ok.' })

/** A clock that can be advanced: the runtime tries a server again after pauses that nobody configures. */
function useFakeClock(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: true })
  onTestFinished(() => void vi.useRealTimers())
}

/** Runs until the last tool of a request is `late_echo`. */
async function untilEcho({ say, tools }: Play): Promise<void> {
  await eventually(async () => {
    await vi.advanceTimersByTimeAsync(2_000)
    await say()
    return tools().at(-1)?.at(-1)
  }).toBe('late_echo')
}

test.each<[string, Partial<Agent>]>([
  ['without a list of tools', {}],
  ['that lists all tools of the server', { tools: ['late_*'] }],
  ['that lists one tool of the server', { tools: ['late_echo'] }],
  ['with a sub-agent', { subAgents: [{ name: 'child' }] }],
])('an agent %s gets the tools of a server that was down at the first run', async (_, agent) => {
  useFakeClock()
  const port = await freePort()
  const played = await play(`http://127.0.0.1:${port}/mcp`, agent, OK)
  const { say, tools, instructions } = played
  const events = await say()
  expect(events.find(({ type }) => type === 'tools-missing')).toMatchObject({
    server: 'late',
    problem: expect.stringMatching(/ECONNREFUSED|fetch failed/),
  })
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  expect(tools()[0]).not.toContain('late_echo')
  expect(instructions()[0]).toContain('The tools of MCP server \\"late\\" are missing')
  await startService(echo, port)
  await untilEcho(played)
  expect(instructions().at(-1)).not.toContain('are missing')
  // What was there before is still the beginning of the list.
  const before = tools()[0] ?? []
  expect(tools().at(-1)?.slice(0, before.length)).toEqual(before)
  expect((await say()).some(({ type }) => type === 'tools-missing')).toBe(false)
})

test('a server that refuses its token is named with the reason, and gives its tools once it accepts it', async () => {
  useFakeClock()
  const service = await startService(echo)
  service.token = 'other'
  const headers = { authorization: 'Bearer mine' }
  const played = await play(service.url, {}, OK, headers)
  const missing = (await played.say()).find(({ type }) => type === 'tools-missing')
  expect(missing).toMatchObject({
    server: 'late',
    problem: expect.stringMatching(/^It refuses the credentials \(HTTP 401\).*who are you\?/),
  })
  expect(JSON.stringify(missing)).not.toContain('mine')
  service.token = 'mine'
  await untilEcho(played)
})

test('a server that has failed is tried again without anybody asking', async () => {
  const port = await freePort()
  const connections = await connectMcpServers(
    { late: { url: `http://127.0.0.1:${port}/mcp` } },
    { restartDelayMs: 1, retryDelayMs: 20 },
  )
  onTestFinished(() => connections.close())
  await eventually(() => connections.status()[0]?.state).toBe('failed')
  expect(connections.missing()).toMatchObject([{ server: 'late', prefix: 'late_' }])
  await startService(echo, port)
  await eventually(() => connections.tools().map(({ name }) => name)).toEqual(['late_echo'])
  expect(connections.missing()).toEqual([])
  expect(await useTool(named(connections, 'late_echo'), { word: 'hi' })).toEqual({ result: 'hi' })
})

test('a name that no server may have is refused, also while a server is down', async () => {
  const port = await freePort()
  const { say } = await play(`http://127.0.0.1:${port}/mcp`, { tools: ['other_echo'] }, OK)
  await expect(say()).rejects.toMatchObject({ code: 'invalid-config' })
})

async function connected(service: McpService): Promise<McpConnections> {
  const connections = await connectMcpServers({ late: { url: service.url } })
  onTestFinished(() => connections.close())
  return connections
}

test('new tools of a server are appended, and calls of removed ones say that they are gone', async () => {
  const service = await startService(server => {
    server.registerTool('old', { description: 'Old.' }, () => text('old'))
    echo(server)
  })
  const connections = await connected(service)
  const [server] = service.servers
  const old = named(connections, 'late_old')
  server?.registerTool('fresh', { description: 'Fresh.' }, () => text('fresh'))
  await eventually(() => connections.tools().map(({ name }) => name)).toEqual([
    'late_old',
    'late_echo',
    'late_fresh',
  ])
  const registered = Reflect.get(server ?? {}, '_registeredTools') as Record<string, { remove(): void }>
  registered.old?.remove()
  await eventually(() => connections.status()[0]?.tools).toBe(2)
  expect(connections.tools().map(({ name }) => name)).toEqual(['late_old', 'late_echo', 'late_fresh'])
  expect(await useTool(old, {})).toEqual({
    error: '"old" was not run: MCP server "late" does not offer it any more. It offers: echo, fresh.',
  })
  expect(await useTool(named(connections, 'late_fresh'), {})).toEqual({ result: 'fresh' })
  server?.registerTool('old', { description: 'Old.' }, () => text('old again'))
  await eventually(() => connections.status()[0]?.tools).toBe(3)
  expect(await useTool(old, {})).toEqual({ result: 'old again' })
})

test('a server that changes its tools while they are first listed has them when the connection is made', async () => {
  const { url } = await startService(server => {
    echo(server)
    server.server.oninitialized = () => {
      for (let change = 0; change < 20; change++) server.sendToolListChanged()
    }
  })
  for (let round = 0; round < 10; round++) {
    const connections = await connectMcpServers({ late: { url } })
    expect(connections.tools().map(({ name }) => name)).toEqual(['late_echo'])
    expect(connections.missing()).toEqual([])
    await connections.close()
  }
})

test('tools that change during a run: the next model call has the new tool at the end, and a changed one in its place', async () => {
  const service = await startService(server => {
    server.registerTool('grow', { description: 'Grows.' }, async () => {
      server.registerTool('fresh', { description: 'Fresh.' }, () => text('fresh'))
      const registered = Reflect.get(server, '_registeredTools') as Record<
        string,
        { update(change: object): void }
      >
      registered.echo?.update({ description: 'Echoes loudly.' })
      return text('grown')
    })
    echo(server)
  })
  const steps: ScriptStep[] = [
    { toolCalls: [{ name: 'late_grow', args: {} }] },
    { toolCalls: [{ name: 'late_fresh', args: {} }] },
  ]
  const { say, tools, provider } = await play(service.url, {}, index => steps[index] ?? OK())
  const events: RunEvent[] = []
  // The notification may arrive after the result: then the tool is there in a later run.
  events.push(...(await say()))
  await eventually(async () => {
    await say()
    return tools().at(-1)
  }).toEqual(['late_grow', 'late_echo', 'read_output', 'late_fresh'])
  const declared = provider.requests.at(-1)?.tools?.find(({ name }) => name === 'late_echo')
  expect(declared?.description).toBe('Echoes loudly.')
  expect(tools()[0]).toEqual(['late_grow', 'late_echo', 'read_output'])
  expect(events.at(-1)).toMatchObject({ finishReason: 'stop' })
})
