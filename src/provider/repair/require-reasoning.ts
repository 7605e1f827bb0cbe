/** DeepSeek's thinking mode requires reasoning with every call, even if empty; other vendors' calls have none. */
import { type Entry, hasCalls, replaceEntries, type StepContext, withParts } from './receipt.js'

/** Adds empty reasoning to messages with calls that have none. */
export function requireReasoning(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { profile, report } = context
  if (!profile.reasoning.requiredWithCalls) return entries
  return replaceEntries(entries, entry => {
    const { parts } = entry.message
    if (!hasCalls(entry) || parts.some(part => part.type === 'reasoning')) return entry
    const detail = 'Empty reasoning was added to a call that had none.'
    report({ step: 'require-reasoning', kind: 'add', at: entry.at, detail })
    return withParts(entry, [{ type: 'reasoning', text: '', origin: { vendor: profile.vendor } }, ...parts])
  })
}
