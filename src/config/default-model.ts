import { isPlain } from '../base/redact.js'
import { KEYED_PROVIDERS } from '../provider/vendors.js'
import type { Environment } from './environment.js'

export interface DefaultModel {
  reference: string
  /** Why this one, as in "OPENAI_API_KEY is set". */
  reason: string
}

/** The model of an agent that names none: the first provider with a key, configured ones first, or the demo. */
export function defaultModel(providers: unknown, env: Environment): DefaultModel {
  const configured = isPlain(providers) ? providers : {}
  for (const [name, options] of Object.entries(configured)) {
    const keyed = KEYED_PROVIDERS.find(provider => provider.name === typeOf(name, options))
    if (keyed && isPlain(options) && options.apiKey) {
      return { reference: `${name}/${keyed.model}`, reason: `providers.${name} has a key` }
    }
  }
  for (const { name, variables, model } of KEYED_PROVIDERS) {
    const variable = variables.find(candidate => env[candidate]?.trim())
    if (variable) return { reference: `${name}/${model}`, reason: `${variable} is set` }
  }
  return { reference: 'demo/demo', reason: 'no key was found' }
}

/** The vendor behind a configured provider: a compatible server is known by its preset. */
function typeOf(name: string, options: unknown): unknown {
  if (!isPlain(options)) return undefined
  return options.preset ?? options.type ?? name
}
