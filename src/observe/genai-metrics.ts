/**
 * The metrics of model calls and runs, by the GenAI conventions: through the meter of the application, or sent to a
 * collector as OTLP over HTTP. The few instruments here do not need OpenTelemetry's SDK for metrics (ADR 0079).
 */
import type { Attributes, Meter } from '@opentelemetry/api'
import { messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import { factAttributes } from './call-spans.js'
import { modelAttributes } from './genai.js'
import type { CallFacts, ModelCall } from './model-calls.js'

/** What the instruments need of OpenTelemetry's `Meter`. */
export type SmallMeter = Pick<Meter, 'createHistogram' | 'createCounter'>

export interface GenAiMetrics {
  callEnded(call: ModelCall, facts: CallFacts): void
  runResumed(model: string | undefined): void
}

const TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864]
const DURATIONS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const FIRST_CHUNK = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

export function createMetrics(meter: SmallMeter): GenAiMetrics {
  const histogram = (name: string, unit: string, description: string, explicitBucketBoundaries: number[]) =>
    meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries } })
  const tokens = histogram('gen_ai.client.token.usage', '{token}', 'Tokens of model calls.', TOKENS)
  const duration = histogram('gen_ai.client.operation.duration', 's', 'Duration of model calls.', DURATIONS)
  const firstChunk = histogram(
    'gen_ai.client.operation.time_to_first_chunk',
    's',
    'Time from a request to the first part of its answer.',
    FIRST_CHUNK,
  )
  const cost = meter.createCounter('lango.client.cost', { unit: 'USD', description: 'Cost of model calls.' })
  const resumed = meter.createCounter('lango.run.resumed', { unit: '{run}', description: 'Resumed runs.' })
  return {
    callEnded: ({ model, durationMs, firstChunkMs, usage, error }, facts) => {
      const { 'gen_ai.response.id': _id, ...about } = factAttributes(facts)
      const attributes = { 'gen_ai.operation.name': 'chat', ...modelAttributes(model), ...about }
      duration.record(durationMs / 1000, { ...attributes, ...(error ? { 'error.type': error } : {}) })
      if (firstChunkMs !== undefined) firstChunk.record(firstChunkMs / 1000, attributes)
      if (!usage) return
      tokens.record(usage.inputTokens, { ...attributes, 'gen_ai.token.type': 'input' })
      tokens.record(usage.outputTokens, { ...attributes, 'gen_ai.token.type': 'output' })
      if (usage.cost !== undefined) cost.add(usage.cost, attributes)
    },
    runResumed: model => resumed.add(1, model ? modelAttributes(model) : {}),
  }
}

export interface OtlpMeterOptions {
  url: string
  headers: Readonly<Record<string, string>>
  serviceName: string
  logger: Logger
}

interface Point {
  attributes: Attributes
  count: number
  sum: number
  buckets: number[]
}

interface Instrument {
  name: string
  unit: string
  description: string
  /** Of a histogram. */
  boundaries?: readonly number[]
  points: Map<string, Point>
}

/** Adds up values since it was made, and sends the sums every minute and at the end. */
export class OtlpMeter implements SmallMeter {
  readonly #options: OtlpMeterOptions
  readonly #instruments: Instrument[] = []
  readonly #startedAt = nanoseconds(Date.now())
  readonly #timer = setInterval(() => void this.send(), SEND_EVERY_MS).unref()
  #isRefused = false

  constructor(options: OtlpMeterOptions) {
    this.#options = options
  }

  createHistogram(
    ...[name, { unit = '', description = '', advice } = {}]: Parameters<Meter['createHistogram']>
  ) {
    const boundaries = advice?.explicitBucketBoundaries ?? []
    const instrument = this.#add({ name, unit, description, boundaries, points: new Map() })
    return { record: (value: number, attributes: Attributes = {}) => add(instrument, value, attributes) }
  }

  createCounter(...[name, { unit = '', description = '' } = {}]: Parameters<Meter['createCounter']>) {
    const instrument = this.#add({ name, unit, description, points: new Map() })
    return { add: (value: number, attributes: Attributes = {}) => add(instrument, value, attributes) }
  }

  #add(instrument: Instrument): Instrument {
    this.#instruments.push(instrument)
    return instrument
  }

  /** A failure is logged. A collector that takes no metrics is not asked again. */
  async send(): Promise<void> {
    const { url, headers, logger } = this.#options
    const used = this.#instruments.filter(({ points }) => points.size > 0)
    if (used.length === 0 || this.#isRefused) return
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(this.#body(used)),
        signal: AbortSignal.timeout(SEND_TIMEOUT_MS),
      })
      await response.body?.cancel()
      if (response.ok) return
      this.#isRefused = NO_METRICS.has(response.status)
      const advice = this.#isRefused ? '. It takes no metrics: set `telemetry.metrics` to false' : ''
      logger.warn(`Metrics were refused by the collector${advice}`, { status: response.status })
    } catch (error) {
      logger.warn('Metrics could not be sent', { error: messageOf(error) })
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.send()
  }

  #body(instruments: readonly Instrument[]): object {
    const time = { startTimeUnixNano: this.#startedAt, timeUnixNano: nanoseconds(Date.now()) }
    const resource = { attributes: wireAttributes({ 'service.name': this.#options.serviceName }) }
    const metrics = instruments.map(instrument => toMetric(instrument, time))
    return { resourceMetrics: [{ resource, scopeMetrics: [{ scope: { name: 'lango' }, metrics }] }] }
  }
}

const SEND_EVERY_MS = 60_000
const SEND_TIMEOUT_MS = 10_000
/** The route or the format does not exist there. */
const NO_METRICS: ReadonlySet<number> = new Set([404, 405, 415, 501])
/** Models come from requests, so their number is not bounded by us. */
const MOST_POINTS = 2000
const OVERFLOW = { 'otel.metric.overflow': true }

function add({ points, boundaries }: Instrument, value: number, attributes: Attributes): void {
  const given = JSON.stringify(attributes)
  const isNew = !points.has(given)
  const kept = isNew && points.size >= MOST_POINTS ? OVERFLOW : attributes
  const key = kept === attributes ? given : JSON.stringify(kept)
  const buckets = () => new Array<number>((boundaries?.length ?? 0) + 1).fill(0)
  const point = points.get(key) ?? { attributes: kept, count: 0, sum: 0, buckets: buckets() }
  points.set(key, point)
  point.count += 1
  point.sum += value
  if (!boundaries) return
  const found = boundaries.findIndex(boundary => value <= boundary)
  const at = found < 0 ? boundaries.length : found
  point.buckets[at] = (point.buckets[at] ?? 0) + 1
}

function toMetric({ name, unit, description, boundaries, points }: Instrument, time: object): object {
  const about = { name, unit, description }
  const common = ({ attributes }: Point) => ({ attributes: wireAttributes(attributes), ...time })
  const all = [...points.values()]
  if (!boundaries) {
    const dataPoints = all.map(point => ({ ...common(point), asDouble: point.sum }))
    return { ...about, sum: { aggregationTemporality: CUMULATIVE, isMonotonic: true, dataPoints } }
  }
  const dataPoints = all.map(point => ({
    ...common(point),
    count: point.count,
    sum: point.sum,
    bucketCounts: point.buckets,
    explicitBounds: boundaries,
  }))
  return { ...about, histogram: { aggregationTemporality: CUMULATIVE, dataPoints } }
}

const CUMULATIVE = 2

function wireAttributes(attributes: Attributes): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: wireValue(value) }))
}

function wireValue(value: unknown): object {
  if (typeof value === 'number') return Number.isInteger(value) ? { intValue: value } : { doubleValue: value }
  return typeof value === 'boolean' ? { boolValue: value } : { stringValue: String(value) }
}

function nanoseconds(ms: number): string {
  return `${BigInt(ms) * 1_000_000n}`
}

/** `name=value,name=value`, percent-encoded, as the exporter of spans reads the same variable. */
export function headerList(text = ''): [string, string][] {
  return text.split(',').flatMap((pair): [string, string][] => {
    const at = pair.indexOf('=')
    if (at < 1) return []
    return [[pair.slice(0, at).trim(), decodeURIComponent(pair.slice(at + 1).trim())]]
  })
}
