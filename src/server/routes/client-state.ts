import { AgentError } from '../../errors.js'
import type { State } from '../../session/message.js'

const REFUSED_PREFIXES = ['lango:', 'app:']
const MAXIMUM_DEPTH = 50

/**
 * State that a client may set. Lango's own keys hold what was approved, and an app's keys are everybody's:
 * neither is a client's to write. Keys that mean something to JavaScript's objects are dropped at any depth.
 */
export function clientState(delta: Readonly<Record<string, unknown>>): State {
  for (const key of Object.keys(delta)) {
    const prefix = REFUSED_PREFIXES.find(refused => key.toLowerCase().startsWith(refused))
    if (prefix) {
      throw new AgentError(
        'invalid-argument',
        `State keys that begin with "${prefix}" cannot be set by a client.`,
      )
    }
  }
  return withoutPrototypeKeys(delta) as State
}

/** The same JSON data without `__proto__`, `constructor` and `prototype` as keys. */
export function withoutPrototypeKeys(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth > MAXIMUM_DEPTH) throw new AgentError('invalid-argument', 'The JSON is nested too deeply.')
  if (Array.isArray(value)) return value.map(entry => withoutPrototypeKeys(entry, depth + 1))
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== '__proto__' && key !== 'constructor' && key !== 'prototype')
      .map(([key, entry]) => [key, withoutPrototypeKeys(entry, depth + 1)]),
  )
}
