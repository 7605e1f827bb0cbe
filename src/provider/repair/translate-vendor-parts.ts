/** Code execution, server tools and the like mean something to their maker only: others are told in words. */
import type { ProviderPart } from '../provider.js'
import { type Entry, replaceEntries, replaceParts, type StepContext } from './receipt.js'

/** Turns parts that only another vendor understands into text. */
export function translateVendorParts(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { profile, report } = context
  return replaceEntries(entries, entry =>
    replaceParts(entry, (part): ProviderPart | undefined => {
      if (part.type !== 'vendor' || (profile.vendorParts && part.vendor === profile.vendor)) return part
      const silent = part.text.trim() === ''
      const detail = silent
        ? `A part that only ${part.vendor} understands was left out.`
        : `A part that only ${part.vendor} understands was sent as text.`
      const kind = silent ? 'leave-out' : 'translate'
      report({ step: 'translate-vendor-parts', kind, at: entry.at, detail })
      return silent ? undefined : { type: 'text', text: part.text }
    }),
  )
}
