/** What a row of the table of vendors can say; `vendors.ts` is the table. */
import type { ProfileName } from './repair/profile.js'

/** A row. `Type` is the class of its provider. */
export interface VendorRow<Type extends string = string> {
  readonly type: Type
  /** The variables that may hold the key; messages name the first. Absent: no key is needed. */
  readonly keyVariables?: readonly string[]
  /** Variables that stand for a key, each list as a whole: an account with its secret, a profile. */
  readonly accountVariables?: readonly (readonly string[])[]
  /** Without any of them the SDK looks for credentials of the machine: a login, a role. Whether it finds some is not known. */
  readonly findsCredentials?: true
  /** What a request needs besides the key. */
  readonly needs?: readonly Need[]
  /** `{name}` is replaced by what the row needs under this name. */
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
  /** Of these models the server sends and wants back fields of its own, so its own profile comes before their family's. */
  readonly signedFamilies?: RegExp
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
  /** What to do about errors of the vendor whose words do not say it. */
  readonly hints?: readonly (readonly [words: RegExp, hint: string])[]
  /** The repair profile. For vendors with several generations, the strictest; the model's name refines it. */
  readonly profile: ProfileName
  /** For `openai-compatible`: fields that differ from those of the profile. */
  readonly quirks?: Partial<ChatQuirks>
}

/** A setting of a provider without which no request can be sent, and the variables that it may be in instead. */
export interface Need {
  readonly setting: 'baseUrl' | 'region' | 'project'
  readonly variables: readonly string[]
  readonly example: string
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
  /** Reasoning travels in `reasoning_details`, signed and complete. */
  reasoningDetails?: boolean
  /** Signatures travel in `extra_content` of calls and messages. */
  extraContent?: boolean
  /** Whether `stream_options.include_usage` is understood; the others always send usage. */
  asksForUsage: boolean
  seedField: 'seed' | 'random_seed'
  /** The server's value for "a tool must be called". */
  requiredToolChoice: 'required' | 'any'
  /** `json_object` servers get the schema as text. */
  responseFormat: 'json_schema' | 'json_object'
  /** The field that asks for thinking, if any. `kimi`: it depends on the model, and so does what else can be asked for. */
  thinkingField?: 'reasoning_effort' | 'reasoning' | 'thinking' | 'kimi'
  /** A model that thinks cannot be forced to call a tool: this field switches thinking off in such a request. */
  forcedWithout?: 'thinking' | 'enable_thinking'
  takesTopK: boolean
  takesSeed: boolean
  takesPenalties: boolean
  takesLogprobs: boolean
  takesServiceTier: boolean
  /** Whether the server can be asked to call one of several tools. */
  takesAllowedTools: boolean
}

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>

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
export function vendorAddress(
  row: VendorRow,
  env: Environment,
  settings: NeededSettings = {},
): string | undefined {
  const url = readVariable(env, [row.baseUrlVariable])
  const host = readVariable(env, [row.hostVariable])
  if (url !== undefined || row.baseUrl === undefined) return url
  if (host !== undefined) return hostToUrl(host, row.baseUrl)
  if (missingNeed(row, env, settings)) return undefined
  return row.baseUrl.replace(
    /\{(\w+)\}/g,
    (_, name: Need['setting']) => neededValue(row, name, env, settings) ?? '',
  )
}

/** The settings that a row may need. */
export type NeededSettings = { readonly [Setting in Need['setting']]?: string | undefined }

/** The first thing that a row needs and that neither the settings nor the environment have. */
export function missingNeed(
  row: VendorRow,
  env: Environment,
  settings: NeededSettings = {},
): Need | undefined {
  return row.needs?.find(({ setting }) => neededValue(row, setting, env, settings) === undefined)
}

/** A setting that a row needs, from the settings or from its variables. */
export function neededValue(
  row: VendorRow | undefined,
  setting: Need['setting'],
  env: Environment,
  settings: NeededSettings,
): string | undefined {
  const { variables = [] } = row?.needs?.find(need => need.setting === setting) ?? {}
  return settings[setting] ?? readVariable(env, variables)
}

/** The variable that holds a vendor's key, or the first of those that stand for one. */
export function keyVariableIn(row: VendorRow, env: Environment): string | undefined {
  const isSet = (name: string) => readVariable(env, [name]) !== undefined
  const account = row.accountVariables?.find(names => names.every(isSet))
  return row.keyVariables?.find(isSet) ?? account?.[0]
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
