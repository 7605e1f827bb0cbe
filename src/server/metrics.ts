import { monitorEventLoopDelay } from 'node:perf_hooks'

/** What is true at the moment of asking. */
export interface Gauges {
  runsRunning: number
  streamsOpen: number
}

/** Counts what the server does and writes it in Prometheus' text format. Labels come from closed lists only. */
export class Metrics {
  #runsStarted = 0
  #eventsSent = 0
  #streamsDropped = 0
  readonly #runsFinished = new Map<string, number>()
  readonly #requests = new Map<string, number>()
  readonly #lag = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS })

  constructor() {
    this.#lag.enable()
  }

  runStarted(): void {
    this.#runsStarted += 1
  }

  runFinished(reason: string): void {
    add(this.#runsFinished, `reason="${reason}"`)
  }

  eventsSent(count: number): void {
    this.#eventsSent += count
  }

  /** A client took nothing for too long and was let go. */
  streamDropped(): void {
    this.#streamsDropped += 1
  }

  request(route: RouteClass, status: number): void {
    add(this.#requests, `route="${route}",status="${status}"`)
  }

  close(): void {
    this.#lag.disable()
  }

  toText({ runsRunning, streamsOpen }: Gauges): string {
    const memory = process.memoryUsage()
    const [mean, p99] = [lagSeconds(this.#lag.mean), lagSeconds(this.#lag.percentile(99))]
    this.#lag.reset()
    return [
      counter('lango_runs_started_total', 'Runs that this process started.', this.#runsStarted),
      labelled(
        'lango_runs_finished_total',
        'Runs that ended in this process, by reason.',
        this.#runsFinished,
      ),
      gauge('lango_runs_running', 'Runs that go on in this process.', runsRunning),
      gauge('lango_streams_open', 'Open event streams.', streamsOpen),
      counter('lango_streams_dropped_total', 'Streams closed because nobody read.', this.#streamsDropped),
      counter('lango_events_sent_total', 'Run events written to streams.', this.#eventsSent),
      labelled('lango_http_requests_total', 'Requests by class of route and status.', this.#requests),
      gauge('lango_event_loop_lag_seconds', 'Mean delay of the event loop since the last scrape.', mean),
      gauge('lango_event_loop_lag_p99_seconds', '99th percentile of it.', p99),
      gauge('process_resident_memory_bytes', 'Resident memory.', memory.rss),
      gauge('nodejs_heap_size_used_bytes', 'Heap in use.', memory.heapUsed),
      gauge('process_uptime_seconds', 'Seconds since the process began.', process.uptime()),
    ].join('')
  }
}

const LAG_RESOLUTION_MS = 20

/** The histogram measures from one look to the next, so the time between two looks is no delay. */
function lagSeconds(nanoseconds: number): number {
  return Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e9 - LAG_RESOLUTION_MS / 1000) : 0
}

/** Routes are counted by class: a label for each path would grow without end. */
export type RouteClass = 'api' | 'stream' | 'protocol' | 'page' | 'health' | 'login'

function add(counts: Map<string, number>, labels: string): void {
  counts.set(labels, (counts.get(labels) ?? 0) + 1)
}

function counter(name: string, help: string, value: number): string {
  return `${header(name, help, 'counter')}${name} ${value}\n`
}

function gauge(name: string, help: string, value: number): string {
  return `${header(name, help, 'gauge')}${name} ${value}\n`
}

function labelled(name: string, help: string, counts: ReadonlyMap<string, number>): string {
  const lines = [...counts].map(([labels, value]) => `${name}{${labels}} ${value}\n`)
  return `${header(name, help, 'counter')}${lines.join('')}`
}

function header(name: string, help: string, type: string): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`
}
