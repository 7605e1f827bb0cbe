/** Every way in which Lango can fail; the list is closed, so callers can switch on it. */
export type AgentErrorCode =
  | 'invalid-config'
  | 'invalid-argument'
  | 'store-unavailable'
  | 'store-corrupt'
  | 'store-newer-schema'
  | 'session-exists'
  | 'session-not-found'
  | 'session-busy'
  | 'lease-lost'
  | 'agent-not-found'
  | 'agent-failed'
  | 'history-illegal'
  | 'context-overflow'
  | 'provider-auth'
  | 'provider-rate-limit'
  | 'provider-quota'
  | 'provider-overloaded'
  | 'provider-unavailable'
  | 'provider-rejected'
  | 'provider-blocked'
  | 'provider-stream'
  | 'output-invalid'
  | 'run-interrupted'
  | 'run-not-found'
  | 'budget-spent'
  | 'tool-outcome-unknown'
  | 'aborted'
  | 'unsupported'
  | 'internal'

/** Further facts of an error. */
export interface AgentErrorOptions {
  /** True when the same call may succeed later without any change. Decided where the fact is known. */
  retryable?: boolean
  /** Facts for programs: status codes, keys, names. Never an API key or a prompt body. */
  details?: Readonly<Record<string, unknown>>
  cause?: unknown
}

/**
 * The one error class of Lango. The message says what was attempted, on what, and what to do about it;
 * `code` is for programs.
 *
 * ```ts
 * import { AgentError } from 'lango'
 *
 * export function isBusy(error: unknown): boolean {
 *   return error instanceof AgentError && error.code === 'session-busy'
 * }
 * ```
 */
export class AgentError extends Error {
  override readonly name = 'AgentError'
  readonly code: AgentErrorCode
  readonly retryable: boolean
  readonly details: Readonly<Record<string, unknown>>

  constructor(code: AgentErrorCode, message: string, options: AgentErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.retryable = options.retryable ?? false
    this.details = options.details ?? {}
  }

  /** What may be stored or sent: no stack, no cause. */
  toJSON(): AgentErrorJson {
    return { code: this.code, message: this.message, retryable: this.retryable, details: this.details }
  }
}

/** An `AgentError` as plain data, in run events and HTTP answers. */
export interface AgentErrorJson {
  code: AgentErrorCode
  message: string
  retryable: boolean
  details: Readonly<Record<string, unknown>>
}

/** Asserts what cannot be otherwise. A failure is a defect in Lango, not in what the caller did. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) {
    throw new AgentError('internal', `${message}. This is a defect in Lango: please report it.`)
  }
}

/** Refuses an argument of the wrong type, for callers without a type checker: `call` names the function. */
export function checkArgument(condition: boolean, call: string, problem: string): void {
  if (!condition) throw new AgentError('invalid-argument', `${call} ${problem}.`)
}

/** Refuses options that are not an object. */
export function checkOptions(options: unknown, call: string): void {
  checkArgument(isObject(options), call, 'needs an object of options')
}

/** Refuses messages that are not a list of objects. */
export function checkMessages(messages: unknown, call: string): void {
  checkArgument(Array.isArray(messages) && messages.every(isObject), call, 'needs a list of messages')
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The message of any thrown value. Never throws; long objects are shortened. */
export function messageOf(error: unknown): string {
  try {
    if (typeof error !== 'object' || error === null) return String(error)
    return messageIn(error) ?? (error instanceof Error ? wordlessError(error) : shownObject(error))
  } catch {
    // A getter or a proxy of other code may throw; the error that is being reported must still be reported.
    return 'an error whose message cannot be read'
  }
}

function messageIn(error: { message?: unknown }): string | undefined {
  return typeof error.message === 'string' && error.message !== '' ? error.message : undefined
}

/** Several errors in one (a connection tried at several addresses) often have no message of their own. */
function wordlessError(error: Error & { code?: unknown; errors?: unknown }): string {
  if (typeof error.code === 'string' && error.code !== '') return error.code
  const inner = Array.isArray(error.errors) ? error.errors.map(messageOf).join('; ') : ''
  return inner || String(error.name)
}

function shownObject(value: object): string {
  const tellsItself =
    !Array.isArray(value) && 'toString' in value && value.toString !== Object.prototype.toString
  const text = tellsItself ? String(value) : (jsonOf(value) ?? Object.prototype.toString.call(value))
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}

const MAX_SHOWN = 1_000

function jsonOf(value: object): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}
