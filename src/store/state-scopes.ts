import { invariant } from '../errors.js'
import type { State } from '../session/message.js'
import { storableJson } from './check-input.js'

/** Who shares a piece of state. */
export type StateScope = 'app' | 'user' | 'session'

/** One change: the key without its prefix, and its value as JSON, or `undefined` to remove it. */
export interface StateChange {
  scope: StateScope
  key: string
  json: string | undefined
}

/**
 * Splits a delta by who shares it, in a fixed order, so that two writers of the same keys cannot deadlock. `temp:` keys live only during a run and are dropped here.
 */
export function splitDelta(field: string, delta: State | undefined): StateChange[] {
  if (delta === undefined) return []
  const changes: StateChange[] = []
  for (const [name, value] of Object.entries(delta)) {
    if (name.startsWith('temp:')) continue
    const json = value === undefined ? undefined : storableJson(`${field}[${JSON.stringify(name)}]`, value)
    changes.push({ ...scopeOf(name), json })
  }
  return changes.sort(byPlace)
}

/** The reverse for reading: entries with their prefixes, as one object in which `__proto__` is plain data. */
export function joinState(entries: Iterable<{ scope: StateScope; key: string; json: string }>): State {
  return Object.fromEntries(
    Array.from(entries, ({ scope, key, json }) => [prefixOf(scope) + key, JSON.parse(json)]),
  )
}

function scopeOf(name: string): { scope: StateScope; key: string } {
  if (name.startsWith('app:')) return { scope: 'app', key: name.slice(4) }
  if (name.startsWith('user:')) return { scope: 'user', key: name.slice(5) }
  return { scope: 'session', key: name }
}

function prefixOf(scope: StateScope): string {
  return scope === 'session' ? '' : `${scope}:`
}

const ORDER: readonly StateScope[] = ['app', 'user', 'session']

function byPlace(one: StateChange, other: StateChange): number {
  if (one.scope !== other.scope) return ORDER.indexOf(one.scope) - ORDER.indexOf(other.scope)
  invariant(one.key !== other.key, 'an object has each key once')
  return one.key < other.key ? -1 : 1
}
