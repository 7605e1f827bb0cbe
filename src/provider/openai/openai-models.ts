/** What OpenAI's model names tell of what a model accepts. */
import type { GenerationOptions } from '../provider.js'

/** Models of OpenAI's own, which are best spoken to through the Responses API. */
export function isOpenAiModel(model: string): boolean {
  return /^(gpt-|o\d|chatgpt-|codex-|computer-use|ft:gpt)/.test(model) && !model.startsWith('gpt-oss')
}

/** Models that think: they return encrypted reasoning, take an effort, and refuse sampling settings. */
export function isReasoningModel(model: string): boolean {
  return /^(o\d|gpt-[5-9]|codex-)/.test(model) && !/chat/.test(model)
}

type Wish = NonNullable<GenerationOptions['thinking']>

/** OpenAI takes an effort, not a number of tokens, and not every model knows every effort. */
export function effortFor(model: string, wish: Wish | undefined): string | undefined {
  if (wish === undefined) return undefined
  const effort = wish.effort ?? (wish.budgetTokens === undefined ? undefined : effortOf(wish.budgetTokens))
  if (effort !== 'minimal' || /^gpt-5(-|$)/.test(model)) return effort
  return wish.budgetTokens === 0 && /^gpt-(5\.|[6-9])/.test(model) ? 'none' : 'low'
}

function effortOf(budgetTokens: number): NonNullable<Wish['effort']> {
  if (budgetTokens <= 1024) return 'minimal'
  if (budgetTokens <= 4096) return 'low'
  return budgetTokens <= 16_384 ? 'medium' : 'high'
}
