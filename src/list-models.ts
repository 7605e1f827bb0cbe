/** The models that can be named without asking anyone: the catalogue's, under every provider that serves them. */
import { describeModel } from './provider/model-catalog.js'
import { CATALOG } from './provider/model-catalog-data.js'
import { COMPATIBLE_SERVERS } from './provider/openai/compatible-servers.js'
import type { ModelInfo } from './provider/provider.js'
import type { ProvidersConfig } from './provider/provider-registry.js'
import type { ProviderOptions } from './provider/provider-settings.js'
import type { ModelChoice } from './runtime-info.js'

export interface ListModelsOptions {
  providers?: ProvidersConfig
  env?: Readonly<Record<string, string | undefined>>
}

/** Every known model, those whose key is there first. Nothing is asked over the network and no SDK is loaded. */
export function listModels({ providers = {}, env = process.env }: ListModelsOptions = {}): ModelChoice[] {
  const names = new Set([...Object.keys(providers), ...Object.keys(FAMILIES), 'demo'])
  const choices = [...names].flatMap(name => modelsOf(name, providers[name], env))
  return choices.sort((one, other) => Number(other.keyPresent) - Number(one.keyPresent))
}

type Environment = Readonly<Record<string, string | undefined>>

/** Which rows of the catalogue a vendor serves under their plain names. */
const FAMILIES: Readonly<Record<string, RegExp>> = {
  gemini: /^gemini-/,
  openai: /^(gpt-(?!oss)|o\d)/,
  anthropic: /^claude-/,
  mistral: /^(mistral|magistral|codestral|ministral|devstral|pixtral)/,
  deepseek: /^deepseek-/,
  xai: /^grok-/,
}

const KEY_VARIABLES: Readonly<Record<string, readonly string[]>> = {
  gemini: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
  openai: ['OPENAI_API_KEY'],
  anthropic: ['ANTHROPIC_API_KEY'],
}

function modelsOf(name: string, given: ProvidersConfig[string], env: Environment): ModelChoice[] {
  const made = given !== undefined && 'generate' in given ? given : undefined
  const options: Partial<ProviderOptions> = made || given === undefined ? {} : (given as ProviderOptions)
  const kind = options.preset ?? options.type ?? name
  const ids = new Set([...Object.keys(options.models ?? {}), ...catalogued(kind)])
  const key = keyOf(kind, options, env)
  return [...ids].map(id =>
    toChoice(name, made ? made.describeModel(id) : describe(kind, id, options), made ? PRESENT : key),
  )
}

function catalogued(kind: string): string[] {
  if (kind === 'demo') return ['demo']
  const family = FAMILIES[kind]
  return family ? Object.keys(CATALOG).filter(id => family.test(id)) : []
}

function describe(kind: string, id: string, { models, profile, api }: Partial<ProviderOptions>): ModelInfo {
  return describeModel(kind, id, {
    ...(models ? { models } : {}),
    ...(typeof profile === 'string' ? { profile } : {}),
    ...(api ? { api } : {}),
  })
}

type KeyFacts = Pick<ModelChoice, 'keyPresent' | 'keyVariable'>

const PRESENT: KeyFacts = { keyPresent: true }

function keyOf(kind: string, options: Partial<ProviderOptions>, env: Environment): KeyFacts {
  if (options.apiKey || kind === 'demo' || options.vertexai) return PRESENT
  const ofServer = COMPATIBLE_SERVERS[kind]?.keyVariable
  const variables = KEY_VARIABLES[kind] ?? (ofServer === undefined ? [] : [ofServer])
  const found = variables.find(variable => env[variable]?.trim())
  const [keyVariable] = variables
  if (keyVariable === undefined) return PRESENT
  return { keyPresent: found !== undefined, keyVariable: found ?? keyVariable }
}

function toChoice(provider: string, model: ModelInfo, key: KeyFacts): ModelChoice {
  const { id, contextWindow, outputLimit, price, profile, known } = model
  return {
    reference: `${provider}/${id}`,
    provider,
    id,
    contextWindow,
    outputLimit,
    ...(price ? { price } : {}),
    profile: typeof profile === 'string' ? profile : String(profile),
    ...key,
    known,
  }
}
