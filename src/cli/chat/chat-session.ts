/**
 * The chat without its screen: it sends messages, applies run events, and keeps the state that a screen draws.
 * What only a person can decide is requested through `ChatUi`.
 */

import { defined } from '../../base/defined.js'
import { CONFIRMATION_TOOL } from '../../base/names.js'
import { AgentError, messageOf } from '../../errors.js'
import type { ProviderRegistry } from '../../provider/provider-registry.js'
import { OpenQuestions, type RunQuestion } from '../../run/open-questions.js'
import type { RunEvent } from '../../run/run-event.js'
import type { SessionKey } from '../../session/message.js'
import type { ModelOptions } from '../../session/model-options.js'
import type { PriceOf } from '../../session/usage.js'
import type { ApprovalAnswer, CallResponse, OutcomeAnswer, RunAnswer } from '../../tool.js'
import type { OpenedRuntime } from '../open-runtime.js'
import { type ChatAction, type ChatState, emptyChat, isDemo, reduceChat } from './chat-state.js'
import type { Choice } from './model-choices.js'
import { openSession } from './open-session.js'

/** The exit code after the terminal has closed: nothing can be written to it any more. */
export const HUNG_UP = 129

/** What only the person in front of the chat can do. */
export interface ChatUi {
  /** There is a person to ask: runs that are found unfinished are followed. */
  readonly canAsk?: boolean
  /** Asks whether a tool may run. Ends with a no when the signal comes first. */
  /** An object answers a form. */
  askApproval(question: ApprovalQuestion, signal: AbortSignal): Promise<ApprovalAnswer | CallResponse>
  /** Asks whether a call took effect. Ends with `leave` when the signal comes first. */
  askOutcome(call: CallFacts, signal: AbortSignal): Promise<OutcomeAnswer>
  /** Says what is being waited for. */
  wait<Result>(words: string, work: Promise<Result>): Promise<Result>
  /** Offers choices; `undefined` when none was taken. */
  choose(title: string, choices: readonly Choice[]): Promise<string | undefined>
  /** Gives back a message that was not sent. */
  restore(text: string): void
  /** Another session is shown; these are the messages that its user typed. */
  sessionOpened(prompts: readonly string[]): void
  leave(): void
}

/** A tool call that a person is asked about. */
export interface CallFacts {
  name: string
  args: Readonly<Record<string, unknown>>
  reason?: string
}

export interface ApprovalQuestion extends CallFacts {
  /** ADK's own confirmations know no "always". */
  onceOnly?: boolean
}

export interface ChatSessionOptions {
  opened: OpenedRuntime
  /** Relative paths of commands begin here. */
  cwd: string
  registry: ProviderRegistry
  userId: string
  sessionId: string
  /** What every run asks its model for. */
  options?: ModelOptions | undefined
  /** What the chat begins with. */
  header: readonly string[]
}

type UnknownEvent = Extract<RunEvent, { type: 'tool-unknown' }>
type Message = { text: string } | { parts: NonNullable<RunInput['parts']> }
type RunInput = Parameters<OpenedRuntime['runtime']['run']>[0]

/** How long a run may take to start before the chat says what it is waiting for. */
const SAY_WAITING_MS = 1_500

export class ChatSession {
  readonly opened: OpenedRuntime
  readonly cwd: string
  readonly registry: ProviderRegistry
  readonly userId: string
  /** Called after every change of the state. */
  onChange: () => void = () => {}
  /** Whether the store has the session: then it can be continued. */
  exists = false
  readonly #options: ModelOptions
  #state: ChatState
  #model: string | undefined
  #ui: ChatUi | undefined
  #abort: AbortController | undefined
  #working: Promise<void> | undefined
  /** Ends the following of a run that the chat has not started. */
  #following: AbortController | undefined
  #hasLeft = false
  /** Questions that are open, by the id of their call. */
  readonly #asking = new Map<string, AbortController>()

  constructor({ opened, cwd, registry, userId, sessionId, options, header }: ChatSessionOptions) {
    this.opened = opened
    this.cwd = cwd
    this.#options = options ?? {}
    this.registry = registry
    this.userId = userId
    this.#state = emptyChat(sessionId, opened.model ?? '', header)
  }

  get state(): ChatState {
    return this.#state
  }

  get busy(): boolean {
    return this.#working !== undefined
  }

  get key(): SessionKey {
    return { appName: this.opened.config.app, userId: this.userId, sessionId: this.#state.sessionId }
  }

  connect(ui: ChatUi): void {
    this.#ui = ui
  }

  dispatch(action: ChatAction): void {
    this.#state = reduceChat(this.#state, action)
    this.onChange()
  }

  notice(text: string): void {
    this.dispatch({ type: 'notice', tone: 'quiet', text })
  }

  fail(error: unknown): void {
    this.dispatch({ type: 'notice', tone: 'error', text: messageOf(error) })
  }

  /** Shows a stored session, or a new one under this name. */
  async open(sessionId: string): Promise<void> {
    const found = await openSession(this.opened.runtime.store, { ...this.key, sessionId }, this.priceOf)
    this.exists = found.exists
    this.dispatch({ type: 'opened', session: found })
    this.#ui?.sessionOpened(found.prompts)
    const { openRun } = found
    if (openRun && this.#ui?.canAsk) void this.#begin(this.#followFound(openRun.runId))
    else if (openRun?.state === 'waiting')
      this.notice(`run ${openRun.runId} of this session waits for an answer: lango runs show`)
  }

  /** Ends the chat. A run that is only followed goes on; the answer to an own one is stopped. */
  leave(): void {
    this.#hasLeft = true
    if (this.#following) this.#following.abort()
    else if (this.busy) this.stop()
  }

  /** Later messages go to this model. Throws when there is no such provider. */
  switchModel(reference: string): void {
    const { provider, model } = this.registry.resolve(reference)
    this.#model = `${provider.id}/${model}`
    this.dispatch({ type: 'model', model: this.#model, demo: isDemo(this.#model) })
  }

  /** Sends a message, or keeps it until the run that works now has ended. Resolves when all is quiet. */
  async send(text: string): Promise<void> {
    if (this.busy) {
      this.dispatch({ type: 'queue', queue: [...this.#state.queue, text] })
      return this.#working
    }
    await this.#begin(this.#work({ text }))
  }

  /** Continues the last run of the chat with another budget. Throws when that run did not end at its budget. */
  async goOn(perRunUsd: number): Promise<void> {
    const { runId } = this.#state
    if (runId === undefined)
      throw new AgentError('invalid-argument', 'There is no run yet that could go on: send a message first.')
    const started = await this.opened.runtime.resume(runId, { budget: { perRunUsd } })
    await this.#begin(this.#followFound(started.runId))
  }

  #begin(work: Promise<void>): Promise<void> {
    this.#working = work.finally(() => {
      this.#working = undefined
      this.onChange()
    })
    return this.#working
  }

  /** Stops the answer. Messages that were queued go back to the input. */
  stop(): void {
    if (!this.busy || this.#abort?.signal.aborted) return
    const waiting = this.#state.queue
    this.dispatch({ type: 'queue', queue: [] })
    if (this.#abort) this.dispatch({ type: 'phase', phase: 'stopping', at: Date.now() })
    this.#abort?.abort()
    for (const question of this.#asking.values()) question.abort()
    if (waiting.length > 0) this.#ui?.restore(waiting.join('\n'))
  }

  /** Resolves when no run is working. */
  async idle(): Promise<void> {
    await this.#working
  }

  readonly priceOf: PriceOf = reference => {
    try {
      const { provider, model } = this.registry.resolve(reference)
      return provider.describeModel(model).price
    } catch {
      // A session may name models of providers that are no longer configured.
      return undefined
    }
  }

  /** A message, then what ADK's tools want confirmed, then what was sent meanwhile. */
  async #work(first: Message | undefined): Promise<void> {
    let next = first
    while (next) {
      await this.#run(next)
      next = (await this.#confirmations()) ?? this.#takeQueued()
    }
  }

  async #run(message: Message): Promise<void> {
    const { runtime } = this.opened
    const abort = new AbortController()
    this.#abort = abort
    if ('text' in message) this.dispatch({ type: 'said', text: message.text, at: Date.now() })
    else this.dispatch({ type: 'phase', phase: 'starting', at: Date.now() })
    let timer: NodeJS.Timeout | undefined
    try {
      await runtime.ready()
      timer = setTimeout(() => this.#sayWaiting(), SAY_WAITING_MS)
      const events = runtime.run({
        ...message,
        ...this.#options,
        sessionId: this.#state.sessionId,
        userId: this.userId,
        model: this.#model,
        signal: abort.signal,
        onApproval: ({ id, name, args, reason, onceOnly }) =>
          this.#ask(id, { name, args, ...defined({ reason, onceOnly }) }),
      })
      let hasBegun = false
      for await (const event of events) {
        this.exists = true
        hasBegun ||= event.type === 'run-start'
        if (event.type === 'run-finish' && !hasBegun)
          throw new AgentError('aborted', 'It was stopped in the queue.')
        if (event.type === 'approval-answer') this.#asking.get(event.id)?.abort()
        this.dispatch({ type: 'event', event, at: Date.now() })
        if (event.type === 'tool-unknown') this.#unknown(event)
      }
    } catch (error) {
      this.#notStarted(error, message)
    } finally {
      clearTimeout(timer)
      for (const question of this.#asking.values()) question.abort()
      this.#abort = undefined
      this.onChange()
    }
  }

  /** Shows a run of another process, or one that waits without a process, and asks what it asks. */
  async #followFound(runId: string): Promise<void> {
    const { runtime } = this.opened
    const following = new AbortController()
    const abort = new AbortController()
    this.#following = following
    this.#abort = abort
    abort.signal.addEventListener('abort', () => void runtime.stop(runId).catch(error => this.fail(error)))
    const questions = new OpenQuestions()
    try {
      await runtime.ready()
      for await (const events of runtime.followLists(runId, { signal: following.signal })) {
        for (const event of events) {
          questions.add(event)
          this.dispatch({ type: 'event', event, at: Date.now() })
        }
        this.#askOpen(runId, questions.list)
      }
    } catch (error) {
      this.dispatch({ type: 'failed', message: messageOf(error), at: Date.now() })
    } finally {
      for (const question of this.#asking.values()) question.abort()
      this.#abort = undefined
      this.#following = undefined
    }
    if (!this.#hasLeft) await this.#work((await this.#confirmations()) ?? this.#takeQueued())
  }

  /** Asks what is open and was not asked; a question that was answered elsewhere is taken from the screen. */
  #askOpen(runId: string, open: readonly RunQuestion[]): void {
    for (const [callId, asked] of this.#asking) if (!open.some(one => one.callId === callId)) asked.abort()
    for (const { callId, tool: name, args, reason, asks } of open) {
      if (this.#asking.has(callId)) continue
      const facts = { name, args, ...defined({ reason }) }
      const asked = (signal: AbortSignal) =>
        asks === 'approval' ? this.#ui?.askApproval(facts, signal) : this.#ui?.askOutcome(facts, signal)
      void this.#asked<RunAnswer>(callId, asked)
        .then(said => {
          // A question that ends with the chat, or with the run, was not answered.
          const isOver = this.#hasLeft || this.#abort?.signal.aborted !== false
          return isOver || !said ? undefined : this.opened.runtime.answer(runId, callId, said)
        })
        .catch(error => this.#isLate(error) || this.fail(error))
    }
  }

  /** The run has not begun: no message was stored, so the text goes back to the input. */
  #notStarted(error: unknown, message: Message): void {
    const stopped = error instanceof AgentError && error.code === 'aborted'
    this.dispatch({
      type: 'failed',
      message: stopped ? 'Stopped before it was sent.' : messageOf(error),
      at: Date.now(),
    })
    if ('text' in message) this.#ui?.restore(message.text)
  }

  #sayWaiting(): void {
    if (this.#state.phase === 'starting') this.dispatch({ type: 'phase', phase: 'waiting', at: Date.now() })
  }

  async #ask(callId: string, question: ApprovalQuestion): Promise<ApprovalAnswer | CallResponse> {
    const asked = this.#asked(callId, signal => this.#ui?.askApproval(question, signal))
    return (await asked) ?? 'no'
  }

  async #asked<Answer>(callId: string, ask: (signal: AbortSignal) => Promise<Answer> | undefined) {
    const done = new AbortController()
    this.#asking.set(callId, done)
    try {
      return await ask(done.signal)
    } finally {
      this.#asking.delete(callId)
    }
  }

  /** The outcome of a call is unknown: asks about it when its run does, until the run has an answer. */
  #unknown({ runId, id, name, args, asks, answer }: UnknownEvent): void {
    if (answer !== undefined) this.#asking.get(id)?.abort()
    if (!asks || answer !== undefined) return
    const { runtime } = this.opened
    void this.#asked(id, signal => this.#ui?.askOutcome({ name, args }, signal))
      .then(said => runtime.answer(runId, id, said ?? 'leave'))
      // Somebody else was faster, or the run has ended.
      .catch(error => this.#isLate(error) || this.fail(error))
  }

  #isLate(error: unknown): boolean {
    return error instanceof AgentError && error.code === 'run-not-found'
  }

  async #confirmations(): Promise<Message | undefined> {
    const asked = this.#state.confirmations
    if (asked.length === 0) return undefined
    this.#state = { ...this.#state, confirmations: [] }
    const parts = []
    for (const confirmation of asked) parts.push(await this.#confirm(confirmation))
    return { parts }
  }

  async #confirm({ callId: id, tool: name, args, reason }: RunQuestion) {
    const question = { name, args, onceOnly: true, ...defined({ reason }) }
    const answer = await this.#ask(id, question)
    const response = { confirmed: answer !== 'no' }
    return { functionResponse: { id, name: CONFIRMATION_TOOL, response } }
  }

  #takeQueued(): Message | undefined {
    const [text, ...queue] = this.#state.queue
    if (text === undefined) return undefined
    this.dispatch({ type: 'queue', queue })
    return { text }
  }
}
