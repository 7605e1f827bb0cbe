/** Anthropic's error bodies. */
import type { HttpError } from '../family.js'
import type { Fault } from '../script.js'
import { freshToken } from '../seal.js'
import type { Violation } from '../violation.js'
import { promptTooLong } from './conversation-rules.js'

export function anthropicError(
  status: number,
  type: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): HttpError {
  const requestId = `req_${freshToken(24)}`
  return {
    status,
    body: { type: 'error', error: { type, message }, request_id: requestId },
    headers: { 'request-id': requestId, ...headers },
  }
}

export function anthropicRefusal(violation: Violation): HttpError {
  return anthropicError(violation.status, 'invalid_request_error', violation.message)
}

/** The HTTP error of a fault, or nothing when the fault is not one. */
export function anthropicFault(fault: Fault, contextWindow: number): HttpError | undefined {
  const wait: Record<string, string> =
    fault.retryAfter === undefined ? {} : { 'retry-after': String(fault.retryAfter) }
  switch (fault.kind) {
    case '429':
      return anthropicError(
        429,
        'rate_limit_error',
        "This request would exceed your organization's rate limit of 50,000 input tokens per minute (org: strict, model: claude). For details, refer to: https://docs.claude.com/en/api/rate-limits.",
        {
          'retry-after': String(fault.retryAfter ?? 1),
          'anthropic-ratelimit-input-tokens-limit': '50000',
          'anthropic-ratelimit-input-tokens-remaining': '0',
        },
      )
    case 'quota':
      return anthropicError(
        402,
        'billing_error',
        'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.',
      )
    case '500':
      return anthropicError(500, 'api_error', 'Internal server error')
    case '503':
      return anthropicError(503, 'api_error', 'Service temporarily unavailable', wait)
    case '529':
      return anthropicError(529, 'overloaded_error', 'Overloaded', wait)
    case 'auth':
      return anthropicError(401, 'authentication_error', 'invalid x-api-key')
    case 'context-overflow':
      return anthropicRefusal(promptTooLong(contextWindow + 13_462, contextWindow))
    default:
      return undefined
  }
}
