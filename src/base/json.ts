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
    return JSON.stringify(value, withoutLoops()) ?? 'null'
  }
}

/**
 * Any value as the plain JSON data that a store keeps. Plain data is copied without writing it as text: texts of
 * many megabytes are shared instead of being written and parsed.
 */
export function toJsonData(value: unknown): unknown {
  const copy = copyPlain(value, 0)
  return copy === NOT_PLAIN ? JSON.parse(toJson(value)) : copy
}

const NOT_PLAIN = Symbol('not plain data')
/** Deeper data, which may contain itself, is left to the conversion by text. */
const DEEPEST = 40

/** A copy that equals what JSON makes of the value, or `NOT_PLAIN` when that takes more than copying. */
function copyPlain(value: unknown, depth: number): unknown {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value
  if (typeof value === 'number') return Number.isFinite(value) && !Object.is(value, -0) ? value : NOT_PLAIN
  if (typeof value !== 'object' || depth > DEEPEST) return NOT_PLAIN
  if (Array.isArray(value)) {
    const items: unknown[] = []
    for (const item of value) {
      const copy = copyPlain(item, depth + 1)
      if (copy === NOT_PLAIN) return NOT_PLAIN
      items.push(copy)
    }
    return items
  }
  return copyObject(value, depth)
}

function copyObject(value: object, depth: number): unknown {
  const prototype: unknown = Object.getPrototypeOf(value)
  if ((prototype !== Object.prototype && prototype !== null) || 'toJSON' in value) return NOT_PLAIN
  const fields: Record<string, unknown> = {}
  for (const [name, item] of Object.entries(value)) {
    if (item === undefined) continue
    const copy = name === '__proto__' ? NOT_PLAIN : copyPlain(item, depth + 1)
    if (copy === NOT_PLAIN) return NOT_PLAIN
    fields[name] = copy
  }
  return fields
}

function withoutLoops(): (this: unknown, key: string, value: unknown) => unknown {
  const ancestors: unknown[] = []
  return function replace(this: unknown, _key, value) {
    if (typeof value === 'bigint') return value.toString()
    if (typeof value !== 'object' || value === null) return value
    // `this` is the object that holds the value: everything entered after it has been left.
    while (ancestors.length > 0 && ancestors.at(-1) !== this) ancestors.pop()
    if (ancestors.includes(value)) return '[circular]'
    ancestors.push(value)
    return value
  }
}

/** A text without the byte order mark that editors on Windows write at the start of a file. */
export function withoutBom(text: string): string {
  return text.startsWith('\uFEFF') ? text.slice(1) : text
}
