/** The models that are known by name, for the command line and the server. Loads no vendor's SDK. */
import { defined } from '../base/defined.js'
import { own } from '../base/own.js'
import { catalogNames } from '../provider/model-catalog.js'
import { PRICES_AS_OF } from '../provider/model-catalog-data.js'
import { createRegistry, type ProvidersConfig } from '../provider/provider-registry.js'
import { keyVariableIn, missingNeed, type NeededSettings, usesVertex } from '../provider/vendor-row.js'
import { vendorNames, vendorRow } from '../provider/vendors.js'
import type { ModelChoice } from './info.js'

/** The day of the catalogue's prices. */
export const pricesAsOf: string = PRICES_AS_OF

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
    const { keyPresent, keyVariable } = keyOf(provider, providers, env)
    return modelNames(provider, providers).flatMap(id => {
      const info = registry.get(provider)?.describeModel(id)
      if (!info) return []
      const { contextWindow, outputLimit, price, capabilities, profile, known } = info
      return [
        {
          reference: `${provider}/${id}`,
          provider,
          id,
          contextWindow,
          outputLimit,
          ...(price ? { price } : {}),
          ...(capabilities ? { capabilities } : {}),
          profile,
          keyPresent,
          ...defined({ keyVariable }),
          known,
        },
      ]
    })
  })
}

/** Whether a provider's key is there, and which variable holds or would hold it. */
export interface ProviderKey {
  keyPresent: boolean
  keyVariable?: string
  /** Without a key the vendor's SDK looks for credentials of the machine: a login, a role. */
  findsCredentials?: true
  /** A variable that is needed besides the key, and is not set. */
  missingVariable?: string
}

/** The providers that can be named, and their keys; those without a list of models included. */
export function listProviders({ providers = {}, env = process.env }: ListModelsOptions = {}): (ProviderKey & {
  provider: string
})[] {
  return createRegistry(providers)
    .ids()
    .map(provider => ({ provider, ...keyOf(provider, providers, env) }))
}

function providerNames(providers: ProvidersConfig): string[] {
  const configured = Object.keys(providers).filter(name => providers[name] !== undefined)
  return [...new Set([...configured, ...vendorNames(({ names }) => names !== undefined)])]
}

function modelNames(provider: string, providers: ProvidersConfig): string[] {
  const options = optionsOf(provider, providers)
  const vendor = options?.preset ?? options?.type ?? provider
  const { names } = vendorRow(vendor) ?? {}
  const known = names ? catalogNames().filter(name => names.test(name)) : []
  const all = [...Object.keys(options?.models ?? {}), ...known, ...(vendor === 'demo' ? ['demo'] : [])]
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
  const row = vendorRow(vendor)
  const found = row && keyVariableIn(row, env)
  // Of several names for one key the first is shown; an account has its own.
  const isAccount = found !== undefined && row?.keyVariables?.includes(found) === false
  const keyVariable = isAccount ? found : row?.keyVariables?.[0]
  const isVertex = vendor === 'gemini' && usesVertex(options ?? {}, env)
  const missingVariable = row && missingNeed(row, env, options)?.variables[0]
  return {
    keyPresent: Boolean(options?.apiKey) || found !== undefined || isVertex || keyVariable === undefined,
    ...defined({ keyVariable, findsCredentials: row?.findsCredentials, missingVariable }),
  }
}

interface KnownOptions extends NeededSettings {
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
