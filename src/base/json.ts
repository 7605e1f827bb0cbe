/** The value of a JSON text; a text that is not JSON is kept as it is. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Any value as JSON. What JSON cannot express (a BigInt, a circular reference) becomes a text instead of an error. */
export function toJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'null'
  } catch {
    return expandedJson(value)
  }
}

/** As `toJson`, and maps are objects, sets lists and errors their name and message: plain JSON has nothing of them. */
function expandedJson(value: unknown): string {
  return JSON.stringify(value, withoutLoops()) ?? 'null'
}

/**
 * Any value as the plain JSON data that a store keeps. Plain data is copied without writing it as text: texts of
 * many megabytes are shared instead of being written and parsed.
 */
export function toJsonData(value: unknown): unknown {
  const copy = copyPlain(value, 0)
  return copy === NOT_PLAIN ? JSON.parse(expandedJson(value)) : copy
}

/** Data of a model that is nested deeper is refused: code that walks it by recursion would overflow the stack. */
const DEEPEST_DATA = 256

/** True if data is nested deeper than anything that is meant. */
export function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > DEEPEST_DATA) return true
    level = level.flatMap(each => (typeof each === 'object' && each !== null ? Object.values(each) : []))
  }
  return false
}

const NOT_PLAIN = Symbol('not plain')
const DEEPEST_COPY = 64

/**
 * What writing and parsing a value as JSON gives, without the text: several times faster for data of the usual sizes,
 * and strings are shared. `NOT_PLAIN` when the value holds anything besides plain objects, lists and primitives.
 */
function copyPlain(value: unknown, depth: number): unknown {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value
  // JSON has neither infinities nor a negative zero.
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : null
  if (typeof value !== 'object' || depth > DEEPEST_COPY) return NOT_PLAIN
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Array.prototype) return copyList(value as unknown[], depth)
  const isPlain = prototype === Object.prototype || prototype === null
  if (!isPlain || 'toJSON' in value) return NOT_PLAIN
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(value)) {
    const field = (value as Record<string, unknown>)[key]
    if (field === undefined) continue
    const copied = copyPlain(field, depth + 1)
    // Assigning to `__proto__` would set the prototype.
    if (copied === NOT_PLAIN || key === '__proto__') return NOT_PLAIN
    copy[key] = copied
  }
  return copy
}

function copyList(list: readonly unknown[], depth: number): unknown {
  const copy: unknown[] = []
  for (const item of list) {
    const copied = copyPlain(item, depth + 1)
    if (copied === NOT_PLAIN) return NOT_PLAIN
    copy.push(copied)
  }
  return copy
}

function withoutLoops(): (this: unknown, key: string, value: unknown) => unknown {
  const ancestors: unknown[] = []
  return function replace(this: unknown, _key, value) {
    if (typeof value === 'bigint') return value.toString()
    if (typeof value !== 'object' || value === null) return value
    if (value instanceof Map || value instanceof Set || value instanceof Error) return expanded(value)
    // `this` is the object that holds the value: everything entered after it has been left.
    while (ancestors.length > 0 && ancestors.at(-1) !== this) ancestors.pop()
    if (ancestors.includes(value)) return '[circular]'
    ancestors.push(value)
    return value
  }
}

function expanded(value: Map<unknown, unknown> | Set<unknown> | Error): unknown {
  if (value instanceof Error) return { name: value.name, message: value.message }
  return value instanceof Map ? Object.fromEntries(value) : [...value]
}

/** A text without the byte order mark that editors on Windows write at the start of a file. */
export function withoutBom(text: string): string {
  return text.startsWith('\uFEFF') ? text.slice(1) : text
}
