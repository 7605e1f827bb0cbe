/**
 * Reasoning is proof of a model's own thinking: sent to another vendor it is refused or misread. It is left
 * out of the request only; the stored history keeps it, so a return to its maker finds it unchanged.
 */
import type { ReasoningPart } from '../provider.js'
import { openDetails } from '../sealed-fields.js'
import { isOwnOrigin } from './own-origin.js'
import { type Entry, orNothing, type ReplacePart, replaceAllParts, type StepContext } from './receipt.js'
import { isSignature } from './strip-signatures.js'

const STEP = 'drop-foreign-reasoning'

/** Leaves out reasoning that the profile's model did not make, cannot verify, or that is bound to another prefix. */
export function dropForeignReasoning(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { profile, report, memo } = context
  if (!memo.hasVendors) return entries
  const keep: ReplacePart = part => (part.type !== 'reasoning' || isWelcome(part, context) ? part : undefined)
  const own = replaceAllParts(entries, keep, entry => {
    const detail = `Reasoning that ${profile.vendor} cannot take back was left out of the request.`
    report({ step: STEP, kind: 'leave-out', at: entry.at, detail })
    return orNothing(entry)
  })
  if (!profile.reasoning.bound) return own
  const bound: ReplacePart = part => (part.type === 'reasoning' && part.prefixBroken ? undefined : part)
  return replaceAllParts(own, bound, entry => {
    const detail = 'Reasoning that is bound to an earlier form of the history was left out of the request.'
    report({ step: STEP, kind: 'prefix-broken', at: entry.at, detail })
    return orNothing(entry)
  })
}

function isWelcome(part: ReasoningPart, context: StepContext): boolean {
  const { reasoning, vendor } = context.profile
  if (reasoning.keep === 'none') return false
  const signed = part.signature !== undefined && part.signature !== ''
  if (signed && reasoning.keep === 'own-signed' && !isSignature(part.signature)) return false
  if (isCutOff(part, context)) return false
  if (part.origin !== undefined) {
    if (reasoning.keep === 'own') return part.origin.vendor === vendor
    return signed && isOwnOrigin(part.origin, context)
  }
  // A signature without an origin is Gemini's: only Gemini's are stored bare. Bare text may be anyone's.
  return reasoning.keep === 'own' && (!signed || vendor === 'gemini')
}

/**
 * Claude's thoughts that came through a gateway without their signature, because the answer ended first: Claude refuses
 * them, and other makers sign nothing. A model that is not known may be Claude.
 */
function isCutOff({ signature }: ReasoningPart, { profile, model = CLAUDE }: StepContext): boolean {
  if (!profile.byMaker || profile.signatures === 'required' || !model.startsWith(CLAUDE)) return false
  return openDetails(signature).some(detail => detail.type === 'reasoning.text' && !detail.signature)
}

const CLAUDE = 'anthropic/'
