/**
 * A run as an answer of the Responses API: steps in, the events of a stream out, and the response as it is by then. The
 * same steps give the same events with the same ids and numbers, so that a stream can be read again from any of them.
 */
import type { RunUsage } from '../../chat-protocol.js'
import { waitingText } from '../start-run.js'
import { runPartId } from './client-calls.js'
import type { CompletionCall, CompletionStep } from './completion-run.js'
import { toOpenaiError } from './openai-error.js'

export interface ResponseHead {
  runId: string
  /** The number of the last event of the run before this answer. */
  afterSeq: number
  createdAt: number
  /** What the answer repeats of its request. */
  echo: Readonly<Record<string, unknown>>
}

export interface ResponseEvent {
  type: string
  sequence_number: number
}

type OutputItem = Record<string, unknown> & { id: string; type: string }

/** Items of one answer have numbers below this. */
const MOST_ITEMS = 1000

/**
 * Each number of the run has this many sequence numbers: the last one is that of a delta which ends there, the others
 * are those of the events before it.
 */
const NUMBERS_EACH = 16

/** The number of the run up to which a client has the texts of an answer. */
export function seqOfSequence(sequenceNumber: number, afterSeq: number): number {
  return Math.floor(sequenceNumber / NUMBERS_EACH) + afterSeq
}

function responseId({ runId, afterSeq }: Pick<ResponseHead, 'runId' | 'afterSeq'>): string {
  return runPartId('resp', runId, afterSeq)
}

/** Which answer an item belongs to. */
export function answerOfItem(number: number): number {
  return Math.floor(number / MOST_ITEMS)
}

export class ResponseWriter {
  readonly #head: ResponseHead
  readonly #output: OutputItem[] = []
  #open: { item: OutputItem; text: string } | undefined
  #sequence = 0
  #model = ''
  #end: Record<string, unknown> = { status: 'in_progress' }
  #usage: RunUsage | undefined

  constructor(head: ResponseHead) {
    this.#head = head
  }

  get status(): unknown {
    return this.#end.status
  }

  /** The events before the first step. */
  begin(): ResponseEvent[] {
    const response = this.response()
    return [this.#event('response.created', { response }), this.#event('response.in_progress', { response })]
  }

  /** The events of a step. `model`: the one that answers, as far as it is known. */
  step(step: CompletionStep, model: string): ResponseEvent[] {
    this.#model = model
    this.#skipTo(step.at)
    switch (step.type) {
      case 'text':
        return this.#write('message', step.text, step.textSeq)
      case 'reasoning':
        return this.#write('reasoning', step.text, step.textSeq)
      case 'busy':
        return this.#close()
      case 'complete':
        return []
      case 'restart':
        return this.#takeBack(step)
      case 'calls':
        return [
          ...this.#close(),
          ...step.calls.flatMap(call => this.#call(call)),
          ...this.#finish(step.usage),
        ]
      case 'waiting': {
        const { run, usage } = step
        const words = this.#write('message', `${this.#open ? '\n\n' : ''}${waitingText(run)}`)
        return [...words, ...this.#close(), ...this.#finish(usage, { lango: { ...run, status: 'waiting' } })]
      }
      case 'end':
        return [...this.#close(), ...this.#finish(step.usage, endOf(step))]
      case 'problem':
        return this.#fail(step)
      default:
        step satisfies never
        return []
    }
  }

  /** The response as it is now. */
  response(): Record<string, unknown> {
    return {
      id: responseId(this.#head),
      object: 'response',
      created_at: this.#head.createdAt,
      error: null,
      incomplete_details: null,
      ...this.#head.echo,
      model: this.#model,
      output: [...this.#output],
      usage: this.#usage ? toUsage(this.#usage) : null,
      ...this.#end,
    }
  }

  #write(type: 'message' | 'reasoning', text: string, textSeq?: number): ResponseEvent[] {
    const before = this.#open?.item.type === type ? [] : [...this.#close(), ...this.#begin(type)]
    const open = this.#open
    if (!open) return before
    open.text += text
    if (textSeq !== undefined) this.#skipTo(textSeq, NUMBERS_EACH - 1)
    const place = this.#place(open.item)
    const delta =
      type === 'message'
        ? this.#event('response.output_text.delta', { ...place, content_index: 0, delta: text, logprobs: [] })
        : this.#event('response.reasoning_summary_text.delta', { ...place, summary_index: 0, delta: text })
    return [...before, delta]
  }

  /** What is written again. A stream has ended before. */
  #takeBack({ text, reasoning }: Extract<CompletionStep, { type: 'restart' }>): ResponseEvent[] {
    const open = this.#open
    const length = open?.item.type === 'message' ? text : reasoning
    if (open) open.text = open.text.slice(0, open.text.length - length)
    return []
  }

  #begin(type: 'message' | 'reasoning'): ResponseEvent[] {
    const isMessage = type === 'message'
    const number = this.#head.afterSeq * MOST_ITEMS + this.#output.length
    const id = runPartId(isMessage ? 'msg' : 'rs', this.#head.runId, number)
    const item: OutputItem = isMessage
      ? { id, type, status: 'in_progress', role: 'assistant', content: [] }
      : { id, type, summary: [] }
    this.#output.push(item)
    this.#open = { item, text: '' }
    const place = this.#place(item)
    const added = this.#event('response.output_item.added', {
      output_index: place.output_index,
      item: { ...item },
    })
    const part = isMessage
      ? this.#event('response.content_part.added', { ...place, content_index: 0, part: textPart('') })
      : this.#event('response.reasoning_summary_part.added', {
          ...{ ...place, summary_index: 0, part: { type: 'summary_text', text: '' } },
        })
    return [added, part]
  }

  #close(): ResponseEvent[] {
    const open = this.#open
    if (!open) return []
    this.#open = undefined
    const { item, text } = open
    const place = this.#place(item)
    if (item.type === 'reasoning') {
      const part = { type: 'summary_text', text }
      item.summary = [part]
      const summary = { ...place, summary_index: 0 }
      return [
        this.#event('response.reasoning_summary_text.done', { ...summary, text }),
        this.#event('response.reasoning_summary_part.done', { ...summary, part }),
        this.#itemDone(item),
      ]
    }
    Object.assign(item, { status: 'completed', content: [textPart(text)] })
    const content = { ...place, content_index: 0 }
    return [
      this.#event('response.output_text.done', { ...content, text, logprobs: [] }),
      this.#event('response.content_part.done', { ...content, part: textPart(text) }),
      this.#itemDone(item),
    ]
  }

  #call(call: CompletionCall): ResponseEvent[] {
    const item: OutputItem = { ...toFunctionCall(this.#head.runId, call) }
    this.#output.push(item)
    const place = this.#place(item)
    const { arguments: text, name } = item
    const added = { ...item, status: 'in_progress', arguments: '' }
    return [
      this.#event('response.output_item.added', { output_index: place.output_index, item: added }),
      this.#event('response.function_call_arguments.delta', { ...place, delta: text }),
      this.#event('response.function_call_arguments.done', { ...place, name, arguments: text }),
      this.#itemDone(item),
    ]
  }

  #finish(usage: RunUsage, end: Record<string, unknown> = {}): ResponseEvent[] {
    this.#usage = usage
    this.#end = { status: 'completed', ...end }
    // A stream has no event for a response that was cancelled: it ends as a failed one.
    const type = { incomplete: 'response.incomplete', cancelled: 'response.failed' }[String(this.#end.status)]
    return [this.#event(type ?? 'response.completed', { response: this.response() })]
  }

  #fail({ problem }: Extract<CompletionStep, { type: 'problem' }>): ResponseEvent[] {
    const { message, code, param } = toOpenaiError(problem).error
    const closed = this.#close()
    this.#end = { status: 'failed', error: { code, message } }
    return [
      ...closed,
      this.#event('error', { code, message, param }),
      this.#event('response.failed', { response: this.response() }),
    ]
  }

  #itemDone(item: OutputItem): ResponseEvent {
    return this.#event('response.output_item.done', {
      output_index: this.#output.indexOf(item),
      item: { ...item },
    })
  }

  #place(item: OutputItem): { item_id: string; output_index: number } {
    return { item_id: item.id, output_index: this.#output.indexOf(item) }
  }

  /** The events that follow have at least the sequence numbers of a number of the run. */
  #skipTo(seq: number, place = 0): void {
    this.#sequence = Math.max(this.#sequence, (seq - this.#head.afterSeq) * NUMBERS_EACH + place)
  }

  #event(type: string, fields: object): ResponseEvent {
    const sequence_number = this.#sequence
    this.#sequence += 1
    return { type, sequence_number, ...fields }
  }
}

export function toFunctionCall(runId: string, { callId, number, name, args }: CompletionCall) {
  const id = runPartId('fc', runId, number)
  const text = JSON.stringify(args)
  return { id, type: 'function_call', status: 'completed', call_id: callId, name, arguments: text }
}

function endOf({ finish, isAborted }: Extract<CompletionStep, { type: 'end' }>): Record<string, unknown> {
  if (isAborted) return { status: 'cancelled' }
  if (finish === 'stop') return {}
  const reason = finish === 'length' ? 'max_output_tokens' : 'content_filter'
  return { status: 'incomplete', incomplete_details: { reason } }
}

function textPart(text: string): object {
  return { type: 'output_text', text, annotations: [], logprobs: [] }
}

function toUsage(usage: RunUsage): object {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: { cached_tokens: usage.cachedInputTokens },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.totalTokens,
  }
}
