/** A run as the AI SDK's UI message stream: run events in, chunks out. */

import type { Context } from 'hono'
import { RUN_ENDED_FIRST, RUN_STOPPED } from '../../../base/markers.js'
import { CONFIRMATION_TOOL } from '../../../base/names.js'
import { firstSeqOf, splitAt } from '../../../run/event-numbers.js'
import type { SessionKey } from '../../../session/message.js'
import type { Source } from '../../../session/sources.js'
import { isLink } from '../../../transcript/item.js'
import type { RunEvent } from '../../chat-protocol.js'
import type { EventBatch } from '../../runs/event-batch.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { DONE, dataFrames, type StreamChunk, streamResponse } from '../../sse.js'
import { badField } from '../read-body.js'
import { followUntilAsked, type RunReaders } from '../run-readers.js'
import {
  type ModelFinish,
  modelFinish,
  runHeaders,
  runProblem,
  streamTruncated,
  waitingRun,
} from '../start-run.js'

interface ChatStreamOptions {
  key: SessionKey
  runId: string
  readers: RunReaders
  /** The number of the last event that the client has. Default 0: none. */
  after?: number
  /** Calls whose approval the client has just answered. */
  answered?: ReadonlySet<string>
}

/** Answers with the events of a run as a UI message stream. */
export function streamChat(
  c: Context<ServerEnv>,
  context: ServerContext,
  options: ChatStreamOptions,
): Response {
  const { key, runId } = options
  const asData = approvalsAsData(c)
  return streamResponse(c, context, {
    headers: {
      ...runHeaders({ sessionId: key.sessionId, runId }),
      'x-vercel-ai-ui-message-stream': 'v1',
    },
    source: signal => frames(context, { ...options, asData }, signal),
  })
}

/** `ai` 5 refuses a stream with chunks that it does not know, and those of approvals came with 6: its pages send a header. */
export function approvalsAsData(c: Context<ServerEnv>): boolean {
  const wanted = c.req.header('x-lango-approvals') ?? 'native'
  if (wanted === 'native' || wanted === 'data') return wanted === 'data'
  const message = `The header x-lango-approvals is "native" or "data", not "${wanted}".`
  throw badField('x-lango-approvals', message)
}

/** The error of a tool as one text: the AI SDK has no other field for it. */
export function errorText(result: unknown): string {
  const error = (result as { error?: unknown } | null)?.error
  return typeof error === 'string' ? error : JSON.stringify(error ?? result)
}

async function* frames(
  context: ServerContext,
  { key, runId, readers, after = 0, answered = new Set(), asData }: ChatStreamOptions & { asData: boolean },
  signal: AbortSignal,
): AsyncGenerator<StreamChunk> {
  const writer = new UiChunkWriter({ sessionId: key.sessionId, runId }, { answered, asData })
  readers.enter(runId)
  let hasEnded = false
  try {
    yield dataFrames([writer.start()])
    const isAsking = () => writer.isWaiting
    for await (const batch of followUntilAsked(context.hub, runId, { signal, isAsking })) {
      const chunks = await chunksOf(context, { key, batch, after, writer })
      if (chunks.length > 0) yield dataFrames(chunks)
      hasEnded = batch.endsRun
    }
  } finally {
    readers.leave(runId)
  }
  if (!hasEnded && !signal.aborted) {
    const waiting = await waitingRun(context, runId)
    const truncated = [{ type: 'error', errorText: streamTruncated().detail }]
    const paused = writer.isWaiting ? writer.pause() : truncated
    yield dataFrames(waiting ? writer.pause({ status: 'waiting', waitsFor: waiting.waitsFor }) : paused)
  }
  yield DONE
}

interface WrittenBatch {
  key: SessionKey
  batch: EventBatch
  after: number
  writer: UiChunkWriter
}

/** Events that the client has are written again, so that the writer knows what is open, and not sent. */
async function chunksOf(
  context: ServerContext,
  { key, batch, after, writer }: WrittenBatch,
): Promise<UiChunk[]> {
  const chunks: UiChunk[] = []
  for (const event of splitAt(batch.events, after)) {
    const finish = event.type === 'run-finish' ? await modelFinish(context, key, event.runId) : 'stop'
    const written = writer.write(event, finish)
    if (event.seq > after) chunks.push(...written)
    else if (event.seq === after) writer.pause()
  }
  return chunks
}

/** A chunk of the stream: its type, and what belongs to it. */
interface UiChunk {
  type: string
  [field: string]: unknown
}

interface WriterOptions {
  answered: ReadonlySet<string>
  asData: boolean
}

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/**
 * Converts run events to chunks. Tracks which texts, steps and calls are open, because the AI SDK requires each of
 * them to be closed. A writer needs all events from the first one, also when the answer begins later.
 */
class UiChunkWriter {
  #open: { kind: 'text' | 'reasoning'; id: string } | undefined
  /** Texts of steps that are not complete. */
  #drafts = 0
  #step: 'none' | 'open' | 'answered' = 'none'
  #seq = 0
  /** Calls without a result. */
  readonly #calls = new Set<string>()
  /** Calls that wait for approval. */
  readonly #asked = new Set<string>()
  readonly #denied = new Set<string>()
  readonly #place: { sessionId: string; runId: string }
  /** Calls that were just answered, although the run may not have received it yet. */
  readonly #answered: ReadonlySet<string>
  /** Whether approvals are data parts. */
  readonly #asData: boolean

  constructor(place: { sessionId: string; runId: string }, options: WriterOptions) {
    this.#place = place
    this.#answered = options.answered
    this.#asData = options.asData
  }

  /** Whether the run waits for the user: the client can answer only after the stream has ended. */
  get isWaiting(): boolean {
    return this.#asked.size > 0
  }

  /** The first chunk: the id of the message, the session and the run. */
  start(): UiChunk {
    return { type: 'start', messageId: this.#place.runId, messageMetadata: this.#metadata() }
  }

  write(event: RunEvent, finish: ModelFinish = 'stop'): UiChunk[] {
    this.#seq = event.seq
    switch (event.type) {
      case 'text-delta':
        return this.#text('text', event)
      case 'reasoning-delta':
        return this.#text('reasoning', event)
      case 'tool-call':
        return this.#call(event)
      case 'tool-result':
        return this.#result(event)
      case 'approval-request':
        return this.#ask(event)
      case 'approval-answer':
        return this.#answer(event)
      case 'error':
        return [{ type: 'error', errorText: runProblem(event.error).detail }]
      case 'run-finish':
        return this.#finish(event, finish)
      case 'step-restart':
        return this.#restart(event)
      case 'sources':
        return sourceParts(event.sources)
      case 'usage':
        this.#drafts = 0
        return [...this.#closeText(), noticeOf(event)]
      case 'run-start':
        return []
      default:
        return [noticeOf(event)]
    }
  }

  /** Ends the stream while the run waits for approval: the client sends the answers with its next request. */
  pause(more: object = {}): UiChunk[] {
    const closed = this.#closeStep()
    return [...closed, { type: 'finish', finishReason: 'tool-calls', messageMetadata: this.#metadata(more) }]
  }

  /**
   * A part cannot be taken back: the open one is ended as void, and a data part says how many texts before it are. What
   * the model writes now begins a new step.
   */
  #restart({ step }: Of<'step-restart'>): UiChunk[] {
    const voidParts = this.#drafts
    this.#drafts = 0
    const notice = { type: 'data-step-restart', id: `step-restart-${this.#seq}`, data: { step, voidParts } }
    // A run that is resumed restarts also a step that has said nothing.
    if (voidParts === 0) return [notice]
    const [end, ...rest] = this.#closeText()
    const ended = end ? [{ ...end, providerMetadata: { lango: { void: true } } }, ...rest] : []
    return [...ended, notice, ...this.#closeStep()]
  }

  #text(kind: 'text' | 'reasoning', event: Of<'text-delta' | 'reasoning-delta'>): UiChunk[] {
    const chunks = this.#openStep()
    if (this.#open?.kind !== kind) {
      chunks.push(...this.#closeText())
      this.#drafts += 1
      this.#open = { kind, id: `${kind}-${firstSeqOf(event)}` }
      chunks.push({ type: `${kind}-start`, id: this.#open.id })
    }
    return [...chunks, { type: `${kind}-delta`, id: this.#open.id, delta: event.text }]
  }

  #call({ id, name, args, pending }: Of<'tool-call'>): UiChunk[] {
    // ADK's request for a confirmation is a call of its own: the client sees it at the call that it is about.
    if (name === CONFIRMATION_TOOL) return []
    const chunks = [...this.#openStep(), ...this.#closeText()]
    this.#calls.add(id)
    this.#drafts = 0
    if (pending && !this.#answered.has(id)) this.#asked.add(id)
    // The agent executes its tools, and the client does not know them beforehand. The result of a long-running one comes
    // from the client, which must not take the call for one that is executed elsewhere.
    const facts = { toolCallId: id, toolName: name, dynamic: true, ...(pending ? {} : EXECUTED) }
    return [...chunks, { type: 'tool-input-available', ...facts, input: args }]
  }

  #result({ id, result, isError }: Of<'tool-result'>): UiChunk[] {
    this.#step = this.#step === 'open' ? 'answered' : this.#step
    this.#asked.delete(id)
    if (!this.#calls.delete(id) || this.#denied.has(id)) return []
    const facts = { toolCallId: id, ...EXECUTED, dynamic: true }
    return isError
      ? [{ type: 'tool-output-error', ...facts, errorText: errorText(result) }]
      : [{ type: 'tool-output-available', ...facts, output: result }]
  }

  #ask({ id, callId: toolCallId = id, name, args, reason }: Of<'approval-request'>): UiChunk[] {
    if (!this.#calls.has(toolCallId)) return []
    if (!this.#answered.has(toolCallId)) this.#asked.add(toolCallId)
    if (!this.#asData) return [{ type: 'tool-approval-request', approvalId: id, toolCallId }]
    const data = { approvalId: id, toolCallId, toolName: name, input: args, ...(reason ? { reason } : {}) }
    return [{ type: 'data-approval-request', id: `approval-request-${id}`, data }]
  }

  #answer({ id, callId: toolCallId = id, answer }: Of<'approval-answer'>): UiChunk[] {
    this.#asked.delete(toolCallId)
    if (answer !== 'no' || !this.#calls.has(toolCallId)) return []
    this.#denied.add(toolCallId)
    if (!this.#asData) return [{ type: 'tool-output-denied', toolCallId }]
    return [{ type: 'tool-output-error', toolCallId, ...EXECUTED, dynamic: true, errorText: NOT_ALLOWED }]
  }

  #finish({ finishReason, usage }: Of<'run-finish'>, finish: ModelFinish): UiChunk[] {
    const text = finishReason === 'aborted' ? RUN_STOPPED : RUN_ENDED_FIRST
    const unanswered = [...this.#calls].filter(id => !this.#denied.has(id))
    const facts = { ...EXECUTED, dynamic: true, errorText: text }
    const errors = unanswered.map(id => ({ type: 'tool-output-error', toolCallId: id, ...facts }))
    const chunks = [...errors, ...this.#closeStep()]
    const messageMetadata = this.#metadata({ finishReason, usage })
    if (finishReason === 'aborted') {
      return [...chunks, { type: 'message-metadata', messageMetadata }, { type: 'abort', reason: text }]
    }
    const isAnswered = finishReason === 'stop' || finishReason === 'length'
    const reason = isAnswered ? finish : finishReason === 'error' ? 'error' : 'other'
    return [...chunks, { type: 'finish', finishReason: reason, messageMetadata }]
  }

  /** A step is one answer of the model and the results of its tools. */
  #openStep(): UiChunk[] {
    if (this.#step === 'open') return []
    const closed = this.#step === 'answered' ? this.#closeStep() : []
    this.#step = 'open'
    return [...closed, { type: 'start-step' }]
  }

  #closeStep(): UiChunk[] {
    const closed = this.#closeText()
    if (this.#step !== 'none') closed.push({ type: 'finish-step' })
    this.#step = 'none'
    return closed
  }

  #closeText(): UiChunk[] {
    const open = this.#open
    this.#open = undefined
    return open ? [{ type: `${open.kind}-end`, id: open.id }] : []
  }

  #metadata(more: object = {}): object {
    return { lango: { ...this.#place, seq: this.#seq, ...more } }
  }
}

/** Of a call that the agent executes. */
const EXECUTED = { providerExecuted: true }

const NOT_ALLOWED = 'The user did not allow this call.'

type Notice = Of<
  | 'run-queued'
  | 'run-scheduled'
  | 'run-resumed'
  | 'model-switch'
  | 'model-wait'
  | 'tools-missing'
  | 'agent-transfer'
  | 'turn-warning'
  | 'wrap-up'
  | 'repair'
  | 'history-cut'
  | 'tool-unknown'
  | 'code'
  | 'usage'
>

/** Sources as the AI SDK's parts: the same in a stream and in a history. */
export function sourceParts(sources: readonly Source[]): UiChunk[] {
  return sources
    .filter(({ url }) => isLink(url))
    .map(({ url, title }) => ({ type: 'source-url', sourceId: url, url, ...(title ? { title } : {}) }))
}

/** Other events are sent as data, under the name of the event. */
function noticeOf({ sessionId: _sessionId, runId: _runId, seq, type, ...data }: Notice): UiChunk {
  return { type: `data-${type}`, id: `${type}-${seq}`, data }
}
