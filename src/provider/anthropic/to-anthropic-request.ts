/**
 * A repaired history → the body of Anthropic's Messages API. Thinking goes back as it came, with its
 * signature; at most four marks tell the cache where a prefix ends; tools are always declared when the
 * history speaks of them.
 */

import { defined } from '../../base/defined.js'
import {
  type GenerationOptions,
  type MediaPart,
  mediaNote,
  objectSchema,
  type ProviderMessage,
  type ProviderPart,
  resultText,
  type ToolDeclaration,
  type ToolResultPart,
} from '../provider.js'
import { claudeVersion } from '../repair/profile-for-model.js'
import { type Abilities, JSON_IN_WORDS } from '../request-options.js'
import type { PreparedRequest } from '../stream-answer.js'
import { anthropicAbilities, serviceTier, toServerTools } from './anthropic-tools.js'
import { containerOf, isContainer } from './container.js'

export interface AnthropicRequestWire {
  model: string
  max_tokens: number
  messages: AnthropicMessageWire[]
  system?: AnthropicBlockWire[]
  tools?: AnthropicToolWire[]
  tool_choice?: { type: 'auto' | 'any' | 'none' } | { type: 'tool'; name: string }
  thinking?: AnthropicThinkingWire
  output_config?: Record<string, unknown>
  stop_sequences?: string[]
  temperature?: number
  top_p?: number
  top_k?: number
  service_tier?: string
  /** The sandbox of code that ran before. */
  container?: string
  stream: true
}

export interface AnthropicMessageWire {
  role: 'user' | 'assistant' | 'system'
  content: AnthropicBlockWire[]
}

export type AnthropicBlockWire = { type: string; [field: string]: unknown }

type AnthropicToolWire =
  | {
      name: string
      description: string
      input_schema: Record<string, unknown>
      cache_control?: { type: 'ephemeral' }
    }
  | { name: string; type: string; [field: string]: unknown }

/** Writes the body. */
export function toAnthropicRequest(request: PreparedRequest): AnthropicRequestWire {
  const { messages, options, info } = request
  const head = messages.findIndex(message => message.role !== 'system')
  const leading = head < 0 ? messages : messages.slice(0, head)
  const rest = head < 0 ? [] : messages.slice(head)
  const system = [
    ...leading.flatMap(message => message.parts).flatMap(toSystemBlock),
    ...(options.responseFormat === 'json' ? [{ type: 'text', text: JSON_IN_WORDS }] : []),
  ]
  const tier = serviceTier(options)
  const { thinking, effort } = toThinking(request)
  const outputConfig = { ...(effort === undefined ? {} : { effort }), ...toFormat(options) }
  return {
    model: request.model,
    max_tokens: maxTokens(options, info.outputLimit, thinking),
    ...(system.length > 0 ? { system: withCacheMark(system) } : {}),
    messages: withCacheMarkOnLast(rest.map(toMessage)),
    ...toTools(request, rest),
    ...(thinking ? { thinking } : {}),
    ...(Object.keys(outputConfig).length > 0 ? { output_config: outputConfig } : {}),
    ...(options.stopSequences?.length ? { stop_sequences: [...options.stopSequences] } : {}),
    ...(takesSampling(request, thinking) ? toSampling(options) : {}),
    ...(tier === undefined ? {} : { service_tier: tier }),
    ...(runsCode(request) ? defined({ container: containerOf(rest) }) : {}),
    stream: true,
  }
}

function runsCode({ serverTools = [] }: PreparedRequest): boolean {
  return serverTools.some(({ name }) => name === 'codeExecution')
}

/** What this request's body can hold. What becomes of thinking is reported where it is decided. */
export function abilities(request: PreparedRequest): Abilities {
  const { thinking } = toThinking({ ...request, report: () => {} })
  const isForcible = !isBound(request)
  return anthropicAbilities(request.options, { samples: takesSampling(request, thinking), isForcible })
}

function toSystemBlock(part: ProviderPart): AnthropicBlockWire[] {
  return part.type === 'text' && part.text.trim() !== '' ? [{ type: 'text', text: part.text }] : []
}

function toMessage({ role, parts }: ProviderMessage): AnthropicMessageWire {
  const blocks = parts.some(isContainer) ? parts.filter(part => !isContainer(part)) : parts
  return { role: toRole(role), content: blocks.map(toBlock) }
}

/** A system message after the leading ones is there because the profile takes it. */
function toRole(role: string): AnthropicMessageWire['role'] {
  return role === 'assistant' || role === 'system' ? role : 'user'
}

function toBlock(part: ProviderPart): AnthropicBlockWire {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text }
    case 'reasoning':
      return part.redacted
        ? { type: 'redacted_thinking', data: part.signature ?? '' }
        : { type: 'thinking', thinking: part.text, signature: part.signature ?? '' }
    case 'tool-call':
      return { type: 'tool_use', id: part.id, name: part.name, input: part.args ?? {} }
    case 'tool-result':
      return toResult(part)
    case 'media':
      return toMedia(part)
    case 'vendor':
      return isBlock(part.value) && part.vendor === 'anthropic'
        ? part.value
        : { type: 'text', text: part.text }
  }
}

function toResult(part: ToolResultPart): AnthropicBlockWire {
  const text = resultText(part.result)
  const media = part.media ?? []
  return {
    type: 'tool_result',
    tool_use_id: part.id,
    content: media.length === 0 ? text : [{ type: 'text', text }, ...media.map(toMedia)],
    ...(part.isError ? { is_error: true } : {}),
  }
}

function toMedia(media: MediaPart): AnthropicBlockWire {
  const type = /^image\/(jpeg|png|gif|webp)$/.test(media.mimeType)
    ? 'image'
    : media.mimeType === 'application/pdf'
      ? 'document'
      : undefined
  if (media.mimeType === 'text/plain' && media.data !== undefined) {
    const text = new TextDecoder().decode(Uint8Array.from(atob(media.data), letter => letter.charCodeAt(0)))
    return { type: 'document', source: { type: 'text', media_type: 'text/plain', data: text } }
  }
  if (type === undefined) return { type: 'text', text: mediaNote(media) }
  if (media.data === undefined) return { type, source: { type: 'url', url: media.url ?? '' } }
  return { type, source: { type: 'base64', media_type: media.mimeType, data: media.data } }
}

function isBlock(value: unknown): value is AnthropicBlockWire {
  return value !== null && typeof value === 'object' && 'type' in value && typeof value.type === 'string'
}

const CACHE_MARK = { cache_control: { type: 'ephemeral' } } as const

function withCacheMark<Item extends object>(items: readonly Item[]): Item[] {
  return items.map((item, index) => (index === items.length - 1 ? { ...item, ...CACHE_MARK } : item))
}

/** The last turn's last block takes the mark; thinking and blank text must not. */
function withCacheMarkOnLast(messages: AnthropicMessageWire[]): AnthropicMessageWire[] {
  const last = messages.at(-1)
  const block = last?.content.at(-1)
  if (last === undefined || block === undefined || !MARKABLE.has(block.type)) return messages
  if (block.type === 'text' && String(block.text).trim() === '') return messages
  return [...messages.slice(0, -1), { ...last, content: withCacheMark(last.content) }]
}

const MARKABLE: ReadonlySet<string> = new Set(['text', 'image', 'document', 'tool_use', 'tool_result'])

/** A history with calls or results is refused without declarations; a stub for each tool it names satisfies. */
function toTools(
  request: PreparedRequest,
  messages: readonly ProviderMessage[],
): Pick<AnthropicRequestWire, 'tools' | 'tool_choice'> {
  const tools = [...toServerTools(request.serverTools), ...allowedTools(request).map(toTool)]
  if (tools.length > 0) return { tools: withCacheMark(tools), ...toToolChoice(request.options) }
  const stubs = toolNamesIn(messages).map(name => ({
    name,
    description: 'No longer available. It is declared because the conversation mentions it.',
    input_schema: { type: 'object', properties: {} },
  }))
  return stubs.length > 0 ? { tools: stubs, tool_choice: { type: 'none' } } : {}
}

/** The API forces one tool or any of them: to force one of several, only these are declared. */
function allowedTools({ tools, options }: PreparedRequest): readonly ToolDeclaration[] {
  const { toolChoice } = options
  if (typeof toolChoice !== 'object' || !('names' in toolChoice)) return tools
  return tools.filter(({ name }) => toolChoice.names.includes(name))
}

function toTool(tool: ToolDeclaration): AnthropicToolWire {
  return { name: tool.name, description: tool.description, input_schema: objectSchema(tool.parameters) }
}

function toolNamesIn(messages: readonly ProviderMessage[]): string[] {
  const names = new Set<string>()
  for (const message of messages) {
    for (const part of message.parts) if (part.type === 'tool-call') names.add(part.name)
  }
  return [...names]
}

function toToolChoice({ toolChoice }: GenerationOptions): Pick<AnthropicRequestWire, 'tool_choice'> {
  if (toolChoice === undefined) return {}
  if (typeof toolChoice !== 'object')
    return { tool_choice: { type: toolChoice === 'required' ? 'any' : toolChoice } }
  return { tool_choice: 'name' in toolChoice ? { type: 'tool', name: toolChoice.name } : { type: 'any' } }
}

/** `max_tokens` includes thinking, so it must exceed the thinking budget. */
function maxTokens(
  options: GenerationOptions,
  limit: number,
  thinking: AnthropicThinkingWire | undefined,
): number {
  const requested = options.maxOutputTokens ?? limit
  if (thinking?.budget_tokens === undefined || requested > thinking.budget_tokens) return requested
  return thinking.budget_tokens + requested
}

/** Newer models take a temperature or a top-p, not both. */
function toSampling(
  options: GenerationOptions,
): Pick<AnthropicRequestWire, 'temperature' | 'top_p' | 'top_k'> {
  const { temperature, topP, topK } = options
  return {
    ...(temperature === undefined ? {} : { temperature: Math.min(1, temperature) }),
    ...(temperature === undefined && topP !== undefined ? { top_p: topP } : {}),
    ...(topK === undefined ? {} : { top_k: topK }),
  }
}

function toFormat(options: GenerationOptions): Record<string, unknown> {
  if (options.responseSchema === undefined) return {}
  return { format: { type: 'json_schema', schema: closed(options.responseSchema) } }
}

/**
 * Structured output demands that every object says it takes no other properties, and refuses bounds: they go into the
 * description, as Anthropic's own SDK does it, and the answer is checked with the whole schema.
 */
function closed(schema: unknown, isSchema = true): unknown {
  if (Array.isArray(schema)) return schema.map(item => closed(item))
  if (schema === null || typeof schema !== 'object') return schema
  const bounds = isSchema ? Object.entries(schema).filter(([key]) => BOUNDS.test(key)) : []
  const entries = Object.entries(schema)
    .filter(entry => !bounds.some(([key]) => key === entry[0]))
    .map(([key, value]) => [key, closed(value, !isSchema || !NAMED.has(key))] as const)
  const copy: Record<string, unknown> = Object.fromEntries(entries)
  if (bounds.length > 0) {
    const words = bounds.map(([key, value]) => `${key}: ${JSON.stringify(value)}`).join(', ')
    copy.description = [copy.description, `(${words})`].filter(text => typeof text === 'string').join(' ')
  }
  if (!isSchema) return copy
  if (copy.type === 'object' && copy.additionalProperties === undefined) copy.additionalProperties = false
  return copy
}

/** Places whose keys are names and not words of JSON schema. */
const NAMED: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions', 'patternProperties'])

const BOUNDS = /^((min|max|exclusiveM)[A-Za-z]+|multipleOf|uniqueItems)$/

/**
 * When Claude may be asked to think, and how. Up to 4.5 a budget of tokens is given and the turn being continued
 * must begin with thinking; from 4.6 on the model decides and takes an effort; from 5.1 on it always thinks, and
 * its thinking is bound to what stands before it.
 */
interface AnthropicThinkingWire {
  type: 'enabled' | 'adaptive'
  budget_tokens?: number
  display?: 'summarized' | 'omitted'
  block_binding?: { prefix_mismatch_behavior: 'drop_block' }
}

interface ThinkingOptions {
  thinking?: AnthropicThinkingWire
  effort?: 'low' | 'medium' | 'high'
}

/** The wire's fields for the requested thinking, or nothing where it would be refused. */
function toThinking(request: PreparedRequest): ThinkingOptions {
  const { report, model } = request
  const wanted = request.options.thinking
  if (isBound(request)) return boundThinking(request)
  if (wanted === undefined || wanted.budgetTokens === 0) return {}
  if (isForced(request.options)) {
    report('leave-out', `${model} does not think when a tool call is forced; thinking was left out.`)
    return {}
  }
  if (isAdaptive(request)) return adaptiveThinking(wanted)
  if (isTurnWithoutThinking(request.messages)) {
    report('leave-out', `The turn was begun without thinking; ${model} continues it without.`)
    return {}
  }
  const requested = wanted.budgetTokens === -1 ? undefined : wanted.budgetTokens
  const budget = Math.max(1024, requested ?? BUDGETS[wanted.effort ?? 'medium'])
  return { thinking: { type: 'enabled', budget_tokens: Math.min(budget, request.info.outputLimit - 1024) } }
}

function adaptiveThinking(wanted: NonNullable<GenerationOptions['thinking']>): ThinkingOptions {
  const effort = effortOf(wanted)
  return {
    thinking: { type: 'adaptive', ...(wanted.includeThoughts ? { display: 'summarized' } : {}) },
    ...(effort === undefined ? {} : { effort }),
  }
}

/**
 * Sent with every request, because the API keeps no setting between two of them. Should something before a thinking
 * block have changed without our knowledge, the API drops the block and says so, instead of refusing the request.
 */
function boundThinking({ options, model, report }: PreparedRequest): ThinkingOptions {
  const { thinking, effort } = adaptiveThinking(options.thinking ?? {})
  if (options.thinking?.budgetTokens === 0) {
    report('replace', `${model} always thinks; the lowest effort was requested instead of none.`)
  }
  return {
    thinking: {
      type: 'adaptive',
      ...thinking,
      block_binding: { prefix_mismatch_behavior: 'drop_block' },
    },
    ...(effort === undefined ? {} : { effort }),
  }
}

/** Sampling settings are refused together with thinking, and by 4.7 and later altogether. */
function takesSampling(request: PreparedRequest, thinking: AnthropicThinkingWire | undefined): boolean {
  return thinking === undefined && !refusesSampling(request.model)
}

function refusesSampling(model: string): boolean {
  const version = claudeVersion(model)
  return version === undefined ? /mythos|fable/.test(model) : version >= 407
}

function isAdaptive(request: PreparedRequest): boolean {
  return request.profile.name !== 'anthropic-4.5'
}

function isBound({ profile }: PreparedRequest): boolean {
  return profile.reasoning.bound === true
}

function isForced(options: GenerationOptions): boolean {
  return options.toolChoice === 'required' || typeof options.toolChoice === 'object'
}

/** True while a turn is continued whose last answer did not begin with thinking: by results, or by its own text. */
function isTurnWithoutThinking(messages: readonly ProviderMessage[]): boolean {
  const last = messages.findLast(message => message.role === 'assistant')
  if (last === undefined) return false
  const calls = last.parts.some(part => part.type === 'tool-call')
  return last === messages.at(-1) || (calls && last.parts[0]?.type !== 'reasoning')
}

const BUDGETS = { minimal: 1024, low: 2048, medium: 8192, high: 24_576 } as const

function effortOf(wanted: NonNullable<GenerationOptions['thinking']>): ThinkingOptions['effort'] {
  if (wanted.effort !== undefined) return wanted.effort === 'minimal' ? 'low' : wanted.effort
  if (wanted.budgetTokens === undefined || wanted.budgetTokens < 0) return undefined
  if (wanted.budgetTokens <= 4096) return 'low'
  return wanted.budgetTokens <= 16_384 ? 'medium' : 'high'
}
