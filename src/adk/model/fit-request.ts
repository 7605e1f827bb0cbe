import type { ModelInfo, ProviderMessage, ToolDeclaration } from '../../provider/provider.js'
import { fitToBudget } from '../../session/fit-to-budget.js'
import type { HistoryCut } from '../../session/message.js'
import { effectiveLimits } from '../../session/token-budget-truncate.js'
import { countProviderTokens, countToolTokens, lensFor } from './provider-message-lens.js'

export interface RequestParts {
  system: ProviderMessage | undefined
  messages: readonly ProviderMessage[]
  tools: readonly ToolDeclaration[]
  maxOutputTokens?: number | undefined
}

export interface RequestBudget {
  budgetTokens: number | 'off' | undefined
  model: ModelInfo
  /** How many real tokens an estimated one was, learnt from reported usage. 1 until something is known. */
  scale: number
}

export interface FittedRequest {
  messages: ProviderMessage[]
  cut?: HistoryCut
  /** The history before it was fitted. */
  given: { messages: number; tokens: number }
  /** Estimates of the history that is sent, and of the request as a whole. */
  historyTokens: number
  requestTokens: number
}

/**
 * Fits a request's history to its budget: pairs stay whole and the current question stays in, whatever the
 * run has called since. ADK loads a session once per run, so this happens before every model call. The cut
 * depends on the history's length in steps of a quarter budget: while a run goes on it stays where it is, and
 * a provider's cache goes on recognising the beginning.
 */
export function fitRequest(request: RequestParts, budget: RequestBudget): FittedRequest {
  const limit = historyBudget(request, budget)
  return fitTo(request, limit)
}

/** Fits to that many estimated tokens of history. */
export function fitTo(request: RequestParts, budgetTokens: number): FittedRequest {
  const { messages } = request
  const tokens = countAll(messages)
  const refillTo = steadyTokens(tokens, budgetTokens) / budgetTokens
  const fit = fitToBudget(messages, { budgetTokens, refillTo, dropWithinTurn: true }, lensFor(messages))
  const historyTokens = countAll(fit.items)
  return {
    messages: fit.items,
    given: { messages: messages.length, tokens },
    ...(fit.cut ? { cut: fit.cut } : {}),
    historyTokens,
    requestTokens: historyTokens + overheadTokens(request),
  }
}

/** The budget, but never more than the window has room for beside answer, instruction and tools. */
function historyBudget(request: RequestParts, { budgetTokens, model, scale }: RequestBudget): number {
  const wanted = effectiveLimits(budgetTokens, undefined).budgetTokens
  const answer = Math.min(
    request.maxOutputTokens ?? model.outputLimit,
    model.outputLimit,
    model.contextWindow / 2,
  )
  const room = (model.contextWindow - answer) / scale - overheadTokens(request)
  return Math.max(1, Math.floor(Math.min(wanted / scale, room)))
}

function overheadTokens({ system, tools }: RequestParts): number {
  return (system ? countProviderTokens(system) : 0) + countToolTokens(tools)
}

function countAll(messages: readonly ProviderMessage[]): number {
  return messages.reduce((all, message) => all + countProviderTokens(message), 0)
}

/** How much to keep of so many tokens: what is left out grows in steps of a quarter budget. */
function steadyTokens(total: number, budgetTokens: number): number {
  if (total <= budgetTokens) return total
  const step = budgetTokens / 4
  return total - Math.ceil((total - budgetTokens) / step) * step
}
