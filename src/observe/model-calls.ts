/** Model calls as they are made, for those who count them and those who trace them. */
import { AgentError, type AgentErrorCode } from '../errors.js'
import { callObserver } from '../provider/call-observer.js'
import { type GenerateRequest, type Provider, withGenerate } from '../provider/provider.js'
import type { FinishReason, RequestEvent, StreamEvent } from '../provider/stream-event.js'
import type { RunEvent } from '../run/run-event.js'
import { completeUsage, costOf, type RunUsage } from '../session/usage.js'

/** The run that a call is made for. */
export interface CallPlace {
  runId: string
  sessionId: string
}

/** A model call that is over. */
export interface ModelCall extends Partial<CallPlace> {
  /** As `provider/model`. */
  model: string
  durationMs: number
  /** Until the first part of the answer. Absent when there was none. */
  firstChunkMs?: number
  /** With its cost, where the price is known. Absent when the provider reported none. */
  usage?: RunUsage
  finishReason?: FinishReason
  error?: AgentErrorCode
}

/** What the vendor and the wire say of a call. */
export interface CallFacts {
  /** Where the request was sent to. */
  address?: string
  port?: number
  responseId?: string
  responseModel?: string
}

/** A request that is about to be sent. */
export interface StartedCall extends Partial<CallPlace> {
  /** As `provider/model`. */
  model: string
  request: GenerateRequest
  /** As it goes out; absent when it failed before that. */
  sent?: RequestEvent | undefined
}

/** Surrounds one call. */
export interface CallTrace {
  /** Does a part of the call's work. */
  within<Result>(work: () => Result): Result
  event(event: StreamEvent): void
  end(call: ModelCall, facts: CallFacts, error?: AgentError): void
}

/** Those who listen to the runs of a runtime. */
export class RunListeners {
  readonly events = new Set<(event: RunEvent) => void>()
  readonly calls = new Set<(call: ModelCall) => void>()

  /** Returns what removes them. */
  add(onEvent: (event: RunEvent) => void, onCall?: (call: ModelCall) => void): () => void {
    this.events.add(onEvent)
    if (onCall) this.calls.add(onCall)
    return () => {
      this.events.delete(onEvent)
      if (onCall) this.calls.delete(onCall)
    }
  }
}

/** Who watches the calls of a runtime. */
export interface CallWatch {
  isWatched(): boolean
  ended(call: ModelCall): void
  /** The run that the current code works for. */
  place(): CallPlace | undefined
  trace?(call: StartedCall): CallTrace
}

/** The provider, with its calls watched. While nobody does, they are the provider's own. */
export function watchedProvider(provider: Provider, watch: CallWatch): Provider {
  return withGenerate(provider, (request, signal) =>
    watch.isWatched() ? watched(provider, watch, request, signal) : provider.generate(request, signal),
  )
}

async function* watched(
  provider: Provider,
  watch: CallWatch,
  request: GenerateRequest,
  signal: AbortSignal | undefined,
): AsyncGenerator<StreamEvent, void> {
  const events = provider.generate(request, signal)[Symbol.asyncIterator]()
  const open = (sent?: RequestEvent) => new OpenCall(provider, watch, request, sent)
  let call: OpenCall | undefined
  let isOver = false
  try {
    while (true) {
      const next: IteratorResult<StreamEvent> = await (call
        ? call.within(() => events.next())
        : events.next())
      if (next.done) {
        isOver = true
        return
      }
      const event = next.value
      if (event.type === 'error') call ??= open()
      call?.event(event)
      yield event
      // Nothing is sent before the next event is requested.
      if (event.type === 'request') call = open(event)
    }
  } catch (error) {
    call?.failed(error)
    throw error
  } finally {
    call?.end(signal?.aborted)
    if (!isOver) await events.return?.()
  }
}

class OpenCall {
  readonly #call: StartedCall
  readonly #provider: Provider
  readonly #watch: CallWatch
  readonly #trace: CallTrace | undefined
  readonly #startedAt = performance.now()
  readonly #facts: CallFacts = {}
  readonly #observer = {
    sentTo: ({ hostname, port, protocol }: URL) => {
      this.#facts.address = hostname
      this.#facts.port = Number(port) || (protocol === 'http:' ? 80 : 443)
    },
    answered: ({ id, model }: { id?: unknown; model?: unknown }) => {
      if (typeof id === 'string' && id !== '') this.#facts.responseId = id
      if (typeof model === 'string' && model !== '') this.#facts.responseModel = model
    },
  }
  #firstChunkMs: number | undefined
  #usage: RunUsage | undefined
  #finishReason: FinishReason | undefined
  #error: AgentError | undefined

  constructor(
    provider: Provider,
    watch: CallWatch,
    request: GenerateRequest,
    sent: RequestEvent | undefined,
  ) {
    this.#provider = provider
    this.#watch = watch
    this.#call = { model: `${provider.id}/${request.model}`, request, sent, ...watch.place() }
    this.#trace = watch.trace?.(this.#call)
  }

  within<Result>(work: () => Result): Result {
    const observed = () => callObserver.run(this.#observer, work)
    return this.#trace ? this.#trace.within(observed) : observed()
  }

  event(event: StreamEvent): void {
    if (ANSWERS.has(event.type)) this.#firstChunkMs ??= performance.now() - this.#startedAt
    if (event.type === 'usage') this.#usage = completeUsage(event.usage)
    if (event.type === 'done') this.#finishReason = event.finishReason
    if (event.type === 'error') this.#error = event.error
    this.#trace?.event(event)
  }

  failed(error: unknown): void {
    this.#error ??= error instanceof AgentError ? error : new AgentError('internal', 'The call failed')
  }

  /** `isAborted`: the caller wants no more of an answer that is not complete. */
  end(isAborted = false): void {
    if (isAborted && !this.#finishReason)
      this.#error ??= new AgentError('aborted', 'The model call was aborted')
    const { model, runId, sessionId, request } = this.#call
    const { price } = this.#provider.describeModel(request.model)
    const usage = this.#usage && price ? { ...this.#usage, cost: costOf(this.#usage, price) } : this.#usage
    const call: ModelCall = {
      model,
      durationMs: performance.now() - this.#startedAt,
      ...(runId === undefined ? {} : { runId }),
      ...(sessionId === undefined ? {} : { sessionId }),
      ...(this.#firstChunkMs === undefined ? {} : { firstChunkMs: this.#firstChunkMs }),
      ...(usage ? { usage } : {}),
      ...(this.#finishReason ? { finishReason: this.#finishReason } : {}),
      ...(this.#error ? { error: this.#error.code } : {}),
    }
    this.#trace?.end(call, this.#facts, this.#error)
    this.#watch.ended(call)
  }
}

/** The events that are parts of an answer. */
const ANSWERS: ReadonlySet<StreamEvent['type']> = new Set([
  'text-delta',
  'reasoning-delta',
  'tool-call',
  'media',
  'vendor',
])
