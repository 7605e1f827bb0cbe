/**
 * An SDK's error becomes an `AgentError` here and nowhere else. The decision goes by status, code and type;
 * texts are read last, because they are the part that providers change without notice.
 */

import { own } from '../base/own.js'
import { AgentError, type AgentErrorCode } from '../errors.js'
import { type ErrorFacts, readErrorFacts, readExchange } from './error-facts.js'
import { exchangeOf, isTlsProblem, neverLeft, shortened } from './provider-fetch.js'
import { type Refusal, refusalOf } from './refusal-cause.js'
import type { Need } from './vendor-row.js'
import { errorHint } from './vendors.js'

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
  const exchange = exchangeOf(error)
  if (error instanceof AgentError && exchange === undefined) return error
  const facts = exchange === undefined ? readErrorFacts(error) : readExchange(error, exchange)
  const { code, retryable } = classify(facts)
  const message = shortened(redact(facts.message, context.secrets))
  const providerCode = facts.codes[0]
  const isRefusal = code === 'provider-rejected' || code === 'context-overflow'
  const refusal = isRefusal ? refusalOf(facts) : undefined
  return new AgentError(code, sentence(code, message, facts, context), {
    retryable,
    details: {
      provider: context.provider,
      model: context.model,
      ...(exchange === undefined ? {} : { address: exchange.address }),
      ...(facts.status === undefined ? {} : { status: facts.status }),
      ...(facts.status === undefined && neverLeft(facts.names) ? { isSent: false } : {}),
      ...(providerCode === undefined ? {} : { providerCode }),
      ...(facts.retryAfterMs === undefined ? {} : { retryAfterMs: facts.retryAfterMs }),
      ...(facts.requestId === undefined ? {} : { requestId: facts.requestId }),
      ...(refusal === undefined ? {} : { refusal, words: message }),
    },
    // An error that quotes the key is never exposed, not even as a cause.
    ...(message === facts.message && exchange?.answer === undefined ? { cause: error } : {}),
  })
}

/** The refusal of a part of the request, and the provider's words; `undefined` for every other error. */
export function refusalIn({ details }: AgentError): { refusal: Refusal; words: string } | undefined {
  const { refusal, words } = details
  if (refusal === undefined) return undefined
  return { refusal: refusal as Refusal, words: shortWords(String(words)) }
}

/** What is kept with a session and repeated with each of its requests. */
function shortWords(words: string): string {
  return words.length <= MOST_QUOTED ? words : `${words.slice(0, MOST_QUOTED)}…`
}

const MOST_QUOTED = 200

/** The caller stopped the request. */
export function abortedError(context: ErrorContext, cause?: unknown): AgentError {
  return new AgentError('aborted', `The request to ${nameOf(context)} was aborted by its caller.`, {
    details: { provider: context.provider, model: context.model },
    ...(cause === undefined ? {} : { cause }),
  })
}

/** The provider has asked for a pause that is longer than the retries may wait: the request was not sent. */
export function pausedError(context: ErrorContext, waitMs: number): AgentError {
  const { provider, model } = context
  const retryAfterMs = Math.ceil(waitMs)
  return new AgentError(
    'provider-rate-limit',
    `${nameOf(context)} ${VERBS['provider-rate-limit']}: it allows no request for another ${durationWords(waitMs)}. ` +
      'One request a minute is sent to see whether it answers sooner. Try again later, or use another model.',
    { retryable: true, details: { provider, model, retryAfterMs } },
  )
}

function durationWords(ms: number): string {
  if (ms < 120_000) return `${Math.ceil(ms / 1000)} s`
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`
  return ms < 172_800_000 ? `${Math.round(ms / 3_600_000)} h` : `${Math.round(ms / 86_400_000)} days`
}

/** A stream that ends without its closing event may have lost any part of the answer. */
export function cutStreamError(context: ErrorContext): AgentError {
  return new AgentError(
    'provider-stream',
    `The response stream of ${nameOf(context)} was truncated: it ended without its closing event.`,
    { retryable: true, details: { provider: context.provider, model: context.model } },
  )
}

/** An event of a stream that no dialect has, such as `null`. */
export function badEventError(context: ErrorContext, event: unknown): AgentError {
  const shown = shortened(redact(JSON.stringify(event) ?? 'nothing', context.secrets))
  return new AgentError(
    'provider-stream',
    `${nameOf(context)} sent an event that is not a JSON object: ${shown}`,
    { retryable: true, details: { provider: context.provider, model: context.model } },
  )
}

/** No data within the idle timeout. */
export function silentStreamError(context: ErrorContext, idleTimeoutMs: number): AgentError {
  return new AgentError(
    'provider-stream',
    `${nameOf(context)} timed out after ${idleTimeoutMs} ms without data.`,
    { retryable: true, details: { provider: context.provider, model: context.model, idleTimeoutMs } },
  )
}

/** The provider refused to answer this prompt. */
export function blockedError(context: ErrorContext, providerCode: string, message: string): AgentError {
  return new AgentError('provider-blocked', `${nameOf(context)} blocked the request: ${message}`, {
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

/** A setting without which no request can be sent is neither configured nor in the environment. */
export function missingSettingError(
  context: ErrorContext,
  { setting, variables, example }: Need,
): AgentError {
  const [variable = ''] = variables
  return new AgentError(
    'invalid-config',
    `${nameOf(context)} needs ${SETTING_NAMES[setting]}. Set ${variable} in the environment, such as ${example}, or ` +
      `${setting} in the provider's options.`,
    { details: { provider: context.provider, model: context.model, variable } },
  )
}

const SETTING_NAMES: Readonly<Record<Need['setting'], string>> = {
  baseUrl: 'an endpoint',
  region: 'a region',
  project: 'a project',
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
  if (facts.isUnexpected) return FINAL('provider-rejected')
  if (isTlsProblem(facts.names)) return FINAL('provider-unavailable')
  if (lacksCredentials(facts)) return FINAL('provider-auth')
  return facts.names.some(name => UNREACHABLE.test(name))
    ? RETRY('provider-unavailable')
    : RETRY('provider-stream')
}

function classifyByCode(facts: ErrorFacts): Verdict | undefined {
  // Google's daily quotas differ from its limits per minute only in the quota's name.
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
  // Google's messages mention quota and billing even when the request may be retried after a minute.
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
  // Bedrock's, which come without a status when a stream is under way.
  throttlingexception: RETRY('provider-rate-limit'),
  servicequotaexceededexception: FINAL('provider-quota'),
  serviceunavailableexception: RETRY('provider-overloaded'),
  internalserverexception: RETRY('provider-unavailable'),
  modelstreamerrorexception: RETRY('provider-unavailable'),
  modeltimeoutexception: RETRY('provider-unavailable'),
}

/** What AWS's and Google's libraries say that found no credentials on the machine, or none that can be used. */
const NO_CREDENTIALS =
  /^(CredentialsProviderError|TokenProviderError|Could not load the default credentials|Failed to (acquire Google OAuth|resolve AWS) credentials)/

function lacksCredentials({ names }: ErrorFacts): boolean {
  return names.some(name => NO_CREDENTIALS.test(name))
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
  /input is too long/i,
]

function isContextText(message: string): boolean {
  // Bounded: a pattern with two parts reads a long text again for each first part.
  const start = message.slice(0, 2000)
  return CONTEXT_TEXTS.some(pattern => pattern.test(start))
}

function sentence(code: AgentErrorCode, message: string, facts: ErrorFacts, context: ErrorContext): string {
  const status = facts.status === undefined ? '' : ` (${facts.status})`
  const hint = errorHint([message, ...facts.codes, ...facts.names].join(' ').slice(0, MOST_SEARCHED))
  const pause =
    code === 'provider-rate-limit' && facts.retryAfterMs
      ? `(It asks for a pause of ${durationWords(facts.retryAfterMs)}.)`
      : undefined
  const advice = hint === undefined ? (ADVICE[code] ?? pause) : `(${hint})`
  const verb = lacksCredentials(facts) ? 'has no credentials' : VERBS[code]
  return `${nameOf(context)} ${verb ?? 'failed'}${status}: ${message}${advice ? ` ${advice}` : ''}`
}

const MOST_SEARCHED = 4000

const VERBS: Partial<Record<AgentErrorCode, string>> = {
  'provider-auth': 'refused the key',
  'provider-rate-limit': 'is limiting the rate of requests',
  'provider-quota': 'reports that the quota is exhausted',
  'provider-overloaded': 'is overloaded',
  'provider-unavailable': 'could not be reached or failed',
  'provider-rejected': 'refused the request',
  'provider-blocked': 'blocked the request',
  'context-overflow': 'reports that the request is too long',
  'provider-stream': 'ended its answer early',
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
