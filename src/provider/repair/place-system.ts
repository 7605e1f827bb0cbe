/** System messages stand where the profile lets them; elsewhere they become user text marked as instruction. */
import type { ProviderPart } from '../provider.js'
import { type Entry, madeEntry, newEntry, replaceEntries, type StepContext, withParts } from './receipt.js'

const STEP = 'place-system'

/** The text in front of an instruction that could not stay a system message. */
const INSTRUCTION_LABEL = '[system instruction]'

/** Turns system messages in refused places into marked user text, and joins leading ones if only one may lead. */
export function placeSystem(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { system } = context.profile
  if (system === 'anywhere' || system === 'after-user') return entries
  const leading = countLeading(entries)
  const placed = replaceEntries(entries, (entry, index) => {
    if (entry.message.role !== 'system' || index < leading) return entry
    const before = entries[index - 1]?.message.role
    if (system === 'open' && (before === 'user' || before === 'system')) return entry
    return asUser(entry, context)
  })
  return system === 'one-leading' && leading > 1 ? joinLeading(placed, leading, context) : placed
}

/**
 * Where one system message may stand between a user and an assistant: joins those that stand there together and
 * turns the others into marked user text. Comes late, because what stands around them must not change any more.
 */
export function settleSystem(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  if (context.profile.system !== 'after-user') return entries
  const leading = countLeading(entries)
  const joined = joinNeighbours(entries, leading, context)
  return replaceEntries(joined, (entry, index) => {
    if (entry.message.role !== 'system' || index < leading) return entry
    const before = joined[index - 1]?.message.role
    const after = joined[index + 1]?.message.role ?? (context.next === 'user' ? 'user' : 'assistant')
    return (before === 'user' || before === 'tool') && after === 'assistant' ? entry : asUser(entry, context)
  })
}

function joinNeighbours(
  entries: readonly Entry[],
  leading: number,
  { report }: StepContext,
): readonly Entry[] {
  const joined: Entry[] = []
  for (const [index, entry] of entries.entries()) {
    const before = joined.at(-1)
    if (index <= leading || entry.message.role !== 'system' || before?.message.role !== 'system') {
      joined.push(entry)
      continue
    }
    report({ step: STEP, kind: 'merge', at: entry.at, detail: 'Two system messages in a row were joined.' })
    joined[joined.length - 1] = withParts(before, [...before.message.parts, ...entry.message.parts])
  }
  return joined.length === entries.length ? entries : joined
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
