/**
 * What a thrown SDK error says, read without knowing which SDK threw it: the three vendors' clients, their
 * error bodies (nested, flat, wrapped in an array, or quoted inside a message) and Node's own network errors
 * all come out as the same few facts.
 */
import { connectionProblem, type ExchangeFacts, wordsOfPage } from './provider-fetch.js'

/** What an error of HTTP carries, in the names that are read here; for SDKs that have others. */
export interface HttpFailure {
  status?: number
  code?: string
  headers?: unknown
  requestID?: string
}

export interface ErrorFacts {
  /** The provider's own message. */
  message: string
  status?: number
  /** The provider's machine-readable names for what happened, most specific first. */
  codes: readonly string[]
  /** The field of the request that is at fault. */
  param?: string
  /** How long the provider asks us to wait. */
  retryAfterMs?: number
  requestId?: string
  /** Names of the error and of its causes, for network failures. */
  names: readonly string[]
  /** The answer was a page or a document where a stream was expected. */
  isUnexpected?: boolean
}

/** A connection that failed, or an answer that is not a stream. */
export function readExchange(error: unknown, { address, answer }: ExchangeFacts): ErrorFacts {
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
export function readErrorFacts(error: unknown): ErrorFacts {
  const thrown = asRecord(error)
  const text = error instanceof Error ? error.message : String(error)
  const body = innerError(asRecord(thrown.error)) ?? innerError(quotedJson(text)) ?? {}
  const status = numberOf(thrown.status) ?? numberOf(body.code) ?? numberOf(thrown.statusCode)
  const retryAfterMs = retryAfterOf(thrown.headers) ?? retryInfoOf(body.details)
  const requestId = stringOf(thrown.requestID)
  const param = stringOf(body.param) ?? violatedField(body.details)
  return {
    message: messageIn(body) ?? text,
    ...(status === undefined ? {} : { status }),
    codes: codesOf(thrown, body),
    ...(param === undefined ? {} : { param }),
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

/** Google's `BadRequest` detail names the fields that it refuses. */
function violatedField(details: unknown): string | undefined {
  const violations = arrayOf(details).flatMap(detail => arrayOf(asRecord(detail).fieldViolations))
  return stringOf(asRecord(violations[0]).field)
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
