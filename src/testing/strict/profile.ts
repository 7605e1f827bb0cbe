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
  'xai-responses',
  'converse',
  'mistral',
  'mistral-template',
  'deepseek-thinking',
  'deepseek-v4',
  'kimi',
  'glm',
  'qwen',
  'minimax',
  'cohere',
  'compatible-gemini',
  'openrouter',
  'openrouter-gemini',
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
  readonly family: 'gemini' | 'openai-chat' | 'openai-responses' | 'anthropic' | 'converse'
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
  'deepseek-thinking': { family: 'openai-chat', model: 'deepseek-v3.2', contextWindow: 131_072 },
  'xai-responses': { family: 'openai-responses', model: 'grok-4.3', contextWindow: 256_000 },
  'mistral-template': {
    family: 'openai-chat',
    model: 'mistralai/Mistral-Small-3.2-24B-Instruct',
    contextWindow: 131_072,
  },
  'deepseek-v4': { family: 'openai-chat', model: 'deepseek-v4-flash', contextWindow: 131_072 },
  kimi: { family: 'openai-chat', model: 'kimi-k2.6', contextWindow: 262_144 },
  glm: { family: 'openai-chat', model: 'glm-5.1', contextWindow: 200_000 },
  qwen: { family: 'openai-chat', model: 'qwen3.5-plus', contextWindow: 131_072 },
  minimax: { family: 'openai-chat', model: 'MiniMax-M2.5', contextWindow: 204_800 },
  converse: { family: 'converse', model: 'us.amazon.nova-pro-v1:0', contextWindow: 300_000 },
  cohere: { family: 'openai-chat', model: 'command-a-03-2025', contextWindow: 256_000 },
  'compatible-gemini': { family: 'openai-chat', model: 'gemini-3.5-flash', contextWindow: 1_048_576 },
  openrouter: { family: 'openai-chat', model: 'anthropic/claude-sonnet-4.6', contextWindow: 200_000 },
  'openrouter-gemini': {
    family: 'openai-chat',
    model: 'google/gemini-3.5-flash',
    contextWindow: 1_048_576,
  },
  groq: { family: 'openai-chat', model: 'openai/gpt-oss-120b', contextWindow: 131_072 },
  vllm: { family: 'openai-chat', model: 'meta-llama/Llama-3.3-70B-Instruct', contextWindow: 40_960 },
  ollama: { family: 'openai-chat', model: 'qwen3:8b', contextWindow: 40_960 },
}

/** The platforms that can be played. */
export const STRICT_PLATFORMS = ['azure', 'bedrock', 'vertex'] as const

export type StrictPlatform = (typeof STRICT_PLATFORMS)[number]
