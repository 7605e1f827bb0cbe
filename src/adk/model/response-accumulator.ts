/**
 * Gathers what a provider streams into ADK's answers, the same way for streaming and not:
 *
 * - partial answers hold no calls: ADK would run a call that it finds in one;
 * - the final answer holds everything, calls with ids that are unique in the conversation and do not begin
 *   with `adk-` (ADK strips those);
 * - no part with an empty text: as the first it would make ADK drop the whole event;
 * - every answer is a fresh object, because ADK writes into what it gets.
 */
import { defined } from '../../base/defined.js'
import { isTooDeep } from '../../base/json.js'
import { AgentError, type AgentErrorOptions } from '../../errors.js'
import { sealSignature } from '../../provider/provider.js'
import type { AnswerMetadata, FinishReason, Origin, StreamEvent } from '../../provider/stream-event.js'
import type { LeftOutOfAnswer } from '../../session/message.js'
import { firstFreeId, newCallId } from '../../session/pair-calls.js'
import { completeUsage, type ModelPrice, sumUsage, toUsageMetadata, type Usage } from '../../session/usage.js'
import type { AdkFinishReason, LlmResponse, Part } from '../sdk.js'

export interface AccumulatorOptions {
  /** The call ids that the conversation already has. */
  takenIds?: Iterable<string> | undefined
  /** What an earlier attempt has used. */
  spent?: Usage | undefined
  /** Further calls are counted and left out. */
  mostCalls?: number | undefined
}

export class ResponseAccumulator {
  #parts: OpenPart[] = []
  readonly #takenIds: Set<string>
  #length = 0
  #metadata: AnswerMetadata = {}
  #usage: Usage | undefined
  readonly #spent: Usage | undefined
  #finishReason: FinishReason | undefined
  #finishMessage: string | undefined
  readonly #mostCalls: number
  #calls = 0
  #isCut = false
  /** A provider that does not check the arguments of calls has given some that cannot be used. */
  #isMalformed = false
  /** The account that has sealed what is signed. */
  #account: string | undefined

  constructor({ takenIds = [], spent, mostCalls = Number.POSITIVE_INFINITY }: AccumulatorOptions = {}) {
    this.#takenIds = new Set(takenIds)
    this.#mostCalls = mostCalls
    this.#usage = spent
    this.#spent = spent
  }

  /** True once anything of the answer has been gathered. */
  get hasOutput(): boolean {
    return this.#parts.length > 0
  }

  /** The model has ended its answer, and there is neither text nor a call nor media in it. */
  get isEmpty(): boolean {
    const isOwnEnd = this.#finishReason === 'stop' || this.#finishReason === 'tool-calls'
    return isOwnEnd && this.#parts.every(({ kind, part }) => kind === 'reasoning' || isWordless(kind, part))
  }

  /** Characters of text and thoughts so far. */
  get length(): number {
    return this.#length
  }

  get finishReason(): FinishReason | undefined {
    return this.#finishReason
  }

  /** What the provider says about the end. */
  get finishMessage(): string | undefined {
    return this.#finishMessage
  }

  get usage(): Usage | undefined {
    return this.#usage
  }

  /** Gathers one event; text and thoughts come back as a partial answer. */
  add(event: StreamEvent): LlmResponse | undefined {
    if ('origin' in event) this.#account ??= event.origin?.account
    switch (event.type) {
      case 'text-delta':
        this.#addText('text', event)
        return partial(event.text, {})
      case 'reasoning-delta':
        this.#addText('reasoning', event)
        return partial(event.text, { thought: true })
      case 'tool-call': {
        this.#calls += 1
        if (this.#calls > this.#mostCalls) return undefined
        if (isTooDeep(event.args)) {
          this.#isMalformed = true
          return undefined
        }
        const functionCall = { id: this.#uniqueId(event.id), name: event.name, args: event.args }
        this.#parts.push({ kind: 'whole', part: { functionCall, ...signed(event) } })
        return undefined
      }
      case 'media':
        this.#parts.push({
          kind: 'whole',
          part: { inlineData: { mimeType: event.mimeType, data: event.data }, ...signed(event) },
        })
        return undefined
      case 'vendor': {
        const part = vendorPart(event)
        this.#parts.push({ kind: 'whole', part: { ...part, ...signed(event) } })
        // Code that ran on the vendor's servers is no call: ADK does not run it again.
        return { content: { role: 'model', parts: [structuredClone(part)] }, partial: true }
      }
      case 'metadata':
        this.#metadata = event.metadata
        return undefined
      case 'usage':
        this.#usage = this.#spent ? sumUsage([this.#spent, event.usage].map(completeUsage)) : event.usage
        return undefined
      case 'done':
        this.#finishReason = this.#isMalformed ? 'malformed-call' : event.finishReason
        this.#finishMessage = event.message
        return undefined
      case 'restart':
        this.#parts = []
        this.#calls = 0
        this.#isMalformed = false
        this.#length = 0
        this.#metadata = {}
        return undefined
      case 'request':
      case 'wait':
      case 'receipts':
      case 'error':
        return undefined
      default:
        event satisfies never
        return undefined
    }
  }

  /** Ends the answer here: it has reached the longest length. */
  cut(): void {
    this.#isCut = true
    this.#finishReason = 'length'
  }

  /** What the answer is without, because of the limits on its length and its calls. */
  get leftOut(): LeftOutOfAnswer | undefined {
    const calls = this.#calls - this.#mostCalls
    if (calls <= 0 && !this.#isCut) return undefined
    return {
      ...(calls > 0 ? { calls, mostCalls: this.#mostCalls } : {}),
      ...(this.#isCut ? { cutAt: this.#length } : {}),
    }
  }

  /** The whole answer, with its cost at a price. */
  complete(price?: ModelPrice): LlmResponse {
    const parts = this.#parts.map(open => structuredClone(open.part))
    const { leftOut } = this
    const lango = defined({ leftOut, account: parts.some(isSealed) ? this.#account : undefined })
    return {
      ...(parts.length > 0 ? { content: { role: 'model', parts } } : {}),
      partial: false,
      turnComplete: true,
      finishReason: FINISH_REASONS[this.#finishReason ?? 'other'] as AdkFinishReason,
      ...(this.#usage ? { usageMetadata: toUsageMetadata(this.#usage, price) } : {}),
      // ADK's type names two of them; an event keeps the others under Gemini's names.
      ...structuredClone(this.#metadata),
      ...(Object.keys(lango).length > 0 ? { customMetadata: { lango } } : {}),
    }
  }

  #addText(kind: 'text' | 'reasoning', event: TextEvent): void {
    this.#length += event.text.length
    const signature = signed(event)
    const open = this.#openPart(kind, event)
    if (open) {
      const text = (open.part.text ?? '') + event.text
      open.part = { ...(text === '' ? {} : { text }), ...withoutText(open.part), ...signature }
      return
    }
    if (event.text === '' && signature.thoughtSignature === undefined) return
    const thought = kind === 'reasoning' ? { thought: true } : {}
    const text = event.text === '' ? {} : { text: event.text }
    this.#parts.push({ kind, block: event.block, part: { ...text, ...thought, ...signature } })
  }

  /** The part that a delta belongs to: that of its block, or without blocks the last one of its kind. */
  #openPart(kind: 'text' | 'reasoning', event: TextEvent): OpenPart | undefined {
    if (event.block !== undefined) {
      return this.#parts.findLast(open => open.kind === kind && open.block === event.block)
    }
    const last = this.#parts.at(-1)
    if (last?.kind !== kind || last.block !== undefined) return undefined
    // What comes after a signature is not covered by it.
    return last.part.thoughtSignature !== undefined && event.text !== '' ? undefined : last
  }

  #uniqueId(given: string): string {
    const wanted = given === '' || given.startsWith('adk-') ? newCallId() : given
    const id = firstFreeId(wanted, this.#takenIds)
    this.#takenIds.add(id)
    return id
  }
}

interface OpenPart {
  kind: 'text' | 'reasoning' | 'whole'
  block?: number | undefined
  part: Part
}

/** Some providers end an answer with a signature in a part of its own. */
function isWordless(kind: OpenPart['kind'], { text = '' }: Part): boolean {
  return kind === 'text' && text === ''
}

/** True for a part that only the account it was made for can read. */
function isSealed({ thoughtSignature, partMetadata }: Part): boolean {
  return thoughtSignature !== undefined || partMetadata?.lango !== undefined
}

type TextEvent = Extract<StreamEvent, { type: 'text-delta' | 'reasoning-delta' }>

function partial(text: string, fields: Part): LlmResponse | undefined {
  if (text === '') return undefined
  return { content: { role: 'model', parts: [{ text, ...fields }] }, partial: true }
}

/**
 * Gemini's own parts are ADK's; parts of other vendors are kept as metadata of a text that describes them. It is a
 * thought to ADK: what a server tool did is no part of the answer, and does not go into an agent's `outputKey`.
 */
function vendorPart({ vendor, value, text }: Extract<StreamEvent, { type: 'vendor' }>): Part {
  if (vendor === 'gemini') return { ...(value as Part) }
  return { text: text || `[${vendor}]`, thought: true, partMetadata: { lango: { vendor, value } } }
}

function withoutText(part: Part): Part {
  const { text: _text, ...rest } = part
  return rest
}

/** The signature in ADK's one field for it, sealed with its origin when the origin is not Gemini. */
function signed(event: { signature?: string; origin?: Origin; redacted?: boolean }): {
  thoughtSignature?: string
} {
  const origin = event.origin ?? { vendor: 'gemini' }
  if (event.signature === undefined && (origin.vendor === 'gemini' || !event.origin)) return {}
  return { thoughtSignature: sealSignature(event.signature, origin, event.redacted) }
}

const FINISH_REASONS: Readonly<Record<FinishReason, string>> = {
  stop: 'STOP',
  'tool-calls': 'STOP',
  length: 'MAX_TOKENS',
  blocked: 'SAFETY',
  'malformed-call': 'MALFORMED_FUNCTION_CALL',
  other: 'OTHER',
}

/** The reason of an error after which the request is sent once more. */
export const MALFORMED_CALL = 'malformed-call'

/**
 * The error of a response that is not an answer: its stream was truncated, or it ended without content for another
 * reason than the model's own stop. An empty answer of the model itself is no error: it is requested once more.
 */
export function noAnswer(answer: ResponseAccumulator, model: string): AgentError | undefined {
  const { finishReason, finishMessage, usage } = answer
  if (finishReason === undefined) return truncated(model)
  if (answer.hasOutput) return undefined
  const said = finishMessage ? ` The provider says: ${finishMessage}` : ''
  switch (finishReason) {
    case 'stop':
    case 'tool-calls':
      return undefined
    case 'malformed-call':
      return malformedCall(model)
    case 'blocked': {
      const advice = 'Change the request, or use another model.'
      const message = `${model} refused to answer, or its answer was blocked. ${advice}${said}`
      return new AgentError('provider-blocked', message, { details: facts('blocked', usage) })
    }
    case 'length': {
      const advice = 'Raise maxOutputTokens or lower the thinking budget.'
      const message = `${model} used all output tokens before any content. ${advice}${said}`
      return new AgentError('provider-stream', message, { details: facts('length', usage) })
    }
    default: {
      const message = `${model} ended its answer without content. Try again.${said}`
      return new AgentError('provider-stream', message, { retryable: true, details: facts('other', usage) })
    }
  }
}

function truncated(model: string): AgentError {
  const message = `The response stream of ${model} was truncated. Try again.`
  return new AgentError('provider-stream', message, { retryable: true })
}

function malformedCall(model: string): AgentError {
  const message = `${model} wrote a tool call that cannot be parsed. Try again.`
  return new AgentError('provider-stream', message, { retryable: true, details: { reason: MALFORMED_CALL } })
}

/** An empty answer is billed too, and ADK makes no event for an error that could report its usage. */
function facts(reason: string, usage: Usage | undefined): NonNullable<AgentErrorOptions['details']> {
  return usage ? { reason, usage } : { reason }
}
