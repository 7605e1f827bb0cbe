import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Counter, Gauge, Registry } from 'prom-client'

/** Current values. */
export interface Gauges {
  runsRunning: number
  streamsOpen: number
  /** Absent when the store could not be read. */
  runsWaiting?: number
}

/**
 * Counts what the server does and writes it in Prometheus' text format. Labels come from closed lists only. The
 * registry is its own: the package's global one belongs to the application.
 */
export class Metrics {
  readonly #registry = new Registry()
  readonly #runsStarted = this.#counter('lango_runs_started_total', 'Runs that this process started.')
  readonly #runsFinished = this.#counter(
    'lango_runs_finished_total',
    'Runs that ended in this process, by reason.',
    ['reason'],
  )
  readonly #runsResumed = this.#counter(
    'lango_runs_resumed_total',
    'Runs that this process continued: of a process that is gone, or after an answer.',
  )
  readonly #runsWaiting = this.#gauge(
    'lango_runs_waiting',
    'Runs of the app that wait for a person, in the store; at most 1000 are counted.',
  )
  readonly #runsRunning = this.#gauge('lango_runs_running', 'Running runs of this process.')
  readonly #callsUnknown = this.#counter(
    'lango_tool_calls_unknown_total',
    'Tool calls of which it is not known whether they took effect.',
  )
  readonly #streamsOpen = this.#gauge('lango_streams_open', 'Open event streams.')
  readonly #streamsDropped = this.#counter(
    'lango_streams_dropped_total',
    'Streams closed because the client did not read.',
  )
  readonly #eventsSent = this.#counter('lango_events_sent_total', 'Run events written to streams.')
  readonly #requests = this.#counter('lango_http_requests_total', 'Requests by class of route and status.', [
    'route',
    'status',
  ])
  readonly #meanLag = this.#gauge(
    'lango_event_loop_lag_seconds',
    'Mean delay of the event loop since the last scrape.',
  )
  readonly #p99Lag = this.#gauge('lango_event_loop_lag_p99_seconds', '99th percentile of it.')
  readonly #memory = this.#gauge('process_resident_memory_bytes', 'Resident memory.')
  readonly #heap = this.#gauge('nodejs_heap_size_used_bytes', 'Heap in use.')
  readonly #uptime = this.#gauge('process_uptime_seconds', 'Seconds since the process started.')
  readonly #lag = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS })

  constructor() {
    this.#lag.enable()
  }

  runStarted(): void {
    this.#runsStarted.inc()
  }

  runFinished(reason: string): void {
    this.#runsFinished.inc({ reason })
  }

  runResumed(): void {
    this.#runsResumed.inc()
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
    this.#requests.inc({ route, status })
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
    // Some parsers do not accept the empty lines between metrics.
    return (await this.#registry.metrics()).replaceAll('\n\n', '\n')
  }

  #counter<Label extends string = never>(name: string, help: string, labelNames: Label[] = []) {
    return new Counter({ name, help, labelNames, registers: [this.#registry] })
  }

  #gauge(name: string, help: string): Gauge {
    return new Gauge({ name, help, registers: [this.#registry] })
  }
}

const LAG_RESOLUTION_MS = 20

/** The histogram measures from one sample to the next, so the sampling interval is subtracted. */
function lagSeconds(nanoseconds: number): number {
  return Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e9 - LAG_RESOLUTION_MS / 1000) : 0
}

/** Routes are counted by class: the number of paths is not bounded. */
export type RouteClass = 'api' | 'stream' | 'protocol' | 'page' | 'health' | 'login'
