/**
 * Claude on other people's servers. The body is Anthropic's, with these differences:
 *
 * - the version of the API is named in it, by the platform's own name for models up to 4.6 and for sampling settings,
 *   which newer versions refuse;
 * - it holds no tier of service, and of the tools that Anthropic runs only those that the platform has.
 */
import type { BaseAnthropic, ClientOptions } from '@anthropic-ai/sdk/client'
import { defined } from '../../base/defined.js'
import { loadOptional } from '../../packages.js'
import { googleAccount, tokenClient } from '../google-account.js'
import type { ProviderSettings } from '../provider-settings.js'
import { claudeVersion } from '../repair/profile-for-model.js'
import type { Abilities } from '../request-options.js'
import { neededValue, readVariable, type VendorRow } from '../vendor-row.js'
import { WEB_SEARCH } from './anthropic-tools.js'
import type { AnthropicRequestWire } from './to-anthropic-request.js'

export interface ClaudePlatform {
  /** What of Anthropic's own abilities the platform has. */
  abilities(all: Abilities): Abilities
  body(content: AnthropicRequestWire): object
}

export const PLATFORMS: Readonly<Record<string, ClaudePlatform>> = {
  bedrock: claudePlatform('bedrock-2023-05-31', []),
  vertex: claudePlatform('vertex-2023-10-16', WEB_SEARCH),
}

function claudePlatform(oldVersion: string, serverTools: readonly string[]): ClaudePlatform {
  return {
    abilities: all => ({
      ...all,
      option: name => (name === 'serviceTier' ? 'dropped' : all.option(name)),
      hasServerTool: name => serverTools.includes(name) && all.hasServerTool(name),
    }),
    body: ({ service_tier: _tier, ...content }) => ({
      ...content,
      ...(needsOldVersion(content) ? { anthropic_version: oldVersion } : {}),
    }),
  }
}

/** Models of the platforms' earlier days do not know the version of October 2026. */
function needsOldVersion(content: AnthropicRequestWire): boolean {
  const samples =
    content.temperature !== undefined || content.top_p !== undefined || content.top_k !== undefined
  return samples || (claudeVersion(content.model) ?? FIRST_OF_NEW) < FIRST_OF_NEW
}

const FIRST_OF_NEW = 407

interface Target {
  apiKey: string | undefined
  baseURL: string | undefined
  settings: ProviderSettings
  row: VendorRow | undefined
}

type CommonOptions = Pick<ClientOptions, 'maxRetries' | 'timeout' | 'defaultHeaders' | 'logLevel' | 'fetch'>

/** A client for Bedrock: with its key, with the account of the environment, or with what AWS's library finds. */
export async function bedrockClient(
  { apiKey, baseURL, settings, row }: Target,
  common: CommonOptions,
): Promise<BaseAnthropic> {
  const { AnthropicBedrock } = await loadOptional('bedrock-claude', () => import('@anthropic-ai/bedrock-sdk'))
  const { env } = settings
  const awsRegion = neededValue(row, 'region', env, settings)
  const [awsAccessKey, awsSecretKey, awsSessionToken] = [
    'AWS_ACCESS_KEY_ID',
    'AWS_SECRET_ACCESS_KEY',
    'AWS_SESSION_TOKEN',
  ].map(name => readVariable(env, [name]))
  const account =
    awsAccessKey === undefined || awsSecretKey === undefined
      ? {}
      : { awsAccessKey, awsSecretKey, ...defined({ awsSessionToken }) }
  // `null`: the key of another environment is not looked for.
  return new AnthropicBedrock({
    ...common,
    apiKey: apiKey ?? null,
    ...account,
    ...defined({ awsRegion, baseURL }),
  })
}

/** A client for Vertex AI: with a token, or with what Google's library finds. */
export async function vertexClient(
  { apiKey, baseURL, settings, row }: Target,
  common: CommonOptions,
): Promise<BaseAnthropic> {
  const { AnthropicVertex } = await loadOptional('vertex-claude', () => import('@anthropic-ai/vertex-sdk'))
  const { project: projectId, location: region } = googleAccount(settings, row)
  return new AnthropicVertex({
    ...common,
    ...defined({ projectId, region }),
    // The address of Gemini on the platform, and there the version of the API that has Claude.
    ...(baseURL === undefined ? {} : { baseURL: `${baseURL.replace(/\/+$/, '')}/v1` }),
    ...(apiKey === undefined ? {} : { authClient: tokenClient(apiKey) }),
  })
}
