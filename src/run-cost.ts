/**
 * What model calls cost. A step's cost comes from the catalogue's price and the usage that the provider
 * reported; a sum has a cost only when all of its parts have one, because half a bill is a wrong bill.
 */
import { emptyUsage, type RunUsage } from './run/run-event.js'
import { fromUsageMetadata } from './run/usage-metadata.js'
import type { StoredMessage } from './session/message.js'

/** Dollars per million tokens. */
export interface ModelPrice {
  input: number
  output: number
  /** Default: the price of input. */
  cachedInput?: number
  /** Default: the price of input. */
  cacheWrite?: number
}

/** The price of a model by its reference, when it is known. */
export type PriceOf = (reference: string) => ModelPrice | undefined

type CountedTokens = Pick<RunUsage, 'inputTokens' | 'outputTokens' | 'cachedInputTokens' | 'cacheWriteTokens'>

/** Dollars for one model call. What was read from or written to a cache is part of the input, at its own price. */
export function costOf(usage: CountedTokens, price: ModelPrice): number {
  const cached = Math.min(usage.cachedInputTokens, usage.inputTokens)
  const written = Math.min(usage.cacheWriteTokens, usage.inputTokens - cached)
  const fresh = usage.inputTokens - cached - written
  const perMillion =
    fresh * price.input +
    cached * (price.cachedInput ?? price.input) +
    written * (price.cacheWrite ?? price.input) +
    usage.outputTokens * price.output
  return perMillion / 1_000_000
}

/** The usage of a step with its cost, when the model's price is known. */
export function withCost(usage: RunUsage, price: ModelPrice | undefined): RunUsage {
  return price === undefined ? usage : { ...usage, cost: costOf(usage, price) }
}

/** The sum of steps or runs. Nothing at all costs nothing. */
export function sumUsage(all: readonly RunUsage[]): RunUsage {
  const sum = emptyUsage()
  let cost = 0
  for (const usage of all) {
    for (const field of TOKEN_FIELDS) sum[field] += usage[field]
    cost += usage.cost ?? Number.NaN
  }
  return Number.isNaN(cost) ? sum : { ...sum, cost }
}

/**
 * What a session has used, from its stored messages: unlike run events they are never pruned. Messages of
 * models that are not named in them, or whose price is unknown, leave the sum without a cost.
 */
export function sessionUsage(
  messages: Iterable<StoredMessage>,
  priceOf: PriceOf = () => undefined,
): RunUsage {
  const steps: RunUsage[] = []
  for (const { extra } of messages) {
    const reported = extra?.usageMetadata
    if (typeof reported !== 'object' || reported === null) continue
    const reference = extra?.modelVersion
    const price = typeof reference === 'string' ? priceOf(reference) : undefined
    steps.push(withCost(fromUsageMetadata(reported), price))
  }
  return sumUsage(steps)
}

const TOKEN_FIELDS = [
  'inputTokens',
  'outputTokens',
  'cachedInputTokens',
  'cacheWriteTokens',
  'reasoningTokens',
  'totalTokens',
] as const
