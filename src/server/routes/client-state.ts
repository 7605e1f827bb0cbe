import { z } from 'zod'
import { isRecord } from '../../base/is-record.js'
import { AgentError } from '../../errors.js'
import type { State } from '../../session/message.js'
import { checkCount } from '../refusal.js'
import type { ServerLimits } from '../server-context.js'

const REFUSED_PREFIXES = ['lango:', 'app:']

/** An object with any keys. Zod's own record drops `__proto__` silently. */
export const JsonObject = z.custom<Record<string, unknown>>(isRecord, 'Invalid input: expected an object')

/**
 * State that a client may set. Lango's own keys hold approvals, and an app's keys are shared by all users: a client
 * may write neither. `__proto__` is refused at any depth, because an assignment under this name
 * changes an object instead of adding to it; `constructor` and all other names are ordinary keys.
 */
export function clientState(
  delta: Readonly<Record<string, unknown>>,
  { maxStateKeys }: Pick<ServerLimits, 'maxStateKeys'>,
): State {
  const keys = Object.keys(delta)
  checkCount({ limit: 'maxStateKeys', most: maxStateKeys, sent: keys.length })
  for (const key of keys) {
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
