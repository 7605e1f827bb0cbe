/**
 * Options → Gemini's `generationConfig` and the fields beside it. What was given in Gemini's own form is sent as it was
 * given; the neutral forms fill the rest. The two backends do not take the same options, and the SDK refuses those of
 * the other one.
 */
import { defined } from '../../base/defined.js'
import type { GenerationOptions } from '../provider.js'
import type { Abilities } from '../request-options.js'
import type { PreparedRequest } from '../stream-answer.js'

/** What this backend takes. ADK takes labels out of requests to the Gemini API; what else it lacks is refused there. */
export function geminiAbilities(isVertex: boolean): Abilities {
  const refused: ReadonlySet<string> = isVertex ? API_ONLY : VERTEX_ONLY
  return {
    option: name => (refused.has(name) ? 'refused' : name === 'labels' && !isVertex ? 'dropped' : 'sent'),
    hasServerTool: name => !refused.has(name),
  }
}

const API_ONLY: ReadonlySet<string> = new Set([
  'enableEnhancedCivicAnswers',
  'store',
  'fileSearch',
  'mcpServers',
])

const VERTEX_ONLY: ReadonlySet<string> = new Set([
  'audioTimestamp',
  'generationOutputConfig',
  'modelArmorConfig',
  'modelSelectionConfig',
  'routingConfig',
  'enterpriseWebSearch',
  'exaAiSearch',
  'parallelAiSearch',
  'retrieval',
])

/** Options of the SDK itself, which are no part of a body. */
export function clientOptions({ gemini = {} }: GenerationOptions): Record<string, unknown> {
  return Object.fromEntries(Object.entries(gemini).filter(([name]) => CLIENT_OPTIONS.has(name)))
}

const CLIENT_OPTIONS: ReadonlySet<string> = new Set([
  'httpOptions',
  'automaticContinuation',
  'automaticFunctionCalling',
])

/** A body's fields under the names that the SDK takes them by. */
export function sdkNames(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [SDK_NAMES[name] ?? name, value]))
}

const WIRE_NAMES: Readonly<Record<string, string>> = {
  generationOutputConfig: 'outputConfig',
  modelSelectionConfig: 'modelConfig',
}

const SDK_NAMES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(WIRE_NAMES).map(([sdk, wire]) => [wire, sdk]),
)

interface OptionPlaces {
  generationConfig: Record<string, unknown>
  beside: Record<string, unknown>
}

export function toOptions(options: GenerationOptions, model: string, isVertex: boolean): OptionPlaces {
  const generationConfig = toGenerationConfig(options, model)
  const beside: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(options.gemini ?? {})) {
    if (CLIENT_OPTIONS.has(name) || geminiAbilities(isVertex).option(name) !== 'sent') continue
    const place = BESIDE.has(name) ? beside : generationConfig
    place[WIRE_NAMES[name] ?? name] = value
  }
  return { generationConfig, beside }
}

const BESIDE: ReadonlySet<string> = new Set([
  'cachedContent',
  'continuationToken',
  'generationOutputConfig',
  'labels',
  'modelArmorConfig',
  'safetySettings',
  'serviceTier',
  'store',
  'toolConfig',
])

function toGenerationConfig(options: GenerationOptions, model: string): Record<string, unknown> {
  const { responseSchema, responseFormat, thinking, gemini = {} } = options
  const { temperature, topP, topK, seed, maxOutputTokens, presencePenalty, frequencyPenalty } = options
  const hasForm = gemini.responseSchema !== undefined || gemini.responseJsonSchema !== undefined
  return {
    ...defined({ temperature, topP, topK, seed, maxOutputTokens, presencePenalty, frequencyPenalty }),
    ...(options.stopSequences?.length ? { stopSequences: [...options.stopSequences] } : {}),
    ...(options.logprobs === undefined || gemini.responseLogprobs !== undefined
      ? {}
      : { responseLogprobs: true, logprobs: options.logprobs }),
    ...(responseFormat === 'json' ? { responseMimeType: 'application/json' } : {}),
    ...(responseSchema && !hasForm
      ? { responseMimeType: 'application/json', responseJsonSchema: responseSchema }
      : {}),
    ...(thinking && gemini.thinkingConfig === undefined
      ? { thinkingConfig: toThinkingConfig(thinking, model) }
      : {}),
  }
}

/** Models that always think get the least of it instead of none; the rest of the options is unchanged. */
export function withLeastThinking({
  model,
  options,
  report,
}: Pick<PreparedRequest, 'model' | 'options' | 'report'>): GenerationOptions {
  const isOff = options.thinking?.budgetTokens === 0 && options.gemini?.thinkingConfig === undefined
  if (!isOff || /flash/.test(model)) return options
  report('replace', `${model} always thinks; the least of it was requested instead of none.`)
  const least = /gemini-2/.test(model) ? { budgetTokens: 128 } : { effort: 'minimal' as const }
  return { ...options, thinking: least }
}

/** Gemini 3 takes a level, Gemini 2.5 a number of tokens; both accept a number. */
function toThinkingConfig(
  thinking: NonNullable<GenerationOptions['thinking']>,
  model: string,
): Record<string, unknown> {
  const { budgetTokens, effort, includeThoughts } = thinking
  return {
    ...(includeThoughts === undefined ? {} : { includeThoughts: Boolean(includeThoughts) }),
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
