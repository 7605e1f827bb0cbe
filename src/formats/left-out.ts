/**
 * What of a file is not in the messages that were read from it: ids, usage, settings of a framework. Found by comparing
 * the values and not by a list of fields, so that a field which a later version of the framework adds is named too.
 */

import { isRecord } from '../base/is-record.js'
import { parseJson } from '../base/json.js'
import type { Fields, WireMessage } from './wire-parts.js'

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
  return [...counts].map(([path, count]) => (count === 1 ? path : `${path} (${count})`))
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
  const exact = new Set<string>()
  const add = (value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) add(item)
    else if (isRecord(value)) for (const item of Object.values(value)) add(item)
    else if (typeof value === 'string' || typeof value === 'number') exact.add(String(value))
  }
  for (const { parts, timestamp, role } of messages) {
    add(parts)
    exact.add(role)
    if (timestamp !== undefined) exact.add(new Date(timestamp).toISOString()).add(String(timestamp))
  }
  return { exact, texts: [...exact].filter(text => text.length > 1) }
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
