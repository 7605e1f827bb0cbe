/**
 * `fetch` for the vendors' SDKs. It adds the facts that the SDKs drop:
 *
 * - an answer of status 200 that is not a stream (an error body, a login page of a proxy) fails with its text;
 * - a failed connection names its address;
 * - only Lango's idle timeout ends a request: the 300 seconds of Node's own client are lifted;
 * - the trace that is active goes with the request.
 */
import { redactText } from '../base/redact.js'
import { activeTraceHeaders } from '../base/trace-context.js'
import { AgentError } from '../errors.js'
import { callObserver } from './call-observer.js'
import { limiterOfCall } from './rate-limiter.js'

/** Why an exchange failed, for the message of the error. */
export interface ExchangeFacts {
  /** Host and port, without credentials. */
  address: string
  /** The text of an answer that is not a stream. */
  answer?: string
}

/** Sends a request. Rejects with an error that `exchangeOf` reads. The answer to a POST is a stream, unless `whole`. */
export async function providerFetch(
  input: string | URL | Request,
  init?: RequestInit,
  { whole = false } = {},
): Promise<Response> {
  const url = new URL(input instanceof Request ? input.url : input)
  const address = addressOf(url)
  callObserver.getStore()?.sentTo(url)
  let response: Response
  try {
    response = await fetch(input, { ...init, ...traced(input, init), ...withoutTimeouts() })
  } catch (cause) {
    if (init?.signal?.aborted) throw cause
    throw exchangeError({ address }, cause)
  }
  limiterOfCall.getStore()?.learn(response.headers)
  if (!response.ok || response.body === null) return response
  const isStream = !whole && (init?.method ?? 'GET').toUpperCase() === 'POST'
  const { body, answer } = await inspectBody(response.body, isStream ? /[[{<]/ : /</)
  if (answer !== undefined) throw exchangeError({ address, answer })
  return new Response(body, {
    status: response.status,
    statusText: response.statusText,
    headers: response.headers,
  })
}

/** The headers with those of the active trace. What the caller has set stands. */
function traced(input: string | URL | Request, init: RequestInit | undefined): RequestInit {
  const trace = Object.entries(activeTraceHeaders())
  if (trace.length === 0) return {}
  const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
  for (const [name, value] of trace) if (!headers.has(name)) headers.set(name, value)
  return { headers }
}

/** The facts of a request that failed in `providerFetch`; the SDKs wrap its error in their own. */
export function exchangeOf(error: unknown): ExchangeFacts | undefined {
  let current = error
  for (let depth = 0; depth < 5 && current instanceof Error; depth++) {
    if (current instanceof AgentError) return EXCHANGES.get(current)
    current = current.cause
  }
  return undefined
}

/** What failed in a connection, and what to do about it. `codes` are the system's names for the error. */
export function connectionProblem(address: string, codes: readonly string[]): string | undefined {
  for (const [pattern, text] of PROBLEMS) {
    const code = codes.find(candidate => pattern.test(candidate))
    if (code !== undefined) return `${text(address)} (${code})`
  }
  return undefined
}

/** Whether the server's certificate or protocol was refused: another attempt fails as well. */
export function isTlsProblem(codes: readonly string[]): boolean {
  return codes.some(code => TLS.test(code))
}

/** True if the connection failed before a byte of the request was sent: such a request is on no bill. */
export function neverLeft(names: readonly string[]): boolean {
  return isTlsProblem(names) || names.some(name => NOT_CONNECTED.test(name))
}

/** Codes, and the messages of Node that name the step. A reset or a timeout without it may have come after the request. */
const NOT_CONNECTED =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT)$|^connect E[A-Z]+ |before secure TLS connection was established/

const TLS =
  /^(CERT_|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT|UNABLE_TO_|ERR_TLS_CERT|ERR_SSL_|HOSTNAME_MISMATCH)/

const PROBLEMS: readonly (readonly [RegExp, (address: string) => string])[] = [
  [/^ECONNREFUSED$/, address => `no server listens on ${address}. ${startHint(address)}`],
  [
    /^(ENOTFOUND|EAI_AGAIN)$/,
    address => `the host name of ${address} could not be resolved. Check the baseUrl, DNS and the network`,
  ],
  [
    /^(ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG|EPROTO)$/,
    address => `${address} does not use TLS. Use http:// in the baseUrl, or another port`,
  ],
  [
    TLS,
    address =>
      `the TLS certificate of ${address} was refused. Check its name and date; for a private authority set NODE_EXTRA_CA_CERTS to its certificate`,
  ],
  [
    /^(ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/,
    address => `${address} cannot be reached. Check the network, the firewall and the proxy`,
  ],
  [
    /^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/,
    address =>
      `${address} closed the connection before it answered. Check the server's log, or a proxy in between`,
  ],
]

function startHint(address: string): string {
  return address.endsWith(`:${OLLAMA_PORT}`)
    ? 'Start it with `ollama serve`'
    : 'Check that the server is running and that the baseUrl is correct'
}

const OLLAMA_PORT = 11434

/** The words of an answer that is not a stream: those of its error, or the text of a page. */
export function wordsOfPage(text: string): string {
  const visible = text
    .slice(0, MOST_CHARACTERS)
    .replaceAll(/<(script|style)\b[^<>]*>[^<]*/gi, ' ')
    .replaceAll(/<[^<>]*>/g, ' ')
  return shortened(visible.replaceAll(/\s+/g, ' ').trim())
}

/** A provider's words as an error may show them: bounded, and without what looks like a secret. */
export function shortened(text: string): string {
  const shown = redactText(text.slice(0, MOST_CHARACTERS))
  return shown.length > MOST_SHOWN ? `${shown.slice(0, MOST_SHOWN)}…` : shown
}

const MOST_CHARACTERS = 16_384
const MOST_SHOWN = 2000

/** Not in the message: the OpenAI SDK takes an error whose text contains "timeout" for its own timeout. */
const EXCHANGES = new WeakMap<AgentError, ExchangeFacts>()

function exchangeError(facts: ExchangeFacts, cause?: unknown): AgentError {
  const options = { retryable: true, ...(cause === undefined ? {} : { cause }) }
  const error = new AgentError('provider-unavailable', 'The request failed', options)
  EXCHANGES.set(error, facts)
  return error
}

function addressOf(url: URL): string {
  return `${url.hostname}:${url.port || (url.protocol === 'http:' ? '80' : '443')}`
}

interface Inspected {
  body: ReadableStream<Uint8Array>
  /** The text, bounded, when the body is not a stream. */
  answer?: string
}

/** Reads up to the first character. Server-sent events never start with a bracket or a tag. */
async function inspectBody(source: ReadableStream<Uint8Array>, unexpected: RegExp): Promise<Inspected> {
  const reader = source.getReader()
  const decoder = new TextDecoder()
  const read: Uint8Array[] = []
  let text = ''
  let isUnexpected: boolean | undefined
  while (isUnexpected !== false && text.length < MOST_CHARACTERS) {
    const { done, value } = await reader.read()
    if (done) break
    read.push(value)
    text += decoder.decode(value, { stream: true })
    const first = isUnexpected === undefined ? text.trimStart().charAt(0) : ''
    if (first !== '') isUnexpected = unexpected.test(first)
  }
  if (isUnexpected) {
    await reader.cancel().catch(() => {})
    return { body: new ReadableStream(), answer: text.slice(0, MOST_CHARACTERS) }
  }
  return { body: joined(read, reader) }
}

/** What was read, then the rest. */
function joined(
  read: readonly Uint8Array[],
  reader: ReadableStreamDefaultReader<Uint8Array>,
): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start: controller => {
      for (const chunk of read) controller.enqueue(chunk)
    },
    pull: async controller => {
      const { done, value } = await reader.read()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    cancel: reason => reader.cancel(reason),
  })
}

/** Node's client fails after 300 seconds without headers or data; a model may take longer. */
function withoutTimeouts(): object {
  const dispatcher: unknown = Reflect.get(globalThis, UNDICI)
  if (typeof dispatcher !== 'object' || dispatcher === null || !('dispatch' in dispatcher)) return {}
  const { dispatch } = dispatcher
  if (typeof dispatch !== 'function') return {}
  return {
    dispatcher: {
      dispatch: (options: object, handler: unknown): unknown =>
        dispatch.call(dispatcher, { ...options, headersTimeout: 0, bodyTimeout: 0 }, handler),
    },
  }
}

/** Where Node keeps the client of its `fetch`. */
const UNDICI = Symbol.for('undici.globalDispatcher.1')
