/** Model references (`provider/model`) and the providers behind them. */

import { own } from '../base/own.js'
import { AgentError } from '../errors.js'
import { AnthropicProvider } from './anthropic/anthropic-provider.js'
import { DemoProvider } from './demo/demo-provider.js'
import { GeminiProvider } from './gemini/gemini-provider.js'
import { COMPATIBLE_SERVERS } from './openai/compatible-servers.js'
import { OpenAiProvider } from './openai/openai-provider.js'
import type { Provider } from './provider.js'
import { PROVIDER_TYPES, type ProviderOptions, type ProviderType, readSettings } from './provider-settings.js'

export interface ModelReference {
  /** Absent when the reference is a bare model name. */
  provider?: string
  model: string
}

export interface ResolvedModel {
  provider: Provider
  model: string
}

export interface ProviderRegistry {
  /** `openai/gpt-5.2` → its provider and `gpt-5.2`. Throws `invalid-config` and lists what is known. */
  resolve(reference: string): ResolvedModel
  get(id: string): Provider | undefined
  /** Names that a reference may begin with. */
  ids(): string[]
}

/** Providers by the name that references use: options, or a provider made by the caller. */
export type ProvidersConfig = Readonly<Record<string, NamedProviderOptions | Provider | undefined>>

/** The options of a provider whose name stands beside them. It may leave out a type that is its name. */
export type NamedProviderOptions = Omit<ProviderOptions, 'id' | 'type'> & { type?: ProviderType | undefined }

/** Splits a reference at its first slash: what follows may hold more of them. */
export function parseModelReference(reference: string): ModelReference {
  const text = reference.trim()
  const slash = text.indexOf('/')
  if (slash < 0) return { model: text }
  return { provider: text.slice(0, slash), model: text.slice(slash + 1) }
}

/** Makes providers on demand: those that are configured, and those that need no configuration. */
export function createRegistry(config: ProvidersConfig = {}): ProviderRegistry {
  const made = new Map<string, Provider>()
  const get = (id: string): Provider | undefined => {
    const known = made.get(id) ?? makeProvider(id, config)
    if (known) made.set(id, known)
    return known
  }
  return {
    get,
    ids: () => knownIds(config),
    resolve(reference) {
      const { id, model } = readReference(reference)
      const provider = id === undefined || model === '' ? undefined : get(id)
      if (!provider) throw unknownModel(reference, config)
      return { provider, model }
    },
  }
}

function makeProvider(id: string, config: ProvidersConfig): Provider | undefined {
  const given = own(config, id)
  if (given) {
    // `createProvider` refuses a name that is no type.
    return 'generate' in given
      ? given
      : createProvider({ ...given, type: given.type ?? (id as ProviderType), id })
  }
  if (isType(id)) return createProvider({ type: id })
  if (Object.hasOwn(COMPATIBLE_SERVERS, id)) return createProvider({ type: 'openai-compatible', preset: id })
  return undefined
}

/** A type that works without options; `openai-compatible` needs an address. */
function isType(id: string): id is ProviderType {
  return id !== 'openai-compatible' && PROVIDER_TYPES.some(type => type === id)
}

function readReference(reference: string): { id?: string; model: string } {
  const { provider, model } = parseModelReference(reference)
  if (provider !== undefined && provider !== 'models') return { id: provider, model }
  // ADK's own names for Gemini models carry no provider.
  if (/^(gemini|gemma)-/.test(model)) return { id: 'gemini', model }
  // The demo has one model, so its name alone will do.
  return model === 'demo' ? { id: 'demo', model: 'demo' } : { model }
}

function knownIds(config: ProvidersConfig): string[] {
  const builtIn = [...PROVIDER_TYPES.filter(isType), ...Object.keys(COMPATIBLE_SERVERS)]
  const configured = Object.keys(config).filter(id => config[id] !== undefined)
  return [...new Set([...configured, ...builtIn])]
}

function unknownModel(reference: string, config: ProvidersConfig): AgentError {
  const guess = guessProvider(reference)
  const hint = guess === undefined ? '' : ` Did you mean "${guess}/${reference}"?`
  return new AgentError(
    'invalid-config',
    `Cannot find the model "${reference}".${hint} A model is named provider/model; known providers: ` +
      `${knownIds(config).join(', ')}.`,
    { details: { reference, providers: knownIds(config) } },
  )
}

function guessProvider(reference: string): string | undefined {
  if (reference.includes('/')) return undefined
  if (/^(gpt-|o\d|chatgpt-)/.test(reference)) return 'openai'
  if (/^claude-/.test(reference)) return 'anthropic'
  if (/^(mistral|magistral|codestral)/.test(reference)) return 'mistral'
  return /^deepseek/.test(reference) ? 'deepseek' : undefined
}

/** Makes a provider. Nothing is loaded or asked until the first request, and a missing key is told then. */
export function createProvider(options: ProviderOptions): Provider {
  const settings = readSettings(options)
  switch (settings.type) {
    case 'gemini':
      return new GeminiProvider(settings)
    case 'anthropic':
      return new AnthropicProvider(settings)
    case 'demo':
      return new DemoProvider(settings)
    default:
      return new OpenAiProvider(settings)
  }
}
