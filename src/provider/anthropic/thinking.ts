/**
 * When Claude may be asked to think, and in which words. Up to 4.5 a budget of tokens is given and the turn
 * being continued must begin with thinking; from 4.6 on the model decides and is told an effort.
 */
import type { GenerationOptions, ProviderMessage } from '../provider.js'
import type { PreparedRequest } from '../stream-answer.js'

export interface AnthropicThinkingWire {
  type: 'enabled' | 'adaptive'
  budget_tokens?: number
  display?: 'summarized' | 'omitted'
}

export interface ThinkingWish {
  thinking?: AnthropicThinkingWire
  effort?: 'low' | 'medium' | 'high'
}

/** The wire's words for the caller's wish, or nothing where it would be refused. */
export function toThinking(request: PreparedRequest): ThinkingWish {
  const wish = request.options.thinking
  if (wish === undefined || wish.budgetTokens === 0) return {}
  if (isAdaptive(request)) {
    const effort = effortOf(wish)
    return {
      thinking: { type: 'adaptive', ...(wish.includeThoughts ? { display: 'summarized' } : {}) },
      ...(effort === undefined ? {} : { effort }),
    }
  }
  // Forced tools and thinking exclude each other, and so does a turn that was begun without thinking.
  if (isForced(request.options) || isTurnWithoutThinking(request.messages)) return {}
  const budget = Math.max(1024, wish.budgetTokens ?? BUDGETS[wish.effort ?? 'medium'])
  return { thinking: { type: 'enabled', budget_tokens: Math.min(budget, request.info.outputLimit - 1024) } }
}

/** Sampling settings are refused beside thinking, and by 4.7 and later altogether. */
export function takesSampling(
  request: PreparedRequest,
  thinking: AnthropicThinkingWire | undefined,
): boolean {
  return thinking === undefined && !refusesSampling(request.model)
}

function refusesSampling(model: string): boolean {
  const version = /claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2})(?!\d))?/.exec(model)
  if (!version) return /mythos|fable/.test(model)
  return Number(version[1]) > 4 || (Number(version[1]) === 4 && Number(version[2] ?? 0) >= 7)
}

function isAdaptive(request: PreparedRequest): boolean {
  return request.profile.name !== 'anthropic-4.5'
}

function isForced(options: GenerationOptions): boolean {
  return options.toolChoice === 'required' || typeof options.toolChoice === 'object'
}

/** True while results are being handed to a turn whose last answer did not begin with thinking. */
function isTurnWithoutThinking(messages: readonly ProviderMessage[]): boolean {
  const last = messages.findLast(message => message.role === 'assistant')
  const tail = messages.at(-1)
  const continues = tail?.parts.some(part => part.type === 'tool-result') === true
  return continues && last?.parts[0]?.type !== 'reasoning'
}

const BUDGETS = { minimal: 1024, low: 2048, medium: 8192, high: 24_576 } as const

function effortOf(wish: NonNullable<GenerationOptions['thinking']>): ThinkingWish['effort'] {
  if (wish.effort !== undefined) return wish.effort === 'minimal' ? 'low' : wish.effort
  if (wish.budgetTokens === undefined) return undefined
  if (wish.budgetTokens <= 4096) return 'low'
  return wish.budgetTokens <= 16_384 ? 'medium' : 'high'
}
