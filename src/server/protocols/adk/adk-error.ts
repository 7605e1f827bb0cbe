import { errorResponse } from '../../error-response.js'
import type { ServerContext } from '../../server-context.js'

/** ADK's clients for JavaScript read `error`, those for Python `detail`: both say the same. */
export async function adkError(error: unknown, { logger }: ServerContext): Promise<Response> {
  const problem = errorResponse(error, logger)
  const { detail, code } = (await problem.json()) as { detail: string; code: string }
  const headers = new Headers(problem.headers)
  headers.set('content-type', 'application/json; charset=utf-8')
  return new Response(JSON.stringify({ error: detail, detail, code }), { status: problem.status, headers })
}
