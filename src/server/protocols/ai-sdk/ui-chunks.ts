/** A run as the AI SDK's UI message stream: run events in, chunks out. */
import type { RunEvent } from '../../chat-protocol.js'
import type { ModelFinish } from '../model-finish.js'
import { runProblem } from '../run-problem.js'
import { errorText } from './error-text.js'

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
export class UiChunkWriter {
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
