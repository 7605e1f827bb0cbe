/**
 * A call or its result may have lost its id on the way. As long as one of the two still stands in the batch
 * of calls that came last, the tool's name tells which belongs to which, and the result takes its call's id.
 */
import type { ToolResultPart } from '../provider.js'
import { matchResults } from './match-results.js'
import {
  type CallSite,
  type Entry,
  type ResultSite,
  replaceAllParts,
  type StepContext,
  toolLabel,
} from './receipt.js'

/** Gives results that match no call by id the id of the call they must belong to. */
export function adoptIds(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  if (context.profile.pairing === 'none') return entries
  const matching = matchResults(entries, context)
  if (matching.clean) return entries
  const adopted = adoptFrom(matching.calls, matching.results)
  if (adopted.size === 0) return entries
  let site = 0
  return replaceAllParts(entries, (part, _, entry) => {
    if (part.type !== 'tool-result') return part
    // Sites are listed in the order of this walk.
    const call = adopted.get(matching.results[site++] as ResultSite)?.call
    if (!call) return part
    const detail = `A result of ${toolLabel(call)} without its call's id was bound to that call.`
    context.report({ step: 'adopt-ids', kind: 'adopt-id', at: entry.at, detail })
    return { ...part, id: call.id, name: call.id === '' ? call.name : part.name }
  })
}

/** The call for each result that could be bound. */
function adoptFrom(calls: readonly CallSite[], results: readonly ResultSite[]): Map<ResultSite, CallSite> {
  const adopted = new Map<ResultSite, CallSite>()
  const taken = new Set<CallSite>()
  let batch = new Batch()
  let next = 0
  let answered = false
  for (const site of results) {
    for (; next < calls.length && (calls[next] as CallSite).entry < site.entry; next++) {
      // Results ended the batch before: a late one no longer says which of its calls it means.
      if (answered) batch = new Batch()
      answered = false
      batch.add(calls[next] as CallSite)
    }
    answered = true
    if (site.call || site.duplicateOf) continue
    const call = batch.take(site.result, taken)
    if (call) adopted.set(site, call)
  }
  return adopted
}

/** The calls that were made last, in queues by what may still be known of them. */
class Batch {
  private readonly queues = new Map<string, { readonly sites: CallSite[]; next: number }>()

  add(site: CallSite): void {
    const { id, name } = site.call
    for (const key of id === '' ? ['any', `any ${name}`, 'lost', `lost ${name}`] : ['any', `any ${name}`]) {
      const queue = this.queues.get(key)
      if (queue) queue.sites.push(site)
      else this.queues.set(key, { sites: [site], next: 0 })
    }
  }

  take({ id, name }: ToolResultPart, taken: Set<CallSite>): CallSite | undefined {
    const kind = id === '' ? 'any' : 'lost'
    const queue = this.queues.get(name === '' ? kind : `${kind} ${name}`)
    while (queue && queue.next < queue.sites.length) {
      const site = queue.sites[queue.next++] as CallSite
      if (site.result || taken.has(site)) continue
      taken.add(site)
      return site
    }
    return undefined
  }
}
