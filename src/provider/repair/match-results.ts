/** Which result answers which call, by the rule of `pairCalls`. */
import { type CallItem, pairCalls } from '../../session/pair-calls.js'
import { isTurnStart } from '../../session/turn.js'
import {
  type CallSite,
  type Entry,
  hasResults,
  type Matching,
  type ResultSite,
  type StepContext,
} from './receipt.js'

/** Binds results to calls. */
export function matchResults(entries: readonly Entry[], { memo }: StepContext): Matching {
  // Steps that change nothing hand on the very same list, so its matching need not be found again.
  if (memo.matching && memo.entries === entries) return memo.matching
  const calls: CallSite[] = []
  const results: ResultSite[] = []
  const items: CallItem[] = []
  /** By item: its place among the calls or the results. */
  const places: number[] = []
  let turn = 0
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index] as Entry
    if (startsTurn(entry)) turn++
    const { parts } = entry.message
    for (let part = 0; part < parts.length; part++) {
      const candidate = parts[part]
      if (candidate?.type !== 'tool-call' && candidate?.type !== 'tool-result') continue
      const kind = candidate.type === 'tool-call' ? 'call' : 'answer'
      items.push({ kind, id: candidate.id, name: candidate.name, at: index, turn })
      if (candidate.type === 'tool-call') places.push(calls.push({ entry: index, call: candidate }) - 1)
      else places.push(results.push({ entry: index, part, result: candidate }) - 1)
    }
  }
  const matching = { calls, results, clean: bindAll(items, places, calls, results) }
  memo.entries = entries
  memo.matching = matching
  return matching
}

/** A message that a person sent, as far as the history shows it. */
export function startsTurn(entry: Entry): boolean {
  const { role, writtenBy } = entry.message
  const byProgram = writtenBy === 'program' || entry.made === true
  return isTurnStart({ role, byProgram, speaks: !hasResults(entry) })
}

/** True when every result answers a call of its own and has its id. */
function bindAll(
  items: readonly CallItem[],
  places: readonly number[],
  calls: readonly CallSite[],
  results: readonly ResultSite[],
): boolean {
  let clean = true
  const pairs = pairCalls(items)
  for (let index = 0; index < items.length; index++) {
    if (items[index]?.kind === 'call') continue
    const site = results[places[index] as number] as ResultSite
    const pair = pairs[index]
    const call = pair && calls[places[pair.call] as number]
    if (call && pair?.duplicate === false) {
      call.result = site
      site.call = call
    } else if (call) site.duplicateOf = call
    clean &&= site.call?.call.id === site.result.id
  }
  return clean
}
