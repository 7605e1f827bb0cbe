/** A call or an answer as far as pairing needs it. An empty or absent id is a legacy row. */
export interface CallReference {
  id?: string | undefined
  name?: string | undefined
}

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
}

/**
 * Joins calls and answers. An answer belongs to the nearest preceding call of its id that is still open, or
 * (a second answer) to the nearest one at all; without an id, or with an id that no call has, to the nearest
 * open call that could be meant: one of the same name first.
 */
export function groupCalls<T>(items: readonly T[], lens: CallLens<T>): CallGroups {
  const parents = Int32Array.from(items, (_, index) => index)
  const open = new OpenCalls()
  const orphans = new Set<number>()
  items.forEach((item, index) => {
    // A message that asks and answers at once (older rows) answers itself.
    for (const call of lens.calls(item)) open.add(index, call)
    for (const answer of lens.answers(item)) {
      const call = open.take(answer)
      if (call === undefined) orphans.add(index)
      else join(parents, call, index)
    }
  })
  return collect(parents, open.waiting(), orphans)
}

interface OpenCall {
  index: number
  answered: boolean
}

class OpenCalls {
  readonly #all: OpenCall[] = []
  readonly #latestById = new Map<string, OpenCall>()
  /** Stacks of calls that may still be open; answered ones are popped when they are met. */
  readonly #byId = new Map<string, OpenCall[]>()
  readonly #byName = new Map<string, OpenCall[]>()
  readonly #withoutId: OpenCall[] = []
  readonly #any: OpenCall[] = []

  add(index: number, { id, name }: CallReference): void {
    const call = { index, answered: false }
    this.#all.push(call)
    this.#any.push(call)
    if (isPresent(name)) push(this.#byName, name, call)
    if (!isPresent(id)) {
      this.#withoutId.push(call)
      return
    }
    push(this.#byId, id, call)
    this.#latestById.set(id, call)
  }

  /** The item that asked, now answered. */
  take(answer: CallReference): number | undefined {
    const call = this.#find(answer)
    if (call === undefined) return undefined
    call.answered = true
    return call.index
  }

  /** The items with a call that nothing answered. */
  waiting(): number[] {
    return this.#all.filter(call => !call.answered).map(call => call.index)
  }

  #find({ id, name }: CallReference): OpenCall | undefined {
    if (isPresent(id)) {
      return nearestOpen(this.#byId.get(id)) ?? this.#latestById.get(id) ?? nearestOpen(this.#withoutId)
    }
    return nearestOpen(isPresent(name) ? this.#byName.get(name) : undefined) ?? nearestOpen(this.#any)
  }
}

function isPresent(text: string | undefined): text is string {
  return typeof text === 'string' && text !== ''
}

function push(calls: Map<string, OpenCall[]>, key: string, call: OpenCall): void {
  const list = calls.get(key)
  if (list === undefined) calls.set(key, [call])
  else list.push(call)
}

function nearestOpen(calls: OpenCall[] | undefined): OpenCall | undefined {
  while (calls?.at(-1)?.answered === true) calls.pop()
  return calls?.at(-1)
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
