/**
 * Reading JSON that may be anything. The judge sees bodies that are wrong on purpose, so every accessor
 * answers something sensible for every value and the rules can check the next fault.
 */

export type JsonObject = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The same text for the same value, whatever the order of its keys. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value) ?? 'null'
  const keys = Object.keys(value).sort()
  return `{${keys.map(key => `${JSON.stringify(key)}:${canonicalJson(value[key])}`).join(',')}}`
}

/** A value as a vendor's error text calls it: `an object`, `a string`, `null`. */
export function kindName(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object') return 'an object'
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal'
  return `a ${typeof value}`
}

/**
 * A rough count: four bytes of JSON are a token, and a file is a page of them, whatever its size. Good enough to know when
 * a window is exceeded.
 */
export function estimateTokens(value: unknown): number {
  const json = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return Math.ceil((json.length < LEAST_FILE ? Buffer.byteLength(json) : bytesWithPages(json)) / 4)
}

const LEAST_FILE = 8000
const PAGE_BYTES = 6400
const FILE_START = /"(?:data|bytes)":"|;base64,/g
const NOT_BASE64 = /[^A-Za-z0-9+/]/g

/** No expression matches a whole file: one of megabytes would overflow the stack of the engine. */
function bytesWithPages(json: string): number {
  let bytes = 0
  let counted = 0
  for (let at = indexOf(json, FILE_START, 0); at < json.length; ) {
    const end = indexOf(json, NOT_BASE64, FILE_START.lastIndex)
    if (end - at >= LEAST_FILE) {
      bytes += Buffer.byteLength(json.slice(counted, at)) + PAGE_BYTES
      counted = end
    }
    at = indexOf(json, FILE_START, end)
  }
  return bytes + Buffer.byteLength(json.slice(counted))
}

/** The length of the text where nothing matches. */
function indexOf(text: string, expression: RegExp, from: number): number {
  expression.lastIndex = from
  return expression.exec(text)?.index ?? text.length
}
