/** Where a call must end its message, text after it is refused: the text is moved before the call. */
import { isContainer } from '../anthropic/container.js'
import type { ProviderPart } from '../provider.js'
import { type Entry, replaceEntries, type StepContext, withParts } from './receipt.js'

/** Puts the calls of a message after its other parts. The order within each kind stays. */
export function orderParts(entries: readonly Entry[], { profile, report }: StepContext): readonly Entry[] {
  if (!profile.callsLast) return entries
  return replaceEntries(entries, entry => {
    const { parts } = entry.message
    const first = parts.findIndex(isCall)
    if (first === -1 || parts.every((part, index) => index < first || isCall(part) || isContainer(part)))
      return entry
    const detail = 'Text after a call was moved before it.'
    report({ step: 'order-parts', kind: 'reorder', at: entry.at, detail })
    return withParts(entry, [...parts.filter(part => !isCall(part)), ...parts.filter(isCall)])
  })
}

function isCall(part: ProviderPart): boolean {
  return part.type === 'tool-call'
}
