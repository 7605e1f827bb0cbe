/**
 * Some vendors refuse reasoning that leads to nothing: a thought must be followed by what it led to. A
 * response that was cut off while thinking leaves just that.
 */
import type { ReasoningRules } from './profile.js'
import { type Entry, hasCalls, type StepContext, withParts } from './receipt.js'

/** Drops reasoning at the end of a message when nothing follows it. */
export function closeReasoning(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { reasoning } = context.profile
  if (reasoning.keep === 'none' || reasoning.needs === 'nothing') return entries
  const kept: Entry[] = []
  let changed = false
  // From the end, because dropping a whole message takes away what its predecessor's thought led to.
  for (let index = entries.length - 1; index >= 0; index--) {
    const entry = entries[index] as Entry
    const closed =
      reasoning.needs === 'company' ? withCompany(entry) : withFollower(entry, kept.at(-1), reasoning)
    if (closed !== undefined) kept.push(closed)
    if (closed === entry) continue
    changed = true
    const detail = 'Reasoning that led to nothing was left out.'
    context.report({ step: 'close-reasoning', kind: 'leave-out', at: entry.at, detail })
  }
  return changed ? kept.reverse() : entries
}

function withCompany(entry: Entry): Entry | undefined {
  return entry.message.parts.every(part => part.type === 'reasoning') ? undefined : entry
}

function withFollower(entry: Entry, next: Entry | undefined, { whole }: ReasoningRules): Entry | undefined {
  const { parts } = entry.message
  if (parts.at(-1)?.type !== 'reasoning') return entry
  // Neighbouring assistant messages are read as one, unless the results of a call come between them.
  if (next?.message.role === 'assistant' && !hasCalls(entry)) return entry
  const end = parts.findLastIndex(part => part.type !== 'reasoning') + 1
  const rest = parts.slice(0, end).filter(part => !whole || part.type !== 'reasoning')
  return rest.length === 0 ? undefined : withParts(entry, rest)
}
