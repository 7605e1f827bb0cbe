/** The ledger of a run's tool calls as tools see it, and what it decides about their effects. */
import type { EffectOfTool, OnUnknown, ToolEffect, VerifyContext } from '../tool.js'

/** What a tool says about its effect. */
export interface ToolPolicy {
  readonly effect?: ToolEffect | undefined
  readonly onUnknown?: OnUnknown | undefined
}

export interface CallPolicy {
  readonly effect: ToolEffect
  readonly onUnknown: OnUnknown
}

/** Finds out whether a call took effect: the result for the model if it did. */
export type Verify = (
  args: Record<string, unknown>,
  context: VerifyContext,
) => Promise<Record<string, unknown> | undefined>

/** A tool as the ledger of a run needs it. */
export interface LedgerTool extends ToolPolicy {
  readonly verify?: Verify | undefined
  /** It runs agents, whose tools have entries of their own: it has none, unless `tools.effects` names it. */
  readonly isContainer?: boolean | undefined
}

/** A tool call that is about to be executed. */
export interface CallBegin {
  /** The id of the message that holds the call, `/`, and the call's own id. */
  readonly id: string
  readonly callId: string
  readonly tool: string
  readonly args: Record<string, unknown>
  readonly author: string
  readonly own: LedgerTool
  readonly signal: AbortSignal
  /** Code of the user's works between the end of the tool and the answer of its message. */
  readonly isAwaited: boolean
  /** Of a node of a workflow. A person who confirms its effect gives its output: the answer is `{ confirmed }`. */
  output?(): NodeOutput
}

/** The output of a node of a workflow. */
export interface NodeOutput {
  /** Another node or code gets it, or it has a schema. */
  readonly isUsed: boolean
  /** A JSON schema. */
  readonly schema?: Readonly<Record<string, unknown>> | undefined
}

/** A tool call that is being executed. */
export interface ExecutedCall extends Pick<CallBegin, 'callId' | 'tool' | 'args' | 'signal'> {
  readonly description?: string | undefined
}

/** Executes a tool for those who observe it. */
export type ExecuteCall = <R>(call: ExecutedCall, work: () => Promise<R>) => Promise<R>

/** How a call ended. `unknown`: it was stopped after it had begun. */
export type CallEnd = 'done' | 'failed' | 'unknown'

/** A call that may be executed. */
export interface BegunCall {
  readonly idempotencyKey: string
  readonly attempt: number
  /**
   * Stores the end of the call and what the model gets, and what else the tool requested. Without a result, the call is
   * answered after the run.
   */
  end(status: CallEnd, result?: unknown, actions?: Readonly<Record<string, unknown>>): Promise<void>
  /** Stores the end, `done`, together with an event of the run; `end` then stores nothing more. */
  endsWith(eventId: string, result: object): void
}

/** The end of a call that an earlier attempt of the run has recorded: the tool is not called again. */
export interface RecordedEnd {
  readonly answer: Record<string, unknown>
  /** The tool has thrown; `answer.error` is its message. */
  readonly isFailure: boolean
  /** A long-running tool has returned nothing: its answer comes later. */
  readonly isLater: boolean
  /** What else the tool requested, as ADK names it. */
  readonly actions?: Readonly<Record<string, unknown>> | undefined
}

/** What a tool needs of the ledger of its run. */
export interface CallLedger {
  policyOf(tool: string, own: LedgerTool): CallPolicy | undefined
  /** The recorded end of a call, named as in `CallBegin.id`. */
  recorded(id: string): RecordedEnd | undefined
  /**
   * Does the work of a call that runs agents: what they do is recorded under its name. A resumed run drives them again,
   * so that the response is kept in memory alone. Without `responseOf` the call runs none, and only what it saves is
   * its own.
   */
  inside<R>(id: string, work: () => Promise<R>, responseOf?: (result: R) => unknown): Promise<R>
  /** Prepares the invocation of an agent that works inside a call. `invocation` is ADK's. */
  enterAgent(invocation: object): void
  /**
   * Stores that the call begins. Returns an answer instead when it must not be executed, `undefined` when it has no
   * entry. Throws when the beginning could not be stored: the call must not be executed.
   */
  begin(call: CallBegin): Promise<BegunCall | { readonly answer: Record<string, unknown> } | undefined>
}

/** The policies of tools by name, as `tools.effects` has them. */
export type ToolEffects = Readonly<Record<string, EffectOfTool>>

/** The tools of a runtime's agents. */
export interface LedgerTools {
  /** A tool of an agent by its name, as far as it is known. */
  find(agentName: string, tool: string): LedgerTool
  readonly effects?: ToolEffects | undefined
}

/** How a call is treated: as `tools.effects` says, else as the tool says. `undefined` for one without an entry. */
export function callPolicy(tool: string, own: LedgerTool, effects: ToolEffects = {}): CallPolicy | undefined {
  const named = Object.hasOwn(effects, tool) ? effects[tool] : undefined
  if (named === undefined && own.isContainer) return undefined
  const given = typeof named === 'string' ? { effect: named } : (named ?? {})
  const effect = given.effect ?? own.effect ?? 'once'
  const onUnknown = given.onUnknown ?? own.onUnknown ?? (effect === 'once' ? 'tell' : 'retry')
  return { effect, onUnknown }
}

/** What code that is executed for a call may know of it. */
export interface RecordedCall {
  /** See `ToolContext.idempotencyKey`. */
  readonly idempotencyKey: string
  readonly attempt: number
}

/** The calls that tools and nodes of ADK's own are executed for, by the contexts that ADK gives them. */
export const callsByContext = new WeakMap<object, RecordedCall>()
