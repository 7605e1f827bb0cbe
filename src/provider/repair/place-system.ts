/** System messages stand where the profile lets them; elsewhere they become user text marked as instruction. */
import type { ProviderPart } from '../provider.js'
import { type Entry, madeEntry, newEntry, replaceEntries, type StepContext } from './receipt.js'

const STEP = 'place-system'

/** The text in front of an instruction that could not stay a system message. */
const INSTRUCTION_LABEL = '[system instruction]'

/** Turns system messages in refused places into marked user text, and joins leading ones if only one may lead. */
export function placeSystem(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { system } = context.profile
  if (system === 'anywhere') return entries
  const leading = countLeading(entries)
  const placed = replaceEntries(entries, (entry, index) => {
    if (entry.message.role !== 'system' || index < leading) return entry
    const before = entries[index - 1]?.message.role
    if (system === 'open' && (before === 'user' || before === 'system')) return entry
    return asUser(entry, context)
  })
  return system === 'one-leading' && leading > 1 ? joinLeading(placed, leading, context) : placed
}

/** How many system messages open a history. */
export function countLeading(entries: readonly Entry[]): number {
  let count = 0
  while (entries[count]?.message.role === 'system') count++
  return count
}

function asUser(entry: Entry, { report }: StepContext): Entry {
  const detail = 'A system message inside the history was sent as user text marked as instruction.'
  report({ step: STEP, kind: 'rename-role', at: entry.at, detail })
  return madeEntry('user', [{ type: 'text', text: INSTRUCTION_LABEL }, ...entry.message.parts], entry.at)
}

function joinLeading(entries: readonly Entry[], leading: number, { report }: StepContext): readonly Entry[] {
  const parts: ProviderPart[] = []
  for (const entry of entries.slice(0, leading)) parts.push(...entry.message.parts)
  const at = entries[0]?.at ?? 0
  report({ step: STEP, kind: 'merge', at, detail: `${leading} leading system messages were joined.` })
  return [newEntry('system', parts, at), ...entries.slice(leading)]
}
