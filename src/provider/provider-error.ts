/**
 * An SDK's error becomes an `AgentError` here and nowhere else. The decision goes by status, code and type;
 * texts are read last, because they are the part that providers change without notice.
 */
import { own } from '../base/own.js'
import { AgentError, type AgentErrorCode } from '../errors.js'
import { type ErrorFacts, readErrorFacts } from './error-facts.js'

export interface ErrorContext {
  /** The provider's id, for the message. */
  provider: string
  model: string
  /** Values that must never appear in a message, such as the key. */
  secrets?: readonly (string | undefined)[]
  signal?: AbortSignal | undefined
}

/** What an SDK threw, in Lango's terms. An `AgentError` passes unchanged. */
export function toProviderError(error: unknown, context: ErrorContext): AgentError {
  if (context.signal?.aborted) return abortedError(context, error)
  if (error instanceof AgentError) return error
  const facts = readErrorFacts(error)
  const { code, retryable } = classify(facts)
  const words = redact(facts.message, context.secrets)
  const providerCode = facts.codes[0]
  return new AgentError(code, sentence(code, words, facts, context), {
    retryable,
    details: {
      provider: context.provider,
      model: context.model,
      ...(facts.status === undefined ? {} : { status: facts.status }),
      ...(providerCode === undefined ? {} : { providerCode }),
      ...(facts.retryAfterMs === undefined ? {} : { retryAfterMs: facts.retryAfterMs }),
      ...(facts.requestId === undefined ? {} : { requestId: facts.requestId }),
    },
    // An error that quotes the key is not passed on, not even as a cause.
    ...(words === facts.message ? { cause: error } : {}),
  })
}

/** The caller stopped the request. */
export function abortedError(context: ErrorContext, cause?: unknown): AgentError {
  return new AgentError('aborted', `The request to ${nameOf(context)} was stopped by its caller.`, {
    details: { provider: context.provider, model: context.model },
    ...(cause === undefined ? {} : { cause }),
  })
}

/** A stream that ends without saying why may have lost anything; nothing of it can be trusted to be whole. */
export function cutStreamError(context: ErrorContext): AgentError {
  return new AgentError(
    'provider-stream',
    `The answer of ${nameOf(context)} ended without its closing event, so it may be incomplete.`,
    { retryable: true, details: { provider: context.provider, model: context.model } },
  )
}

/** No sign of life for too long. */
export function silentStreamError(context: ErrorContext, idleTimeoutMs: number): AgentError {
  return new AgentError(
    'provider-stream',
    `${nameOf(context)} sent nothing for ${idleTimeoutMs} ms, so the request was given up.`,
    { retryable: true, details: { provider: context.provider, model: context.model, idleTimeoutMs } },
  )
}

/** The provider refused to answer this prompt. */
export function blockedError(context: ErrorContext, providerCode: string, words: string): AgentError {
  return new AgentError('provider-blocked', `${nameOf(context)} blocked the request: ${words}`, {
    details: { provider: context.provider, model: context.model, providerCode },
  })
}

/** No key is configured; `variable` is where one would be looked for. */
export function missingKeyError(context: ErrorContext, variable: string): AgentError {
  return new AgentError(
    'provider-auth',
    `No API key for ${nameOf(context)}. Set ${variable} in the environment, or apiKey in the provider's options.`,
    { details: { provider: context.provider, model: context.model, variable } },
  )
}

interface Verdict {
  code: AgentErrorCode
  retryable: boolean
}

function classify(facts: ErrorFacts): Verdict {
  const byCode = classifyByCode(facts)
  if (byCode) return byCode
  if (facts.status !== undefined) return classifyByStatus(facts.status, facts)
  if (isContextText(facts.message)) return FINAL('context-overflow')
  return facts.names.some(name => UNREACHABLE.test(name))
    ? RETRY('provider-unavailable')
    : RETRY('provider-stream')
}

function classifyByCode(facts: ErrorFacts): Verdict | undefined {
  // Google's daily quotas are told from its minute limits only by the quota's name.
  if (facts.codes.some(code => /PerDay/.test(code))) return FINAL('provider-quota')
  for (const code of facts.codes) {
    const verdict = own(BY_CODE, code.toLowerCase())
    if (verdict?.code === 'provider-rate-limit') return rateLimit(facts)
    // "Some error on our side" says less than the status does.
    if (verdict?.code === 'provider-unavailable' && facts.status !== undefined) continue
    if (verdict) return verdict
  }
  return undefined
}

function classifyByStatus(status: number, facts: ErrorFacts): Verdict {
  if (status === 401 || status === 403) return FINAL('provider-auth')
  if (status === 402) return FINAL('provider-quota')
  if (status === 413) return FINAL('context-overflow')
  if (status === 429) return rateLimit(facts)
  if (status === 503 || status === 529) return RETRY('provider-overloaded')
  if (status >= 500 || status === 408 || status === 409) return RETRY('provider-unavailable')
  return isContextText(facts.message) ? FINAL('context-overflow') : FINAL('provider-rejected')
}

function rateLimit(facts: ErrorFacts): Verdict {
  // A request that is too long for one minute's allowance is reported with 413 by some; waiting does not help.
  if (facts.status === 413) return FINAL('context-overflow')
  // Google speaks of quota and billing even when a minute's wait is all it wants.
  const spent = facts.retryAfterMs === undefined && SPENT.test(facts.message)
  return spent ? FINAL('provider-quota') : RETRY('provider-rate-limit')
}

const FINAL = (code: AgentErrorCode): Verdict => ({ code, retryable: false })
const RETRY = (code: AgentErrorCode): Verdict => ({ code, retryable: true })

// Codes that say more than the status does. General ones (invalid_request_error) are left to status and text.
const BY_CODE: Readonly<Record<string, Verdict>> = {
  context_length_exceeded: FINAL('context-overflow'),
  request_too_large: FINAL('context-overflow'),
  insufficient_quota: FINAL('provider-quota'),
  billing_error: FINAL('provider-quota'),
  billing_hard_limit_reached: FINAL('provider-quota'),
  rate_limit_exceeded: RETRY('provider-rate-limit'),
  rate_limit_error: RETRY('provider-rate-limit'),
  overloaded_error: RETRY('provider-overloaded'),
  overloaded: RETRY('provider-overloaded'),
  api_error: RETRY('provider-unavailable'),
  server_error: RETRY('provider-unavailable'),
  timeout_error: RETRY('provider-unavailable'),
  authentication_error: FINAL('provider-auth'),
  permission_error: FINAL('provider-auth'),
  invalid_api_key: FINAL('provider-auth'),
  api_key_invalid: FINAL('provider-auth'),
  content_filter: FINAL('provider-blocked'),
  content_policy_violation: FINAL('provider-blocked'),
  moderation_blocked: FINAL('provider-blocked'),
  invalid_prompt: FINAL('provider-blocked'),
  // The model wrote a call that its own server could not read: another sample may succeed.
  tool_use_failed: RETRY('provider-rejected'),
}

const UNREACHABLE =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT|APIConnectionTimeoutError|fetch failed|Connection error\.)/

const SPENT = /current quota|credit balance|spend(ing)? (cap|limit)|usage limit|billing/i

const CONTEXT_TEXTS: readonly RegExp[] = [
  /input token count.*exceeds the maximum/i,
  /maximum context length/i,
  /prompt is too long/i,
  /exceed(s|ed)? (the )?context (limit|length|window|size)/i,
  /exceeds the (available )?context/i,
  /too large for model with \d+ maximum context/i,
  /reduce the length of the (messages|input)/i,
]

function isContextText(message: string): boolean {
  return CONTEXT_TEXTS.some(pattern => pattern.test(message))
}

function sentence(code: AgentErrorCode, words: string, facts: ErrorFacts, context: ErrorContext): string {
  const status = facts.status === undefined ? '' : ` (${facts.status})`
  const advice = ADVICE[code]
  return `${nameOf(context)} ${VERBS[code] ?? 'failed'}${status}: ${words}${advice ? ` ${advice}` : ''}`
}

const VERBS: Partial<Record<AgentErrorCode, string>> = {
  'provider-auth': 'refused the key',
  'provider-rate-limit': 'is limiting the rate of requests',
  'provider-quota': 'says that the quota is used up',
  'provider-overloaded': 'is overloaded',
  'provider-unavailable': 'could not be reached or failed',
  'provider-rejected': 'refused the request',
  'provider-blocked': 'blocked the request',
  'context-overflow': 'says that the request is too long',
  'provider-stream': 'broke off its answer',
}

const ADVICE: Partial<Record<AgentErrorCode, string>> = {
  'provider-auth': "(Check the provider's apiKey or its environment variable.)",
}

function nameOf(context: ErrorContext): string {
  return `${context.provider}/${context.model}`
}

function redact(text: string, secrets: readonly (string | undefined)[] = []): string {
  let safe = text
  for (const secret of secrets) {
    if (secret !== undefined && secret.length >= 6) safe = safe.replaceAll(secret, '[key]')
  }
  return safe
}
