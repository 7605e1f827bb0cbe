import type { ProviderMessage } from '../provider.js'
import type { Profile } from '../repair/profile.js'
import { type RepairedHistory, repairHistory } from '../repair/repair-history.js'

/**
 * Makes a history one that Gemini accepts: the repair pipeline with a Gemini profile. Orphaned responses are
 * dropped, neighbouring turns of one role merged, a user turn put first, calls paired with responses.
 *
 * ```ts
 * import { sanitize } from 'lango/provider'
 *
 * const { messages, repairs } = sanitize([{ role: 'user', parts: [{ type: 'text', text: 'Hello' }] }], 'gemini-3')
 * ```
 *
 * @spec sanitizeContents
 */
export function sanitize(
  messages: readonly ProviderMessage[],
  profile: string | Profile = 'gemini-2',
): RepairedHistory {
  return repairHistory(messages, profile)
}
