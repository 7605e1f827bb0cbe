import type { Context } from 'hono'
import { isRecord } from '../../../base/is-record.js'
import type { Problem } from '../../chat-protocol.js'
import { errorResponse } from '../../error-response.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { NO_PUSH, NOT_CANCELABLE, TASK_NOT_FOUND, UNSUPPORTED, WRONG_VERSION } from './a2a-wire.js'

/** Any error in the form of its binding: JSON-RPC's, or that of Google's APIs for REST. */
export async function a2aErrorResponse(
  error: unknown,
  { logger }: ServerContext,
  c: Context<ServerEnv>,
): Promise<Response> {
  const answer = errorResponse(error, logger)
  const problem = (await answer.json()) as Problem
  const headers = new Headers(answer.headers)
  headers.set('content-type', 'application/json; charset=utf-8')
  const body = c.req.path === '/a2a' ? await rpcError(c, problem) : restError(problem)
  return new Response(JSON.stringify(body), { status: answer.status, headers })
}

export function codeOf({ code, status, details }: Problem): number {
  if (typeof details?.a2aCode === 'number') return details.a2aCode
  if (code === 'invalid-argument') return -32602
  return status >= 500 ? -32603 : -32000
}

/** The id of the request, as far as it can be read. */
async function rpcError(c: Context<ServerEnv>, problem: Problem): Promise<object> {
  let body: unknown
  try {
    body = JSON.parse(await c.req.text())
  } catch {
    if (problem.code === 'invalid-argument') return rpcFailure(null, problem, -32700)
  }
  const id = isRecord(body) && (typeof body.id === 'string' || typeof body.id === 'number') ? body.id : null
  return rpcFailure(id, problem, codeOf(problem))
}

export function rpcFailure(id: unknown, { code, detail, details }: Problem, number: number): object {
  return { jsonrpc: '2.0', id, error: { code: number, message: detail, data: [{ code, ...details }] } }
}

const REASONS: ReadonlyMap<number, string> = new Map([
  [TASK_NOT_FOUND, 'TASK_NOT_FOUND'],
  [NOT_CANCELABLE, 'TASK_NOT_CANCELABLE'],
  [NO_PUSH, 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
  [UNSUPPORTED, 'UNSUPPORTED_OPERATION'],
  [WRONG_VERSION, 'VERSION_NOT_SUPPORTED'],
])

export function restError(problem: Problem): object {
  const { status: code, detail: message } = problem
  const reason = REASONS.get(codeOf(problem)) ?? problem.code.toUpperCase().replaceAll('-', '_')
  const type = 'type.googleapis.com/google.rpc.ErrorInfo'
  const details = [{ '@type': type, reason, domain: 'a2a-protocol.org' }]
  const status = code === 404 ? 'NOT_FOUND' : code >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT'
  return { error: { code, status, message, details } }
}
