/**
 * Streams with back-pressure. The source is read only when the client has received everything before, so a client
 * that does not read occupies one chunk and the socket's buffer. After `stalledMs` its stream is closed; it can
 * reconnect with the number of its last event.
 */

import type { Context } from 'hono'
import { letOthersRun, orTimeout } from '../base/pause.js'
import { messageOf } from '../errors.js'
import { isShuttingDown } from './refusal.js'
import type { ServerContext, ServerEnv } from './server-context.js'

/** Bytes to send, and the number of events in them, for the metrics. */
export interface StreamChunk {
  bytes: Uint8Array
  events: number
  /** The connection is closed here, without a proper end of the response: see `BREAK_OFF`. */
  breaksOff?: true
}

export interface StreamOptions {
  /** The chunks; ends early when the signal fires. */
  source(signal: AbortSignal): AsyncIterable<StreamChunk>
  /** Sent first. */
  hello?: string
  /** Sent last when the server shuts down. Default: the connection breaks off, so that the client repeats its request. */
  farewell?: string
  /** Sent while there are no chunks. Default: an SSE comment. */
  heartbeat?: string
  contentType?: string
  headers?: Record<string, string>
}

/** Answers with a stream, which counts as one of the caller's until it is closed. */
export function streamResponse(
  c: Context<ServerEnv>,
  context: ServerContext,
  options: StreamOptions,
): Response {
  const headers = {
    'content-type': options.contentType ?? 'text/event-stream; charset=utf-8',
    // A proxy that caches or compresses the stream would also delay it.
    'cache-control': 'no-cache, no-store, no-transform',
    'x-accel-buffering': 'no',
    ...options.headers,
  }
  // The body of an answer to HEAD is never read, so its stream would never close.
  if (c.req.raw.method === 'HEAD') return new Response(null, { headers })
  const leave = context.streams.enter(context.userOf(c))
  const pump = new StreamPump(context, options, leave, () => c.env.outgoing.destroy())
  const { signal } = c.req.raw
  if (signal.aborted) pump.cancel()
  else signal.addEventListener('abort', () => pump.cancel(), { once: true })
  const body = new ReadableStream<Uint8Array>(
    { pull: controller => pump.pull(controller), cancel: () => pump.cancel() },
    { highWaterMark: 0 },
  )
  return new Response(body, { headers })
}

class StreamPump {
  readonly #abort = new AbortController()
  readonly #chunks: AsyncIterator<StreamChunk>
  #next: Promise<IteratorResult<StreamChunk>> | undefined
  #stalled: NodeJS.Timeout | undefined
  #helloSent = false
  #isOver = false
  readonly #context: ServerContext
  readonly #options: StreamOptions
  readonly #leave: () => void
  readonly #disconnect: () => void

  constructor(context: ServerContext, options: StreamOptions, leave: () => void, disconnect: () => void) {
    this.#context = context
    this.#options = options
    this.#leave = leave
    this.#disconnect = disconnect
    this.#chunks = options.source(this.#abort.signal)[Symbol.asyncIterator]()
    this.#watch()
  }

  /** Called when the client has received everything so far. */
  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    clearTimeout(this.#stalled)
    try {
      const bytes = await this.#take()
      if (this.#isOver) return
      if (bytes) controller.enqueue(bytes)
      else this.#finish(controller)
    } catch (error) {
      this.#fail(controller, error)
    }
    if (!this.#isOver) this.#watch()
  }

  cancel(): void {
    if (this.#isOver) return
    this.#end()
    this.#abort.abort()
    void Promise.resolve(this.#chunks.return?.()).catch(() => {})
  }

  async #take(): Promise<Uint8Array | undefined> {
    const { hello } = this.#options
    if (!this.#helloSent) {
      this.#helloSent = true
      if (hello !== undefined) return Buffer.from(hello)
    }
    this.#next ??= this.#chunks.next()
    const next = await orTimeout(this.#next, this.#context.limits.heartbeatMs)
    if (next === 'timeout') return Buffer.from(this.#options.heartbeat ?? ': still here\n\n')
    this.#next = undefined
    if (next.done) return undefined
    if (next.value.breaksOff) {
      this.cancel()
      this.#disconnect()
      return undefined
    }
    this.#context.metrics.eventsSent(next.value.events)
    return next.value.bytes
  }

  /** Closes the stream of a client that has stopped reading. */
  #watch(): void {
    const { limits, metrics, logger } = this.#context
    this.#stalled = setTimeout(() => {
      metrics.streamDropped()
      logger.info('A stream was closed because its client did not read')
      this.cancel()
      this.#disconnect()
    }, limits.stalledMs)
    this.#stalled.unref()
  }

  /** The status was sent before. */
  #fail(controller: ReadableStreamDefaultController<Uint8Array>, error: unknown): void {
    if (this.#isOver) return
    const { farewell } = this.#options
    if (!isShuttingDown(error)) {
      // The client sees the stream end, reconnects, and receives the error.
      this.#context.logger.warn('A stream failed', { error: messageOf(error) })
      this.#finish(controller)
    } else if (farewell !== undefined) {
      controller.enqueue(Buffer.from(farewell))
      this.#finish(controller)
    } else {
      // A stream that ends as if it were complete would pass for the whole answer: clients repeat one that breaks off.
      this.#end()
      this.#disconnect()
    }
  }

  #finish(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#end()
    controller.close()
  }

  #end(): void {
    this.#isOver = true
    clearTimeout(this.#stalled)
    this.#leave()
  }
}

/** Characters that are sent together. */
const PIECE = 64 * 1024

/** A JSON answer whose text is written while the client reads it, in pieces. Other requests are served in between. */
export function jsonInPieces(write: () => Iterable<string>, headers: Record<string, string> = {}): Response {
  const pieces = joined(write())
  const body = new ReadableStream<Uint8Array>({
    pull: async controller => {
      const { done, value } = await pieces.next()
      if (done) controller.close()
      else controller.enqueue(Buffer.from(value))
    },
    cancel: async () => void (await pieces.return()),
  })
  return new Response(body, { headers: { 'content-type': 'application/json', ...headers } })
}

async function* joined(pieces: Iterable<string>): AsyncGenerator<string, void, undefined> {
  let text = ''
  for (const piece of pieces) {
    text += piece
    if (text.length < PIECE) continue
    yield text
    text = ''
    await letOthersRun()
  }
  if (text !== '') yield text
}

/** A text as the inside of a JSON string, in pieces. JSON joins surrogates that a cut has separated. */
export function* jsonText(text: string): Generator<string> {
  for (let at = 0; at < text.length; at += PIECE)
    yield JSON.stringify(text.slice(at, at + PIECE)).slice(1, -1)
}

/** Server-sent events without id and type. */
export function dataFrames(values: readonly unknown[]): StreamChunk {
  const text = values.map(value => `data: ${JSON.stringify(value)}\n\n`).join('')
  return { bytes: Buffer.from(text), events: values.length }
}

/** Ends a stream whose text is void, in a protocol that cannot take text back: no client takes it for complete. */
export const BREAK_OFF: StreamChunk = { bytes: new Uint8Array(), events: 0, breaksOff: true }

/** The last frame of OpenAI's and the AI SDK's streams. */
export const DONE: StreamChunk = { bytes: Buffer.from('data: [DONE]\n\n'), events: 0 }
