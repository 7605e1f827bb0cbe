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
 * chunk of an answer. They hold names, ids and counts; texts only with `content`.
 */

import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api'
import { redactText } from '../base/redact.js'
import { vendorRow } from '../provider/vendors.js'
import type { RunEvent, SentRequest } from '../run/run-event.js'
import type { RunUsage } from '../session/usage.js'

/** What spans need of a request. */
export interface ObservedRequest extends Pick<SentRequest, 'model' | 'profile'> {
  repairs: readonly unknown[]
  body?: unknown
}

/** The parts of the OpenTelemetry API that spans are made with; the package itself is loaded elsewhere. */
export interface SpanApi {
  readonly SpanKind: { readonly INTERNAL: 0; readonly CLIENT: 2 }
  readonly SpanStatusCode: { readonly ERROR: 2 }
  readonly context: { active(): Context }
  readonly trace: { setSpan(context: Context, span: Span): Context }
}

export interface RunSpansOptions {
  api: SpanApi
  tracer: Tracer
  /** Put texts of users, models and tools into spans. */
  content: boolean
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

/** The first event of a run that a process observes: its beginning, or its continuation. */
export type FirstEvent = EventOf<'run-start' | 'run-resumed'>

/** The spans of one run. */
export class RunSpans {
  readonly #root: Span
  readonly #rootAgent: string
  readonly #parent: Context
  #agent: Span
  #model: string
  #chats: Chat[] = []
  readonly #tools = new Map<string, Span>()
  /** The time of the last tool result or transfer: a model call that was not reported began then. */
  #idleSince: number

  readonly #options: RunSpansOptions

  /** `known`: the event that began the run, of a resumed run as far as this process has it. */
  constructor(first: FirstEvent, options: RunSpansOptions, known?: EventOf<'run-start'>) {
    this.#options = options
    const { api } = options
    this.#idleSince = Date.now()
    const start = first.type === 'run-start' ? first : known
    this.#rootAgent = start?.agent ?? ''
    this.#model = start?.model ?? ''
    this.#parent = api.context.active()
    const name = start ? `invoke_agent ${start.agent}` : 'invoke_agent'
    this.#root = this.#open(name, this.#parent, api.SpanKind.INTERNAL, {
      'gen_ai.operation.name': 'invoke_agent',
      ...(start
        ? {
            'gen_ai.agent.name': start.agent,
            'gen_ai.provider.name': providerName(start.model),
            'gen_ai.request.model': modelName(start.model),
          }
        : {}),
      'gen_ai.conversation.id': first.sessionId,
      'lango.run.id': first.runId,
      ...(first.type === 'run-resumed'
        ? { 'lango.run.attempt': first.attempt, 'lango.run.replayed_steps': first.replayedSteps }
        : {}),
    })
    this.#agent = this.#root
  }

  /** A request is about to be sent. */
  requestSent({ model, profile, repairs, body }: ObservedRequest): void {
    // Of a nested agent only requests are known: the next request means that the last one was answered.
    this.#endChats(chat => chat.answered || this.#tools.size > 0)
    const chat = this.#openChat(model, Date.now())
    chat.span.setAttributes({ 'lango.repair.profile': profile, 'lango.repair.count': repairs.length })
    if (this.#options.content && body !== undefined)
      chat.span.setAttribute('lango.request.body', asText(body))
  }

  /** Takes one event; returns true when it was the last. */
  observe(event: RunEvent): boolean {
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
      case 'history-cut':
        this.#root.addEvent('lango.history-cut', {
          'lango.cut.reason': event.cut.reason,
          'lango.cut.messages': event.cut.messages,
          'lango.cut.tokens': event.cut.tokens,
        })
        return false
      case 'error':
        this.#failed(event)
        return false
      case 'run-finish':
        this.#finish(event)
        return true
      case 'tool-unknown':
        this.#root.addEvent('lango.tool-unknown', {
          'gen_ai.tool.name': event.name,
          'gen_ai.tool.call.id': event.id,
        })
        return false
      case 'step-restart':
        this.#root.addEvent('lango.step-restart', { 'lango.step': event.step })
        return false
      case 'model-switch': {
        const { from, to, reason } = event
        this.#root.addEvent('lango.model-switch', {
          'lango.from': from,
          'lango.to': to,
          'lango.reason': reason,
        })
        return false
      }
      case 'model-wait':
        this.#root.addEvent('lango.model-wait', { 'lango.model': event.model, 'lango.wait_ms': event.waitMs })
        return false
      case 'tools-missing':
        this.#root.addEvent('lango.tools-missing', { 'lango.server': event.server })
        return false
      case 'run-queued':
      case 'run-start':
      case 'run-resumed':
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

  /** Ends all open spans of a run that sends no further events. */
  abandon(): void {
    this.#endStep()
    this.#endAgent()
    this.#root.end()
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
        'gen_ai.provider.name': providerName(model),
        'gen_ai.request.model': modelName(model),
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
    const chat = this.#chats.findLast(({ answered }) => answered) ?? this.#currentChat()
    chat.called = true
    chat.answered = true
    chat.seenAt = Date.now()
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
    if (this.#options.content) span.setAttribute('gen_ai.tool.call.arguments', asText(args))
    this.#tools.set(id, span)
  }

  #toolAnswered({ id, result, isError }: EventOf<'tool-result'>): void {
    this.#endChats(() => true)
    const span = this.#tools.get(id)
    if (!span) return
    this.#tools.delete(id)
    if (this.#options.content) span.setAttribute('gen_ai.tool.call.result', asText(result))
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
    const message = this.#options.content ? redactText(error.message) : undefined
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
    if (this.#options.content) this.#root.setAttribute('gen_ai.output.messages', outputMessages(text))
    this.#root.end(Date.now())
  }

  #endStep(): void {
    this.#endChats(() => true)
    for (const span of this.#tools.values()) span.end(Date.now())
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
        chat.span.setAttribute('gen_ai.response.finish_reasons', [chat.called ? 'tool_calls' : 'stop'])
      }
      if (chat.text !== '') chat.span.setAttribute('gen_ai.output.messages', outputMessages(chat.text))
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

function usageAttributes(usage: RunUsage): Attributes {
  return {
    'gen_ai.usage.input_tokens': usage.inputTokens,
    'gen_ai.usage.output_tokens': usage.outputTokens,
    ...(usage.cachedInputTokens > 0
      ? { 'gen_ai.usage.cache_read.input_tokens': usage.cachedInputTokens }
      : {}),
    ...(usage.cacheWriteTokens > 0
      ? { 'gen_ai.usage.cache_creation.input_tokens': usage.cacheWriteTokens }
      : {}),
    ...(usage.reasoningTokens > 0 ? { 'gen_ai.usage.reasoning.output_tokens': usage.reasoningTokens } : {}),
    ...(usage.cost === undefined ? {} : { 'lango.usage.cost_usd': usage.cost }),
  }
}

function providerName(reference: string): string {
  const slash = reference.indexOf('/')
  const name = slash < 0 ? 'gemini' : reference.slice(0, slash)
  return vendorRow(name)?.telemetryName ?? name
}

function modelName(reference: string): string {
  return reference.slice(reference.indexOf('/') + 1)
}

function outputMessages(text: string): string {
  return JSON.stringify([{ role: 'assistant', parts: [{ type: 'text', content: redactText(text) }] }])
}

/** Long enough to read, short enough for every collector. */
const MAXIMUM_CHARACTERS = 32_000

function asText(value: unknown): string {
  return redactText(JSON.stringify(value) ?? '').slice(0, MAXIMUM_CHARACTERS)
}
