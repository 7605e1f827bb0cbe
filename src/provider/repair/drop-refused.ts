/**
 * What a provider has refused to read of what is sealed: the words go without the seal, reasoning that is nothing without it
 * is left out, and a part that only the vendor understands becomes text. The stored messages keep it for its origin.
 */
import type { ProviderPart, Sealed } from '../provider.js'
import { type Entry, orNothing, replaceEntries, replaceParts, type StepContext } from './receipt.js'

/** Takes away the seals that the provider has refused. */
export function dropRefused(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  // Nearly always there is nothing to do.
  if (!entries.some(holdsRefused)) return entries
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

function holdsRefused({ message }: Entry): boolean {
  for (const part of message.parts) if (refusalOf(part) !== undefined) return true
  return false
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
        media: (part.media ?? []).map(media => (media.sealRefused ? unsealed(media) : media)),
      }
    case 'reasoning':
      return profile.reasoning.keep === 'own-signed' ? undefined : unsealed(part)
    case 'vendor':
      return part.text.trim() === '' ? undefined : { type: 'text', text: part.text }
    default:
      return unsealed(part)
  }
}

function unsealed<Part extends Sealed>(part: Part): Part {
  const { signature: _signature, sealRefused: _refused, ...rest } = part
  return rest as Part
}
