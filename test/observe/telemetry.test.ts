// A collector on loopback receives the spans of runs: who called whom, with counts and without words.

import { afterEach, beforeEach, expect, test } from 'vitest'
import { AgentError } from '../../src/errors.js'
import {
  createTelemetry,
  hideContentFromAdkSpans,
  type Telemetry,
  tracesUrl,
} from '../../src/observe/telemetry.js'
import type { RunEvent, RunEventBody } from '../../src/run/run-event.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import type { RunUsage } from '../../src/session/usage.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { type ReceivedSpan, type SpanCollector, startSpanCollector } from '../support/span-collector.js'
import { searchTool } from '../support/tools.js'

let collector: SpanCollector

beforeEach(async () => {
  collector = await startSpanCollector()
})

afterEach(() => collector.close())

async function telemetryTo(endpoint: string, content = false): Promise<Telemetry> {
  const telemetry = await createTelemetry({
    endpoint,
    content,
    serviceName: 'shop',
    headers: { 'x-team': 'a' },
  })
  if (!telemetry) throw new AgentError('internal', 'no telemetry')
  return telemetry
}

/** The spans as a tree of names. */
function tree(spans: readonly ReceivedSpan[], parent?: string): unknown[] {
  return spans
    .filter(span => span.parentSpanId === parent)
    .sort((left, right) => left.startMs - right.startMs)
    .map(span => {
      const below = tree(spans, span.spanId)
      return below.length === 0 ? span.name : [span.name, below]
    })
}

const byName = (name: string) => collector.spans.filter(span => span.name === name)

const KEY = 'sk-live-0123456789abcdef'
const WORDS = ['violets', 'marigold', 'hydrangea', 'chrysanthemum']

/** A run that calls a tool, against a server that checks the key. */
async function runWithTool(telemetry: Telemetry): Promise<RunEvent[]> {
  const server = await startStrictProvider({
    profile: 'openai-chat',
    apiKey: KEY,
    script: [
      { toolCalls: [{ name: 'search', args: { query: 'marigold' } }], usage: { input: 100, output: 10 } },
      { text: 'hydrangea', usage: { input: 120, output: 5, cached: 64 } },
    ],
  })
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { openai: { type: 'openai', api: 'chat', apiKey: KEY, baseUrl: server.baseUrl } },
    agent: {
      name: 'florist',
      model: 'openai/gpt-4.1',
      instruction: 'chrysanthemum',
      tools: [searchTool],
    },
  })
  const events: RunEvent[] = []
  try {
    for await (const event of runtime.run({ sessionId: 's', text: 'violets' })) {
      events.push(event)
      telemetry.observeRun(event)
    }
  } finally {
    await runtime.close()
    await server.close()
  }
  await telemetry.shutdown()
  return events
}

test('a run that uses a tool becomes a tree of spans in the words of the GenAI conventions', async () => {
  const events = await runWithTool(await telemetryTo(collector.endpoint))
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  expect(collector.services).toEqual(['shop'])
  expect(tree(collector.spans)).toEqual([
    ['invoke_agent florist', ['chat gpt-4.1', 'execute_tool search', 'chat gpt-4.1']],
  ])
  expect(new Set(collector.spans.map(span => span.traceId)).size).toBe(1)
  const [root] = byName('invoke_agent florist')
  expect(root?.attributes).toMatchObject({
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'florist',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': 'gpt-4.1',
    'gen_ai.conversation.id': 's',
    'gen_ai.usage.input_tokens': 220,
    'gen_ai.usage.output_tokens': 15,
    'gen_ai.usage.cache_read.input_tokens': 64,
    'lango.run.id': events[0]?.runId,
    'lango.run.finish_reason': 'stop',
    'lango.run.turns': 1,
    'lango.run.delegations': 0,
  })
  const chats = byName('chat gpt-4.1').sort((left, right) => left.startMs - right.startMs)
  expect(chats.map(({ attributes }) => attributes['gen_ai.response.finish_reasons'])).toEqual([
    ['tool_call'],
    ['stop'],
  ])
  expect(chats.map(({ attributes }) => attributes['gen_ai.usage.input_tokens'])).toEqual([100, 120])
  const call = events.find(event => event.type === 'tool-call')
  expect(byName('execute_tool search')[0]?.attributes).toEqual({
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'search',
    'gen_ai.tool.call.id': call?.type === 'tool-call' ? call.id : '',
    'gen_ai.tool.type': 'function',
  })
  for (const span of collector.spans) expect(span.endMs).toBeGreaterThanOrEqual(span.startMs)
})

test('the spans of a run have no key and, by default, none of its words', async () => {
  await runWithTool(await telemetryTo(collector.endpoint))
  const all = collector.received.join()
  expect(all).toContain('execute_tool search')
  for (const secret of [KEY, ...WORDS]) expect(all).not.toContain(secret)
})

test('the spans of a run have its words when content is configured, and still no key', async () => {
  await runWithTool(await telemetryTo(collector.endpoint, true))
  const all = collector.received.join()
  expect(byName('execute_tool search')[0]?.attributes).toMatchObject({
    'gen_ai.tool.call.arguments': '{"query":"marigold"}',
    'gen_ai.tool.call.result': '{"found":"marigold"}',
  })
  expect(byName('invoke_agent florist')[0]?.attributes['gen_ai.output.messages']).toContain('hydrangea')
  expect(all).not.toContain(KEY)
})

const USAGE: RunUsage = {
  inputTokens: 10,
  outputTokens: 2,
  cachedInputTokens: 0,
  cacheWriteTokens: 4,
  reasoningTokens: 1,
  totalTokens: 12,
  cost: 0.25,
}

const START: RunEventBody = {
  type: 'run-start',
  userId: 'u',
  agent: 'root',
  model: 'gemini/gemini-3.5-flash',
}
const FINISH: RunEventBody = {
  type: 'run-finish',
  finishReason: 'stop',
  text: '',
  turns: 0,
  delegations: 0,
  usage: USAGE,
}
const call = (id: string, name = 'search'): RunEventBody => ({
  type: 'tool-call',
  author: 'a',
  id,
  name,
  args: {},
})
const result = (id: string, isError = false): RunEventBody => ({
  type: 'tool-result',
  author: 'a',
  id,
  name: 'search',
  result: {},
  isError,
})
const usage = (model: string): RunEventBody => ({ type: 'usage', author: 'a', model, usage: USAGE })
const request = (model: string) => ({
  model,
  profile: 'gemini-3',
  repairs: [{ kind: 'drop' }, { kind: 'merge' }, { kind: 'prefix-break' }],
})

/** Plays events and requests (given as functions) of one run, then sends the spans. */
async function play(steps: readonly (RunEventBody | ReturnType<typeof request>)[]): Promise<void> {
  const telemetry = await telemetryTo(collector.endpoint)
  let seq = 0
  for (const step of steps) {
    if ('type' in step) telemetry.observeRun({ ...step, sessionId: 's', runId: 'r', seq: ++seq })
    else telemetry.observeRequest('r', step)
    // Spans are told apart by milliseconds below.
    await new Promise(resolve => setTimeout(resolve, 2))
  }
  await telemetry.shutdown()
}

test('the span of an announced request begins with it and has its repairs', async () => {
  const model = 'gemini/gemini-3.5-flash'
  await play([START, request(model), { type: 'text-delta', author: 'a', text: 'x' }, usage(model), FINISH])
  expect(tree(collector.spans)).toEqual([['invoke_agent root', ['chat gemini-3.5-flash']]])
  expect(byName('chat gemini-3.5-flash')[0]).toMatchObject({
    kind: 3,
    attributes: {
      'gen_ai.provider.name': 'gcp.gemini',
      'lango.repair.profile': 'gemini-3',
      'lango.repair.count': 2,
      'gen_ai.usage.cache_creation.input_tokens': 4,
      'gen_ai.usage.reasoning.output_tokens': 1,
      'lango.usage.cost_usd': 0.25,
    },
  })
})

test('spans of parallel tools end with their own results, and that of a failed tool has its error', async () => {
  const model = 'gemini/gemini-3.5-flash'
  await play([START, usage(model), call('1'), call('2'), result('2', true), result('1'), FINISH])
  const [first, second] = byName('execute_tool search').sort((left, right) => left.startMs - right.startMs)
  expect(second?.status.code).toBe(2)
  expect(second?.attributes['error.type']).toBe('tool-error')
  expect(first?.status.code ?? 0).toBe(0)
  expect(second?.endMs).toBeLessThan(first?.endMs ?? 0)
})

test('spans of an agent inside a tool are children of the tool; after a transfer those of the other agent', async () => {
  const [root, inner, other] = ['gemini/gemini-3.5-flash', 'openai/gpt-5.2', 'anthropic/claude-sonnet-4-6']
  await play([
    START,
    request(root ?? ''),
    usage(root ?? ''),
    call('1', 'expert'),
    request(inner ?? ''),
    request(inner ?? ''),
    result('1'),
    request(root ?? ''),
    usage(root ?? ''),
    { type: 'agent-transfer', from: 'root', to: 'clerk' },
    request(other ?? ''),
    usage(other ?? ''),
    { type: 'agent-transfer', from: 'clerk', to: 'root' },
    request(root ?? ''),
    usage(root ?? ''),
    FINISH,
  ])
  expect(tree(collector.spans)).toEqual([
    [
      'invoke_agent root',
      [
        'chat gemini-3.5-flash',
        ['execute_tool expert', ['chat gpt-5.2', 'chat gpt-5.2']],
        'chat gemini-3.5-flash',
        ['invoke_agent clerk', ['chat claude-sonnet-4-6']],
        'chat gemini-3.5-flash',
      ],
    ],
  ])
})

test('the span of a failed run has the code of the error and not its words', async () => {
  const model = 'gemini/gemini-3.5-flash'
  const error = new AgentError('provider-overloaded', 'the model said marigold')
  await play([START, request(model), { type: 'error', error }, { ...FINISH, finishReason: 'error' }])
  for (const name of ['invoke_agent root', 'chat gemini-3.5-flash']) {
    expect(byName(name)[0], name).toMatchObject({
      status: { code: 2 },
      attributes: { 'error.type': 'provider-overloaded' },
    })
  }
  expect(collector.received.join()).not.toContain('marigold')
})

test('spans of a resumed run are a trace of their own that names the attempt', async () => {
  const model = 'gemini/gemini-3.5-flash'
  const resumed = { type: 'run-resumed', attempt: 2, replayedSteps: 3 } as const
  await play([resumed, { type: 'step-restart', step: 4 }, request(model), usage(model), FINISH])
  expect(tree(collector.spans)).toEqual([['invoke_agent', ['chat gemini-3.5-flash']]])
  expect(byName('invoke_agent')[0]).toMatchObject({
    attributes: {
      'lango.run.attempt': 2,
      'lango.run.replayed_steps': 3,
      'lango.run.finish_reason': 'stop',
    },
  })
  expect(collector.received.join()).toContain('"name":"lango.step-restart"')
})

test('spans of a run that is resumed in the same process end with the attempt, and the agent is known', async () => {
  const model = 'gemini/gemini-3.5-flash'
  await play([START, request(model), { type: 'run-resumed', attempt: 1, replayedSteps: 1 }, FINISH])
  expect(byName('invoke_agent root')).toHaveLength(2)
})

test('spans of a run that never ended are sent when telemetry ends', async () => {
  await play([START, request('gemini/gemini-3.5-flash'), call('1')])
  expect(collector.spans.map(span => span.name).sort()).toEqual([
    'chat gemini-3.5-flash',
    'execute_tool search',
    'invoke_agent root',
  ])
})

test('telemetry without an endpoint is off', async () => {
  expect(await createTelemetry({})).toBeUndefined()
})

test('telemetry without a collector fails no run', async () => {
  const { endpoint } = collector
  await collector.close()
  const telemetry = await telemetryTo(endpoint)
  telemetry.observeRun({ ...START, sessionId: 's', runId: 'r', seq: 1 })
  await expect(telemetry.shutdown()).resolves.toBeUndefined()
  telemetry.observeRun({ ...START, sessionId: 's', runId: 'late', seq: 1 })
})

test.each([
  ['http://c:4318', 'http://c:4318/v1/traces'],
  ['http://c:4318/', 'http://c:4318/v1/traces'],
  ['https://c/otlp', 'https://c/otlp/v1/traces'],
  ['https://c/otlp/v1/traces', 'https://c/otlp/v1/traces'],
  ['https://c/otlp?key=a', 'https://c/otlp/v1/traces?key=a'],
])('the telemetry endpoint %s means %s', (endpoint, url) => {
  expect(tracesUrl(endpoint)).toBe(url)
})

test('telemetry keeps ADK from writing content into spans of its own, unless it is configured', () => {
  const env: Record<string, string | undefined> = {}
  hideContentFromAdkSpans(env)
  expect(env.ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS).toBe('false')
  const chosen = { ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS: 'true' }
  hideContentFromAdkSpans(chosen)
  expect(chosen.ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS).toBe('true')
})
