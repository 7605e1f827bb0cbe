/**
 * One row per vendor: everything that is known of it before its provider is loaded. The registry, the
 * configuration, the command line, telemetry and the docs read these rows; none of them names a vendor itself.
 * The file loads no SDK and no provider, because every command imports it when it starts.
 *
 * docs/adding-a-provider.md describes how to add a row.
 */
import { defined } from '../base/defined.js'
import type { ProfileName } from './repair/profile.js'

/** A provider's class: one for each SDK, one for every server with the Chat Completions API, and the demo. */
export const PROVIDER_TYPES = ['gemini', 'openai', 'anthropic', 'openai-compatible', 'demo'] as const

export type ProviderType = (typeof PROVIDER_TYPES)[number]

export interface VendorRow {
  readonly type: ProviderType
  /** The variables that may hold the key; messages name the first. Absent: no key is needed. */
  readonly keyVariables?: readonly string[]
  readonly baseUrl?: string
  /** A variable with a URL that replaces `baseUrl`. */
  readonly baseUrlVariable?: string
  /** A variable with a host, a host and port, or a URL that replaces `baseUrl`. */
  readonly hostVariable?: string
  /** The model of an agent that names none, once the key is set. The order of the rows is the order of choice. */
  readonly defaultModel?: string
  /** Model names that the vendor serves: its part of the catalogue, and the hint for a name without provider. */
  readonly names?: RegExp
  /** Model names that mean this vendor even without `provider/`. */
  readonly bareNames?: RegExp
  /** Models of this family need `familyProfile` on servers of others. Searched anywhere in the name. */
  readonly family?: RegExp
  /** Default: `profile`. */
  readonly familyProfile?: ProfileName
  /** The server serves models of many makers, and the model's family decides which history it takes. */
  readonly servesFamilies?: true
  /** The API that the vendor's models are reached by. Default: Chat Completions. */
  readonly api?: 'responses'
  /**
   * Context window and output limit of a model that is not in the catalogue: the smallest of the vendor's current
   * models, because a figure that is too low costs a truncation and one that is too high a refusal.
   */
  readonly limits?: readonly [contextWindow: number, outputLimit: number]
  /** The server truncates prompts at this length whatever the model allows; `variable` overrides it. */
  readonly windowLimit?: { readonly variable: string; readonly tokens: number }
  /** `gen_ai.provider.name` in OpenTelemetry's conventions, where it differs from the row's name. */
  readonly telemetryName?: string
  /** The repair profile. For vendors with several generations, the strictest; the model's name refines it. */
  readonly profile: ProfileName
  /** For `openai-compatible`: fields that differ from those of the profile. */
  readonly quirks?: Partial<ChatQuirks>
}

/** The fields of a Chat Completions request that servers disagree on. */
export interface ChatQuirks {
  maxTokensField: 'max_tokens' | 'max_completion_tokens'
  /** The field in which the server wants earlier reasoning back, if any. */
  reasoningField?: 'reasoning_content' | 'reasoning'
  /** Reasoning is sent back with every call, and only there, even when it is empty. */
  reasoningWithCallsOnly?: boolean
  /** Every message of the assistant brings its reasoning back, even when it is empty. */
  reasoningAlways?: boolean
  /** Whether `stream_options.include_usage` is understood; the others always send usage. */
  asksForUsage: boolean
  seedField: 'seed' | 'random_seed'
  /** The server's value for "a tool must be called". */
  requiredToolChoice: 'required' | 'any'
  /** `json_object` servers get the schema as text. */
  responseFormat: 'json_schema' | 'json_object'
  /** The field that asks for thinking, if any. */
  thinkingField?: 'reasoning_effort' | 'reasoning' | 'thinking'
  takesTopK: boolean
  takesSeed: boolean
  takesPenalties: boolean
  takesLogprobs: boolean
  takesServiceTier: boolean
  /** Whether the server can be asked to call one of several tools. */
  takesAllowedTools: boolean
}

/** What Mistral's own API wants otherwise; its models behind other servers are asked as all models are there. */
const LOCAL: Partial<ChatQuirks> = { asksForUsage: true, seedField: 'seed', requiredToolChoice: 'required' }

/** Every vendor by the name that references use. */
export const VENDORS = {
  gemini: {
    type: 'gemini',
    keyVariables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    baseUrl: 'https://generativelanguage.googleapis.com',
    baseUrlVariable: 'GOOGLE_GEMINI_BASE_URL',
    defaultModel: 'gemini-3.5-flash',
    names: /^gemini-/,
    // ADK's own names for Google's models carry no provider.
    bareNames: /^(gemini|gemma)-/,
    limits: [1_048_576, 65_536],
    telemetryName: 'gcp.gemini',
    profile: 'gemini-3-strict',
  },
  openai: {
    type: 'openai',
    keyVariables: ['OPENAI_API_KEY'],
    baseUrl: 'https://api.openai.com/v1',
    baseUrlVariable: 'OPENAI_BASE_URL',
    defaultModel: 'gpt-5.2',
    names: /^(gpt-(?!oss)|o\d|chatgpt-|codex-|computer-use|ft:gpt)/,
    limits: [128_000, 16_384],
    profile: 'openai-responses',
  },
  anthropic: {
    type: 'anthropic',
    keyVariables: ['ANTHROPIC_API_KEY'],
    baseUrl: 'https://api.anthropic.com',
    baseUrlVariable: 'ANTHROPIC_BASE_URL',
    defaultModel: 'claude-sonnet-4-6',
    names: /^claude-/,
    limits: [200_000, 32_000],
    profile: 'anthropic-4.6',
  },
  mistral: {
    type: 'openai-compatible',
    keyVariables: ['MISTRAL_API_KEY'],
    baseUrl: 'https://api.mistral.ai/v1',
    defaultModel: 'mistral-large-latest',
    names: /^(mistral|magistral|codestral|devstral|ministral)/,
    family: /(mi[sx]tral|magistral|codestral|devstral|pixtral|voxtral)/,
    familyProfile: 'mistral-template',
    telemetryName: 'mistral_ai',
    profile: 'mistral',
  },
  deepseek: {
    type: 'openai-compatible',
    keyVariables: ['DEEPSEEK_API_KEY'],
    baseUrl: 'https://api.deepseek.com/v1',
    defaultModel: 'deepseek-chat',
    names: /^deepseek/,
    family: /deepseek/,
    profile: 'deepseek-v4',
  },
  moonshot: {
    type: 'openai-compatible',
    keyVariables: ['MOONSHOT_API_KEY'],
    baseUrl: 'https://api.moonshot.ai/v1',
    names: /^kimi-/,
    family: /kimi/,
    telemetryName: 'moonshot_ai',
    profile: 'kimi',
  },
  zai: {
    type: 'openai-compatible',
    keyVariables: ['ZAI_API_KEY'],
    baseUrl: 'https://api.z.ai/api/paas/v4',
    names: /^glm-/,
    family: /\bglm-/,
    profile: 'glm',
  },
  minimax: {
    type: 'openai-compatible',
    keyVariables: ['MINIMAX_API_KEY'],
    baseUrl: 'https://api.minimax.io/v1',
    names: /^minimax-/i,
    family: /minimax/,
    profile: 'minimax',
  },
  dashscope: {
    type: 'openai-compatible',
    keyVariables: ['DASHSCOPE_API_KEY'],
    baseUrl: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
    family: /(qwen-?[3-9]|qwq|qwen-(max|plus|flash))/,
    profile: 'qwen',
  },
  ollama: {
    type: 'openai-compatible',
    baseUrl: 'http://127.0.0.1:11434/v1',
    hostVariable: 'OLLAMA_HOST',
    names: /^(qwen|gpt-oss)/,
    windowLimit: { variable: 'OLLAMA_CONTEXT_LENGTH', tokens: 8192 },
    profile: 'ollama',
  },
  lmstudio: {
    type: 'openai-compatible',
    baseUrl: 'http://127.0.0.1:1234/v1',
    hostVariable: 'LMSTUDIO_HOST',
    profile: 'vllm',
    servesFamilies: true,
    quirks: { ...LOCAL, reasoningField: 'reasoning_content' },
  },
  llamacpp: {
    type: 'openai-compatible',
    baseUrl: 'http://127.0.0.1:8080/v1',
    hostVariable: 'LLAMACPP_HOST',
    profile: 'vllm',
    servesFamilies: true,
    quirks: { ...LOCAL, reasoningField: 'reasoning_content' },
  },
  vllm: {
    type: 'openai-compatible',
    baseUrl: 'http://127.0.0.1:8000/v1',
    hostVariable: 'VLLM_HOST',
    profile: 'vllm',
    servesFamilies: true,
    quirks: { ...LOCAL, reasoningField: 'reasoning' },
  },
  groq: {
    type: 'openai-compatible',
    keyVariables: ['GROQ_API_KEY'],
    baseUrl: 'https://api.groq.com/openai/v1',
    profile: 'groq',
  },
  cerebras: {
    type: 'openai-compatible',
    keyVariables: ['CEREBRAS_API_KEY'],
    baseUrl: 'https://api.cerebras.ai/v1',
    profile: 'groq',
  },
  openrouter: {
    type: 'openai-compatible',
    keyVariables: ['OPENROUTER_API_KEY'],
    baseUrl: 'https://openrouter.ai/api/v1',
    profile: 'openai-chat',
    servesFamilies: true,
    quirks: {
      ...LOCAL,
      maxTokensField: 'max_tokens',
      reasoningField: 'reasoning',
      thinkingField: 'reasoning',
      takesTopK: true,
    },
  },
  together: {
    type: 'openai-compatible',
    keyVariables: ['TOGETHER_API_KEY'],
    baseUrl: 'https://api.together.xyz/v1',
    profile: 'vllm',
    servesFamilies: true,
    quirks: LOCAL,
  },
  fireworks: {
    type: 'openai-compatible',
    keyVariables: ['FIREWORKS_API_KEY'],
    baseUrl: 'https://api.fireworks.ai/inference/v1',
    profile: 'vllm',
    servesFamilies: true,
    quirks: LOCAL,
  },
  xai: {
    type: 'openai-compatible',
    keyVariables: ['XAI_API_KEY'],
    baseUrl: 'https://api.x.ai/v1',
    names: /^grok-/,
    telemetryName: 'x_ai',
    // Chat Completions there has no field for encrypted reasoning.
    api: 'responses',
    profile: 'xai-responses',
    quirks: { maxTokensField: 'max_tokens' },
  },
  demo: {
    type: 'demo',
    // It has one model, so the model's name is enough.
    names: /^demo$/,
    bareNames: /^demo$/,
    limits: [32_768, 4096],
    profile: 'openai-chat',
  },
} as const satisfies Readonly<Record<string, VendorRow>>

const ROWS: readonly (readonly [name: string, row: VendorRow])[] = Object.entries(VENDORS)

/** The row of a vendor's name, or `undefined`: names come from users. */
export function vendorRow(name: string): VendorRow | undefined {
  return ROWS.find(([known]) => known === name)?.[1]
}

/** The names of the vendors whose row meets a condition, in the order of the table. */
export function vendorNames(condition: (row: VendorRow) => boolean = () => true): string[] {
  return ROWS.flatMap(([name, row]) => (condition(row) ? [name] : []))
}

/** A server known by name: `createProvider({ type: 'openai-compatible', preset: 'groq' })` or `groq/…`. */
export interface CompatibleServer {
  baseUrl: string
  /** The variable that holds the key; absent for servers that need none. */
  keyVariable?: string
  /** A variable that names the server's address instead. */
  hostVariable?: string
  profile: string
  quirks?: Partial<ChatQuirks>
}

/** The rows of compatible servers, in the form that callers of the library read. */
export const COMPATIBLE_SERVERS: Readonly<Record<string, CompatibleServer>> = Object.fromEntries(
  ROWS.flatMap(([name, { type, baseUrl, keyVariables, hostVariable, profile, quirks }]) =>
    type === 'openai-compatible' && baseUrl !== undefined
      ? [[name, { baseUrl, profile, ...defined({ keyVariable: keyVariables?.[0], hostVariable, quirks }) }]]
      : [],
  ),
)

/** A vendor that can be used as soon as its key is set, and the model to start with. */
export interface KeyedProvider {
  name: string
  variables: readonly string[]
  model: string
}

/** In the order in which they are tried. */
export const KEYED_PROVIDERS: readonly KeyedProvider[] = ROWS.flatMap(
  ([name, { keyVariables: variables, defaultModel: model }]) =>
    variables && model ? [{ name, variables, model }] : [],
)

/** The key variables that messages suggest, OpenAI's first because most people have that key. */
export const SUGGESTED_KEYS: readonly string[] = [
  ...new Set([
    VENDORS.openai.keyVariables[0],
    ...KEYED_PROVIDERS.flatMap(({ variables }) => variables.slice(0, 1)),
  ]),
]

/** The shell command that sets a key, for people who have none yet. */
export function keyHint(platform: string = process.platform): string {
  return `${platform === 'win32' ? 'set' : 'export'} ${SUGGESTED_KEYS[0]}=…`
}

type Environment = Readonly<Record<string, string | undefined>>

/** The first of some variables that is set to something. */
export function readVariable(env: Environment, names: readonly (string | undefined)[]): string | undefined {
  for (const name of names) {
    const value = name === undefined ? undefined : env[name]?.trim()
    if (value) return value
  }
  return undefined
}

/** Whether requests to Gemini are sent to Vertex AI, which needs no key. */
export function usesVertex(options: { vertexai?: boolean | undefined }, env: Environment): boolean {
  return options.vertexai ?? /^(true|1)$/i.test(readVariable(env, ['GOOGLE_GENAI_USE_VERTEXAI']) ?? '')
}

/** Where the environment says that a vendor's server is: its URL variable, its host variable, or the usual place. */
export function vendorAddress(row: VendorRow, env: Environment): string | undefined {
  const url = readVariable(env, [row.baseUrlVariable])
  const host = readVariable(env, [row.hostVariable])
  if (url !== undefined || host === undefined || row.baseUrl === undefined) return url ?? row.baseUrl
  return hostToUrl(host, row.baseUrl)
}

/** `OLLAMA_HOST` may be a host, a host and port, or a URL. `0.0.0.0` is an address to listen on, not to call. */
function hostToUrl(host: string, standard: string): string {
  const { port, pathname } = new URL(standard)
  const url = new URL(/^https?:\/\//.test(host) ? host : `http://${host}`)
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1'
  if (url.port === '' && url.protocol === 'http:') url.port = port
  if (url.pathname === '/') url.pathname = pathname
  return url.href.replace(/\/$/, '')
}
