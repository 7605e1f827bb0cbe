// One trace that begins in a client, goes through a process that is killed, and ends in a tool of another process.
import { join } from 'node:path'
import { context, ROOT_CONTEXT, trace } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BasicTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { createClient } from '../../src/client/create-client.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { runScript } from '../support/child.js'
import { useContextManager } from '../support/context-manager.js'
import { eventually } from '../support/eventually.js'
import { expireLeases } from '../support/expire-leases.js'
import { createStoreDatabase, type TestDatabase } from '../support/postgres.js'
import { type SpanCollector, startSpanCollector } from '../support/span-collector.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { longUnless } from '../support/tiers.js'

// Starting processes takes long on a busy machine.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 })

let database: TestDatabase | undefined

beforeAll(async () => {
  useContextManager()
  // Spans that a process has ended are sent at once, before it is killed.
  vi.stubEnv('OTEL_BSP_SCHEDULE_DELAY', '10')
})

afterAll(async () => {
  context.disable()
  vi.unstubAllEnvs()
  await database?.drop()
})

async function startProcess(store: string, model: string, collector: SpanCollector, rest: [string, string]) {
  const child = runScript('trace-child.ts', [store, model, collector.endpoint, ...rest])
  onTestFinished(async () => {
    child.process.kill('SIGKILL')
    await child.ended
  })
  await child.untilLines(1)
  const [url = ''] = child.lines
  expect(url, child.errors()).toMatch(/^http/)
  return { ...child, client: createClient({ baseUrl: url }) }
}

/** Does work inside a span of a program that uses the client. */
async function insideSpan<T>(collector: SpanCollector, work: () => Promise<T>) {
  const exporter = new OTLPTraceExporter({ url: `${collector.endpoint}/v1/traces` })
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'client' }),
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  })
  const span = provider.getTracer('test').startSpan('order flowers')
  const result = await context.with(trace.setSpan(ROOT_CONTEXT, span), work)
  span.end()
  await provider.shutdown()
  return { result, ...span.spanContext() }
}

for (const kind of ['sqlite', 'postgres']) {
  test(
    `a run in ${kind} that a client began, a killed process left and a tool ended is one trace`,
    longUnless(kind === 'sqlite'),
    async () => {
      const collector = await startSpanCollector()
      const model = await startStrictProvider({
        profile: 'openai-chat',
        script: [{ toolCalls: [{ name: 'look', args: {} }] }, { text: 'Seen.' }],
      })
      onTestFinished(async () => {
        await model.close()
        await collector.close()
      })
      database = kind === 'postgres' ? await createStoreDatabase() : undefined
      const store = database?.url ?? `sqlite:${join(await temporaryFolder(), 'lango.db')}`
      const first = await startProcess(store, model.baseUrl, collector, ['first', 'hang'])
      const client = await insideSpan(collector, () => first.client.start(`trace-${kind}`, { text: 'Look.' }))
      await first.untilLines(2)
      await eventually(() => collector.spans.some(({ name }) => name === 'chat gpt-4.1')).toBe(true)
      first.process.kill('SIGKILL')
      await first.ended
      if (kind === 'sqlite') expireLeases(store)

      const second = await startProcess(store, model.baseUrl, collector, ['second', 'answer'])
      const events: string[] = []
      for await (const event of second.client.follow(client.result.runId)) events.push(event.type)
      expect(events).toContain('run-resumed')
      await eventually(() => collector.spans.some(({ name }) => name === 'invoke_agent root')).toBe(true)

      const { spans } = collector
      expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([client.traceId]))
      const roots = spans.filter(({ name }) => name === 'invoke_agent root')
      expect(roots).toMatchObject([{ service: 'second', parentSpanId: client.spanId }])
      expect(roots[0]?.attributes).toMatchObject({
        'lango.run.attempt': 2,
        'lango.run.finish_reason': 'stop',
      })
      const below = spans.filter(({ parentSpanId }) => parentSpanId === roots[0]?.spanId)
      const byStart = below.sort((one, other) => one.startMs - other.startMs)
      expect(byStart.map(({ name, service }) => [name, service])).toEqual([
        ['chat gpt-4.1', 'first'],
        ['execute_tool look', 'second'],
        ['chat gpt-4.1', 'second'],
      ])
      expect(roots[0]?.startMs).toBeLessThanOrEqual(byStart[0]?.startMs ?? 0)
      expect(spans).toHaveLength(5)
      // What the tool saw is its span: in the process that was killed one that was never sent, in the other one this.
      expect(JSON.parse(first.lines[1] ?? '')).toMatchObject({ traceId: client.traceId })
      expect(JSON.parse(second.lines[1] ?? '')).toMatchObject({
        traceId: client.traceId,
        spanId: byStart[1]?.spanId,
      })
    },
  )
}

test('a run that nobody continues after a kill has its span, with the error, in the trace of its client', async () => {
  const collector = await startSpanCollector()
  const model = await startStrictProvider({
    profile: 'openai-chat',
    script: [{ toolCalls: [{ name: 'look', args: {} }] }],
  })
  const store = `sqlite:${join(await temporaryFolder(), 'lango.db')}`
  const first = await startProcess(store, model.baseUrl, collector, ['first', 'hang'])
  const client = await insideSpan(collector, () => first.client.start('s', { text: 'Look.' }))
  await first.untilLines(2)
  first.process.kill('SIGKILL')
  await first.ended
  expireLeases(store)
  const runtime = await createRuntime({
    store,
    runs: { resume: false },
    telemetry: { endpoint: collector.endpoint, serviceName: 'second' },
    agent: { name: 'root', model: 'demo/demo' },
  })
  onTestFinished(async () => {
    await runtime.close()
    await model.close()
    await collector.close()
  })
  // The next message of the session finds the run.
  for await (const _event of runtime.run({ sessionId: 's', text: 'And now?' }));
  const { runId } = client.result
  const roots = () =>
    collector.spans.filter(
      ({ name, attributes }) => name === 'invoke_agent root' && attributes['lango.run.id'] === runId,
    )
  await eventually(() => roots().length).toBe(1)
  const ids = { traceId: client.traceId, parentSpanId: client.spanId }
  expect(roots()).toMatchObject([{ service: 'second', ...ids }])
  expect(roots()[0]?.attributes).toMatchObject({
    'error.type': 'run-interrupted',
    'gen_ai.request.model': 'gpt-4.1',
    'lango.run.finish_reason': 'error',
  })
})
