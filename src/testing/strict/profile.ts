/** The model generations that can be played. Behaviour is per generation, not per vendor. */
export const STRICT_PROFILES = [
  'gemini-2',
  'gemini-3',
  'gemini-3-strict',
  'openai-chat',
  'openai-responses',
  'anthropic-4.5',
  'anthropic-4.6',
  'anthropic-5.1',
  'mistral',
  'deepseek-thinking',
  'groq',
  'vllm',
  'ollama',
] as const

export type StrictProfile = (typeof STRICT_PROFILES)[number]

/**
 * How mixed evidence is read. `strict` refuses what some models or endpoints refuse; `lenient` accepts what
 * has been seen to be accepted.
 */
export type Reading = 'strict' | 'lenient'

/** Whose wire, whose words, and how much fits. */
export interface ProfileFacts {
  readonly family: 'gemini' | 'openai-chat' | 'openai-responses' | 'anthropic'
  readonly model: string
  readonly contextWindow: number
}

export const PROFILE_FACTS: Readonly<Record<StrictProfile, ProfileFacts>> = {
  'gemini-2': { family: 'gemini', model: 'gemini-2.5-flash', contextWindow: 1_048_576 },
  'gemini-3': { family: 'gemini', model: 'gemini-3.5-flash', contextWindow: 1_048_576 },
  'gemini-3-strict': { family: 'gemini', model: 'gemini-3.8-flash', contextWindow: 1_048_576 },
  'openai-chat': { family: 'openai-chat', model: 'gpt-4.1', contextWindow: 128_000 },
  'openai-responses': { family: 'openai-responses', model: 'gpt-5.6', contextWindow: 400_000 },
  'anthropic-4.5': { family: 'anthropic', model: 'claude-sonnet-4-5', contextWindow: 200_000 },
  'anthropic-4.6': { family: 'anthropic', model: 'claude-sonnet-4-6', contextWindow: 200_000 },
  'anthropic-5.1': { family: 'anthropic', model: 'claude-opus-5-5', contextWindow: 200_000 },
  mistral: { family: 'openai-chat', model: 'mistral-large-latest', contextWindow: 131_072 },
  'deepseek-thinking': { family: 'openai-chat', model: 'deepseek-reasoner', contextWindow: 131_072 },
  groq: { family: 'openai-chat', model: 'openai/gpt-oss-120b', contextWindow: 131_072 },
  vllm: { family: 'openai-chat', model: 'Qwen/Qwen3-8B', contextWindow: 40_960 },
  ollama: { family: 'openai-chat', model: 'qwen3:8b', contextWindow: 40_960 },
}
