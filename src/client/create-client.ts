import type { ApprovalReply, ForkRequest, NewSession, RunRequest } from '../server/chat-protocol.js'
import type { ClientOptions, FollowOptions, LangoClient } from './client.js'
import { errorOf, unreachable } from './client-error.js'
import { followRun } from './follow-run.js'

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
