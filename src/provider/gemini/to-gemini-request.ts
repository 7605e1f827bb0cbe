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
  ToolDeclaration,
} from '../provider.js'
import { mediaNote } from '../provider.js'
import type { Profile } from '../repair/profile.js'
import type { PreparedRequest } from '../stream-answer.js'

export interface GeminiRequestWire {
  contents: GeminiContentWire[]
  systemInstruction?: GeminiContentWire
  tools?: { functionDeclarations: GeminiFunctionWire[] }[]
  toolConfig?: { functionCallingConfig: { mode: string; allowedFunctionNames?: string[] } }
  generationConfig?: Record<string, unknown>
}

export interface GeminiContentWire {
  role: 'user' | 'model'
  parts: GeminiPartWire[]
}

export type GeminiPartWire = Record<string, unknown>

interface GeminiFunctionWire {
  name: string
  description: string
  parametersJsonSchema?: Record<string, unknown>
}

/** Writes the body. */
export function toGeminiRequest(request: PreparedRequest): GeminiRequestWire {
  const { messages, tools, options, profile } = request
  const head = messages.findIndex(message => message.role !== 'system')
  const leading = head < 0 ? messages : messages.slice(0, head)
  const rest = head < 0 ? [] : messages.slice(head)
  const system = leading.flatMap(message => message.parts).flatMap(part => toPart(part, profile))
  const generationConfig = toGenerationConfig(options, request.model)
  return {
    contents: rest.map(message => toContent(message, profile)),
    // The SDK adds this role anyway; written here so that the reported body is the body sent.
    ...(system.length > 0 ? { systemInstruction: { role: 'user', parts: system } } : {}),
    ...(tools.length > 0 ? { tools: [{ functionDeclarations: tools.map(toFunction) }] } : {}),
    ...(tools.length > 0 ? toToolConfig(options) : {}),
    ...(Object.keys(generationConfig).length > 0 ? { generationConfig } : {}),
  }
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
      return [{ ...toMedia(part), ...signature }]
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

function toFunction(tool: ToolDeclaration): GeminiFunctionWire {
  const properties = tool.parameters.properties
  const takesNothing = !isRecord(properties) || Object.keys(properties).length === 0
  return {
    name: tool.name,
    description: tool.description,
    // An object without properties is refused by some endpoints; a function may simply declare none.
    ...(takesNothing ? {} : { parametersJsonSchema: { ...tool.parameters } }),
  }
}

function toToolConfig(options: GenerationOptions): Pick<GeminiRequestWire, 'toolConfig'> {
  const { toolChoice } = options
  if (toolChoice === undefined) return {}
  if (typeof toolChoice === 'object') {
    return { toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [toolChoice.name] } } }
  }
  const mode = { auto: 'AUTO', none: 'NONE', required: 'ANY' }[toolChoice]
  return { toolConfig: { functionCallingConfig: { mode } } }
}

function toGenerationConfig(options: GenerationOptions, model: string): Record<string, unknown> {
  const { responseSchema, thinking } = options
  return {
    ...(options.temperature === undefined ? {} : { temperature: options.temperature }),
    ...(options.topP === undefined ? {} : { topP: options.topP }),
    ...(options.topK === undefined ? {} : { topK: options.topK }),
    ...(options.seed === undefined ? {} : { seed: options.seed }),
    ...(options.maxOutputTokens === undefined ? {} : { maxOutputTokens: options.maxOutputTokens }),
    ...(options.stopSequences?.length ? { stopSequences: [...options.stopSequences] } : {}),
    ...(responseSchema ? { responseMimeType: 'application/json', responseJsonSchema: responseSchema } : {}),
    ...(thinking ? { thinkingConfig: toThinkingConfig(thinking, model) } : {}),
  }
}

/** Gemini 3 takes a level, Gemini 2.5 a number of tokens; both accept a number. */
function toThinkingConfig(
  thinking: NonNullable<GenerationOptions['thinking']>,
  model: string,
): Record<string, unknown> {
  const { budgetTokens, effort, includeThoughts } = thinking
  return {
    ...(includeThoughts === undefined ? {} : { includeThoughts }),
    ...(budgetTokens === undefined ? {} : { thinkingBudget: budgetTokens }),
    ...(budgetTokens === undefined && effort !== undefined
      ? /gemini-2/.test(model)
        ? { thinkingBudget: THINKING_BUDGETS[effort] }
        : { thinkingLevel: thinkingLevel(effort, model) }
      : {}),
  }
}

/** The least is known only to some Flash models, and the first Pro knows no middle. */
function thinkingLevel(effort: keyof typeof THINKING_BUDGETS, model: string): string {
  if (effort === 'minimal' && !/gemini-3(\.[0-5])?-flash/.test(model)) return 'LOW'
  if (effort === 'medium' && /gemini-3-pro/.test(model)) return 'HIGH'
  return effort.toUpperCase()
}

const THINKING_BUDGETS = { minimal: 512, low: 1024, medium: 8192, high: 24_576 } as const
