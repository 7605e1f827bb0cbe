import type { Context, LlmRequest } from '../adk/sdk.js'
import { defined } from '../base/defined.js'
import { isRecord } from '../base/is-record.js'
import { Scope } from '../base/scope.js'
import { checkArgument } from '../errors.js'
import { type HistoryCut, type Session, type SessionKey, toolCallKind } from '../session/message.js'
import type { ModelOptions } from '../session/model-options.js'
import type { Observation } from '../session/session-store.js'
import type { CallLedger } from '../session/tool-calls.js'
import type { Budget, RunUsage } from '../session/usage.js'
import type { ApprovalOutcome, JsonSchema } from '../tool.js'
import type { EventReader } from './event-reader.js'
import type { ResumedRun } from './resumed-run.js'
import type { PendingApproval, PendingQuestion, QuestionOutcome } from './run-approvals.js'
import type { BudgetState, Counted, RequestPlace, RunEventBody, RunRepair, SentRequest } from './run-event.js'
import type { RunHost, RunOpened } from './run-host.js'
import type { RunLimits } from './run-limits.js'
import { budgetOf, type PreparedRun } from './run-opening.js'
import type { RunPlugin } from './run-plugin.js'
import type { RunRecorder } from './run-recorder.js'

/**
 * What a run offers to the code that works inside it, nested agents included. ADK's nested runners have no
 * plugins, so the link is the asynchronous context and not an argument.
 */
export interface RunScope {
  /** The models of the run's host. An agent may serve several runtimes. */
  readonly models: object
  readonly runId: string
  readonly key: SessionKey
  /** Whether an earlier attempt of the run may have sent requests. */
  readonly isResumed: boolean
  /** The newest run that the session had before; `null` when it had none, absent where that is not known. */
  readonly previousRunId?: string | null | undefined
  /** Requests up to that number are stored. */
  countFrom(step: number): void
  /** Where its code is at work, as far as it works in one order: the same in every attempt. */
  place(): string
  /** The model reference that this run uses instead of the agents' own. */
  readonly model?: string | undefined
  readonly options: ModelOptions
  /** The schema of an agent's answer. */
  outputOf(agent: string): JsonSchema | undefined
  /** Requests a person's approval of a tool call. */
  approve(call: PendingApproval, signal: AbortSignal): Promise<ApprovalOutcome>
  /** Asks a person what a call needs to know while it is executed. */
  ask(question: PendingQuestion, signal: AbortSignal): Promise<QuestionOutcome>
  /** Records the run's tool calls. */
  readonly ledger: CallLedger
  /** Whether what code on a branch does now was done before, by an earlier attempt of the run. */
  isReplaying(branch: string): boolean
  /** Whether a request of ADK's belongs to the run itself; otherwise a nested agent made it. */
  isOwnRequest(request: object): boolean
  /** Who made a request; `undefined` for an agent that a tool calls without ADK's runner. */
  placeOf(request: object): RequestPlace | undefined
  /** Keeps a request and returns its number within the run. */
  requestSent(request: SentRequest): number
  /** The provider reported changes of its own with the answer. */
  repaired(repair: Pick<SentRequest, 'model' | 'profile' | 'repairs'>): void
  /** What the provider reports that a request has used. */
  modelUsed(request: object, step: number, model: string, usage: RunUsage): void
  /** The tokens that a request was counted as: stored with the end of the run. */
  counted(observation: Observation): void
  /** The session as the store has it, what was left out when it was loaded, and what restoring it changed. */
  loaded(stored: Counted, cut: HistoryCut | undefined, repairs: readonly RunRepair[]): void
  /** Another model answers, a model call waits, or tools are missing. */
  notify(event: Extract<RunEventBody, { type: 'model-switch' | 'model-wait' | 'tools-missing' }>): void
  /** A request leaves out part of the history. */
  historyCut(cut: HistoryCut): void
  /** The model of a nested agent failed: ADK would give the calling agent an empty result. */
  nestedFailed(error: Error): void
  /** Counts the calls that a nested agent makes in one turn. */
  nestedCalls(calls: readonly { name?: string | undefined }[]): void
  /** How much the run may cost; absent when nothing is limited. */
  readonly budget?: Budget | undefined
  /**
   * A model call cannot be paid for. Without an answer the request was made the last one of the run, and is sent again;
   * otherwise the text stands for the model's answer.
   */
  budgetSpent(request: LlmRequest, budget: BudgetState): Promise<string | undefined>
  /** An answer ended at an output limit that the budget had lowered. */
  cutShort(): void
  readonly hasActed: boolean
  /** True when no tool may be called any more. */
  readonly wrapUpGranted: boolean
}

/** The run that the current code belongs to. */
export const runScope = new Scope<RunScope>('run')

/**
 * Whether a callback or a plugin is called again because its run is resumed: the agent is driven through what it did
 * before, and the answers of models and the results of tools come from the store. `false` where the record ends, in a
 * first attempt, and outside a run of Lango's.
 *
 * ```ts
 * import { LlmAgent } from '@google/adk'
 * import { isReplay } from 'lango/adk'
 *
 * export const agent = new LlmAgent({
 *   name: 'clerk',
 *   model: 'gemini-3.5-flash',
 *   beforeAgentCallback: context => {
 *     if (!isReplay(context)) console.log('The clerk begins.')
 *     return undefined
 *   },
 * })
 * ```
 */
export function isReplay(context: Pick<Context, 'invocationContext'>): boolean {
  checkArgument(isRecord(context?.invocationContext), 'isReplay', 'needs the context of a callback of ADK')
  const { branch = '' } = context.invocationContext
  return runScope.getStore()?.isReplaying(branch) ?? false
}

/** Reports a loaded session to its run. Sessions that agents inside tools open are not the run's own. */
export function reportLoaded({ key, messages, totalMessages, cut }: Session): void {
  const scope = runScope.getStore()
  if (key.sessionId !== scope?.key.sessionId) return
  const tokens = cut ? cut.tokens + cut.keptTokens : messages.reduce((all, each) => all + each.tokens, 0)
  scope.loaded({ messages: totalMessages, tokens }, cut, restoreReceipts(messages))
}

/** What restoring a session changes before any model's rules are looked at: ids, and messages that say nothing. */
function restoreReceipts(messages: Session['messages']): RunRepair[] {
  const receipts: RunRepair[] = []
  const known = new Set<string>()
  for (const [at, message] of messages.entries()) {
    const report = (kind: string, detail: string) => receipts.push({ step: 'restore', kind, at, detail })
    const { content, toolCalls = [], role, extra } = message
    if (content === '' && toolCalls.length === 0 && role !== 'tool' && extra === undefined)
      report('drop-message', 'A stored message without content was left out.')
    for (const call of toolCalls) {
      const isCall = toolCallKind(call, role) !== 'response'
      if (isCall && call.id === '') report('mint-id', `A stored call of ${call.name} had no id and got one.`)
      if (!isCall && call.id === '')
        report('adopt-id', `A stored result of ${call.name} had no id and got that of its call.`)
      if (isCall && call.id !== '' && known.has(call.id))
        report(
          'renumber-id',
          `A stored call of ${call.name} had the id "${call.id}" of an earlier one and got another.`,
        )
      if (isCall) known.add(call.id)
    }
  }
  return receipts
}

/** The parts of a run that its scope reports to. */
export interface ScopeParts extends Pick<RunScope, 'outputOf' | 'approve' | 'ask' | 'ledger'> {
  run: Pick<PreparedRun, 'key' | 'input'> & {
    host: Pick<RunHost, 'models' | 'budget' | 'observeRequest'>
    resumed?: ResumedRun | undefined
    opening?: RunOpened | undefined
  }
  round: number
  plugin: RunPlugin
  recorder: RunRecorder
  reader: EventReader
  limits: RunLimits
  emit(body: RunEventBody): void
  /** Emits an event that is stored with the next write: an answer that was cut off was not paid for twice. */
  defer(body: RunEventBody): void
}

/** The scope of one run: turns what the model layer reports into events and records of the run. */
export function createScope(scope: ScopeParts): RunScope {
  const { plugin, recorder, reader, limits, emit, defer } = scope
  let opened: { stored: Counted; cut: HistoryCut | undefined } | undefined
  /** Reported with the first request. */
  let restored: readonly RunRepair[] = []
  const [before, sent] = [plugin.eventCount, { last: 0 }]
  const { run, round, outputOf, approve, ask, ledger } = scope
  const { host, key, input, resumed } = run
  return {
    models: host.models,
    key,
    isResumed: resumed !== undefined,
    previousRunId: run.opening?.previousRunId,
    countFrom: step => void Object.assign(sent, { last: step }),
    ...{ outputOf, approve, ask, ledger },
    runId: recorder.runId,
    place: () => `${recorder.runId} ${round}.${plugin.eventCount - before}`,
    model: input.model,
    options: input,
    budget: budgetOf(host, input),
    isReplaying: branch => plugin.journal.isReplaying(branch),
    isOwnRequest: request => plugin.owns(request),
    placeOf: request => plugin.placeOf(request),
    requestSent: given => {
      const request = restored.length > 0 ? { ...given, repairs: [...restored, ...given.repairs] } : given
      restored = []
      host.observeRequest?.(recorder.runId, request)
      const { model, profile, repairs, breaks } = request
      if (repairs.length > 0) emit({ type: 'repair', model, profile, repairs, ...defined({ breaks }) })
      const cuts = [...(opened?.cut ? [opened.cut] : []), ...(request.cuts ?? [])]
      const record = { ...request, ...defined({ stored: opened?.stored }), cuts }
      const step = recorder.saveRequest(record, sent.last)
      reader.modelCalled({ model, step })
      return step
    },
    repaired: repair => {
      if (repair.repairs.length > 0) emit({ type: 'repair', ...repair })
    },
    modelUsed: (request, step, model, usage) => {
      // The run's own requests report their usage with ADK's event.
      if (plugin.owns(request)) reader.modelCalled({ model, step }, plugin.placeOf(request))
      else defer(reader.nestedUsage(model, step, usage))
    },
    counted: observation => recorder.counted(observation),
    loaded: (stored, cut, repairs) => {
      opened = { stored, cut }
      restored = repairs
      if (cut) emit({ type: 'history-cut', cut })
    },
    notify: event => emit(event),
    historyCut: cut => emit({ type: 'history-cut', cut }),
    nestedFailed: error => plugin.noteNestedFailure(error),
    nestedCalls: calls => {
      for (const body of limits.observeNested(calls)) emit(body)
    },
    budgetSpent: async (request, state) => {
      for (const body of limits.budgetSpent(state)) emit(body)
      return plugin.makeLast(request)
    },
    cutShort: () => limits.cutShort(),
    get hasActed() {
      return limits.turns + limits.delegations > 0
    },
    get wrapUpGranted() {
      return limits.wrapUpGranted
    },
  }
}
