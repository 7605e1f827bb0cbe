import type { Problem } from '../../chat-protocol.js'
import { errorResponse } from '../../error-response.js'
import { Refusal } from '../../refusal.js'
import type { ServerContext } from '../../server-context.js'

/** An error in OpenAI's format. */
export interface OpenaiError {
  error: {
    message: string
    type: string
    param: string | null
    code: string
    /** Lango's own code, where OpenAI has another one. */
    lango?: string
  }
}

/** A problem document in OpenAI's format. */
export function toOpenaiError({ detail, status, code, details }: Problem): OpenaiError {
  const field = details?.field
  return {
    error: {
      message: detail,
      type: isServerSide(status, code) ? 'server_error' : (TYPES.get(status) ?? 'invalid_request_error'),
      param: typeof field === 'string' && field !== '' ? field : null,
      code: typeof details?.openaiCode === 'string' ? details.openaiCode : (CODES.get(code) ?? code),
      ...(CODES.has(code) ? { lango: code } : {}),
    },
  }
}

/** The codes that OpenAI's clients look for. */
const CODES: ReadonlyMap<string, string> = new Map([
  ['unauthorized', 'invalid_api_key'],
  ['context-overflow', 'context_length_exceeded'],
  ['provider-rate-limit', 'rate_limit_exceeded'],
  ['too-many', 'rate_limit_exceeded'],
  ['provider-quota', 'insufficient_quota'],
  ['provider-blocked', 'content_filter'],
])

/** The failure of a run has a status that is not repeated, which is the client's fault in OpenAI's API. */
function isServerSide(status: number, code: string): boolean {
  return status >= 500 || /^(provider|store)-|^(internal|run-interrupted|shutting-down)$/.test(code)
}

const TYPES: ReadonlyMap<number, string> = new Map([
  [401, 'authentication_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [429, 'rate_limit_error'],
])

/** A request names a model that does not exist. */
export class UnknownModel extends Refusal {
  constructor(model: string) {
    super(
      'not-found',
      `Model "${model}" not found. GET /v1/models lists the models; "lango" is the agent with its own model.`,
    )
  }
}

/** Any error as a response in OpenAI's format. */
export async function openaiErrorResponse(error: unknown, { logger }: ServerContext): Promise<Response> {
  const answer = errorResponse(error, logger)
  const problem = (await answer.json()) as Problem
  const details = { field: 'model', openaiCode: 'model_not_found' }
  const isModel = error instanceof UnknownModel
  return withBody(answer, toOpenaiError(isModel ? { ...problem, details } : problem))
}

/** The problem of a run as a response. The message is stored by then, so the request is not to be repeated. */
export function openaiProblemResponse(problem: Problem, headers: Record<string, string>): Response {
  const answer = new Response(null, { status: problem.status, headers })
  answer.headers.set('x-should-retry', 'false')
  return withBody(answer, toOpenaiError(problem))
}

function withBody({ status, headers }: Response, body: OpenaiError): Response {
  const copy = new Headers(headers)
  copy.set('content-type', 'application/json; charset=utf-8')
  return new Response(JSON.stringify(body), { status, headers: copy })
}
