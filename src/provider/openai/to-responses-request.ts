/**
 * A repaired history → the body of OpenAI's Responses API. Nothing is stored there (`store: false`), so
 * reasoning travels with us, encrypted, and items are sent without ids: an id would have to exist on the server.
 */
import {
  type GenerationOptions,
  type MediaPart,
  mediaNote,
  mediaUrl,
  objectSchema,
  type ProviderMessage,
  type ProviderPart,
  type ReasoningPart,
  resultText,
  type ServerTool,
  type ToolDeclaration,
  type ToolResultPart,
} from '../provider.js'
import { type Abilities, abilitiesOf, JSON_IN_WORDS } from '../request-options.js'
import type { PreparedRequest } from '../stream-answer.js'

export interface ResponsesRequestWire {
  model: string
  input: ResponsesItemWire[]
  instructions?: string
  tools?: Record<string, unknown>[]
  tool_choice?: unknown
  store: false
  stream: true
  include?: string[]
  [field: string]: unknown
}

export type ResponsesItemWire = Record<string, unknown>

/** Writes the body. */
export function toResponsesRequest(request: PreparedRequest): ResponsesRequestWire {
  const { messages, tools, options, model } = request
  const head = messages.findIndex(message => message.role !== 'system')
  const leading = head < 0 ? messages : messages.slice(0, head)
  const rest = head < 0 ? [] : messages.slice(head)
  const instructions = leading.map(message => textOf(message.parts)).join('\n')
  // A model that decides by itself is not asked for anything.
  const reasons =
    isReasoningModel(model) || /^grok-/.test(model) || (options.thinking?.budgetTokens ?? -1) >= 0
  const server = toServerTools(request.serverTools)
  const declared = [...server.tools, ...tools.map(toTool)]
  const asksForLogprobs = options.logprobs !== undefined && !isReasoningModel(model)
  const include = [
    // Models that do not think refuse to be asked for their encrypted thoughts.
    ...(reasons ? ['reasoning.encrypted_content'] : []),
    ...(asksForLogprobs ? ['message.output_text.logprobs'] : []),
    ...server.include,
  ]
  reportThinking(request, effortFor(model, options.thinking))
  return {
    model,
    ...(instructions === '' ? {} : { instructions }),
    input: [...jsonWords(options), ...rest.flatMap(toItems)],
    ...(declared.length > 0 ? { tools: declared, ...toToolChoice(options) } : {}),
    ...toSettings(options, model),
    store: false,
    ...(include.length > 0 ? { include } : {}),
    stream: true,
  }
}

/** JSON of any form is given only when a message of the input asks for it too; instructions do not count. */
function jsonWords({ responseFormat }: GenerationOptions): ResponsesItemWire[] {
  return responseFormat === 'json' ? [{ role: 'developer', content: JSON_IN_WORDS }] : []
}

function toItems(message: ProviderMessage): ResponsesItemWire[] {
  if (message.role === 'assistant') return toAssistantItems(message.parts)
  if (message.role === 'system') return [{ role: 'developer', content: textOf(message.parts) }]
  const results = message.parts.filter(part => part.type === 'tool-result').map(toResult)
  const content = message.parts.flatMap(toUserContent)
  return [...results, ...(content.length > 0 ? [{ role: 'user', content }] : [])]
}

/** Items stay in the order in which the model made them: reasoning belongs to what follows it. */
function toAssistantItems(parts: readonly ProviderPart[]): ResponsesItemWire[] {
  return parts.flatMap((part): ResponsesItemWire[] => {
    switch (part.type) {
      case 'reasoning':
        return part.signature === undefined ? [] : [toReasoning(part)]
      case 'tool-call':
        return [
          {
            type: 'function_call',
            call_id: part.id,
            name: part.name,
            arguments: typeof part.args === 'string' ? part.args : JSON.stringify(part.args ?? {}),
          },
        ]
      case 'media':
        return [{ role: 'assistant', content: [{ type: 'output_text', text: mediaNote(part) }] }]
      case 'tool-result':
        return [toResult(part)]
      case 'text':
      case 'vendor':
        return part.text === ''
          ? []
          : [{ role: 'assistant', content: [{ type: 'output_text', text: part.text }], ...phaseOf(part) }]
      default:
        part satisfies never
        return []
    }
  })
}

/** Whether a text was a remark on the way or the answer: models that say so stop early when it is not sent back. */
function phaseOf({ signature, origin }: ProviderPart & { type: 'text' | 'vendor' }): { phase?: string } {
  const [, phase] = origin?.vendor === 'openai' ? (PHASE.exec(signature ?? '') ?? []) : []
  return phase === undefined ? {} : { phase }
}

const PHASE = /^phase-(commentary|final_answer)$/

/** A message's phase travels as the signature of its text: OpenAI's own, and nobody else's business. */
export function phaseMark(phase: string | null | undefined): string | undefined {
  const mark = `phase-${phase}`
  return PHASE.test(mark) ? mark : undefined
}

function toReasoning(part: ReasoningPart): ResponsesItemWire {
  const summary = part.text === '' ? [] : [{ type: 'summary_text', text: part.text }]
  return { type: 'reasoning', summary, encrypted_content: part.signature }
}

function toResult(part: ToolResultPart): ResponsesItemWire {
  const text = resultText(part.result)
  const media = part.media ?? []
  const output = media.length === 0 ? text : [{ type: 'input_text', text }, ...media.map(toMedia)]
  return { type: 'function_call_output', call_id: part.id, output }
}

function toUserContent(part: ProviderPart): ResponsesItemWire[] {
  if (part.type === 'media') return [toMedia(part)]
  if (part.type === 'text' || part.type === 'vendor') return [{ type: 'input_text', text: part.text }]
  return []
}

function toMedia(media: MediaPart): ResponsesItemWire {
  if (media.mimeType.startsWith('image/')) {
    return { type: 'input_image', image_url: mediaUrl(media), detail: 'auto' }
  }
  if (media.mimeType === 'application/pdf') {
    return media.data === undefined
      ? { type: 'input_file', file_url: media.url }
      : { type: 'input_file', filename: media.name ?? 'document.pdf', file_data: mediaUrl(media) }
  }
  return { type: 'input_text', text: mediaNote(media) }
}

function textOf(parts: readonly ProviderPart[]): string {
  return parts.flatMap(part => (part.type === 'text' || part.type === 'vendor' ? [part.text] : [])).join('\n')
}

function toTool(tool: ToolDeclaration): Record<string, unknown> {
  const { name, description, parameters } = tool
  // Strict is this API's default and refuses most schemas that people write.
  return { type: 'function', name, description, parameters: objectSchema(parameters), strict: false }
}

function toToolChoice(options: GenerationOptions): { tool_choice?: unknown } {
  const { toolChoice } = options
  if (toolChoice === undefined) return {}
  if (typeof toolChoice !== 'object') return { tool_choice: toolChoice }
  const choose = (name: string) => ({ type: 'function', name })
  if ('name' in toolChoice) return { tool_choice: choose(toolChoice.name) }
  return { tool_choice: { type: 'allowed_tools', mode: 'required', tools: toolChoice.names.map(choose) } }
}

/** The API knows neither stop sequences, nor a seed, nor top-k; models that think refuse sampling settings too. */
function toSettings(options: GenerationOptions, model: string): Record<string, unknown> {
  const samples = !isReasoningModel(model)
  const effort = takesEffort(model) ? effortFor(model, options.thinking) : undefined
  const summary = options.thinking?.includeThoughts === true && takesEffort(model) ? { summary: 'auto' } : {}
  const reasoning = { ...(effort === undefined ? {} : { effort }), ...summary }
  const schema = options.responseSchema
  const tier = serviceTier(options)
  return {
    ...(samples && options.temperature !== undefined ? { temperature: options.temperature } : {}),
    ...(samples && options.topP !== undefined ? { top_p: options.topP } : {}),
    ...(options.maxOutputTokens === undefined ? {} : { max_output_tokens: options.maxOutputTokens }),
    ...(Object.keys(reasoning).length > 0 ? { reasoning } : {}),
    ...(samples && options.logprobs ? { top_logprobs: options.logprobs } : {}),
    ...(schema ? { text: { format: { type: 'json_schema', name: 'answer', schema, strict: false } } } : {}),
    ...(options.responseFormat === 'json' ? { text: { format: { type: 'json_object' } } } : {}),
    ...(tier === undefined ? {} : { service_tier: tier }),
  }
}

/** Models that reason: they return encrypted reasoning, take an effort, and refuse sampling settings. */
export function isReasoningModel(model: string): boolean {
  return /^(o\d|gpt-[5-9]|codex-)/.test(model) && !/chat/.test(model)
}

type Thinking = NonNullable<GenerationOptions['thinking']>

/** OpenAI takes an effort, not a number of tokens, and not every model accepts every effort. */
export function effortFor(model: string, thinking: Thinking | undefined): string | undefined {
  if (thinking === undefined) return undefined
  const { budgetTokens = -1 } = thinking
  const effort = thinking.effort ?? (budgetTokens < 0 ? undefined : effortOf(budgetTokens))
  if (effort !== 'minimal' || /^gpt-5(-|$)/.test(model)) return effort
  return thinking.budgetTokens === 0 && /^gpt-(5\.|[6-9])/.test(model) ? 'none' : 'low'
}

/** OpenAI's models that do not think refuse an effort. Those of others are asked as their server says. */
export function takesEffort(model: string): boolean {
  return isReasoningModel(model) || !/^(gpt-[0-4]|gpt-.*chat|chatgpt-|ft:gpt-[0-4])/.test(model)
}

/** Reports that a model thinks although it was asked not to. */
export function reportThinking(
  { model, options, report }: PreparedRequest,
  effort: string | undefined,
): void {
  if (options.thinking?.budgetTokens !== 0 || !takesEffort(model)) return
  if (effort === undefined || effort === 'none') return
  report('replace', `${model} always thinks; the effort "${effort}" was requested instead of none.`)
}

function effortOf(budgetTokens: number): NonNullable<Thinking['effort']> {
  if (budgetTokens <= 1024) return 'minimal'
  if (budgetTokens <= 4096) return 'low'
  return budgetTokens <= 16_384 ? 'medium' : 'high'
}

/** What the API takes for a model. Those that reason refuse sampling settings. */
export function responsesAbilities(options: GenerationOptions, model: string): Abilities {
  const samples = !isReasoningModel(model)
  const sent = {
    ...sentByBoth(options, samples),
    maxOutputTokens: true,
    thinkingConfig: takesEffort(model) || (options.thinking?.budgetTokens ?? 1) <= 0,
    logprobs: samples,
  }
  return abilitiesOf(options, sent, SERVER_TOOLS)
}

export function sentByBoth(options: GenerationOptions, samples: boolean): Record<string, boolean> {
  return {
    temperature: samples,
    topP: samples,
    responseSchema: true,
    responseMimeType: isJson(options),
    toolConfig: true,
    serviceTier: serviceTier(options) !== undefined,
  }
}

/** Other forms, such as one word of an enumeration, are Gemini's alone. */
function isJson({ responseFormat }: GenerationOptions): boolean {
  return responseFormat === 'json'
}

const TIERS: Readonly<Record<string, string>> = { standard: 'default', flex: 'flex', priority: 'priority' }

export function serviceTier({ gemini }: GenerationOptions): string | undefined {
  return TIERS[String(gemini?.serviceTier).toLowerCase()]
}

/** The Responses API's counterparts of Gemini's tools, and what they add to the answer on request. */
const SERVER_TOOLS: Readonly<Record<string, { tool: Record<string, unknown>; include: string }>> = {
  googleSearch: { tool: { type: 'web_search' }, include: 'web_search_call.action.sources' },
  googleSearchRetrieval: { tool: { type: 'web_search' }, include: 'web_search_call.action.sources' },
  codeExecution: {
    tool: { type: 'code_interpreter', container: { type: 'auto' } },
    include: 'code_interpreter_call.outputs',
  },
}

function toServerTools(tools: readonly ServerTool[] = []) {
  const known = tools.flatMap(({ name }) => SERVER_TOOLS[name] ?? [])
  return { tools: known.map(({ tool }) => tool), include: [...new Set(known.map(({ include }) => include))] }
}
