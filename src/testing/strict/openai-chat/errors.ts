/** The error bodies of the servers that speak Chat Completions, and what they say when they are in trouble. */
import type { HttpError } from '../family.js'
import type { StrictProfile } from '../profile.js'
import type { Fault } from '../script.js'
import type { JudgeContext, Violation } from '../violation.js'
import { overflow } from './conversation-rules.js'
import { mistralOverflow } from './mistral-rules.js'

/** One refusal in the body of the profile's vendor. */
export function chatRefusal(violation: Violation, context: JudgeContext): HttpError {
  return { status: violation.status, body: errorBody(violation, context.profile) }
}

function errorBody(violation: Violation, profile: StrictProfile): unknown {
  const { message, param = null, errorCode = null, errorType = 'invalid_request_error' } = violation
  switch (profile) {
    case 'mistral':
      if (violation.details !== undefined) return { detail: violation.details }
      return {
        object: 'error',
        message,
        type: errorType,
        param,
        code: errorCode,
        raw_status_code: violation.status,
      }
    case 'vllm':
      return { object: 'error', message, type: errorType, param, code: violation.status }
    case 'groq':
      return { error: { message, type: errorType, ...(errorCode === null ? {} : { code: errorCode }) } }
    default:
      return { error: { message, type: errorType, param, code: errorCode } }
  }
}

/** The HTTP error of a fault, or nothing when the fault is not one. */
export function chatFault(fault: Fault, context: JudgeContext): HttpError | undefined {
  const { profile, contextWindow: window } = context
  switch (fault.kind) {
    case '429':
      return rateLimit(fault.retryAfter ?? 1, context)
    case 'quota':
      return chatRefusal(quota(profile), context)
    case '500':
      return chatRefusal(
        trouble(500, 'The server had an error while processing your request. Sorry about that!'),
        context,
      )
    case '503':
    case '529':
      return unavailable(fault, context)
    case 'auth':
      return unauthorized(context)
    case 'context-overflow':
      return chatRefusal(overflowOf(profile, window + 32_008, window), context)
    case 'malformed-call':
      return profile === 'groq' ? toolUseFailed() : undefined
    default:
      return undefined
  }
}

function rateLimit(retryAfter: number, context: JudgeContext): HttpError {
  const message = `Rate limit reached for model in organization org-strict on tokens per min (TPM): Limit 30000, Used 29999, Requested 1000. Please try again in ${retryAfter}s.`
  const violation: Violation =
    context.profile === 'mistral'
      ? {
          code: '429',
          status: 429,
          message: 'Rate limit exceeded',
          errorType: 'rate_limited',
          errorCode: '1300',
        }
      : { code: '429', status: 429, message, errorType: 'tokens', errorCode: 'rate_limit_exceeded' }
  return {
    ...chatRefusal(violation, context),
    headers: { 'retry-after': String(retryAfter), 'retry-after-ms': String(retryAfter * 1000) },
  }
}

function quota(profile: StrictProfile): Violation {
  if (profile === 'deepseek-thinking') {
    return { ...trouble(402, 'Insufficient Balance', 'unknown_error'), errorCode: 'invalid_request_error' }
  }
  const message =
    'You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.'
  return { ...trouble(429, message, 'insufficient_quota'), errorCode: 'insufficient_quota' }
}

function unavailable(fault: Fault, context: JudgeContext): HttpError {
  const message = 'The engine is currently overloaded, please try again later'
  const error = chatRefusal(trouble(503, message, 'service_unavailable'), context)
  if (fault.retryAfter === undefined) return error
  return { ...error, headers: { 'retry-after': String(fault.retryAfter) } }
}

/** Keys are never repeated, not even in part. */
function unauthorized(context: JudgeContext): HttpError {
  switch (context.profile) {
    case 'mistral':
      return { status: 401, body: { detail: 'Unauthorized' } }
    case 'vllm':
      return { status: 401, body: { error: 'Unauthorized' } }
    case 'deepseek-thinking': {
      const message = 'Authentication Fails, Your api key: **** is invalid'
      const violation = {
        ...trouble(401, message, 'authentication_error'),
        errorCode: 'invalid_request_error',
      }
      return chatRefusal(violation, context)
    }
    default: {
      const message =
        context.profile === 'groq'
          ? 'Invalid API Key'
          : 'Incorrect API key provided: ****. You can find your API key at https://platform.openai.com/account/api-keys.'
      const violation = { ...trouble(401, message, 'invalid_request_error'), errorCode: 'invalid_api_key' }
      return chatRefusal(violation, context)
    }
  }
}

export function overflowOf(profile: StrictProfile, tokens: number, window: number): Violation {
  if (profile === 'mistral') return mistralOverflow(tokens, window)
  if (profile === 'ollama') {
    const message = 'the input length exceeds the context length'
    return { code: 'X9', status: 400, message, param: null, errorCode: null }
  }
  const violation = overflow(tokens, window)
  return profile === 'vllm' ? { ...violation, errorType: 'BadRequestError', param: null } : violation
}

/** Groq rejects a call that its model did not write as valid JSON. */
function toolUseFailed(): HttpError {
  return {
    status: 400,
    body: {
      error: {
        message:
          "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
        type: 'invalid_request_error',
        code: 'tool_use_failed',
        failed_generation: '<function=unknown>{"broken": ',
      },
    },
  }
}

/** What a stream says when it fails after it has begun. */
export function chatStreamError(context: JudgeContext): string {
  const message = 'The server had an error while processing your request. Sorry about that!'
  const body =
    context.profile === 'vllm'
      ? { error: { object: 'error', message, type: 'InternalServerError', param: null, code: 500 } }
      : { error: { message, type: 'server_error', param: null, code: null } }
  return `data: ${JSON.stringify(body)}\n\n`
}

export function chatNotFound(method: string, path: string, context: JudgeContext): HttpError {
  return chatRefusal(trouble(404, `Invalid URL (${method} ${path})`, 'invalid_request_error'), context)
}

function trouble(status: number, message: string, errorType = 'server_error'): Violation {
  return { code: String(status), status, message, errorType, param: null, errorCode: null }
}
