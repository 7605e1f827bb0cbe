import { AsyncLocalStorage } from 'node:async_hooks'
import type { HistoryCut } from '../session/message.js'
import type { RunUsage } from '../session/usage.js'
import type { ApprovalOutcome } from '../tool.js'
import type { RunRepair } from './run-event.js'

/** A call that needs approval. */
export interface ApprovalCall {
  callId: string
  tool: string
  args: Readonly<Record<string, unknown>>
}

/** What the model layer tells the run about one request, before it is sent. */
export interface SentRequest {
  model: string
  profile: string
  repairs: readonly RunRepair[]
  mappedIds: Readonly<Record<string, string>>
  body: unknown
  /** What was left out of the history, when it was loaded and before it was sent. */
  cuts?: readonly HistoryCut[]
  /** The session as the store had it when the run opened it. */
  stored?: Counted
  /** The history that ADK handed over, before it was fitted. */
  history?: Counted
}

export interface Counted {
  messages: number
  tokens: number
}

/**
 * What a run offers to whatever works inside it, nested agents included. ADK's nested runners have no plugins,
 * so the link is the asynchronous context and not an argument.
 */
export interface RunScope {
  /** The host of the run, as an identity. */
  readonly owner: object
  readonly runId: string
  readonly sessionId: string
  /** The model reference that this run uses instead of the agents' own. */
  readonly model?: string
  readonly signal: AbortSignal
  /** Asks a person whether a tool may run. */
  approve(call: ApprovalCall, signal: AbortSignal): Promise<ApprovalOutcome>
  /** Whether a request of ADK's belongs to the run itself; otherwise a nested agent made it. */
  isOwnRequest(request: object): boolean
  /** Keeps a request and returns its number within the run. */
  requestSent(request: SentRequest): number
  /** What the provider says a request has used. */
  modelUsed(request: object, step: number, model: string, usage: RunUsage): void
  /** The session as the store has it, and what was left out when it was loaded. */
  loaded(stored: Counted, cut: HistoryCut | undefined): void
  /** A request leaves out part of the history. */
  historyCut(cut: HistoryCut): void
  /** The model of a nested agent failed: ADK would hand its caller an empty result. */
  nestedFailed(error: Error): void
  /** Counts the calls that a nested agent makes in one turn. */
  nestedCalls(calls: readonly { name?: string | undefined }[]): void
  /** True when no tool may be called any more. */
  readonly wrapUpGranted: boolean
}

/** The run that the current code belongs to. */
export const runScope = new AsyncLocalStorage<RunScope>()
