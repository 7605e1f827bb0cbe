import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A span as it came over the wire, its attributes as plain values. */
export interface ReceivedSpan {
  name: string
  kind: number
  traceId: string
  spanId: string
  parentSpanId: string | undefined
  attributes: Record<string, unknown>
  status: { code?: number; message?: string }
  startMs: number
  endMs: number
}

export interface SpanCollector {
  readonly endpoint: string
  readonly spans: ReceivedSpan[]
  /** Whole bodies and headers, for looking for what must not be there. */
  readonly received: string[]
  readonly services: string[]
  close(): Promise<void>
}

/** An OpenTelemetry collector that understands OTLP over HTTP with JSON. */
export async function startSpanCollector(): Promise<SpanCollector> {
  const spans: ReceivedSpan[] = []
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
      response.setHeader('content-type', 'application/json')
      response.end('{}')
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
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

function readBody({ resourceSpans }: WireBody, spans: ReceivedSpan[], services: string[]): void {
  for (const { resource, scopeSpans } of resourceSpans) {
    services.push(String(plain(resource.attributes)['service.name']))
    for (const span of scopeSpans.flatMap(scope => scope.spans)) {
      spans.push({
        name: span.name,
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
