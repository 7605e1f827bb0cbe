import type { Problem } from '../server/chat-protocol.js'

/**
 * A request that the server refused, or that did not reach it. `status` is 0 when the server could not be reached.
 *
 * ```ts no-run: needs a running server
 * import { ClientError, createClient } from 'lango/client'
 * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
 * const session = await client.session('trip').catch((error: unknown) => {
 *   if (error instanceof ClientError && error.code === 'session-not-found') return undefined
 *   throw error
 * })
 * console.log(session?.title)
 * ```
 */
export class ClientError extends Error {
  override readonly name = 'ClientError'
  readonly problem: Problem
  /** The server's Retry-After, in seconds. */
  readonly retryAfterSeconds: number | undefined

  constructor(problem: Problem, options: { retryAfterSeconds?: number | undefined; cause?: unknown } = {}) {
    super(problem.detail, options.cause === undefined ? undefined : { cause: options.cause })
    this.problem = problem
    this.retryAfterSeconds = options.retryAfterSeconds
  }

  get code(): Problem['code'] {
    return this.problem.code
  }

  get status(): number {
    return this.problem.status
  }

  get retryable(): boolean {
    return this.problem.retryable
  }
}

/** The server could not be reached, or the connection broke before it answered. */
export function unreachable(cause: unknown): ClientError {
  const detail = 'The server cannot be reached. Check that it is running and that the network is available.'
  const problem = { type: 'about:blank', title: 'Unreachable', status: 0, detail, retryable: true }
  return new ClientError({ ...problem, code: 'internal' }, { cause })
}

/** A successful answer that is not JSON: a proxy's page, or another server at this address. */
export function notJson({ status }: Response): (cause: unknown) => never {
  return cause => {
    const detail = `The answer (status ${status}) is not JSON, so it is not Lango's. Check the address of the server.`
    const problem = { type: 'about:blank', title: 'Not JSON', status, detail, retryable: false }
    throw new ClientError({ ...problem, code: 'internal' }, { cause })
  }
}

/** The error of a response. Proxies answer with pages of their own, so the body may be anything. */
export async function errorOf(response: Response): Promise<ClientError> {
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
  const options = Number.isFinite(retryAfter) ? { retryAfterSeconds: retryAfter } : {}
  try {
    const problem: unknown = await response.json()
    if (isProblem(problem)) return new ClientError(problem, options)
  } catch {
    // Not JSON: the status decides.
  }
  const { status } = response
  const detail = `The server answered with status ${status}.`
  const retryable = status === 429 || status >= 500
  const problem = { type: 'about:blank', title: `Status ${status}`, status, detail, retryable }
  return new ClientError({ ...problem, code: codeOf(status) }, options)
}

function isProblem(value: unknown): value is Problem {
  return (
    typeof value === 'object' && value !== null && 'code' in value && 'detail' in value && 'status' in value
  )
}

function codeOf(status: number): Problem['code'] {
  if (status === 401) return 'unauthorized'
  if (status === 403) return 'forbidden'
  if (status === 404) return 'not-found'
  return status === 413 ? 'too-large' : 'internal'
}
