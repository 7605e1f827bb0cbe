/** The models that are known by name, for the command line and the server. Loads no vendor's SDK. */
import { own } from '../base/own.js'
import { KEYED_PROVIDERS } from '../config/default-model.js'
import { CATALOG } from '../provider/model-catalog-data.js'
import { COMPATIBLE_SERVERS } from '../provider/openai/compatible-servers.js'
import { createRegistry, type ProvidersConfig } from '../provider/provider-registry.js'
import type { ModelChoice } from './info.js'

export interface ListModelsOptions {
  /** The configured providers. */
  providers?: ProvidersConfig | undefined
  /** Where keys are looked for. Default `process.env`. */
  env?: Readonly<Record<string, string | undefined>> | undefined
}

/** Models of every provider that needs no more than a key, and of those that are configured. */
export function listModels({ providers = {}, env = process.env }: ListModelsOptions = {}): ModelChoice[] {
  const registry = createRegistry(providers)
  return providerNames(providers).flatMap(provider => {
    const key = keyOf(provider, providers, env)
    return modelNames(provider, providers).flatMap(id => {
      const info = registry.get(provider)?.describeModel(id)
      if (!info) return []
      const { contextWindow, outputLimit, price, profile, known } = info
      return [
        {
          reference: `${provider}/${id}`,
          provider,
          id,
          contextWindow,
          outputLimit,
          ...(price ? { price } : {}),
          profile,
          ...key,
          known,
        },
      ]
    })
  })
}

/** Whether a provider's key is there, and which variable would hold it. */
export interface ProviderKey {
  keyPresent: boolean
  keyVariable?: string
}

/** The providers that can be named, and their keys; those without a list of models included. */
export function listProviders({ providers = {}, env = process.env }: ListModelsOptions = {}): (ProviderKey & {
  provider: string
})[] {
  return createRegistry(providers)
    .ids()
    .map(provider => ({ provider, ...keyOf(provider, providers, env) }))
}

/** What names in the catalogue begin with, by the provider that serves them under these names. */
const FAMILIES: Readonly<Record<string, RegExp>> = {
  gemini: /^gemini-/,
  openai: /^(gpt-(?!oss)|o\d)/,
  anthropic: /^claude-/,
  mistral: /^(mistral|magistral|codestral)/,
  deepseek: /^deepseek-/,
  ollama: /^(qwen|gpt-oss)/,
}

const VARIABLES: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  KEYED_PROVIDERS.map(({ name, variables }) => [name, variables]),
)

function providerNames(providers: ProvidersConfig): string[] {
  const configured = Object.keys(providers).filter(name => providers[name] !== undefined)
  return [...new Set([...configured, ...Object.keys(FAMILIES), 'demo'])]
}

function modelNames(provider: string, providers: ProvidersConfig): string[] {
  const options = optionsOf(provider, providers)
  const vendor = options?.preset ?? options?.type ?? provider
  const family = own(FAMILIES, vendor)
  const known = family ? Object.keys(CATALOG).filter(name => family.test(name)) : []
  // Mistral's own names say which release is meant, and its aliases end so.
  const named =
    vendor === 'mistral' ? known.map(name => (/\d{4}$/.test(name) ? name : `${name}-latest`)) : known
  const all = [...Object.keys(options?.models ?? {}), ...named, ...(vendor === 'demo' ? ['demo'] : [])]
  return [...new Set(all)]
}

function keyOf(
  provider: string,
  providers: ProvidersConfig,
  env: Readonly<Record<string, string | undefined>>,
): ProviderKey {
  if (isMadeInCode(provider, providers)) return { keyPresent: true }
  const options = optionsOf(provider, providers)
  const vendor = options?.preset ?? options?.type ?? provider
  const server = own(COMPATIBLE_SERVERS, vendor)
  const variables = own(VARIABLES, vendor) ?? (server?.keyVariable ? [server.keyVariable] : [])
  const [keyVariable] = variables
  const isVertex =
    vendor === 'gemini' && (options?.vertexai ?? /^(true|1)$/i.test(env.GOOGLE_GENAI_USE_VERTEXAI ?? ''))
  const hasKey = Boolean(options?.apiKey) || variables.some(name => env[name]?.trim())
  return {
    keyPresent: hasKey || isVertex || keyVariable === undefined,
    ...(keyVariable === undefined ? {} : { keyVariable }),
  }
}

interface KnownOptions {
  type?: string | undefined
  preset?: string | undefined
  apiKey?: string | undefined
  vertexai?: boolean | undefined
  models?: Readonly<Record<string, unknown>> | undefined
}

function isMadeInCode(provider: string, providers: ProvidersConfig): boolean {
  const given = own(providers, provider)
  return given !== undefined && 'generate' in given
}

function optionsOf(provider: string, providers: ProvidersConfig): KnownOptions | undefined {
  const given = own(providers, provider)
  return given === undefined || 'generate' in given ? undefined : given
}
