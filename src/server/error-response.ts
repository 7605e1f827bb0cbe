/**
 * The one place where errors become HTTP: problem documents (RFC 9457). Internal errors are logged, not returned.
 *
 * - 401 is a wrong token of this server. A key that a model's provider refuses is the operator's: 403.
 * - 429 and 503 are answers to a request of which nothing was stored, or whose run is continued by another process, which
 *   recognises the repeated request (`x-should-retry` is `true`). They have a Retry-After.
 * - Once the message of a request is stored, its status is one of 400 to 407 and `x-should-retry` is `false`: OpenAI's
 *   client and the AI SDK repeat 408, 409, 429 and 5xx, LangChain all but 400 to 407, 409 and 413.
 */
import { AgentError, type AgentErrorCode, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import { stackFields } from '../observe/log.js'
import type { Problem } from './chat-protocol.js'
import { isShuttingDown, Refusal, type RefusalCode, StoredFailure } from './refusal.js'

/** An error as a response. The text of an internal error goes to the log only. */
export function errorResponse(failure: unknown, logger: Logger): Response {
  const problem = toProblem(failure)
  const isStored = failure instanceof StoredFailure
  const error = isStored ? failure.failure : failure
  if (toProblem(error).status === 500 || (error instanceof AgentError && isInternal(error))) {
    const isDefect =
      !(error instanceof AgentError) || error.code === 'internal' || error.code === 'agent-failed'
    logger.error('A request failed', {
      code: problem.code,
      reason: messageOf(error),
      ...(isDefect ? stackFields(error) : {}),
    })
  }
  const headers = new Headers({
    'content-type': 'application/problem+json; charset=utf-8',
    'cache-control': 'no-store',
  })
  if (isStored) headers.set('x-should-retry', 'false')
  const seconds = isStored ? undefined : retryAfter(error, problem)
  if (seconds !== undefined) headers.set('retry-after', String(seconds))
  if (isShuttingDown(error) && !isStored) headers.set('x-should-retry', 'true')
  if (problem.status === 401) headers.set('www-authenticate', 'Bearer realm="lango"')
  return new Response(JSON.stringify(problem), { status: problem.status, headers })
}

/** An error as a problem document. */
export function toProblem(error: unknown): Problem {
  if (error instanceof StoredFailure) return afterStoring(toProblem(error.failure))
  if (error instanceof Refusal) {
    const [status, title] = REFUSALS[error.code]
    const { code, message: detail, details } = error
    return {
      ...problem({ code, status, title, detail, retryable: status >= 429 }),
      ...(details ? { details: { ...details } } : {}),
    }
  }
  if (error instanceof AgentError) {
    const [status, title] = FAILURES[error.code]
    const detail = isInternal(error) ? INTERNAL : error.message
    const details = publicDetails(error)
    return {
      ...problem({ code: error.code, status, title, detail, retryable: error.retryable }),
      ...(details ? { details } : {}),
    }
  }
  return problem({
    code: 'internal',
    status: 500,
    title: 'Internal error',
    detail: UNEXPECTED,
    retryable: false,
  })
}

/** The problem of a request whose message is stored. A retry of the request would not be one of its message. */
function afterStoring(problem: Problem): Problem {
  const isFinal = problem.status >= 400 && problem.status <= 407
  return { ...problem, status: isFinal ? problem.status : 400, retryable: false }
}

const UNEXPECTED = 'The request failed because of an unexpected error. See the server’s log for details.'
const INTERNAL =
  'The request failed because of an internal error. See the server’s log for details, or try again later.'

/** Errors whose messages name files, hosts or settings of this machine, or are those of the agent's own code. */
function isInternal({ code }: { code: string }): boolean {
  return (
    code === 'internal' || code === 'agent-failed' || code === 'invalid-config' || code.startsWith('store-')
  )
}

/** The error of a run as clients may read it: the rule of responses. */
export function publicError<E extends { code: string; message: string }>(error: E): E {
  if (!isInternal(error)) return error
  return { ...error, message: INTERNAL, ...('details' in error ? { details: {} } : {}) }
}

function problem(facts: Omit<Problem, 'type'>): Problem {
  return { type: `urn:lango:problem:${facts.code}`, ...facts }
}

const REFUSALS: Readonly<Record<RefusalCode, readonly [number, string]>> = {
  unauthorized: [401, 'Not signed in'],
  forbidden: [403, 'Not allowed'],
  'not-found': [404, 'Not found'],
  'wrong-method': [405, 'Wrong method'],
  'too-large': [413, 'Too large'],
  'too-complex': [422, 'Too complex'],
  'too-many': [429, 'Too many concurrent requests'],
  'shutting-down': [503, 'Shutting down'],
}

const FAILURES: Readonly<Record<AgentErrorCode, readonly [number, string]>> = {
  'invalid-argument': [400, 'Invalid request'],
  'invalid-config': [500, 'Invalid configuration'],
  'store-unavailable': [503, 'The store is unavailable'],
  'store-corrupt': [500, 'The store is damaged'],
  'store-newer-schema': [500, 'The store is newer than this server'],
  'session-exists': [409, 'The session already exists'],
  'session-not-found': [404, 'Not found'],
  'session-busy': [409, 'The session is busy'],
  'lease-lost': [400, 'The session was taken over'],
  'agent-not-found': [422, 'No such agent'],
  'agent-failed': [500, 'The agent failed'],
  'history-illegal': [422, 'The provider would reject the history'],
  'context-overflow': [422, 'The context is too long'],
  'output-invalid': [422, 'The answer does not satisfy the schema'],
  'provider-auth': [403, 'The model provider refused the key'],
  'provider-rate-limit': [429, 'The rate limit of the model provider was reached'],
  'provider-quota': [402, 'The quota of the model provider is exhausted'],
  'provider-overloaded': [503, 'The model provider is overloaded'],
  'provider-unavailable': [502, 'The model provider cannot be reached'],
  'provider-rejected': [502, 'The model provider refused the request'],
  'provider-blocked': [422, 'The model provider blocked the content'],
  'provider-stream': [502, 'The model’s answer was truncated'],
  'run-interrupted': [400, 'The run was interrupted'],
  'run-not-found': [404, 'There is no such run'],
  'budget-spent': [402, 'The budget is spent'],
  'tool-outcome-unknown': [400, 'It is not known whether a tool call took effect'],
  aborted: [400, 'Stopped'],
  unsupported: [501, 'Not supported'],
  internal: [500, 'Internal error'],
}

function publicDetails(error: AgentError): Record<string, unknown> | undefined {
  if (isInternal(error) || Object.keys(error.details).length === 0) return undefined
  return { ...error.details }
}

function retryAfter(error: unknown, { status, retryable }: Problem): number | undefined {
  if (error instanceof Refusal && error.retryAfterSeconds !== undefined) return error.retryAfterSeconds
  return retryable && (status === 429 || status === 503) ? 1 : undefined
}
