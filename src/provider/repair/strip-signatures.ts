/** Signatures are valid where they were made. Profiles without a field for them need no change. */
import type { ProviderPart, ToolResultPart } from '../provider.js'
import { type Entry, replaceEntries, replaceParts, type StepContext } from './receipt.js'

/** Takes other vendors' signatures off calls, text and media. Own signatures are never touched. */
export function stripSignatures(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { profile, report } = context
  if (profile.signatures === 'ignored') return entries
  return replaceEntries(entries, entry => {
    const stripped = replaceParts(entry, part => strip(part, profile.vendor))
    if (stripped !== entry) {
      const detail = `Signatures that ${profile.vendor} did not make were left out.`
      report({ step: 'strip-signatures', kind: 'leave-out', at: entry.at, detail })
    }
    return stripped
  })
}

function strip(part: ProviderPart, vendor: string): ProviderPart {
  if (part.type === 'reasoning') return part
  if (part.type !== 'tool-result') return isForeign(part, vendor) ? unsigned(part) : part
  if (!part.media?.some(media => isForeign(media, vendor))) return part
  return { ...part, media: part.media.map(media => (isForeign(media, vendor) ? unsigned(media) : media)) }
}

type Signed = Exclude<ProviderPart, ToolResultPart>

function isForeign(part: Signed, vendor: string): boolean {
  // Without an origin a signature is Gemini's: only Gemini's are stored bare.
  return part.signature !== undefined && (part.origin?.vendor ?? 'gemini') !== vendor
}

function unsigned<Part extends Signed>(part: Part): Part {
  const { signature: _, ...rest } = part
  return rest as Part
}
