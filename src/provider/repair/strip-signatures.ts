/** Signatures are valid where they were made. */
import type { ProviderPart, ToolResultPart } from '../provider.js'
import type { Profile } from './profile.js'
import { type Entry, orNothing, replaceAllParts, type StepContext } from './receipt.js'

/**
 * Takes other vendors' signatures off calls, text and media. Own signatures are never touched. Gemini ends an
 * answer with an empty text that is there for its signature alone: where it would be refused it goes as a whole.
 */
export function stripSignatures(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { profile, report } = context
  return replaceAllParts(
    entries,
    part => strip(part, profile),
    entry => {
      const detail = `Signatures that ${profile.vendor} did not make or cannot read were left out.`
      report({ step: 'strip-signatures', kind: 'leave-out', at: entry.at, detail })
      return orNothing(entry)
    },
  )
}

function strip(part: ProviderPart, { vendor, signatures, dropText }: Profile): ProviderPart | undefined {
  if (part.type === 'reasoning') {
    const unreadable = part.signature !== undefined && !isSignature(part.signature)
    return unreadable && signatures !== 'ignored' ? unsigned(part) : part
  }
  if (part.type === 'text' && part.text === '' && dropText !== 'never' && isForeign(part, vendor))
    return undefined
  // Where the wire has no field for signatures there is nothing to take off.
  if (signatures === 'ignored') return part
  if (part.type !== 'tool-result') return isForeign(part, vendor) ? unsigned(part) : part
  if (!part.media?.some(media => isForeign(media, vendor))) return part
  return { ...part, media: part.media.map(media => (isForeign(media, vendor) ? unsigned(media) : media)) }
}

type Signed = Exclude<ProviderPart, ToolResultPart>

function isForeign(part: Signed, vendor: string): boolean {
  if (part.signature === undefined) return false
  // Without an origin a signature is Gemini's: only Gemini's are stored bare.
  return (part.origin?.vendor ?? 'gemini') !== vendor || !isSignature(part.signature)
}

/** Whether a text can be a signature at all: every vendor's is base64, of either alphabet. */
export function isSignature(text: string | undefined): boolean {
  return text !== undefined && /^[A-Za-z0-9+/_-]+={0,2}$/.test(text)
}

function unsigned<Part extends Signed>(part: Part): Part {
  const { signature: _, ...rest } = part
  return rest as Part
}
