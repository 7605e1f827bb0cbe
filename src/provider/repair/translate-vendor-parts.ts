/** Code execution, server tools and the like mean something to their vendor only: others get text. */
import { type Entry, orNothing, type ReplacePart, replaceAllParts, type StepContext } from './receipt.js'

/** Turns parts that only another vendor understands into text. */
export function translateVendorParts(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { profile, report } = context
  const translate: ReplacePart = (part, _, entry) => {
    if (part.type !== 'vendor' || (profile.vendorParts && part.vendor === profile.vendor)) return part
    const silent = part.text.trim() === ''
    const detail = `A part that only ${part.vendor} understands was ${silent ? 'left out' : 'sent as text'}.`
    const kind = silent ? 'leave-out' : 'translate'
    report({ step: 'translate-vendor-parts', kind, at: entry.at, detail })
    return silent ? undefined : { type: 'text', text: part.text }
  }
  return replaceAllParts(entries, translate, orNothing)
}
