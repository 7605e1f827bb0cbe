/**
 * One model call, alike for every provider: repair the history, build the body, report the request, send it, read
 * the answer, and retry when that may help. A provider adds only its wire.
 */
import { setMaxListeners } from 'node:events'
import { defined } from '../base/defined.js'
import { isRecord } from '../base/is-record.js'
import { letOthersRun } from '../base/pause.js'
import { AgentError } from '../errors.js'
import type { AnswerContext } from './assemble-stream.js'
import type {
  GenerateRequest,
  GenerationOptions,
  ModelInfo,
  ProviderMessage,
  ServerTool,
  ToolDeclaration,
  Vendor,
} from './provider.js'
import {
  abortedError,
  badEventError,
  type ErrorContext,
  pausedError,
  refusalIn,
  silentStreamError,
  toProviderError,
} from './provider-error.js'
import { limiterOfCall, type RateLimiter } from './rate-limiter.js'
import { refusedParts, type SentRequest } from './refused-parts.js'
import { toWireName } from './repair/map-names.js'
import type { Profile } from './repair/profile.js'
import { refuseBroken, repairHistory } from './repair/repair-history.js'
import { type Abilities, reviewRequest } from './request-options.js'
import { type RetryPolicy, retryStream } from './retry.js'
import type { StreamEvent } from './stream-event.js'

/** How a provider writes a body, sends it, and reads the answer. */
export interface Wire<Body, Chunk> {
  /** Whose signatures the answers carry. */
  vendor: Vendor
  profile: Profile
  info: ModelInfo
  /** Which options and server tools of this request the body can hold. */
  abilities(prepared: PreparedRequest): Abilities
  toBody(prepared: PreparedRequest): Body
  /** Sends the body. Rejects with whatever the SDK throws. */
  open(body: Body, signal: AbortSignal): Promise<AsyncIterable<Chunk>>
  read(chunks: AsyncIterable<Chunk>, context: AnswerContext): AsyncIterable<StreamEvent>
}

/** A request whose history the model accepts and whose tools have names that it allows. */
export interface PreparedRequest {
  model: string
  messages: readonly ProviderMessage[]
  tools: readonly ToolDeclaration[]
  serverTools?: readonly ServerTool[]
  options: GenerationOptions
  profile: Profile
  info: ModelInfo
  /** Reports an option that the model does not take: it was left out, or replaced by the nearest that it takes. */
  report(kind: 'leave-out' | 'replace', detail: string): void
}

export interface AnswerSettings {
  providerId: string
  retry: RetryPolicy
  /** How long a provider may send nothing, before and within its answer. */
  idleTimeoutMs: number
  secrets: readonly (string | undefined)[]
  /** The tag of the account that requests are made with. */
  account?: string | undefined
  limiter?: RateLimiter | undefined
}

/** Streams one answer. Never throws: an error is the last event. */
export async function* streamAnswer<Body, Chunk>(
  settings: AnswerSettings,
  request: GenerateRequest,
  signal: AbortSignal | undefined,
  connect: () => Wire<Body, Chunk>,
): AsyncGenerator<StreamEvent> {
  const context: ErrorContext = {
    provider: settings.providerId,
    model: request.model,
    secrets: settings.secrets,
    signal,
  }
  let sent: SentRequest | undefined
  try {
    if (signal?.aborted) throw abortedError(context)
    const wire = connect()
    const { body, event, mappedNames, places, messages } = prepare(wire, request, settings)
    const limits = request.mediaLimits ?? 'documented'
    const { messages: given, answered = 0 } = request
    sent = { given, answered, sent: messages, body, profile: wire.profile, limits }
    await letOthersRun()
    yield event
    await letOthersRun()
    const answer: AnswerContext = {
      ...context,
      origin: { vendor: wire.vendor, model: request.model, ...defined({ account: settings.account }) },
      mappedNames,
      places,
    }
    yield* retryStream({
      policy: settings.retry,
      limiter: settings.limiter,
      signal,
      toError: error => toProviderError(error, context),
      toPaused: waitMs => pausedError(context, waitMs),
      takesBack: request.takesBack,
      onRetry: request.onRetry,
      attempt: sentAt => oneAttempt(wire, body, answer, { ...settings, sentAt }),
    })
  } catch (error) {
    yield { type: 'error', error: withRefused(toProviderError(error, context), sent) }
  }
}

/** The error with what of the request it names, where the request may be sent again without that. */
function withRefused(error: AgentError, request: SentRequest | undefined): AgentError {
  const found = request && refusalIn(error)
  const refused = found && refusedParts(found.refusal, request, found.words)
  if (!refused) return error
  const { code, message, retryable, details, cause } = error
  return new AgentError(code, message, { retryable, details: { ...details, refused }, cause })
}

function prepare<Body, Chunk>(
  wire: Wire<Body, Chunk>,
  request: GenerateRequest,
  { providerId, account }: AnswerSettings,
) {
  const { profile, info } = wire
  const mode = request.repairMode ?? 'repair'
  const tools = request.tools ?? []
  const toolNames = tools.map(tool => tool.name)
  const repaired = repairHistory(request.messages, profile, {
    mode,
    toolNames,
    mediaLimits: request.mediaLimits,
    model: request.model,
    ...defined({ account }),
  })
  // In `explain` mode the history is sent as given, names included.
  const wireName = mode === 'explain' ? (name: string) => name : (name: string) => toWireName(name, profile)
  const repairs = [...repaired.repairs]
  const lastPlace = Math.max(request.messages.length - 1, 0)
  const prepared: PreparedRequest = {
    model: request.model,
    messages: repaired.messages,
    tools: tools.map(tool => ({ ...tool, name: wireName(tool.name) })),
    serverTools: request.serverTools ?? [],
    options: withToolNames(request.options ?? {}, wireName),
    profile,
    info,
    report: (kind, detail) => repairs.push({ step: 'options', kind, at: lastPlace, detail }),
  }
  const to = { model: `${providerId}/${request.model}` }
  repairs.push(...reviewRequest(prepared, wire.abilities(prepared), to, mode))
  const body = wire.toBody(prepared)
  if (mode === 'strict') refuseBroken(repairs, profile)
  const head = repaired.messages.findIndex(message => message?.role !== 'system')
  const event: StreamEvent = {
    type: 'request',
    model: request.model,
    profile: profile.name,
    repairs,
    mappedIds: repaired.mappedIds,
    body,
  }
  const { messages, mappedNames } = repaired
  return { body, event, messages, mappedNames, places: repaired.places.slice(Math.max(head, 0)) }
}

/** The names of tools that must or may be called, as the wire knows them. */
function withToolNames(options: GenerationOptions, wireName: (name: string) => string): GenerationOptions {
  const { toolChoice, gemini } = options
  if (typeof toolChoice !== 'object') return options
  const choice =
    'name' in toolChoice ? { name: wireName(toolChoice.name) } : { names: toolChoice.names.map(wireName) }
  const exact = gemini?.toolConfig as
    | { functionCallingConfig?: { allowedFunctionNames?: string[] } }
    | undefined
  const names = exact?.functionCallingConfig?.allowedFunctionNames
  if (gemini === undefined || names === undefined) return { ...options, toolChoice: choice }
  const calling = { ...exact?.functionCallingConfig, allowedFunctionNames: names.map(wireName) }
  const toolConfig = { ...exact, functionCallingConfig: calling }
  return { ...options, toolChoice: choice, gemini: { ...gemini, toolConfig } }
}

/** Sends once and reads to the end. Leaving early, for any reason, closes the connection. */
async function* oneAttempt<Body, Chunk>(
  wire: Wire<Body, Chunk>,
  body: Body,
  context: AnswerContext,
  { idleTimeoutMs, limiter, sentAt }: AnswerSettings & { sentAt: number | undefined },
): AsyncGenerator<StreamEvent> {
  const watch = new Watch(context, idleTimeoutMs)
  try {
    const chunks = await watch.race(sent(() => wire.open(body, watch.signal), limiter, sentAt))
    yield* wire.read(watch.chunks(chunks), context)
  } finally {
    watch.close()
  }
}

/** Sends a request whose turn it is, and tells when its answer begins. */
async function sent<Chunks>(
  open: () => Promise<Chunks>,
  limiter: RateLimiter | undefined,
  sentAt: number | undefined,
): Promise<Chunks> {
  if (!limiter) return open()
  let isSuccess = false
  try {
    const chunks = await limiterOfCall.run(limiter, open)
    isSuccess = true
    return chunks
  } finally {
    limiter.answered(isSuccess, sentAt)
  }
}

/**
 * Ends a request when its caller aborts or the provider sends nothing for too long. The SDKs differ in what an
 * abort does (two of them end the loop without an error), so every wait is raced against it here.
 */
class Watch {
  readonly #context: AnswerContext
  readonly #idleTimeoutMs: number
  readonly #controller = new AbortController()
  readonly #stopped: Promise<never>
  #reject: (error: unknown) => void = () => {}
  #timer: NodeJS.Timeout | undefined

  constructor(context: AnswerContext, idleTimeoutMs: number) {
    this.#context = context
    this.#idleTimeoutMs = idleTimeoutMs
    this.#stopped = new Promise<never>((_, reject) => {
      this.#reject = reject
    })
    // It may reject while nothing awaits it; that is not an unhandled rejection.
    this.#stopped.catch(() => {})
    // One listener for each request that runs: their number is not a leak.
    if (context.signal) setMaxListeners(0, context.signal)
    context.signal?.addEventListener('abort', this.#stop, { once: true })
    if (context.signal?.aborted) this.#stop()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  async race<Value>(promise: Promise<Value>): Promise<Value> {
    this.#timer = setTimeout(() => {
      this.#reject(silentStreamError(this.#context, this.#idleTimeoutMs))
      this.#controller.abort()
    }, this.#idleTimeoutMs)
    try {
      return await Promise.race([promise, this.#stopped])
    } finally {
      clearTimeout(this.#timer)
    }
  }

  async *chunks<Chunk>(source: AsyncIterable<Chunk>): AsyncGenerator<Chunk> {
    const iterator = source[Symbol.asyncIterator]()
    let finished = false
    try {
      while (true) {
        const next = await this.race(iterator.next())
        if (next.done) {
          finished = true
          break
        }
        const event: unknown = next.value
        if (!isRecord(event)) throw badEventError(this.#context, event)
        yield next.value
      }
    } finally {
      // Not awaited: `return()` of an iterator in the middle of a read resolves only when that read ends.
      if (!finished) void Promise.resolve(iterator.return?.()).catch(() => {})
    }
    if (this.#context.signal?.aborted) throw abortedError(this.#context)
  }

  close(): void {
    this.#context.signal?.removeEventListener('abort', this.#stop)
    clearTimeout(this.#timer)
    this.#controller.abort()
  }

  readonly #stop = (): void => {
    this.#reject(abortedError(this.#context))
    this.#controller.abort()
  }
}
