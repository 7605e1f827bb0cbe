import type { Entry } from './entry.js'

/**
 * What an entry was called while its run was live, by what it is called now that it is stored. The list goes on
 * with the old names: a row that is suddenly another is measured anew, and the page jumps under its reader.
 */
export function keyAliases(live: readonly Entry[], stored: readonly Entry[]): ReadonlyMap<string, string> {
  const waiting = new Map<string, string[]>()
  for (const entry of live) waiting.set(nameOf(entry), [...(waiting.get(nameOf(entry)) ?? []), entry.key])
  const aliases = new Map<string, string>()
  for (const entry of stored) {
    const key = waiting.get(nameOf(entry))?.shift()
    if (key !== undefined) aliases.set(entry.key, key)
  }
  return aliases
}

/** Calls are known by their ids; all else of a kind comes in the same order. */
function nameOf(entry: Entry): string {
  return entry.kind === 'tool' ? `tool ${entry.callId}` : entry.kind
}
