/**
 * Lango's terms in the words of OpenTelemetry's GenAI conventions: names of attributes, and the published JSON forms of
 * messages, instructions and tools. Every text passes `redactText`.
 */
import type { Attributes } from '@opentelemetry/api'
import { defined } from '../base/defined.js'
import { redactText } from '../base/redact.js'
import type {
  GenerateRequest,
  GenerationOptions,
  MediaPart,
  ProviderMessage,
  ProviderPart,
} from '../provider/provider.js'
import type { FinishReason } from '../provider/stream-event.js'
import { vendorRow } from '../provider/vendors.js'
import type { RunUsage } from '../session/usage.js'

/** `gen_ai.provider.name` of a model reference. */
function providerName(reference: string): string {
  const slash = reference.indexOf('/')
  const name = slash < 0 ? 'gemini' : reference.slice(0, slash)
  return vendorRow(name)?.telemetryName ?? name
}

/** `gen_ai.request.model` of a model reference. */
export function modelName(reference: string): string {
  return reference.slice(reference.indexOf('/') + 1)
}

export function modelAttributes(reference: string): Attributes {
  return { 'gen_ai.provider.name': providerName(reference), 'gen_ai.request.model': modelName(reference) }
}

export function usageAttributes(usage: RunUsage): Attributes {
  return {
    'gen_ai.usage.input_tokens': usage.inputTokens,
    'gen_ai.usage.output_tokens': usage.outputTokens,
    ...(usage.cachedInputTokens > 0
      ? { 'gen_ai.usage.cache_read.input_tokens': usage.cachedInputTokens }
      : {}),
    ...(usage.cacheWriteTokens > 0
      ? { 'gen_ai.usage.cache_creation.input_tokens': usage.cacheWriteTokens }
      : {}),
    ...(usage.reasoningTokens > 0 ? { 'gen_ai.usage.reasoning.output_tokens': usage.reasoningTokens } : {}),
    ...(usage.cost === undefined ? {} : { 'lango.usage.cost_usd': usage.cost }),
  }
}

/** What a request asks for, besides its messages. */
export function optionAttributes(options: GenerationOptions = {}): Attributes {
  const { responseSchema, responseFormat, stopSequences } = options
  return {
    // Every answer is streamed.
    'gen_ai.request.stream': true,
    'gen_ai.output.type': responseSchema || responseFormat ? 'json' : 'text',
    ...defined({
      'gen_ai.request.temperature': options.temperature,
      'gen_ai.request.top_p': options.topP,
      'gen_ai.request.top_k': options.topK,
      'gen_ai.request.seed': options.seed,
      'gen_ai.request.max_tokens': options.maxOutputTokens,
      'gen_ai.request.presence_penalty': options.presencePenalty,
      'gen_ai.request.frequency_penalty': options.frequencyPenalty,
      'gen_ai.request.stop_sequences': stopSequences && [...stopSequences],
    }),
  }
}

/** The conventions' names for the ends of answers. */
export function finishReasonName(reason: FinishReason): string {
  return FINISH_REASONS[reason]
}

const FINISH_REASONS: Readonly<Record<FinishReason, string>> = {
  stop: 'stop',
  'tool-calls': 'tool_call',
  length: 'length',
  blocked: 'content_filter',
  'malformed-call': 'error',
  other: 'other',
}

/** The messages of a request, its instructions and its tools, as JSON. */
export function contentAttributes({ messages, tools = [] }: GenerateRequest): Attributes {
  const { shown, leftOut } = newestMessages(messages.filter(({ role }) => role !== 'system').map(toMessage))
  const system = messages.filter(({ role }) => role === 'system').flatMap(({ parts }) => parts.map(toPart))
  return {
    'gen_ai.input.messages': `[${shown.join(',')}]`,
    ...(leftOut > 0 ? { 'lango.input.messages_left_out': leftOut } : {}),
    ...(system.length > 0 ? { 'gen_ai.system_instructions': JSON.stringify(system) } : {}),
    ...(tools.length > 0
      ? {
          'gen_ai.tool.definitions': JSON.stringify(
            tools.map(({ name, description, parameters }) => ({
              type: 'function',
              name,
              description: boundedText(description),
              parameters: boundedJson(parameters),
            })),
          ),
        }
      : {}),
  }
}

/** The newest messages that an attribute holds. */
function newestMessages(messages: readonly object[]): { shown: string[]; leftOut: number } {
  const shown: string[] = []
  let left = MOST_IN_ATTRIBUTE
  for (const message of messages.toReversed()) {
    const json = JSON.stringify(message)
    left -= json.length
    if (left < 0 && shown.length > 0) break
    shown.unshift(json)
  }
  return { shown, leftOut: messages.length - shown.length }
}

function toMessage({ role, parts }: ProviderMessage): object {
  return { role, parts: parts.map(toPart) }
}

function toPart(part: ProviderPart): object {
  switch (part.type) {
    case 'text':
      return { type: 'text', content: boundedText(part.text) }
    case 'reasoning':
      return { type: 'reasoning', content: boundedText(part.text) }
    case 'tool-call':
      return { type: 'tool_call', id: part.id, name: part.name, arguments: boundedJson(part.args) }
    case 'tool-result':
      return { type: 'tool_call_response', id: part.id, response: boundedJson(part.result) }
    case 'media':
      return mediaPart(part)
    case 'vendor':
      return { type: 'text', content: boundedText(part.text) }
  }
}

/** A file is named and not contained: its bytes would exceed what collectors take. */
function mediaPart({ mimeType, data, url, name }: Omit<MediaPart, 'type'>): object {
  const [kind = ''] = mimeType.split('/')
  const modality = ['image', 'audio', 'video'].includes(kind) ? kind : 'document'
  const about = { mime_type: mimeType, modality, ...defined({ name }) }
  if (data === undefined) return { type: 'uri', ...about, uri: boundedText(url ?? '') }
  return { type: 'lango.media', ...about, size: Math.floor((data.length * 3) / 4) }
}

/** The parts of an answer while it comes, as one message. */
export class OutputParts {
  readonly #parts: object[] = []
  #open: { type: 'text' | 'reasoning'; content: string } | undefined

  add(part: ProviderPart | { type: 'media'; mimeType: string; data: string }): void {
    if (part.type !== 'text' && part.type !== 'reasoning') {
      this.#close()
      this.#parts.push(part.type === 'media' ? mediaPart(part) : toPart(part))
      return
    }
    if (this.#open?.type !== part.type) {
      this.#close()
      this.#open = { type: part.type, content: '' }
    }
    if (this.#open && this.#open.content.length < LONGEST_TEXT) this.#open.content += part.text
  }

  #close(): void {
    if (this.#open) this.#parts.push({ ...this.#open, content: boundedText(this.#open.content) })
    this.#open = undefined
  }

  toJson(finishReason: string): string {
    this.#close()
    return JSON.stringify([{ role: 'assistant', parts: this.#parts, finish_reason: finishReason }])
  }
}

/** `gen_ai.output.messages` of a text. */
export function outputText(text: string, finishReason: string): string {
  const parts = new OutputParts()
  parts.add({ type: 'text', text })
  return parts.toJson(finishReason)
}

/** `gen_ai.input.messages` of one message of the user's. */
export function inputMessage(parts: readonly ProviderPart[]): string {
  return JSON.stringify([{ role: 'user', parts: parts.map(toPart) }])
}

/** Long enough to read, short enough for every collector. */
const LONGEST_TEXT = 32_000
/** How many characters of messages one attribute holds. */
const MOST_IN_ATTRIBUTE = 256_000

export function boundedText(text: string): string {
  // A secret that the end would cut in two is recognised whole.
  const shown = redactText(text.slice(0, LONGEST_TEXT + 1000))
  return shown.length > LONGEST_TEXT ? `${shown.slice(0, LONGEST_TEXT)}…` : shown
}

/** A value as data if it is short enough, otherwise the beginning of its JSON. */
function boundedJson(value: unknown): unknown {
  const json = redactText(JSON.stringify(value) ?? 'null')
  if (json.length > LONGEST_TEXT) return `${json.slice(0, LONGEST_TEXT)}…`
  try {
    return JSON.parse(json)
  } catch {
    // What was hidden was part of the JSON itself.
    return json
  }
}

/** A value as the text of an attribute: JSON, unless it is too long. */
export function jsonText(value: unknown): string {
  const bounded = boundedJson(value)
  return typeof bounded === 'string' && typeof value !== 'string' ? bounded : JSON.stringify(bounded)
}
