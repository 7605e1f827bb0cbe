import type { Provider } from '../../src/provider/provider.js'
import type { ProviderOptions } from '../../src/provider/provider-settings.js'
import type { StrictProfile } from '../../src/testing/strict/profile.js'
import { testProvider } from './collect.js'

/** How each strict server is reached by a provider of ours, as a user would configure it. */
export const STRICT_TARGETS: Readonly<Record<StrictProfile, { options: ProviderOptions; model: string }>> = {
  'gemini-2': { options: { type: 'gemini' }, model: 'gemini-2.5-flash' },
  'gemini-3': { options: { type: 'gemini' }, model: 'gemini-3.5-flash' },
  'gemini-3-strict': { options: { type: 'gemini' }, model: 'gemini-3.8-flash' },
  'openai-chat': { options: { type: 'openai', api: 'chat' }, model: 'gpt-4.1' },
  'openai-responses': { options: { type: 'openai' }, model: 'gpt-5.6' },
  'anthropic-4.5': { options: { type: 'anthropic' }, model: 'claude-sonnet-4-5' },
  'anthropic-4.6': { options: { type: 'anthropic' }, model: 'claude-sonnet-4-6' },
  'anthropic-5.1': { options: { type: 'anthropic' }, model: 'claude-opus-5-5' },
  mistral: { options: { type: 'openai-compatible', preset: 'mistral' }, model: 'mistral-large-latest' },
  'deepseek-thinking': {
    options: { type: 'openai-compatible', preset: 'deepseek' },
    model: 'deepseek-v3.2',
  },
  'xai-responses': { options: { type: 'openai-compatible', preset: 'xai' }, model: 'grok-4.3' },
  'mistral-template': {
    options: { type: 'openai-compatible', preset: 'vllm' },
    model: 'mistralai/Mistral-Small-3.2-24B-Instruct',
  },
  'deepseek-v4': { options: { type: 'openai-compatible', preset: 'deepseek' }, model: 'deepseek-v4-flash' },
  converse: { options: { type: 'bedrock', region: 'us-east-1' }, model: 'us.amazon.nova-pro-v1:0' },
  kimi: { options: { type: 'openai-compatible', preset: 'moonshot' }, model: 'kimi-k2.6' },
  glm: { options: { type: 'openai-compatible', preset: 'zai' }, model: 'glm-5.1' },
  qwen: { options: { type: 'openai-compatible', preset: 'dashscope' }, model: 'qwen3.5-plus' },
  minimax: { options: { type: 'openai-compatible', preset: 'minimax' }, model: 'MiniMax-M2.5' },
  cohere: { options: { type: 'openai-compatible', preset: 'cohere' }, model: 'command-a-03-2025' },
  'compatible-gemini': {
    options: { type: 'openai-compatible', profile: 'compatible-gemini' },
    model: 'gemini-3.5-flash',
  },
  openrouter: {
    options: { type: 'openai-compatible', preset: 'openrouter' },
    model: 'anthropic/claude-sonnet-4.6',
  },
  'openrouter-gemini': {
    options: { type: 'openai-compatible', preset: 'openrouter' },
    model: 'google/gemini-3.5-flash',
  },
  groq: { options: { type: 'openai-compatible', preset: 'groq' }, model: 'openai/gpt-oss-120b' },
  vllm: {
    options: { type: 'openai-compatible', preset: 'vllm' },
    model: 'meta-llama/Llama-3.3-70B-Instruct',
  },
  ollama: { options: { type: 'openai-compatible', preset: 'ollama' }, model: 'qwen3:8b' },
}

export const ALL_PROFILES = Object.keys(STRICT_TARGETS) as StrictProfile[]

/** One profile of each family of wires, for `npm test` where the long tier tries all profiles. */
export const ONE_PER_FAMILY: readonly StrictProfile[] = [
  'gemini-3',
  'openai-chat',
  'openai-responses',
  'anthropic-4.6',
  'converse',
]

export function strictTarget(profile: StrictProfile, baseUrl: string, more: Partial<ProviderOptions> = {}) {
  const { options, model } = STRICT_TARGETS[profile]
  const provider: Provider = testProvider({ ...options, baseUrl, ...more })
  return { provider, model }
}
