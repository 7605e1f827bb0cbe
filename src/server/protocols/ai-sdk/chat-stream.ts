/** A run as the AI SDK's UI message stream: run events in, chunks out. */

import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from 'hono'
import type { SessionKey } from '../../../session/message.js'
import type { RunEvent } from '../../chat-protocol.js'
import type { EventBatch } from '../../runs/event-batch.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { DONE, dataFrames, type StreamChunk, streamResponse } from '../../sse.js'
import { brokenOff, type ModelFinish, modelFinish, runHeaders, runProblem } from '../start-run.js'

/** A chunk of the stream: its type, and what belongs to it. */
export interface UiChunk {
  type: string
  [field: string]: unknown
}

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/**
 * Says what a run event means to a chat. Keeps which texts, steps and calls are open, because the AI SDK wants
 * each of them closed. One writer hears a run from its first event, also where the answer begins later.
 */
class UiChunkWriter {
  #open: { kind: 'text' | 'reasoning'; id: string } | undefined
  #texts = 0
  #step: 'none' | 'open' | 'answered' = 'none'
  #seq = 0
  /** Calls without a result. */
  readonly #calls = new Set<string>()
  /** Calls that wait for the user's word. */
  readonly #asked = new Set<string>()
  readonly #denied = new Set<string>()

  constructor(
    private readonly place: { sessionId: string; runId: string },
    /** Calls whose approval has just been answered, although the run may not have heard it yet. */
    private readonly answered: ReadonlySet<string>,
  ) {}

  /** Whether the run waits for the user, so that a client must be let go to answer. */
  get isWaiting(): boolean {
    return this.#asked.size > 0
  }

  /** The first chunk: which message it is, and where it comes from. */
  start(): UiChunk {
    return { type: 'start', messageId: this.place.runId, messageMetadata: this.#metadata() }
  }

  hear(event: RunEvent, finish: ModelFinish = 'stop'): UiChunk[] {
    this.#seq = event.seq
    switch (event.type) {
      case 'text-delta':
        return this.#say('text', event.text)
      case 'reasoning-delta':
        return this.#say('reasoning', event.text)
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
      case 'run-start':
      case 'usage':
        return []
      default:
        return [noticeOf(event)]
    }
  }

  /** Ends the answer for now: the client is asked, and comes back with what the user said. */
  pause(): UiChunk[] {
    const closed = this.#closeStep()
    return [...closed, { type: 'finish', finishReason: 'tool-calls', messageMetadata: this.#metadata() }]
  }

  #say(kind: 'text' | 'reasoning', delta: string): UiChunk[] {
    if (delta === '') return []
    const chunks = this.#openStep()
    if (this.#open?.kind !== kind) {
      chunks.push(...this.#closeText())
      this.#texts += 1
      this.#open = { kind, id: `${kind}-${this.#texts}` }
      chunks.push({ type: `${kind}-start`, id: this.#open.id })
    }
    return [...chunks, { type: `${kind}-delta`, id: this.#open.id, delta }]
  }

  #call({ id, name, args }: Of<'tool-call'>): UiChunk[] {
    const chunks = [...this.#openStep(), ...this.#closeText()]
    this.#calls.add(id)
    // The agent runs its tools: the client is not to call anything, and cannot know them beforehand.
    const facts = { toolCallId: id, toolName: name, providerExecuted: true, dynamic: true }
    return [...chunks, { type: 'tool-input-available', ...facts, input: args }]
  }

  #result({ id, result, isError }: Of<'tool-result'>): UiChunk[] {
    this.#step = this.#step === 'open' ? 'answered' : this.#step
    this.#asked.delete(id)
    if (!this.#calls.delete(id) || this.#denied.has(id)) return []
    const facts = { toolCallId: id, providerExecuted: true, dynamic: true }
    return isError
      ? [{ type: 'tool-output-error', ...facts, errorText: errorText(result) }]
      : [{ type: 'tool-output-available', ...facts, output: result }]
  }

  #ask({ id }: Of<'approval-request'>): UiChunk[] {
    if (!this.#calls.has(id)) return []
    if (!this.answered.has(id)) this.#asked.add(id)
    return [{ type: 'tool-approval-request', approvalId: id, toolCallId: id }]
  }

  #answer({ id, answer }: Of<'approval-answer'>): UiChunk[] {
    this.#asked.delete(id)
    if (answer !== 'no' || !this.#calls.has(id)) return []
    this.#denied.add(id)
    return [{ type: 'tool-output-denied', toolCallId: id }]
  }

  #finish({ finishReason, usage }: Of<'run-finish'>, finish: ModelFinish): UiChunk[] {
    const text = finishReason === 'aborted' ? 'The run was stopped.' : 'The run ended before the tool did.'
    const unanswered = [...this.#calls].filter(id => !this.#denied.has(id))
    const facts = { providerExecuted: true, dynamic: true, errorText: text }
    const errors = unanswered.map(id => ({ type: 'tool-output-error', toolCallId: id, ...facts }))
    const chunks = [...errors, ...this.#closeStep()]
    const messageMetadata = this.#metadata({ finishReason, usage })
    if (finishReason === 'aborted') {
      return [...chunks, { type: 'message-metadata', messageMetadata }, { type: 'abort', reason: text }]
    }
    const reason = finishReason === 'stop' ? finish : finishReason === 'error' ? 'error' : 'other'
    return [...chunks, { type: 'finish', finishReason: reason, messageMetadata }]
  }

  /** A step is one answer of the model and what its tools gave back. */
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
    return { lango: { ...this.place, seq: this.#seq, ...more } }
  }
}

type Notice = Of<'agent-transfer' | 'turn-warning' | 'wrap-up' | 'repair' | 'history-cut'>

/** What else happens is told as data, under the name of the event. */
function noticeOf({ sessionId: _sessionId, runId: _runId, seq, type, ...data }: Notice): UiChunk {
  return { type: `data-${type}`, id: `${type}-${seq}`, data }
}

/** Questions of calls that were made side by side come together; then the client is let go to answer them. */
const QUIET_MS = 300

interface ChatStreamOptions {
  key: SessionKey
  runId: string
  /** The client has seen everything up to this event. Default: nothing. */
  after?: number
  /** Calls whose approval the client has just answered. */
  answered?: ReadonlySet<string>
}

/** Answers with the events of a run, as the AI SDK reads them. */
export function streamChat(
  c: Context<ServerEnv>,
  context: ServerContext,
  options: ChatStreamOptions,
): Response {
  const { key, runId } = options
  return streamResponse(c, context, {
    headers: {
      ...runHeaders({ sessionId: key.sessionId, runId }),
      'x-vercel-ai-ui-message-stream': 'v1',
    },
    source: signal => frames(context, options, signal),
  })
}

async function* frames(
  context: ServerContext,
  { key, runId, after = 0, answered = new Set() }: ChatStreamOptions,
  signal: AbortSignal,
): AsyncGenerator<StreamChunk> {
  const writer = new UiChunkWriter({ sessionId: key.sessionId, runId }, answered)
  const left = new AbortController()
  const batches = context.hub.followBatches(runId, { signal: AbortSignal.any([signal, left.signal]) })
  yield dataFrames([writer.start()])
  let hasEnded = false
  try {
    for (let batch = await batches.next(); !batch.done; ) {
      const chunks = await chunksOf(context, { key, batch: batch.value, after, writer })
      if (chunks.length > 0) yield dataFrames(chunks)
      hasEnded = batch.value.endsRun
      const next = await orQuiet(batches.next(), writer.isWaiting)
      if (next === 'quiet') {
        yield dataFrames(writer.pause())
        hasEnded = true
        break
      }
      batch = next
    }
  } finally {
    left.abort()
  }
  if (!hasEnded && !signal.aborted) yield dataFrames([{ type: 'error', errorText: brokenOff().detail }])
  yield DONE
}

interface Heard {
  key: SessionKey
  batch: EventBatch
  after: number
  writer: UiChunkWriter
}

/** What the client has seen already is heard again, so that the writer knows what is open, but not told. */
async function chunksOf(context: ServerContext, { key, batch, after, writer }: Heard): Promise<UiChunk[]> {
  const chunks: UiChunk[] = []
  for (const event of batch.events) {
    const finish = event.type === 'run-finish' ? await modelFinish(context, key) : 'stop'
    const heard = writer.hear(event, finish)
    if (event.seq > after) chunks.push(...heard)
    else if (event.seq === after) writer.pause()
  }
  return chunks
}

async function orQuiet<T>(next: Promise<T>, isWaiting: boolean): Promise<T | 'quiet'> {
  if (!isWaiting) return next
  const timer = new AbortController()
  const quiet = sleep(QUIET_MS, 'quiet' as const, { signal: timer.signal, ref: false })
  quiet.catch(() => {})
  try {
    return await Promise.race([next, quiet])
  } finally {
    timer.abort()
    next.catch(() => {})
  }
}

/** What a tool's error says, as the one text that the AI SDK has room for. */
export function errorText(result: unknown): string {
  const error = (result as { error?: unknown } | null)?.error
  return typeof error === 'string' ? error : JSON.stringify(error ?? result)
}
