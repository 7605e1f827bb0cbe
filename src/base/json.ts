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

/** Any value as the plain JSON data that a store keeps. */
export function toJsonData(value: unknown): unknown {
  return JSON.parse(toJson(value))
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
