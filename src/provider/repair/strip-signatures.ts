/** Signatures are valid where they were made. Profiles without a field for them need no change. */
import type { ProviderPart } from '../provider.js'
import { type Entry, replaceEntries, replaceParts, type StepContext } from './receipt.js'

/** Takes other vendors' signatures off calls, text and media. Own signatures are never touched. */
export function stripSignatures(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { profile, report } = context
  if (profile.signatures === 'ignored') return entries
  return replaceEntries(entries, entry => {
    const stripped = replaceParts(entry, part => (isForeign(part, profile.vendor) ? unsigned(part) : part))
    if (stripped !== entry) {
      const detail = `Signatures that ${profile.vendor} did not make were left out.`
      report({ step: 'strip-signatures', kind: 'leave-out', at: entry.at, detail })
    }
    return stripped
  })
}

function isForeign(part: ProviderPart, vendor: string): boolean {
  if (part.type === 'tool-result' || part.type === 'reasoning') return false
  // Without an origin a signature is Gemini's: only Gemini's are stored bare.
  return part.signature !== undefined && (part.origin?.vendor ?? 'gemini') !== vendor
}

function unsigned(part: ProviderPart): ProviderPart {
  const { signature: _, ...rest } = part as ProviderPart & { signature?: string }
  return rest as ProviderPart
}
