/**
 * Anthropic's stream → events. Blocks open and close by number; a call is emitted when its block closes; the
 * answer is over at `message_stop` and not before.
 */
import { own } from '../../base/own.js'
import { AgentError } from '../../errors.js'
import type { Usage } from '../../session/usage.js'
import { AnswerSources } from '../answer-sources.js'
import { AnswerAssembly, type AnswerContext } from '../assemble-stream.js'
import { callObserver } from '../call-observer.js'
import type { FinishReason, StreamEvent } from '../stream-event.js'
import { CONTAINER_TEXT, type ContainerValue, type ContainerWire, toContainer } from './container.js'
import { readServerTool, serverToolText } from './server-tool-blocks.js'

export interface AnthropicEventWire {
  type: string
  index?: number
  message?: {
    id?: string
    model?: string
    usage?: AnthropicUsageWire
    container?: ContainerWire | null
    input_transformations?: readonly TransformationWire[] | null
  }
  input_transformations?: readonly TransformationWire[] | null
  content_block?: AnthropicAnswerBlockWire
  delta?: AnthropicDeltaWire
  usage?: AnthropicUsageWire
}

/** One thinking block that the API dropped from the request, or that failed its check and was kept. */
interface TransformationWire {
  type?: string
  path?: string
  reason?: string
}

interface AnthropicAnswerBlockWire {
  type: string
  id?: string
  name?: string
  input?: unknown
  text?: string
  thinking?: string
  signature?: string
  data?: string
  tool_use_id?: string
  content?: unknown
}

interface AnthropicDeltaWire {
  type?: string
  text?: string
  thinking?: string
  signature?: string
  partial_json?: string
  citation?: { url?: string; title?: string | null; cited_text?: string }
  stop_reason?: string | null
  container?: ContainerWire | null
  stop_details?: { explanation?: string | null } | null
}

export interface AnthropicUsageWire {
  input_tokens?: number | null
  output_tokens?: number | null
  cache_read_input_tokens?: number | null
  cache_creation_input_tokens?: number | null
  cache_creation?: { ephemeral_1h_input_tokens?: number | null } | null
  output_tokens_details?: { thinking_tokens?: number | null } | null
}

interface ReadState {
  answer: AnswerAssembly
  /** Blocks that are emitted when they close: calls and the vendor's own. */
  open: Map<number, { block: AnthropicAnswerBlockWire; json: string }>
  usage: AnthropicUsageWire
  sources: AnswerSources
  /** The text of the block that is open, and the pages that it cites. */
  cited: { text: string; pages: { url: string; title?: string | null | undefined }[] }
  container?: ContainerValue | undefined
  stopReason?: string
  stopMessage?: string
}

/** Reads a whole answer. */
export async function* fromAnthropicStream(
  events: AsyncIterable<AnthropicEventWire>,
  context: AnswerContext,
): AsyncGenerator<StreamEvent> {
  const state: ReadState = {
    answer: new AnswerAssembly(context),
    open: new Map(),
    usage: {},
    sources: new AnswerSources(),
    cited: { text: '', pages: [] },
  }
  const observer = callObserver.getStore()
  for await (const event of events) {
    if (event.message) observer?.answered(event.message)
    yield* fromEvent(event, state, context)
  }
  yield* state.answer.end()
}

function fromEvent(event: AnthropicEventWire, state: ReadState, context: AnswerContext): StreamEvent[] {
  const index = event.index ?? 0
  switch (event.type) {
    case 'message_start':
      takeUsage(event.message?.usage, state)
      state.container = toContainer(event.message?.container)
      return receiptsOf(event.message?.input_transformations, context)
    case 'content_block_start':
      return event.content_block ? openBlock(event.content_block, index, state) : []
    case 'content_block_delta':
      return event.delta ? fromDelta(event.delta, index, state) : []
    case 'content_block_stop':
      return closeBlock(index, state)
    case 'message_delta':
      takeUsage(event.usage, state)
      state.container = toContainer(event.delta?.container) ?? state.container
      if (event.delta?.stop_reason) state.stopReason = event.delta.stop_reason
      if (event.delta?.stop_details?.explanation) state.stopMessage = event.delta.stop_details.explanation
      return receiptsOf(event.input_transformations, context)
    case 'message_stop':
      finish(state, context)
      return state.container ? state.answer.vendor(state.container, CONTAINER_TEXT) : []
    default:
      return []
  }
}

/** What the API did to the request's thinking, in the words of our own receipts. */
function receiptsOf(
  transformations: readonly TransformationWire[] | null | undefined,
  context: AnswerContext,
): StreamEvent[] {
  const repairs = (transformations ?? []).flatMap(({ type, path, reason }) => {
    const known = own(TRANSFORMATIONS, type ?? '')
    const [, index = '0'] = /^messages\.(\d+)/.exec(path ?? '') ?? []
    const at = context.places?.[Number(index)] ?? Number(index)
    const detail = `${known?.what}${reason === undefined ? '' : ` (${reason})`}: ${path ?? 'no path was given'}.`
    return known ? [{ step: 'input-transformations', kind: known.kind, at, detail }] : []
  })
  return repairs.length > 0 ? [{ type: 'receipts', repairs }] : []
}

const TRANSFORMATIONS: Readonly<Record<string, { kind: string; what: string }>> = {
  thinking_dropped: { kind: 'leave-out', what: 'The API left a thinking block out of the request' },
  thinking_mismatch_allowed: {
    kind: 'allow',
    what: 'The API accepted a thinking block that is bound to another conversation',
  },
}

function openBlock(block: AnthropicAnswerBlockWire, index: number, state: ReadState): StreamEvent[] {
  const { answer } = state
  switch (block.type) {
    case 'text':
      state.cited = { text: block.text ?? '', pages: [] }
      return answer.text(block.text ?? '', { key: index })
    case 'thinking':
      return answer.reasoning(block.thinking ?? '', { key: index, signature: block.signature || undefined })
    case 'redacted_thinking':
      return answer.reasoning('', { key: index, signature: block.data ?? '', redacted: true })
    default:
      state.open.set(index, { block, json: '' })
      return []
  }
}

function fromDelta(delta: AnthropicDeltaWire, index: number, state: ReadState): StreamEvent[] {
  const { answer } = state
  switch (delta.type) {
    case 'text_delta':
      state.cited.text += delta.text ?? ''
      return answer.text(delta.text ?? '', { key: index })
    case 'thinking_delta':
      return answer.reasoning(delta.thinking ?? '', { key: index })
    case 'signature_delta':
      return answer.reasoning('', { key: index, signature: delta.signature })
    case 'citations_delta': {
      const { url, title } = delta.citation ?? {}
      if (url) state.cited.pages.push({ url, title })
      return []
    }
    case 'input_json_delta': {
      const open = state.open.get(index)
      if (open) open.json += delta.partial_json ?? ''
      return []
    }
    default:
      return []
  }
}

function closeBlock(index: number, state: ReadState): StreamEvent[] {
  const open = state.open.get(index)
  if (open === undefined) {
    for (const page of state.cited.pages) state.sources.cite(page, state.cited.text)
    state.cited = { text: '', pages: [] }
    return []
  }
  state.open.delete(index)
  const { block, json } = open
  if (block.type === 'tool_use') {
    // The whole input may stand in the opening event, as compatible servers send it.
    return state.answer.call({ id: block.id, name: block.name, args: json === '' ? block.input : json })
  }
  const value = json === '' ? block : { ...block, input: parseOrKeep(json) }
  readServerTool(value, state.sources)
  return state.answer.vendor(value, serverToolText(value))
}

function parseOrKeep(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return json
  }
}

function finish(state: ReadState, context: AnswerContext): void {
  state.answer.usage(toUsage(state.usage))
  state.answer.metadata(state.sources.metadata)
  const reason = state.stopReason ?? 'end_turn'
  if (reason === 'model_context_window_exceeded') {
    throw new AgentError(
      'context-overflow',
      `${context.provider}/${context.model} stopped because its context window is full (${reason}).`,
      { details: { provider: context.provider, model: context.model, providerCode: reason } },
    )
  }
  const known = own(FINISH_REASONS, reason)
  state.answer.finish(
    known ?? 'other',
    state.stopMessage ?? (known && known !== 'blocked' ? undefined : reason),
  )
}

const FINISH_REASONS: Readonly<Record<string, FinishReason>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'tool-calls',
  max_tokens: 'length',
  refusal: 'blocked',
}

/** Figures are cumulative; those of the last event that has them count. */
function takeUsage(usage: AnthropicUsageWire | undefined, state: ReadState): void {
  for (const [key, value] of Object.entries(usage ?? {})) {
    if (value !== null && value !== undefined) state.usage = { ...state.usage, [key]: value }
  }
}

/** Anthropic's input tokens exclude cached tokens; Lango's include them. */
function toUsage(usage: AnthropicUsageWire): Partial<Usage> {
  const read = usage.cache_read_input_tokens ?? 0
  const written = usage.cache_creation_input_tokens ?? 0
  const writtenLong = usage.cache_creation?.ephemeral_1h_input_tokens
  const thinking = usage.output_tokens_details?.thinking_tokens
  return {
    inputTokens: (usage.input_tokens ?? 0) + read + written,
    outputTokens: usage.output_tokens ?? 0,
    ...(usage.cache_read_input_tokens == null ? {} : { cachedInputTokens: read }),
    ...(usage.cache_creation_input_tokens == null ? {} : { cacheWriteTokens: written }),
    ...(writtenLong ? { cacheWrite1hTokens: writtenLong } : {}),
    ...(thinking == null ? {} : { reasoningTokens: thinking }),
  }
}
