/**
 * A repaired history → the body of a Chat Completions request, for OpenAI and for every server that speaks
 * the same language. Contents are strings wherever they can be: some servers lose what is in arrays.
 */
import { defined } from '../../base/defined.js'
import { own } from '../../base/own.js'
import {
  type GenerationOptions,
  type MediaPart,
  mediaNote,
  mediaUrl,
  objectSchema,
  type ProviderMessage,
  type ProviderPart,
  resultText,
  type TextPart,
  type ToolCallPart,
  type ToolDeclaration,
} from '../provider.js'
import { type Abilities, abilitiesOf, JSON_IN_WORDS, schemaInWords } from '../request-options.js'
import type { ReasoningDetail } from '../sealed-fields.js'
import type { PreparedRequest } from '../stream-answer.js'
import type { ChatQuirks } from '../vendor-row.js'
import { vendorRow } from '../vendors.js'
import { detailsOf, extraContentOf } from './gateway-fields.js'
import { isForced, kimiOptions, kimiTakesChoice, kimiThinking, reportKimiThinking } from './kimi-thinking.js'
import {
  effortFor,
  isReasoningModel,
  reportThinking,
  sentByBoth,
  serviceTier,
  takesEffort,
} from './to-responses-request.js'

export interface ChatRequestWire {
  model: string
  messages: ChatMessageWire[]
  stream: true
  stream_options?: { include_usage: true }
  tools?: { type: 'function'; function: { name: string; description: string; parameters: unknown } }[]
  tool_choice?: unknown
  [field: string]: unknown
}

export interface ChatMessageWire {
  role: 'system' | 'user' | 'assistant' | 'tool'
  content: string | ChatContentWire[] | null
  tool_calls?: ChatCallWire[]
  tool_call_id?: string
  name?: string
  reasoning_content?: string
  reasoning?: string
  reasoning_details?: ReasoningDetail[]
  extra_content?: Record<string, unknown>
}

interface ChatCallWire {
  id: string
  type: 'function'
  function: { name: string; arguments: string }
  extra_content?: Record<string, unknown>
}

type ChatContentWire = Record<string, unknown>

/** Writes the body. */
export function toChatRequest(request: PreparedRequest, quirks: ChatQuirks): ChatRequestWire {
  const isKimi = quirks.thinkingField === 'kimi'
  const options = isKimi ? kimiOptions(request) : request.options
  if (isKimi) reportKimiThinking(request)
  if (quirks.forcedWithout && isForced(options) && options.thinking?.budgetTokens !== 0)
    request.report('replace', `${request.model} does not think in this request, because it must call a tool.`)
  const allowed = allowedNames(options, quirks)
  const tools = allowed ? request.tools.filter(({ name }) => allowed.includes(name)) : request.tools
  const messages = request.messages.flatMap(message => toMessages(message, quirks, request.profile.name))
  if (quirks.thinkingField === 'reasoning_effort')
    reportThinking(request, effortFor(request.model, options.thinking))
  return {
    model: request.model,
    messages: withSchemaInWords(messages, options, quirks),
    ...(tools.length > 0 ? { tools: tools.map(toTool), ...toToolChoice(options, quirks) } : {}),
    ...toSettings(options, quirks, request.model),
    stream: true,
    ...(quirks.asksForUsage ? { stream_options: { include_usage: true } } : {}),
  }
}

function toMessages(message: ProviderMessage, quirks: ChatQuirks, profile: string): ChatMessageWire[] {
  switch (message.role) {
    case 'assistant':
      return [toAssistant(message.parts, quirks)]
    case 'tool':
      return toToolMessages(message.parts, profile)
    case 'system':
      return [{ role: 'system', content: textOf(message.parts) }]
    default:
      return [{ role: 'user', content: toUserContent(message.parts) }]
  }
}

function toAssistant(parts: readonly ProviderPart[], quirks: ChatQuirks): ChatMessageWire {
  const text = textOf(parts)
  const calls = parts.filter(part => part.type === 'tool-call')
  return {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    ...toReasoning(parts, quirks, calls.length > 0),
    ...(calls.length > 0 ? { tool_calls: calls.map(call => toCall(call, quirks)) } : {}),
    ...(quirks.extraContent ? extraContentOf(parts.findLast(isSignedText)) : {}),
  }
}

function isSignedText(part: ProviderPart): part is TextPart {
  return part.type === 'text' && Boolean(part.signature)
}

function toCall(call: ToolCallPart, { extraContent }: ChatQuirks): ChatCallWire {
  return {
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: toArguments(call.args) },
    ...(extraContent ? extraContentOf(call) : {}),
  }
}

function toReasoning(
  parts: readonly ProviderPart[],
  quirks: ChatQuirks,
  hasCalls: boolean,
): Pick<ChatMessageWire, 'reasoning_content' | 'reasoning' | 'reasoning_details'> {
  const details = quirks.reasoningDetails ? detailsOf(parts) : []
  if (details.length > 0) return { reasoning_details: details }
  const field = quirks.reasoningField
  if (field === undefined) return {}
  const text = parts.flatMap(part => (part.type === 'reasoning' ? [part.text] : [])).join('\n')
  if (quirks.reasoningAlways) return { [field]: text }
  if (quirks.reasoningWithCallsOnly) return hasCalls ? { [field]: text } : {}
  return text === '' ? {} : { [field]: text }
}

/** One message per result; whatever else the turn holds follows as a user's. */
function toToolMessages(parts: readonly ProviderPart[], profile: string): ChatMessageWire[] {
  const results = parts.filter(part => part.type === 'tool-result')
  const others = parts.filter(part => part.type !== 'tool-result')
  return [
    ...results.map(part => ({
      role: 'tool' as const,
      tool_call_id: part.id,
      // Mistral's own schema wants the name as well; OpenAI ignores it.
      ...(profile.startsWith('mistral') ? { name: part.name } : {}),
      content: resultText(part.result),
    })),
    ...(others.length > 0 ? [{ role: 'user' as const, content: toUserContent(others) }] : []),
  ]
}

function toArguments(args: unknown): string {
  return typeof args === 'string' ? args : JSON.stringify(args ?? {})
}

function textOf(parts: readonly ProviderPart[]): string {
  const texts = parts.map(part => {
    if (part.type === 'text' || part.type === 'vendor') return part.text
    return part.type === 'media' ? mediaNote(part) : ''
  })
  return texts.filter(text => text !== '').join('\n')
}

function toUserContent(parts: readonly ProviderPart[]): string | ChatContentWire[] {
  if (!parts.some(part => part.type === 'media')) return textOf(parts)
  return parts.flatMap((part): ChatContentWire[] => {
    if (part.type === 'media') return [toMedia(part)]
    const text = part.type === 'text' || part.type === 'vendor' ? part.text : ''
    return text === '' ? [] : [{ type: 'text', text }]
  })
}

function toMedia(media: MediaPart): ChatContentWire {
  const { mimeType } = media
  if (mimeType.startsWith('image/')) return { type: 'image_url', image_url: { url: mediaUrl(media) } }
  if (mimeType.startsWith('audio/') && media.data !== undefined) {
    const format = /mpeg|mp3/.test(mimeType) ? 'mp3' : 'wav'
    return { type: 'input_audio', input_audio: { data: media.data, format } }
  }
  if (mimeType === 'application/pdf' && media.data !== undefined) {
    return { type: 'file', file: { filename: media.name ?? 'document.pdf', file_data: mediaUrl(media) } }
  }
  return { type: 'text', text: mediaNote(media) }
}

function toTool(tool: ToolDeclaration): NonNullable<ChatRequestWire['tools']>[number] {
  const { name, description, parameters } = tool
  return { type: 'function', function: { name, description, parameters: objectSchema(parameters) } }
}

function toToolChoice(options: GenerationOptions, quirks: ChatQuirks): { tool_choice?: unknown } {
  const { toolChoice } = options
  if (toolChoice === undefined) return {}
  if (typeof toolChoice !== 'object')
    return { tool_choice: toolChoice === 'required' ? quirks.requiredToolChoice : toolChoice }
  const choose = (name: string) => ({ type: 'function', function: { name } })
  if ('name' in toolChoice) return { tool_choice: choose(toolChoice.name) }
  if (allowedNames(options, quirks)) return { tool_choice: quirks.requiredToolChoice }
  const allowed_tools = { mode: 'required', tools: toolChoice.names.map(choose) }
  return { tool_choice: { type: 'allowed_tools', allowed_tools } }
}

/** Where a server cannot be asked for one of several tools, only these are declared. */
function allowedNames({ toolChoice }: GenerationOptions, quirks: ChatQuirks): readonly string[] | undefined {
  if (typeof toolChoice !== 'object' || !('names' in toolChoice)) return undefined
  return quirks.takesAllowedTools ? undefined : toolChoice.names
}

function toSettings(options: GenerationOptions, quirks: ChatQuirks, model: string): Record<string, unknown> {
  // Models that think refuse sampling settings outright; leaving them out is the only way to be answered.
  const samples = !isReasoningModel(model)
  const effort = refusesEffort(model, quirks) ? undefined : effortFor(model, options.thinking)
  const tier = serviceTier(options)
  return {
    ...(samples && options.temperature !== undefined ? { temperature: options.temperature } : {}),
    ...(samples && options.topP !== undefined ? { top_p: options.topP } : {}),
    ...(quirks.takesTopK && options.topK !== undefined ? { top_k: options.topK } : {}),
    ...(quirks.takesSeed && options.seed !== undefined ? { [quirks.seedField]: options.seed } : {}),
    ...(options.maxOutputTokens === undefined ? {} : { [quirks.maxTokensField]: options.maxOutputTokens }),
    ...(samples && options.stopSequences?.length ? { stop: [...options.stopSequences] } : {}),
    ...(samples ? toTokenSettings(options, quirks) : {}),
    ...(quirks.takesServiceTier && tier !== undefined ? { service_tier: tier } : {}),
    ...toResponseFormat(options, quirks),
    ...(quirks.thinkingField === 'kimi' ? kimiThinking(model, options, effort) : {}),
    ...(effort === undefined ? {} : toThinking(effort, options.thinking?.budgetTokens, quirks)),
    ...(quirks.forcedWithout && isForced(options) ? THINKING_OFF[quirks.forcedWithout] : {}),
  }
}

const THINKING_OFF = {
  thinking: { thinking: { type: 'disabled' } },
  enable_thinking: { enable_thinking: false },
} as const

/** The field is OpenAI's own, and its models that do not think refuse it. */
function refusesEffort(model: string, { thinkingField }: ChatQuirks): boolean {
  return thinkingField === 'reasoning_effort' && !takesEffort(model)
}

function toTokenSettings(options: GenerationOptions, quirks: ChatQuirks): Record<string, unknown> {
  const { presencePenalty, frequencyPenalty, logprobs } = options
  return {
    ...(quirks.takesPenalties
      ? defined({ presence_penalty: presencePenalty, frequency_penalty: frequencyPenalty })
      : {}),
    ...(quirks.takesLogprobs && logprobs !== undefined
      ? { logprobs: true, ...(logprobs > 0 ? { top_logprobs: logprobs } : {}) }
      : {}),
  }
}

function toThinking(
  effort: string,
  budgetTokens: number | undefined,
  quirks: ChatQuirks,
): Record<string, unknown> {
  if (quirks.thinkingField === 'reasoning_effort') return { reasoning_effort: effort }
  if (quirks.thinkingField === 'reasoning')
    return { reasoning: { effort: budgetTokens === 0 ? 'none' : effort } }
  if (quirks.thinkingField !== 'thinking') return {}
  return { thinking: { type: budgetTokens === 0 ? 'disabled' : 'enabled' } }
}

function toResponseFormat(options: GenerationOptions, quirks: ChatQuirks): Record<string, unknown> {
  const schema = options.responseSchema
  if (schema === undefined && options.responseFormat !== 'json') return {}
  if (schema === undefined || quirks.responseFormat === 'json_object')
    return { response_format: { type: 'json_object' } }
  return { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } } }
}

/** `json_object` servers get the schema as text; they require that it contains "JSON". */
function withSchemaInWords(
  messages: ChatMessageWire[],
  options: GenerationOptions,
  quirks: ChatQuirks,
): ChatMessageWire[] {
  const { responseSchema: schema } = options
  if (schema === undefined && options.responseFormat !== 'json') return messages
  if (schema !== undefined && quirks.responseFormat !== 'json_object') return messages
  const words = schema === undefined ? JSON_IN_WORDS : schemaInWords(schema)
  const [first, ...rest] = messages
  if (first?.role !== 'system') return [{ role: 'system', content: words }, ...messages]
  return [{ ...first, content: `${first.content}\n${words}` }, ...rest]
}

const STANDARD: ChatQuirks = {
  maxTokensField: 'max_tokens',
  asksForUsage: true,
  seedField: 'seed',
  requiredToolChoice: 'required',
  responseFormat: 'json_schema',
  takesTopK: false,
  takesSeed: true,
  takesPenalties: true,
  takesLogprobs: false,
  takesServiceTier: false,
  takesAllowedTools: false,
}

const DEEPSEEK: Partial<ChatQuirks> = {
  reasoningField: 'reasoning_content',
  responseFormat: 'json_object',
  thinkingField: 'thinking',
  takesSeed: false,
}

// By profile, because a server may be given by its address and profile alone.
const QUIRKS_BY_PROFILE: Readonly<Record<string, Partial<ChatQuirks>>> = {
  'openai-chat': {
    maxTokensField: 'max_completion_tokens',
    thinkingField: 'reasoning_effort',
    takesLogprobs: true,
    takesServiceTier: true,
    takesAllowedTools: true,
  },
  mistral: { asksForUsage: false, seedField: 'random_seed', requiredToolChoice: 'any' },
  'mistral-template': { asksForUsage: false, seedField: 'random_seed', requiredToolChoice: 'any' },
  'deepseek-thinking': { ...DEEPSEEK, reasoningWithCallsOnly: true },
  'deepseek-v4': { ...DEEPSEEK, reasoningAlways: true },
  kimi: { reasoningField: 'reasoning_content', thinkingField: 'thinking' },
  glm: { reasoningField: 'reasoning_content', thinkingField: 'thinking' },
  qwen: { reasoningField: 'reasoning_content' },
  minimax: { reasoningField: 'reasoning_content' },
  'compatible-gemini': { extraContent: true, thinkingField: 'reasoning_effort' },
  openrouter: { reasoningDetails: true },
  'openrouter-gemini': { reasoningDetails: true },
  groq: { maxTokensField: 'max_completion_tokens', thinkingField: 'reasoning_effort', takesPenalties: false },
  vllm: { reasoningField: 'reasoning', takesTopK: true, takesLogprobs: true },
  ollama: { reasoningField: 'reasoning', thinkingField: 'reasoning_effort' },
}

/** The quirks of a server: its own, then those of its profile, then the standard ones. */
export function chatQuirks(profileName: string, preset?: string): ChatQuirks {
  const ofServer = preset === undefined ? undefined : vendorRow(preset)?.quirks
  return { ...STANDARD, ...own(QUIRKS_BY_PROFILE, profileName), ...ofServer }
}

/** What a server takes for a model. */
export function chatAbilities(options: GenerationOptions, quirks: ChatQuirks, model: string): Abilities {
  const samples = !isReasoningModel(model)
  const { budgetTokens } = options.thinking ?? {}
  const isRefused = refusesEffort(model, quirks)
  const penalties = samples && quirks.takesPenalties
  return abilitiesOf(options, {
    ...sentByBoth(options, samples),
    toolConfig: quirks.thinkingField !== 'kimi' || kimiTakesChoice(options, model),
    maxOutputTokens: true,
    stopSequences: samples,
    topK: quirks.takesTopK,
    seed: quirks.takesSeed,
    thinkingConfig: isRefused
      ? (budgetTokens ?? 1) <= 0
      : quirks.thinkingField !== undefined || budgetTokens === -1,
    presencePenalty: penalties,
    frequencyPenalty: penalties,
    logprobs: samples && quirks.takesLogprobs,
    serviceTier: quirks.takesServiceTier && serviceTier(options) !== undefined,
  })
}
