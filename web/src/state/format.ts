/** Numbers and times as people read them. */

/** `1,234`, `12.3k`, `1.2M`. */
export function formatTokens(tokens: number): string {
  if (tokens < 10_000) return tokens.toLocaleString('en-US')
  if (tokens < 1_000_000) return `${trimmed(tokens / 1000)}k`
  return `${trimmed(tokens / 1_000_000)}M`
}

/** Dollars, with as many digits as a small sum needs. */
export function formatCost(cost: number): string {
  if (cost === 0) return '$0'
  if (cost < 0.0001) return '< $0.0001'
  return cost < 0.1 ? `$${cost.toFixed(4)}` : `$${cost.toFixed(2)}`
}

/** The cost of model calls. */
export function formatCallCost(cost: number): string {
  return cost === 0 ? 'free' : formatCost(cost)
}

/** `340 ms`, `2.4 s`, `3 min 5 s`. */
export function formatDuration(durationMs: number): string {
  if (durationMs < 1000) return `${Math.round(durationMs)} ms`
  if (durationMs < 60_000) return `${trimmed(durationMs / 1000)} s`
  const seconds = Math.round(durationMs / 1000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** `12 KB`, `3.4 MB`. */
export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 1024)} KB`
  return `${trimmed(bytes / 1024 / 1024)} MB`
}

/** How long ago, in the fewest letters: `now`, `5 m`, `3 h`, `2 d`, then a date. */
export function formatAge(timestamp: number, now: number): string {
  const minutes = Math.floor((now - timestamp) / 60_000)
  if (minutes < 1) return 'now'
  if (minutes < 60) return `${minutes} m`
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h`
  if (minutes < 7 * 24 * 60) return `${Math.floor(minutes / 60 / 24)} d`
  return new Date(timestamp).toLocaleDateString(undefined, { month: 'short', day: 'numeric' })
}

/** JSON as it is read best; text as it is. */
export function formatValue(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? String(value))
}

/** The arguments of a call on one line: `city: "Oslo", days: 3`. */
export function summarize(args: unknown, length = 90): string {
  if (args === undefined || args === null) return ''
  const text =
    typeof args === 'object'
      ? Object.entries(args)
          .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
          .join(', ')
      : String(args)
  return text.length > length ? `${text.slice(0, length - 1)}…` : text
}

function trimmed(value: number): string {
  return value.toFixed(value < 100 ? 1 : 0).replace(/\.0$/, '')
}
