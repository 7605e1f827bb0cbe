/** A tracer provider that sends spans to a collector, by OpenTelemetry's SDK of version 2 or 3. */
import { randomBytes } from 'node:crypto'
import type { Span } from '@opentelemetry/api'
import type { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import type { SpanId } from '../base/trace-context.js'
import { loadOptional } from '../packages.js'

export interface OtlpTarget {
  /** Where traces are posted. */
  url: string
  headers?: Readonly<Record<string, string>> | undefined
  serviceName: string
}

/** A provider of our own, not the global one: ADK's spans do not pass through it. */
export async function otlpTracers({ url, headers, serviceName }: OtlpTarget) {
  const load = () => import('@opentelemetry/exporter-trace-otlp-http')
  const { OTLPTraceExporter } = await loadOptional('telemetry', load)
  const sdk = await loadOptional('telemetry', sdkPackages)
  const exporter = new OTLPTraceExporter({
    url,
    ...(headers ? { headers: { ...headers } } : {}),
  })
  let chosen: SpanId | undefined
  const provider = new sdk.TracerProvider({
    resource: sdk.resourceFromAttributes({ 'service.name': serviceName }),
    spanProcessors: [sdk.batch(exporter)],
    idGenerator: {
      generateTraceId: () => chosen?.traceId ?? randomBytes(16).toString('hex'),
      generateSpanId: () => chosen?.spanId ?? randomBytes(8).toString('hex'),
    },
  })
  const withIds = (ids: SpanId, open: () => Span): Span => {
    chosen = ids
    try {
      return open()
    } finally {
      chosen = undefined
    }
  }
  return { provider, withIds }
}

/**
 * Version 2 of OpenTelemetry has the classes in sdk-trace-base, which also reads OTEL_TRACES_SAMPLER, OTEL_BSP_… and the
 * limits of spans; version 3 has them in sdk-trace alone.
 */
async function sdkPackages() {
  const { resourceFromAttributes } = await import('@opentelemetry/resources')
  try {
    const { BasicTracerProvider, BatchSpanProcessor } = await import('@opentelemetry/sdk-trace-base')
    const batch = (exporter: OTLPTraceExporter) => new BatchSpanProcessor(exporter)
    return { resourceFromAttributes, TracerProvider: BasicTracerProvider, batch }
  } catch (error) {
    // The error of the first one names the package that the sentence about missing packages asks for.
    const { TracerProvider, BatchSpanProcessor } = await import('@opentelemetry/sdk-trace').catch(() => {
      throw error
    })
    const batch = (exporter: OTLPTraceExporter) => new BatchSpanProcessor({ exporter })
    return { resourceFromAttributes, TracerProvider, batch }
  }
}
