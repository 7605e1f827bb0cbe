/**
 * Tokens and dollars: the one usage type, its sums and prices, and its form in ADK's events.
 *
 * - What was read from or written to a cache is part of the input; reasoning is part of the output.
 * - A sum has a cost only when all of its parts have one: a partial sum would be wrong.
 * - What is stored reads back as it was reported: a session costs what its runs reported.
 */
import { defined } from '../base/defined.js'
import { isRecord } from '../base/is-record.js'
import type { StoredMessage } from './message.js'

/** Tokens of one model call as its provider reports them. A field that is absent was not reported. */
export interface Usage {
  inputTokens: number
  outputTokens: number
  /** Part of `inputTokens` that was read from the provider's cache. */
  cachedInputTokens?: number
  /** Part of `inputTokens` that was written to the provider's cache. */
  cacheWriteTokens?: number
  /** Part of `cacheWriteTokens` that is kept for an hour, where the provider charges more for that. */
  cacheWrite1hTokens?: number
  /** Part of `outputTokens` that was spent on reasoning. */
  reasoningTokens?: number
  totalTokens: number
}

/** Tokens and cost of model calls: of one, of a run, of a session. */
export interface RunUsage
  extends Required<Omit<Usage, 'cacheWrite1hTokens'>>,
    Pick<Usage, 'cacheWrite1hTokens'> {
  /** Dollars, when the prices of all models that were called are known. */
  cost?: number
}

/** Dollars per million tokens. */
export interface ModelPrice {
  input: number
  output: number
  /** Default: the price of input. */
  cachedInput?: number
  /** Default: the price of input. */
  cacheWrite?: number
  /** What is kept for an hour. Default: the price of `cacheWrite`. */
  cacheWrite1h?: number
  /** Prices of a whole request whose input is longer than `above`. What is absent costs as in a shorter one. */
  longContext?: Partial<Omit<ModelPrice, 'longContext'>> & { above: number }
}

/** The price of demo and fake models. */
export const FREE: ModelPrice = { input: 0, output: 0 }

export function isFree({ input, output }: ModelPrice): boolean {
  return input === 0 && output === 0
}

/** The price of a model by its reference, when it is known. */
export type PriceOf = (reference: string) => ModelPrice | undefined

/**
 * Usage in ADK's fields, which are Gemini's: thoughts are counted apart from the answer. Gemini charges for
 * keeping a cache and not for writing it, so the fields of cache writes are ours; ADK and the store keep them.
 */
export interface UsageMetadata {
  promptTokenCount: number
  candidatesTokenCount: number
  thoughtsTokenCount?: number
  cachedContentTokenCount?: number
  cacheWriteTokenCount?: number
  cacheWrite1hTokenCount?: number
  totalTokenCount: number
  /** Dollars at the price of the day of the call: prices change, and what was spent does not. */
  costUsd?: number
}

const TOKEN_FIELDS = [
  'inputTokens',
  'outputTokens',
  'cachedInputTokens',
  'cacheWriteTokens',
  'reasoningTokens',
  'totalTokens',
] as const satisfies readonly (keyof Usage)[]

/** Nothing used yet. */
export function emptyUsage(): RunUsage {
  return completeUsage({ inputTokens: 0, outputTokens: 0, totalTokens: 0 })
}

/** A report with zero for what was not reported. */
export function completeUsage(reported: Usage): RunUsage {
  const { inputTokens, outputTokens, totalTokens } = reported
  const { cachedInputTokens = 0, cacheWriteTokens = 0, reasoningTokens = 0, cacheWrite1hTokens } = reported
  const complete = {
    inputTokens,
    outputTokens,
    cachedInputTokens,
    cacheWriteTokens,
    reasoningTokens,
    totalTokens,
  }
  return cacheWrite1hTokens ? { ...complete, cacheWrite1hTokens } : complete
}

/** Usage as an event of ADK's keeps it, with its cost at a price. What was not reported stays absent. */
export function toUsageMetadata(usage: Usage, price?: ModelPrice): UsageMetadata {
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens, totalTokens } =
    usage
  return {
    promptTokenCount: inputTokens,
    candidatesTokenCount: outputTokens - (reasoningTokens ?? 0),
    ...defined({
      thoughtsTokenCount: reasoningTokens,
      cachedContentTokenCount: cachedInputTokens,
      cacheWriteTokenCount: cacheWriteTokens,
      cacheWrite1hTokenCount: usage.cacheWrite1hTokens,
    }),
    totalTokenCount: totalTokens,
    ...(price ? { costUsd: costOf(completeUsage(usage), price) } : {}),
  }
}

/** Usage from an event of ADK's, live or stored. Rows of other programs may lack any field: it counts as zero. */
export function fromUsageMetadata(reported: object): RunUsage {
  const count = (name: keyof UsageMetadata): number => {
    const value: unknown = Reflect.get(reported, name)
    return typeof value === 'number' && Number.isFinite(value) ? value : 0
  }
  const cost: unknown = Reflect.get(reported, 'costUsd' satisfies keyof UsageMetadata)
  const usage = completeUsage({
    inputTokens: count('promptTokenCount'),
    outputTokens: count('candidatesTokenCount') + count('thoughtsTokenCount'),
    cachedInputTokens: count('cachedContentTokenCount'),
    cacheWriteTokens: count('cacheWriteTokenCount'),
    cacheWrite1hTokens: count('cacheWrite1hTokenCount'),
    reasoningTokens: count('thoughtsTokenCount'),
    totalTokens: count('totalTokenCount'),
  })
  return typeof cost === 'number' && cost >= 0 && Number.isFinite(cost) ? { ...usage, cost } : usage
}

type CountedTokens = Pick<
  RunUsage,
  'inputTokens' | 'outputTokens' | 'cachedInputTokens' | 'cacheWriteTokens' | 'cacheWrite1hTokens'
>

/** Dollars for one model call. */
export function costOf(usage: CountedTokens, price: ModelPrice): number {
  const { inputTokens, cacheWrite1hTokens = 0 } = usage
  const { input, output, cachedInput, cacheWrite = input, cacheWrite1h } = priceFor(inputTokens, price)
  const cached = Math.min(usage.cachedInputTokens, inputTokens)
  const written = Math.min(usage.cacheWriteTokens, inputTokens - cached)
  const writtenLong = Math.min(cacheWrite1hTokens, written)
  const fresh = inputTokens - cached - written
  const perMillion =
    fresh * input +
    cached * (cachedInput ?? input) +
    (written - writtenLong) * cacheWrite +
    writtenLong * (cacheWrite1h ?? cacheWrite) +
    usage.outputTokens * output
  return perMillion / 1_000_000
}

/** The prices of a request with so much input. */
export function priceFor(
  inputTokens: number,
  { longContext, ...short }: ModelPrice,
): Omit<ModelPrice, 'longContext'> {
  if (!longContext || inputTokens <= longContext.above) return short
  const { above: _limit, ...long } = longContext
  return { ...short, ...defined(long) }
}

/** The usage of a step with its cost, when that was recorded or the model's price is known. */
export function withCost(usage: RunUsage, price: ModelPrice | undefined): RunUsage {
  return price === undefined || usage.cost !== undefined ? usage : { ...usage, cost: costOf(usage, price) }
}

/** The sum of steps or runs. An empty sum costs 0. */
export function sumUsage(all: readonly RunUsage[]): RunUsage {
  const sum = emptyUsage()
  let cost = 0
  for (const usage of all) {
    for (const field of TOKEN_FIELDS) sum[field] += usage[field]
    if (usage.cacheWrite1hTokens)
      sum.cacheWrite1hTokens = (sum.cacheWrite1hTokens ?? 0) + usage.cacheWrite1hTokens
    cost += usage.cost ?? Number.NaN
  }
  return Number.isNaN(cost) ? sum : { ...sum, cost }
}

/** The usage that a stored message reports, with its cost; today's price counts where none was recorded with it. */
export function messageUsage({ extra }: StoredMessage, priceOf: PriceOf): RunUsage | undefined {
  const reported = extra?.usageMetadata
  if (!isRecord(reported)) return undefined
  const reference = extra?.modelVersion
  const price = typeof reference === 'string' ? priceOf(reference) : undefined
  return withCost(fromUsageMetadata(reported), price)
}

/**
 * What a session has used, from its stored messages: unlike run events they are never pruned. Messages of
 * models that are not named in them, or whose price is unknown, leave the sum without a cost.
 */
export function sessionUsage(
  messages: Iterable<StoredMessage>,
  priceOf: PriceOf = () => undefined,
): RunUsage {
  return sumUsage(Array.from(messages, message => messageUsage(message, priceOf) ?? []).flat())
}

export type UsageKind = 'run' | 'memory'

/** One call, or several that are recorded together. */
export interface UsageRecord {
  kind: UsageKind
  model: string
  calls: number
  usage: RunUsage
}

/** The usage that a run event of the type `usage` reports. */
export function usageOfEvent({ model, usage }: Readonly<Record<string, unknown>>): UsageRecord | undefined {
  if (!isRecord(usage)) return undefined
  const reported = usage as unknown as Usage & { cost?: unknown }
  const cost = typeof reported.cost === 'number' ? { cost: reported.cost } : {}
  // How long a cache keeps what was written is in the cost; stores do not count it apart.
  const { cacheWrite1hTokens: _kept, ...counted } = completeUsage(reported)
  return { kind: 'run', model: String(model ?? ''), calls: 1, usage: { ...counted, ...cost } }
}

/**
 * How much may be spent on model calls, in dollars. Days are those of UTC.
 *
 * ```ts
 * import { createRuntime } from 'lango'
 *
 * const runtime = await createRuntime({
 *   agent: { model: 'openai/gpt-5.2' },
 *   budget: { perRunUsd: 0.5, perUserUsdPerDay: 10 },
 * })
 * await runtime.close()
 * ```
 */
export interface Budget {
  /** One run, with the agents inside its tools, repeated calls and the observer of memory. */
  perRunUsd?: number | undefined
  /** All runs of a session together. */
  perSessionUsd?: number | undefined
  /** All runs of a user on one day. */
  perUserUsdPerDay?: number | undefined
  /** What to do with a model whose price is not known: refuse to call it, or call it uncounted. Default `refuse`. */
  unknownPrice?: 'ignore' | 'refuse' | undefined
}

const AMOUNTS = ['perRunUsd', 'perSessionUsd', 'perUserUsdPerDay'] as const

/** What a budget must be, for messages to people. */
export const BUDGET_RULE = `an object with some of: ${AMOUNTS.join(', ')} (dollars, more than 0), unknownPrice ("ignore" or "refuse")`

export function isBudget(value: unknown): value is Budget {
  if (!isRecord(value)) return false
  const { unknownPrice = 'refuse', ...amounts } = value
  const isAmount = ([name, usd]: [string, unknown]) =>
    AMOUNTS.some(known => known === name) &&
    (usd === undefined || (typeof usd === 'number' && usd > 0 && usd <= MOST_USD))
  return (unknownPrice === 'ignore' || unknownPrice === 'refuse') && Object.entries(amounts).every(isAmount)
}

/** Above this, billionths of a dollar are not exact. */
const MOST_USD = 1_000_000

/** Whether a budget limits anything. */
export function hasLimits(budget: Budget | undefined): budget is Budget {
  return budget !== undefined && AMOUNTS.some(name => budget[name] !== undefined)
}
