import { z } from 'zod'
import { isRecord } from '../../base/is-record.js'
import { AgentError } from '../../errors.js'
import type { State } from '../../session/message.js'

const REFUSED_PREFIXES = ['lango:', 'app:']
const MAXIMUM_DEPTH = 50

/** An object with any keys. Zod's own record drops `__proto__` silently. */
export const JsonObject = z.custom<Record<string, unknown>>(isRecord, 'Invalid input: expected an object')

/**
 * State that a client may set. Lango's own keys hold approvals, and an app's keys are shared by all users: a client
 * may write neither. `__proto__` is refused at any depth, because an assignment under this name
 * changes an object instead of adding to it; `constructor` and all other names are ordinary keys.
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
  if (hasPrototypeKey(delta))
    throw new AgentError('invalid-argument', 'The state key "__proto__" cannot be set by a client.')
  return delta
}

function hasPrototypeKey(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return Object.hasOwn(value, '__proto__') || Object.values(value).some(hasPrototypeKey)
}

/** The JSON of a body. Deeper nesting than the limit is refused. */
export function clientJson(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new AgentError('invalid-argument', 'The body of the request is not JSON.')
  }
  checkDepth(value, 0)
  return value
}

function checkDepth(value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null) return
  if (depth > MAXIMUM_DEPTH) throw new AgentError('invalid-argument', 'The JSON is nested too deeply.')
  for (const item of Object.values(value)) checkDepth(item, depth + 1)
}
