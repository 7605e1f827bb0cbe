import { defined } from '../base/defined.js'
import { AgentError, checkMessages } from '../errors.js'
import { type BudgetLens, fitToBudget } from './fit-to-budget.js'
import {
  type HistoryCut,
  type Message,
  normalizeRole,
  type ShortenedOutput,
  type ToolCall,
  toolCallKind,
} from './message.js'
import type { CallReference } from './pair-calls.js'
import { shortenOutput } from './shorten-output.js'
import { CALL_TOKENS, countMessageTokens, countTextTokens, joinOutputs, repeatsOutputs } from './tokens.js'
import { startsTurn } from './turn.js'

/** The budget when none is given, or 0. */
export const DEFAULT_BUDGET_TOKENS = 32_000
/** The default with observational memory, which keeps the older history itself. */
export const OBSERVATIONAL_BUDGET_TOKENS = 8_000
/** The part of the budget that notes about older messages may take. */
export const MEMORY_SHARE = 0.25
/** The limit that applies when token budgeting is `'off'`. */
export const DEFAULT_MAX_MESSAGES = 100

export interface TruncateOptions {
  /** Also applies with a budget. Default: none, or 100 when the budget is `'off'`. */
  maxMessages?: number | undefined
  /** Moves the cut in steps of a quarter of the budget instead of with every message, so that prompt caches hold. */
  steady?: boolean | undefined
  /** Older messages that were not passed in because they cannot fit. */
  preceding?: { messages: number; tokens: number } | undefined
}

export interface Truncated<M extends Message> {
  messages: M[]
  /** What was left out and why; absent when nothing was. */
  cut?: HistoryCut
  /** Whether a kept message answers a call that was not passed in. */
  missesCall: boolean
}

/**
 * The newest part of a history that fits, by the rules of `fitToBudget`. The messages passed in are never changed.
 *
 * ```ts
 * import { type Message, tokenBudgetTruncate } from 'lango/store'
 *
 * const history: Message[] = [{ role: 'user', author: 'user', content: 'Hello', timestamp: Date.now() }]
 * const { messages, cut } = tokenBudgetTruncate(history, 8000)
 * ```
 */
export function tokenBudgetTruncate<M extends Message>(
  messages: readonly M[],
  budget: number | 'off' = 0,
  options: TruncateOptions = {},
): Truncated<M> {
  checkMessages(messages, 'tokenBudgetTruncate')
  const { budgetTokens, maxMessages } = effectiveLimits(budget, options.maxMessages)
  const { items, cut, missesCall } = fitToBudget(
    messages,
    {
      budgetTokens,
      maxMessages,
      preceding: options.preceding,
      steady: options.steady,
    },
    messageLens as BudgetLens<M>,
  )
  return { messages: items, missesCall, ...defined({ cut }) }
}

/** What 0, absence and `'off'` mean. */
export function effectiveLimits(
  budget: number | 'off' | undefined,
  maxMessages: number | undefined,
): { budgetTokens: number; maxMessages: number | undefined } {
  if (budget !== undefined && budget !== 'off' && !(typeof budget === 'number' && budget >= 0)) {
    const message = `The token budget is ${String(budget)}, but must be a number from 0 (the default) up, or 'off'.`
    throw new AgentError('invalid-argument', message)
  }
  if (budget === 'off') {
    return { budgetTokens: Number.POSITIVE_INFINITY, maxMessages: maxMessages ?? DEFAULT_MAX_MESSAGES }
  }
  return { budgetTokens: budget || DEFAULT_BUDGET_TOKENS, maxMessages }
}

const messageLens: BudgetLens<Message> = {
  tokens: tokensOf,
  startsTurn,
  calls: message => references(message, 'call'),
  answers: message => {
    const answers = references(message, 'response')
    const isBareResult = normalizeRole(message.role) === 'tool' && (message.toolCalls ?? []).length === 0
    return isBareResult ? [NAMELESS] : answers
  },
  outputTokens: message => {
    const outputs = outputsOf(message).map(call => CALL_TOKENS + countTextTokens(call.output))
    return isToolText(message) ? [...outputs, countTextTokens(message.content)] : outputs
  },
  shorten: shortenMessage,
}

const NAMELESS: CallReference = {}
const NONE: readonly CallReference[] = []

/** Stored messages carry their cost; others are counted. */
function tokensOf(message: Message & { tokens?: unknown }): number {
  return typeof message.tokens === 'number' ? message.tokens : countMessageTokens(message)
}

function references(message: Message, kind: 'call' | 'response'): readonly CallReference[] {
  if (message.toolCalls === undefined || message.toolCalls.length === 0) return NONE
  return message.toolCalls.filter(call => {
    const actual = toolCallKind(call, message.role)
    return actual === kind || actual === 'both'
  })
}

function outputsOf(message: Message): (ToolCall & { output: string })[] {
  const calls = message.toolCalls ?? []
  return calls.filter((call): call is ToolCall & { output: string } => typeof call.output === 'string')
}

/** A tool's result in the text: older rows have nothing else. */
function isToolText(message: Message): boolean {
  return normalizeRole(message.role) === 'tool' && !repeatsOutputs(message.content, message.toolCalls ?? [])
}

function shortenMessage(
  message: Message,
  limitTokens: number,
): { item: Message; shortened: ShortenedOutput[] } {
  const shortened: ShortenedOutput[] = []
  const shorten = (call: Partial<ToolCall>, text: string, limit: number): string => {
    const shorter = shortenOutput(text, limit)
    if (shorter !== text) {
      const [fromTokens, toTokens] = [countTextTokens(text), countTextTokens(shorter)]
      shortened.push({ callId: call.id ?? '', name: call.name ?? '', fromTokens, toTokens })
    }
    return shorter
  }
  const item: Message & { tokens?: number } = { ...message }
  if (isToolText(message)) item.content = shorten({}, message.content, limitTokens)
  if (message.toolCalls !== undefined) {
    item.toolCalls = message.toolCalls.map(call =>
      typeof call.output === 'string'
        ? { ...call, output: shorten(call, call.output, limitTokens - CALL_TOKENS) }
        : call,
    )
    if (repeatsOutputs(message.content, message.toolCalls)) item.content = joinOutputs(item.toolCalls) ?? ''
  }
  if (typeof item.tokens === 'number') item.tokens = countMessageTokens(item)
  return { item, shortened }
}
