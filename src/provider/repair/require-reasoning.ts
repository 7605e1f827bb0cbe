/** Some servers require reasoning with every call, even a stand-in; other vendors' calls have none. */
import type { ProviderPart } from '../provider.js'
import { type Entry, hasCalls, replaceEntries, type StepContext, withParts } from './receipt.js'

/** Adds stand-in reasoning to messages with calls that have none. */
export function requireReasoning(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { profile, report } = context
  const { requiredWithCalls, standIn = '' } = profile.reasoning
  if (!requiredWithCalls) return entries
  const says = (part: ProviderPart) => part.type === 'reasoning' && (standIn === '' || part.text !== '')
  return replaceEntries(entries, entry => {
    const { parts } = entry.message
    if (!hasCalls(entry) || parts.some(says)) return entry
    const what = standIn === '' ? 'Empty reasoning' : 'A stand-in for reasoning'
    const detail = `${what} was added to a call that had none.`
    report({ step: 'require-reasoning', kind: 'add', at: entry.at, detail })
    const thought = { type: 'reasoning', text: standIn, origin: { vendor: profile.vendor } } as const
    return withParts(entry, [thought, ...parts.filter(part => part.type !== 'reasoning')])
  })
}
