/** The spans of model calls and tools, made by those who make the calls: what they do belongs to the span. */
import type { Attributes, Context, Span } from '@opentelemetry/api'
import { AgentError } from '../errors.js'
import type { StreamEvent } from '../provider/stream-event.js'
import { isToolError } from '../session/message.js'
import type { ExecutedCall } from '../session/tool-calls.js'
import {
  boundedText,
  contentAttributes,
  finishReasonName,
  jsonText,
  modelAttributes,
  modelName,
  OutputParts,
  optionAttributes,
  usageAttributes,
} from './genai.js'
import type { CallFacts, CallTrace, ModelCall, StartedCall } from './model-calls.js'
import type { RunSpansOptions } from './spans.js'

/** Opens the span of a model call that is about to be sent. */
export function traceModelCall(call: StartedCall, parent: Context, options: RunSpansOptions): CallTrace {
  const { api, tracer, content } = options
  const { model, request, sent, sessionId, runId } = call
  const attributes: Attributes = {
    'gen_ai.operation.name': 'chat',
    ...modelAttributes(model),
    ...optionAttributes(request.options),
    ...(sessionId === undefined ? {} : { 'gen_ai.conversation.id': sessionId }),
    ...(runId === undefined ? {} : { 'lango.run.id': runId }),
    ...(sent ? { 'lango.repair.profile': sent.profile, 'lango.repair.count': sent.repairs.length } : {}),
    ...(content ? contentAttributes(request) : {}),
  }
  const kind = api.SpanKind.CLIENT
  const span = tracer.startSpan(`chat ${modelName(model)}`, { kind, attributes }, parent)
  const inside = api.trace.setSpan(parent, span)
  let output = content ? new OutputParts() : undefined
  return {
    within: work => api.context.with(inside, work),
    event: event => {
      if (output) addOutput(output, event)
      if (event.type === 'restart') {
        output = content ? new OutputParts() : undefined
        span.addEvent('lango.restart', { 'lango.reason': event.error.code })
      }
      if (event.type === 'wait')
        span.addEvent('lango.model-wait', { 'lango.wait_ms': event.waitMs, 'lango.reason': event.reason })
    },
    end: (ended, facts, error) => {
      span.setAttributes({ ...endAttributes(ended), ...factAttributes(facts) })
      const reason = ended.finishReason && finishReasonName(ended.finishReason)
      if (output) span.setAttribute('gen_ai.output.messages', output.toJson(reason ?? 'error'))
      if (error) markFailed(span, options, error.code, error.message)
      span.end()
    },
  }
}

function addOutput(output: OutputParts, event: StreamEvent): void {
  if (event.type === 'text-delta') output.add({ type: 'text', text: event.text })
  else if (event.type === 'reasoning-delta') output.add({ type: 'reasoning', text: event.text })
  else if (event.type === 'tool-call' || event.type === 'media' || event.type === 'vendor') output.add(event)
}

function endAttributes({ usage, finishReason, firstChunkMs }: ModelCall): Attributes {
  return {
    ...(usage ? usageAttributes(usage) : {}),
    ...(finishReason ? { 'gen_ai.response.finish_reasons': [finishReasonName(finishReason)] } : {}),
    ...(firstChunkMs === undefined ? {} : { 'gen_ai.response.time_to_first_chunk': firstChunkMs / 1000 }),
  }
}

/** What a call's wire and vendor say, for spans and metrics. */
export function factAttributes({ address, port, responseId, responseModel }: CallFacts): Attributes {
  return {
    ...(address === undefined ? {} : { 'server.address': address }),
    ...(port === undefined ? {} : { 'server.port': port }),
    ...(responseId === undefined ? {} : { 'gen_ai.response.id': responseId }),
    ...(responseModel === undefined ? {} : { 'gen_ai.response.model': responseModel }),
  }
}

/** Executes a tool inside a span. It ends with the tool, or when nobody waits for the tool any more. */
export async function traceTool<Result>(
  call: ExecutedCall,
  parent: Context,
  options: RunSpansOptions,
  work: () => Promise<Result>,
): Promise<Result> {
  const { api, tracer, content } = options
  const { tool, callId, args, description, signal } = call
  const attributes: Attributes = {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': tool,
    'gen_ai.tool.call.id': callId,
    'gen_ai.tool.type': 'function',
    ...(description ? { 'gen_ai.tool.description': boundedText(description) } : {}),
    ...(content ? { 'gen_ai.tool.call.arguments': jsonText(args) } : {}),
  }
  const span = tracer.startSpan(`execute_tool ${tool}`, { kind: api.SpanKind.INTERNAL, attributes }, parent)
  const stopped = () => {
    markFailed(span, options, 'aborted')
    span.end()
  }
  if (signal.aborted) stopped()
  signal.addEventListener('abort', stopped, { once: true })
  try {
    const result = await api.context.with(api.trace.setSpan(parent, span), work)
    if (content && result !== undefined && span.isRecording())
      span.setAttribute('gen_ai.tool.call.result', jsonText(result))
    if (isToolError(result)) markFailed(span, options, 'tool-error', jsonText(result))
    return result
  } catch (error) {
    const type = error instanceof AgentError ? error.code : error instanceof Error ? error.name : '_OTHER'
    markFailed(span, options, type, error instanceof Error ? error.message : String(error))
    throw error
  } finally {
    signal.removeEventListener('abort', stopped)
    if (span.isRecording()) span.end()
  }
}

function markFailed(span: Span, { api, content }: RunSpansOptions, type: string, message?: string): void {
  // One that was stopped has ended, and one that is not sampled records nothing.
  if (!span.isRecording()) return
  span.setAttribute('error.type', type)
  span.setStatus({
    code: api.SpanStatusCode.ERROR,
    ...(content && message !== undefined ? { message: boundedText(message) } : {}),
  })
}
