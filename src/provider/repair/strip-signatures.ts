/** Signatures are valid where they were made. */
import { isEitherBase64 } from '../../base/base64.js'
import { isRecord } from '../../base/is-record.js'
import { DUMMY_SIGNATURE } from '../../base/markers.js'
import type { ProviderPart, Sealed, ToolResultPart } from '../provider.js'
import { openFields } from '../sealed-fields.js'
import { isOwnOrigin } from './own-origin.js'
import {
  type Entry,
  orNothing,
  replaceAllParts,
  replaceEntries,
  replaceParts,
  type StepContext,
} from './receipt.js'

/**
 * Takes the signatures of other vendors and accounts off calls, text and media. Own signatures are never touched. Gemini ends an
 * answer with an empty text that is there for its signature alone: where it would be refused it goes as a whole.
 */
export function stripSignatures(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { profile, report, memo } = context
  if (!memo.hasVendors) return entries
  return replaceAllParts(
    entries,
    part => strip(part, context),
    entry => {
      const detail = `Signatures that this account of ${profile.vendor} did not make or cannot read were left out.`
      report({ step: 'strip-signatures', kind: 'leave-out', at: entry.at, detail })
      return orNothing(entry)
    },
  )
}

function strip(part: ProviderPart, context: StepContext): ProviderPart | undefined {
  const { signatures, dropText } = context.profile
  if (part.type === 'reasoning') {
    if (part.signature === undefined) return part
    // Without an origin it is Gemini's or anybody's, and other steps decide.
    const isElsewhere = part.origin !== undefined && !isOwnOrigin(part.origin, context)
    const unreadable = signatures !== 'ignored' && !isSignature(part.signature)
    return isElsewhere || unreadable ? unsigned(part) : part
  }
  if (part.type === 'text' && part.text === '' && dropText !== 'never' && isForeign(part, context))
    return undefined
  // Where the wire has no field for signatures there is nothing to take off.
  if (signatures === 'ignored') return part
  if (part.type !== 'tool-result') return isForeign(part, context) ? unsigned(part) : part
  if (!part.media?.some(media => isForeign(media, context))) return part
  return { ...part, media: part.media.map(media => (isForeign(media, context) ? unsigned(media) : media)) }
}

type Signed = Exclude<ProviderPart, ToolResultPart>

function isForeign(part: Signed, context: StepContext): boolean {
  if (part.signature === undefined) return false
  // Without an origin a signature is Gemini's: only Gemini's are stored bare.
  if (!isOwnOrigin(part.origin ?? { vendor: 'gemini' }, context) || !isSignature(part.signature)) return true
  if (!context.profile.signsInFields || part.signature === DUMMY_SIGNATURE) return false
  return !holdsThoughtSignature(openFields(part.signature))
}

/** Google's endpoint looks for it under the name of its platform. Fields without it sign nothing. */
function holdsThoughtSignature(fields: unknown): boolean {
  const platform = isRecord(fields) ? (fields.google ?? fields.vertex) : undefined
  return (
    isRecord(platform) && typeof platform.thought_signature === 'string' && platform.thought_signature !== ''
  )
}

/** Whether a text can be a signature at all: every vendor's is base64, of either alphabet. */
export function isSignature(text: string | undefined): boolean {
  return text !== undefined && text !== '' && isEitherBase64(text)
}

function unsigned<Part extends Signed>(part: Part): Part {
  const { signature: _signature, sealRefused: _refused, ...rest } = part
  return rest as Part
}

/**
 * Takes away what the provider has refused to read: the words go without the seal, reasoning that is nothing without it is
 * left out, and a part that only the vendor understands becomes text.
 */
export function dropRefused(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  if (!context.memo.hasVendors) return entries
  return replaceEntries(entries, entry => {
    let words: string | undefined
    const unsealed = replaceParts(entry, part => {
      const refused = refusalOf(part)
      words ??= refused
      return refused === undefined ? part : withoutSeal(part, context)
    })
    if (unsealed === entry) return entry
    const detail = `A signature or sealed reasoning was left out, because the provider refused it (“${words}”).`
    context.report({ step: 'drop-refused', kind: 'refused-by-provider', at: entry.at, detail })
    return orNothing(unsealed)
  })
}

function refusalOf(part: ProviderPart): string | undefined {
  if (part.type !== 'tool-result') return part.sealRefused
  return part.media?.find(isRefused)?.sealRefused
}

function isRefused({ sealRefused }: Sealed): boolean {
  return sealRefused !== undefined
}

function withoutSeal(part: ProviderPart, { profile }: StepContext): ProviderPart | undefined {
  switch (part.type) {
    case 'tool-result':
      return {
        ...part,
        media: (part.media ?? []).map(media => (media.sealRefused ? unsigned(media) : media)),
      }
    case 'reasoning':
      return profile.reasoning.keep === 'own-signed' ? undefined : unsigned(part)
    case 'vendor':
      return part.text.trim() === '' ? undefined : { type: 'text', text: part.text }
    default:
      return unsigned(part)
  }
}
