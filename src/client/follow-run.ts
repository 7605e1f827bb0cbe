import type { RunEvent } from '../server/chat-protocol.js'
import type { FollowOptions } from './client.js'
import { ClientError, errorOf, unreachable } from './client-error.js'
import { readServerEvents } from './read-server-events.js'

const SHORTEST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 10_000
/** A stream that is silent for longer than three heartbeats is broken, whatever the network says. */
const SILENCE_MS = 50_000

export interface FollowParts {
  /** Opens the stream of events after a number. */
  open(after: number, signal: AbortSignal): Promise<Response>
  options: FollowOptions
}

/**
 * The events of a run, over as many connections as it takes. The number of the last event is all that has to be
 * remembered: whatever comes twice is left out, and what was missed is asked for.
 */
export async function* followRun({ open, options }: FollowParts): AsyncGenerator<RunEvent, void, undefined> {
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
