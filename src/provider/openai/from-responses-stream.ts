/**
 * A Responses stream → events. Calls and reasoning are taken from their `done` items: the encrypted reasoning
 * of the `added` item is another blob, and replaying it is refused.
 */
import { own } from '../../base/own.js'
import type { Usage } from '../../session/usage.js'
import { AnswerSources, Logprobs } from '../answer-sources.js'
import { AnswerAssembly, type AnswerContext } from '../assemble-stream.js'
import { callObserver } from '../call-observer.js'
import { toProviderError } from '../provider-error.js'
import type { FinishReason, StreamEvent } from '../stream-event.js'
import { phaseMark } from './to-responses-request.js'

export interface ResponsesEventWire {
  type: string
  delta?: string
  output_index?: number
  content_index?: number
  summary_index?: number
  item?: ResponsesOutputWire
  logprobs?: unknown
  response?: ResponsesAnswerWire
  code?: string | null
  message?: string
}

interface ResponsesOutputWire {
  type: string
  id?: string
  call_id?: string
  name?: string
  arguments?: string
  encrypted_content?: string | null
  phase?: string | null
  summary?: readonly { text?: string }[]
  /** Of a message: its texts. */
  content?: readonly { text?: string; annotations?: readonly AnnotationWire[] }[]
  /** Of a search. */
  action?: { query?: string; url?: string; sources?: readonly { url?: string }[] | null }
  /** Of code that was run. */
  code?: string | null
  outputs?: readonly { logs?: string }[] | null
}

interface AnnotationWire {
  type?: string
  url?: string
  title?: string
  start_index?: number
  end_index?: number
}

interface ResponsesAnswerWire {
  id?: string
  model?: string
  output?: readonly ResponsesOutputWire[]
  usage?: ResponsesUsageWire | null
  error?: { code?: string; message?: string } | null
  incomplete_details?: { reason?: string } | null
}

interface ResponsesUsageWire {
  input_tokens?: number
  output_tokens?: number
  total_tokens?: number
  input_tokens_details?: { cached_tokens?: number; cache_write_tokens?: number } | null
  output_tokens_details?: { reasoning_tokens?: number } | null
}

/** Reads a whole answer. */
export async function* fromResponsesStream(
  events: AsyncIterable<ResponsesEventWire>,
  context: AnswerContext,
): AsyncGenerator<StreamEvent> {
  const state = {
    answer: new AnswerAssembly(context),
    sources: new AnswerSources(),
    logprobs: new Logprobs(),
    refusal: '',
    done: new Set<number>(),
    summarized: new Set<number>(),
    phases: new Map<number, string>(),
  }
  const observer = callObserver.getStore()
  for await (const event of events) {
    if (event.response) observer?.answered(event.response)
    yield* fromEvent(event, state, context)
  }
  yield* state.answer.end()
}

interface ReadState {
  answer: AnswerAssembly
  sources: AnswerSources
  logprobs: Logprobs
  refusal: string
  /** Items that are complete. */
  done: Set<number>
  /** Reasoning items whose summary was streamed. */
  summarized: Set<number>
  /** The marks of messages, by item. */
  phases: Map<number, string>
}

function fromEvent(event: ResponsesEventWire, state: ReadState, context: AnswerContext): StreamEvent[] {
  const item = event.output_index ?? 0
  const { answer } = state
  switch (event.type) {
    case 'response.output_text.delta':
      state.logprobs.add(event.logprobs)
      return answer.text(event.delta ?? '', {
        key: `${item}:${event.content_index ?? 0}`,
        signature: state.phases.get(item),
      })
    case 'response.refusal.delta':
      state.refusal += event.delta ?? ''
      return answer.text(event.delta ?? '', { key: `${item}:refusal` })
    case 'response.reasoning_summary_part.added':
      return (event.summary_index ?? 0) > 0 ? answer.reasoning('\n\n', { key: item }) : []
    case 'response.reasoning_summary_text.delta':
    case 'response.reasoning_text.delta':
      state.summarized.add(item)
      return answer.reasoning(event.delta ?? '', { key: item })
    case 'response.output_item.added': {
      const mark = phaseMark(event.item?.phase)
      if (mark !== undefined) state.phases.set(item, mark)
      return []
    }
    case 'response.output_item.done':
      return fromItem(event.item, item, state)
    case 'response.completed':
    case 'response.incomplete':
      return finish(event.response ?? {}, event.type, state)
    case 'response.failed':
      throw toProviderError(failure(event.response?.error ?? {}), context)
    case 'error':
      throw toProviderError(failure({ code: event.code ?? undefined, message: event.message }), context)
    default:
      return []
  }
}

function fromItem(item: ResponsesOutputWire | undefined, index: number, state: ReadState): StreamEvent[] {
  if (item === undefined || state.done.has(index)) return []
  state.done.add(index)
  if (item.type === 'function_call') {
    return state.answer.call({ id: item.call_id, name: item.name, args: item.arguments })
  }
  if (item.type === 'reasoning') return fromReasoning(item, index, state)
  readSources(item, state.sources)
  if (item.type === 'message') return []
  return state.answer.vendor(item, serverToolText(item))
}

function readSources({ content, action }: ResponsesOutputWire, sources: AnswerSources): void {
  for (const { text = '', annotations = [] } of content ?? []) {
    for (const { url, title, start_index, end_index } of annotations)
      if (url) sources.cite({ url, title }, text.slice(start_index, end_index))
  }
  sources.searched(action?.query)
  for (const { url } of action?.sources ?? []) if (url) sources.find({ url })
}

/** An item of a server tool in words. */
function serverToolText({ type, action, code, outputs }: ResponsesOutputWire): string {
  if (code) {
    const logs = (outputs ?? []).map(output => output.logs ?? '').join('')
    const answer = logs === '' ? '' : `\nThe code answered: ${logs}`
    return `The model ran this code:\n\`\`\`python\n${code}\n\`\`\`${answer}`
  }
  if (action?.query) return `The model searched the web for: ${action.query}`
  return action?.url ? `The model opened ${action.url}` : `[the model used ${type}]`
}

function fromReasoning(item: ResponsesOutputWire, index: number, state: ReadState): StreamEvent[] {
  const summary = (item.summary ?? []).map(part => part.text ?? '').join('\n\n')
  const text = state.summarized.has(index) ? '' : summary
  return state.answer.reasoning(text, { key: index, signature: item.encrypted_content ?? undefined })
}

/** Servers that skip `output_item.done` still list every item at the end. */
function finish(response: ResponsesAnswerWire, type: string, state: ReadState): StreamEvent[] {
  const missed = (response.output ?? []).flatMap((item, index) => fromItem(item, index, state))
  if (response.usage) state.answer.usage(toUsage(response.usage))
  state.answer.metadata({ ...state.sources.metadata, ...state.logprobs.metadata })
  const reason = response.incomplete_details?.reason
  if (state.refusal !== '') state.answer.finish('blocked', state.refusal)
  else if (type === 'response.completed') state.answer.finish('stop')
  else state.answer.finish(own(INCOMPLETE_REASONS, reason ?? '') ?? 'other', reason)
  return missed
}

const INCOMPLETE_REASONS: Readonly<Record<string, FinishReason>> = {
  max_output_tokens: 'length',
  content_filter: 'blocked',
}

/** An error inside the stream, in the shape of one that the SDK would have thrown. */
function failure(error: { code?: string | undefined; message?: string | undefined }): Error {
  const message = error.message ?? 'The response failed without a reason.'
  return Object.assign(new TypeError(message), { error: { code: error.code, message } })
}

function toUsage(usage: ResponsesUsageWire): Partial<Usage> {
  const cached = usage.input_tokens_details?.cached_tokens
  const written = usage.input_tokens_details?.cache_write_tokens
  const reasoning = usage.output_tokens_details?.reasoning_tokens
  return {
    inputTokens: usage.input_tokens ?? 0,
    outputTokens: usage.output_tokens ?? 0,
    ...(usage.total_tokens === undefined ? {} : { totalTokens: usage.total_tokens }),
    ...(cached === undefined ? {} : { cachedInputTokens: cached }),
    ...(written === undefined ? {} : { cacheWriteTokens: written }),
    ...(reasoning === undefined ? {} : { reasoningTokens: reasoning }),
  }
}
