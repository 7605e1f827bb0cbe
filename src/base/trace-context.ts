/** W3C trace context: how a trace goes from process to process, and which one is active in this one. */

/** The headers `traceparent` and `tracestate` of the W3C Trace Context recommendation. */
export interface TraceContext {
  /** Such as `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01`. */
  traceparent: string
  tracestate?: string | undefined
}

/** What is stored with a run, so that every process that works on it adds to one trace. */
export interface RunTrace extends Partial<TraceContext> {
  /** The run's own span, in the form of `traceparent`: the process that ends the run reports it. */
  span?: string | undefined
  /** When the run was accepted, in milliseconds since 1970. */
  acceptedAt?: number | undefined
}

export interface SpanId {
  traceId: string
  spanId: string
  traceFlags: number
}

/** The ids in a `traceparent`; `undefined` when it is not valid. */
export function parseTraceparent(text: string): SpanId | undefined {
  const [, version, traceId = '', spanId = '', flags = '', more] = TRACEPARENT.exec(text) ?? []
  const isValid = version !== undefined && version !== 'ff' && !(version === '00' && more !== undefined)
  if (!isValid || NOTHING.test(traceId) || NOTHING.test(spanId)) return undefined
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) }
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const NOTHING = /^0+$/

export function formatTraceparent({ traceId, spanId, traceFlags }: SpanId): string {
  return `00-${traceId}-${spanId}-${(traceFlags & 255).toString(16).padStart(2, '0')}`
}

/**
 * The context that the headers of a request carry. As the recommendation says, headers that are not valid are ignored.
 * A client and its instrumentation may both have set one: the last one is the nearest.
 */
export function readTraceContext(header: (name: string) => string | undefined): TraceContext | undefined {
  const traceparent = header('traceparent')?.split(',').at(-1)?.trim() ?? ''
  if (!parseTraceparent(traceparent)) return undefined
  const tracestate = header('tracestate')
  const isUsable = tracestate !== undefined && tracestate.length <= LONGEST_STATE && STATE.test(tracestate)
  return { traceparent, ...(isUsable ? { tracestate } : {}) }
}

/** Whether a value is a context that `run({ trace })` takes. */
export function isTraceContext(value: unknown): value is TraceContext {
  if (typeof value !== 'object' || value === null) return false
  const { traceparent, tracestate = '', ...others } = value as Record<string, unknown>
  return (
    typeof traceparent === 'string' &&
    parseTraceparent(traceparent) !== undefined &&
    typeof tracestate === 'string' &&
    Object.keys(others).length === 0
  )
}

const LONGEST_STATE = 512
const STATE = /^[\x20-\x7e]*$/

/**
 * The headers of the span that is active here, or none. They are read from where every copy of OpenTelemetry's API keeps
 * its context manager: without OpenTelemetry nothing is loaded, and a page has no dependency on it.
 */
export function activeTraceHeaders(): Record<string, string> {
  const api = Reflect.get(globalThis, API) as OpenTelemetryGlobal | undefined
  const span = api?.context?.active()?.getValue(SPAN) as ActiveSpan | undefined
  const found = span?.spanContext()
  if (!found || !parseTraceparent(formatTraceparent(found))) return {}
  const tracestate = found.traceState?.serialize() ?? ''
  return { traceparent: formatTraceparent(found), ...(tracestate === '' ? {} : { tracestate }) }
}

const API = Symbol.for('opentelemetry.js.api.1')
const SPAN = Symbol.for('OpenTelemetry Context Key SPAN')

interface OpenTelemetryGlobal {
  context?: { active(): { getValue(key: symbol): unknown } | undefined }
}

interface ActiveSpan {
  spanContext(): SpanId & { traceState?: { serialize(): string } }
}
