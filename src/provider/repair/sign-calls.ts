/**
 * Gemini 3 demands its signature on the first call of each step of the current turn. Calls that another model made,
 * or that lost theirs, get the value that Google documents for this case; real signatures are never touched. Calls of
 * earlier turns get it too: a stand-in that vanished with the next question would change what was sent before, and
 * with it every cached prefix.
 */
import { DUMMY_SIGNATURE } from '../../base/markers.js'
import type { ProviderPart, ToolCallPart } from '../provider.js'
import { openDetails } from '../sealed-fields.js'
import { type Entry, replaceEntries, replaceParts, type StepContext, toolLabel } from './receipt.js'

/** Signs the first call of each step where the signature is missing. */
export function signCalls(entries: readonly Entry[], { profile, report }: StepContext): readonly Entry[] {
  if (profile.signatures !== 'required') return entries
  return replaceEntries(entries, entry => {
    if (entry.message.role !== 'assistant') return entry
    const first = entry.message.parts.findIndex(isCall)
    if (first === -1 || (profile.byMaker && isSealed(entry, first))) return entry
    return replaceParts(entry, (part, place) => {
      if (place !== first || part.type !== 'tool-call' || part.signature) return part
      const detail = `The call of ${toolLabel(part)} had no signature and got the documented stand-in.`
      report({ step: 'sign-calls', kind: 'stand-in', at: entry.at, detail })
      return { ...part, signature: DUMMY_SIGNATURE, origin: { vendor: profile.vendor } }
    })
  })
}

/** Whether a gateway's seal of the answer holds the signature of its first call. */
function isSealed({ message: { parts } }: Entry, first: number): boolean {
  const call = parts[first] as ToolCallPart
  return parts.some(
    part => part.type === 'reasoning' && openDetails(part.signature).some(({ id }) => id === call.id),
  )
}

function isCall(part: ProviderPart): boolean {
  return part.type === 'tool-call'
}
