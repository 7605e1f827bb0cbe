/**
 * An SDK's error becomes an `AgentError` here and nowhere else. The decision goes by status, code and type;
 * texts are read last, because they are the part that providers change without notice.
 */

import { own } from '../base/own.js'
import { AgentError, type AgentErrorCode } from '../errors.js'
import {
  connectionProblem,
  type ExchangeFacts,
  exchangeOf,
  isTlsProblem,
  shortened,
  wordsOfPage,
} from './provider-fetch.js'

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
  return new AgentError(code, sentence(code, message, facts, context), {
    retryable,
    details: {
      provider: context.provider,
      model: context.model,
      ...(exchange === undefined ? {} : { address: exchange.address }),
      ...(facts.status === undefined ? {} : { status: facts.status }),
      ...(providerCode === undefined ? {} : { providerCode }),
      ...(facts.retryAfterMs === undefined ? {} : { retryAfterMs: facts.retryAfterMs }),
      ...(facts.requestId === undefined ? {} : { requestId: facts.requestId }),
    },
    // An error that quotes the key is never exposed, not even as a cause.
    ...(message === facts.message && exchange?.answer === undefined ? { cause: error } : {}),
  })
}

/** The caller stopped the request. */
export function abortedError(context: ErrorContext, cause?: unknown): AgentError {
  return new AgentError('aborted', `The request to ${nameOf(context)} was aborted by its caller.`, {
    details: { provider: context.provider, model: context.model },
    ...(cause === undefined ? {} : { cause }),
  })
}

/** A stream that ends without its closing event may have lost any part of the answer. */
export function cutStreamError(context: ErrorContext): AgentError {
  return new AgentError(
    'provider-stream',
    `The response stream of ${nameOf(context)} was truncated: it ended without its closing event.`,
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
  // Bounded: a pattern with two parts reads a long text again for each first part.
  const start = message.slice(0, 2000)
  return CONTEXT_TEXTS.some(pattern => pattern.test(start))
}

function sentence(code: AgentErrorCode, message: string, facts: ErrorFacts, context: ErrorContext): string {
  const status = facts.status === undefined ? '' : ` (${facts.status})`
  const advice = ADVICE[code]
  return `${nameOf(context)} ${VERBS[code] ?? 'failed'}${status}: ${message}${advice ? ` ${advice}` : ''}`
}

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

/**
 * What a thrown SDK error says, read without knowing which SDK threw it: the three vendors' clients, their
 * error bodies (nested, flat, wrapped in an array, or quoted inside a message) and Node's own network errors
 * all come out as the same few facts.
 */

interface ErrorFacts {
  /** The provider's own message. */
  message: string
  status?: number
  /** The provider's machine-readable names for what happened, most specific first. */
  codes: readonly string[]
  /** How long the provider asks us to wait. */
  retryAfterMs?: number
  requestId?: string
  /** Names of the error and of its causes, for network failures. */
  names: readonly string[]
  /** The answer was a page or a document where a stream was expected. */
  isUnexpected?: boolean
}

/** A connection that failed, or an answer that is not a stream. */
function readExchange(error: unknown, { address, answer }: ExchangeFacts): ErrorFacts {
  if (answer !== undefined) return readAnswer(answer)
  const facts = readErrorFacts(error)
  const reason =
    connectionProblem(address, facts.names) ?? `${address}: ${facts.names.at(-1) ?? facts.message}`
  return { ...facts, message: reason, names: [...facts.names, 'fetch failed'] }
}

/** An answer of status 200 that is not a stream: an error body, or a page of something other than the model's server. */
function readAnswer(text: string): ErrorFacts {
  const body = quotedJson(text.trimStart())
  if (body !== undefined && (body.error !== undefined || messageIn(body) !== undefined)) {
    const words = typeof body.error === 'string' ? body.error : undefined
    const facts = readErrorFacts({ error: body })
    return { ...facts, message: words ?? messageIn(innerError(body) ?? {}) ?? text, names: ['fetch failed'] }
  }
  const kind = text.trimStart().startsWith('<') ? 'a web page' : 'a JSON document'
  return {
    message: `it answered with ${kind} instead of a stream: ${wordsOfPage(text)} (Check the baseUrl, and whether a proxy is in between.)`,
    codes: [],
    names: [],
    isUnexpected: true,
  }
}

/** Reads the facts of anything that was thrown. */
function readErrorFacts(error: unknown): ErrorFacts {
  const thrown = asRecord(error)
  const text = error instanceof Error ? error.message : String(error)
  const body = innerError(asRecord(thrown.error)) ?? innerError(quotedJson(text)) ?? {}
  const status = numberOf(thrown.status) ?? numberOf(body.code) ?? numberOf(thrown.statusCode)
  const retryAfterMs = retryAfterOf(thrown.headers) ?? retryInfoOf(body.details)
  const requestId = stringOf(thrown.requestID)
  return {
    message: messageIn(body) ?? text,
    ...(status === undefined ? {} : { status }),
    codes: codesOf(thrown, body),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(requestId === undefined ? {} : { requestId }),
    names: namesOf(error),
  }
}

type Fields = Readonly<Record<string, unknown>>

/** The object that holds the message: `{ error: {…} }`, the same in an array, or already that object. */
function innerError(body: Fields | undefined): Fields | undefined {
  if (body === undefined || Object.keys(body).length === 0) return undefined
  const nested = body.error
  if (nested !== null && typeof nested === 'object') return nested as Fields
  return body
}

/** genai puts the JSON body into the message, sometimes after a text of its own. */
function quotedJson(text: string): Fields | undefined {
  const start = text.search(/[[{]/)
  if (start < 0) return undefined
  try {
    const value: unknown = JSON.parse(text.slice(start))
    return asRecord(Array.isArray(value) ? value[0] : value)
  } catch {
    return undefined
  }
}

function messageIn(body: Fields): string | undefined {
  const message = body.message ?? body.detail
  if (typeof message === 'string' && message !== '') return withUpstream(message, body)
  if (message !== undefined && message !== null && message !== '') return JSON.stringify(message)
  return undefined
}

/** OpenRouter reports "Provider returned error" and keeps the upstream's message in `metadata.raw`. */
function withUpstream(message: string, body: Fields): string {
  const raw = asRecord(body.metadata).raw
  if (typeof raw !== 'string' || raw === '' || message.includes(raw)) return message
  return `${message}: ${raw}`
}

function codesOf(thrown: Fields, body: Fields): string[] {
  const reasons = arrayOf(body.details).flatMap(detail => [
    stringOf(asRecord(detail).reason),
    ...arrayOf(asRecord(detail).violations).map(violation => stringOf(asRecord(violation).quotaId)),
  ])
  const found = [
    stringOf(asRecord(body.details).error_code),
    stringOf(body.code),
    stringOf(body.type),
    stringOf(body.status),
    stringOf(thrown.code),
    stringOf(thrown.type),
    ...reasons,
  ]
  return [...new Set(found.filter(code => code !== undefined))]
}

/** `retry-after-ms`, or `retry-after` in seconds or as a date. */
function retryAfterOf(headers: unknown): number | undefined {
  const milliseconds = Number.parseFloat(readHeader(headers, 'retry-after-ms') ?? '')
  if (Number.isFinite(milliseconds)) return Math.max(0, milliseconds)
  const value = readHeader(headers, 'retry-after')
  if (value === undefined) return undefined
  const seconds = Number(value)
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000)
  const date = Date.parse(value)
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now())
}

/** Google's `RetryInfo` detail: `"retryDelay": "34s"`. */
function retryInfoOf(details: unknown): number | undefined {
  for (const detail of arrayOf(details)) {
    const match = /^(\d+(?:\.\d+)?)s$/.exec(stringOf(asRecord(detail).retryDelay) ?? '')
    if (match?.[1] !== undefined) return Number(match[1]) * 1000
  }
  return undefined
}

function readHeader(headers: unknown, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined
  return stringOf(asRecord(headers)[name])
}

/** Node's fetch hides the system's error code in a chain of causes. */
function namesOf(error: unknown): string[] {
  const names: string[] = []
  let current: unknown = error
  for (let depth = 0; depth < 5 && current !== undefined && current !== null; depth += 1) {
    const fields = asRecord(current)
    const constructorName = current instanceof Error ? current.constructor.name : undefined
    for (const name of [stringOf(fields.name), constructorName, stringOf(fields.code)]) {
      if (name !== undefined && !names.includes(name)) names.push(name)
    }
    if (current instanceof Error) names.push(current.message)
    current = fields.cause
  }
  return names
}

function asRecord(value: unknown): Fields {
  return value !== null && typeof value === 'object' ? (value as Fields) : {}
}

function arrayOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 100 && value < 600 ? value : undefined
}
