import { AgentError, type AgentErrorJson } from '../../errors.js'
import type { Problem } from '../chat-protocol.js'
import { toProblem } from '../error-response.js'
import { Refusal } from '../refusal.js'

/** The failure of a run as the problem that a caller may read: the same words and status as in the native API. */
export function runProblem(error: AgentError | AgentErrorJson): Problem {
  const { code, message, retryable, details } = error
  return toProblem(new AgentError(code, message, { retryable, details }))
}

/** What a caller is told when a run could not be followed to its end. */
export function brokenOff(): Problem {
  const message = 'The answer broke off before its end. What there is of it is in the session.'
  return toProblem(new Refusal('shutting-down', message))
}
