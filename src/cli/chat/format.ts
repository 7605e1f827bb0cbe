/** Numbers, times and arguments in the few characters that a terminal has for them. */
import { isRecord } from '../../base/is-record.js'
import { plainLine } from '../plain-text.js'

/** `950`, `1.2k`, `34k`, `1.2M`. */
export function formatCount(count: number): string {
  if (count < 1000) return String(count)
  if (count < 999_500) return `${trimZero((count / 1000).toFixed(count < 99_950 ? 1 : 0))}k`
  return `${trimZero((count / 1_000_000).toFixed(1))}M`
}

/** The cost of model calls. Dollars: two digits, and more of them when the sum is small. */
export function formatCost(dollars: number): string {
  if (dollars === 0) return 'free'
  if (dollars < 0.0001) return '<$0.0001'
  return `$${dollars.toFixed(dollars < 0.1 ? 4 : 2)}`
}

export function formatBytes(bytes: number): string {
  return bytes < 1024 ? `${bytes} B` : `${(bytes / 1024).toFixed(1)} KB`
}

/** `12 ms`, `1.4 s`, `2 min 5 s`. */
export function formatDuration(milliseconds: number): string {
  const rounded = Math.max(0, Math.round(milliseconds))
  if (rounded < 1000) return `${rounded} ms`
  if (rounded < 59_950) return `${(rounded / 1000).toFixed(1)} s`
  const seconds = Math.round(rounded / 1000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** Arguments as a person would write a call: `path: "a.txt", lines: 3`. */
export function formatArguments(args: unknown): string {
  if (!isRecord(args)) return args === undefined ? '' : plainLine(jsonOf(args))
  return plainLine(
    Object.entries(args)
      .map(([name, value]) => `${name}: ${jsonOf(value)}`)
      .join(', '),
  )
}

/** One argument per entry, texts as they are: what somebody must read before saying yes. */
export function argumentEntries(args: unknown): { name: string; text: string }[] {
  if (!isRecord(args)) return args === undefined ? [] : [{ name: '', text: jsonOf(args) }]
  return Object.entries(args).map(([name, value]) => ({
    name,
    text: typeof value === 'string' ? value : jsonOf(value),
  }))
}

/** What a tool answered, in words where it has some. */
export function formatResult(result: unknown): string {
  if (typeof result === 'string') return result
  if (!isRecord(result)) return jsonOf(result)
  const entries = Object.entries(result)
  const [only] = entries
  if (entries.length === 1 && only && WORDS.has(only[0]) && typeof only[1] === 'string') return only[1]
  return entries.map(([name, value]) => `${name}: ${jsonOf(value)}`).join(', ')
}

const WORDS: ReadonlySet<string> = new Set(['result', 'error', 'output', 'text', 'content'])

const MAXIMUM_JSON = 20_000

function jsonOf(value: unknown): string {
  const text = safeJson(value)
  return text.length > MAXIMUM_JSON ? `${text.slice(0, MAXIMUM_JSON)}…` : text
}

function safeJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    return String(value)
  }
}

function trimZero(text: string): string {
  return text.replace(/\.0$/, '')
}
