/** A run as AG-UI's events: run events in, protocol events out. */
import type { AGUIEvent, Interrupt, Message, TokenUsage } from '@ag-ui/core'
import { isRecord } from '../../../base/is-record.js'
import { toJson } from '../../../base/json.js'
import { CONFIRMATION_TOOL } from '../../../base/names.js'
import { firstSeqOf } from '../../../run/event-numbers.js'
import { sumUsage } from '../../../session/usage.js'
import { questionText } from '../../../transcript/questions.js'
import type { Problem, RunEvent, RunUsage } from '../../chat-protocol.js'
import { type AskedQuestion, AskedQuestions, answerSchema } from '../asked-questions.js'
import { runPartId } from '../openai/client-calls.js'
import { runProblem } from '../start-run.js'

/** The events of the package, with their types as plain strings: the package itself is not loaded. */
type Plain<E> = E extends { type: infer T extends string } ? Omit<E, 'type'> & { type: `${T}` } : never
export type AguiEvent = Plain<AGUIEvent>

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/** The prefix of the ids of interrupts; those of calls have `call`. */
export const INTERRUPT = 'ask'

/** The id of a message that a run has written: it has the first number of its first event. */
function messageId(event: RunEvent): string {
  return `${event.runId}-${firstSeqOf(event)}`
}

/** Whether a run has written the message, with an event after a number. */
export function isWritten(id: string, runId: string, after: number): boolean {
  if (!id.startsWith(`${runId}-`)) return false
  const seq = Number(id.slice(runId.length + 1))
  return Number.isInteger(seq) && seq > after
}

/**
 * Converts run events. AG-UI requires every message to be closed; a snapshot of the messages replaces what cannot be
 * taken back, so the writer also keeps the messages that its events make.
 */
export class AguiWriter {
  #open: { kind: 'text' | 'reasoning'; id: string } | undefined
  /** The message that the calls of this answer belong to. */
  #parent: string | undefined
  #agent = ''
  /** Messages of answers that are not complete. */
  #drafts: string[] = []
  /** The ids of calls as clients have them. */
  readonly #calls = new Map<string, string>()
  readonly #asked = new AskedQuestions()
  /** Calls that were just answered, although the run may not have received it yet. */
  readonly #answered: ReadonlySet<string>
  /** The names of the client's tools. */
  #tools: readonly string[] = []
  #usage = new Map<string, RunUsage[]>()
  #messages = new Map<string, Message>()

  constructor(answered: ReadonlySet<string> = new Set()) {
    this.#answered = answered
  }

  /** The messages of the events so far. */
  get messages(): Message[] {
    return [...this.#messages.values()]
  }

  /** Whether the run waits for its client, which can answer only after the stream has ended. */
  get isAsking(): boolean {
    return this.#questions.length > 0
  }

  get #questions(): AskedQuestion[] {
    return this.#asked.list.filter(({ question }) => !this.#answered.has(question.callId))
  }

  /** What came before is another request's: the client has it. */
  forget(): void {
    this.#messages = new Map()
    this.#usage = new Map()
    this.#open = undefined
    this.#drafts = []
  }

  write(event: RunEvent): AguiEvent[] {
    this.#asked.add(event)
    const events = this.#convert(event)
    for (const each of events) this.#keep(each)
    return events
  }

  #convert(event: RunEvent): AguiEvent[] {
    switch (event.type) {
      case 'run-start':
        this.#agent = event.agent
        this.#tools = clientToolNames(event.note)
        return []
      case 'text-delta':
        return this.#text('text', event)
      case 'reasoning-delta':
        return this.#text('reasoning', event)
      case 'tool-call':
        return this.#call(event)
      case 'tool-result':
        return this.#result(event)
      case 'usage':
        this.#usage.set(event.model, [...(this.#usage.get(event.model) ?? []), event.usage])
        this.#drafts = []
        return [...this.close(), notice(event)]
      case 'step-restart':
        return this.#restart(event)
      case 'approval-request':
      case 'approval-answer':
      case 'error':
      case 'run-finish':
        return this.close()
      case 'code':
      case 'repair':
      case 'sources':
      case 'run-queued':
      case 'run-scheduled':
      case 'run-resumed':
      case 'model-switch':
      case 'model-wait':
      case 'tools-missing':
      case 'agent-transfer':
      case 'turn-warning':
      case 'wrap-up':
      case 'history-cut':
      case 'tool-unknown':
        return [notice(event)]
      default:
        return event satisfies never
    }
  }

  /** Opens the text that is open again, for a client that has its beginning from a snapshot. */
  reopen(): AguiEvent[] {
    return this.#open ? openText(this.#open.kind, this.#open.id, undefined) : []
  }

  /** Closes the open text. */
  close(): AguiEvent[] {
    const open = this.#open
    this.#open = undefined
    if (!open) return []
    const { kind, id: messageId } = open
    if (kind === 'text') return [{ type: 'TEXT_MESSAGE_END', messageId }]
    return [
      { type: 'REASONING_MESSAGE_END', messageId },
      { type: 'REASONING_END', messageId },
    ]
  }

  /** What a run that waits asks for: approvals and other questions first, results of the client's tools otherwise. */
  outcome(runId: string): Extract<AguiEvent, { type: 'RUN_FINISHED' }>['outcome'] {
    const isOwn = ({ question }: AskedQuestion) =>
      question.asks === 'result' && this.#tools.includes(question.tool)
    const interrupts = this.#questions
      .filter(asked => !isOwn(asked))
      .map(asked => this.#interrupt(runId, asked))
    if (interrupts.length > 0) return { type: 'interrupt', interrupts }
    const pendingToolCallIds = this.#questions.map(
      ({ question: { callId } }) => this.#calls.get(callId) ?? callId,
    )
    return { type: 'success', pendingToolCallIds }
  }

  #interrupt(runId: string, { seq, question }: AskedQuestion): Interrupt {
    const { asks, callId, reason, tool, args } = question
    const toolCallId = this.#calls.get(callId)
    return {
      id: runPartId(INTERRUPT, runId, seq),
      reason: { approval: 'tool_approval', outcome: 'outcome_unknown', result: 'input_required' }[asks],
      message: reason ?? questionText(question),
      responseSchema: answerSchema(question),
      metadata: { lango: { runId, callId, tool, args: { ...args } } },
      ...(toolCallId === undefined ? {} : { toolCallId }),
    }
  }

  /** One entry for each model that was called. */
  get usage(): TokenUsage[] {
    return [...this.#usage].map(([model, used]) => {
      const { inputTokens, outputTokens, totalTokens, ...parts } = sumUsage(used)
      return {
        ...{ model, inputTokens, outputTokens, totalTokens },
        ...{ reasoningTokens: parts.reasoningTokens, cachedInputTokens: parts.cachedInputTokens },
        cacheWriteInputTokens: parts.cacheWriteTokens,
      }
    })
  }

  #text(kind: 'text' | 'reasoning', event: Of<'text-delta' | 'reasoning-delta'>): AguiEvent[] {
    const { text: delta, author } = event
    if (delta === '') return []
    const events: AguiEvent[] = []
    if (this.#open?.kind !== kind) {
      const id = messageId(event)
      events.push(...this.close(), ...openText(kind, id, author === this.#agent ? undefined : author))
      this.#open = { kind, id }
      this.#drafts.push(id)
      if (kind === 'text') this.#parent = id
    }
    const type = kind === 'text' ? 'TEXT_MESSAGE_CONTENT' : 'REASONING_MESSAGE_CONTENT'
    return [...events, { type, messageId: this.#open.id, delta }]
  }

  #call(event: Of<'tool-call'>): AguiEvent[] {
    const { id, name, args, runId, seq } = event
    // ADK's request for a confirmation is a call of its own: the client is asked about the call that it is about.
    if (name === CONFIRMATION_TOOL) return []
    const toolCallId = runPartId('call', runId, seq)
    this.#calls.set(id, toolCallId)
    this.#drafts = []
    this.#parent ??= messageId(event)
    return [
      ...this.close(),
      { type: 'TOOL_CALL_START', toolCallId, toolCallName: name, parentMessageId: this.#parent },
      { type: 'TOOL_CALL_ARGS', toolCallId, delta: toJson(args) },
      { type: 'TOOL_CALL_END', toolCallId },
    ]
  }

  #result(event: Of<'tool-result'>): AguiEvent[] {
    const { id, name, result, isError, given } = event
    this.#parent = undefined
    const toolCallId = this.#calls.get(id)
    if (toolCallId === undefined) return []
    const isClients = given === true && this.#tools.includes(name)
    const content = typeof result === 'string' ? result : toJson(result)
    const shown: AguiEvent = {
      ...{ type: 'TOOL_CALL_RESULT', messageId: messageId(event), toolCallId, content, role: 'tool' },
      ...(isError ? { metadata: { lango: { isError } } } : {}),
    }
    if (!isClients) return [...this.close(), shown]
    // The client has the message with the result that it gave.
    this.#keep(shown)
    return this.close()
  }

  /** The half answer is taken back: what the model writes now is a new message. */
  #restart({
    seq: _seq,
    runId: _runId,
    sessionId: _sessionId,
    type: _type,
    ...value
  }: Of<'step-restart'>): AguiEvent[] {
    const closed = this.close()
    for (const id of this.#drafts) {
      // Clients keep their reasoning unless a snapshot has some: an empty message replaces it.
      if (this.#messages.get(id)?.role === 'reasoning')
        this.#messages.set(id, { id, role: 'reasoning', content: '' })
      else this.#messages.delete(id)
    }
    this.#drafts = []
    this.#parent = undefined
    return [...closed, { type: 'CUSTOM', name: 'lango.step-restart', value }]
  }

  #keep(event: AguiEvent): void {
    if (event.type === 'TEXT_MESSAGE_START')
      this.#messages.set(event.messageId, { id: event.messageId, role: 'assistant', content: '' })
    else if (event.type === 'REASONING_MESSAGE_START')
      this.#messages.set(event.messageId, { id: event.messageId, role: 'reasoning', content: '' })
    else if (event.type === 'TEXT_MESSAGE_CONTENT' || event.type === 'REASONING_MESSAGE_CONTENT')
      this.#append(event.messageId, event.delta)
    else if (event.type === 'TOOL_CALL_START') this.#keepCall(event)
    else if (event.type === 'TOOL_CALL_ARGS') {
      const calls = this.messages.flatMap(message =>
        message.role === 'assistant' ? (message.toolCalls ?? []) : [],
      )
      const call = calls.find(({ id }) => id === event.toolCallId)
      if (call) call.function.arguments += event.delta
    } else if (event.type === 'TOOL_CALL_RESULT') {
      const { messageId: id, toolCallId, content } = event
      this.#messages.set(id, { id, role: 'tool', toolCallId, content })
    }
  }

  #append(id: string, delta: string): void {
    const message = this.#messages.get(id)
    if (message?.role === 'assistant' || message?.role === 'reasoning')
      message.content = `${message.content ?? ''}${delta}`
  }

  #keepCall({ toolCallId, toolCallName, parentMessageId = toolCallId }: CallStart): void {
    const found = this.#messages.get(parentMessageId)
    const parent = found?.role === 'assistant' ? found : { id: parentMessageId, role: 'assistant' as const }
    const call = {
      id: toolCallId,
      type: 'function' as const,
      function: { name: toolCallName, arguments: '' },
    }
    const before = 'toolCalls' in parent ? (parent.toolCalls ?? []) : []
    this.#messages.set(parentMessageId, { ...parent, toolCalls: [...before, call] })
  }
}

/** The client's tools of a run, whichever protocol has started it. */
export function clientToolNames(note: Readonly<Record<string, unknown>> | undefined): string[] {
  return Object.values(note ?? {}).flatMap(kept =>
    isRecord(kept) && Array.isArray(kept.tools) ? kept.tools.map(String) : [],
  )
}

type CallStart = Extract<AguiEvent, { type: 'TOOL_CALL_START' }>

function openText(kind: 'text' | 'reasoning', messageId: string, name: string | undefined): AguiEvent[] {
  if (kind === 'text')
    return [{ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant', ...(name ? { name } : {}) }]
  return [
    { type: 'REASONING_START', messageId },
    { type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' },
  ]
}

/** Other events are custom ones, under the name of the event. */
function notice({ sessionId: _sessionId, runId: _runId, seq: _seq, type, ...value }: RunEvent): AguiEvent {
  return { type: 'CUSTOM', name: `lango.${type}`, value }
}

/** A failure, as an event and as the body of an error status. */
export function runError({
  detail,
  code,
}: Pick<Problem, 'detail' | 'code'>): Extract<AguiEvent, { type: 'RUN_ERROR' }> {
  return { type: 'RUN_ERROR', message: detail, code }
}

export function failedRun({ error }: Of<'error'>): Extract<AguiEvent, { type: 'RUN_ERROR' }> {
  return runError(runProblem(error))
}
