/**
 * One truncation for two shapes: stored messages when a session is opened, neutral messages before each
 * model call. It guarantees, for any input:
 *
 * - When everything fits, nothing is touched, a trailing call without its answer included.
 * - Items are taken from the newest to the oldest until the budget is spent.
 * - A call and its answers are in or out together.
 * - After a cut the history starts neither with a tool's answer nor with a call that nothing answers.
 * - The current turn (from the last user message on) is always kept. When it alone is over the budget, its
 *   largest tool outputs are shortened; only with `dropWithinTurn` are its oldest groups left out.
 */

import { defined } from '../base/defined.js'
import type { HistoryCut, ShortenedOutput } from './message.js'
import { type CallGroups, type CallLens, groupCalls } from './pair-calls.js'

/** How `fitToBudget` looks at an item. */
export interface BudgetLens<T> extends CallLens<T> {
  tokens(item: T): number
  /** The cost of each tool output in the item. */
  outputTokens(item: T): readonly number[]
  /** The item with every output over the limit shortened to it. */
  shorten(item: T, limitTokens: number): { item: T; shortened: readonly ShortenedOutput[] }
}

export interface FitOptions {
  /** `Infinity` for no budget. */
  budgetTokens: number
  maxMessages?: number | undefined
  /** The cut moves in steps of a quarter of the budget instead of with every item, so that prompt caches hold. */
  steady?: boolean | undefined
  /**
   * The first item of the request before. The cut stays there while the rest fits; then it moves so far that three
   * quarters of the budget are used. Takes precedence over `steady`.
   */
  hold?: number | undefined
  /** Leave out the oldest groups of the current turn if shortening was not enough. */
  dropWithinTurn?: boolean | undefined
  /** What lies before the first item and was never handed over. It counts as cut. */
  preceding?: { messages: number; tokens: number } | undefined
}

export interface Fit<T> {
  items: T[]
  cut?: HistoryCut
  /** The index of the first item that is kept. */
  start: number
  /** Whether a kept item answers a call that is not among the items: a caller who has older ones may add them. */
  missesCall: boolean
}

export function fitToBudget<T>(items: readonly T[], options: FitOptions, lens: BudgetLens<T>): Fit<T> {
  const history = new History(items, options, lens)
  if (history.fitsWhole()) return { items: [...items], start: 0, missesCall: false }
  const choice = history.choose()
  history.cleanHead(choice)
  const condensed = options.dropWithinTurn === true ? history.condenseTurn(choice) : []
  const shortened = history.shortenTurn(choice)
  return history.result(choice, [...condensed, ...shortened])
}

/** What is kept so far. `cost` and `count` are kept in step with `kept`. */
interface Choice {
  kept: Uint8Array
  start: number
  tokens: number
  count: number
  reason: HistoryCut['reason']
  missesCall: boolean
}

/** One history during one fit. Shortening replaces items in `#items`, never in the caller's array. */
class History<T> {
  readonly #items: T[]
  readonly #options: FitOptions
  readonly #lens: BudgetLens<T>
  readonly #tokens: number[]
  #found: CallGroups | undefined
  readonly #turnStart: number

  constructor(items: readonly T[], options: FitOptions, lens: BudgetLens<T>) {
    this.#items = [...items]
    this.#options = options
    this.#lens = lens
    this.#tokens = this.#items.map(item => lens.tokens(item))
    this.#turnStart = this.#items.findLastIndex(item => lens.startsTurn(item))
  }

  /** Of the items as they were given. Needed only when something is left out. */
  get #groups(): CallGroups {
    this.#found ??= groupCalls(this.#items, this.#lens)
    return this.#found
  }

  fitsWhole(): boolean {
    if ((this.#options.hold ?? 0) > 0) return false
    return (
      this.#totalTokens() <= this.#options.budgetTokens &&
      this.#totalMessages() <= (this.#options.maxMessages ?? Number.POSITIVE_INFINITY)
    )
  }

  /** From the newest to the oldest, group by group, until the next one does not fit. */
  choose(): Choice {
    const budget = this.#target()
    const most = this.#maxMessages()
    const choice = this.#pinned()
    let index = choice.start - 1
    for (; index >= (this.#options.hold ?? 0); index--) {
      if (choice.kept[index] === 1) continue
      const cost = this.#costOf(choice, index)
      if (choice.count + cost.count > most) {
        choice.reason = 'message-limit'
        break
      }
      if (choice.tokens + cost.tokens > budget) break
      this.#take(choice, index)
    }
    choice.missesCall = this.#missesCall(choice)
    return choice
  }

  /** Leaves out what may not stand first. The current turn is never touched. */
  cleanHead(choice: Choice): void {
    for (let index = 0; index < this.#items.length; index++) {
      if (choice.kept[index] === 0) continue
      const group = this.#groups.groupOf[index] ?? -1
      const mayLead = !this.#groups.orphans.has(index) && !this.#groups.unanswered.has(group)
      if (mayLead || this.#isPinned(group)) break
      this.#drop(choice, index)
    }
  }

  /** When the current turn alone is too much, no output may cost more than a common limit. */
  shortenTurn(choice: Choice): ShortenedOutput[] {
    const over = choice.tokens - this.#options.budgetTokens
    if (over <= 0) return []
    const outputs = this.#keptIndexes(choice).flatMap(index => this.#lens.outputTokens(this.#item(index)))
    const limit = commonLimit(outputs, over)
    const shortened: ShortenedOutput[] = []
    for (const index of this.#keptIndexes(choice)) shortened.push(...this.#shortenItem(choice, index, limit))
    return shortened
  }

  /**
   * Makes a long turn fit: its newest groups stay whole, older ones keep a stub of their outputs, the oldest
   * are left out; never the question and never the newest group. The turn is replayed group by group, and the
   * borders move only when the budget is exceeded, so that a longer turn begins with what a shorter one had.
   */
  condenseTurn(choice: Choice): ShortenedOutput[] {
    if (choice.tokens <= this.#options.budgetTokens) return []
    const groups = this.#turnGroups(choice)
    const full = groups.map(group => sum(group.map(index => this.#tokens[index] ?? 0)))
    const stub = groups.map(group => sum(group.map(index => this.#stubTokens(index))))
    const { firstKept, firstWhole } = replayTurn(
      full,
      stub,
      choice.tokens - sum(full),
      this.#options.budgetTokens,
    )
    for (const group of groups.slice(0, firstKept)) this.#drop(choice, group[0] ?? 0)
    return groups
      .slice(firstKept, firstWhole)
      .flatMap(group => group.flatMap(index => this.#shortenItem(choice, index, LEAST_OUTPUT_TOKENS)))
  }

  result(choice: Choice, shortened: ShortenedOutput[]): Fit<T> {
    const { budgetTokens, maxMessages, preceding } = this.#options
    const items = this.#items.filter((_, index) => choice.kept[index] === 1)
    const left = this.#tokens.reduce((all, tokens, index) => all + (choice.kept[index] === 1 ? 0 : tokens), 0)
    const cut: HistoryCut = {
      reason: choice.reason,
      messages: this.#items.length - choice.count + (preceding?.messages ?? 0),
      tokens: left + (preceding?.tokens ?? 0),
      keptMessages: choice.count,
      keptTokens: choice.tokens,
      ...(Number.isFinite(budgetTokens) ? { budgetTokens } : {}),
      ...defined({ maxMessages }),
      shortened,
    }
    const isCut = cut.messages > 0 || shortened.length > 0
    const start = Math.max(0, choice.kept.indexOf(1))
    return { items, start, missesCall: choice.missesCall, ...(isCut ? { cut } : {}) }
  }

  #shortenItem(choice: Choice, index: number, limit: number): readonly ShortenedOutput[] {
    if (!this.#lens.outputTokens(this.#item(index)).some(tokens => tokens > limit)) return []
    const shorter = this.#lens.shorten(this.#item(index), limit)
    this.#items[index] = shorter.item
    const tokens = this.#lens.tokens(shorter.item)
    choice.tokens += tokens - (this.#tokens[index] ?? 0)
    this.#tokens[index] = tokens
    return shorter.shortened
  }

  /** What an item costs when no output of it is longer than a stub. */
  #stubTokens(index: number): number {
    const outputs = this.#lens.outputTokens(this.#item(index))
    return (this.#tokens[index] ?? 0) - sum(outputs.map(tokens => Math.max(0, tokens - LEAST_OUTPUT_TOKENS)))
  }

  /** The kept groups of the current turn after its question, oldest first. */
  #turnGroups(choice: Choice): (readonly number[])[] {
    const seen = new Set<number>()
    const groups: (readonly number[])[] = []
    for (let index = Math.max(0, this.#firstPinned()); index < this.#items.length; index++) {
      const group = this.#groups.groupOf[index] ?? -1
      if (index === this.#turnStart || choice.kept[index] === 0 || seen.has(group)) continue
      seen.add(group)
      groups.push(this.#groups.members[group] ?? [])
    }
    return groups
  }

  /** Whether an answer among the kept has its call nowhere. */
  #missesCall(choice: Choice): boolean {
    for (const index of this.#groups.orphans) if (choice.kept[index] === 1) return true
    return false
  }

  /** The current turn and the calls that it answers; without a user message, the newest group. */
  #pinned(): Choice {
    const size = this.#items.length
    const choice: Choice = {
      kept: new Uint8Array(size),
      start: size,
      tokens: 0,
      count: 0,
      reason: 'token-budget',
      missesCall: false,
    }
    for (let index = size - 1; index >= Math.max(0, this.#firstPinned()); index--) {
      this.#take(choice, index)
      choice.start = index
    }
    return choice
  }

  #firstPinned(): number {
    return this.#turnStart === -1 ? this.#items.length - 1 : this.#turnStart
  }

  #isPinned(group: number): boolean {
    return (this.#groups.members[group]?.at(-1) ?? -1) >= this.#firstPinned()
  }

  #take(choice: Choice, index: number): void {
    for (const member of this.#membersWith(index)) {
      if (choice.kept[member] === 1) continue
      choice.kept[member] = 1
      choice.tokens += this.#tokens[member] ?? 0
      choice.count++
    }
  }

  #drop(choice: Choice, index: number): void {
    for (const member of this.#membersWith(index)) {
      if (choice.kept[member] === 0) continue
      choice.kept[member] = 0
      choice.tokens -= this.#tokens[member] ?? 0
      choice.count--
    }
  }

  #costOf(choice: Choice, index: number): { tokens: number; count: number } {
    const missing = this.#membersWith(index).filter(member => choice.kept[member] === 0)
    return { tokens: sum(missing.map(member => this.#tokens[member] ?? 0)), count: missing.length }
  }

  #membersWith(index: number): readonly number[] {
    return this.#groups.members[this.#groups.groupOf[index] ?? -1] ?? []
  }

  #keptIndexes(choice: Choice): number[] {
    return [...choice.kept.keys()].filter(index => choice.kept[index] === 1)
  }

  #item(index: number): T {
    return this.#items[index] as T
  }

  #totalTokens(): number {
    return sum(this.#tokens) + (this.#options.preceding?.tokens ?? 0)
  }

  /** How many tokens to keep when something has to go. */
  #target(): number {
    const { budgetTokens, steady, hold } = this.#options
    if (hold !== undefined)
      return sum(this.#tokens.slice(hold)) <= budgetTokens ? budgetTokens : budgetTokens * REFILL
    return steady === true ? inSteps(this.#totalTokens(), budgetTokens) : budgetTokens
  }

  /** How many messages to keep when something has to go. */
  #maxMessages(): number {
    const { maxMessages, steady } = this.#options
    if (maxMessages === undefined) return Number.POSITIVE_INFINITY
    return steady === true ? inSteps(this.#totalMessages(), maxMessages) : maxMessages
  }

  #totalMessages(): number {
    return this.#items.length + (this.#options.preceding?.messages ?? 0)
  }
}

/**
 * How much to keep of a total: what is left out grows in steps of a quarter of the limit, so the cut stays where it is
 * while the history grows by less.
 */
function inSteps(total: number, limit: number): number {
  if (total <= limit) return total
  const step = limit / 4
  return total - Math.ceil((total - limit) / step) * step
}

/** No output is shortened below this: a shorter beginning and end would be useless. */
const LEAST_OUTPUT_TOKENS = 64

/** When a border moves, it moves so far that this share of the budget is used: so that the next groups fit. */
const REFILL = 0.75

/**
 * Where a turn that grew group by group is cut: groups before `firstKept` are out, those before `firstWhole`
 * are stubs. `base` is the cost of everything else that is kept.
 */
function replayTurn(
  full: readonly number[],
  stub: readonly number[],
  base: number,
  budget: number,
): { firstKept: number; firstWhole: number } {
  let [firstKept, firstWhole, cost] = [0, 0, base]
  for (let newest = 0; newest < full.length; newest++) {
    cost += full[newest] ?? 0
    if (cost <= budget) continue
    for (; firstWhole < newest && cost > budget * REFILL; firstWhole++) {
      cost += (stub[firstWhole] ?? 0) - (full[firstWhole] ?? 0)
    }
    for (; firstKept < firstWhole && cost > budget * REFILL; firstKept++) cost -= stub[firstKept] ?? 0
  }
  return { firstKept, firstWhole }
}

/** The highest limit at which the outputs together cost `over` less. */
function commonLimit(outputs: readonly number[], over: number): number {
  const largestFirst = [...outputs].sort((one, other) => other - one)
  let excess = 0
  for (const [index, tokens] of largestFirst.entries()) {
    const next = Math.max(largestFirst[index + 1] ?? 0, LEAST_OUTPUT_TOKENS)
    if (tokens <= LEAST_OUTPUT_TOKENS) break
    // Lowering the largest outputs so far to the next one's size frees this much more.
    const freed = (tokens - next) * (index + 1)
    if (excess + freed >= over)
      return Math.max(LEAST_OUTPUT_TOKENS, Math.floor(tokens - (over - excess) / (index + 1)))
    excess += freed
  }
  return LEAST_OUTPUT_TOKENS
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, number) => all + number, 0)
}
