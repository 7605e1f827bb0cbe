import { AgentError, type AgentErrorOptions } from '../../errors.js'
import type { Usage } from '../../session/usage.js'
import type { ResponseAccumulator } from './response-accumulator.js'

/** The reason that makes a call worth one more try. */
export const MALFORMED_CALL = 'malformed-call'

/**
 * Why what was gathered is no answer: it did not come to its end, or it ended without any content and not by
 * the model's own choice. Silence of the model's own is an answer: a run asks for more.
 */
export function noAnswer(answer: ResponseAccumulator, model: string): AgentError | undefined {
  const { finishReason, finishMessage, usage } = answer
  if (finishReason === undefined) return cutShort(model)
  if (answer.hasOutput) return undefined
  const said = finishMessage ? ` The provider says: ${finishMessage}` : ''
  switch (finishReason) {
    case 'stop':
    case 'tool-calls':
      return undefined
    case 'malformed-call':
      return malformedCall(model)
    case 'blocked': {
      const advice = 'Change the request, or use another model.'
      const message = `${model} refused to answer, or its answer was blocked. ${advice}${said}`
      return new AgentError('provider-blocked', message, { details: facts('blocked', usage) })
    }
    case 'length': {
      const advice = 'Raise maxOutputTokens, or lower the thinking.'
      const message = `${model} used up the tokens of its answer before it said anything. ${advice}${said}`
      return new AgentError('provider-stream', message, { details: facts('length', usage) })
    }
    default: {
      const message = `${model} ended its answer before it said anything. Try again.${said}`
      return new AgentError('provider-stream', message, { retryable: true, details: facts('other', usage) })
    }
  }
}

function cutShort(model: string): AgentError {
  const message = `The answer of ${model} ended without its end: the stream was cut. Try again.`
  return new AgentError('provider-stream', message, { retryable: true })
}

function malformedCall(model: string): AgentError {
  const message = `${model} tried to call a tool and wrote a call that cannot be read. Try again.`
  return new AgentError('provider-stream', message, { retryable: true, details: { reason: MALFORMED_CALL } })
}

/** An answer that says nothing was paid for all the same, and with an error ADK makes no event that could tell. */
function facts(reason: string, usage: Usage | undefined): NonNullable<AgentErrorOptions['details']> {
  return usage ? { reason, usage } : { reason }
}
