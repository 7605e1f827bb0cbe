/** A call or its result may have lost its id on the way: a result that was paired by position takes its call's id. */
import { matchResults } from './match-results.js'
import { type Entry, replaceAllParts, type StepContext, toolLabel } from './receipt.js'

/** Gives results that match no call by id the id of the call they belong to. */
export function adoptIds(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  if (context.profile.pairing === 'none') return entries
  // Several calls may have one id: a result that takes it may answer another of them now, which leaves a call for the next.
  for (let current = entries; ; ) {
    const adopted = adoptOnce(current, context)
    if (adopted === current) return current
    current = adopted
  }
}

/** A result that has the id of a call is never given another. */
function adoptOnce(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const matching = matchResults(entries, context)
  if (matching.clean) return entries
  let site = 0
  return replaceAllParts(entries, (part, _, entry) => {
    if (part.type !== 'tool-result') return part
    // Sites are listed in the order of this walk.
    const { call: answered, duplicateOf } = matching.results[site++] ?? {}
    const call = (answered ?? duplicateOf)?.call
    if (!call || call.id === part.id) return part
    const detail = `A result of ${toolLabel(call)} without its call's id was bound to that call.`
    context.report({ step: 'adopt-ids', kind: 'adopt-id', at: entry.at, detail })
    return { ...part, id: call.id, name: call.id === '' ? call.name : part.name }
  })
}
