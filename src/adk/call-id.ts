/**
 * How a call and its answer get one id, written once for storing, restoring and sending.
 *
 * - An id that exists is kept.
 * - A missing id becomes `call_` + name; when that is taken it is numbered: `call_search`, `call_search_2`.
 * - An answer takes the id of its call. It finds its call by id; when one of the two has no id, by name;
 *   when the answer has no name either, by position. Calls of the current turn are answered first come
 *   first served, older ones newest first.
 */

interface Identified {
  id?: string | undefined
  name?: string | undefined
}

/** The ids of the calls (or of the answers) of one message, in their order. */
export function idsWithin(entries: readonly Identified[]): string[] {
  const taken = new Set(entries.flatMap(entry => (entry.id ? [entry.id] : [])))
  return entries.map(entry => {
    if (entry.id) return entry.id
    const id = firstFree(fallbackId(entry.name), taken)
    taken.add(id)
    return id
  })
}

/** A call as `CallIds` remembers it. */
export interface KnownCall {
  readonly id: string
  readonly name: string
  /** What the caller of `CallIds.call` attached: the author, the place of the call's message. */
  readonly from: CallSource
}

/** Where a call was made. */
export interface CallSource {
  readonly author?: string | undefined
  /** The calls of one message share this number; numbers grow. */
  readonly group: number
}

export interface CallIdsOptions {
  /** Ids that occur in the history: a made-up id never takes one of them. */
  existing?: Iterable<string>
  /** Number a call whose id an earlier call has: ADK would give both the last answer. Default: keep it. */
  unique?: boolean
}

/** Walks a history from its beginning and says which id each call and each answer has. */
export class CallIds {
  readonly #taken: Set<string>
  readonly #assigned = new Set<string>()
  readonly #unique: boolean
  readonly #byGivenId = new Map<string, Entry[]>()
  readonly #byId = new Map<string, Entry>()
  readonly #openByName = new Map<string, Entry[]>()
  readonly #numbers = new Map<string, number>()
  #lastGroup: Entry[] = []
  #turn = 0

  constructor(options: CallIdsOptions = {}) {
    this.#taken = new Set(options.existing)
    this.#unique = options.unique ?? false
  }

  /** A person spoke: calls made before are answered only when nothing newer fits. */
  newTurn(): void {
    this.#turn += 1
  }

  call(given: string | undefined, name: string, from: CallSource): string {
    const id = this.#idOf(given, name)
    this.#assigned.add(id)
    this.#taken.add(id)
    const entry: Entry = { id, given: given || undefined, name, from, turn: this.#turn, open: true }
    listAt(this.#byGivenId, given ?? '').push(entry)
    this.#byId.set(id, entry)
    listAt(this.#openByName, name).push(entry)
    if (this.#lastGroup[0]?.from.group !== from.group) this.#lastGroup = []
    this.#lastGroup.push(entry)
    return id
  }

  /**
   * The call that an answer belongs to; `undefined` when there is none. An answer that stands in the message
   * of calls (`group`) answers those first.
   */
  answer(given: string | undefined, name: string | undefined, group?: number): KnownCall | undefined {
    const own = given ? undefined : this.#lastGroup.find(entry => answersOwn(entry, name, group))
    const entry = own ?? (given ? this.#findById(given, name) : this.#findByName(name))
    if (entry) this.#close(entry)
    return entry
  }

  /** The id of an answer that belongs to no call. */
  orphan(given: string | undefined, name: string | undefined): string {
    if (given) return given
    const id = firstFree(fallbackId(name), this.#taken, this.#numbers)
    this.#taken.add(id)
    return id
  }

  #idOf(given: string | undefined, name: string): string {
    if (!given) return firstFree(fallbackId(name), this.#taken, this.#numbers)
    if (!this.#unique || !this.#assigned.has(given)) return given
    return firstFree(given, this.#taken, this.#numbers)
  }

  #findById(given: string, name: string | undefined): Entry | undefined {
    const named = this.#byGivenId.get(given) ?? []
    const match = pickOpen(named, this.#turn) ?? named.at(-1) ?? this.#byId.get(given)
    if (match) return match
    // An id that was made up when the answer was stored says no more than the name does.
    if (isMadeUp(given, name)) return this.#findByName(name)
    const withoutId = (this.#byGivenId.get('') ?? []).filter(entry => entry.open && entry.name === name)
    return pickOpen(withoutId, this.#turn)
  }

  #findByName(name: string | undefined): Entry | undefined {
    if (name) return pickOpen(this.#openByName.get(name) ?? [], this.#turn)
    return this.#lastGroup.find(entry => entry.open)
  }

  #close(entry: Entry): void {
    if (!entry.open) return
    entry.open = false
    const open = this.#openByName.get(entry.name)
    open?.splice(open.indexOf(entry), 1)
  }
}

interface Entry extends KnownCall {
  /** The id that the history gave, if any. */
  readonly given: string | undefined
  readonly turn: number
  open: boolean
}

function answersOwn(entry: Entry, name: string | undefined, group: number | undefined): boolean {
  return entry.open && entry.from.group === group && (!name || entry.name === name)
}

/** The oldest open call of the current turn; without one, the newest open call. */
function pickOpen(entries: readonly Entry[], turn: number): Entry | undefined {
  let newest: Entry | undefined
  let oldestOfTurn: Entry | undefined
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const entry = entries[index]
    if (!entry || (newest && entry.turn !== turn)) break
    if (!entry.open) continue
    if (entry.turn === turn) oldestOfTurn = entry
    newest ??= entry
  }
  return oldestOfTurn ?? newest
}

function isMadeUp(id: string, name: string | undefined): boolean {
  const made = fallbackId(name)
  return id === made || (id.startsWith(`${made}_`) && /^\d+$/.test(id.slice(made.length + 1)))
}

function fallbackId(name: string | undefined): string {
  return `call_${name || 'unknown'}`
}

/** The id, or the id with the lowest free number. `numbers` remembers where to go on, so that many stay cheap. */
function firstFree(id: string, taken: ReadonlySet<string>, numbers = new Map<string, number>()): string {
  if (!taken.has(id)) return id
  let number = numbers.get(id) ?? 2
  // Ids are finite, numbers are not: at most `taken.size` candidates are refused.
  while (taken.has(`${id}_${number}`)) number += 1
  numbers.set(id, number + 1)
  return `${id}_${number}`
}

function listAt<Value>(map: Map<string, Value[]>, key: string): Value[] {
  const list = map.get(key) ?? []
  map.set(key, list)
  return list
}
