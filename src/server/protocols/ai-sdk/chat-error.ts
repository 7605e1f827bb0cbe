import type { Problem } from '../../chat-protocol.js'
import { errorResponse } from '../../error-response.js'
import type { ServerContext } from '../../server-context.js'

/** The AI SDK shows the body of a refusal as it is, so it is a sentence and nothing else. */
export async function chatError(error: unknown, { logger }: ServerContext): Promise<Response> {
  const answer = errorResponse(error, logger)
  const { detail } = (await answer.json()) as Problem
  const headers = new Headers(answer.headers)
  headers.set('content-type', 'text/plain; charset=utf-8')
  return new Response(detail, { status: answer.status, headers })
}
