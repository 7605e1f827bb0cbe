// ADK's own tools have entries in the ledger as well: those of agents made in code, of nested agents and of toolsets.
import {
  AgentTool,
  BaseTool,
  BaseToolset,
  createEvent,
  FunctionTool,
  GOOGLE_SEARCH,
  LlmAgent,
  LongRunningFunctionTool,
  type RunAsyncToolRequest,
} from '@google/adk'
import type { FunctionDeclaration } from '@google/genai'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { callOf } from '../../src/adk/agent/adopt-tools.js'
import { ToolAdapter } from '../../src/adk/agent/tool-adapter.js'
import { eventToMessage } from '../../src/adk/session/event-to-message.js'
import { silentLogger } from '../../src/logger.js'
import { answerMessage } from '../../src/run/close-calls.js'
import type { RunEvent } from '../../src/run/run-event.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'
import { defineTool } from '../../src/tool.js'
import { crashable } from '../support/crashable-store.js'

const call = (name: string, id?: string): ScriptStep => ({
  toolCalls: [{ name, args: { n: 1 }, ...(id ? { id } : {}) }],
})

async function start(
  rootAgent: LlmAgent,
  steps: readonly ScriptStep[],
  options: Partial<RuntimeOptions> = {},
) {
  const provider = new ScriptedProvider(steps, { id: 'play' })
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { play: provider },
    rootAgent,
    ...options,
  })
  return { runtime, provider }
}

async function run(runtime: Runtime, input: { text?: string; parts?: object[] } = { text: 'Go.' }) {
  const events: RunEvent[] = []
  for await (const event of runtime.run({ sessionId: 's', ...input })) events.push(event)
  return events
}

async function rowsOf({ store }: Pick<Runtime, 'store'>, events: readonly RunEvent[]) {
  return (await store.runs.readCalls(events[0]?.runId ?? '')).map(
    ({ tool, callId, effect, status, attempt, result }) => ({
      tool,
      callId,
      effect,
      status,
      attempt,
      result,
    }),
  )
}

const PARAMETERS = z.object({ n: z.number() })

function functionTool(name: string, execute: () => unknown, more: { requireConfirmation?: boolean } = {}) {
  return new FunctionTool({ name, description: name, parameters: PARAMETERS, execute, ...more })
}

const agentWith = (...tools: (BaseTool | BaseToolset)[]) =>
  new LlmAgent({ name: 'root', model: 'play/m', tools })

test('the ledger has the results, errors and declared effects of function tools', async () => {
  const agent = agentWith(
    functionTool('charge', () => ['paid']),
    functionTool('refuse', () => {
      throw new RangeError('no')
    }),
    functionTool('look', () => 'sun'),
  )
  const steps = [call('charge', 'c1'), call('refuse', 'c2'), call('look', 'c3'), { text: 'Done.' }]
  const { runtime } = await start(agent, steps, { tools: { effects: { look: 'read' } } })
  onTestFinished(() => runtime.close())
  expect(await rowsOf(runtime, await run(runtime))).toEqual([
    {
      tool: 'charge',
      callId: 'c1',
      effect: 'once',
      status: 'done',
      attempt: 1,
      result: { results: ['paid'] },
    },
    {
      tool: 'refuse',
      callId: 'c2',
      effect: 'once',
      status: 'failed',
      attempt: 1,
      result: { error: expect.stringContaining('no') },
    },
    { tool: 'look', callId: 'c3', effect: 'read', status: 'done', attempt: 0, result: { result: 'sun' } },
  ])
})

/** Runs an agent until its tool is called, and ends its process there. */
async function crash(
  agent: LlmAgent,
  begun: Promise<void>,
  steps: readonly ScriptStep[],
): Promise<SessionStore> {
  const shared = await openStore('memory:')
  onTestFinished(() => shared.close())
  const first = crashable(shared)
  const { runtime } = await start(agent, steps, { store: first.store })
  await runtime.start({ sessionId: 's', text: 'Go.' })
  await begun
  await first.crash()
  return shared
}

function hanging() {
  let begin = () => {}
  const begun = new Promise<void>(resolve => {
    begin = resolve
  })
  const execute = () => {
    begin()
    return new Promise(() => {})
  }
  return { begun, execute }
}

test('warns once of function tools of ADK whose effect nobody states, nested ones included', async () => {
  const warnings: { message: string; fields: unknown }[] = []
  const logger = {
    ...silentLogger,
    warn: (message: string, fields?: unknown) => warnings.push({ message, fields }),
  }
  const tools = [
    functionTool('charge', () => 1),
    functionTool('look_up', () => 1),
    functionTool('stated', () => 1),
  ]
  const own = new ToolAdapter(
    defineTool({ name: 'own', description: 'x', parameters: z.object({}), execute: () => 1 }),
  )
  const inner = new LlmAgent({ name: 'inner', model: 'play/x', tools: [functionTool('deep', () => 1)] })
  const agent = new LlmAgent({
    ...{ name: 'root', model: 'play/x', subAgents: [inner] },
    tools: [...tools, own, GOOGLE_SEARCH],
  })
  const effects = { look_up: 'read', stated: 'once' } as const
  const { runtime } = await start(agent, [{ text: 'a' }, { text: 'b' }], { logger, tools: { effects } })
  for (let turn = 0; turn < 2; turn++) await run(runtime)
  await runtime.close()
  expect(warnings).toMatchObject([
    {
      message: expect.stringContaining('{ effects: { "charge": \'read\' } }'),
      fields: { tools: ['charge', 'deep'] },
    },
  ])
})

test.each([
  ['once', undefined, 0, 'Not run again'],
  ['once, repeated on purpose', { charge: { onUnknown: 'retry' } } as const, 1, 'paid'],
])(
  'a function tool of a run whose process is gone is handled as %s',
  async (_title, effects, executions, words) => {
    const { begun, execute } = hanging()
    const store = await crash(agentWith(functionTool('charge', execute)), begun, [call('charge')])
    let executed = 0
    const again = functionTool('charge', () => {
      executed += 1
      return 'paid'
    })
    const { runtime, provider } = await start(agentWith(again), [call('charge'), { text: 'Done.' }], {
      store,
      runs: { resume: false },
      ...(effects ? { tools: { effects } } : {}),
    })
    onTestFinished(() => runtime.close())
    await run(runtime)
    expect(executed).toBe(executions)
    expect(JSON.stringify(provider.requests.at(-1)?.messages.at(-1))).toContain(words)
  },
)

test('a function tool asks for the idempotency key of its call', async () => {
  const seen: unknown[] = []
  const pay = new FunctionTool({
    name: 'pay',
    description: 'Pays.',
    parameters: PARAMETERS,
    execute: (_args, context) => void seen.push(context && callOf(context)),
  })
  const { runtime } = await start(agentWith(pay), [call('pay'), call('pay'), { text: 'Done.' }])
  onTestFinished(() => runtime.close())
  const events = await run(runtime)
  const { calls = [] } = (await runtime.inspect(events[0]?.runId ?? '')) ?? {}
  expect(seen).toEqual(calls.map(({ idempotencyKey }) => ({ idempotencyKey, attempt: 1 })))
  expect(new Set(calls.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(2)
})

test('a tool inside a nested agent is not executed again by a repeated call of that agent', async () => {
  let nestedSteps = 0
  const nestedAgent = (execute: () => unknown) =>
    new LlmAgent({
      name: 'clerk',
      description: 'Pays.',
      model: 'nested/m',
      tools: [functionTool('charge', execute)],
    })
  const nested = new ScriptedProvider(
    () => (nestedSteps++ % 2 === 0 ? call('charge') : { text: 'Clerk is done.' }),
    {
      id: 'nested',
    },
  )
  const steps = [{ toolCalls: [{ name: 'clerk', args: { request: 'pay' } }] }, { text: 'Done.' }]
  const begin = async (store: SessionStore, execute: () => unknown) => {
    const provider = new ScriptedProvider(steps, { id: 'play' })
    const rootAgent = agentWith(new AgentTool({ agent: nestedAgent(execute) }))
    const providers = { play: provider, nested }
    const runtime = await createRuntime({ store, providers, rootAgent, runs: { resume: false } })
    return { runtime, provider }
  }
  const shared = await openStore('memory:')
  onTestFinished(() => shared.close())
  const first = crashable(shared)
  const { begun, execute } = hanging()
  const { runtime: killed } = await begin(first.store, execute)
  await killed.start({ sessionId: 's', text: 'Go.' })
  await begun
  await first.crash()
  nestedSteps = 0
  let executed = 0
  const { runtime } = await begin(shared, () => {
    executed += 1
    return 'paid'
  })
  onTestFinished(() => runtime.close())
  const events = await run(runtime)
  expect(events.at(-1)).toMatchObject({ finishReason: 'stop', text: 'Done.' })
  expect(executed).toBe(0)
  expect(await rowsOf(runtime, events)).toMatchObject([{ tool: 'charge', status: 'unknown' }])
  expect(JSON.stringify(nested.requests.at(-1)?.messages)).toContain('Not run again')
})

test('a function tool that requires confirmation is executed once, after it', async () => {
  let executed = 0
  const charge = functionTool(
    'charge',
    () => {
      executed += 1
      return 'paid'
    },
    { requireConfirmation: true },
  )
  const { runtime } = await start(agentWith(charge), [call('charge', 'c1'), { text: 'Done.' }])
  onTestFinished(() => runtime.close())
  const asked = await run(runtime)
  expect(executed).toBe(0)
  expect((await rowsOf(runtime, asked)).map(({ attempt }) => attempt)).toEqual([0])
  const request = asked.find(event => event.type === 'approval-request')
  const id = request?.type === 'approval-request' ? request.id : ''
  const response = { id, name: 'adk_request_confirmation', response: { confirmed: true } }
  const events = await run(runtime, { parts: [{ functionResponse: response }] })
  expect(executed).toBe(1)
  expect(await rowsOf(runtime, events)).toMatchObject([{ tool: 'charge', status: 'done', attempt: 1 }])
})

test('a long-running tool that answers later keeps its call open', async () => {
  const order = new LongRunningFunctionTool({
    name: 'order',
    description: 'Orders.',
    parameters: PARAMETERS,
    execute: async () => null,
  })
  const { runtime } = await start(agentWith(order), [call('order', 'c1'), { text: 'Ordered.' }])
  onTestFinished(() => runtime.close())
  const events = await run(runtime)
  expect(await rowsOf(runtime, events)).toEqual([
    { tool: 'order', callId: 'c1', effect: 'once', status: 'done', attempt: 1, result: undefined },
  ])
  const messages = await runtime.store.readMessages({ appName: 'lango', userId: 'user', sessionId: 's' })
  expect(messages.some(({ role }) => role === 'tool')).toBe(false)
})

/** A tool as ADK's MCP toolset makes it. */
class HintedTool extends BaseTool {
  readonly mcpTool: { annotations: object }

  constructor(name: string, annotations: object) {
    super({ name, description: name })
    this.mcpTool = { annotations }
  }

  override _getDeclaration(): FunctionDeclaration {
    return { name: this.name, description: this.name, parametersJsonSchema: { type: 'object' } }
  }

  override async runAsync(_request: RunAsyncToolRequest): Promise<unknown> {
    return { ok: true }
  }
}

class Tools extends BaseToolset {
  readonly #tools: BaseTool[]

  constructor(...tools: BaseTool[]) {
    super([])
    this.#tools = tools
  }

  override async getTools(): Promise<BaseTool[]> {
    return this.#tools
  }

  override async close(): Promise<void> {}
}

test('the ledger has the tools of a toolset with the hints of an MCP server', async () => {
  const toolset = new Tools(
    new HintedTool('find', { readOnlyHint: true }),
    new HintedTool('put', { idempotentHint: true }),
    new HintedTool('send', { destructiveHint: false }),
  )
  const steps = [call('find'), call('put'), call('send'), { text: 'Done.' }]
  const { runtime } = await start(agentWith(toolset), steps)
  onTestFinished(() => runtime.close())
  expect(
    (await rowsOf(runtime, await run(runtime))).map(row => [row.tool, row.effect, row.status, row.attempt]),
  ).toEqual([
    ['find', 'read', 'done', 0],
    ['put', 'idempotent', 'done', 1],
    ['send', 'once', 'done', 1],
  ])
})

test('an image of a tool as ADK makes it reaches the model as an image', async () => {
  class Camera extends HintedTool {
    override async runAsync(): Promise<unknown> {
      const image = { type: 'image', mimeType: 'image/jpeg', data: '/9j/4AAQ' }
      return { content: [{ type: 'text', text: 'Look:' }, image] }
    }
  }
  const { runtime, provider } = await start(agentWith(new Tools(new Camera('photo', {}))), [
    call('photo'),
    { text: 'Done.' },
  ])
  onTestFinished(() => runtime.close())
  await run(runtime)
  expect(provider.requests.at(-1)?.messages.at(-1)?.parts).toMatchObject([
    {
      result: {
        content: [
          { type: 'text', text: 'Look:' },
          { type: 'text', text: '[image image/jpeg, 6 bytes]' },
        ],
      },
      media: [{ type: 'media', mimeType: 'image/jpeg', data: '/9j/4AAQ' }],
    },
  ])
})

test('the ledger has tools that an agent gets later, and tools of Lango in agents of ADK', async () => {
  const agent = agentWith()
  const seen: unknown[] = []
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: { type: 'object' },
    execute: (_args, { attempt }) => {
      seen.push(attempt)
      return { paid: true }
    },
  })
  const { runtime } = await start(agent, [call('charge'), call('pay'), { text: 'Done.' }])
  onTestFinished(() => runtime.close())
  await runtime.ready()
  agent.tools.push(
    functionTool('charge', () => 'paid'),
    new ToolAdapter(pay),
  )
  expect((await rowsOf(runtime, await run(runtime))).map(row => [row.tool, row.status, row.attempt])).toEqual(
    [
      ['charge', 'done', 1],
      ['pay', 'done', 1],
    ],
  )
  expect(seen).toEqual([1])
})

test('calls of tools that only read still run at the same time', async () => {
  let running = 0
  let most = 0
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    effect: 'read',
    parameters: { type: 'object' },
    execute: async () => {
      running += 1
      most = Math.max(most, running)
      await new Promise(resolve => setImmediate(resolve))
      running -= 1
      return { ok: true }
    },
  })
  const both = {
    toolCalls: [
      { name: 'look', args: { n: 1 } },
      { name: 'look', args: { n: 2 } },
    ],
  }
  const { runtime } = await start(agentWith(new ToolAdapter(look)), [both, { text: 'Done.' }])
  onTestFinished(() => runtime.close())
  expect((await rowsOf(runtime, await run(runtime))).map(({ status }) => status)).toEqual(['done', 'done'])
  expect(most).toBe(2)
})

test('the message that answers open calls is what an event of ADK is stored as', () => {
  const answers = [
    { id: 'c1', name: 'pay', response: { paid: 1 } },
    { id: 'c2', name: 'pay', response: { error: 'no' } },
  ]
  const identity = { author: 'root', invocationId: 'e-1', branch: 'root' }
  const parts = answers.map(answer => ({ functionResponse: answer }))
  const stored = eventToMessage(createEvent({ ...identity, content: { role: 'user', parts } }))
  const { id: _id, timestamp: _timestamp, ...message } = answerMessage({ ...identity, answers })
  expect(stored).toMatchObject(message)
  expect(Object.keys(stored ?? {}).sort()).toEqual([...Object.keys(message), 'id', 'timestamp'].sort())
})
