/**
 * Converse's stream → events. Blocks open and close by number; a call is emitted when its block closes; the answer is
 * over at `messageStop`, and the figures follow it. An answer that came whole is read as the stream that it would be.
 */
import { own } from '../../base/own.js'
import { AgentError } from '../../errors.js'
import { AnswerAssembly, type AnswerContext } from '../assemble-stream.js'
import type { FinishReason, StreamEvent } from '../stream-event.js'
import type { ConverseBlockWire } from './to-converse-request.js'

export interface ConverseEventWire {
  contentBlockStart?: { contentBlockIndex?: number | undefined; start?: { toolUse?: ToolStartWire } }
  contentBlockDelta?: { contentBlockIndex?: number | undefined; delta?: ConverseDeltaWire }
  contentBlockStop?: { contentBlockIndex?: number | undefined }
  messageStop?: { stopReason?: string | undefined }
  metadata?: { usage?: ConverseUsageWire | undefined }
}

interface ToolStartWire {
  toolUseId?: string | undefined
  name?: string | undefined
}

interface ConverseDeltaWire {
  text?: string
  toolUse?: { input?: string | undefined }
  reasoningContent?: { text?: string; signature?: string }
}

interface ConverseUsageWire {
  inputTokens?: number | undefined
  outputTokens?: number | undefined
  cacheReadInputTokens?: number | undefined
  cacheWriteInputTokens?: number | undefined
}

/** An answer that was not streamed. */
export interface ConverseAnswerWire {
  output?: { message?: { content?: readonly AnswerBlockWire[] | undefined } | undefined } | undefined
  stopReason?: string | undefined
  usage?: ConverseUsageWire | undefined
}

type AnswerBlockWire = Pick<ConverseBlockWire, 'text' | 'toolUse'> & {
  reasoningContent?: { reasoningText?: { text?: string | undefined } }
}

/** Reads a whole answer. */
export async function* fromConverseStream(
  events: AsyncIterable<ConverseEventWire>,
  context: AnswerContext,
): AsyncGenerator<StreamEvent> {
  const answer = new AnswerAssembly(context)
  const open = new Map<number, { start: ToolStartWire; json: string }>()
  for await (const { contentBlockStart, contentBlockDelta, contentBlockStop, ...event } of events) {
    if (contentBlockStart?.start?.toolUse) {
      open.set(contentBlockStart.contentBlockIndex ?? 0, { start: contentBlockStart.start.toolUse, json: '' })
    }
    if (contentBlockDelta?.delta) {
      const index = contentBlockDelta.contentBlockIndex ?? 0
      const { text, toolUse, reasoningContent } = contentBlockDelta.delta
      yield* answer.reasoning(reasoningContent?.text ?? '', { key: index })
      yield* answer.text(text ?? '', { key: index })
      const call = open.get(index)
      if (call) call.json += toolUse?.input ?? ''
    }
    const closed = contentBlockStop && open.get(contentBlockStop.contentBlockIndex ?? 0)
    if (closed) {
      open.delete(contentBlockStop.contentBlockIndex ?? 0)
      yield* answer.call({ id: closed.start.toolUseId, name: closed.start.name, args: closed.json })
    }
    if (event.messageStop) finish(event.messageStop.stopReason ?? '', answer, context)
    if (event.metadata?.usage) answer.usage(toUsage(event.metadata.usage))
  }
  // A limit of length may cut a call before its block closes: what is left of it is no call.
  yield* answer.end()
}

/** The events of an answer that came whole. */
export async function* eventsOf(answer: ConverseAnswerWire): AsyncGenerator<ConverseEventWire> {
  const content = answer.output?.message?.content ?? []
  for (const [contentBlockIndex, { text, toolUse, reasoningContent }] of content.entries()) {
    const thought = reasoningContent?.reasoningText?.text
    if (toolUse) yield { contentBlockStart: { contentBlockIndex, start: { toolUse } } }
    const delta: ConverseDeltaWire = {
      ...(text === undefined ? {} : { text }),
      ...(thought === undefined ? {} : { reasoningContent: { text: thought } }),
      ...(toolUse ? { toolUse: { input: JSON.stringify(toolUse.input ?? {}) } } : {}),
    }
    yield { contentBlockDelta: { contentBlockIndex, delta } }
    yield { contentBlockStop: { contentBlockIndex } }
  }
  yield { messageStop: { stopReason: answer.stopReason } }
  if (answer.usage) yield { metadata: { usage: answer.usage } }
}

function finish(reason: string, answer: AnswerAssembly, context: AnswerContext): void {
  if (reason === 'model_context_window_exceeded') {
    throw new AgentError(
      'context-overflow',
      `${context.provider}/${context.model} reports that the conversation has no room left for an answer.`,
      { details: { provider: context.provider, model: context.model, providerCode: reason } },
    )
  }
  const known = own(FINISH_REASONS, reason)
  answer.finish(known ?? 'other', known === undefined ? reason : MESSAGES[reason])
}

const FINISH_REASONS: Readonly<Record<string, FinishReason>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'tool-calls',
  max_tokens: 'length',
  content_filtered: 'blocked',
  guardrail_intervened: 'blocked',
  malformed_tool_use: 'malformed-call',
  malformed_model_output: 'malformed-call',
}

const MESSAGES: Readonly<Record<string, string>> = {
  content_filtered: 'The answer was filtered.',
  guardrail_intervened: 'A guardrail intervened.',
}

/** Tokens that were read from or written to the cache are not part of AWS's count of the input. */
function toUsage(usage: ConverseUsageWire) {
  const { inputTokens = 0, outputTokens = 0, cacheReadInputTokens, cacheWriteInputTokens } = usage
  const input = inputTokens + (cacheReadInputTokens ?? 0) + (cacheWriteInputTokens ?? 0)
  return {
    inputTokens: input,
    outputTokens,
    totalTokens: input + outputTokens,
    ...(cacheReadInputTokens === undefined ? {} : { cachedInputTokens: cacheReadInputTokens }),
    ...(cacheWriteInputTokens === undefined ? {} : { cacheWriteTokens: cacheWriteInputTokens }),
  }
}
