import { AgentError } from '../../errors.js'

/** Refuses a limit that is none: a timer would take it for one millisecond. `undefined` is the default. */
export function checkTimeLimit(toolName: string, option: string, limitMs: number | undefined): void {
  if (limitMs === undefined || (typeof limitMs === 'number' && limitMs > 0)) return
  const advice = 'Use a positive number of milliseconds, or Infinity for no limit.'
  throw new AgentError(
    'invalid-argument',
    `Tool "${toolName}" cannot have ${option} ${String(limitMs)}. ${advice}`,
    { details: { tool: toolName, option, value: String(limitMs) } },
  )
}

/** Calls `end` when the time is up; with `Infinity` it never is. The timer is for `clearTimeout`. */
export function startTimeLimit(end: () => void, limitMs: number): NodeJS.Timeout | undefined {
  return limitMs === Number.POSITIVE_INFINITY ? undefined : setTimeout(end, Math.min(limitMs, LONGEST_MS))
}

/** Almost 25 days. A timer that is set to more fires at once. */
const LONGEST_MS = 2 ** 31 - 1
