/**
 * A Chat Completions stream → events. Servers differ in every detail of it: indexes and ids may be missing or
 * repeated, arguments come whole or in pieces, reasoning has three names, usage comes with the last choice,
 * after it, or in a corner of its own, and the closing reason may come twice.
 */
import { own } from '../../base/own.js'
import { AgentError } from '../../errors.js'
import type { Usage } from '../../session/usage.js'
import { AnswerSources, Logprobs } from '../answer-sources.js'
import { AnswerAssembly, type AnswerContext } from '../assemble-stream.js'
import { callObserver } from '../call-observer.js'
import { sealFields } from '../sealed-fields.js'
import type { FinishReason, StreamEvent } from '../stream-event.js'
import { StreamedDetails } from './gateway-fields.js'

export interface ChatChunkWire {
  id?: string | null
  model?: string | null
  choices?: readonly ChatChoiceWire[] | null
  usage?: ChatUsageWire | null
  x_groq?: { usage?: ChatUsageWire | null } | null
}

interface ChatChoiceWire {
  index?: number | null
  delta?: ChatDeltaWire | null
  message?: ChatDeltaWire | null
  finish_reason?: string | null
  logprobs?: { content?: unknown } | null
}

interface ChatDeltaWire {
  content?: string | readonly ChatContentPieceWire[] | null
  reasoning_content?: string | null
  reasoning?: string | null
  reasoning_details?: readonly unknown[] | null
  extra_content?: Record<string, unknown> | null
  refusal?: string | null
  tool_calls?: readonly ChatCallPieceWire[] | null
  annotations?: readonly ChatAnnotationWire[] | null
}

/** A page that the answer cites; the numbers are places in its whole text. */
interface ChatAnnotationWire {
  url_citation?: { url?: string; title?: string | null; start_index?: number; end_index?: number } | null
}

interface ChatContentPieceWire {
  type?: string
  text?: string
  thinking?: string | readonly { text?: string }[]
}

interface ChatCallPieceWire {
  index?: number | null
  id?: string | null
  extra_content?: Record<string, unknown> | null
  function?: { name?: string | null; arguments?: unknown } | null
}

interface ChatUsageWire {
  prompt_tokens?: number | null
  completion_tokens?: number | null
  total_tokens?: number | null
  prompt_tokens_details?: { cached_tokens?: number | null; cache_write_tokens?: number | null } | null
  completion_tokens_details?: { reasoning_tokens?: number | null } | null
  prompt_cache_hit_tokens?: number | null
}

/** Reads a whole answer. */
export async function* fromChatStream(
  chunks: AsyncIterable<ChatChunkWire>,
  context: AnswerContext,
): AsyncGenerator<StreamEvent> {
  const answer = new AnswerAssembly(context)
  const logprobs = new Logprobs()
  const annotations: ChatAnnotationWire[] = []
  const details = new StreamedDetails()
  let extraContent: Record<string, unknown> | null | undefined
  let [said, refusal] = ['', '']
  const observer = callObserver.getStore()
  for await (const chunk of chunks) {
    observer?.answered(chunk)
    const usage = chunk.usage ?? chunk.x_groq?.usage
    if (usage) answer.usage(toUsage(usage))
    const choice = chunk.choices?.find(candidate => (candidate.index ?? 0) === 0)
    const delta = choice?.delta ?? choice?.message
    if (delta) {
      yield* fromDelta(delta, answer, details)
      extraContent = delta.extra_content ?? extraContent
      refusal += delta.refusal ?? ''
      if (typeof delta.content === 'string') said += delta.content
      annotations.push(...(delta.annotations ?? []))
    }
    logprobs.add(choice?.logprobs?.content)
    if (choice?.finish_reason) {
      if (refusal === '') answer.finish(toFinishReason(choice.finish_reason, context))
      else answer.finish('blocked', refusal)
    }
  }
  if (extraContent) yield* answer.text('', { signature: sealFields(extraContent) })
  if (details.seal !== undefined) yield* answer.reasoning('', { signature: details.seal, key: THOUGHTS })
  answer.metadata(logprobs.metadata)
  answer.metadata(citedPages(annotations, said))
  yield* answer.end()
}

function citedPages(annotations: readonly ChatAnnotationWire[], said: string): AnswerSources['metadata'] {
  const sources = new AnswerSources()
  for (const { url_citation: page } of annotations)
    if (page?.url)
      sources.cite({ url: page.url, title: page.title }, said.slice(page.start_index, page.end_index))
  return sources.metadata
}

/** The key of the block that all thoughts of an answer are in, until something else comes between them. */
const THOUGHTS = 'thoughts'

function* fromDelta(
  delta: ChatDeltaWire,
  answer: AnswerAssembly,
  details: StreamedDetails,
): Generator<StreamEvent> {
  const inDetails = details.add(delta.reasoning_details)
  yield* answer.reasoning(delta.reasoning_content ?? delta.reasoning ?? inDetails, { key: THOUGHTS })
  if (Array.isArray(delta.content)) {
    for (const piece of delta.content as readonly ChatContentPieceWire[])
      yield* fromContentPiece(piece, answer)
  } else if (typeof delta.content === 'string') {
    yield* answer.text(delta.content)
  }
  // A refusal is what the model said instead of an answer; the reader should see it.
  if (delta.refusal) yield* answer.text(delta.refusal)
  for (const piece of delta.tool_calls ?? []) {
    answer.callPiece({
      id: piece.id,
      index: piece.index,
      name: piece.function?.name,
      args: piece.function?.arguments,
      signature: piece.extra_content ? sealFields(piece.extra_content) : undefined,
    })
  }
}

/** Mistral's thinking models send lists of text and thinking pieces. */
function fromContentPiece(piece: ChatContentPieceWire, answer: AnswerAssembly): StreamEvent[] {
  if (piece.type !== 'thinking') return answer.text(piece.text ?? '')
  const { thinking } = piece
  const text =
    typeof thinking === 'string' ? thinking : (thinking ?? []).map(part => part.text ?? '').join('')
  return answer.reasoning(text, { key: THOUGHTS })
}

function toUsage(usage: ChatUsageWire): Partial<Usage> {
  const cached = usage.prompt_tokens_details?.cached_tokens ?? usage.prompt_cache_hit_tokens
  const written = usage.prompt_tokens_details?.cache_write_tokens
  const reasoning = usage.completion_tokens_details?.reasoning_tokens
  return {
    inputTokens: usage.prompt_tokens ?? 0,
    outputTokens: usage.completion_tokens ?? 0,
    ...(usage.total_tokens == null ? {} : { totalTokens: usage.total_tokens }),
    ...(cached == null ? {} : { cachedInputTokens: cached }),
    ...(written == null ? {} : { cacheWriteTokens: written }),
    ...(reasoning == null ? {} : { reasoningTokens: reasoning }),
  }
}

function toFinishReason(reason: string, context: AnswerContext): FinishReason {
  if (reason === 'error' || reason === 'insufficient_system_resource') {
    throw new AgentError(
      'provider-overloaded',
      `${context.provider}/${context.model} ended its answer with the reason "${reason}".`,
      {
        retryable: true,
        details: { provider: context.provider, model: context.model, providerCode: reason },
      },
    )
  }
  return own(FINISH_REASONS, reason) ?? 'other'
}

const FINISH_REASONS: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  eos: 'stop',
  end_turn: 'stop',
  tool_calls: 'tool-calls',
  function_call: 'tool-calls',
  length: 'length',
  model_length: 'length',
  content_filter: 'blocked',
}
