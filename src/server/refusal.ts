import type { AgentErrorCode } from '../errors.js'
import type { Problem } from './chat-protocol.js'

/** The codes of problems that only the server raises. */
export type RefusalCode = Exclude<Problem['code'], AgentErrorCode>

export interface RefusalOptions {
  /** When the request may be retried. */
  retryAfterSeconds?: number
}

/** A request that the server refuses because of its caller, its size, a limit or a shutdown. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly code: RefusalCode
  readonly retryAfterSeconds: number | undefined

  constructor(code: RefusalCode, message: string, options: RefusalOptions = {}) {
    super(message)
    this.code = code
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

/** For what does not exist and for what belongs to another user: the caller cannot tell them apart. */
export function notFound(what: string): Refusal {
  return new Refusal('not-found', `There is no ${what}.`)
}
