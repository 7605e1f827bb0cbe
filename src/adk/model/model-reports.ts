/** What a run learns of the requests to models, and what a request learns of those before it. */
import { isRecord } from '../../base/is-record.js'
import { type AgentError, checkArgument } from '../../errors.js'
import type { RequestEvent, StreamEvent } from '../../provider/stream-event.js'
import type { HistoryCut } from '../../session/message.js'
import type { Usage } from '../../session/usage.js'
import type { LlmRequest, LlmResponse } from '../sdk.js'
import type { ChosenOptions } from './convert-config.js'
import { breakReceipt, findBreak, prefixOf, type SentPrefix, wholeOf } from './sent-prefix.js'
import type { LastSent, PlannedRequest, RequestLane } from './steady-request.js'

/**
 * A report about one request. ADK itself passes none of this on. An ADK plugin's `beforeModelCallback` gets the
 * same request object that the model gets later, so the object links a report to a run.
 */
export type ModelReport =
  /** The history was cut to fit. Reported to a listener only when the cut has changed. */
  | { type: 'cut'; cut: HistoryCut }
  /** What is sent: receipts of the repair, mapped ids, the body. Again for a resend. */
  | {
      type: 'request'
      request: RequestEvent
      history: { messages: number; tokens: number }
      cut?: HistoryCut
      /** What the next request of the lane is compared with, where `keepSteady` was called. */
      sent?: LastSent
    }
  /** What the provider itself changed in the request that was sent last. */
  | { type: 'receipts'; repairs: RequestEvent['repairs'] }
  /** The call waits: for its turn, or to be sent again. */
  | Extract<StreamEvent, { type: 'wait' }>
  /** The partial answers so far are void: the stream failed with `error`, and the request is sent again. */
  | Extract<StreamEvent, { type: 'restart' }>
  /** The answer was longer than allowed and ends with so many characters. */
  | { type: 'answer-cut'; length: number }
  /** The call is made once more: before anything of the answer was seen, or because the answer was empty. */
  | {
      type: 'resend'
      reason: 'context-overflow' | 'malformed-call' | 'empty-answer' | 'refused-by-provider'
      error?: AgentError
    }
  /** `estimatedTokens` is the estimate for the whole request. */
  | { type: 'usage'; usage: Usage; estimatedTokens: number }
  /** The model named tools that do not exist; they will answer with the list of those that do. */
  | { type: 'unknown-tools'; names: readonly string[] }
  /** The error as the provider made it, before ADK reduces it to a text. */
  | { type: 'error'; error: AgentError }

export type ModelReportListener = (report: ModelReport) => void

/** A listener and its scope: within a scope a cut is reported once per change. */
interface ModelReportSubscription {
  readonly listener: ModelReportListener
  readonly scope: object
}

const subscriptions = new WeakMap<LlmRequest, ModelReportSubscription[]>()

/**
 * Listens to the reports of a request. Call it from a plugin's `beforeModelCallback`. Requests that belong
 * together (those of a run) share a `scope`; by default that is the listener itself.
 *
 * ```ts
 * import { BasePlugin, type LlmRequest } from '@google/adk'
 * import { onModelRequest } from 'lango/adk'
 *
 * export class RepairLog extends BasePlugin {
 *   constructor() {
 *     super('repair-log')
 *   }
 *
 *   override async beforeModelCallback({ llmRequest }: { llmRequest: LlmRequest }): Promise<undefined> {
 *     onModelRequest(llmRequest, report => {
 *       if (report.type === 'request') console.log(report.request.repairs)
 *     })
 *   }
 * }
 * ```
 */
export function onModelRequest(
  llmRequest: LlmRequest,
  listener: ModelReportListener,
  scope: object = listener,
): void {
  checkArgument(isRecord(llmRequest), 'onModelRequest', 'needs a request of ADK')
  subscriptions.set(llmRequest, [...subscriptionsOf(llmRequest), { listener, scope }])
}

/** What requests ask for besides ADK's configuration, and before it. */
const chosen = new WeakMap<LlmRequest, ChosenOptions>()

/** Sets what a request asks its model for, whatever the agent's own configuration says. */
export function chooseOptions(llmRequest: LlmRequest, options: ChosenOptions): void {
  chosen.set(llmRequest, options)
}

export function chosenOptions(llmRequest: LlmRequest): ChosenOptions | undefined {
  return chosen.get(llmRequest)
}

const ofRuns = new WeakSet<LlmRequest>()

/**
 * Says that a request belongs to a run of Lango's: its partial answers are taken back when a `restartAnswer` follows them,
 * and the run has limits against loops.
 */
export function markOfRun(llmRequest: LlmRequest): void {
  ofRuns.add(llmRequest)
}

export function isOfRun(llmRequest: LlmRequest): boolean {
  return ofRuns.has(llmRequest)
}

/** A partial answer that voids those before it; see `restartOf`. ADK drops an answer without parts. */
export function restartAnswer(step = 0): LlmResponse {
  const content = { role: 'model', parts: [{ text: '' }] }
  return { content, partial: true, customMetadata: { lango: { restart: step } } }
}

/** The lanes of requests whose session is known. */
const lanes = new WeakMap<LlmRequest, RequestLane>()

/** Says what was sent before this request, so that it extends that. Without it a request stands alone. */
export function keepSteady(llmRequest: LlmRequest, lane: RequestLane): void {
  lanes.set(llmRequest, lane)
}

/** The lane of a request, with what it has sent itself. */
export function laneOf(llmRequest: LlmRequest): RequestLane | undefined {
  return lanes.get(llmRequest)
}

/** The listeners of a request. */
export function subscriptionsOf(llmRequest: LlmRequest): readonly ModelReportSubscription[] {
  return subscriptions.get(llmRequest) ?? []
}

export function report(llmRequest: LlmRequest, message: ModelReport): void {
  for (const { listener } of subscriptionsOf(llmRequest)) listener(message)
}

/** Reports what is about to be sent; with the break, if it does not extend the request before. */
export function reportRequest(
  llmRequest: LlmRequest,
  event: RequestEvent,
  { fitted, decided, reason }: PlannedRequest,
): void {
  const { given: history, cut } = fitted
  const lane = lanes.get(llmRequest)
  const prefix = lane && prefixOf(event.body)
  const receipt = prefix && receiptOf(lane, prefix, reason)
  const request = receipt ? { ...event, repairs: [...event.repairs, receipt], breaks: [receipt] } : event
  if (prefix) lanes.set(llmRequest, { ...lane, otherModel: undefined, last: { decided, prefix } })
  report(llmRequest, {
    type: 'request',
    request,
    history,
    ...(cut ? { cut } : {}),
    ...(prefix ? { sent: { decided, prefix } } : {}),
  })
}

function receiptOf({ last, otherModel }: RequestLane, prefix: SentPrefix, reason: PlannedRequest['reason']) {
  if (!last) return otherModel && breakReceipt(wholeOf(otherModel), 'model')
  const found = findBreak(last.prefix, prefix)
  return found && breakReceipt(found, reason)
}
