/**
 * Which result answers which call. A result belongs to the nearest earlier message that has an unanswered
 * call with its id, and there to the first such call, so that an id which comes back in a later turn, or
 * twice in one, still finds its own answer.
 */
import {
  bindingKey,
  type CallSite,
  type Entry,
  type Matching,
  type ResultSite,
  type StepContext,
} from './receipt.js'

/** Binds results to calls by id, or by name where both have lost their id. */
export function matchResults(entries: readonly Entry[], { memo }: StepContext): Matching {
  // Steps that change nothing hand on the very same list, so its matching need not be found again.
  if (memo.matching && memo.entries === entries) return memo.matching
  const calls: CallSite[] = []
  const results: ResultSite[] = []
  const open = new Map<string, CallSite[]>()
  const latest = new Map<string, CallSite>()
  let clean = true
  for (let index = 0; index < entries.length; index++) {
    const first = calls.length
    const { parts } = (entries[index] as Entry).message
    for (let part = 0; part < parts.length; part++) {
      const candidate = parts[part]
      if (candidate?.type === 'tool-call') calls.push({ entry: index, call: candidate })
      if (candidate?.type !== 'tool-result') continue
      const site: ResultSite = { entry: index, part, result: candidate }
      results.push(site)
      clean = bind(site, open, latest) && clean
    }
    // Backwards, so that the first call of a message lies on top and is answered first.
    for (let site = calls.length - 1; site >= first; site--) push(open, calls[site] as CallSite)
  }
  const matching = { calls, results, clean }
  memo.entries = entries
  memo.matching = matching
  return matching
}

function push(open: Map<string, CallSite[]>, site: CallSite): void {
  const key = bindingKey(site.call)
  const stack = open.get(key)
  if (stack) stack.push(site)
  else open.set(key, [site])
}

/** False when there is no call left for the result to answer. */
function bind(site: ResultSite, open: Map<string, CallSite[]>, latest: Map<string, CallSite>): boolean {
  const key = bindingKey(site.result)
  const call = open.get(key)?.pop()
  if (call) {
    call.result = site
    site.call = call
    latest.set(key, call)
    return true
  }
  const answered = latest.get(key)
  if (answered) site.duplicateOf = answered
  return false
}
