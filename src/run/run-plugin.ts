import { acceptSilence, markWrittenBy } from '../adk/adk-quirks.js'
import {
  type App,
  type BaseCredentialService,
  BasePlugin,
  type BaseSessionService,
  type BaseTool,
  type Content,
  type Context,
  createEvent,
  type Event,
  type InvocationContext,
  type LlmRequest,
  type LlmResponse,
  type Part,
  PluginManager,
  Runner,
  StreamingMode,
} from '../adk/sdk.js'
import { defined } from '../base/defined.js'
import { RUN_PLUGIN } from '../base/names.js'
import { leftOutOf, restartOf, type SessionKey, type State } from '../session/message.js'
import type { RequestPlace } from './run-event.js'
import type { RunClient, RunHost } from './run-host.js'
import type { RunJournal } from './run-journal.js'
import { callsLeftOut, type RequestNotices, type RunLimits, type WrapUp } from './run-limits.js'

/**
 * The run's plugin inside ADK. It keeps the original error of a failed model call, adds the run's notices to the
 * history, and makes sure that a last turn ends with text. Notices are stored where they were added, so that later
 * requests extend those that had them.
 */
export class RunPlugin extends BasePlugin implements RequestNotices {
  /** The error that ADK reduces to a text. */
  modelError: Error | undefined
  /** Records model steps. */
  readonly journal: RunJournal
  /** Adds the caller's tools and options to requests. */
  client: RunClient | undefined
  /** Called with each tool before it runs, so that its calls are recorded. */
  onTool: (tool: BaseTool) => void = () => {}
  onStep: RequestNotices['onStep'] = () => {}
  onBudgetNotice: () => void = () => {}
  /** What tools find in their context. */
  credentialService: BaseCredentialService | undefined
  /** No other plugin answers for tools that fail. */
  isAlone = false
  /** How many whole events ADK has given, those of the record included. */
  eventCount = 0
  #wrapUp: WrapUp | undefined
  #wrapUpStarted = false
  #warnings: readonly string[] = []
  #nestedFailure: Error | undefined
  #invocationId: string | undefined
  readonly #requests = new WeakSet<object>()
  readonly #places = new WeakMap<object, RequestPlace>()
  readonly #contexts = new WeakMap<object, Context>()

  constructor(journal: RunJournal) {
    super(RUN_PLUGIN)
    this.journal = journal
  }

  /** Whether a request went through this plugin: nested runners have no plugins. */
  owns(request: object): boolean {
    return this.#requests.has(request)
  }

  /** The agent and the branch that a request was made by. */
  placeOf(request: object): RequestPlace | undefined {
    return this.#places.get(request)
  }

  /** Notes who makes a request. */
  place({ invocationContext, agentName }: Context, request: object): void {
    const { branch = '', isolationScope, session } = invocationContext
    const scoped = isolationScope === undefined ? branch : `${branch}#${isolationScope}`
    this.#places.set(request, { app: session.appName, agent: agentName, branch: scoped })
  }

  /** The id of the next invocation: its message is stored under it already. */
  expectInvocation(invocationId: string): void {
    this.#invocationId = invocationId
  }

  override async onUserMessageCallback({
    invocationContext,
  }: {
    invocationContext: { invocationId: string }
  }): Promise<Content | undefined> {
    if (this.#invocationId !== undefined) invocationContext.invocationId = this.#invocationId
    this.#invocationId = undefined
    return undefined
  }

  grantWrapUp(wrapUp: WrapUp): void {
    this.#wrapUp ??= wrapUp
  }

  warn(notice: string): void {
    this.#warnings = [...this.#warnings, notice]
  }

  override async beforeModelCallback({
    callbackContext,
    llmRequest,
  }: {
    callbackContext: Context
    llmRequest: LlmRequest
  }): Promise<LlmResponse | undefined> {
    this.#requests.add(llmRequest)
    this.#contexts.set(llmRequest, callbackContext)
    this.place(callbackContext, llmRequest)
    const { invocationContext } = callbackContext
    this.onStep(
      { author: invocationContext.agent?.name, branch: invocationContext.branch },
      invocationContext,
    )
    const warnings = this.#warnings
    this.#warnings = []
    // The last turn has a text of its own, and a loop that was left needs none.
    const isLeft = hasEscalated(callbackContext)
    await noteLeftOut(this.journal, callbackContext, llmRequest)
    for (const notice of warnings) await addNotice(this.journal, callbackContext, llmRequest, notice)
    // An earlier attempt of the run has already received the notice about its budget.
    if (!this.#wrapUp && this.journal.hasNotice(callbackContext)) this.onBudgetNotice()
    if (this.#wrapUp && !this.#wrapUpStarted)
      await addNotice(this.journal, callbackContext, llmRequest, this.#wrapUp.notice)
    const maySayNothing = this.#wrapUp !== undefined || isLeft
    this.client?.prepare(callbackContext, llmRequest)
    const begun = this.journal.beginStep(callbackContext, llmRequest)
    const recorded = begun instanceof Promise ? await begun : begun
    if (recorded) {
      this.#wrapUpStarted ||= this.#wrapUp !== undefined
      return recorded === 'several' ? undefined : recorded
    }
    if (maySayNothing) acceptSilence(llmRequest)
    if (!this.#wrapUp) return undefined
    if (this.#wrapUpStarted) return spoken(this.#wrapUp.fallback)
    this.#wrapUpStarted = true
    forbidTools(llmRequest)
    return undefined
  }

  /**
   * Makes a request whose model call cannot be paid for the last one: it is to be sent again. A text is the answer where
   * that is not possible.
   */
  async makeLast(llmRequest: LlmRequest): Promise<string | undefined> {
    const context = this.#contexts.get(llmRequest)
    if (!context) return NOT_PAID
    if (!this.#wrapUp || this.#wrapUpStarted) return this.#wrapUp?.fallback ?? NOT_PAID
    this.#wrapUpStarted = true
    await addNotice(this.journal, context, llmRequest, this.#wrapUp.notice)
    acceptSilence(llmRequest)
    forbidTools(llmRequest)
    return undefined
  }

  override async afterModelCallback({
    llmResponse,
  }: {
    llmResponse: LlmResponse
  }): Promise<LlmResponse | undefined> {
    // What callbacks made of a recorded answer is part of the record.
    if (this.journal.isRecorded(llmResponse)) return llmResponse
    // Callbacks of agents do not get it: it is no answer.
    if (restartOf(llmResponse.customMetadata) !== undefined) return llmResponse
    if (!this.#wrapUp || !this.#wrapUpStarted || llmResponse.errorCode || llmResponse.partial)
      return undefined
    const parts = llmResponse.content?.parts ?? []
    const words = parts.filter(part => !part.functionCall)
    if (words.some(hasText) && words.length === parts.length) return undefined
    const kept = words.some(hasText) ? words : [...words, { text: this.#wrapUp.fallback }]
    return { ...llmResponse, content: { role: 'model', parts: kept } }
  }

  override async onEventCallback({ event }: { event: Event }): Promise<Event | undefined> {
    if (!event.partial) this.eventCount += 1
    this.journal.see(event)
    return undefined
  }

  override async beforeToolCallback({
    tool,
    toolContext,
  }: {
    tool: BaseTool
    toolContext: Context
  }): Promise<Record<string, unknown> | undefined> {
    // ADK's contexts declare the service, and its constructor leaves it out.
    const { credentialService } = this
    Object.assign(toolContext.invocationContext, defined({ credentialService }))
    this.onTool(tool)
    return undefined
  }

  /** Keeps the failure of an agent inside a tool for `afterToolCallback`. */
  noteNestedFailure(error: Error): void {
    this.#nestedFailure = error
  }

  /** An agent inside a tool that failed gives an empty result; the calling agent gets the error instead. */
  override async afterToolCallback({
    result,
    toolContext,
  }: {
    result: unknown
    toolContext: Context
  }): Promise<Record<string, unknown> | undefined> {
    if (this.client) await this.client.afterTool(toolContext)
    const failure = this.#nestedFailure
    this.#nestedFailure = undefined
    return failure && isEmptyResult(result) ? { error: failure.message } : undefined
  }

  override async onModelErrorCallback({ error }: { error: Error }): Promise<LlmResponse | undefined> {
    this.modelError = error
    return undefined
  }

  override async onToolErrorCallback(failed: ToolFailure): Promise<Record<string, unknown> | undefined> {
    return this.isAlone ? laterFailure(failed) : undefined
  }
}

/** The plugin of agents inside tools, whose runners have none. */
class NestedPlugin extends BasePlugin {
  readonly #outer: RunPlugin
  readonly #onAnswer: (answer: LlmResponse) => void

  constructor(outer: RunPlugin, onAnswer: (answer: LlmResponse) => void) {
    super(RUN_PLUGIN)
    this.#outer = outer
    this.#onAnswer = onAnswer
  }

  override async beforeModelCallback({
    callbackContext,
    llmRequest,
  }: {
    callbackContext: Context
    llmRequest: LlmRequest
  }): Promise<LlmResponse | undefined> {
    const { journal } = this.#outer
    this.#outer.place(callbackContext, llmRequest)
    await noteLeftOut(journal, callbackContext, llmRequest)
    const begun = journal.beginStep(callbackContext, llmRequest)
    const recorded = begun instanceof Promise ? await begun : begun
    if (!recorded || recorded === 'several') return undefined
    this.#onAnswer(recorded)
    return recorded
  }

  override async afterModelCallback({
    callbackContext,
    llmResponse,
  }: {
    callbackContext: Context
    llmResponse: LlmResponse
  }): Promise<LlmResponse | undefined> {
    const { journal } = this.#outer
    const isRecorded = journal.isRecorded(llmResponse)
    // Lango's own models report their answers themselves.
    if (!llmResponse.partial && (isRecorded || journal.isFollowed(callbackContext)))
      this.#onAnswer(llmResponse)
    return isRecorded ? llmResponse : undefined
  }

  override onToolErrorCallback(failed: ToolFailure): Promise<Record<string, unknown> | undefined> {
    return laterFailure(failed)
  }
}

/** Answers for long-running tools that fail after the plugins of the user's, which may answer the error themselves. */
class FailedLater extends BasePlugin {
  override onToolErrorCallback(failed: ToolFailure): Promise<Record<string, unknown> | undefined> {
    return laterFailure(failed)
  }
}

interface ToolFailure {
  tool: BaseTool
  error: Error
}

/** ADK keeps no word of a long-running tool that fails: its call would wait for a result that nobody gives. */
async function laterFailure({ tool, error }: ToolFailure): Promise<Record<string, unknown> | undefined> {
  return tool.isLongRunning ? { error: error.message } : undefined
}

/** Lets the steps of an agent inside a tool be recorded. The calls of recorded answers count as those of new ones do. */
export function enterAgent(invocation: object, outer: RunPlugin, limits: RunLimits): void {
  const context = invocation as { -readonly [Key in keyof InvocationContext]: InvocationContext[Key] }
  const plugin = new NestedPlugin(outer, answer => {
    const calls = (answer.content?.parts ?? []).flatMap(part => part.functionCall ?? [])
    if (calls.length > 0) limits.observeNested(calls)
  })
  context.pluginManager = new PluginManager([plugin])
}

/**
 * Adds a notice at the end of the history. Its author is the agent, because ADK takes the user's newest message for the
 * beginning of the turn.
 */
async function addNotice(
  journal: RunJournal,
  context: Context,
  llmRequest: LlmRequest,
  notice: string,
): Promise<void> {
  const { invocationContext, agentName: author } = context
  const { invocationId, branch, isolationScope, session, sessionService } = invocationContext
  const content: Content = { role: 'user', parts: [{ text: notice }] }
  llmRequest.contents.push(markWrittenBy(content, 'program'))
  // Runs of releases that did not store notices have none in their record.
  if (journal.hasAnswer(context)) return
  const customMetadata = { lango: { synthetic: true } }
  const event = createEvent({
    ...{ author, invocationId, content, customMetadata },
    ...defined({ branch, isolationScope }),
  })
  await sessionService?.appendEvent({ session, event })
}

/**
 * Adds the notice to an agent whose last answer had too many calls. It depends on the history of that agent alone, so that
 * agents which run next to it do not get it, and a run that is resumed has it in the same place.
 */
async function noteLeftOut(journal: RunJournal, context: Context, llmRequest: LlmRequest): Promise<void> {
  const { branch, session } = context.invocationContext
  const last = session.events.findLast(
    ({ author, content, ...event }) =>
      author === context.agentName &&
      (event.branch ?? '') === (branch ?? '') &&
      !content?.parts?.some(part => part.functionResponse),
  )
  const notice = callsLeftOut(leftOutOf(last?.customMetadata) ?? {})
  if (notice !== undefined) await addNotice(journal, context, llmRequest, notice)
}

/** Whether the tools that the request reports the results of have ended the loop around their agent. */
function hasEscalated({ invocationContext }: Context): boolean {
  const { agent, branch, session } = invocationContext
  const last = session.events.findLast(
    event => event.author === agent?.name && (event.branch ?? '') === (branch ?? ''),
  )
  return last?.actions?.escalate === true
}

function isEmptyResult(result: unknown): boolean {
  if (result === undefined || result === null || result === '') return true
  return typeof result === 'object' && 'result' in result && result.result === ''
}

function hasText(part: Part): boolean {
  return !part.thought && (part.text ?? '').trim() !== ''
}

/** The answer of an agent inside a tool whose model call cannot be paid for. */
const NOT_PAID = '[The budget is used up. Nothing more was done here.]'

export function spoken(text: string): LlmResponse {
  return { content: { role: 'model', parts: [{ text }] }, turnComplete: true, partial: false }
}

/** The tools stay declared, because the history refers to them; the mode forbids calls. */
function forbidTools(request: LlmRequest): void {
  request.config ??= {}
  // The value of the SDK's enumeration.
  request.config.toolConfig = { functionCallingConfig: { mode: 'NONE' as never } }
}

export interface AdkStart {
  key: SessionKey
  sessions: BaseSessionService
  plugin: RunPlugin
  message: Content
  /** The message is written by Lango: it is marked as such when it is stored. */
  synthetic: boolean
  stateDelta: State | undefined
  signal: AbortSignal
}

/** Starts ADK's runner on one message. */
export function startAdk(
  { rootAgent, adk, app, limits }: RunHost,
  start: AdkStart,
): AsyncGenerator<Event, void, undefined> {
  const { appName } = start.key
  const { plugins = [], runConfig, ...services } = adk
  start.plugin.credentialService = services.credentialService
  start.plugin.client?.beginRound()
  const others = app ? [...app.plugins, ...plugins] : plugins
  // ADK awaits every plugin for every callback: one that has nothing to come after is left out.
  start.plugin.isAlone = others.length === 0
  const last = start.plugin.isAlone ? [] : [...plugins, new FailedLater('lango-failed-later')]
  const runner = new Runner({
    // The run's own plugin is the first one: it ties the message to the run, whatever the others make of it.
    ...(app
      ? {
          app: ofRun(app, { name: appName, rootAgent, plugins: [start.plugin, ...app.plugins] }),
          plugins: last,
        }
      : { appName, agent: rootAgent, plugins: [start.plugin, ...last] }),
    sessionService: start.sessions,
    ...defined(services),
  })
  return runner.runAsync({
    userId: start.key.userId,
    sessionId: start.key.sessionId,
    newMessage: start.message,
    abortSignal: start.signal,
    ...defined({ stateDelta: start.stateDelta }),
    ...(start.synthetic ? { customMetadata: { lango: { synthetic: true } } } : {}),
    runConfig: {
      streamingMode: StreamingMode.SSE,
      // Lango's own limits end a run; ADK's limit is the last resort and must not be reached first.
      maxLlmCalls: 500 + (limits.maxTurns ?? 0) + (limits.maxDelegations ?? 0),
      ...runConfig,
    },
  })
}

/** A copy of an ADK app: whatever settings ADK's runner reads from an app are there. */
function ofRun(app: App, changed: Pick<App, 'name' | 'rootAgent' | 'plugins'>): App {
  return Object.assign(Object.create(Object.getPrototypeOf(app)) as App, app, changed)
}
