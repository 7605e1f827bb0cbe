import type { RunUsage } from './run-event.js'

/** ADK's usage in our words: Gemini counts thoughts beside the answer's tokens, we count them within. */
export function fromUsageMetadata(reported: object): RunUsage {
  const count = (name: string): number => {
    const value: unknown = Reflect.get(reported, name)
    return typeof value === 'number' && Number.isFinite(value) ? value : 0
  }
  return {
    inputTokens: count('promptTokenCount'),
    outputTokens: count('candidatesTokenCount') + count('thoughtsTokenCount'),
    cachedInputTokens: count('cachedContentTokenCount'),
    cacheWriteTokens: 0,
    reasoningTokens: count('thoughtsTokenCount'),
    totalTokens: count('totalTokenCount'),
  }
}
