// What the runtime itself does about seeing what happens: nothing needs to be joined by hand.

import { AgentTool, LlmAgent } from '@google/adk'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createLogger } from '../../src/observe/log.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { costOf, sessionUsage } from '../../src/session/usage.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { type SpanCollector, startSpanCollector } from '../support/span-collector.js'
import { searchTool } from '../support/tools.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }
const PRICE = { input: 2, output: 8, cachedInput: 0.5, cacheWrite: 4 }

let collector: SpanCollector

beforeEach(async () => {
  collector = await startSpanCollector()
})

afterEach(() => collector.close())

function twoSteps(price: object = { price: PRICE }) {
  return new ScriptedProvider(
    [
      {
        toolCalls: [{ name: 'search', args: { query: 'a' } }],
        usage: { inputTokens: 1000, outputTokens: 50 },
      },
      {
        text: 'done',
        usage: { inputTokens: 2000, outputTokens: 10, cachedInputTokens: 500, cacheWriteTokens: 300 },
      },
    ],
    { id: 'play', model: price },
  )
}

test('spans, log, cost and inspection of one run agree', async () => {
  const lines: string[] = []
  const runtime = await createRuntime({
    store: 'memory:',
    logger: await createLogger({ level: 'debug', destination: { write: line => lines.push(line) } }),
    telemetry: { endpoint: collector.endpoint },
    providers: { play: twoSteps() },
    agent: { name: 'root', model: 'play/m', tools: [searchTool] },
  })
  const events: RunEvent[] = []
  for await (const event of runtime.run({ sessionId: 's', text: 'go' })) events.push(event)
  const runId = events[0]?.runId ?? ''
  const costs = [
    costOf({ inputTokens: 1000, outputTokens: 50, cachedInputTokens: 0, cacheWriteTokens: 0 }, PRICE),
    costOf({ inputTokens: 2000, outputTokens: 10, cachedInputTokens: 500, cacheWriteTokens: 300 }, PRICE),
  ]
  const total = (costs[0] ?? 0) + (costs[1] ?? 0)
  const steps = events.filter(event => event.type === 'usage')
  expect(steps.map(event => event.usage.cost)).toEqual(costs)
  expect(steps.map(event => event.step)).toEqual([1, 2])
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', usage: { cost: total, cacheWriteTokens: 300 } })

  const inspection = await runtime.inspect(runId)
  expect(inspection?.total.usage.cost).toBeCloseTo(total, 12)
  expect(inspection?.steps).toMatchObject([
    { stored: { messages: 0 }, history: { messages: 1 }, cuts: [], usage: { cost: costs[0] } },
    { stored: { messages: 0 }, history: { messages: 3 }, cuts: [], usage: { cost: costs[1] } },
  ])
  const stored = sessionUsage(await runtime.store.readMessages(KEY), name =>
    name === 'play/m' ? PRICE : undefined,
  )
  expect(stored).toMatchObject({ inputTokens: 3000, outputTokens: 60, cacheWriteTokens: 300 })
  expect(stored.cost).toBeCloseTo(total, 12)

  await runtime.close()
  const root = collector.spans.find(span => span.name === 'invoke_agent root')
  expect(root?.attributes).toMatchObject({ 'lango.run.id': runId })
  expect(Number(root?.attributes['lango.usage.cost_usd'])).toBeCloseTo(total, 12)
  const chats = collector.spans.filter(span => span.name === 'chat m')
  expect(chats.every(span => 'lango.repair.count' in span.attributes)).toBe(true)
  expect(chats.every(span => span.parentSpanId === root?.spanId)).toBe(true)
  expect(lines.map(line => (JSON.parse(line) as { message: string }).message)).toContain('Run finished')
})

test('a run with a model of unknown price has no cost', async () => {
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { play: twoSteps({ price: undefined }) },
    agent: { name: 'root', model: 'play/m', tools: [searchTool] },
  })
  const { usage } = await runtime.runAndCollect({ text: 'go' })
  expect(usage.inputTokens).toBe(3000)
  expect(usage).not.toHaveProperty('cost')
  await runtime.close()
})

test('a loop that is left early still sends its spans', async () => {
  const runtime = await createRuntime({
    store: 'memory:',
    telemetry: { endpoint: collector.endpoint },
    providers: { play: twoSteps() },
    agent: { name: 'root', model: 'play/m', tools: [searchTool] },
  })
  for await (const event of runtime.run({ text: 'go' })) if (event.type === 'tool-call') break
  await runtime.close()
  const root = collector.spans.find(span => span.name === 'invoke_agent root')
  expect(root?.attributes['lango.run.finish_reason']).toBe('aborted')
})

test('what an agent inside a tool uses is counted, and its call stands below the tool', async () => {
  const provider = new ScriptedProvider(
    [
      {
        toolCalls: [{ name: 'expert', args: { request: 'x' } }],
        usage: { inputTokens: 10, outputTokens: 1 },
      },
      { text: 'inner', usage: { inputTokens: 100, outputTokens: 2 } },
      { text: 'outer', usage: { inputTokens: 20, outputTokens: 3 } },
    ],
    { id: 'play', model: { price: PRICE } },
  )
  const expert = new LlmAgent({ name: 'expert', model: 'play/m', description: 'Knows.' })
  const root = new LlmAgent({ name: 'root', model: 'play/m', tools: [new AgentTool({ agent: expert })] })
  const runtime = await createRuntime({
    store: 'memory:',
    telemetry: { endpoint: collector.endpoint },
    providers: { play: provider },
    rootAgent: root,
  })
  const result = await runtime.runAndCollect({ text: 'go' })
  expect(result.usage).toMatchObject({ inputTokens: 130, outputTokens: 6 })
  const inspection = await runtime.inspect(result.runId)
  expect(inspection?.steps.map(step => step.usage?.inputTokens)).toEqual([10, 100, 20])
  await runtime.close()
  const tool = collector.spans.find(span => span.name === 'execute_tool expert')
  expect(collector.spans.filter(span => span.parentSpanId === tool?.spanId).map(span => span.name)).toEqual([
    'chat m',
  ])
})
