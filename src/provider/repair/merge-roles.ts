/**
 * Steps 2 and 5 of the specification's five, for profiles that demand alternation. Only lists of parts are
 * joined: no two parts become one, so signatures stay where they were made. Results are never joined with
 * words, and a call never with its result.
 */
import type { ProviderPart } from '../provider.js'
import { type Entry, hasResults, madeEntry, replaceEntries, type StepContext } from './receipt.js'

/** Joins neighbouring messages of one role. */
export function mergeRoles(entries: readonly Entry[], { profile, report }: StepContext): readonly Entry[] {
  if (!profile.alternation) return entries
  let merged: Entry[] | undefined
  let growing: ProviderPart[] | undefined
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index] as Entry
    const before = merged ? merged.at(-1) : entries[index - 1]
    if (!before || !mayJoin(before, entry)) {
      merged?.push(entry)
      growing = undefined
      continue
    }
    merged ??= entries.slice(0, index)
    growing ??= [...before.message.parts]
    for (const part of entry.message.parts) growing.push(part)
    // What was given stands out over what was made: the next neighbour is compared with that.
    merged[merged.length - 1] = join(before.made ? { ...before, made: entry.made } : before, entry, growing)
    if (entry.made || before.made) continue
    const detail = `Joined with the ${entry.message.role} message before it.`
    report({ step: 'merge-roles', kind: 'merge', at: entry.at, detail })
  }
  return merged ?? entries
}

/** What the user wrote a part of is not a program's message. */
function join(before: Entry, entry: Entry, parts: readonly ProviderPart[]): Entry {
  const { writtenBy, ...message } = before.message
  const kept = writtenBy !== undefined && entry.message.writtenBy === writtenBy ? { writtenBy } : {}
  return { ...before, message: { ...message, ...kept, parts } }
}

function mayJoin(before: Entry, entry: Entry): boolean {
  const { role } = entry.message
  if (role !== before.message.role || (role !== 'user' && role !== 'assistant')) return false
  return role === 'assistant' || (!hasResults(before) && !hasResults(entry))
}

/** Stands for the answer that results never got. */
const INTERRUPTED_TEXT = '[interrupted]'

/** Where a template counts turns without calls and results, results are answered before the user speaks again. */
export function answerResults(entries: readonly Entry[], { profile, report }: StepContext): readonly Entry[] {
  if (!profile.resultsAnswered) return entries
  return replaceEntries(entries, (entry, index) => {
    const before = entries[index - 1]
    if (entry.message.role !== 'user' || hasResults(entry) || !before || !hasResults(before)) return entry
    const detail = `The assistant's turn "${INTERRUPTED_TEXT}" was put between results and the user.`
    report({ step: 'answer-results', kind: 'add', at: entry.at, detail })
    return [madeEntry('assistant', [{ type: 'text', text: INTERRUPTED_TEXT }], entry.at), entry]
  })
}
