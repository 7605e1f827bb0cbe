/**
 * Gemini 3 demands its signature on the first call of each step of the current turn, the turn being what
 * follows the last user message that is not a result. Calls that another model made, or that lost theirs,
 * get the value that Google documents for this case; real signatures are never touched.
 */
import type { ProviderPart } from '../provider.js'
import {
  type Entry,
  hasResults,
  replaceEntries,
  replaceParts,
  type StepContext,
  toolLabel,
} from './receipt.js'

/** Google's documented stand-in for a signature that does not exist. */
export const DUMMY_SIGNATURE = 'skip_thought_signature_validator'

/** Signs the first call of each step of the current turn where the signature is missing. */
export function signCalls(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { profile, next, report } = context
  if (profile.signatures !== 'required' || next === 'user') return entries
  const turn = entries.findLastIndex(entry => entry.message.role === 'user' && !hasResults(entry))
  return replaceEntries(entries, (entry, index) => {
    if (index < turn || entry.message.role !== 'assistant') return entry
    const first = entry.message.parts.findIndex(isCall)
    if (first === -1) return entry
    return replaceParts(entry, (part, place) => {
      if (place !== first || part.type !== 'tool-call' || part.signature) return part
      const detail = `The call of ${toolLabel(part)} had no signature and got the documented stand-in.`
      report({ step: 'sign-calls', kind: 'stand-in', at: entry.at, detail })
      return { ...part, signature: DUMMY_SIGNATURE, origin: { vendor: profile.vendor } }
    })
  })
}

function isCall(part: ProviderPart): boolean {
  return part.type === 'tool-call'
}
