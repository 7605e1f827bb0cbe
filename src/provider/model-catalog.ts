/** What is known of a model without a request: the catalogue, the caller's corrections, or a cautious guess. */

import { defined } from '../base/defined.js'
import { own } from '../base/own.js'
import { checkArgument } from '../errors.js'
import type { ModelPrice } from '../session/usage.js'
import { CATALOG_LINES } from './model-catalog-data.js'
import type { ModelCapabilities, ModelInfo } from './provider.js'
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
  const { limits, price, capabilities, known } = findModel(type, model)
  const [contextWindow, outputLimit] = limits ?? vendorRow(type)?.limits ?? [32_768, 4096]
  const limit = options.windowLimit ?? Number.POSITIVE_INFINITY
  return {
    id: model,
    contextWindow: Math.min(contextWindow, limit),
    // A server that allows little must not give all of it to the answer.
    outputLimit: Math.min(outputLimit, Math.floor(limit / 4)),
    ...defined({ price, capabilities }),
    profile: options.profile ?? profileForModel(type, model, options.api),
    known,
    ...defined<ModelOverride>(own(options.models ?? {}, model) ?? {}),
  }
}

/** The names of the catalogue whose abilities are known. */
export function catalogNames(): string[] {
  return catalog().flatMap(({ name, capabilities }) => (capabilities ? [name] : []))
}

interface CatalogRow {
  name: string
  /** The vendor whose price it is; absent: everybody's. */
  vendor?: string
  limits?: readonly [contextWindow: number, outputLimit: number]
  capabilities?: ModelCapabilities
  price?: ModelPrice
}

/**
 * What the rows say of a name. A row serves its own name and releases of it (`gpt-5.2` serves `gpt-5.2-2025-12-11`). A
 * name that continues it otherwise may cost something else: such a model gets its limits and no price.
 */
function findModel(type: string, model: string): Omit<CatalogRow, 'name' | 'vendor'> & { known: boolean } {
  const name = plainName(model)
  const rows = catalog().filter(row => continues(name, row.name))
  const nearest = longest(rows.filter(row => row.limits))
  const priced = longest(
    rows.filter(row => isRelease(name, row.name) && (row.vendor ?? type) === type && row.price),
  )
  const isSame = nearest !== undefined && isRelease(name, nearest.name)
  return {
    ...defined({
      limits: nearest?.limits,
      capabilities: isSame || !nearest?.price ? nearest?.capabilities : undefined,
      price: priced?.price,
    }),
    known: nearest !== undefined && (isSame || !nearest.price || priced !== undefined),
  }
}

function longest(rows: readonly CatalogRow[]): CatalogRow | undefined {
  return rows.reduce<CatalogRow | undefined>(
    (best, row) => (row.name.length > (best?.name.length ?? 0) ? row : best),
    undefined,
  )
}

function continues(name: string, known: string): boolean {
  return name.startsWith(known) && !/[a-z0-9.]/.test(name.charAt(known.length))
}

/** Dates, numbers of releases and the words for the newest one. A single digit is another version. */
const RELEASE = /^([-@](\d{3,8}(-\d\d){0,2}|\d\d-\d\d(\d\d)?|latest|preview|exp|beta|customtools))*$/

function isRelease(name: string, known: string): boolean {
  return RELEASE.test(name.slice(known.length))
}

/** Gateways prefix names with the maker (`anthropic/claude-opus-4.5`) and write versions with a dot. */
function plainName(model: string): string {
  const name = model.slice(model.lastIndexOf('/') + 1).toLowerCase()
  return name.startsWith('claude-') ? name.replaceAll('.', '-') : name
}

let rows: CatalogRow[] | undefined

/** The rows, read on first use. */
function catalog(): CatalogRow[] {
  rows ??= CATALOG_LINES.trim().split('\n').map(toRow)
  return rows
}

function toRow(line: string): CatalogRow {
  const [fields = '', long] = line.split(' >')
  const [name = '', vendor = '*', window, output, abilities = '-', ...prices] = fields.split(' ')
  const price = toPrice(prices)
  const limits = [toNumber(window), toNumber(output)] as const
  const [above, ...longPrices] = long?.split(' ') ?? []
  const longContext = above === undefined ? undefined : { above: Number(above), ...toPrice(longPrices) }
  return {
    name,
    ...(vendor === '*' ? {} : { vendor }),
    ...(limits[0] === undefined || limits[1] === undefined ? {} : { limits: [limits[0], limits[1]] }),
    ...(abilities === '-' ? {} : { capabilities: toCapabilities(abilities) }),
    ...(price ? { price: { ...price, ...defined({ longContext }) } } : {}),
  }
}

function toCapabilities(abilities: string): ModelCapabilities {
  return {
    vision: abilities.includes('v'),
    tools: abilities.includes('t'),
    thinking: abilities.includes('r'),
  }
}

function toPrice(figures: readonly string[]): ModelPrice | undefined {
  const [input, output, cachedInput, cacheWrite, cacheWrite1h] = figures.map(toNumber)
  if (input === undefined || output === undefined) return undefined
  return { input, output, ...defined({ cachedInput, cacheWrite, cacheWrite1h }) }
}

function toNumber(figure: string | undefined): number | undefined {
  return figure === undefined || figure === '-' ? undefined : Number(figure)
}
