/** A provider's options as a user writes them, and as the providers read them. */

import { defined } from '../base/defined.js'
import { isRecord } from '../base/is-record.js'
import { AgentError, checkArgument } from '../errors.js'
import type { ModelOverride } from './model-catalog.js'
import { type Profile, resolveProfile } from './repair/profile.js'
import { DEFAULT_RETRY, type RetryPolicy } from './retry.js'
import { PROVIDER_TYPES, type ProviderType } from './vendors.js'

/** Keys whose value is undefined count as absent. */
export interface ProviderOptions {
  type: ProviderType
  /** The name before the slash in `openai/gpt-5.2`. Default: the preset, or the type. */
  id?: string | undefined
  /** Default: the vendor's usual variable, read when a request is made. */
  apiKey?: string | undefined
  /**
   * A name for the account that requests are made with. What a model has sealed (signatures, encrypted reasoning) is sent
   * back to the same account only; with a name it stays the same account when the key changes, and entries that name the
   * same account share it. Default: accounts differ when their keys differ, or on a platform their resource, region or project.
   */
  account?: string | undefined
  /** What the vendor's own SDK takes as its base URL. */
  baseUrl?: string | undefined
  /** For `openai` and `azure`. Default: Responses for OpenAI's own models and Chat Completions for the rest. */
  api?: 'chat' | 'responses' | undefined
  /** The repair profile, instead of the one that the model's name implies. */
  profile?: string | Profile | undefined
  /** For `openai-compatible`: a server known by name, such as `ollama` or `groq`. */
  preset?: string | undefined
  /** Sent with every request. */
  headers?: Readonly<Record<string, string>> | undefined
  /** Corrections to the model catalogue, by model name. */
  models?: Readonly<Record<string, ModelOverride>> | undefined
  retry?: Partial<RetryPolicy> | undefined
  /** How long the provider may send nothing. Default 600,000. */
  idleTimeoutMs?: number | undefined
  /** For `gemini`: use Vertex AI. Default: GOOGLE_GENAI_USE_VERTEXAI. */
  vertexai?: boolean | undefined
  /** For Vertex AI. Default: GOOGLE_CLOUD_PROJECT. */
  project?: string | undefined
  /** For Vertex AI. Default: GOOGLE_CLOUD_LOCATION. */
  location?: string | undefined
  /** For `bedrock`. Default: AWS_REGION. */
  region?: string | undefined
  /** For `azure`: a dated version of the API. Default: OPENAI_API_VERSION, or the v1 API, which has no versions. */
  apiVersion?: string | undefined
  /** For `azure`: the models behind deployments that are not named like their models. */
  deployments?: Readonly<Record<string, string>> | undefined
  /** Where variables are looked up. Default `process.env`. */
  env?: Readonly<Record<string, string | undefined>> | undefined
}

export interface ProviderSettings {
  id: string
  type: ProviderType
  apiKey?: string
  account?: string
  baseUrl?: string
  api?: 'chat' | 'responses'
  profile?: Profile
  preset?: string
  headers: Readonly<Record<string, string>>
  models: Readonly<Record<string, ModelOverride>>
  retry: RetryPolicy
  idleTimeoutMs: number
  vertexai?: boolean
  project?: string
  location?: string
  region?: string
  apiVersion?: string
  deployments?: Readonly<Record<string, string>>
  env: Readonly<Record<string, string | undefined>>
}

/** Checks options and fills in what was left out. Variables are not read yet. */
export function readSettings(options: ProviderOptions): ProviderSettings {
  checkArgument(isRecord(options), 'createProvider', 'needs an object of options, such as { type: "openai" }')
  const given = defined(options)
  if (!PROVIDER_TYPES.includes(given.type)) {
    throw new AgentError(
      'invalid-config',
      `There is no provider type "${String(given.type)}". Use one of: ${PROVIDER_TYPES.join(', ')}.`,
    )
  }
  if (given.baseUrl !== undefined && !URL.canParse(given.baseUrl)) {
    throw new AgentError('invalid-config', `The provider's baseUrl is not a URL: "${given.baseUrl}".`)
  }
  if (given.baseUrl !== undefined && hasCredentials(given.baseUrl)) {
    throw new AgentError(
      'invalid-config',
      "The provider's baseUrl contains a user name or a password, which cannot be sent. Remove them from the URL and " +
        'set `headers.authorization` instead.',
    )
  }
  return {
    ...given,
    ...defined({ profile: given.profile && resolveProfile(given.profile) }),
    id: given.id ?? given.preset ?? given.type,
    headers: given.headers ?? {},
    models: given.models ?? {},
    retry: { ...DEFAULT_RETRY, ...defined(given.retry ?? {}) },
    idleTimeoutMs: given.idleTimeoutMs ?? 600_000,
    env: given.env ?? process.env,
  } as ProviderSettings
}

/** `fetch` refuses such a URL at the first request, with a message that quotes it. */
function hasCredentials(baseUrl: string): boolean {
  const { username, password } = new URL(baseUrl)
  return username !== '' || password !== ''
}
