/** Models that `/model` offers: of providers that are configured or have a key, and the demo. */
import type { LoadedConfig } from '../../config/load-config.js'
import type { ModelInfo, Provider } from '../../provider/provider.js'
import type { ProviderRegistry } from '../../provider/provider-registry.js'
import { KEYED_PROVIDERS } from '../../provider/vendors.js'
import { isFree } from '../../session/usage.js'
import { formatCount } from './format.js'

export interface Choice {
  value: string
  label: string
  description?: string
}

/** A provider that does not answer in this time is offered with the model that it begins with. */
const LIST_TIMEOUT_MS = 4_000
const MOST_MODELS = 300

/** Asks all usable providers at once. */
export async function modelChoices(
  registry: ProviderRegistry,
  loaded: LoadedConfig,
  current: string,
): Promise<Choice[]> {
  const ids = usableProviders(loaded)
  const found = await Promise.all(ids.map(id => modelsOf(registry.get(id), id)))
  const choices = found.flat()
  const known = choices.find(({ value }) => value === current)
  const first = known ?? { value: current, label: current }
  const marked = { ...first, description: ['in use', first.description].filter(Boolean).join(' · ') }
  const others = choices.filter(({ value }) => value !== current)
  return current === '' ? others : [marked, ...others]
}

/** Names of providers that can be expected to answer. */
export function usableProviders({ config, env }: Pick<LoadedConfig, 'config' | 'env'>): string[] {
  const configured = Object.keys(config.providers ?? {})
  const keyed = KEYED_PROVIDERS.filter(({ variables }) => variables.some(name => env[name]?.trim()))
  return [...new Set([...configured, ...keyed.map(({ name }) => name), 'demo'])]
}

async function modelsOf(provider: Provider | undefined, id: string): Promise<Choice[]> {
  if (!provider) return []
  const begin = KEYED_PROVIDERS.find(({ name }) => name === id)?.model
  const fallback = begin === undefined ? [] : [provider.describeModel(begin)]
  try {
    const models = await provider.listModels?.(AbortSignal.timeout(LIST_TIMEOUT_MS))
    return (models && models.length > 0 ? models.slice(0, MOST_MODELS) : fallback).map(toChoice(id))
  } catch {
    // A list that cannot be had is no failure: any model can still be named.
    return fallback.map(toChoice(id))
  }
}

function toChoice(provider: string): (model: ModelInfo) => Choice {
  return ({ id, contextWindow, price, known }) => {
    const facts = [
      ...(known ? [`${formatCount(contextWindow)} tokens`] : []),
      ...(price ? [isFree(price) ? 'free' : `$${price.input} in, $${price.output} out per million`] : []),
    ]
    const value = `${provider}/${id}`
    return { value, label: value, ...(facts.length > 0 ? { description: facts.join(' · ') } : {}) }
  }
}
