import type { Problem } from '../server/chat-protocol.js'

/** What the server refused, or why it could not be reached. */
export class ClientError extends Error {
  override readonly name = 'ClientError'
  readonly problem: Problem
  /** Seconds after which the server asks to be tried again. */
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
  const detail = 'The server cannot be reached. Is it running, and is the network there?'
  const problem = { type: 'about:blank', title: 'Unreachable', status: 0, detail, retryable: true }
  return new ClientError({ ...problem, code: 'internal' }, { cause })
}

/** The error that an answer tells of. Proxies answer with pages of their own, so anything may stand in it. */
export async function errorOf(response: Response): Promise<ClientError> {
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
  const options = Number.isFinite(retryAfter) ? { retryAfterSeconds: retryAfter } : {}
  try {
    const problem: unknown = await response.json()
    if (isProblem(problem)) return new ClientError(problem, options)
  } catch {
    // Not JSON: the status has to tell.
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
