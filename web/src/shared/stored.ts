import { useSyncExternalStore } from 'react'

/**
 * What the browser keeps for the page. Storage may be closed to the page or full; then what is written lasts as
 * long as the page, and nothing breaks.
 */
const remembered = new Map<string, string>()
const listeners = new Set<() => void>()

type Area = 'local' | 'session'

/** What was kept under a name. */
export function readStored(name: string, area: Area = 'local'): string | undefined {
  const here = remembered.get(name)
  if (here !== undefined) return here
  try {
    return storage(area).getItem(name) ?? undefined
  } catch {
    return undefined
  }
}

/** Keeps a text under a name; nothing is kept of `undefined`. */
export function writeStored(name: string, value: string | undefined, area: Area = 'local'): void {
  remembered.delete(name)
  try {
    if (value === undefined) storage(area).removeItem(name)
    else storage(area).setItem(name, value)
  } catch {
    if (value !== undefined) remembered.set(name, value)
  }
  for (const listener of listeners) listener()
}

/** As `readStored`; the component is rendered again when another one keeps something else under the name. */
export function useStored(name: string): string | undefined {
  return useSyncExternalStore(subscribe, () => readStored(name))
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** The mere look at a closed storage throws. */
function storage(area: Area): Storage {
  return area === 'local' ? localStorage : sessionStorage
}
