import { createParser, type ParseError } from 'eventsource-parser'
import type { ApprovalReply, ForkRequest, NewSession, RunEvent, RunRequest } from '../server/chat-protocol.js'
import type { ClientOptions, FollowOptions, LangoClient } from './client.js'
import { ClientError, errorOf, unreachable } from './client-error.js'

/** A client of one server, for browsers and Node. */
export function createClient(options: ClientOptions = {}): LangoClient {
  const call = caller(options)
  return { ...sessionCalls(call), ...runCalls(call) }
}

/** Sends a request and returns the answer's JSON. */
interface Call {
  <T>(method: string, path: string, body?: unknown): Promise<T>
  stream(path: string, signal: AbortSignal): Promise<Response>
}

function caller({ baseUrl = '', token, fetch = globalThis.fetch }: ClientOptions): Call {
  const root = baseUrl.replace(/\/+$/, '')
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const json = body === undefined ? {} : { 'content-type': 'application/json' }
    let response: Response
    try {
      // Called without a receiver: a browser's fetch refuses to be the method of anything else.
      response = await fetch(`${root}${path}`, {
        method,
        headers: { accept: 'application/json', ...headers, ...json },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
    } catch (error) {
      throw unreachable(error)
    }
    if (!response.ok) throw await errorOf(response)
    // The server is of the same release as the types.
    return (response.status === 204 ? undefined : await response.json()) as T
  }
  const stream = (path: string, signal: AbortSignal) =>
    fetch(`${root}${path}`, {
      headers: { accept: 'text/event-stream', ...headers },
      signal,
    })
  return Object.assign(call, { stream })
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
    messages: (sessionId, range = {}) => call('GET', `${sessionPath(sessionId)}/messages${search(range)}`),
    fork: (sessionId, request: ForkRequest = {}) => call('POST', `${sessionPath(sessionId)}/fork`, request),
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
/** A stream that is silent for longer than three heartbeats is broken, whatever the network says. */
const SILENCE_MS = 50_000

interface FollowParts {
  /** Opens the stream of events after a number. */
  open(after: number, signal: AbortSignal): Promise<Response>
  options: FollowOptions
}

/**
 * The events of a run, over as many connections as it takes. The number of the last event is all that has to be
 * remembered: whatever comes twice is left out, and what was missed is asked for.
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
      // Nothing comes after that number, now or later.
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

/** One connection. It is closed with the caller's signal, and when nothing has come for too long. */
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
    this.#alive()
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
      for await (const { event, data } of readServerEvents(response.body, () => this.#alive())) {
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

  #alive(): void {
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

/** The longest event that is read: a tool's result may be large, a broken stream may be endless. */
const MAXIMUM_LENGTH = 64 * 1024 * 1024

/** Reads server-sent events. Ends when the stream does; an event that was cut off is left out. */
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
    // Fields that are unknown or cannot be read are ignored, as the standard asks.
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

/** Asking again would bring the same event again, so this is not retried. */
function eventTooLong(): ClientError {
  const megabytes = MAXIMUM_LENGTH / 1024 / 1024
  const detail = `An event of the run is longer than ${megabytes} MB and was not read. Read the session's messages instead.`
  const problem = { type: 'about:blank', title: 'Too large', status: 0, detail, retryable: false }
  return new ClientError({ ...problem, code: 'too-large' })
}
