import type {
  App,
  BaseArtifactService,
  BaseCredentialService,
  BaseMemoryService,
  BasePlugin,
  BaseSessionService,
  BaseTool,
  Content,
  Context,
  Event,
  GenerateContentConfig,
  LlmRequest,
  Part,
  ResumabilityConfig,
  RunConfig,
  RunnableRoot,
} from '../adk/sdk.js'
import type { DueTime } from '../base/due-time.js'
import type { RunTrace, TraceContext } from '../base/trace-context.js'
import type { Logger } from '../logger.js'
import type { Message, SessionKey, State } from '../session/message.js'
import type { CheckedOutput, ModelOptions, OutputSchema } from '../session/model-options.js'
import type { NodeJournal, SessionJournal } from '../session/session-journal.js'
import type { Lease, SessionAccess, SessionStore } from '../session/session-store.js'
import type { LedgerTools } from '../session/tool-calls.js'
import type { Budget, PriceOf } from '../session/usage.js'
import type { ClientTools } from '../tool.js'
import type { OnApproval } from './run-approvals.js'
import type { RunEngine } from './run-engine.js'
import type { RunEvent, SentRequest } from './run-event.js'
import type { JournalParts } from './run-journal.js'
import type { RunLimitOptions } from './run-limits.js'

/** One message to an agent. Its options come before those of the agents. */
export interface RunInput<Output = unknown> extends ModelOptions<Output> {
  /** Generated when absent, and returned in every event. */
  sessionId?: string | undefined
  /** Default `user`. */
  userId?: string | undefined
  text?: string | undefined
  /** Further parts of the message: images, files, function responses. */
  parts?: readonly Part[] | undefined
  /** A model reference that this run uses instead of the agents' own. */
  model?: string | undefined
  stateDelta?: State | undefined
  /** How much the run may cost: what it says comes before the budget of the runtime. */
  budget?: Budget | undefined
  /** Called when a tool needs approval; without it, an answer may come as a signal from any process. */
  onApproval?: OnApproval | undefined
  /** What to do while another run works on the session. Default `queue`. */
  whenBusy?: 'queue' | 'reject' | undefined
  /**
   * Not before this time: a `Date`, milliseconds since 1970, or an ISO 8601 text with its offset from UTC. The run is
   * stored at once; when it is due, any process puts it at the end of the session's queue and executes it.
   */
  at?: DueTime | undefined
  signal?: AbortSignal | undefined
  /** The run's id, a UUID that no other run has. Generated when absent. */
  runId?: string | undefined
  /** The request that the run answers, as a digest: it is part of `run-start`, so that a repeated one is recognised. */
  request?: string | undefined
  /** Tools that the caller executes: a call makes the run wait for `runtime.answer`. */
  clientTools?: ClientTools | undefined
  /** Further options of every model call of the run's agents, in ADK's names; they replace those of the agents. */
  generation?: GenerationOfRun | undefined
  /** The trace that the run belongs to. Default: that of the active span, where telemetry is on. */
  trace?: TraceContext | undefined
  /** What a protocol keeps with the run, as JSON data: it is part of `run-start`. */
  note?: Readonly<Record<string, unknown>> | undefined
  /** Called with the run's events once they are stored, in order: what a server may send to others. */
  onStored?: ((events: readonly RunEvent[]) => void) | undefined
}

/** The options of a model call that a run may set, as `generateContentConfig` names them. */
export type GenerationOfRun = Readonly<
  Pick<
    GenerateContentConfig,
    | 'topP'
    | 'seed'
    | 'stopSequences'
    | 'presencePenalty'
    | 'frequencyPenalty'
    | 'responseMimeType'
    | 'responseJsonSchema'
  >
>

/** Adds a caller's tools and options to the requests of one run. */
export interface RunClient {
  beginRound(): void
  prepare(context: Context, request: LlmRequest): void
  afterTool(context: Context): Promise<void>
}

/** Passed to ADK's runner unchanged. */
export interface AdkOptions {
  plugins?: readonly BasePlugin[] | undefined
  artifactService?: BaseArtifactService | undefined
  memoryService?: BaseMemoryService | undefined
  credentialService?: BaseCredentialService | undefined
  /** Lets a person's answer go to the agent that made the call. */
  resumabilityConfig?: ResumabilityConfig | undefined
  runConfig?: Partial<RunConfig> | undefined
}

/** What the runtime gives to its runs. */
export interface RunHost {
  readonly appName: string
  readonly store: SessionStore
  readonly logger: Logger
  readonly rootAgent: RunnableRoot
  /** The names of all agents that are known before a run. */
  readonly agentNames: ReadonlySet<string>
  readonly limits: RunLimitOptions
  /** How much runs may cost. */
  readonly budget?: Budget | undefined
  readonly models: RunModels
  /** By agent: the schema of its answers. */
  readonly outputs: ReadonlyMap<string, CheckedOutput>
  /** The schema of a run's own. Throws when answers cannot be checked with it. */
  checkOutput(schema: OutputSchema): CheckedOutput
  readonly adk: AdkOptions
  /** The ADK app that the root agent belongs to, if there is one. */
  readonly app?: App | undefined
  /** How many runs may work at once. Default: by cores and memory. */
  readonly maxRunning?: number | undefined
  /** Decides when and where runs are executed. Absent: every process executes what is free. */
  readonly engine?: RunEngine | undefined
  /** Whether runs of processes that are gone are continued. Default true. */
  readonly resume?: boolean | undefined
  /** How often a run is begun or continued without storing anything more, before it ends as interrupted. Default 3. */
  readonly maxAttempts?: number | undefined
  /** How long a run that waits for a person stays in memory. Default 2000. */
  readonly waitingGraceMs?: number | undefined
  /** How long a tool's request for approval waits for an answer. Default: without end. */
  readonly approvalTimeoutMs?: number | undefined
  /** The tools of the agents, for the ledger of their calls. */
  readonly tools: RunTools
  sessionService(store: SessionAccess, lease: Lease, hooks: SessionHooks): BaseSessionService
  /** The message of a run as it is stored, and the invocation that it opens. */
  openingMessage(content: Content): { message: Message; invocationId: string }
  /** A stored message as ADK gets it. */
  contentOf(message: Message): Content
  /** Gives every call of a model's answer a tool to go to. */
  answerUnknownTools: JournalParts['answerUnknownTools']
  /** What the caller adds to the requests of a run; absent when it adds nothing. */
  clientOf(input: RunInput): RunClient | undefined
  /** The event that a message was stored for. */
  eventOf(message: Message): Event
  /** Called with every event of every run. */
  readonly observe?: ((event: RunEvent) => void) | undefined
  /** Called with every request before it is sent. */
  observeRequest?(runId: string, request: SentRequest): void
  /** Traces runs; absent where nobody does. */
  readonly tracing?: RunTracing | undefined
  /** Stores an event outside ADK's own loop. */
  appendNote(key: SessionKey, note: StoredNote, lease: Lease): Promise<void>
}

/** Traces runs through the processes that work on them. */
export interface RunTracing {
  /** What is stored with a run, so that another process continues its trace. */
  accept(given: TraceContext | undefined): RunTrace
  /** This process begins to work on a run, or continues it: what it does for the events belongs to the run's trace. */
  follow(attempt: TracedAttempt, events: EventLists): EventLists
  /** A run of a process that is gone was ended with these events, and nobody continues it. */
  interrupted(attempt: TracedAttempt, events: readonly RunEvent[]): void
}

export interface TracedAttempt {
  runId: string
  sessionId: string
  agent: string
  description?: string | undefined
  model: string
  trace?: RunTrace | undefined
  isResumed: boolean
  /** What the user wrote. */
  text: string
}

export interface RunTools extends LedgerTools {
  /** Lets the calls of a tool that was not known before be recorded. */
  adopt(tool: BaseTool): void
}

/** A user's message that was stored when its run was opened. */
export interface StoredOpening {
  message: Message
  seq: number
}

/** What a run adds to the session service of one round. */
export interface SessionHooks {
  opening: StoredOpening | undefined
  /** Called with an event of the run's session in the tick in which it is appended. */
  onAppend(event: Event): void
  /** Records the events that are appended. */
  journal: SessionJournal<Event>
  /** Called before the first node of a workflow begins: returns what records the nodes. */
  openNodes(): NodeJournal<Event>
}

/** The models that a host's agents use. */
export interface RunModels {
  /** The reference of the root agent's model, which a run's own choice replaces. */
  readonly rootReference: string
  /** Throws when a reference names no configured provider. */
  check(reference: string): void
  /** Throws when an agent or the run asks a model for what it does not have. `model`: the run's own choice. */
  checkAgents(model?: string, options?: ModelOptions): void
  /** An agent whose model has no known price, and that model unless it was made in code. `model`: the run's own choice. */
  unpricedAgent(model?: string): { agent: string; model?: string } | undefined
  readonly priceOf: PriceOf
}

/** An event that the run itself writes. */
export interface StoredNote {
  author: string
  content: Content
  invocationId?: string
  branch?: string
  customMetadata?: Record<string, unknown>
}

/** The user's message as the opening of the run stored it. */
export interface RunOpened extends StoredOpening {
  invocationId: string
  /** The newest run that the session had before; `null` when it had none, absent where that is not known. */
  previousRunId?: string | null
}

/**
 * A person must answer (inside a round, or between two), the process ends, or the lease was lost: another process may
 * have the run already.
 */
export type LeftFor = 'waiting' | 'round' | 'handover' | 'lost'

/** Lists of events; a list may be empty. */
export interface EventLists
  extends Pick<AsyncGenerator<readonly RunEvent[], void, undefined>, 'next' | 'return' | 'throw'> {
  [Symbol.asyncIterator](): EventLists
}
