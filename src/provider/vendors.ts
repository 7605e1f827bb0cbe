/**
 * One row per vendor: everything that is known of it before its provider is loaded. The registry, the
 * configuration, the command line, telemetry and the docs read these rows; none of them names a vendor itself.
 * The file loads no SDK and no provider, because every command imports it when it starts.
 *
 * docs/adding-a-provider.md describes how to add a row.
 */
import { defined } from '../base/defined.js'
import type { OptionalName } from '../packages.js'
import type { ChatQuirks, VendorRow } from './vendor-row.js'

/**
 * A provider's class: one for each SDK, one for every server with the Chat Completions API, one for each platform that
 * serves models of others under its own accounts, and the demo.
 */
export const PROVIDER_TYPES = [
  'gemini',
  'openai',
  'anthropic',
  'openai-compatible',
  'azure',
  'bedrock',
  'vertex',
  'demo',
] as const

export type ProviderType = (typeof PROVIDER_TYPES)[number]

type Row = VendorRow<ProviderType>

/** What a provider needs and does not come with Lango. What a platform needs depends on the model. */
export const PROVIDER_PACKAGES: Readonly<Partial<Record<string, OptionalName>>> = {
  openai: 'openai',
  'openai-compatible': 'openai',
  azure: 'openai',
  anthropic: 'anthropic',
} satisfies Partial<Record<ProviderType, OptionalName>>

/** What Mistral's own API wants otherwise; its models behind other servers are asked as all models are there. */
const LOCAL: Partial<ChatQuirks> = { asksForUsage: true, seedField: 'seed', requiredToolChoice: 'required' }

/** From its third generation on Gemini signs its calls. */
const GEMINI_3 = /gemini-[3-9]/

/** Every vendor by the name that references use. */
export const VENDORS = {
  gemini: {
    type: 'gemini',
    keyVariables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    baseUrl: 'https://generativelanguage.googleapis.com',
    baseUrlVariable: 'GOOGLE_GEMINI_BASE_URL',
    defaultModel: 'gemini-3.5-flash',
    names: /^gemini-/,
    family: GEMINI_3,
    familyProfile: 'compatible-gemini',
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
  azure: {
    type: 'azure',
    keyVariables: ['AZURE_OPENAI_API_KEY', 'AZURE_API_KEY'],
    accountVariables: [['AZURE_OPENAI_AD_TOKEN']],
    needs: [
      {
        setting: 'baseUrl',
        variables: ['AZURE_OPENAI_ENDPOINT'],
        example: 'https://NAME.openai.azure.com',
      },
    ],
    baseUrlVariable: 'AZURE_OPENAI_ENDPOINT',
    limits: [128_000, 16_384],
    telemetryName: 'azure.ai.openai',
    servesFamilies: true,
    profile: 'openai-chat',
    hints: [
      [
        /DeploymentNotFound|API deployment for this resource does not exist/,
        "A model is named by its deployment: use a deployment's name, or create one in the Azure portal.",
      ],
      [
        /^(\d+ )?Resource not found/,
        'Check the endpoint and the API version: AZURE_OPENAI_ENDPOINT is the address of the resource, without a path.',
      ],
    ],
  },
  bedrock: {
    type: 'bedrock',
    keyVariables: ['AWS_BEARER_TOKEN_BEDROCK'],
    accountVariables: [
      ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'],
      ['AWS_PROFILE'],
      ['AWS_ROLE_ARN', 'AWS_WEB_IDENTITY_TOKEN_FILE'],
      ['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'],
      ['AWS_CONTAINER_CREDENTIALS_FULL_URI'],
    ],
    findsCredentials: true,
    needs: [{ setting: 'region', variables: ['AWS_REGION', 'AWS_DEFAULT_REGION'], example: 'us-east-1' }],
    baseUrl: 'https://bedrock-runtime.{region}.amazonaws.com',
    baseUrlVariable: 'AWS_ENDPOINT_URL_BEDROCK_RUNTIME',
    limits: [128_000, 4096],
    telemetryName: 'aws.bedrock',
    profile: 'converse',
    hints: [
      [
        /on-demand throughput isn.t supported/,
        "Use the ID of an inference profile: the model's ID after us., eu., apac. or global.",
      ],
      [
        /model identifier is invalid|resolve the foundation model|model .*not (available|supported) in this region/i,
        "Check the model's ID, and whether the region (AWS_REGION) serves it.",
      ],
      [/access to the model/, 'Request access to the model in the Bedrock console of this region.'],
      [
        /load credentials from any providers|resolve AWS credentials|Token is expired|Could not resolve credentials/i,
        'Set AWS_BEARER_TOKEN_BEDROCK, AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.',
      ],
    ],
  },
  vertex: {
    type: 'vertex',
    keyVariables: ['GOOGLE_OAUTH_ACCESS_TOKEN', 'CLOUDSDK_AUTH_ACCESS_TOKEN'],
    accountVariables: [['GOOGLE_APPLICATION_CREDENTIALS']],
    findsCredentials: true,
    needs: [
      {
        setting: 'project',
        variables: ['GOOGLE_CLOUD_PROJECT', 'ANTHROPIC_VERTEX_PROJECT_ID'],
        example: 'my-project',
      },
    ],
    baseUrl: 'https://aiplatform.googleapis.com',
    baseUrlVariable: 'GOOGLE_VERTEX_BASE_URL',
    limits: [200_000, 32_000],
    telemetryName: 'gcp.vertex_ai',
    profile: 'gemini-3-strict',
    hints: [
      [
        /Publisher Model .* (was )?not found|is not servable in region/i,
        'Check the model and the location (GOOGLE_CLOUD_LOCATION; "global" serves most), and enable the model in the Model Garden.',
      ],
      [
        /load the default credentials|acquire Google OAuth credentials/,
        'Run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account.',
      ],
      [
        /Vertex AI API has not been used|aiplatform\.googleapis\.com.*disabled/,
        'Enable the Vertex AI API in the project.',
      ],
    ],
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
    quirks: { forcedWithout: 'thinking' },
  },
  moonshot: {
    type: 'openai-compatible',
    keyVariables: ['MOONSHOT_API_KEY'],
    baseUrl: 'https://api.moonshot.ai/v1',
    names: /^kimi-/,
    family: /kimi/,
    telemetryName: 'moonshot_ai',
    profile: 'kimi',
    quirks: { thinkingField: 'kimi' },
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
    quirks: { forcedWithout: 'enable_thinking' },
  },
  cohere: {
    type: 'openai-compatible',
    keyVariables: ['COHERE_API_KEY', 'CO_API_KEY'],
    baseUrl: 'https://api.cohere.ai/compatibility/v1',
    names: /^command-/,
    profile: 'cohere',
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
    profile: 'openrouter',
    servesFamilies: true,
    signedFamilies: GEMINI_3,
    quirks: {
      ...LOCAL,
      maxTokensField: 'max_tokens',
      reasoningField: 'reasoning',
      reasoningDetails: true,
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
} as const satisfies Readonly<Record<string, Row>>

const ROWS: readonly (readonly [name: string, row: Row])[] = Object.entries(VENDORS)

/** The row of a vendor's name, or `undefined`: names come from users. */
export function vendorRow(name: string): Row | undefined {
  return ROWS.find(([known]) => known === name)?.[1]
}

/** The names of the vendors whose row meets a condition, in the order of the table. */
export function vendorNames(condition: (row: Row) => boolean = () => true): string[] {
  return ROWS.flatMap(([name, row]) => (condition(row) ? [name] : []))
}

/** What a vendor's error means, where its own words do not say what to do. */
export function errorHint(words: string): string | undefined {
  for (const [, { hints = [] }] of ROWS) {
    const found = hints.find(([pattern]) => pattern.test(words))
    if (found) return found[1]
  }
  return undefined
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
