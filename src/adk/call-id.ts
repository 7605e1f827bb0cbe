/**
 * How a call and its answer get one id, written once for storing, restoring and sending. Which answer belongs
 * to which call is decided by `pairCalls`.
 *
 * - An id that exists is kept.
 * - A missing id becomes `call_` + name; when that is taken it is numbered: `call_search`, `call_search_2`.
 * - An answer has the id of its call.
 */
import {
  type CallItem,
  type CallReference,
  fallbackId,
  firstFreeId,
  pairCalls,
} from '../session/pair-calls.js'

/** The ids of the calls (or of the answers) of one message, in their order. */
export function idsWithin(entries: readonly CallReference[]): string[] {
  const taken = new Set(entries.flatMap(entry => (entry.id ? [entry.id] : [])))
  return entries.map(entry => {
    if (entry.id) return entry.id
    const id = firstFreeId(fallbackId(entry.name), taken)
    taken.add(id)
    return id
  })
}

/** A call or an answer with its id. */
export interface Identified<Item extends CallItem> {
  id: string
  /** The call that an answer belongs to. */
  call?: Item | undefined
}

/**
 * The id of every call and answer of a history. A made-up id is never one that the history has. With `unique` a
 * call whose id an earlier call has is numbered, because ADK would give both the last answer.
 */
export function identifyCalls<Item extends CallItem>(
  items: readonly Item[],
  options: { unique?: boolean } = {},
): Identified<Item>[] {
  const taken = new Set(items.flatMap(item => item.id || []))
  const numbers = new Map<string, number>()
  const assigned = new Set<string>()
  const pairs = pairCalls(items)
  const identified: Identified<Item>[] = []
  const makeUp = (wanted: string) => {
    const id = firstFreeId(wanted, taken, numbers)
    taken.add(id)
    return id
  }
  for (const [index, item] of items.entries()) {
    const pair = pairs[index]
    // A second answer without an id is told from the first: with one id ADK would drop the first.
    const known = pair && !(pair.duplicate && !item.id) ? identified[pair.call] : undefined
    if (known && pair) {
      identified.push({ id: known.id, call: items[pair.call] })
      continue
    }
    const doubled = item.kind === 'call' && options.unique === true && assigned.has(item.id ?? '')
    const id = item.id && !doubled ? item.id : makeUp(item.id || fallbackId(item.name))
    if (item.kind === 'call') assigned.add(id)
    identified.push({ id })
  }
  return identified
}
