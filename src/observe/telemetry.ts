/** OpenTelemetry: runs in, spans and metrics out to a collector. Its packages are loaded only when they are wanted. */

import { AsyncLocalStorage } from 'node:async_hooks'
import { randomBytes } from 'node:crypto'
import type { Context, ContextManager, MeterProvider, TracerProvider } from '@opentelemetry/api'
import { defined } from '../base/defined.js'
import {
  formatTraceparent,
  parseTraceparent,
  type RunTrace,
  type SpanId,
  type TraceContext,
} from '../base/trace-context.js'
import { checkOptions, messageOf } from '../errors.js'
import { type Logger, silentLogger } from '../logger.js'
import type { RunEvent } from '../run/run-event.js'
import type { ExecutedCall } from '../session/tool-calls.js'
import { traceModelCall, traceTool } from './call-spans.js'
import { contentAttributes, inputMessage } from './genai.js'
import { createMetrics, type GenAiMetrics, headerList, OtlpMeter } from './genai-metrics.js'
import type { CallTrace, StartedCall } from './model-calls.js'
import { otlpTracers } from './otlp-tracers.js'
import { attemptAttributes, type ObservedRequest, RunSpans, type RunSpansOptions } from './spans.js'

export interface TelemetryOptions {
  /** A collector that speaks OTLP over HTTP, such as `http://localhost:4318`. */
  endpoint?: string | undefined
  /** Sent to the collector with every batch. */
  headers?: Readonly<Record<string, string>> | undefined
  /** Put the texts of users, models and tools into spans. Default false. */
  content?: boolean | undefined
  /** Send metrics as well. Default true. */
  metrics?: boolean | undefined
  /** Default `lango`. */
  serviceName?: string | undefined
  /** Instead of an endpoint: the spans go to a provider that the application has set up itself. */
  tracerProvider?: TracerProvider | undefined
  /** Where the metrics go with `tracerProvider`. Default: the global one of OpenTelemetry's API. */
  meterProvider?: MeterProvider | undefined
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
 * this itself for its `telemetry` option, and then also traces what happens inside model calls and tools.
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
  return openTelemetry(options, false)
}

/** The telemetry of a runtime, which traces its model calls and tools where they are made. */
export function traceRuntime(options: TelemetryOptions): Promise<RunTelemetry | undefined> {
  return openTelemetry(options, true)
}

async function openTelemetry(options: TelemetryOptions, isLive: boolean): Promise<RunTelemetry | undefined> {
  const { endpoint, tracerProvider, content = false, logger = silentLogger } = options
  if (endpoint === undefined && tracerProvider === undefined) return undefined
  const api = await import('@opentelemetry/api')
  if (isLive) ensureContextManager(api)
  const hasMetrics = isLive && (options.metrics ?? true)
  if (tracerProvider) {
    const spans = { api, tracer: tracerProvider.getTracer('lango'), content, isLive }
    const meters = options.meterProvider ?? api.metrics.getMeterProvider()
    return new RunTelemetry(
      spans,
      NOTHING_TO_SEND,
      hasMetrics ? createMetrics(meters.getMeter('lango')) : undefined,
    )
  }
  const target = { ...options, endpoint: endpoint ?? '' }
  const { headers, serviceName = 'lango' } = target
  const { provider, withIds } = await otlpTracers({ url: tracesUrl(target.endpoint), headers, serviceName })
  const meter = hasMetrics ? createMeter(target, logger) : undefined
  const guarded = (send: () => Promise<void>) => () =>
    send().catch(error => logger.warn('Spans could not be sent', { error: messageOf(error) }))
  return new RunTelemetry(
    { api, tracer: provider.getTracer('lango'), content, isLive, ...(isLive ? { withIds } : {}) },
    {
      flush: async () => void (await Promise.all([guarded(() => provider.forceFlush())(), meter?.send()])),
      shutdown: async () => void (await Promise.all([guarded(() => provider.shutdown())(), meter?.close()])),
    },
    meter && createMetrics(meter),
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

function metricsUrl(endpoint: string): string {
  const url = new URL(tracesUrl(endpoint))
  url.pathname = url.pathname.replace(/\/v1\/traces$/, '/v1/metrics')
  return url.href
}

interface Sender {
  flush(): Promise<void>
  shutdown(): Promise<void>
}

const NOTHING_TO_SEND: Sender = { flush: async () => {}, shutdown: async () => {} }

/** Bounds the memory of runs that never end. */
const MAXIMUM_RUNS = 10_000

/** A process begins to work on a run. */
export interface BegunAttempt {
  runId: string
  sessionId: string
  agent: string
  description?: string | undefined
  model: string
  trace?: RunTrace | undefined
  isResumed: boolean
  /** What the user wrote. */
  text: string
}

interface TracedRun {
  spans: RunSpans
  agent?: string | undefined
  model?: string | undefined
  /** The span of the run is sent by the process that ends the run. */
  isShared: boolean
  /** Its span has the instructions and the tools of its agent. */
  isDescribed?: boolean
}

export class RunTelemetry implements Telemetry {
  readonly #runs = new Map<string, TracedRun>()

  readonly #spans: RunSpansOptions
  readonly #sender: Sender
  readonly #metrics: GenAiMetrics | undefined

  constructor(spans: RunSpansOptions, sender: Sender, metrics?: GenAiMetrics) {
    this.#spans = spans
    this.#sender = sender
    this.#metrics = metrics
  }

  /**
   * What is stored with a run. Its trace is that of the active span, or of the caller; where the ids of spans can be
   * chosen, the run's own span is part of it, so that it has one span however many processes work on it.
   */
  accept(given: TraceContext | undefined): RunTrace {
    const parent = this.#activeTrace(given) ?? given
    const above = parent && parseTraceparent(parent.traceparent)
    const ids: SpanId = {
      traceId: above?.traceId ?? randomBytes(16).toString('hex'),
      spanId: randomBytes(8).toString('hex'),
      traceFlags: above?.traceFlags ?? 1,
    }
    const span = this.#spans.withIds ? formatTraceparent(ids) : undefined
    return { ...parent, ...defined({ span }), acceptedAt: Date.now() }
  }

  /** The active span is nearer than what the request carried, unless it belongs to another trace. */
  #activeTrace(given: TraceContext | undefined): TraceContext | undefined {
    const { api } = this.#spans
    const active = api.trace.getSpanContext(api.context.active())
    if (!active || !parseTraceparent(formatTraceparent(active))) return undefined
    if (given && parseTraceparent(given.traceparent)?.traceId !== active.traceId) return undefined
    const tracestate = active.traceState?.serialize() || undefined
    return { traceparent: formatTraceparent(active), ...defined({ tracestate }) }
  }

  /** The events of a run from now on: what is done for each of them belongs to the agent that works then. */
  async *follow<Item>(
    attempt: BegunAttempt,
    events: AsyncGenerator<Item, void, undefined>,
  ): AsyncGenerator<Item, void, undefined> {
    const { runId } = attempt
    this.#begin(attempt)
    const begun = this.#runs.get(runId)
    const within = <Result>(work: () => Result): Result =>
      begun ? this.#spans.api.context.with(begun.spans.context, work) : work()
    let isOver = false
    try {
      while (true) {
        const next = await within(() => events.next())
        isOver = next.done === true
        if (next.done) return
        yield next.value
      }
    } catch (error) {
      isOver = true
      throw error
    } finally {
      if (!isOver) await within(() => events.return())
      if (this.#runs.get(runId) === begun) this.#leave(runId)
    }
  }

  /** The span of a run whose process is gone: it began when the run was accepted, and has the error. */
  interrupted(attempt: BegunAttempt, events: readonly RunEvent[]): void {
    this.#begin(attempt)
    for (const event of events) this.observeRun(event)
    this.#leave(attempt.runId)
  }

  #begin({ runId, sessionId, agent, model, trace = {}, isResumed, description, text }: BegunAttempt): void {
    const ids = trace.span === undefined ? undefined : parseTraceparent(trace.span)
    const attributes = {
      ...(description ? { 'gen_ai.agent.description': description } : {}),
      ...(this.#spans.content && text !== ''
        ? { 'gen_ai.input.messages': inputMessage([{ type: 'text', text }]) }
        : {}),
    }
    const isShared = ids !== undefined && this.#spans.withIds !== undefined
    const startTime = isShared && isResumed ? trace.acceptedAt : undefined
    const parent = this.#remote(trace)
    this.#add(runId, isShared, { runId, sessionId, agent, model, parent, ids, startTime, attributes })
  }

  #remote({ traceparent, tracestate }: RunTrace): Context {
    const { api } = this.#spans
    const ids = traceparent === undefined ? undefined : parseTraceparent(traceparent)
    if (!ids) return api.ROOT_CONTEXT
    const traceState = tracestate === undefined ? undefined : api.createTraceState(tracestate)
    return api.trace.setSpanContext(api.ROOT_CONTEXT, { ...ids, isRemote: true, ...defined({ traceState }) })
  }

  /** Executes a tool. */
  tool<Result>(runId: string | undefined, call: ExecutedCall, work: () => Promise<Result>): Promise<Result> {
    const run = runId === undefined ? undefined : this.#runs.get(runId)
    run?.spans.executed(call.callId)
    return traceTool(call, this.#parentIn(run), this.#spans, work)
  }

  /** A model call is about to be sent. */
  modelCall(call: StartedCall): CallTrace {
    const run = call.runId === undefined ? undefined : this.#runs.get(call.runId)
    const parent = this.#parentIn(run)
    if (run && !run.isDescribed && this.#spans.content && this.#isSameSpan(parent, run.spans.context)) {
      run.isDescribed = true
      const { 'gen_ai.input.messages': _ofCall, ...described } = contentAttributes({
        ...call.request,
        messages: call.request.messages.filter(({ role }) => role === 'system'),
      })
      run.spans.setAttributes(described)
    }
    const trace = traceModelCall(call, parent, this.#spans)
    const metrics = this.#metrics
    if (!metrics) return trace
    return {
      ...trace,
      end: (ended, facts, error) => {
        trace.end(ended, facts, error)
        metrics.callEnded(ended, facts)
      },
    }
  }

  /** What is active if it is part of the run, such as a tool that asks a model; otherwise the run. */
  #parentIn(run: TracedRun | undefined): Context {
    const { api } = this.#spans
    const active = api.context.active()
    if (!run) return active
    const own = api.trace.getSpanContext(run.spans.context)
    return api.trace.getSpanContext(active)?.traceId === own?.traceId ? active : run.spans.context
  }

  #isSameSpan(one: Context, other: Context): boolean {
    const { trace } = this.#spans.api
    return trace.getSpanContext(one)?.spanId === trace.getSpanContext(other)?.spanId
  }

  /** This process has nothing more to do with a run. */
  #leave(runId: string): void {
    const run = this.#runs.get(runId)
    this.#runs.delete(runId)
    if (run) leaveRun(run)
  }

  observeRun(event: RunEvent): void {
    const run = this.#runs.get(event.runId)
    const isFirst = event.type === 'run-start' || event.type === 'run-resumed'
    if (event.type === 'run-resumed') this.#metrics?.runResumed(run?.model)
    if (isFirst && !this.#spans.isLive) this.#begun(event, run)
    else if (run?.spans.observe(event)) this.#runs.delete(event.runId)
  }

  /** Each attempt of a run that is known by its events alone has a trace of its own. */
  #begun(
    event: Extract<RunEvent, { type: 'run-start' | 'run-resumed' }>,
    before: TracedRun | undefined,
  ): void {
    const { runId, sessionId } = event
    before?.spans.abandon()
    const { agent, model } = event.type === 'run-start' ? event : { ...before }
    const attributes = event.type === 'run-resumed' ? attemptAttributes(event) : {}
    const parent = this.#spans.api.context.active()
    this.#add(runId, false, { runId, sessionId, agent, model, parent, attributes })
  }

  #add(runId: string, isShared: boolean, attempt: ConstructorParameters<typeof RunSpans>[0]): void {
    this.#leave(runId)
    const { agent, model } = attempt
    this.#runs.set(runId, { spans: new RunSpans(attempt, this.#spans), agent, model, isShared })
    const [oldest] = this.#runs.keys()
    if (this.#runs.size > MAXIMUM_RUNS && oldest !== undefined) this.#leave(oldest)
  }

  observeRequest(runId: string, request: ObservedRequest): void {
    if (!this.#spans.isLive) this.#runs.get(runId)?.spans.requestSent(request)
  }

  flush(): Promise<void> {
    return this.#sender.flush()
  }

  async shutdown(): Promise<void> {
    for (const runId of [...this.#runs.keys()]) this.#leave(runId)
    await this.#sender.shutdown()
  }
}

function leaveRun({ spans, isShared }: TracedRun): void {
  if (isShared) spans.leave()
  else spans.abandon()
}

function createMeter(
  { endpoint, headers, serviceName = 'lango' }: TelemetryOptions & { endpoint: string },
  logger: Logger,
): OtlpMeter {
  const { OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_METRICS_HEADERS } = process.env
  const fromEnvironment = [OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_METRICS_HEADERS].flatMap(headerList)
  const all = { ...Object.fromEntries(fromEnvironment), ...headers }
  return new OtlpMeter({ url: metricsUrl(endpoint), headers: all, serviceName, logger })
}

/** Lets code see the span that it belongs to, unless the application has seen to that. */
function ensureContextManager(api: typeof import('@opentelemetry/api')): void {
  const probe = api.ROOT_CONTEXT.setValue(api.createContextKey('lango probe'), true)
  if (api.context.with(probe, () => api.context.active() === probe)) return
  const active = new AsyncLocalStorage<Context>()
  const manager: ContextManager = {
    active: () => active.getStore() ?? api.ROOT_CONTEXT,
    with: (context, work, receiver, ...args) =>
      active.run(context, () => work.call(receiver as never, ...args)),
    bind: (context, target) =>
      typeof target === 'function'
        ? (((...args: unknown[]) => active.run(context, () => target(...args))) as typeof target)
        : target,
    enable: () => manager,
    disable: () => manager,
  }
  api.context.setGlobalContextManager(manager)
}
