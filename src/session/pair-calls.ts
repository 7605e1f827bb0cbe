/**
 * Which answer belongs to which call, and which id a call gets that has none. Truncation, restoring, sending,
 * repair and the end of a run all pair by this rule, so that a history is paired the same way before and after
 * a cut. A step is a run of calls with neither an answer nor a new turn between them.
 *
 * - An answer with an id belongs to the nearest earlier message that has a call of this id, and there to the
 *   first such call without an answer. When all of them have one it is a duplicate: an older call with the
 *   same id is another call and never gets it.
 * - An answer without an id, or with an id that no call has, belongs by position to a call of the last turn
 *   with calls: to its own message's first, then to the newest step that has an open call of its name, there
 *   to the first. An answer without a name may belong to any, calls without a name first. Calls without an id come
 *   before calls with one, and an answer with an id of its own never belongs to a call with another.
 * - Ids are compared before positions: an answer without an id never takes a call that a later one names.
 */

/** A call or an answer as far as pairing needs it. An empty or absent id is a legacy row. */
export interface CallReference {
  id?: string | undefined
  name?: string | undefined
}

/** A call or an answer with its place in a history. Within one message, calls come before the answers to them. */
export interface CallItem extends CallReference {
  kind: 'call' | 'answer'
  /** The number of its message; numbers grow. */
  at: number
  /** The number of its turn; numbers grow. */
  turn: number
}

/** The call that an answer belongs to, as an index into the items. */
export interface Pair {
  call: number
  /** True when an earlier answer was paired with this call already. */
  duplicate: boolean
}

/** For each item the pair of an answer; `undefined` for calls and for answers without a call. */
export function pairCalls(items: readonly CallItem[]): (Pair | undefined)[] {
  const pairs = new Array<Pair | undefined>(items.length).fill(undefined)
  if (!pairById(items, pairs)) pairByPosition(items, stepsOf(items), pairs)
  return pairs
}

/** The number of each item's step; an answer has that of the calls before it. */
function stepsOf(items: readonly CallItem[]): Int32Array {
  const steps = new Int32Array(items.length)
  let [step, turn, answered] = [0, Number.NaN, false]
  for (let index = 0; index < items.length; index++) {
    const item = items[index] as CallItem
    if (item.kind === 'answer') answered = true
    else if (answered || item.turn !== turn) {
      step++
      turn = item.turn
      answered = false
    }
    steps[index] = step
  }
  return steps
}

/** Some calls of one step or message, in their order, and how many of them are answered. */
interface Queue {
  /** The number of the step or message. */
  readonly of: number
  readonly calls: number[]
  next: number
}

/** True when every answer found its call. */
function pairById(items: readonly CallItem[], pairs: (Pair | undefined)[]): boolean {
  const nearest = new Map<string, Queue>()
  let complete = true
  for (let index = 0; index < items.length; index++) {
    const { id, kind, at } = items[index] as CallItem
    const queue = id ? nearest.get(id) : undefined
    if (kind === 'answer') {
      if (queue === undefined) complete = false
      else pairs[index] = takeFirst(queue)
    } else if (id) {
      if (queue?.of === at) queue.calls.push(index)
      else nearest.set(id, { of: at, calls: [index], next: 0 })
    }
  }
  return complete
}

/** The first open call, or once more the one that was answered last. */
function takeFirst(queue: Queue): Pair {
  const duplicate = queue.next === queue.calls.length
  if (!duplicate) queue.next++
  return { call: queue.calls[queue.next - 1] as number, duplicate }
}

function pairByPosition(items: readonly CallItem[], steps: Int32Array, pairs: (Pair | undefined)[]): void {
  const answered = new Uint8Array(items.length)
  for (const pair of pairs) if (pair) answered[pair.call] = 1
  const ofTurn = new OpenCalls(answered)
  const ofMessage = new OpenCalls(answered)
  /** The call of each name that was paired by position last. */
  const last = new Map<string, number>()
  let [turn, at] = [Number.NaN, Number.NaN]
  for (let index = 0; index < items.length; index++) {
    const item = items[index] as CallItem
    if (item.kind === 'call') {
      if (item.turn !== turn) ofTurn.clear()
      if (item.turn !== turn) last.clear()
      if (item.at !== at) ofMessage.clear()
      turn = item.turn
      at = item.at
      if (answered[index] === 1) continue
      ofTurn.add(item, index, steps[index] as number)
      ofMessage.add(item, index, steps[index] as number)
    } else if (pairs[index] === undefined) {
      const call = (item.at === at ? ofMessage.take(item) : undefined) ?? ofTurn.take(item)
      const before = item.id ? undefined : last.get(item.name ?? '')
      if (call !== undefined) pairs[index] = { call, duplicate: false }
      else if (before !== undefined) pairs[index] = { call: before, duplicate: true }
      if (call !== undefined && item.name) last.set(item.name, call)
    }
  }
}

/** Open calls by what may be known of them, the newest step last. */
class OpenCalls {
  readonly #queues = new Map<string, Queue[]>()
  readonly #answered: Uint8Array

  constructor(answered: Uint8Array) {
    this.#answered = answered
  }

  clear(): void {
    this.#queues.clear()
  }

  add({ id, name }: CallReference, index: number, step: number): void {
    const kind = id ? 'known' : 'lost'
    this.#push(kind, index, step)
    this.#push(`${kind} ${name ?? ''}`, index, step)
  }

  take({ id, name }: CallReference): number | undefined {
    const call = this.#ofKind('lost', name)
    if (call !== undefined || (id && !isFallbackId(id, name))) return call
    return this.#ofKind('known', name)
  }

  #ofKind(kind: 'lost' | 'known', name: string | undefined): number | undefined {
    return this.#newest(`${kind} ${name ?? ''}`) ?? (name ? undefined : this.#newest(kind))
  }

  #push(key: string, index: number, step: number): void {
    const queues = this.#queues.get(key)
    if (queues === undefined) this.#queues.set(key, [{ of: step, calls: [index], next: 0 }])
    else if (queues.at(-1)?.of === step) queues.at(-1)?.calls.push(index)
    else queues.push({ of: step, calls: [index], next: 0 })
  }

  /** Takes the first open call of the newest step that has one. Steps without one are forgotten. */
  #newest(key: string): number | undefined {
    const queues = this.#queues.get(key)
    for (let queue = queues?.at(-1); queue !== undefined; queue = queues?.at(-1)) {
      while (queue.next < queue.calls.length) {
        const call = queue.calls[queue.next++] as number
        if (this.#answered[call] === 1) continue
        this.#answered[call] = 1
        return call
      }
      queues?.pop()
    }
    return undefined
  }
}

/** The id of a call that has none; when it is taken it is numbered: `call_search`, `call_search_2`. */
function fallbackId(name: string | undefined): string {
  return `call_${name || 'unknown'}`
}

/** Such an id carries no more information than the name. */
function isFallbackId(id: string, name: string | undefined): boolean {
  const made = fallbackId(name)
  return id === made || (id.startsWith(`${made}_`) && /^\d+$/.test(id.slice(made.length + 1)))
}

/** The id, or the id with the lowest free number. `numbers` remembers where to continue, so that many stay cheap. */
export function firstFreeId(
  id: string,
  taken: ReadonlySet<string>,
  numbers = new Map<string, number>(),
): string {
  if (!taken.has(id)) return id
  let number = numbers.get(id) ?? 2
  // Ids are finite, numbers are not: at most `taken.size` candidates are refused.
  while (taken.has(`${id}_${number}`)) number += 1
  numbers.set(id, number + 1)
  return `${id}_${number}`
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'

/** A new id for a call that a model made without one: nine letters and digits, which every provider accepts. */
export function newCallId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(9))
  return Array.from(bytes, byte => LETTERS[byte % LETTERS.length]).join('')
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

/** What pairing needs to know of an item. */
export interface CallLens<T> {
  calls(item: T): readonly CallReference[]
  answers(item: T): readonly CallReference[]
  /** Whether the item starts a turn (`turn.ts`). */
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

/** A message with both a call and its answer (older rows) answers itself. */
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

/** The ids of the calls (or of the answers) of one message, in their order. An id that exists is kept. */
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
    // A second answer without an id gets its own: with one id ADK would drop the first.
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
