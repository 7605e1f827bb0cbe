/** Half a surrogate pair is no character: servers refuse the body or the JSON decoder does. */
import type { ProviderPart } from '../provider.js'
import { type Entry, replaceAllParts, type StepContext } from './receipt.js'

/** Replaces lone surrogates by U+FFFD in every text, name, id, argument and result. */
export function wellFormedText(entries: readonly Entry[], { report }: StepContext): readonly Entry[] {
  return replaceAllParts(entries, mendPart, entry => {
    const detail = 'Lone surrogates were replaced by U+FFFD.'
    report({ step: 'well-formed-text', kind: 'replace-characters', at: entry.at, detail })
    return entry
  })
}

// JSON nested deeper than this is nobody's message, and walking it could exhaust the stack.
const DEEPEST = 200

function mendPart(part: ProviderPart): ProviderPart {
  // Signatures and base64 data are opaque ASCII; everything else in a part is text or JSON.
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return isWellFormed(part.text) ? part : { ...part, text: toWellFormed(part.text) }
    case 'tool-call':
    case 'tool-result':
    case 'media':
    case 'vendor':
      return mendValue(part, 0) as ProviderPart
  }
}

function mendValue(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return isWellFormed(value) ? value : toWellFormed(value)
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return value
  return Array.isArray(value) ? mendList(value, depth) : mendFields(value as Record<string, unknown>, depth)
}

function mendList(list: readonly unknown[], depth: number): unknown {
  let changed: unknown[] | undefined
  for (let index = 0; index < list.length; index++) {
    const mended = mendValue(list[index], depth + 1)
    if (mended === list[index]) continue
    changed ??= list.slice()
    changed[index] = mended
  }
  return changed ?? list
}

function mendFields(fields: Readonly<Record<string, unknown>>, depth: number): unknown {
  let ill = false
  for (const key in fields) {
    if (!isWellFormed(key) || mendValue(fields[key], depth + 1) !== fields[key]) ill = true
  }
  if (!ill) return fields
  const entries = Object.entries(fields)
  return Object.fromEntries(entries.map(([key, value]) => [toWellFormed(key), mendValue(value, depth + 1)]))
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
