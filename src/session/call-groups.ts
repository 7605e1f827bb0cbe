import { type CallItem, type CallReference, pairCalls } from './pair-calls.js'

/** Which items of a history belong together: a call and everything that answers it. */
export interface CallGroups {
  /** For each item the number of its group. */
  readonly groupOf: Int32Array
  /** For each group its items, oldest first. */
  readonly members: readonly (readonly number[])[]
  /** Groups that hold a call which nothing answers. */
  readonly unanswered: ReadonlySet<number>
  /** Items that answer a call which is not in the history. */
  readonly orphans: ReadonlySet<number>
}

/** What pairing asks of a history's items. */
export interface CallLens<T> {
  calls(item: T): readonly CallReference[]
  answers(item: T): readonly CallReference[]
  /** A message by a person: not a tool's answer in the user's role, not one that Lango wrote. */
  startsTurn(item: T): boolean
}

/** Joins calls and their answers, duplicates included. */
export function groupCalls<T>(items: readonly T[], lens: CallLens<T>): CallGroups {
  const parents = Int32Array.from(items, (_, index) => index)
  const references = referencesOf(items, lens)
  const pairs = pairCalls(references)
  const waiting = new Set<CallItem>()
  const orphans = new Set<number>()
  references.forEach((reference, index) => {
    if (reference.kind === 'call') {
      waiting.add(reference)
      return
    }
    const call = references[pairs[index]?.call ?? -1]
    if (call === undefined) orphans.add(reference.at)
    else join(parents, call.at, reference.at)
    if (call !== undefined) waiting.delete(call)
  })
  return collect(
    parents,
    [...waiting].map(({ at }) => at),
    orphans,
  )
}

/** A message that asks and answers at once (older rows) answers itself. */
function referencesOf<T>(items: readonly T[], lens: CallLens<T>): CallItem[] {
  const references: CallItem[] = []
  let turn = 0
  items.forEach((item, at) => {
    if (lens.startsTurn(item)) turn++
    for (const { id, name } of lens.calls(item)) references.push({ kind: 'call', id, name, at, turn })
    for (const { id, name } of lens.answers(item)) references.push({ kind: 'answer', id, name, at, turn })
  })
  return references
}

function root(parents: Int32Array, index: number): number {
  let current = index
  for (let parent = parents[current]; parent !== undefined && parent !== current; parent = parents[current]) {
    // Halving the path keeps later look-ups short.
    parents[current] = parents[parent] ?? parent
    current = parents[current] ?? parent
  }
  return current
}

function join(parents: Int32Array, one: number, other: number): void {
  const first = root(parents, one)
  const second = root(parents, other)
  parents[Math.max(first, second)] = Math.min(first, second)
}

function collect(parents: Int32Array, waiting: readonly number[], orphans: ReadonlySet<number>): CallGroups {
  const groupOf = new Int32Array(parents.length)
  const members: number[][] = []
  const numbers = new Map<number, number>()
  for (let index = 0; index < parents.length; index++) {
    const top = root(parents, index)
    const group = numbers.get(top) ?? members.length
    if (group === members.length) {
      numbers.set(top, group)
      members.push([])
    }
    members[group]?.push(index)
    groupOf[index] = group
  }
  return { groupOf, members, unanswered: new Set(waiting.map(index => groupOf[index] ?? -1)), orphans }
}
