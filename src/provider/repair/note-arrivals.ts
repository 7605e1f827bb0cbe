/**
 * A result that arrived after the user had spoken again is moved up to its call, far from where it arrived. A sentence in
 * its old place tells the model why it is asked now. Messages that a program wrote in between (what another agent did, a
 * notice) are no reason for it.
 */
import { matchResults, startsTurn } from './match-results.js'
import { type Entry, madeEntry, type StepContext, toolLabel } from './receipt.js'

/** Notes where results stood whose calls were followed by words of the user. */
export function noteArrivals(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  if (context.profile.pairing !== 'next') return entries
  const arrived = arrivals(entries, context)
  if (arrived.size === 0) return entries
  let names: string[] = []
  return entries.flatMap((entry, index) => {
    const found = arrived.get(index)
    if (found) {
      const detail = `The result of ${found.join(', ')} arrived after the user had spoken again: a sentence says so.`
      context.report({ step: 'note-arrivals', kind: 'note', at: entry.at, detail })
      names.push(...found)
    }
    // Several that arrived together are one sentence.
    if (names.length === 0 || arrived.has(index + 1)) return [entry]
    const text = `[System: The result of ${names.map(name => `\`${name}\``).join(', ')} has arrived. It follows its call.]`
    names = []
    return [entry, madeEntry('user', [{ type: 'text', text }], entry.at)]
  })
}

/** By entry: the tools whose results arrived late there. */
function arrivals(entries: readonly Entry[], context: StepContext): Map<number, string[]> {
  const found = new Map<number, string[]>()
  for (const { entry, call } of matchResults(entries, context).results) {
    if (!call || call.entry + 1 === entry || !hasUserBetween(entries, call.entry, entry)) continue
    found.set(entry, [...(found.get(entry) ?? []), toolLabel(call.call)])
  }
  return found
}

/** Words that came in one message with the result are not between the two. */
function hasUserBetween(entries: readonly Entry[], from: number, to: number): boolean {
  return entries
    .slice(from + 1, to)
    .some(entry => startsTurn(entry) && entry.at !== (entries[to] as Entry).at)
}
