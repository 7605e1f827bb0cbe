import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { ModelCall } from '../observe/model-calls.js'
import { Registry } from './prometheus.js'

/** Current values. */
export interface Gauges {
  runsRunning: number
  streamsOpen: number
  /** Absent when the store could not be read. */
  runsWaiting?: number
}

/**
 * Counts what the server does and writes it in Prometheus' text format. Labels come from closed lists only, and the
 * number of models with a label of their own is bounded.
 */
export class Metrics {
  readonly #registry = new Registry()
  readonly #runsStarted = this.#registry.counter(
    'lango_runs_started_total',
    'Runs that this process started.',
  )
  readonly #runsFinished = this.#registry.counter(
    'lango_runs_finished_total',
    'Runs that ended in this process, by reason.',
    true,
  )
  readonly #runsResumed = this.#registry.counter(
    'lango_runs_resumed_total',
    'Runs that this process continued: of a process that is gone, or after an answer. By the model of the run.',
    true,
  )
  readonly #runsWaiting = this.#registry.gauge(
    'lango_runs_waiting',
    'Runs of the app that wait for a person, in the store; at most 1000 are counted.',
  )
  readonly #runsRunning = this.#registry.gauge('lango_runs_running', 'Running runs of this process.')
  readonly #callsUnknown = this.#registry.counter(
    'lango_tool_calls_unknown_total',
    'Tool calls of which it is not known whether they took effect.',
  )
  readonly #tokens = this.#registry.counter(
    'lango_model_tokens_total',
    'Tokens of model calls. Those of a cache are part of the input, those of reasoning of the output.',
    true,
  )
  readonly #cost = this.#registry.counter(
    'lango_model_cost_usd_total',
    'Cost of model calls whose price is known, in US dollars.',
    true,
  )
  readonly #callDuration = this.#registry.histogram(
    'lango_model_call_duration_seconds',
    'Duration of model calls, by model and outcome: ok, or the code of the error.',
    SECONDS,
  )
  readonly #firstToken = this.#registry.histogram(
    'lango_model_time_to_first_token_seconds',
    'Time from a request to the first part of its answer, by model.',
    SECONDS,
  )
  readonly #models = new Set<string>()
  readonly #streamsOpen = this.#registry.gauge('lango_streams_open', 'Open event streams.')
  readonly #streamsDropped = this.#registry.counter(
    'lango_streams_dropped_total',
    'Streams closed because the client did not read.',
  )
  readonly #eventsSent = this.#registry.counter('lango_events_sent_total', 'Run events written to streams.')
  readonly #requests = this.#registry.counter(
    'lango_http_requests_total',
    'Requests by class of route and status.',
    true,
  )
  readonly #meanLag = this.#registry.gauge(
    'lango_event_loop_lag_seconds',
    'Mean delay of the event loop since the last scrape.',
  )
  readonly #p99Lag = this.#registry.gauge('lango_event_loop_lag_p99_seconds', '99th percentile of it.')
  readonly #memory = this.#registry.gauge('process_resident_memory_bytes', 'Resident memory.')
  readonly #heap = this.#registry.gauge('nodejs_heap_size_used_bytes', 'Heap in use.')
  readonly #uptime = this.#registry.gauge('process_uptime_seconds', 'Seconds since the process started.')
  readonly #lag = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS })

  constructor() {
    this.#lag.enable()
  }

  runStarted(): void {
    this.#runsStarted.inc()
  }

  runFinished(reason: string): void {
    this.#runsFinished.inc(1, { reason })
  }

  runResumed(reference: string): void {
    this.#runsResumed.inc(1, { model: this.#modelLabel(reference) })
  }

  modelCalled({ model: reference, durationMs, firstChunkMs, usage, error }: ModelCall): void {
    const model = this.#modelLabel(reference)
    this.#callDuration.observe(durationMs / 1000, { model, outcome: error ?? 'ok' })
    if (firstChunkMs !== undefined) this.#firstToken.observe(firstChunkMs / 1000, { model })
    if (!usage) return
    const counts = {
      input: usage.inputTokens,
      output: usage.outputTokens,
      cache_read: usage.cachedInputTokens,
      cache_write: usage.cacheWriteTokens,
      reasoning: usage.reasoningTokens,
    }
    for (const [type, count] of Object.entries(counts)) this.#tokens.inc(count, { model, type })
    if (usage.cost !== undefined) this.#cost.inc(usage.cost, { model })
  }

  /** A request may name any model of a provider. */
  #modelLabel(reference: string): string {
    if (this.#models.size < MOST_MODELS) this.#models.add(reference)
    return this.#models.has(reference) ? reference : 'other'
  }

  callUnknown(): void {
    this.#callsUnknown.inc()
  }

  eventsSent(count: number): void {
    this.#eventsSent.inc(count)
  }

  /** A stream was closed because its client did not read. */
  streamDropped(): void {
    this.#streamsDropped.inc()
  }

  request(route: RouteClass, status: number): void {
    this.#requests.inc(1, { route, status })
  }

  close(): void {
    this.#lag.disable()
  }

  async toText({ runsRunning, streamsOpen, runsWaiting }: Gauges): Promise<string> {
    if (runsWaiting !== undefined) this.#runsWaiting.set(runsWaiting)
    this.#runsRunning.set(runsRunning)
    this.#streamsOpen.set(streamsOpen)
    this.#meanLag.set(lagSeconds(this.#lag.mean))
    this.#p99Lag.set(lagSeconds(this.#lag.percentile(99)))
    this.#lag.reset()
    const { rss, heapUsed } = process.memoryUsage()
    this.#memory.set(rss)
    this.#heap.set(heapUsed)
    this.#uptime.set(process.uptime())
    return this.#registry.toText()
  }
}

const LAG_RESOLUTION_MS = 20
const MOST_MODELS = 100
const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160]

/** The histogram measures from one sample to the next, so the sampling interval is subtracted. */
function lagSeconds(nanoseconds: number): number {
  return Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e9 - LAG_RESOLUTION_MS / 1000) : 0
}

/** Routes are counted by class: the number of paths is not bounded. */
export type RouteClass = 'api' | 'stream' | 'protocol' | 'page' | 'health' | 'login'
