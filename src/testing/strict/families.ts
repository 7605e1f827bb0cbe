import { anthropicFamily } from './anthropic/anthropic-family.js'
import { converseFamily } from './converse/converse-family.js'
import type { Family } from './family.js'
import { geminiFamily } from './gemini/gemini-family.js'
import { openaiChatFamily } from './openai-chat/openai-chat-family.js'
import { openaiResponsesFamily } from './openai-responses/openai-responses-family.js'
import { onPlatform } from './platforms.js'
import { PROFILE_FACTS, type ProfileFacts, type StrictPlatform, type StrictProfile } from './profile.js'

const FAMILIES: Readonly<Record<ProfileFacts['family'], Family>> = {
  gemini: geminiFamily,
  'openai-chat': openaiChatFamily,
  'openai-responses': openaiResponsesFamily,
  anthropic: anthropicFamily,
  converse: converseFamily,
}

/** The wire format of a profile, as its vendor or as a platform serves it. */
export function familyOf(profile: StrictProfile, platform?: StrictPlatform): Family {
  const family = FAMILIES[PROFILE_FACTS[profile].family]
  return platform === undefined ? family : onPlatform(family, profile, platform)
}
