/** Google's error bodies. */
import type { HttpError } from '../family.js'
import type { Fault } from '../script.js'
import type { Violation } from '../violation.js'
import { overflowMessage } from './turn-rules.js'

const STATUS_NAMES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
}

export function googleError(status: number, message: string, details?: unknown): HttpError {
  const error = { code: status, message, status: STATUS_NAMES[status] ?? 'UNKNOWN' }
  return { status, body: { error: details === undefined ? error : { ...error, details } } }
}

export function googleRefusal(violation: Violation): HttpError {
  return googleError(violation.status, violation.message, violation.details)
}

const QUOTA_WORDS =
  'You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.'

/** The HTTP error of a fault, or nothing when the fault is not one. */
export function googleFault(fault: Fault, contextWindow: number): HttpError | undefined {
  switch (fault.kind) {
    case '429':
      return exhausted(fault.retryAfter ?? 1, 'GenerateRequestsPerMinutePerProjectPerModel')
    case 'quota':
      return exhausted(undefined, 'GenerateRequestsPerDayPerProjectPerModel-FreeTier')
    case '500':
      return googleError(
        500,
        'An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting',
      )
    case 'auth':
      return googleError(400, 'API key not valid. Please pass a valid API key.', [
        {
          '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
          reason: 'API_KEY_INVALID',
          domain: 'googleapis.com',
          metadata: { service: 'generativelanguage.googleapis.com' },
        },
      ])
    case 'context-overflow':
      return googleError(400, overflowMessage(contextWindow + 65_536, contextWindow))
    case '503':
    case '529':
      return overloaded(fault)
    default:
      return undefined
  }
}

export function overloaded(fault: Fault): HttpError {
  const error = googleError(503, 'The model is overloaded. Please try again later.')
  if (fault.retryAfter === undefined) return error
  return { ...error, headers: { 'retry-after': String(fault.retryAfter) } }
}

function exhausted(retryAfter: number | undefined, quotaId: string): HttpError {
  const violation = {
    quotaMetric: 'generativelanguage.googleapis.com/generate_content_free_tier_requests',
    quotaId,
    quotaDimensions: { location: 'global', model: 'gemini' },
    quotaValue: '10',
  }
  const details: unknown[] = [
    { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [violation] },
  ]
  if (retryAfter === undefined) return googleError(429, QUOTA_WORDS, details)
  details.push({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${retryAfter}s` })
  return googleError(429, `${QUOTA_WORDS}\nPlease retry in ${retryAfter}s.`, details)
}
