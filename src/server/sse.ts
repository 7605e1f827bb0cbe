/**
 * Streams that cannot fill memory. Nothing is taken from the source before the client has taken what went
 * before, so a client that does not read holds one chunk and the socket's own buffer; after a while of that
 * it is let go, and comes back with the number of the last event that it saw.
 */

import type { Context } from 'hono'
import { messageOf } from '../errors.js'
import type { ServerContext, ServerEnv } from './server-context.js'

/** Some bytes, and how many events they are, for the count. */
export interface StreamChunk {
  bytes: Uint8Array
  events: number
}

export interface StreamOptions {
  /** Where the chunks come from; ends early when the signal fires. */
  source(signal: AbortSignal): AsyncIterable<StreamChunk>
  /** Sent first: a hint, a comment. */
  hello?: string
  /** Sent when the source ended because the server ends. */
  farewell?: string
  /** Sent on a silent stream. Default: an SSE comment. */
  heartbeat?: string
  contentType?: string
  headers?: Record<string, string>
}

/** Answers with a stream. Takes one of the caller's places for as long as it is open. */
export function streamResponse(
  c: Context<ServerEnv>,
  context: ServerContext,
  options: StreamOptions,
): Response {
  const headers = {
    'content-type': options.contentType ?? 'text/event-stream; charset=utf-8',
    // Neither kept nor changed on the way: a proxy that compresses would also hold back.
    'cache-control': 'no-cache, no-store, no-transform',
    'x-accel-buffering': 'no',
    ...options.headers,
  }
  // A body that nobody will take must not be begun: it would hold its place for ever.
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
  #greeted = false
  #over = false

  constructor(
    private readonly context: ServerContext,
    private readonly options: StreamOptions,
    private readonly leave: () => void,
    private readonly drop: () => void,
  ) {
    this.#chunks = options.source(this.#abort.signal)[Symbol.asyncIterator]()
    this.#watch()
  }

  /** Called when the client has taken everything so far. */
  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    clearTimeout(this.#stalled)
    try {
      const bytes = await this.#take()
      if (this.#over) return
      if (bytes) controller.enqueue(bytes)
      else this.#finish(controller)
    } catch (error) {
      // The status is long sent. The client sees the stream end, comes back, and is told then.
      this.context.logger.warn('A stream broke off', { error: messageOf(error) })
      if (!this.#over) this.#finish(controller)
    }
    if (!this.#over) this.#watch()
  }

  cancel(): void {
    if (this.#over) return
    this.#end()
    this.#abort.abort()
    void Promise.resolve(this.#chunks.return?.()).catch(() => {})
  }

  async #take(): Promise<Uint8Array | undefined> {
    const { hello } = this.options
    if (!this.#greeted) {
      this.#greeted = true
      if (hello !== undefined) return Buffer.from(hello)
    }
    this.#next ??= this.#chunks.next()
    const winner = await orSilence(this.#next, this.context.limits.heartbeatMs)
    if (winner === 'silence') return Buffer.from(this.options.heartbeat ?? ': still here\n\n')
    this.#next = undefined
    if (winner.done) return undefined
    this.context.metrics.eventsSent(winner.value.events)
    return winner.value.bytes
  }

  /** Whoever takes nothing for long enough is not there any more, or means no good. */
  #watch(): void {
    const { limits, metrics, logger } = this.context
    this.#stalled = setTimeout(() => {
      metrics.streamDropped()
      logger.info('A stream was closed because its client did not read')
      this.cancel()
      this.drop()
    }, limits.stalledMs)
    this.#stalled.unref()
  }

  #finish(controller: ReadableStreamDefaultController<Uint8Array>): void {
    const { farewell } = this.options
    if (farewell !== undefined && this.context.isClosing()) controller.enqueue(Buffer.from(farewell))
    this.#end()
    controller.close()
  }

  #end(): void {
    this.#over = true
    clearTimeout(this.#stalled)
    this.leave()
  }
}

async function orSilence<T>(waiting: Promise<T>, silenceMs: number): Promise<T | 'silence'> {
  let timer: NodeJS.Timeout | undefined
  const silence = new Promise<'silence'>(resolve => {
    timer = setTimeout(resolve, silenceMs, 'silence')
    timer.unref()
  })
  try {
    return await Promise.race([waiting, silence])
  } finally {
    clearTimeout(timer)
  }
}

/** Frames for a stream of server-sent events that carry data alone. */
export function dataFrames(values: readonly unknown[]): StreamChunk {
  const text = values.map(value => `data: ${JSON.stringify(value)}\n\n`).join('')
  return { bytes: Buffer.from(text), events: values.length }
}

/** The last frame of OpenAI's and the AI SDK's streams. */
export const DONE: StreamChunk = { bytes: Buffer.from('data: [DONE]\n\n'), events: 0 }
