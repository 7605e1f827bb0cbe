import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A span as it came over the wire, its attributes as plain values. */
export interface ReceivedSpan {
  name: string
  service: string
  kind: number
  traceId: string
  spanId: string
  parentSpanId: string | undefined
  attributes: Record<string, unknown>
  status: { code?: number; message?: string }
  startMs: number
  endMs: number
}

/** One data point of a metric as it came over the wire. */
export interface ReceivedPoint {
  metric: string
  unit: string
  attributes: Record<string, unknown>
  /** Of a histogram. */
  count: number | undefined
  sum: number
  /** How many values are in the buckets, which must be all. */
  counted: number | undefined
}

export interface SpanCollector {
  readonly endpoint: string
  readonly spans: ReceivedSpan[]
  readonly points: ReceivedPoint[]
  /** Whole bodies and headers, for looking for what must not be there. */
  readonly received: string[]
  readonly services: string[]
  close(): Promise<void>
}

/** An OpenTelemetry collector that understands OTLP over HTTP with JSON. */
export async function startSpanCollector(): Promise<SpanCollector> {
  const spans: ReceivedSpan[] = []
  const points: ReceivedPoint[] = []
  const received: string[] = []
  const services: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', chunk => {
      body += chunk
    })
    request.on('end', () => {
      received.push(`${request.url}\n${JSON.stringify(request.headers)}\n${body}`)
      if (request.url === '/v1/traces') readBody(JSON.parse(body) as WireBody, spans, services)
      if (request.url === '/v1/metrics') points.push(...readMetrics(JSON.parse(body) as WireMetrics))
      response.setHeader('content-type', 'application/json')
      response.end('{}')
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    points,
    received,
    services,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

interface WireValue {
  stringValue?: string
  intValue?: number | string
  doubleValue?: number
  boolValue?: boolean
  arrayValue?: { values: WireValue[] }
}

interface WireAttribute {
  key: string
  value: WireValue
}

interface WireSpan {
  name: string
  kind: number
  traceId: string
  spanId: string
  parentSpanId?: string
  attributes: WireAttribute[]
  status: { code?: number; message?: string }
  startTimeUnixNano: string
  endTimeUnixNano: string
}

interface WireBody {
  resourceSpans: { resource: { attributes: WireAttribute[] }; scopeSpans: { spans: WireSpan[] }[] }[]
}

interface WirePoint {
  attributes: WireAttribute[]
  asDouble?: number
  count?: number
  sum?: number
  bucketCounts?: number[]
  explicitBounds?: number[]
}

interface WireMetric {
  name: string
  unit: string
  histogram?: { dataPoints: WirePoint[] }
  sum?: { dataPoints: WirePoint[] }
}

interface WireMetrics {
  resourceMetrics: { scopeMetrics: { metrics: WireMetric[] }[] }[]
}

function readMetrics({ resourceMetrics }: WireMetrics): ReceivedPoint[] {
  const metrics = resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(scope => scope.metrics))
  return metrics.flatMap(
    ({ name: metric, unit, histogram, sum }) =>
      (histogram ?? sum)?.dataPoints.map(point => ({
        metric,
        unit,
        attributes: plain(point.attributes),
        count: point.count,
        sum: point.sum ?? point.asDouble ?? 0,
        counted: point.bucketCounts?.reduce((all, each) => all + each, 0),
      })) ?? [],
  )
}

function readBody({ resourceSpans }: WireBody, spans: ReceivedSpan[], services: string[]): void {
  for (const { resource, scopeSpans } of resourceSpans) {
    const service = String(plain(resource.attributes)['service.name'])
    services.push(service)
    for (const span of scopeSpans.flatMap(scope => scope.spans)) {
      spans.push({
        name: span.name,
        service,
        kind: span.kind,
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId || undefined,
        attributes: plain(span.attributes),
        status: span.status,
        startMs: Number(BigInt(span.startTimeUnixNano) / 1_000_000n),
        endMs: Number(BigInt(span.endTimeUnixNano) / 1_000_000n),
      })
    }
  }
}

function plain(attributes: readonly WireAttribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plainValue(value)]))
}

function plainValue(value: WireValue): unknown {
  if (value.arrayValue) return value.arrayValue.values.map(plainValue)
  if (value.intValue !== undefined) return Number(value.intValue)
  return value.stringValue ?? value.doubleValue ?? value.boolValue
}
