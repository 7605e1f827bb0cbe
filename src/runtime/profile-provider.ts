/** How a provider is made that speaks the wire of a profile. */
import type { ProviderOptions } from '../provider/provider-settings.js'
import type { ProviderType } from '../provider/vendors.js'
import { PROFILE_FACTS, type ProfileFacts, type StrictProfile } from '../testing/strict/profile.js'

const TYPES: Readonly<Record<ProfileFacts['family'], ProviderType>> = {
  gemini: 'gemini',
  anthropic: 'anthropic',
  'openai-chat': 'openai-compatible',
  'openai-responses': 'openai',
  converse: 'bedrock',
}

/** The options of a provider with the rules and the wire of a profile. */
export function profileProvider(profile: StrictProfile, baseUrl: string): ProviderOptions {
  const { family } = PROFILE_FACTS[profile]
  return {
    type: TYPES[family],
    apiKey: 'none-needed',
    baseUrl,
    profile,
    ...(family === 'openai-chat' ? { api: 'chat' as const } : {}),
    ...(family === 'converse' ? { region: 'us-east-1' } : {}),
  }
}
