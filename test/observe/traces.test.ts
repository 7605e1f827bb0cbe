// What a runtime sends to a collector, compared with the names and the JSON forms that the GenAI conventions publish.
import { join } from 'node:path'
import { context, ROOT_CONTEXT, trace } from '@opentelemetry/api'
import * as conventions from '@opentelemetry/semantic-conventions/incubating'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { ModelCall } from '../../src/observe/model-calls.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { type StrictProvider, startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { defineTool } from '../../src/tool.js'
import { type ReceivedSpan, type SpanCollector, startSpanCollector } from '../support/span-collector.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { startService } from '../tools/mcp-service.js'

let collector: SpanCollector

beforeEach(async () => {
  collector = await startSpanCollector()
})

afterEach(() => collector.close())

const KEY = 'sk-live-0123456789abcdef'
const WORDS = ['violets', 'marigold', 'hydrangea', 'chrysanthemum', 'rose']

/** The span that the tool sees. */
let seen: ReturnType<typeof activeSpan>
const activeSpan = () => trace.getActiveSpan()?.spanContext()

const search = defineTool({
  name: 'search',
  description: 'Finds a rose.',
  parameters: z.object({ query: z.string() }),
  effect: 'read',
  execute: async ({ query }) => {
    await Promise.resolve()
    seen = activeSpan()
    return { found: query, key: KEY }
  },
})

async function startRuntime(
  content: boolean,
  script: Parameters<typeof startStrictProvider>[0]['script'],
  more: Partial<RuntimeOptions> = {},
  apiKey = KEY,
): Promise<{ runtime: Runtime } & Pick<StrictProvider, 'port' | 'requests'>> {
  const server = await startStrictProvider({
    profile: 'openai-chat',
    apiKey: KEY,
    ...(script ? { script } : {}),
  })
  const runtime = await createRuntime({
    store: 'memory:',
    telemetry: { endpoint: collector.endpoint, content, serviceName: 'shop' },
    providers: { openai: { type: 'openai', api: 'chat', apiKey, baseUrl: server.baseUrl } },
    agent: {
      name: 'florist',
      description: 'Sells flowers.',
      model: 'openai/gpt-4.1',
      instruction: 'chrysanthemum',
      temperature: 0.5,
      maxOutputTokens: 500,
      tools: [search],
    },
    ...more,
  })
  onTestFinished(async () => {
    await runtime.close()
    await server.close()
  })
  return { runtime, port: server.port, requests: server.requests }
}

const TWO_STEPS = [
  { toolCalls: [{ name: 'search', args: { query: 'marigold' } }], usage: { input: 100, output: 10 } },
  { text: 'hydrangea', usage: { input: 120, output: 5, cached: 64 } },
]

const named = (name: string) =>
  collector.spans.filter(span => span.name === name).sort((one, other) => one.startMs - other.startMs)

const KNOWN = new Set<unknown>(Object.values(conventions))

/** Every attribute has a name of the conventions, or is one of Lango's own. */
function expectKnownNames(names: readonly string[]): void {
  expect(names.filter(name => !KNOWN.has(name) && !name.startsWith('lango.'))).toEqual([])
}

// The forms of gen-ai-input-messages.json, gen-ai-output-messages.json, gen-ai-system-instructions.json and
// gen-ai-tool-definitions.json, as far as Lango uses them; strict, so that a wrong name is found.
const Text = z.strictObject({ type: z.enum(['text', 'reasoning']), content: z.string() })
const Call = z.strictObject({
  type: z.literal('tool_call'),
  id: z.string(),
  name: z.string(),
  arguments: z.unknown(),
})
const Response = z.strictObject({
  type: z.literal('tool_call_response'),
  id: z.string(),
  response: z.unknown(),
})
const Media = z.strictObject({
  type: z.enum(['uri', 'lango.media']),
  mime_type: z.string(),
  modality: z.string(),
  uri: z.string().optional(),
  size: z.number().optional(),
})
const Parts = z.array(z.union([Text, Call, Response, Media]))
const Input = z.array(z.strictObject({ role: z.enum(['user', 'assistant', 'tool']), parts: Parts }))
const Output = z.array(
  z.strictObject({
    role: z.literal('assistant'),
    parts: Parts,
    finish_reason: z.enum(['stop', 'length', 'content_filter', 'tool_call', 'error']),
  }),
)
const Instructions = z.array(Text)
const Definitions = z.array(
  z.strictObject({
    type: z.literal('function'),
    name: z.string(),
    description: z.string(),
    parameters: z.record(z.string(), z.unknown()),
  }),
)

function json<Schema extends z.ZodType>(span: ReceivedSpan | undefined, name: string, schema: Schema) {
  return schema.parse(JSON.parse(String(span?.attributes[name])))
}

test('spans have the names, kinds and attributes of the GenAI conventions', async () => {
  const { runtime, port } = await startRuntime(false, TWO_STEPS)
  const { runId } = await runtime.runAndCollect({ sessionId: 's', text: 'violets' })
  await runtime.close()
  expectKnownNames(collector.spans.flatMap(({ attributes }) => Object.keys(attributes)))
  const [root] = named('invoke_agent florist')
  const chats = named('chat gpt-4.1')
  const [tool] = named('execute_tool search')
  expect(collector.spans).toHaveLength(4)
  expect(new Set(collector.spans.map(({ traceId }) => traceId)).size).toBe(1)
  for (const span of [...chats, tool]) expect(span?.parentSpanId).toBe(root?.spanId)
  expect(root).toMatchObject({
    kind: 1,
    parentSpanId: undefined,
    attributes: {
      'gen_ai.operation.name': conventions.GEN_AI_OPERATION_NAME_VALUE_INVOKE_AGENT,
      'gen_ai.provider.name': conventions.GEN_AI_PROVIDER_NAME_VALUE_OPENAI,
      'gen_ai.agent.name': 'florist',
      'gen_ai.agent.description': 'Sells flowers.',
      'gen_ai.conversation.id': 's',
      'gen_ai.request.model': 'gpt-4.1',
      'gen_ai.usage.input_tokens': 220,
      'lango.run.id': runId,
    },
  })
  expect(chats.map(({ attributes }) => attributes['gen_ai.response.finish_reasons'])).toEqual([
    ['tool_call'],
    ['stop'],
  ])
  expect(chats[1]).toMatchObject({
    kind: 3,
    attributes: {
      'gen_ai.operation.name': conventions.GEN_AI_OPERATION_NAME_VALUE_CHAT,
      'gen_ai.provider.name': 'openai',
      'gen_ai.conversation.id': 's',
      'gen_ai.request.model': 'gpt-4.1',
      'gen_ai.request.temperature': 0.5,
      'gen_ai.request.max_tokens': 500,
      'gen_ai.request.stream': true,
      'gen_ai.output.type': conventions.GEN_AI_OUTPUT_TYPE_VALUE_TEXT,
      'gen_ai.response.model': expect.any(String),
      'gen_ai.response.id': expect.any(String),
      'gen_ai.response.time_to_first_chunk': expect.any(Number),
      'gen_ai.usage.input_tokens': 120,
      'gen_ai.usage.output_tokens': 5,
      'gen_ai.usage.cache_read.input_tokens': 64,
      'server.address': '127.0.0.1',
      'server.port': port,
    },
  })
  expect(tool).toMatchObject({
    kind: 1,
    attributes: {
      'gen_ai.operation.name': conventions.GEN_AI_OPERATION_NAME_VALUE_EXECUTE_TOOL,
      'gen_ai.tool.name': 'search',
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.call.id': expect.any(String),
    },
  })
  const all = collector.received.join()
  // Descriptions of agents and tools are configuration and not content.
  for (const secret of [KEY, ...WORDS.filter(word => word !== 'rose')]) expect(all).not.toContain(secret)
})

test('content in spans has the published JSON forms, and no key', async () => {
  const { runtime } = await startRuntime(true, TWO_STEPS)
  await runtime.runAndCollect({ sessionId: 's', text: 'violets' })
  await runtime.close()
  expectKnownNames(collector.spans.flatMap(({ attributes }) => Object.keys(attributes)))
  const [root] = named('invoke_agent florist')
  const [first, second] = named('chat gpt-4.1')
  const [tool] = named('execute_tool search')
  const question = { role: 'user', parts: [{ type: 'text', content: 'violets' }] }
  expect(json(root, 'gen_ai.input.messages', Input)).toEqual([question])
  expect(json(root, 'gen_ai.output.messages', Output)).toEqual([
    { role: 'assistant', parts: [{ type: 'text', content: 'hydrangea' }], finish_reason: 'stop' },
  ])
  for (const span of [root, first]) {
    expect(json(span, 'gen_ai.system_instructions', Instructions)[0]?.content).toContain('chrysanthemum')
    expect(json(span, 'gen_ai.tool.definitions', Definitions)).toMatchObject([
      { name: 'search', parameters: { type: 'object', properties: { query: { type: 'string' } } } },
    ])
  }
  expect(json(first, 'gen_ai.input.messages', Input)).toEqual([question])
  const [called] = json(first, 'gen_ai.output.messages', Output)
  expect(called).toMatchObject({
    finish_reason: 'tool_call',
    parts: [{ type: 'tool_call', name: 'search', arguments: { query: 'marigold' } }],
  })
  expect(json(second, 'gen_ai.input.messages', Input)).toMatchObject([
    question,
    { role: 'assistant', parts: [{ type: 'tool_call' }] },
    { role: 'tool', parts: [{ type: 'tool_call_response', response: { found: 'marigold' } }] },
  ])
  expect(JSON.parse(String(tool?.attributes['gen_ai.tool.call.arguments']))).toEqual({ query: 'marigold' })
  expect(JSON.parse(String(tool?.attributes['gen_ai.tool.call.result']))).toMatchObject({ found: 'marigold' })
  expect(collector.received.join()).not.toContain(KEY)
})

test('a span names the file of a message without its bytes', async () => {
  const { runtime } = await startRuntime(true, () => ({ text: 'hydrangea' }))
  const data = Buffer.from('a picture of a violet').toString('base64')
  const parts = [{ inlineData: { mimeType: 'image/png', data } }]
  await runtime.runAndCollect({ sessionId: 's', text: 'violets', parts })
  await runtime.close()
  const [span] = named('chat gpt-4.1')
  const [message] = json(span, 'gen_ai.input.messages', Input)
  expect(message?.parts).toContainEqual({
    type: 'lango.media',
    mime_type: 'image/png',
    modality: 'image',
    size: expect.any(Number),
  })
  expect(collector.received.join()).not.toContain(data)
})

test('a failed call has its error in the span and in the metric', async () => {
  const { runtime } = await startRuntime(false, TWO_STEPS, {}, 'sk-another-key-0123')
  const error: unknown = await runtime.runAndCollect({ text: 'violets' }).catch(failure => failure)
  await runtime.close()
  const [chat] = named('chat gpt-4.1')
  const [root] = named('invoke_agent florist')
  expect(error).toMatchObject({ code: 'provider-auth' })
  for (const span of [chat, root])
    expect(span).toMatchObject({ status: { code: 2 }, attributes: { 'error.type': 'provider-auth' } })
  const durations = collector.points.filter(({ metric }) => metric === 'gen_ai.client.operation.duration')
  expect(durations.map(({ attributes }) => attributes['error.type'])).toEqual(['provider-auth'])
})

test('metrics have the names, units and attributes of the GenAI conventions', async () => {
  const { runtime, port } = await startRuntime(false, TWO_STEPS)
  const calls: ModelCall[] = []
  runtime.observe(
    () => {},
    call => calls.push(call),
  )
  await runtime.runAndCollect({ sessionId: 's', text: 'violets' })
  await runtime.close()
  const { points } = collector
  expectKnownNames(points.flatMap(({ attributes, metric }) => [metric, ...Object.keys(attributes)]))
  const units = Object.fromEntries(points.map(({ metric, unit }) => [metric, unit]))
  expect(units).toEqual({
    [conventions.METRIC_GEN_AI_CLIENT_TOKEN_USAGE]: '{token}',
    [conventions.METRIC_GEN_AI_CLIENT_OPERATION_DURATION]: 's',
    [conventions.METRIC_GEN_AI_CLIENT_OPERATION_TIME_TO_FIRST_CHUNK]: 's',
    'lango.client.cost': 'USD',
  })
  const about = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': 'gpt-4.1',
    'server.address': '127.0.0.1',
    'server.port': port,
  }
  const tokens = points.filter(({ metric }) => metric === 'gen_ai.client.token.usage')
  expect(tokens).toMatchObject([
    { attributes: { ...about, 'gen_ai.token.type': 'input' }, sum: 220, count: 2, counted: 2 },
    { attributes: { ...about, 'gen_ai.token.type': 'output' }, sum: 15, count: 2, counted: 2 },
  ])
  const [duration] = points.filter(({ metric }) => metric === 'gen_ai.client.operation.duration')
  expect(duration).toMatchObject({ attributes: about, count: 2, counted: 2 })
  expect(duration?.sum).toBeCloseTo(
    calls.reduce((all, { durationMs }) => all + durationMs / 1000, 0),
    6,
  )
  const cost = calls.reduce((all, { usage }) => all + (usage?.cost ?? 0), 0)
  expect(cost).toBeGreaterThan(0)
  expect(points.find(({ metric }) => metric === 'lango.client.cost')?.sum).toBeCloseTo(cost, 12)
  for (const { firstChunkMs, durationMs } of calls) expect(firstChunkMs).toBeLessThanOrEqual(durationMs)
})

test('no metrics are sent when they are switched off', async () => {
  const telemetry = { endpoint: collector.endpoint, metrics: false }
  const { runtime } = await startRuntime(false, TWO_STEPS, { telemetry })
  await runtime.runAndCollect({ text: 'violets' })
  await runtime.close()
  expect(collector.spans).toHaveLength(4)
  expect(collector.points).toEqual([])
})

const CALLER = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }
const TRACEPARENT = `00-${CALLER.traceId}-${CALLER.spanId}-01`

test('the trace of a caller continues through the run to the model’s server and into the tool', async () => {
  const { runtime, requests } = await startRuntime(false, TWO_STEPS)
  const given = { traceparent: TRACEPARENT, tracestate: 'shop=1' }
  await runtime.runAndCollect({ text: 'violets', trace: given })
  await runtime.close()
  const [root] = named('invoke_agent florist')
  const [tool] = named('execute_tool search')
  expect(root).toMatchObject({ traceId: CALLER.traceId, parentSpanId: CALLER.spanId })
  expect(seen).toMatchObject({ traceId: CALLER.traceId, spanId: tool?.spanId })
  expect(requests.map(({ headers: { traceparent, tracestate } }) => [traceparent, tracestate])).toEqual(
    named('chat gpt-4.1').map(({ spanId }) => [`00-${CALLER.traceId}-${spanId}-01`, 'shop=1']),
  )
})

test('a caller without a trace continues that of the active span', async () => {
  const { runtime } = await startRuntime(false, TWO_STEPS)
  await runtime.ready()
  const active = trace.setSpanContext(ROOT_CONTEXT, { ...CALLER, traceFlags: 1 })
  await context.with(active, () => runtime.runAndCollect({ text: 'violets' }))
  await runtime.close()
  expect(named('invoke_agent florist')[0]).toMatchObject({
    traceId: CALLER.traceId,
    parentSpanId: CALLER.spanId,
  })
})

test('a trace that is not sampled sends nothing, and the run works', async () => {
  const { runtime } = await startRuntime(true, TWO_STEPS)
  const trace = { traceparent: TRACEPARENT.replace(/01$/, '00') }
  expect(await runtime.runAndCollect({ text: 'violets', trace })).toMatchObject({ text: 'hydrangea' })
  await runtime.close()
  expect(collector.spans).toEqual([])
})

test.each([
  { traceparent: 'nonsense' },
  { traceparent: `00-${'0'.repeat(32)}-${CALLER.spanId}-01` },
  { traceparent: `${TRACEPARENT}-more` },
  { traceparent: TRACEPARENT, other: 1 },
])('a trace that is not valid is refused: %j', async given => {
  const { runtime } = await startRuntime(false, TWO_STEPS)
  await expect(runtime.runAndCollect({ text: 'violets', trace: given as never })).rejects.toThrow(
    '`trace` must be',
  )
})

test('a run that waits for a person and continues in another runtime has one span, and its tool none of the wait', async () => {
  const store = `sqlite:${join(await temporaryFolder(), 'lango.db')}`
  const ask = { ...search, needsApproval: true }
  const server = await startStrictProvider({ profile: 'openai-chat', apiKey: KEY, script: TWO_STEPS })
  onTestFinished(() => server.close())
  const start = () =>
    createRuntime({
      store,
      telemetry: { endpoint: collector.endpoint },
      providers: { openai: { type: 'openai', api: 'chat', apiKey: KEY, baseUrl: server.baseUrl } },
      agent: { name: 'florist', model: 'openai/gpt-4.1', tools: [ask] },
    })
  const first = await start()
  const { runId } = await first.start({ sessionId: 's', text: 'violets' })
  let callId = ''
  for await (const event of first.follow(runId, { untilWaiting: true }))
    if (event.type === 'approval-request') callId = event.id
  await first.close()
  expect(collector.spans.map(({ name }) => name)).toEqual(['chat gpt-4.1'])
  const answeredAt = Date.now()

  const second = await start()
  await second.ready()
  await second.answer(runId, callId, 'once')
  for await (const _event of second.follow(runId));
  await second.close()
  const [root, ...others] = named('invoke_agent florist')
  expect(others).toEqual([])
  expect(root?.parentSpanId).toBeUndefined()
  const below = collector.spans.filter(({ name }) => name !== root?.name)
  expect(below.map(({ traceId, parentSpanId }) => [traceId, parentSpanId])).toEqual(
    below.map(() => [root?.traceId, root?.spanId]),
  )
  expect(below.map(({ name }) => name).sort()).toEqual([
    'chat gpt-4.1',
    'chat gpt-4.1',
    'execute_tool search',
  ])
  expect(named('execute_tool search')[0]?.startMs).toBeGreaterThanOrEqual(answeredAt)
  expect(root?.startMs).toBeLessThanOrEqual(named('chat gpt-4.1')[0]?.startMs ?? 0)
})

test('a call of an MCP server over HTTP carries the span of its tool', async () => {
  let traceparent: unknown
  const service = await startService(mcp => {
    mcp.registerTool('where', { description: 'Says where.' }, ({ requestInfo }) => {
      traceparent = requestInfo?.headers.traceparent
      return { content: [{ type: 'text', text: 'here' }] }
    })
  })
  const script = [{ toolCalls: [{ name: 'shop_where', args: {} }] }, { text: 'hydrangea' }]
  const { runtime } = await startRuntime(false, script, {
    mcpServers: { shop: { url: service.url } },
    agent: { name: 'florist', model: 'openai/gpt-4.1' },
  })
  await runtime.runAndCollect({ text: 'violets' })
  await runtime.close()
  const [tool] = named('execute_tool shop_where')
  expect(traceparent).toBe(`00-${tool?.traceId}-${tool?.spanId}-01`)
})
