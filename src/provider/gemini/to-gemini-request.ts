/**
 * A repaired history → the body of Gemini's `generateContent`. Signatures stay on the very part they came
 * with, raw; results go as `user`, never as `function`, which newer endpoints refuse.
 */

import { isRecord } from '../../base/is-record.js'
import type {
  GenerationOptions,
  MediaPart,
  ProviderMessage,
  ProviderPart,
  ServerTool,
  TextPart,
  ToolDeclaration,
} from '../provider.js'
import { mediaNote } from '../provider.js'
import type { Profile } from '../repair/profile.js'
import { JSON_IN_WORDS, schemaInWords } from '../request-options.js'
import type { PreparedRequest } from '../stream-answer.js'
import { toOptions, withLeastThinking } from './gemini-options.js'

export interface GeminiRequestWire {
  contents: GeminiContentWire[]
  systemInstruction?: GeminiContentWire
  /** Functions, and the tools that Google's servers run. */
  tools?: Record<string, unknown>[]
  toolConfig?: Record<string, unknown>
  generationConfig?: Record<string, unknown>
  /** `safetySettings`, `cachedContent` and the other options that have their place beside the generation's. */
  [option: string]: unknown
}

export interface GeminiContentWire {
  role: 'user' | 'model'
  parts: GeminiPartWire[]
}

export type GeminiPartWire = Record<string, unknown>

interface GeminiFunctionWire {
  name: string
  [field: string]: unknown
}

/** Writes the body. */
export function toGeminiRequest(request: PreparedRequest, isVertex = false): GeminiRequestWire {
  const { messages, profile } = request
  const { options, words } = formInWords(request)
  const head = messages.findIndex(message => message.role !== 'system')
  const leading = head < 0 ? messages : messages.slice(0, head)
  const rest = head < 0 ? [] : messages.slice(head)
  const system = [...leading.flatMap(message => message.parts), ...words].flatMap(part =>
    toPart(part, profile),
  )
  const tools = toTools(request)
  const { generationConfig, beside } = toOptions(options, request.model, isVertex)
  return {
    contents: rest.map(message => toContent(message, profile)),
    // The SDK adds this role anyway; written here so that the reported body is the body sent.
    ...(system.length > 0 ? { systemInstruction: { role: 'user', parts: system } } : {}),
    ...(tools.length > 0 ? { tools } : {}),
    ...(request.tools.length > 0 ? toToolConfig(options) : {}),
    ...(Object.keys(generationConfig).length > 0 ? { generationConfig } : {}),
    ...beside,
  }
}

/** Gemini 2 does not take a form of the answer together with functions: it gets the form in words. */
function formInWords(request: PreparedRequest): { options: GenerationOptions; words: TextPart[] } {
  const { model, tools, report } = request
  const options = withLeastThinking(request)
  const { responseSchema, gemini = {}, ...others } = options
  const { responseMimeType, responseSchema: _exact, responseJsonSchema: _json, ...rest } = gemini
  const isJson = options.responseFormat === 'json' || responseMimeType === 'application/json'
  if (tools.length === 0 || !/gemini-[12]/.test(model) || (!responseSchema && !isJson))
    return { options, words: [] }
  const { responseFormat: _form, ...neutral } = others
  report(
    'replace',
    `${model} takes no form of the answer together with functions; the instruction describes it instead.`,
  )
  const text = responseSchema ? schemaInWords(responseSchema) : JSON_IN_WORDS
  return { options: { ...neutral, gemini: rest }, words: [{ type: 'text', text }] }
}

function toContent(message: ProviderMessage, profile: Profile): GeminiContentWire {
  return {
    role: message.role === 'assistant' ? 'model' : 'user',
    parts: message.parts.flatMap(part => toPart(part, profile)),
  }
}

function toPart(part: ProviderPart, profile: Profile): GeminiPartWire[] {
  const signature =
    'signature' in part && part.signature !== undefined ? { thoughtSignature: part.signature } : {}
  switch (part.type) {
    case 'text':
      return [{ text: part.text, ...signature }]
    case 'reasoning':
      return [{ text: part.text, thought: true, ...signature }]
    case 'tool-call':
      return [
        { functionCall: { ...idOf(part.id, profile), name: part.name, args: part.args ?? {} }, ...signature },
      ]
    case 'tool-result':
      return toResultParts(part, profile)
    case 'media':
      return [{ ...toMedia(part), ...part.gemini, ...signature }]
    case 'vendor':
      return part.vendor === 'gemini' && isRecord(part.value)
        ? [{ ...part.value, ...signature }]
        : [{ text: part.text }]
  }
}

function toResultParts(part: ProviderPart & { type: 'tool-result' }, profile: Profile): GeminiPartWire[] {
  const media = (part.media ?? []).map(toMedia)
  const inside = media.length > 0 && profile.media.inResult
  const functionResponse = {
    ...idOf(part.id, profile),
    name: part.name,
    response: isRecord(part.result) ? part.result : { output: part.result ?? '' },
    ...(inside ? { parts: media } : {}),
  }
  // Gemini 2 takes media only next to a response, not inside it.
  return inside ? [{ functionResponse }] : [{ functionResponse }, ...media]
}

function idOf(id: string, profile: Profile): { id?: string } {
  return profile.ids.onWire === 'omitted' || id === '' ? {} : { id }
}

function toMedia(media: MediaPart): GeminiPartWire {
  if (media.data !== undefined) return { inlineData: { mimeType: media.mimeType, data: media.data } }
  if (media.url !== undefined) return { fileData: { mimeType: media.mimeType, fileUri: media.url } }
  return { text: mediaNote(media) }
}

/** All functions are one tool, as ADK declares them; the others keep their side of it. */
function toTools({ tools, serverTools = [] }: PreparedRequest): Record<string, unknown>[] {
  const toEntry = ({ name, config }: ServerTool) => ({ [name]: config })
  return [
    ...serverTools.filter(tool => tool.beforeFunctions).map(toEntry),
    ...(tools.length > 0 ? [{ functionDeclarations: tools.map(toFunction) }] : []),
    ...serverTools.filter(tool => !tool.beforeFunctions).map(toEntry),
  ]
}

function toFunction(tool: ToolDeclaration): GeminiFunctionWire {
  const { name, description } = tool
  const properties = tool.parameters.properties
  const takesNothing = !isRecord(properties) || Object.keys(properties).length === 0
  // An object without properties is refused by some endpoints; a function may simply declare none.
  const { parameters, parametersJsonSchema, ...rest } = tool.gemini ?? { description }
  if (takesNothing) return { ...rest, name }
  if (parameters !== undefined && parametersJsonSchema === undefined) return { ...rest, name, parameters }
  return { ...rest, name, parametersJsonSchema: { ...tool.parameters } }
}

/** The configuration as it was given says more than a choice; with neither, nothing is sent. */
function toToolConfig({ toolChoice, gemini }: GenerationOptions): Pick<GeminiRequestWire, 'toolConfig'> {
  if (toolChoice === undefined || gemini?.toolConfig !== undefined) return {}
  if (typeof toolChoice === 'object') {
    const allowedFunctionNames = 'name' in toolChoice ? [toolChoice.name] : [...toolChoice.names]
    return { toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames } } }
  }
  const mode = { auto: 'AUTO', none: 'NONE', required: 'ANY' }[toolChoice]
  return { toolConfig: { functionCallingConfig: { mode } } }
}
