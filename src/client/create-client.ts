import { createParser, type ParseError } from 'eventsource-parser'
import { activeTraceHeaders, type TraceContext } from '../base/trace-context.js'
import type { ApprovalReply, ForkRequest, NewSession, RunEvent, RunRequest } from '../server/chat-protocol.js'
import type { ClientOptions, FollowOptions, LangoClient } from './client.js'
import { ClientError, errorOf, notJson, unreachable } from './client-error.js'

/**
 * A client of one server, for browsers and Node.
 *
 * ```ts
 * import { ClientError, createClient } from 'lango/client'
 * const client = createClient({ baseUrl: 'http://127.0.0.1:18789', token: process.env.LANGO_TOKEN ?? '' })
 * try {
 *   const { runId } = await client.start('trip', { text: 'Find me a quiet beach.' })
 *   for await (const event of client.follow(runId)) {
 *     if (event.type === 'text-delta') process.stdout.write(event.text)
 *   }
 * } catch (error) {
 *   if (error instanceof ClientError) console.error(error.code, error.message)
 * }
 * ```
 */
export function createClient(options: ClientOptions = {}): LangoClient {
  // Callers without a type checker pass null.
  const call = caller(options ?? {})
  return { ...sessionCalls(call), ...runCalls(call) }
}

/** Sends a request and returns the JSON of the answer. */
interface Call {
  <T>(method: string, path: string, body?: unknown): Promise<T>
  text(path: string): Promise<{ text: string; headers: Headers }>
  stream(path: string, signal: AbortSignal): Promise<Response>
}

function caller({ baseUrl = '', token, fetch = globalThis.fetch, trace }: ClientOptions): Call {
  const root = baseUrl.replace(/\/+$/, '')
  const fixed = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const headers = () => ({ ...fixed, ...(trace ? traceHeaders(trace()) : activeTraceHeaders()) })
  const send = async (method: string, path: string, body?: unknown): Promise<Response> => {
    const json = body === undefined ? {} : { 'content-type': 'application/json' }
    let response: Response
    try {
      // Called without a receiver: a browser's fetch throws when it is called as a method.
      response = await fetch(`${root}${path}`, {
        method,
        headers: { accept: 'application/json', ...headers(), ...json },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
    } catch (error) {
      throw unreachable(error)
    }
    if (!response.ok) throw await errorOf(response)
    return response
  }
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const response = await send(method, path, body)
    // The types belong to the server's release.
    return (response.status === 204 ? undefined : await response.json().catch(notJson(response))) as T
  }
  const stream = (path: string, signal: AbortSignal) =>
    fetch(`${root}${path}`, {
      headers: { accept: 'text/event-stream', ...headers() },
      signal,
    })
  const text = async (path: string) => {
    const response = await send('GET', path)
    const content = await response.text().catch(error => {
      throw unreachable(error)
    })
    return { text: content, headers: response.headers }
  }
  return Object.assign(call, { text, stream })
}

/** A header that is a list of texts as JSON. */
function listIn(headers: Headers, name: string): string[] {
  return JSON.parse(headers.get(name) ?? '[]') as string[]
}

function traceHeaders(trace: TraceContext | undefined): Record<string, string> {
  if (!trace) return {}
  const { traceparent, tracestate } = trace
  return { traceparent, ...(tracestate ? { tracestate } : {}) }
}

function sessionCalls(call: Call) {
  return {
    info: () => call('GET', '/api/info'),
    models: () => call('GET', '/api/models'),
    sessions: (query = {}) => call('GET', `/api/sessions${search(query)}`),
    createSession: (session: NewSession = {}) => call('POST', '/api/sessions', session),
    session: sessionId => call('GET', sessionPath(sessionId)),
    renameSession: (sessionId, title) => call('PATCH', sessionPath(sessionId), { title }),
    deleteSession: sessionId => call('DELETE', sessionPath(sessionId)),
    eraseUser: userId => call('DELETE', `/api/users/${encodeURIComponent(userId)}/data`),
    messages: (sessionId, range = {}) => call('GET', `${sessionPath(sessionId)}/messages${search(range)}`),
    fork: (sessionId, request: ForkRequest = {}) => call('POST', `${sessionPath(sessionId)}/fork`, request),
    variants: sessionId => call('GET', `${sessionPath(sessionId)}/variants`),
    showVariant: (sessionId, of) => call('PATCH', sessionPath(sessionId), { variantOf: of }),
    memory: (sessionId, range = {}) => call('GET', `${sessionPath(sessionId)}/memory${search(range)}`),
    editNote: (sessionId, number, text) =>
      call('PATCH', `${sessionPath(sessionId)}/memory/${number}`, { text }),
    forget: (sessionId, number) =>
      call('DELETE', `${sessionPath(sessionId)}/memory${number === undefined ? '' : `/${number}`}`),
    search: query => call('GET', `/api/search${search(query)}`),
    exportSession: async sessionId => (await call.text(`${sessionPath(sessionId)}/export`)).text,
    exportSessionAs: async (sessionId, format) => {
      const path = `${sessionPath(sessionId)}/export?format=${encodeURIComponent(format)}`
      const { text, headers } = await call.text(path)
      return { text, leftOut: listIn(headers, 'lango-left-out'), notes: listIn(headers, 'lango-notes') }
    },
    importFile: request => call('POST', '/api/import', request),
    usage: (query = {}) => call('GET', `/api/usage${search(query)}`),
    brokenHistories: () => call('GET', '/api/gallery'),
    openBroken: id => call('POST', `/api/gallery/${encodeURIComponent(id)}/open`),
    sendBroken: id => call('POST', `/api/gallery/${encodeURIComponent(id)}/send`),
    healBroken: (sessionId, runId) =>
      call('POST', `${sessionPath(sessionId)}/heal`, runId === undefined ? {} : { runId }),
    check: request => call('POST', '/api/lint', request),
    lint: (sessionId, profile) => call('GET', `${sessionPath(sessionId)}/lint${search({ profile })}`),
    runs: (sessionId, query = {}) => call('GET', `${sessionPath(sessionId)}/runs${search(query)}`),
    start: (sessionId, request: RunRequest) => call('POST', `${sessionPath(sessionId)}/runs`, request),
  } satisfies Partial<LangoClient>
}

function runCalls(call: Call) {
  return {
    run: runId => call('GET', runPath(runId)),
    inspect: runId => call('GET', `${runPath(runId)}/inspect`),
    follow: (runId, options: FollowOptions = {}) =>
      followRun({
        open: (after, signal) => call.stream(`${runPath(runId)}/events${search({ after })}`, signal),
        options,
      }),
    stop: async runId => {
      await call('POST', `${runPath(runId)}/stop`)
    },
    goOn: (runId, budget) => call('POST', `${runPath(runId)}/go-on`, { budget }),
    resume: runId => call('POST', `${runPath(runId)}/resume`),
    approve: (runId, callId, answer: ApprovalReply['answer']) =>
      call('POST', `${runPath(runId)}/approvals/${encodeURIComponent(callId)}`, { answer }),
  } satisfies Partial<LangoClient>
}

function sessionPath(sessionId: string): string {
  return `/api/sessions/${encodeURIComponent(sessionId)}`
}

function runPath(runId: string): string {
  return `/api/runs/${encodeURIComponent(runId)}`
}

function search(query: Record<string, string | number | undefined>): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') parameters.set(name, String(value))
  }
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}

const SHORTEST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 10_000
/** A stream without data for more than three heartbeats has lost its connection. */
const SILENCE_MS = 50_000

interface FollowParts {
  /** Opens the stream of events after a number. */
  open(after: number, signal: AbortSignal): Promise<Response>
  options: FollowOptions
}

/**
 * The events of a run, over as many connections as needed. The number of the last event is the only state: repeated
 * events are skipped, and missed ones are requested.
 */
async function* followRun({ open, options }: FollowParts): AsyncGenerator<RunEvent, void, undefined> {
  const { signal, onConnection = () => {} } = options
  let after = options.after ?? 0
  let pauseMs = SHORTEST_PAUSE_MS
  let isOpen: boolean | undefined
  while (!signal?.aborted) {
    const connection = new Connection(signal)
    try {
      const response = await connection.open(abort => open(after, abort))
      // No event follows, now or later.
      if (response.status === 204) return
      if (!isOpen) onConnection('open')
      isOpen = true
      for await (const event of connection.events(response)) {
        if (event.seq <= after) continue
        after = event.seq
        pauseMs = SHORTEST_PAUSE_MS
        yield event
        if (event.type === 'run-finish') return
      }
    } catch (error) {
      if (signal?.aborted) return
      if (!(error instanceof ClientError && error.retryable)) throw error
    } finally {
      connection.close()
    }
    if (signal?.aborted) return
    if (isOpen !== false) onConnection('lost')
    isOpen = false
    await pause(pauseMs, signal)
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
  }
}

/** One connection. It is closed by the caller's signal, and after too long without data. */
class Connection {
  readonly #abort = new AbortController()
  readonly #signal: AbortSignal | undefined
  readonly #onAbort = () => this.#abort.abort()
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal
    signal?.addEventListener('abort', this.#onAbort, { once: true })
  }

  async open(fetchEvents: (signal: AbortSignal) => Promise<Response>): Promise<Response> {
    this.#restartTimer()
    let response: Response
    try {
      response = await fetchEvents(this.#abort.signal)
    } catch (error) {
      throw unreachable(error)
    }
    if (!response.ok) throw await errorOf(response)
    return response
  }

  async *events(response: Response): AsyncGenerator<RunEvent, void, undefined> {
    if (!response.body) return
    try {
      for await (const { event, data } of readServerEvents(response.body, () => this.#restartTimer())) {
        if (event === 'message') yield JSON.parse(data) as RunEvent
      }
    } catch (error) {
      throw error instanceof ClientError ? error : unreachable(error)
    }
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#signal?.removeEventListener('abort', this.#onAbort)
    this.#abort.abort()
  }

  #restartTimer(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#abort.abort(), SILENCE_MS)
  }
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise(resolve => {
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done, { once: true })
  })
}

/** One server-sent event, as far as Lango's streams use them. */
export interface ServerEvent {
  event: string
  data: string
}

/** The longest event that is read: the result of a tool may be large, a broken stream may never end. */
const MAXIMUM_LENGTH = 64 * 1024 * 1024

/** Reads server-sent events until the stream ends. A truncated last event is skipped. */
export async function* readServerEvents(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void = () => {},
): AsyncGenerator<ServerEvent, void, undefined> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const found: ServerEvent[] = []
  let tooLong = false
  const parser = createParser({
    maxBufferSize: MAXIMUM_LENGTH,
    onEvent: ({ event = 'message', data }) => found.push({ event, data }),
    // Unknown and invalid fields are ignored, as the standard requires.
    onError: ({ type }: ParseError) => {
      tooLong ||= type === 'max-buffer-size-exceeded'
    },
  })
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      onBytes()
      parser.feed(decoder.decode(value, { stream: true }))
      yield* found.splice(0)
      if (tooLong) throw eventTooLong()
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

/** Not retryable: a new request would return the same event. */
function eventTooLong(): ClientError {
  const megabytes = MAXIMUM_LENGTH / 1024 / 1024
  const detail = `An event of the run is larger than ${megabytes} MB and was not read. Read the session's messages instead.`
  const problem = { type: 'about:blank', title: 'Event too large', status: 0, detail, retryable: false }
  return new ClientError({ ...problem, code: 'too-large' })
}
