/** A JSON value as the lines of a foldable tree. Only what is open costs anything, however large the value is. */

export interface JsonLine {
  /** Keys from the root, joined; unique within a value. */
  path: string
  depth: number
  /** The key or the index; empty for the root. */
  name: string
  kind: 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null'
  /** The value of a leaf as JSON; for a branch how much it holds. */
  text: string
  /** Absent for a leaf. */
  open?: boolean
}

/** The lines that are visible with these paths open. */
export function jsonLines(value: unknown, open: ReadonlySet<string>): JsonLine[] {
  const lines: JsonLine[] = []
  const waiting: { value: unknown; path: string; name: string; depth: number }[] = [
    { value, path: ROOT, name: '', depth: 0 },
  ]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { path, name, depth } = next
    const children = childrenOf(next.value)
    const kind = kindOf(next.value)
    if (!children) {
      lines.push({ path, depth, name, kind, text: JSON.stringify(next.value) ?? 'null' })
      continue
    }
    const isOpen = open.has(path)
    lines.push({ path, depth, name, kind, text: sizeText(kind, children.length), open: isOpen })
    if (!isOpen) continue
    for (const [key, child] of children.toReversed()) {
      waiting.push({ value: child, path: childPath(path, key), name: key, depth: depth + 1 })
    }
  }
  return lines
}

/** Where a text occurs, in keys and in values, without regard to case; at most `limit` places. */
export function searchJson(value: unknown, query: string, limit = 500): string[] {
  const wanted = query.trim().toLowerCase()
  if (wanted === '') return []
  const found: string[] = []
  const waiting: { value: unknown; path: string; name: string }[] = [{ value, path: ROOT, name: '' }]
  for (let next = waiting.pop(); next !== undefined && found.length < limit; next = waiting.pop()) {
    const { path, name } = next
    const children = childrenOf(next.value)
    const text = children ? '' : String(next.value).toLowerCase()
    if (name.toLowerCase().includes(wanted) || text.includes(wanted)) found.push(path)
    for (const [key, child] of children?.toReversed() ?? []) {
      waiting.push({ value: child, path: childPath(path, key), name: key })
    }
  }
  return found
}

/** The branches that must be open for a path to be seen. */
export function ancestorsOf(path: string): string[] {
  const keys = path.split(SEPARATOR)
  return keys.slice(0, -1).map((_, index) => keys.slice(0, index + 1).join(SEPARATOR))
}

/** The root and what stands directly below it, if that is not long. */
export function firstOpen(value: unknown): Set<string> {
  const short = (childrenOf(value) ?? []).filter(([, child]) => (childrenOf(child)?.length ?? 0) <= 12)
  return new Set([ROOT, ...short.map(([key]) => childPath(ROOT, key))])
}

const ROOT = '$'
/** No key of a vendor's body holds this character. */
const SEPARATOR = '\u001f'

function childPath(path: string, key: string): string {
  return `${path}${SEPARATOR}${key}`
}

function childrenOf(value: unknown): [string, unknown][] | undefined {
  return typeof value === 'object' && value !== null ? Object.entries(value) : undefined
}

function kindOf(value: unknown): JsonLine['kind'] {
  if (value === null || value === undefined) return 'null'
  if (Array.isArray(value)) return 'array'
  const kind = typeof value
  return kind === 'object' || kind === 'number' || kind === 'boolean' ? kind : 'string'
}

function sizeText(kind: JsonLine['kind'], size: number): string {
  const word = kind === 'array' ? 'item' : 'field'
  return `${size} ${word}${size === 1 ? '' : 's'}`
}
