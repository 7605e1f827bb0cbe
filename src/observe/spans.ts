/**
 * Run events as OpenTelemetry spans, in the words of the GenAI semantic conventions:
 *
 *   invoke_agent root
 *   ├─ chat model
 *   ├─ execute_tool name
 *   │  └─ chat model            (an agent that is used as a tool)
 *   └─ invoke_agent other       (after a hand-over)
 *      └─ chat model
 *
 * Spans are made from what a run reports and not from ADK's own, which serialise the whole request for every
 * chunk of an answer. They hold names, ids and counts; texts only with `content`. Where a runtime traces its model calls
 * and tools itself (see `call-spans.ts`), their spans are not made from events, except for those that it does not see:
 * models that were made in code, and calls that nobody executed.
 */

import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api'
import { withoutBreaks } from '../base/prefix-break.js'
import type { SpanId } from '../base/trace-context.js'
import type { RunEvent, SentRequest } from '../run/run-event.js'
import { boundedText, jsonText, modelAttributes, modelName, outputText, usageAttributes } from './genai.js'

/** What spans need of a request. */
export interface ObservedRequest extends Pick<SentRequest, 'model' | 'profile'> {
  repairs: readonly { kind: string }[]
  body?: unknown
}

/** The OpenTelemetry API; the package itself is loaded elsewhere. */
export type SpanApi = Pick<
  typeof import('@opentelemetry/api'),
  'SpanKind' | 'SpanStatusCode' | 'context' | 'trace' | 'ROOT_CONTEXT' | 'createTraceState'
>

export interface RunSpansOptions {
  api: SpanApi
  tracer: Tracer
  /** Put texts of users, models and tools into spans. */
  content: boolean
  /** Model calls and tools of runs have spans of their own. */
  isLive?: boolean
  /** Opens a span that has these ids. Absent for a provider that chooses ids itself. */
  withIds?: ((ids: SpanId, open: () => Span) => Span) | undefined
}

/** What is known when a process begins to work on a run. */
export interface Attempt {
  runId: string
  sessionId: string
  agent?: string | undefined
  model?: string | undefined
  parent: Context
  /** The ids of the run's span, in whichever process it ends. */
  ids?: SpanId | undefined
  startTime?: number | undefined
  attributes?: Attributes | undefined
}

interface Chat {
  span: Span
  model: string
  seenAt: number
  answered: boolean
  called: boolean
  text: string
}

type EventOf<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>

/** The spans of one run. */
export class RunSpans {
  readonly #root: Span
  readonly #rootAgent: string
  readonly #parent: Context
  #agent: Span
  #model: string
  #chats: Chat[] = []
  readonly #tools = new Map<string, Span>()
  /** The calls that have spans of their own. */
  readonly #executed = new Set<string>()
  /** The time of the last tool result or transfer: a model call that was not reported began then. */
  #idleSince: number

  readonly #options: RunSpansOptions

  constructor(attempt: Attempt, options: RunSpansOptions) {
    this.#options = options
    this.#idleSince = Date.now()
    const { agent, model = '', parent, ids, startTime } = attempt
    this.#rootAgent = agent ?? ''
    this.#model = model
    this.#parent = parent
    const attributes = {
      'gen_ai.operation.name': 'invoke_agent',
      ...(agent === undefined ? {} : { 'gen_ai.agent.name': agent }),
      ...(model === '' ? {} : modelAttributes(model)),
      'gen_ai.conversation.id': attempt.sessionId,
      'lango.run.id': attempt.runId,
      ...attempt.attributes,
    }
    const name = agent === undefined ? 'invoke_agent' : `invoke_agent ${agent}`
    const open = () => this.#open(name, parent, options.api.SpanKind.INTERNAL, attributes, startTime)
    this.#root = ids && options.withIds ? options.withIds(ids, open) : open()
    this.#agent = this.#root
  }

  /** The context of what the run does now. */
  get context(): Context {
    return this.#below(this.#agent)
  }

  /** A call has a span of its own. */
  executed(callId: string): void {
    this.#executed.add(callId)
  }

  /** Adds to the run's span. */
  setAttributes(attributes: Attributes): void {
    this.#root.setAttributes(attributes)
  }

  /** A request is about to be sent. */
  requestSent({ model, profile, repairs, body }: ObservedRequest): void {
    // Of a nested agent only requests are known: the next request means that the last one was answered.
    this.#endChats(chat => chat.answered || this.#tools.size > 0)
    const chat = this.#openChat(model, Date.now())
    chat.span.setAttributes({
      'lango.repair.profile': profile,
      'lango.repair.count': withoutBreaks(repairs).length,
    })
    if (this.#options.content && body !== undefined)
      chat.span.setAttribute('lango.request.body', jsonText(body))
  }

  /** Takes one event; returns true when it was the last. */
  observe(event: RunEvent): boolean {
    if (this.#options.isLive && this.#hasOwnSpan(event)) return false
    switch (event.type) {
      case 'text-delta':
        this.#said(event.text)
        return false
      case 'reasoning-delta':
        this.#said('')
        return false
      case 'usage':
        this.#used(event)
        return false
      case 'tool-call':
        this.#toolCalled(event)
        return false
      case 'tool-result':
        this.#toolAnswered(event)
        return false
      case 'agent-transfer':
        this.#transferred(event.to)
        return false
      case 'error':
        this.#failed(event)
        return false
      case 'run-finish':
        this.#finish(event)
        return true
      case 'history-cut':
      case 'tool-unknown':
      case 'step-restart':
      case 'model-switch':
      case 'model-wait':
      case 'tools-missing':
        this.#root.addEvent(`lango.${event.type}`, noteOf(event))
        return false
      case 'run-resumed':
        this.#root.setAttributes(attemptAttributes(event)).addEvent('lango.run-resumed')
        return false
      case 'run-queued':
      case 'run-scheduled':
      case 'run-start':
      case 'sources':
      case 'code':
      case 'turn-warning':
      case 'wrap-up':
      case 'repair':
      case 'approval-request':
      case 'approval-answer':
        return false
    }
  }

  /** Whether what the event reports is traced by those who do it. */
  #hasOwnSpan(event: RunEvent): boolean {
    if (event.type === 'text-delta' || event.type === 'reasoning-delta') return true
    if (event.type === 'usage') return event.step !== undefined
    if (event.type !== 'tool-result' || !this.#executed.delete(event.id)) return false
    this.#tools.delete(event.id)
    return true
  }

  /** Ends all open spans of a run that sends no further events. */
  abandon(): void {
    this.leave()
    this.#root.end()
  }

  /** Ends the spans of what the run did here. Its own is left to the process that ends the run. */
  leave(): void {
    this.#endStep()
    this.#endAgent()
  }

  #open(name: string, parent: Context, kind: 0 | 2, attributes: Attributes, startTime = Date.now()): Span {
    return this.#options.tracer.startSpan(name, { kind, attributes, startTime }, parent)
  }

  #below(span: Span): Context {
    return this.#options.api.trace.setSpan(this.#parent, span)
  }

  #openChat(model: string, startTime: number): Chat {
    // While a tool runs, a model call comes from an agent inside that tool.
    const nested = [...this.#tools.values()].at(-1)
    const span = this.#open(
      `chat ${modelName(model)}`,
      this.#below(nested ?? this.#agent),
      this.#options.api.SpanKind.CLIENT,
      {
        'gen_ai.operation.name': 'chat',
        ...modelAttributes(model),
      },
      startTime,
    )
    const chat: Chat = { span, model, seenAt: startTime, answered: false, called: false, text: '' }
    this.#model = model
    this.#chats.push(chat)
    return chat
  }

  /** The call that is being answered; one that was not reported began when the run was last idle. */
  #currentChat(model = this.#model): Chat {
    const waiting = this.#chats.findLast(chat => !chat.answered && chat.model === model)
    const chat = waiting ?? this.#openChat(model, this.#idleSince)
    chat.seenAt = Date.now()
    return chat
  }

  #said(text: string): void {
    this.#endChats(chat => chat.answered)
    const chat = this.#currentChat()
    if (this.#options.content) chat.text += text
  }

  #used({ model, usage }: EventOf<'usage'>): void {
    const chat = this.#currentChat(model === '' ? this.#model : model)
    chat.answered = true
    chat.span.setAttributes(usageAttributes(usage))
  }

  #toolCalled({ id, name, args }: EventOf<'tool-call'>): void {
    const answered = this.#chats.findLast(chat => chat.answered)
    const chat = answered ?? (this.#options.isLive ? undefined : this.#currentChat())
    if (chat) Object.assign(chat, { called: true, answered: true, seenAt: Date.now() })
    // Where the call has a span of its own, this one is dropped: a span that is not ended is not sent.
    const span = this.#open(
      `execute_tool ${name}`,
      this.#below(this.#agent),
      this.#options.api.SpanKind.INTERNAL,
      {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': name,
        'gen_ai.tool.call.id': id,
        'gen_ai.tool.type': 'function',
      },
    )
    if (this.#options.content) span.setAttribute('gen_ai.tool.call.arguments', jsonText(args))
    this.#tools.set(id, span)
  }

  #toolAnswered({ id, result, isError }: EventOf<'tool-result'>): void {
    this.#endChats(() => true)
    const span = this.#tools.get(id)
    if (!span) return
    this.#tools.delete(id)
    if (this.#options.content) span.setAttribute('gen_ai.tool.call.result', jsonText(result))
    if (isError) this.#markFailed(span, 'tool-error')
    span.end(Date.now())
    this.#idleSince = Date.now()
  }

  #transferred(to: string): void {
    this.#endStep()
    this.#endAgent()
    if (to === this.#rootAgent) return
    this.#agent = this.#open(
      `invoke_agent ${to}`,
      this.#below(this.#root),
      this.#options.api.SpanKind.INTERNAL,
      {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': to,
      },
    )
  }

  #failed({ error }: EventOf<'error'>): void {
    for (const chat of this.#chats.filter(({ answered }) => !answered))
      this.#markFailed(chat.span, error.code)
    const message = this.#options.content ? boundedText(error.message) : undefined
    this.#markFailed(this.#root, error.code, message)
  }

  #finish({ finishReason, text, turns, delegations, usage }: EventOf<'run-finish'>): void {
    this.#endStep()
    this.#endAgent()
    this.#root.setAttributes({
      ...usageAttributes(usage),
      'lango.run.finish_reason': finishReason,
      'lango.run.turns': turns,
      'lango.run.delegations': delegations,
    })
    if (this.#options.content)
      this.#root.setAttribute(
        'gen_ai.output.messages',
        outputText(text, FINISH_NAMES[finishReason] ?? finishReason),
      )
    this.#root.end(Date.now())
  }

  #endStep(): void {
    this.#endChats(() => true)
    if (!this.#options.isLive) for (const span of this.#tools.values()) span.end(Date.now())
    this.#tools.clear()
    this.#idleSince = Date.now()
  }

  #endAgent(): void {
    if (this.#agent !== this.#root) this.#agent.end(Date.now())
    this.#agent = this.#root
  }

  #endChats(which: (chat: Chat) => boolean): void {
    for (const chat of this.#chats.filter(which)) {
      if (chat.answered) {
        chat.span.setAttribute('gen_ai.response.finish_reasons', [chat.called ? 'tool_call' : 'stop'])
      }
      if (chat.text !== '')
        chat.span.setAttribute(
          'gen_ai.output.messages',
          outputText(chat.text, chat.called ? 'tool_call' : 'stop'),
        )
      chat.span.end(chat.answered ? chat.seenAt : Date.now())
    }
    this.#chats = this.#chats.filter(chat => !which(chat))
  }

  #markFailed(span: Span, type: string, message?: string): void {
    span.setAttribute('error.type', type)
    span.setStatus({
      code: this.#options.api.SpanStatusCode.ERROR,
      ...(message === undefined ? {} : { message }),
    })
  }
}

export function attemptAttributes({ attempt, replayedSteps }: EventOf<'run-resumed'>): Attributes {
  return { 'lango.run.attempt': attempt, 'lango.run.replayed_steps': replayedSteps }
}

/** The conventions' names for the ends of runs, where they have one. */
const FINISH_NAMES: Readonly<Record<string, string>> = {
  'turn-limit': 'length',
  budget: 'length',
  loop: 'length',
}

type Note = EventOf<
  'history-cut' | 'tool-unknown' | 'step-restart' | 'model-switch' | 'model-wait' | 'tools-missing'
>

/** What a run's span says of an event. */
function noteOf(event: Note): Attributes {
  switch (event.type) {
    case 'history-cut': {
      const { reason, messages, tokens } = event.cut
      return { 'lango.cut.reason': reason, 'lango.cut.messages': messages, 'lango.cut.tokens': tokens }
    }
    case 'tool-unknown':
      return { 'gen_ai.tool.name': event.name, 'gen_ai.tool.call.id': event.id }
    case 'step-restart':
      return { 'lango.step': event.step }
    case 'model-switch':
      return { 'lango.from': event.from, 'lango.to': event.to, 'lango.reason': event.reason }
    case 'model-wait':
      return { 'lango.model': event.model, 'lango.wait_ms': event.waitMs }
    case 'tools-missing':
      return { 'lango.server': event.server }
  }
}
