/**
 * What a request can say in JSON: half a surrogate pair is no character, and a date, a big number or a map is no value
 * of it. Servers refuse the body, or the encoder throws. Nesting is bounded too: writing JSON recurses, and a value
 * that is nested a hundred thousand levels deep exhausts the stack of its writers and readers.
 */
import type { ProviderPart } from '../provider.js'
import { type Entry, replaceAllParts, type StepContext } from './receipt.js'

const STEP = 'well-formed-text'

/** Replaces lone surrogates by U+FFFD, and writes out what JSON cannot say, in everything that a part holds. */
export function wellFormedText(entries: readonly Entry[], { report }: StepContext): readonly Entry[] {
  const found: Found = { characters: false, values: false, around: [] }
  return replaceAllParts(
    entries,
    part => mendPart(part, found),
    entry => {
      if (found.characters) {
        const detail = 'Lone surrogates were replaced by U+FFFD.'
        report({ step: STEP, kind: 'replace-characters', at: entry.at, detail })
      }
      if (found.values) {
        const detail = `Values that JSON cannot say, or nested over ${DEEPEST} levels, were written out as text.`
        report({ step: STEP, kind: 'write-out', at: entry.at, detail })
      }
      found.characters = false
      found.values = false
      return entry
    },
  )
}

/** Protobuf's JSON readers stop at a hundred levels, some servers earlier. */
const DEEPEST = 64

/** How much of a value below the deepest level is kept. */
const MOST_BELOW = 10_000

interface Found {
  characters: boolean
  values: boolean
  /** The objects around the one that is read, from the eighth level on: what contains itself is not read twice. */
  readonly around: object[]
}

const SHALLOW = 8

/** A part's argument or result as it can be written as JSON: itself, if nothing of it has to be changed. */
export function writable<Value>(value: Value): Value {
  return mendValue(value, 1, { characters: false, values: false, around: [] }) as Value
}

function mendPart(part: ProviderPart, found: Found): ProviderPart {
  switch (part.type) {
    case 'text':
    case 'reasoning': {
      const text = mendText(part.text, found)
      return text === part.text ? part : { ...part, text }
    }
    case 'tool-call':
    case 'tool-result':
    case 'media':
    case 'vendor':
      return mendFields(
        part as unknown as Readonly<Record<string, unknown>>,
        0,
        found,
      ) as unknown as ProviderPart
  }
}

function mendText(text: string, found: Found): string {
  if (isWellFormed(text)) return text
  found.characters = true
  return toWellFormed(text)
}

function mendValue(value: unknown, depth: number, found: Found): unknown {
  if (typeof value === 'string') return mendText(value, found)
  if (typeof value !== 'object' || value === null) return mendScalar(value, found)
  if (depth > DEEPEST) {
    found.values = true
    return toWellFormed(writeOut(value, MOST_BELOW))
  }
  if (depth < SHALLOW) return mendObject(value, depth, found)
  if (found.around.includes(value)) {
    found.values = true
    return '[a value that contains itself]'
  }
  found.around.push(value)
  const mended = mendObject(value, depth, found)
  found.around.pop()
  return mended
}

function mendObject(value: object, depth: number, found: Found): unknown {
  if (Array.isArray(value)) return mendList(value, depth, found)
  if (isPlain(value)) return mendFields(value as Readonly<Record<string, unknown>>, depth, found)
  found.values = true
  return mendValue(plainOf(value), depth + 1, found)
}

/** Functions and symbols are left out, as `JSON.stringify` does; it throws for a big number. */
function mendScalar(value: unknown, found: Found): unknown {
  if (typeof value !== 'bigint') return value
  found.values = true
  return value.toString()
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === null || prototype === Object.prototype) return typeof ownToJson(value) !== 'function'
  // An object of another realm, such as a worker or a test, is plain if its prototype is a root.
  return Object.getPrototypeOf(prototype) === null && typeof ownToJson(value) !== 'function'
}

function ownToJson(value: object): unknown {
  return (value as { toJSON?: unknown }).toJSON
}

/** A map by its keys, a set as a list, bytes as base64, and anything else as it writes itself. */
function plainOf(value: object): unknown {
  try {
    if (value instanceof Map) return Object.fromEntries([...value].map(([key, one]) => [String(key), one]))
    if (value instanceof Set) return [...value]
    if (value instanceof Error) return { name: value.name, message: value.message }
    if (ArrayBuffer.isView(value)) {
      return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')
    }
    const toJson = ownToJson(value)
    const written: unknown = typeof toJson === 'function' ? toJson.call(value) : { ...value }
    return written === value ? { ...value, toJSON: undefined } : (written ?? null)
  } catch {
    return '[a value that cannot be read]'
  }
}

function mendList(list: readonly unknown[], depth: number, found: Found): unknown {
  let changed: unknown[] | undefined
  for (let index = 0; index < list.length; index++) {
    const mended = mendValue(list[index], depth + 1, found)
    if (mended === list[index]) continue
    changed ??= list.slice()
    changed[index] = mended
  }
  return changed ?? list
}

function mendFields(fields: Readonly<Record<string, unknown>>, depth: number, found: Found): unknown {
  let changed: [string, unknown][] | undefined
  const keys = Object.keys(fields)
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index] as string
    // A part's signature is its maker's; one that cannot be read is left out elsewhere, none is altered.
    if (depth === 0 && key === 'signature') {
      changed?.push([key, fields[key]])
      continue
    }
    const name = mendText(key, found)
    // The media of a result are parts themselves.
    const inner = depth === 0 && key === 'media' ? -1 : depth + 1
    const value = mendValue(fields[key], inner, found)
    if (name === key && value === fields[key]) {
      changed?.push([key, value])
      continue
    }
    changed ??= keys.slice(0, index).map(before => [before, fields[before]])
    changed.push([name, value])
  }
  return changed === undefined ? fields : Object.fromEntries(changed)
}

/**
 * A value of any depth as JSON text of at most so many characters. Without recursion, so that depth costs no stack;
 * a value that contains itself ends with the length.
 */
export function writeOut(value: unknown, most: number): string {
  let text = ''
  // What is still to be written, the next one last: a value, or text as it is.
  const open: (string | { value: unknown })[] = [{ value }]
  while (open.length > 0 && text.length < most) {
    const next = open.pop()
    if (typeof next === 'string') text += next
    else if (next !== undefined) text += beginValue(next.value, open)
  }
  return text.length < most && open.length === 0 ? text : `${text.slice(0, most)}…`
}

/** The text that a value begins with; the rest of it is put on the list. */
function beginValue(value: unknown, open: (string | { value: unknown })[]): string {
  if (typeof value === 'bigint') return `"${value}"`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const plain = Array.isArray(value) || isPlain(value) ? value : plainOf(value)
  if (typeof plain !== 'object' || plain === null) return JSON.stringify(plain) ?? 'null'
  const isList = Array.isArray(plain)
  const entries = Object.entries(plain)
  open.push(isList ? ']' : '}')
  for (let index = entries.length - 1; index >= 0; index--) {
    const [key, inner] = entries[index] as [string, unknown]
    open.push({ value: inner })
    if (!isList) open.push(`${JSON.stringify(key)}:`)
    if (index > 0) open.push(',')
  }
  return isList ? '[' : '{'
}

// Node 20 has these methods; the compiler's library for ES2023 does not know them yet.
interface WellFormedString {
  isWellFormed(): boolean
  toWellFormed(): string
}

function isWellFormed(text: string): boolean {
  return (text as unknown as WellFormedString).isWellFormed()
}

function toWellFormed(text: string): string {
  return (text as unknown as WellFormedString).toWellFormed()
}
