/**
 * What of a file is not in the messages that were read from it: ids, usage, settings of a framework. Found by comparing
 * the values and not by a list of fields, so that a field which a later version of the framework adds is named too. An
 * export is compared in the same way: with what its own reader finds in it.
 */

import { isRecord } from '../base/is-record.js'
import { parseJson } from '../base/json.js'
import { stableJson } from '../base/stable-json.js'
import type { ProviderMessage, ProviderPart } from '../provider/provider.js'
import { bareResult, type Fields, type WireMessage } from './wire-parts.js'

/** The names of the fields that were not read, each with the number of rows that have it: `usage (3)`. */
export function leftOut(rows: readonly Fields[], messages: readonly WireMessage[]): string[] {
  const counts = new Map<string, number>()
  const madeFrom = messagesByRow(rows.length, messages)
  for (const [index, row] of rows.entries()) {
    const made = madeFrom[index]
    if (!made) continue
    const found = valuesOf(made)
    const { paths } = compare(row, '', found)
    for (const path of new Set(paths)) counts.set(path, (counts.get(path) ?? 0) + 1)
  }
  return counted(counts)
}

function counted(counts: ReadonlyMap<string, number>): string[] {
  return [...counts].map(([path, count]) => (count === 1 ? path : `${path} (${count})`))
}

/** The fields of which a file that was written holds no value: `timestamp (4)`. */
export function fieldsNotIn(file: unknown, rows: readonly Fields[]): string[] {
  const found = valuesIn(file, true)
  const counts = new Map<string, number>()
  for (const row of rows)
    for (const path of compare(row, '', found).paths) counts.set(path, (counts.get(path) ?? 0) + 1)
  return counted(counts)
}

/** What of the parts that were written is not in those that were read again: `tool-result.isError (2)`, `media`. */
export function partsLost(written: readonly ProviderMessage[], read: readonly ProviderMessage[]): string[] {
  const pool = new Map<string, ReadPart[]>()
  for (const part of partsWithRoles(read)) {
    const name = identityOf(part)
    pool.set(name, [...(pool.get(name) ?? []), part])
  }
  const texts = partsWithRoles(read).flatMap(part => (part.type === 'text' ? [part.text] : []))
  const counts = new Map<string, number>()
  for (const part of partsWithRoles(written)) {
    const alike = pool.get(identityOf(part)) ?? []
    // Some forms have one text where others have several.
    if (part.type === 'text' && alike.length === 0 && texts.some(text => text.includes(part.text))) continue
    const differences = alike.map(other => differing(part, other))
    const fewest = Math.min(...differences.map(({ length }) => length))
    const best = differences.findIndex(({ length }) => length === fewest)
    for (const path of differences[best] ?? [part.type]) counts.set(path, (counts.get(path) ?? 0) + 1)
    if (best >= 0) alike.splice(best, 1)
  }
  return counted(counts)
}

type ReadPart = ProviderPart & { role: string }

function partsWithRoles(messages: readonly ProviderMessage[]): ReadPart[] {
  return messages.flatMap(({ role, parts }) => parts.map(part => ({ ...part, role })))
}

/** What makes it the same part, whatever else became of it. */
function identityOf(part: ProviderPart): string {
  switch (part.type) {
    case 'tool-call':
    case 'tool-result':
      return `${part.type} ${part.id}`
    case 'media':
      return `media ${part.data ?? part.url}`
    case 'vendor':
      return `vendor ${stableJson(part.value)}`
    case 'text':
    case 'reasoning':
      return `${part.type} ${part.text}`
    default:
      return part satisfies never
  }
}

function differing(part: ReadPart, other: ReadPart): string[] {
  const [one, two] = [comparable(part), comparable(other)]
  const names = Object.keys(one).filter(name => stableJson(one[name]) !== stableJson(two[name]))
  return names.map(name => (name === 'role' ? name : `${part.type}.${name}`))
}

/** Arguments and results by what they mean: some forms write them as text. Vendors are known by their signature. */
function comparable(part: ReadPart): Fields {
  const { origin: _origin, text: _text, ...fields } = part as ReadPart & Fields
  if (part.type === 'tool-call') return { ...fields, args: data(part.args) }
  if (part.type !== 'tool-result') return fields
  const { result } = bareResult({ ...part, result: data(part.result), isError: true })
  // On some wires results are the user's.
  const { role: _role, ...others } = fields
  return { ...others, result: data(result), isError: part.isError === true || undefined }
}

function data(value: unknown): unknown {
  return typeof value === 'string' ? parseJson(value) : (value ?? {})
}

/** The messages of each row. A row that continued the message of an earlier one shares it. */
function messagesByRow(count: number, messages: readonly WireMessage[]): (WireMessage[] | undefined)[] {
  const byRow: (WireMessage[] | undefined)[] = Array.from({ length: count })
  for (const message of messages) {
    const digits = /^line (\d+)$/.exec(message.place)
    const at = digits ? Number(digits[1]) - 1 : Number(/\[(\d+)\]/.exec(message.place)?.[1] ?? Number.NaN)
    if (at >= 0 && at < count) byRow[at] = [...(byRow[at] ?? []), message]
  }
  const isLines = messages.some(({ place }) => place.startsWith('line '))
  for (const [index, made] of byRow.entries()) {
    if (made === undefined && !isLines && index > 0) byRow[index] = byRow[index - 1]
  }
  return byRow
}

/** The values of messages: those that are alike, and the texts that others may be part of. */
interface Values {
  exact: ReadonlySet<string>
  texts: readonly string[]
}

function valuesOf(messages: readonly WireMessage[]): Values {
  return valuesIn(
    messages.map(({ parts, timestamp, role }) => [
      ...[parts, role],
      ...(timestamp === undefined ? [] : [timestamp, new Date(timestamp).toISOString()]),
    ]),
  )
}

/** `withTimes`: times count in milliseconds too, however the file writes them. */
function valuesIn(file: unknown, withTimes = false): Values {
  const exact = new Set<string>()
  const add = (value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) add(item)
    else if (isRecord(value)) for (const item of Object.values(value)) add(item)
    else if (typeof value === 'string' || typeof value === 'number') {
      exact.add(String(value))
      if (withTimes) exact.add(String(millisecondsOf(value)))
    }
  }
  add(file)
  return { exact, texts: [...exact].filter(text => text.length > 1) }
}

function millisecondsOf(value: string | number): number {
  if (typeof value === 'number') return Math.round(value * 1000)
  return /^\d{4}-\d\d-\d\dT/.test(value) ? Date.parse(value) : Number.NaN
}

/** Kinds of things, which the messages express by their own kinds. */
const KINDS = new Set(['type', 'role', 'lc', 'state', 'object'])

interface Compared {
  /** The shortest paths under which nothing was read. */
  paths: string[]
  leaves: number
  missing: number
}

function compare(value: unknown, path: string, found: Values): Compared {
  if (Array.isArray(value))
    return join(
      value.map(item => compare(item, path, found)),
      path,
    )
  if (isRecord(value)) {
    const inside = Object.entries(value).flatMap(([name, item]) =>
      KINDS.has(name) && !isRecord(item) && !Array.isArray(item)
        ? []
        : [compare(item, path === '' ? name : `${path}.${name}`, found)],
    )
    return join(inside, path)
  }
  const isLeaf = (typeof value === 'string' && value !== '') || typeof value === 'number'
  if (!isLeaf) return { paths: [], leaves: 0, missing: 0 }
  if (isFound(value, found)) return { paths: [], leaves: 1, missing: 0 }
  const written = typeof value === 'string' ? parseJson(value) : undefined
  if (isRecord(written) || Array.isArray(written)) return compare(written, path, found)
  return { paths: [path], leaves: 1, missing: 1 }
}

/** What holds everything that a message says is never missing as a whole. */
const WHOLES = new Set(['', 'parts', 'content', 'content.parts', 'data', 'kwargs', 'message', 'payload'])

/** What is missing entirely is named once, by the path of the whole. */
function join(parts: readonly Compared[], path: string): Compared {
  const leaves = parts.reduce((sum, part) => sum + part.leaves, 0)
  const missing = parts.reduce((sum, part) => sum + part.missing, 0)
  const paths =
    !WHOLES.has(path) && missing > 0 && missing === leaves ? [path] : parts.flatMap(part => part.paths)
  return { paths: [...new Set(paths)], leaves, missing }
}

function isFound(value: string | number, { exact, texts }: Values): boolean {
  const words = String(value)
  if (exact.has(words)) return true
  if (typeof value === 'number') return false
  const inline = /^data:[^,]*,/.exec(words.slice(0, 200))
  if (inline && exact.has(words.slice(inline[0].length))) return true
  const time = words.length < 40 ? Date.parse(words) : Number.NaN
  if (!Number.isNaN(time) && exact.has(String(time))) return true
  return texts.some(text => text.includes(words))
}
