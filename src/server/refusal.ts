import type { AgentErrorCode } from '../errors.js'
import type { Problem } from './chat-protocol.js'

/** The codes of problems that arise at the door and nowhere else in Lango. */
export type RefusalCode = Exclude<Problem['code'], AgentErrorCode>

export interface RefusalOptions {
  /** When the same request may be tried again. */
  retryAfterSeconds?: number
}

/** The server will not do it, for reasons of its own: who asks, how much, or when. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly retryAfterSeconds: number | undefined

  constructor(
    readonly code: RefusalCode,
    message: string,
    options: RefusalOptions = {},
  ) {
    super(message)
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

/** A thing that does not exist, or that is not the caller's to see: the answer is the same. */
export function notFound(what: string): Refusal {
  return new Refusal('not-found', `There is no ${what}.`)
}
