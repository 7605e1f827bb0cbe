/**
 * ADK's `config` of a request → tools and options. Everything that the configuration holds has a row below: what every
 * vendor may understand gets a neutral form, and what only Gemini has, or says more exactly, is kept as it was given.
 * Nothing is left out here; a provider reports or refuses what it cannot send.
 */
import { defined } from '../../base/defined.js'
import { toJsonData } from '../../base/json.js'
import type { GenerationOptions, ServerTool, ToolDeclaration } from '../../provider/provider.js'
import type { SamplingOptions, ThinkingLevel } from '../../session/model-options.js'
import type { JsonSchema } from '../../tool.js'
import type { FunctionDeclaration, GenerateContentConfig } from '../sdk.js'

/**
 * What becomes of each key. `request`: it is a part of the request of its own. `neutral`: an option of the same name
 * and meaning. `both`: a neutral form, and the exact one for Gemini. `gemini`: for Gemini alone.
 */
export const CONFIG_KEYS = {
  abortSignal: 'request',
  systemInstruction: 'request',
  tools: 'request',
  temperature: 'neutral',
  topP: 'neutral',
  topK: 'neutral',
  seed: 'neutral',
  maxOutputTokens: 'neutral',
  stopSequences: 'neutral',
  presencePenalty: 'neutral',
  frequencyPenalty: 'neutral',
  responseMimeType: 'both',
  responseSchema: 'both',
  responseJsonSchema: 'both',
  responseLogprobs: 'both',
  logprobs: 'both',
  thinkingConfig: 'both',
  toolConfig: 'both',
  audioTimestamp: 'gemini',
  audioTranscriptionConfig: 'gemini',
  automaticContinuation: 'gemini',
  automaticFunctionCalling: 'gemini',
  cachedContent: 'gemini',
  candidateCount: 'gemini',
  continuationToken: 'gemini',
  enableEnhancedCivicAnswers: 'gemini',
  generationOutputConfig: 'gemini',
  httpOptions: 'gemini',
  imageConfig: 'gemini',
  labels: 'gemini',
  mediaResolution: 'gemini',
  modelArmorConfig: 'gemini',
  modelSelectionConfig: 'gemini',
  responseModalities: 'gemini',
  routingConfig: 'gemini',
  safetySettings: 'gemini',
  serviceTier: 'gemini',
  speechConfig: 'gemini',
  store: 'gemini',
} as const satisfies Record<keyof GenerateContentConfig, 'request' | 'neutral' | 'both' | 'gemini'>

/** The options of a request. */
export function convertOptions(config: GenerateContentConfig | undefined): GenerationOptions {
  if (!config) return {}
  const { temperature, topP, topK, seed, maxOutputTokens, presencePenalty, frequencyPenalty } = config
  const { stopSequences } = config
  return {
    ...defined({ temperature, topP, topK, seed, maxOutputTokens, presencePenalty, frequencyPenalty }),
    ...(stopSequences?.length ? { stopSequences } : {}),
    ...answerForm(config),
    ...(config.responseLogprobs ? { logprobs: config.logprobs ?? 0 } : {}),
    ...convertToolChoice(config),
    ...thinkingOptions(config),
    ...geminiOptions(config),
  }
}

/** What a request asks for besides ADK's configuration. */
export interface ChosenOptions extends SamplingOptions {
  outputSchema?: JsonSchema | undefined
}

/** The options of a request with those that were chosen for it. Gemini's exact form of what they replace is left out. */
export function withChosen(
  options: GenerationOptions,
  { thinking, temperature, maxOutputTokens, outputSchema }: ChosenOptions,
): GenerationOptions {
  const { gemini: exact, responseFormat, ...neutral } = options
  const gemini = Object.entries(
    withoutReplaced(exact ?? {}, thinking !== undefined, outputSchema !== undefined),
  )
  return {
    ...neutral,
    ...(responseFormat === undefined || outputSchema ? {} : { responseFormat }),
    ...defined({ temperature, maxOutputTokens, responseSchema: outputSchema }),
    ...(gemini.length > 0 ? { gemini: Object.fromEntries(gemini) } : {}),
    ...(thinking === undefined ? {} : { thinking: THINKING[thinking] }),
  }
}

function withoutReplaced(
  {
    thinkingConfig,
    responseSchema,
    responseJsonSchema,
    responseMimeType,
    ...others
  }: Record<string, unknown>,
  isThinkingReplaced: boolean,
  isFormReplaced: boolean,
): Record<string, unknown> {
  return {
    ...others,
    ...(isThinkingReplaced ? {} : defined({ thinkingConfig })),
    ...(isFormReplaced ? {} : defined({ responseSchema, responseJsonSchema, responseMimeType })),
  }
}

/** A budget of nothing turns thinking off; what is thought is shown. */
const THINKING = {
  off: { budgetTokens: 0 },
  low: { effort: 'low', includeThoughts: 'if-open' },
  medium: { effort: 'medium', includeThoughts: 'if-open' },
  high: { effort: 'high', includeThoughts: 'if-open' },
} as const satisfies Record<ThinkingLevel, GenerationOptions['thinking']>

/** A key that this table does not know is a newer SDK's: Gemini gets it. */
function geminiOptions(config: GenerateContentConfig): Pick<GenerationOptions, 'gemini'> {
  const fates: Readonly<Record<string, string>> = CONFIG_KEYS
  const kept = Object.entries(config).filter(([key, value]) => {
    const fate = Object.hasOwn(fates, key) ? fates[key] : 'gemini'
    return value !== undefined && value !== null && (fate === 'gemini' || fate === 'both')
  })
  return kept.length > 0 ? { gemini: toJsonData(Object.fromEntries(kept)) as Record<string, unknown> } : {}
}

function answerForm(
  config: GenerateContentConfig,
): Pick<GenerationOptions, 'responseSchema' | 'responseFormat'> {
  const schema = config.responseJsonSchema ?? toJsonSchema(config.responseSchema)
  if (isObject(schema)) return { responseSchema: schema }
  return config.responseMimeType === 'application/json' ? { responseFormat: 'json' } : {}
}

function thinkingOptions({ thinkingConfig }: GenerateContentConfig): Pick<GenerationOptions, 'thinking'> {
  const { thinkingBudget: budgetTokens, thinkingLevel, includeThoughts } = thinkingConfig ?? {}
  const effort = EFFORTS.find(name => name === String(thinkingLevel).toLowerCase())
  const thinking = defined({ budgetTokens, effort, includeThoughts })
  return Object.keys(thinking).length > 0 ? { thinking } : {}
}

const EFFORTS = ['minimal', 'low', 'medium', 'high'] as const

/**
 * The functions that a request declares. ADK writes Gemini's schema dialect (upper-case types, numbers as
 * texts, `nullable`) unless the tool brought a JSON schema; other models get JSON schema either way.
 */
export function convertTools(config: GenerateContentConfig | undefined): ToolDeclaration[] {
  return (config?.tools ?? []).flatMap(tool => {
    const declarations = 'functionDeclarations' in tool ? (tool.functionDeclarations ?? []) : []
    return declarations.map(declaration => ({
      name: declaration.name ?? '',
      description: declaration.description ?? '',
      parameters: parametersOf(declaration),
      ...(isNeutral(declaration) ? {} : { gemini: toJsonData(declaration) as Record<string, unknown> }),
    }))
  })
}

/** Says nothing that the neutral form does not say. */
function isNeutral({ name, description, parametersJsonSchema, ...others }: FunctionDeclaration): boolean {
  const isComplete = name !== undefined && description !== undefined && parametersJsonSchema !== undefined
  return isComplete && Object.values(others).every(value => value === undefined)
}

/** The tools that Gemini's servers run: search, code execution and whatever else a tool of the SDK may hold. */
export function convertServerTools(config: GenerateContentConfig | undefined): ServerTool[] {
  const tools = config?.tools ?? []
  const functions = tools.findIndex(tool => 'functionDeclarations' in tool)
  return tools.flatMap((tool, index) =>
    Object.entries(tool).flatMap(([name, value]): ServerTool[] => {
      if (name === 'functionDeclarations' || value === undefined || value === null) return []
      const place = index < functions ? { beforeFunctions: true as const } : {}
      return [{ name, config: toJsonData(value) as Record<string, unknown>, ...place }]
    }),
  )
}

/** Whether and which tool the model must call. */
function convertToolChoice(config: GenerateContentConfig): Pick<GenerationOptions, 'toolChoice'> {
  const calling = config.toolConfig?.functionCallingConfig
  const names = calling?.allowedFunctionNames ?? []
  const [only] = names
  switch (calling?.mode as string | undefined) {
    case 'NONE':
      return { toolChoice: 'none' }
    case 'ANY':
      if (only === undefined) return { toolChoice: 'required' }
      return { toolChoice: names.length === 1 ? { name: only } : { names } }
    case 'AUTO':
      return { toolChoice: 'auto' }
    default:
      return {}
  }
}

function parametersOf(declaration: FunctionDeclaration): Record<string, unknown> {
  const schema = declaration.parametersJsonSchema ?? toJsonSchema(declaration.parameters)
  return isObject(schema) ? withoutDialect(schema) : { type: 'object', properties: {} }
}

/** Providers refuse or ignore the dialect's name. */
function withoutDialect(schema: Record<string, unknown>): Record<string, unknown> {
  const { $schema: _dialect, ...rest } = schema
  return rest
}

/** Gemini's schema as JSON schema. A JSON schema passes unchanged. */
export function toJsonSchema(schema: unknown): unknown {
  if (!isObject(schema)) return schema
  const entries = Object.entries(schema).flatMap(([key, value]): [string, unknown][] => {
    if (value === undefined || DROPPED.has(key)) return []
    if (key === 'type') return [[key, toType(value, schema.nullable === true)]]
    if (key === 'properties' || key === '$defs') return [[key, mapValues(value)]]
    if (key === 'format' && (value === 'enum' || value === '')) return []
    if (LISTS.has(key) && Array.isArray(value)) return [[key, value.map(toJsonSchema)]]
    if (key === 'items' || key === 'additionalProperties') return [[key, toJsonSchema(value)]]
    return [[key, COUNTS.has(key) ? Number(value) : value]]
  })
  return Object.fromEntries(entries)
}

const DROPPED = new Set(['nullable', 'propertyOrdering'])
const LISTS = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems'])
const COUNTS = new Set(['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties'])

function toType(type: unknown, nullable: boolean): unknown {
  if (typeof type !== 'string') return type
  const name = type.toLowerCase()
  return nullable ? [name, 'null'] : name
}

function mapValues(value: unknown): unknown {
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, toJsonSchema(schema)]))
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
