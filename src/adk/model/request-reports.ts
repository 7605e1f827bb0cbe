import type { AgentError } from '../../errors.js'
import type { RequestEvent } from '../../provider/stream-event.js'
import type { HistoryCut } from '../../session/message.js'
import type { Usage } from '../../session/usage.js'
import type { LlmRequest } from '../sdk.js'

/**
 * What became of one request: ADK itself passes none of this on. An ADK plugin's `beforeModelCallback` gets
 * the same request object that the model gets later, so the object is what ties a report to a run.
 */
export type ModelReport =
  /** The history was cut to fit. Told to a listener only when the cut has changed. */
  | { type: 'cut'; cut: HistoryCut }
  /** What is sent: receipts of the repair, mapped ids, the body. Again for a resend. */
  | {
      type: 'request'
      request: RequestEvent
      history: { messages: number; tokens: number }
      cut?: HistoryCut
    }
  /** The call is made once more, before anything of the answer was seen. */
  | { type: 'resend'; reason: 'context-overflow' | 'malformed-call'; error?: AgentError }
  /** `estimatedTokens` is what the request was thought to cost. */
  | { type: 'usage'; usage: Usage; estimatedTokens: number }
  /** The model named tools that do not exist; they will answer with the list of those that do. */
  | { type: 'unknown-tools'; names: readonly string[] }
  /** The error as the provider made it, before ADK flattens it to a text. */
  | { type: 'error'; error: AgentError }

export type ModelReportListener = (report: ModelReport) => void

/** A listener and what it listens for: a cut is told once per change within a scope. */
export interface ModelReportSubscription {
  readonly listener: ModelReportListener
  readonly scope: object
}

const subscriptions = new WeakMap<LlmRequest, ModelReportSubscription[]>()

/**
 * Listens to what becomes of a request. Call it from a plugin's `beforeModelCallback`. Requests that belong
 * together (those of a run) share a `scope`; by default that is the listener itself.
 */
export function onModelRequest(
  llmRequest: LlmRequest,
  listener: ModelReportListener,
  scope: object = listener,
): void {
  subscriptions.set(llmRequest, [...subscriptionsOf(llmRequest), { listener, scope }])
}

/** Those who listen to a request. */
export function subscriptionsOf(llmRequest: LlmRequest): readonly ModelReportSubscription[] {
  return subscriptions.get(llmRequest) ?? []
}
