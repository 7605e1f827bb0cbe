/** OpenTelemetry: run events in, spans out to a collector. Its packages are loaded only when spans are wanted. */

import type { TracerProvider } from '@opentelemetry/api'
import { checkOptions, messageOf } from '../errors.js'
import { type Logger, silentLogger } from '../logger.js'
import type { RunEvent } from '../run/run-event.js'
import {
  type FirstEvent,
  type ObservedRequest,
  RunSpans,
  type RunSpansOptions,
  type SpanApi,
} from './spans.js'

export interface TelemetryOptions {
  /** A collector that speaks OTLP over HTTP, such as `http://localhost:4318`. */
  endpoint?: string | undefined
  /** Sent to the collector with every batch. */
  headers?: Readonly<Record<string, string>> | undefined
  /** Put the texts of users, models and tools into spans. Default false. */
  content?: boolean | undefined
  /** Default `lango`. */
  serviceName?: string | undefined
  /** Instead of an endpoint: the spans go to a provider that the application has set up itself. */
  tracerProvider?: TracerProvider | undefined
  logger?: Logger | undefined
}

export interface Telemetry {
  /** Takes every event of every run, in order. */
  observeRun(event: RunEvent): void
  /** Takes every request that a run sends to a model, before it is sent. */
  observeRequest(runId: string, request: ObservedRequest): void
  /** Sends what is waiting. */
  flush(): Promise<void>
  /** Sends what is waiting and stops. A failure is logged and not thrown, because the runs are finished. */
  shutdown(): Promise<void>
}

/**
 * Starts telemetry, or returns `undefined` when neither an endpoint nor a provider is given. `createRuntime` does
 * this itself for its `telemetry` option.
 *
 * ```ts
 * import { createTelemetry, type Runtime } from 'lango'
 *
 * export async function trace(runtime: Runtime, text: string): Promise<void> {
 *   const telemetry = await createTelemetry({ endpoint: 'http://localhost:4318' })
 *   for await (const event of runtime.run({ text })) telemetry?.observeRun(event)
 *   await telemetry?.shutdown()
 * }
 * ```
 */
export async function createTelemetry(options: TelemetryOptions = {}): Promise<Telemetry | undefined> {
  checkOptions(options, 'createTelemetry')
  const { endpoint, tracerProvider, content = false, logger = silentLogger } = options
  if (endpoint === undefined && tracerProvider === undefined) return undefined
  const api: SpanApi = await import('@opentelemetry/api')
  if (tracerProvider) {
    const tracer = tracerProvider.getTracer('lango')
    return new RunTelemetry({ api, tracer, content }, NOTHING_TO_SEND)
  }
  const provider = await createProvider({ ...options, endpoint: endpoint ?? '' })
  const guarded = (what: string, send: () => Promise<void>) => () =>
    send().catch(error => logger.warn(`Spans could not be ${what}`, { error: messageOf(error) }))
  return new RunTelemetry(
    { api, tracer: provider.getTracer('lango'), content },
    {
      flush: guarded('sent', () => provider.forceFlush()),
      shutdown: guarded('sent', () => provider.shutdown()),
    },
  )
}

/**
 * Keeps ADK from writing whole requests and answers into its own spans, which it does for every chunk as soon
 * as an application has set up a global tracer. A choice that was made by the user stands.
 */
export function hideContentFromAdkSpans(env: Record<string, string | undefined> = process.env): void {
  env.ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS ??= 'false'
}

/** The address for traces below a collector's address, as OTEL_EXPORTER_OTLP_ENDPOINT is meant. */
export function tracesUrl(endpoint: string): string {
  const url = new URL(endpoint)
  if (!url.pathname.endsWith('/v1/traces')) url.pathname = `${url.pathname.replace(/\/+$/, '')}/v1/traces`
  return url.href
}

interface Sender {
  flush(): Promise<void>
  shutdown(): Promise<void>
}

const NOTHING_TO_SEND: Sender = { flush: async () => {}, shutdown: async () => {} }

/** Bounds the memory of runs that never end. */
const MAXIMUM_RUNS = 10_000

type RunStart = Extract<RunEvent, { type: 'run-start' }>

class RunTelemetry implements Telemetry {
  readonly #runs = new Map<string, { spans: RunSpans; start?: RunStart }>()

  readonly #spans: RunSpansOptions
  readonly #sender: Sender

  constructor(spans: RunSpansOptions, sender: Sender) {
    this.#spans = spans
    this.#sender = sender
  }

  observeRun(event: RunEvent): void {
    if (event.type === 'run-start' || event.type === 'run-resumed') {
      this.#begin(event)
      return
    }
    if (this.#runs.get(event.runId)?.spans.observe(event)) this.#runs.delete(event.runId)
  }

  /** Each attempt of a run has a trace of its own: the spans of another process are not known here. */
  #begin(event: FirstEvent): void {
    const before = this.#runs.get(event.runId)
    before?.spans.abandon()
    this.#runs.delete(event.runId)
    const start = event.type === 'run-start' ? event : before?.start
    const spans = new RunSpans(event, this.#spans, start)
    this.#runs.set(event.runId, { spans, ...(start ? { start } : {}) })
    this.#forgetOldest()
  }

  observeRequest(runId: string, request: ObservedRequest): void {
    this.#runs.get(runId)?.spans.requestSent(request)
  }

  flush(): Promise<void> {
    return this.#sender.flush()
  }

  async shutdown(): Promise<void> {
    for (const { spans } of this.#runs.values()) spans.abandon()
    this.#runs.clear()
    await this.#sender.shutdown()
  }

  #forgetOldest(): void {
    if (this.#runs.size <= MAXIMUM_RUNS) return
    for (const [runId, { spans }] of this.#runs) {
      spans.abandon()
      this.#runs.delete(runId)
      return
    }
  }
}

/** A provider of our own, not the global one: ADK's spans do not pass through it. */
async function createProvider(options: TelemetryOptions & { endpoint: string }) {
  const [{ BasicTracerProvider, BatchSpanProcessor }, { OTLPTraceExporter }, { resourceFromAttributes }] =
    await Promise.all([
      import('@opentelemetry/sdk-trace-base'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
    ])
  const exporter = new OTLPTraceExporter({
    url: tracesUrl(options.endpoint),
    ...(options.headers ? { headers: { ...options.headers } } : {}),
  })
  return new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': options.serviceName ?? 'lango' }),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  })
}
