import { AgentError, messageOf } from '../errors.js'

/** The model named an agent that is not there. */
export function agentNotFound(name: string): AgentError {
  return new AgentError(
    'agent-not-found',
    `The model asked for the agent "${name}", which does not exist. Check the agents' names and descriptions.`,
    { details: { name } },
  )
}

/** Whatever was thrown inside a run, as our error. */
export function asAgentError(error: unknown): AgentError {
  if (error instanceof AgentError) return error
  const message = typeof error === 'string' ? error : messageOf(error)
  return new AgentError('internal', `The run failed inside ADK: ${message}`, { cause: error })
}

/** The retry error wins; what led to it is its cause. */
export function withCause(error: AgentError, cause: AgentError): AgentError {
  return new AgentError(error.code, error.message, {
    retryable: error.retryable,
    details: error.details,
    cause,
  })
}
