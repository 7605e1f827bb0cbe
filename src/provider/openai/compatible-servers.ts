/**
 * What differs between servers that speak OpenAI's Chat Completions, as data: where they are, which variable
 * holds their key, which repair profile fits, and which fields they understand.
 */
import { own } from '../../base/own.js'

/** The fields of a chat request that servers disagree on. */
export interface ChatQuirks {
  maxTokensField: 'max_tokens' | 'max_completion_tokens'
  /** The field in which the server wants earlier reasoning back, if any. */
  reasoningField?: 'reasoning_content' | 'reasoning'
  /** Reasoning goes back with every call, and only there, even when it is empty. */
  reasoningWithCallsOnly?: boolean
  /** Whether `stream_options.include_usage` is understood; the others send usage unasked. */
  asksForUsage: boolean
  seedField: 'seed' | 'random_seed'
  /** What the server calls "you must call a tool". */
  requiredToolChoice: 'required' | 'any'
  /** `json_object` servers are told the schema in words. */
  responseFormat: 'json_schema' | 'json_object'
  /** How the wish to think is said, if at all. */
  thinkingField?: 'reasoning_effort' | 'reasoning' | 'thinking'
  takesTopK: boolean
  takesSeed: boolean
}

export interface CompatibleServer {
  baseUrl: string
  /** The variable that holds the key; absent for servers that need none. */
  keyVariable?: string
  /** A variable that names the server's address instead. */
  hostVariable?: string
  profile: string
  quirks?: Partial<ChatQuirks>
}

/** Servers known by name: `createProvider({ type: 'openai-compatible', preset: 'groq' })` or `groq/…`. */
export const COMPATIBLE_SERVERS: Readonly<Record<string, CompatibleServer>> = {
  ollama: { baseUrl: 'http://127.0.0.1:11434/v1', hostVariable: 'OLLAMA_HOST', profile: 'ollama' },
  lmstudio: { baseUrl: 'http://127.0.0.1:1234/v1', hostVariable: 'LMSTUDIO_HOST', profile: 'vllm' },
  llamacpp: { baseUrl: 'http://127.0.0.1:8080/v1', hostVariable: 'LLAMACPP_HOST', profile: 'vllm' },
  vllm: { baseUrl: 'http://127.0.0.1:8000/v1', hostVariable: 'VLLM_HOST', profile: 'vllm' },
  deepseek: {
    baseUrl: 'https://api.deepseek.com/v1',
    keyVariable: 'DEEPSEEK_API_KEY',
    profile: 'deepseek-thinking',
  },
  mistral: { baseUrl: 'https://api.mistral.ai/v1', keyVariable: 'MISTRAL_API_KEY', profile: 'mistral' },
  groq: { baseUrl: 'https://api.groq.com/openai/v1', keyVariable: 'GROQ_API_KEY', profile: 'groq' },
  cerebras: { baseUrl: 'https://api.cerebras.ai/v1', keyVariable: 'CEREBRAS_API_KEY', profile: 'groq' },
  openrouter: {
    baseUrl: 'https://openrouter.ai/api/v1',
    keyVariable: 'OPENROUTER_API_KEY',
    profile: 'openai-chat',
    quirks: { maxTokensField: 'max_tokens', thinkingField: 'reasoning', takesTopK: true },
  },
  together: {
    baseUrl: 'https://api.together.xyz/v1',
    keyVariable: 'TOGETHER_API_KEY',
    profile: 'vllm',
  },
  fireworks: {
    baseUrl: 'https://api.fireworks.ai/inference/v1',
    keyVariable: 'FIREWORKS_API_KEY',
    profile: 'vllm',
  },
  xai: {
    baseUrl: 'https://api.x.ai/v1',
    keyVariable: 'XAI_API_KEY',
    profile: 'openai-chat',
    quirks: { maxTokensField: 'max_tokens' },
  },
}

const STANDARD: ChatQuirks = {
  maxTokensField: 'max_tokens',
  asksForUsage: true,
  seedField: 'seed',
  requiredToolChoice: 'required',
  responseFormat: 'json_schema',
  takesTopK: false,
  takesSeed: true,
}

// By profile, because a server may be given by its address and profile alone.
const QUIRKS_BY_PROFILE: Readonly<Record<string, Partial<ChatQuirks>>> = {
  'openai-chat': { maxTokensField: 'max_completion_tokens', thinkingField: 'reasoning_effort' },
  mistral: { asksForUsage: false, seedField: 'random_seed', requiredToolChoice: 'any' },
  'deepseek-thinking': {
    reasoningField: 'reasoning_content',
    reasoningWithCallsOnly: true,
    responseFormat: 'json_object',
    thinkingField: 'thinking',
    takesSeed: false,
  },
  groq: { maxTokensField: 'max_completion_tokens', thinkingField: 'reasoning_effort' },
  vllm: { reasoningField: 'reasoning', takesTopK: true },
  ollama: { reasoningField: 'reasoning', thinkingField: 'reasoning_effort' },
}

/** The quirks of a server: its profile's, and on top of them its own. */
export function chatQuirks(profileName: string, preset?: string): ChatQuirks {
  const ofServer = preset === undefined ? undefined : own(COMPATIBLE_SERVERS, preset)?.quirks
  return { ...STANDARD, ...own(QUIRKS_BY_PROFILE, profileName), ...ofServer }
}
