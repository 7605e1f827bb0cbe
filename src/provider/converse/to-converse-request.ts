/**
 * A repaired history → the body of Bedrock's Converse API, one form for the models of all makers. Bytes are base64 in
 * the body, as on the wire. What only some models take is sent to these: AWS refuses a field that a model does not know.
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
} from '../provider.js'
import { type Abilities, abilitiesOf, JSON_IN_WORDS, schemaInWords } from '../request-options.js'
import type { PreparedRequest } from '../stream-answer.js'

export interface ConverseRequestWire {
  modelId: string
  messages: ConverseMessageWire[]
  system?: { text: string }[]
  inferenceConfig?: { maxTokens?: number; temperature?: number; topP?: number; stopSequences?: string[] }
  toolConfig?: { tools: ConverseToolWire[]; toolChoice?: Record<string, object> }
  additionalModelRequestFields?: Record<string, unknown>
}

export interface ConverseMessageWire {
  role: 'user' | 'assistant'
  content: ConverseBlockWire[]
}

export interface ConverseBlockWire {
  text?: string
  image?: ConverseFileWire
  document?: ConverseFileWire & { name: string }
  video?: ConverseFileWire
  toolUse?: { toolUseId: string; name: string; input: unknown }
  toolResult?: { toolUseId: string; content: { text: string }[]; status?: 'error' }
}

interface ConverseFileWire {
  format: string
  source: { bytes: string }
}

interface ConverseToolWire {
  toolSpec: { name: string; description?: string; inputSchema: { json: Record<string, unknown> } }
}

/** Writes the body. */
export function toConverseRequest(request: PreparedRequest): ConverseRequestWire {
  const { model, messages, options } = request
  const turns = messages.filter(message => message.role !== 'system')
  const system = [
    ...messages.filter(message => message.role === 'system').map(message => textOf(message.parts)),
    ...inWords(options),
  ].filter(text => text.trim() !== '')
  const inferenceConfig = defined({
    maxTokens: options.maxOutputTokens,
    temperature: options.temperature,
    topP: options.topP,
    ...(options.stopSequences?.length ? { stopSequences: [...options.stopSequences] } : {}),
  })
  const fields = { ...toThinking(options, model), ...defined({ top_k: topK(options, model) }) }
  return {
    modelId: model,
    messages: toMessages(turns, model),
    ...(system.length > 0 ? { system: system.map(text => ({ text })) } : {}),
    ...(Object.keys(inferenceConfig).length > 0 ? { inferenceConfig } : {}),
    ...toTools(request, turns),
    ...(Object.keys(fields).length > 0 ? { additionalModelRequestFields: fields } : {}),
  }
}

/** What the model takes. The makers' own fields differ, and only known ones are sent. */
export function converseAbilities({ options, model }: PreparedRequest): Abilities {
  const { toolChoice, thinking } = options
  const isFree = toolChoice === undefined || toolChoice === 'auto' || toolChoice === 'none'
  return abilitiesOf(options, {
    maxOutputTokens: true,
    temperature: true,
    topP: true,
    topK: topK(options, model) !== undefined,
    stopSequences: true,
    responseSchema: true,
    responseMimeType: true,
    thinkingConfig: (thinking?.budgetTokens ?? 1) <= 0 || thinksByEffort(model),
    toolConfig: isFree || takesChoice(model),
  })
}

function toMessages(messages: readonly ProviderMessage[], model: string): ConverseMessageWire[] {
  const titles = new Titles()
  return messages.map(({ role, parts }) => ({
    role: role === 'assistant' ? 'assistant' : 'user',
    content: parts.flatMap(part => toBlocks(part, model, titles)),
  }))
}

function toBlocks(part: ProviderPart, model: string, titles: Titles): ConverseBlockWire[] {
  switch (part.type) {
    case 'text':
    case 'vendor':
      return part.text.trim() === '' ? [] : [{ text: part.text }]
    case 'tool-call':
      return [{ toolUse: { toolUseId: part.id, name: part.name, input: part.args ?? {} } }]
    case 'tool-result': {
      const text = resultText(part.result)
      const status = part.isError && /nova/.test(model) ? { status: 'error' as const } : {}
      const content = [{ text: text.trim() === '' ? '(no output)' : text }]
      return [{ toolResult: { toolUseId: part.id, content, ...status } }]
    }
    case 'media':
      return toMedia(part, titles)
    case 'reasoning':
      return []
  }
}

/**
 * Names of documents, of a few plain characters each. No two of a request may be equal, whatever their case; counted from
 * the beginning, each keeps its name while the history grows.
 */
class Titles {
  readonly #taken = new Set<string>()
  /** By name: how many were tried. */
  readonly #tried = new Map<string, number>()

  next(name: string | undefined): string {
    const plain = (name ?? '')
      .replaceAll(/[^A-Za-z0-9 ()[\]-]+/g, ' ')
      .replaceAll(/ +/g, ' ')
      .trim()
      .slice(0, 100)
      .trim()
    const key = plain.toLowerCase()
    for (let count = (this.#tried.get(key) ?? 0) + 1; ; count += 1) {
      this.#tried.set(key, count)
      const title = plain === '' ? `document ${count}` : count === 1 ? plain : `${plain} (${count})`
      if (this.#taken.has(title.toLowerCase())) continue
      this.#taken.add(title.toLowerCase())
      return title
    }
  }
}

/** A document needs text beside it. */
function toMedia(media: MediaPart, titles: Titles): ConverseBlockWire[] {
  const [kind, format] = FORMATS[media.mimeType] ?? []
  if (kind === undefined || format === undefined || media.data === undefined)
    return [{ text: mediaNote(media) }]
  const file = { format, source: { bytes: media.data } }
  if (kind !== 'document') return [{ [kind]: file }]
  const title = titles.next(media.name)
  return [{ text: `The file ${title}:` }, { document: { ...file, name: title } }]
}

const FORMATS: Readonly<Record<string, readonly ['image' | 'document' | 'video', string]>> = {
  'image/jpeg': ['image', 'jpeg'],
  'image/png': ['image', 'png'],
  'image/gif': ['image', 'gif'],
  'image/webp': ['image', 'webp'],
  'application/pdf': ['document', 'pdf'],
  'text/plain': ['document', 'txt'],
  'text/csv': ['document', 'csv'],
  'text/html': ['document', 'html'],
  'text/markdown': ['document', 'md'],
  'video/mp4': ['video', 'mp4'],
  'video/webm': ['video', 'webm'],
  'video/quicktime': ['video', 'mov'],
}

function textOf(parts: readonly ProviderPart[]): string {
  return parts.map(part => (part.type === 'text' || part.type === 'vendor' ? part.text : '')).join('\n')
}

/** A history with calls or results is refused without declarations; a stub for each tool it names satisfies. */
function toTools(
  { tools, options, model }: PreparedRequest,
  messages: readonly ProviderMessage[],
): Pick<ConverseRequestWire, 'toolConfig'> {
  const { toolChoice } = options
  const isNone = toolChoice === 'none'
  const names = typeof toolChoice === 'object' && 'names' in toolChoice ? toolChoice.names : undefined
  const allowed = isNone ? [] : tools.filter(({ name }) => names?.includes(name) ?? true)
  if (allowed.length > 0) {
    const choice = takesChoice(model) ? toToolChoice(toolChoice) : {}
    return { toolConfig: { tools: allowed.map(toTool), ...choice } }
  }
  const stubs = namesIn(messages).map(name => toTool({ name, description: GONE, parameters: {} }))
  return stubs.length > 0 ? { toolConfig: { tools: stubs } } : {}
}

const GONE = 'No longer available; do not call it. It is declared because the conversation mentions it.'

function namesIn(messages: readonly ProviderMessage[]): string[] {
  const calls = messages.flatMap(({ parts }) =>
    parts.flatMap(part => (part.type === 'tool-call' ? part.name : [])),
  )
  return [...new Set(calls)]
}

function toTool({ name, description, parameters }: ToolDeclaration): ConverseToolWire {
  const said = description.trim() === '' ? {} : { description }
  return { toolSpec: { name, ...said, inputSchema: { json: objectSchema(parameters) } } }
}

function toToolChoice(choice: GenerationOptions['toolChoice']): { toolChoice?: Record<string, object> } {
  if (choice === undefined || choice === 'none') return {}
  if (choice === 'auto') return { toolChoice: { auto: {} } }
  if (typeof choice === 'object' && 'name' in choice) return { toolChoice: { tool: { name: choice.name } } }
  return { toolChoice: { any: {} } }
}

/** Amazon's models can be made to call a tool. */
function takesChoice(model: string): boolean {
  return /\bnova-/.test(model)
}

function topK({ topK: value }: GenerationOptions, model: string): number | undefined {
  return /mistral|cohere|qwen/.test(model) ? value : undefined
}

function thinksByEffort(model: string): boolean {
  return /gpt-oss|\bnova-2/.test(model)
}

/** OpenAI's open models take an effort, and so do Amazon's of the second generation, where thinking is off otherwise. */
function toThinking({ thinking }: GenerationOptions, model: string): Record<string, unknown> {
  if (thinking === undefined || !thinksByEffort(model)) return {}
  const isOff = thinking.budgetTokens === 0
  const effort = isOff || thinking.effort === 'minimal' ? 'low' : (thinking.effort ?? 'medium')
  if (/gpt-oss/.test(model)) return { reasoning_effort: effort }
  if (isOff) return { reasoningConfig: { type: 'disabled' } }
  return { reasoningConfig: { type: 'enabled', maxReasoningEffort: effort } }
}

/** No model takes a schema by a field that all of them know. */
function inWords({ responseSchema, responseFormat }: GenerationOptions): string[] {
  if (responseSchema !== undefined) return [schemaInWords(responseSchema)]
  return responseFormat === 'json' ? [JSON_IN_WORDS] : []
}
