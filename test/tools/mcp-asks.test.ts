// What MCP servers do during a call besides answering: they report progress, ask a person, ask the model, ask for roots.
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { GenerateRequest } from '../../src/provider/provider.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import type { RunAnswer } from '../../src/tool.js'
import { connectMcpServers, type McpServerConfig } from '../../src/tools/mcp.js'
import { billedBy, startBilling } from '../support/billing-provider.js'
import { eventually } from '../support/eventually.js'
import { startService } from './mcp-service.js'
import { useTool } from './use-tool.js'

const text = (value: unknown) => ({ content: [{ type: 'text' as const, text: JSON.stringify(value) }] })

async function connected(register: (server: McpServer) => void, config: Partial<McpServerConfig> = {}) {
  const { url } = await startService(register)
  const connections = await connectMcpServers({ svc: { url, ...config } as McpServerConfig })
  onTestFinished(() => connections.close())
  return connections.tools()
}

/** Calls a tool that reports progress every second on a fake clock, so many times or until the call has ended. */
async function work(times: number, config: Partial<McpServerConfig>) {
  let isOver = false
  let timers = 0
  const [tool] = await connected(server => {
    server.registerTool('work', { description: 'Works.' }, async ({ _meta, sendNotification }) => {
      const progressToken = _meta?.progressToken ?? ''
      for (let progress = 1; progress <= times && !isOver; progress++) {
        const before = timers
        await sendNotification({ method: 'notifications/progress', params: { progressToken, progress } })
        // The call begins to wait anew for each report that has arrived.
        await eventually(() => timers > before || isOver).toBe(true)
        await vi.advanceTimersByTimeAsync(1_000)
      }
      return text('done')
    })
  }, config)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const faked = globalThis.setTimeout
  globalThis.setTimeout = new Proxy(faked, {
    apply: (target, self, given) => {
      if (given[1] === config.timeoutMs) timers += 1
      return Reflect.apply(target, self, given)
    },
  })
  const result = await useTool(tool ?? expect.unreachable(), {})
  isOver = true
  globalThis.setTimeout = faked
  return result
}

test('progress extends the time of a call', async () => {
  expect(await work(8, { timeoutMs: 6_000 })).toEqual({ result: '"done"' })
})

test('progress does not extend a call beyond maxTimeoutMs', async () => {
  expect(await work(100, { timeoutMs: 6_000, maxTimeoutMs: 6_500 })).toEqual({
    error: 'MCP server "svc": "work" timed out after 6500 ms.',
  })
})

const FORM = {
  type: 'object' as const,
  properties: { name: { type: 'string' as const }, size: { type: 'number' as const, default: 3 } },
  required: ['name'],
}

function asking(server: McpServer): void {
  server.registerTool('ask', { description: 'Asks.' }, async () =>
    text(await server.server.elicitInput({ message: 'Who are you?', requestedSchema: FORM })),
  )
}

function sampling(server: McpServer): void {
  server.registerTool('think', { description: 'Thinks.' }, async () => {
    const content = { type: 'text' as const, text: 'What is 6 times 7?' }
    const messages = [{ role: 'user' as const, content }]
    try {
      const answer = await server.server.createMessage({ messages, maxTokens: 50, systemPrompt: 'Count.' })
      return text([answer.content, answer.model])
    } catch (error) {
      return { ...text(String(error)), isError: true }
    }
  })
}

interface PlayOptions {
  config?: Partial<McpServerConfig>
  answer?: RunAnswer
  onApproval?: () => boolean
  approvalTimeoutMs?: number
  budgetUsd?: number
}

async function play(register: (server: McpServer) => void, tool: string, options: PlayOptions = {}) {
  const { url } = await startService(register)
  const provider = new ScriptedProvider(
    ({ messages }: GenerateRequest) => {
      const usage = { inputTokens: 10, outputTokens: 2 }
      if (JSON.stringify(messages[0]).includes('Count.')) return { text: '42', usage }
      const isDone = messages.some(({ role }) => role === 'tool')
      return isDone ? { text: 'Done.', usage } : { toolCalls: [{ name: tool, args: {} }], usage }
    },
    { id: 'play' },
  )
  const { config = {}, answer, onApproval, approvalTimeoutMs } = options
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { play: provider },
    agent: { model: 'play/m' },
    mcpServers: { svc: { url, ...config } as McpServerConfig },
    ...(approvalTimeoutMs === undefined ? {} : { tools: { approvalTimeoutMs } }),
  })
  onTestFinished(() => runtime.close())
  const events: RunEvent[] = []
  const input = { sessionId: 's', text: 'Go.', ...(onApproval ? { onApproval } : {}) }
  for await (const event of runtime.run(input)) {
    events.push(event)
    if (event.type === 'approval-request' && answer !== undefined)
      await runtime.answer(event.runId, event.id, answer)
  }
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop', text: 'Done.' })
  const result = events.find(event => event.type === 'tool-result')
  return { events, result: result?.type === 'tool-result' ? result.result : undefined, provider }
}

test('a server that asks a person makes its run wait, and gets the answer', async () => {
  const { events, result } = await play(asking, 'svc_ask', { answer: { name: 'Ada' } })
  const asked = events.find(event => event.type === 'approval-request')
  expect(asked).toMatchObject({
    name: 'svc_ask',
    reason: 'MCP server "svc" asks: Who are you?',
    args: { message: 'Who are you?', schema: FORM },
    callId: expect.any(String),
  })
  expect(events.find(event => event.type === 'approval-answer')).toMatchObject({
    answer: 'once',
    response: { name: 'Ada' },
  })
  expect(result).toEqual({ result: '{"action":"accept","content":{"size":3,"name":"Ada"}}' })
})

test.each<[string, PlayOptions, string]>([
  ['a no', { answer: 'no' }, 'decline'],
  ['a no of a callback', { onApproval: () => false }, 'decline'],
  ['an object that declines', { answer: { action: 'decline' } }, 'decline'],
  ['a yes to a form that needs more', { answer: 'once' }, 'cancel'],
  ['no answer in time', { approvalTimeoutMs: 1 }, 'cancel'],
])('a server that asks a person gets %s', async (_, options, action) => {
  const { result } = await play(asking, 'svc_ask', options)
  expect(result).toEqual({ result: JSON.stringify({ action }) })
})

test('a server that asks a person outside a run is refused', async () => {
  const [ask] = await connected(asking)
  expect(await useTool(ask ?? expect.unreachable(), {})).toEqual({
    error: expect.stringMatching(/does not support.*elicitation/),
  })
})

test('a server that asks the model gets its answer, and the run pays for it', async () => {
  const { result, events } = await play(sampling, 'svc_think', { config: { sampling: true } })
  expect(result).toEqual({ result: '[{"type":"text","text":"42"},"m"]' })
  expect(events.at(-1)).toMatchObject({ usage: { inputTokens: 30, outputTokens: 6 } })
})

test('a server that asks the model is refused unless sampling is configured', async () => {
  const { result, provider } = await play(sampling, 'svc_think')
  expect(result).toEqual({ error: expect.stringMatching(/Method not found/) })
  expect(provider.requests).toHaveLength(2)
})

test('a server that asks the model of a run without money is refused with the words of the budget', async () => {
  let answers = 0
  const { url } = await startService(server => {
    server.registerTool('think', { description: 'Thinks.' }, async () => {
      const content = { type: 'text' as const, text: 'What is 6 times 7?' }
      const prompt = { messages: [{ role: 'user' as const, content }], maxTokens: 500 }
      try {
        for (; answers < 100; answers++) await server.server.createMessage(prompt)
        return text('never refused')
      } catch (error) {
        return { ...text(String(error)), isError: true }
      }
    })
  })
  const billed = await startBilling(({ messages }) => {
    if (JSON.stringify(messages).includes('6 times 7')) return { text: '42', outputTokens: 500 }
    const isDone = messages.some(({ role }) => role === 'tool')
    return isDone ? { text: 'Done.' } : { toolCalls: [{ name: 'svc_think', args: {} }] }
  })
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { bank: billedBy(billed.server) },
    agent: { model: 'bank/bill-1' },
    mcpServers: { svc: { url, sampling: true } },
    budget: { perRunUsd: 0.1 },
  })
  onTestFinished(async () => {
    await runtime.close()
    await billed.server.close()
  })
  const events: RunEvent[] = []
  for await (const event of runtime.run({ sessionId: 's', text: 'Go.' })) events.push(event)
  const result = events.find(event => event.type === 'tool-result')
  expect(JSON.stringify(result)).toMatch(/The budget of this run, \$0\.1, has \$[\d.e-]+ left: not enough/)
  expect(answers).toBeGreaterThan(0)
  expect(billed.peak()).toBeLessThanOrEqual(0.1)
})

test('a server gets the roots that are configured, and none otherwise', async () => {
  const roots = (server: McpServer) =>
    void server.registerTool('roots', { description: 'Roots.' }, async () =>
      text((await server.server.listRoots()).roots.map(({ uri }) => uri)),
    )
  const [told] = await connected(roots, { roots: ['/tmp/a b'] })
  expect(await useTool(told ?? expect.unreachable(), {})).toEqual({ result: '["file:///tmp/a%20b"]' })
  const [untold] = await connected(roots)
  expect(await useTool(untold ?? expect.unreachable(), {})).toEqual({
    error: expect.stringMatching(/Method not found/),
  })
})
