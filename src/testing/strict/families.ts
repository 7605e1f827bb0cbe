import { anthropicFamily } from './anthropic/anthropic-family.js'
import type { Family } from './family.js'
import { geminiFamily } from './gemini/gemini-family.js'
import { openaiChatFamily } from './openai-chat/openai-chat-family.js'
import { openaiResponsesFamily } from './openai-responses/openai-responses-family.js'
import { PROFILE_FACTS, type StrictProfile } from './profile.js'

const FAMILIES: Readonly<Record<'gemini' | 'openai-chat' | 'openai-responses' | 'anthropic', Family>> = {
  gemini: geminiFamily,
  'openai-chat': openaiChatFamily,
  'openai-responses': openaiResponsesFamily,
  anthropic: anthropicFamily,
}

/** The wire format of a profile. */
export function familyOf(profile: StrictProfile): Family {
  return FAMILIES[PROFILE_FACTS[profile].family]
}
