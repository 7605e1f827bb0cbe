/**
 * Most histories hold texts, calls and results alone: one look at them spares the steps for everything else.
 */
import type { ProviderPart } from '../provider.js'
import type { Entry, StepContext } from './receipt.js'

/** Notes whether there are media, and whether there is anything that is sealed or means something to its vendor only. */
export function surveyParts(entries: readonly Entry[], { memo }: StepContext): readonly Entry[] {
  for (const { message } of entries) {
    for (const part of message.parts) {
      if (holdsMedia(part)) memo.hasMedia = true
      if (isVendors(part)) memo.hasVendors = true
    }
  }
  return entries
}

export function holdsMedia(part: ProviderPart): boolean {
  return part.type === 'media' || (part.type === 'tool-result' && Boolean(part.media?.length))
}

function isVendors(part: ProviderPart): boolean {
  switch (part.type) {
    case 'reasoning':
    case 'vendor':
      return true
    case 'tool-result':
      return part.media?.some(isVendors) ?? false
    case 'text':
    case 'tool-call':
    case 'media':
      return part.signature !== undefined
  }
}
