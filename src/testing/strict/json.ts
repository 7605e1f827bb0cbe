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
  const text = json.length < LEAST_FILE ? json : json.replaceAll(FILES, asPage)
  return Math.ceil(Buffer.byteLength(text) / 4)
}

const LEAST_FILE = 8000
const FILES = /(?:"(?:data|bytes)":"|;base64,)[A-Za-z0-9+/]+/g
const PAGE = 'x'.repeat(6400)

function asPage(file: string): string {
  return file.length < LEAST_FILE ? file : PAGE
}
