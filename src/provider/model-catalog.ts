/** What is known of a model without a request: the catalogue, the caller's corrections, or a cautious guess. */

import { defined } from '../base/defined.js'
import { own } from '../base/own.js'
import { checkArgument } from '../errors.js'
import type { ModelPrice } from '../session/usage.js'
import { CATALOG, type CatalogRow } from './model-catalog-data.js'
import type { ModelInfo } from './provider.js'
import { profileForModel } from './repair/profile-for-model.js'
import { vendorRow } from './vendors.js'

export interface DescribeOptions {
  /** Corrections by model name, from the provider's configuration. */
  models?: Readonly<Record<string, ModelOverride>>
  /** The profile that the provider is configured with. */
  profile?: string
  api?: 'chat' | 'responses'
  /** The largest window that the server itself allows, whatever the model could do. */
  windowLimit?: number
}

/** A correction to the catalogue. `profile` is the name of a repair profile. */
export type ModelOverride = Partial<
  Omit<ModelInfo, 'id' | 'name' | 'known' | 'takesLaterSystem' | 'bindsReasoning'>
>

/**
 * Describes a model. `type` is a provider's type or the name of a compatible server.
 *
 * ```ts
 * import { describeModel } from 'lango/provider'
 *
 * const { contextWindow, price } = describeModel('openai', 'gpt-5.2')
 * ```
 */
export function describeModel(type: string, model: string, options: DescribeOptions = {}): ModelInfo {
  checkArgument(
    typeof model === 'string',
    'describeModel',
    'needs the name of a model as its second argument',
  )
  const row = findRow(model)
  const [contextWindow, outputLimit] = row ?? vendorRow(type)?.limits ?? [32_768, 4096]
  const limit = options.windowLimit ?? Number.POSITIVE_INFINITY
  const price = row && priceOf(row)
  return {
    id: model,
    contextWindow: Math.min(contextWindow, limit),
    // A server that allows little must not give all of it to the answer.
    outputLimit: Math.min(outputLimit, Math.floor(limit / 4)),
    ...(price ? { price } : {}),
    profile: options.profile ?? profileForModel(type, model, options.api),
    known: row !== undefined,
    ...defined<ModelOverride>(own(options.models ?? {}, model) ?? {}),
  }
}

function findRow(model: string): CatalogRow | undefined {
  const name = plainName(model)
  let best: string | undefined
  for (const key of Object.keys(CATALOG)) {
    const continues = name === key || (name.startsWith(key) && !/[a-z0-9.]/.test(name.charAt(key.length)))
    if (continues && key.length > (best?.length ?? 0)) best = key
  }
  return best === undefined ? undefined : CATALOG[best]
}

/** Gateways prefix names with the maker (`anthropic/claude-opus-4.5`) and write versions with a dot. */
function plainName(model: string): string {
  const name = model.slice(model.lastIndexOf('/') + 1).toLowerCase()
  return name.startsWith('claude-') ? name.replaceAll('.', '-') : name
}

function priceOf(row: CatalogRow): ModelPrice | undefined {
  const [, , input, output, cachedInput, cacheWrite] = row
  if (input === undefined || output === undefined) return undefined
  return { input, output, ...defined({ cachedInput, cacheWrite }) }
}
