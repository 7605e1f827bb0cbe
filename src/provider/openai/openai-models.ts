/** What OpenAI's model names tell of what a model accepts. */

/** Models of OpenAI's own, which are best spoken to through the Responses API. */
export function isOpenAiModel(model: string): boolean {
  return /^(gpt-|o\d|chatgpt-|codex-|computer-use|ft:gpt)/.test(model) && !model.startsWith('gpt-oss')
}

/** Models that think: they return encrypted reasoning, take an effort, and refuse sampling settings. */
export function isReasoningModel(model: string): boolean {
  return /^(o\d|gpt-[5-9]|codex-)/.test(model) && !/chat/.test(model)
}

type Effort = 'minimal' | 'low' | 'medium' | 'high'

/** OpenAI takes an effort, not a number of tokens. */
export function effortOf(
  thinking: { budgetTokens?: number; effort?: Effort } | undefined,
): Effort | undefined {
  if (thinking?.effort !== undefined || thinking?.budgetTokens === undefined) return thinking?.effort
  if (thinking.budgetTokens <= 1024) return 'minimal'
  if (thinking.budgetTokens <= 4096) return 'low'
  return thinking.budgetTokens <= 16_384 ? 'medium' : 'high'
}
