import { type AgentErrorCode, messageOf } from '../errors.js'
import type { Problem } from './chat-protocol.js'

/** The codes of problems that only the server raises. */
export type RefusalCode = Exclude<Problem['code'], AgentErrorCode>

export interface RefusalOptions {
  details?: Record<string, unknown>
  /** When the request may be retried. */
  retryAfterSeconds?: number
}

/** A request that the server refuses because of its caller, its size, a limit or a shutdown. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly code: RefusalCode
  readonly retryAfterSeconds: number | undefined
  readonly details: Readonly<Record<string, unknown>> | undefined

  constructor(code: RefusalCode, message: string, options: RefusalOptions = {}) {
    super(message)
    this.code = code
    this.retryAfterSeconds = options.retryAfterSeconds
    this.details = options.details
  }
}

/**
 * A failure after the message of a request was stored. Clients repeat a request by its status, so the answer has one
 * that no client repeats: the message would be stored twice, and its tools would run twice.
 */
export class StoredFailure extends Error {
  override readonly name = 'StoredFailure'
  readonly failure: unknown

  constructor(failure: unknown) {
    super(messageOf(failure), { cause: failure })
    this.failure = failure
  }
}

/** A run that another process continues because this one ends: the server recognises the repeated request as the same run. */
export function handedOver(): Refusal {
  const message =
    'The server is shutting down, and another process continues the run. Repeat the request: it returns the whole answer and starts no second run.'
  return new Refusal('shutting-down', message, { retryAfterSeconds: 1 })
}

/** True if the request is to be sent again: nothing of it was stored, or its run was handed over. */
export function isShuttingDown(error: unknown): boolean {
  return error instanceof Refusal && error.code === 'shutting-down'
}

/** For what does not exist and for what belongs to another user: the caller cannot tell them apart. */
export function notFound(what: string): Refusal {
  return new Refusal('not-found', `There is no ${what}.`)
}

/** Limits of what a request may hold, each with the setting that changes it. */
const COUNTS = {
  maxBodyBytes: { code: 'too-large', what: 'bytes in the body' },
  maxMessages: { code: 'too-large', what: 'messages' },
  maxStateKeys: { code: 'too-large', what: 'state keys' },
  maxValues: { code: 'too-large', what: 'JSON values in the body' },
  maxParts: { code: 'too-complex', what: 'parts in one message' },
  maxDepth: { code: 'too-complex', what: 'levels of nested JSON' },
} as const satisfies Record<string, { code: RefusalCode; what: string }>

export interface Excess {
  limit: keyof typeof COUNTS
  most: number
  sent: number
  /** Counting ended at the limit: more may have been sent. */
  isAtLeast?: boolean
  /** The field of the body that is too long. */
  field?: string
}

/** A request that holds more than a limit allows: names what was sent, the limit, and its setting. */
export function beyond({ limit, most, sent, isAtLeast = false, field }: Excess): Refusal {
  const { code, what } = COUNTS[limit]
  const setting = `server.${limit}`
  const amount = `${isAtLeast ? 'at least ' : ''}${sent}`
  const message = `The request has ${amount} ${what}, but the limit is ${most}. Send less, or raise ${setting}.`
  const details = { limit: most, sent, setting, ...(field === undefined ? {} : { field }) }
  return new Refusal(code, message, { details })
}

/** Refuses a count beyond its limit. */
export function checkCount(excess: Excess): void {
  if (excess.sent > excess.most) throw beyond(excess)
}
