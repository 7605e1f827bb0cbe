import { defined } from '../../base/defined.js'
import { letOthersRun } from '../../base/pause.js'
import { AgentError, checkArgument, messageOf } from '../../errors.js'
import type {
  GenerateRequest,
  GenerationOptions,
  Provider,
  ProviderMessage,
  Repair,
  RepairMode,
} from '../../provider/provider.js'
import { joinRefused, markRefused, NOTHING_REFUSED, type Refused, refusedBy } from '../../provider/refused.js'
import type { StreamEvent } from '../../provider/stream-event.js'
import type { Usage } from '../../session/usage.js'
import { acceptsSilence, keepVendorCode, markWrittenBy } from '../adk-quirks.js'
import {
  BaseLlm,
  type BaseLlmConnection,
  type Content,
  type GenerateContentConfig,
  type LlmRequest,
  type LlmResponse,
  type Part,
} from '../sdk.js'
import { convertOptions, convertServerTools, convertTools, withChosen } from './convert-config.js'
import { answeredMessages, convertMessages, joinNeighbours } from './convert-messages.js'
import { overflowCounts, type RequestParts, refitTokens } from './fit-request.js'
import {
  chosenOptions,
  isOfRun,
  laneOf,
  type ModelReport,
  report,
  reportRequest,
  restartAnswer,
  subscriptionsOf,
} from './model-reports.js'
import { MALFORMED_CALL, noAnswer, ResponseAccumulator } from './response-accumulator.js'
import { findBreak, prefixOf, wireItems } from './sent-prefix.js'
import {
  brokenReasoning,
  markBroken,
  type PlannedRequest,
  planRequest,
  type RequestLane,
  withMemory,
} from './steady-request.js'
import { answerUnknownTools, refuseEndlessMisses } from './unknown-tools.js'

export interface ModelAdapterOptions {
  provider: Provider
  /** The model's name without the provider's prefix. */
  model: string
  /** How much history a request may hold. 0 or absent: 32,000. `'off'`: what the model's window holds. */
  budgetTokens?: number | 'off' | undefined
  /** What to do with a history that the model would refuse. Default `repair`. */
  repairMode?: RepairMode | undefined
  /** The most characters of one answer, text and thoughts; a longer one ends there as `length`. Default 4,194,304. */
  maxAnswerLength?: number | undefined
  /** The most tool calls of one answer; further ones are left out, and a receipt says how many. Default 128. */
  maxCallsPerAnswer?: number | undefined
  /** What was learnt about the model's tokens. */
  calibration?: Calibration | undefined
  /** The secret of the store that keeps the answers: signatures are sent back only to the account that made them. */
  accountSecret?: (() => Promise<string | undefined>) | undefined
}

/** Corrects the estimate of tokens by what providers report. */
export interface Calibration {
  /** How many real tokens an estimated one is for this model; 1 when nothing is known. */
  scale(model: string): number
  /** A request that was estimated at so many tokens was counted as so many. */
  observe(model: string, estimatedTokens: number, countedTokens: number): void
}

/**
 * Any provider as an ADK model. Streaming or not, the provider's events are gathered once: partial answers are
 * yielded only on request, and the last answer is always complete. Errors are thrown as the provider made them.
 * Before each call the history is fitted to its budget again. An answer without text, calls or media is requested
 * once more; the usage of both attempts is that of the answer. A request that is refused for a picture or a document is
 * sent once more without it.
 *
 * ```ts
 * import { LlmAgent } from '@google/adk'
 * import { ModelAdapter } from 'lango/adk'
 * import { createProvider } from 'lango/provider'
 *
 * const provider = createProvider({ type: 'anthropic' })
 * export const agent = new LlmAgent({
 *   name: 'root',
 *   model: new ModelAdapter({ provider, model: 'claude-sonnet-5', budgetTokens: 32_000 }),
 * })
 * ```
 *
 * ```ts
 * import { LlmAgent } from '@google/adk'
 * import { ModelAdapter } from 'lango/adk'
 * import { createProvider } from 'lango/provider'
 *
 * const model = new ModelAdapter({ provider: createProvider({ type: 'demo' }), model: 'demo' })
 * const agent = new LlmAgent({ name: 'helper', model })
 * ```
 *
 * @spec ModelAdapter.GenerateContent
 */
export class ModelAdapter extends BaseLlm {
  readonly provider: Provider
  readonly #options: ModelAdapterOptions
  /** The cut that was reported last, by scope. */
  readonly #reportedCuts = new WeakMap<object, string>()

  constructor(options: ModelAdapterOptions) {
    checkArgument(
      typeof options?.model === 'string' && typeof options.provider?.generate === 'function',
      'new ModelAdapter',
      'needs { provider, model }: a provider of createProvider, and the name of a model',
    )
    super({ model: options.model })
    this.provider = options.provider
    this.#options = options
  }

  override async *generateContentAsync(
    llmRequest: LlmRequest,
    stream = false,
    abortSignal?: AbortSignal,
  ): AsyncGenerator<LlmResponse, void> {
    await letOthersRun()
    const request = this.#requestParts(llmRequest)
    await letOthersRun()
    let refused = refusedBefore(laneOf(llmRequest))
    let planned = await this.#plan(llmRequest, request, { refused })
    await letOthersRun()
    let spent: Usage | undefined
    let wasRefused = false
    for (let attempt = 1; ; ) {
      this.#reportCut(llmRequest, planned)
      const mostCalls = this.#options.maxCallsPerAnswer ?? MOST_CALLS
      const answer = new ResponseAccumulator({ takenIds: callIdsOf(request.messages), spent, mostCalls })
      try {
        yield* this.#stream(llmRequest, planned, answer, stream, abortSignal)
        this.#reportLeftOut(llmRequest, answer, request.messages.length)
        if (attempt > 1 || !answer.isEmpty || acceptsSilence(llmRequest) || abortSignal?.aborted) {
          yield await this.#complete(llmRequest, answer)
          return
        }
        spent = answer.usage
        report(llmRequest, { type: 'resend', reason: 'empty-answer' })
        planned = await this.#plan(llmRequest, request, { refused })
      } catch (error) {
        const failure = toAgentError(error)
        const named = answer.hasOutput || wasRefused ? undefined : this.#refusedAnew(failure, refused)
        if (named) {
          report(llmRequest, { type: 'resend', reason: 'refused-by-provider', error: failure })
          refused = named
          wasRefused = true
          planned = await this.#plan(llmRequest, request, { refused })
          continue
        }
        const again = answer.hasOutput ? undefined : resendReason(failure, attempt)
        const historyTokens = this.#smaller(planned.fitted, failure)
        const next = again && (await this.#plan(llmRequest, request, { refused, historyTokens }))
        // What could not be made smaller would be refused again.
        const isSmaller = next && next.fitted.historyTokens < planned.fitted.historyTokens
        if (!again || !next || (attempt > 1 && !isSmaller)) {
          report(llmRequest, { type: 'error', error: failure })
          keepVendorCode(failure)
          throw failure
        }
        report(llmRequest, { type: 'resend', reason: again, error: failure })
        planned = next
      }
      attempt += 1
    }
  }

  /** What is left out from now on, if the failure is a refusal of something that was not left out before. */
  #refusedAnew(failure: AgentError, known: Refused): Refused | undefined {
    const named = this.#options.repairMode === 'explain' ? undefined : refusedBy(failure)
    const all = named && joinRefused(known, named)
    return all === known ? undefined : all
  }

  override async connect(): Promise<BaseLlmConnection> {
    const message = `Live connections to ${this.provider.id}/${this.model} are not supported. Use runAsync.`
    throw new AgentError('invalid-argument', message)
  }

  /** Gathers one answer of the provider, and yields its parts if they are wanted. */
  async *#stream(
    llmRequest: LlmRequest,
    planned: PlannedRequest,
    answer: ResponseAccumulator,
    stream: boolean,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<LlmResponse, void> {
    // Partial answers that were yielded can be taken back only by a run.
    const mayRestart = !stream || isOfRun(llmRequest)
    for await (const event of this.#events(llmRequest, planned, { mayRestart, signal })) {
      if (event.type === 'error') throw event.error
      if (event.type === 'wait') report(llmRequest, event)
      if (event.type === 'restart' && stream) {
        report(llmRequest, event)
        yield restartAnswer()
      }
      if (event.type === 'receipts') report(llmRequest, { type: 'receipts', repairs: event.repairs })
      if (event.type === 'usage') this.#observe(llmRequest, event.usage, planned)
      const bounded = this.#bounded(event, answer)
      const partial = answer.add(bounded)
      if (stream && partial) yield partial
      if (bounded !== event) {
        answer.cut()
        report(llmRequest, { type: 'answer-cut', length: answer.length })
        break
      }
      if (event.type === 'done') break
    }
  }

  /**
   * The events of one model call. Before anything is sent, its body is compared with that of the request before in the
   * same lane: reasoning that is bound to what has changed is left out, and the break is reported.
   */
  async *#events(
    llmRequest: LlmRequest,
    planned: PlannedRequest,
    { mayRestart, signal }: { mayRestart: boolean; signal: AbortSignal | undefined },
  ): AsyncGenerator<StreamEvent, void> {
    const lane = laneOf(llmRequest)
    const accountSecret = await this.#options.accountSecret?.()
    let broken = new Set(planned.decided.broken)
    for (let isChecked = false; ; isChecked = true) {
      const { refused = NOTHING_REFUSED } = planned.decided
      const messages = markRefused(markBroken(planned.messages, broken), refused)
      let isAgain = false
      const toSend = this.#toSend(llmRequest, planned, messages)
      const request = { ...toSend, ...(mayRestart ? { takesBack: true } : {}), ...defined({ accountSecret }) }
      for await (const event of this.provider.generate(request, signal)) {
        if (event.type === 'request') {
          const fresh = isChecked ? [] : this.#newlyBroken(lane, messages, event.body, broken)
          isAgain = fresh.length > 0
          broken = new Set([...broken, ...fresh])
          // Nothing is sent before the next event is requested.
          if (isAgain) break
          reportRequest(llmRequest, event, {
            ...planned,
            decided: { ...planned.decided, broken: [...broken] },
          })
        }
        yield event
      }
      if (!isAgain) return
    }
  }

  /** The reasoning that the model would refuse, because something before it is sent differently now. */
  #newlyBroken(
    lane: RequestLane | undefined,
    messages: readonly ProviderMessage[],
    body: unknown,
    broken: ReadonlySet<string>,
  ): string[] {
    if (!lane?.last || !this.provider.describeModel(this.model).bindsReasoning) return []
    const prefix = prefixOf(body)
    const found = prefix && findBreak(lane.last.prefix, prefix)
    if (!found) return []
    return brokenReasoning(messages, wireItems(body).slice(0, found.at)).filter(id => !broken.has(id))
  }

  async #complete(llmRequest: LlmRequest, answer: ResponseAccumulator): Promise<LlmResponse> {
    await letOthersRun()
    const failure = noAnswer(answer, `${this.provider.id}/${this.model}`)
    if (failure) throw failure
    const { price } = this.provider.describeModel(this.model)
    const response = { ...answer.complete(price), modelVersion: `${this.provider.id}/${this.model}` }
    const unknown = answerUnknownTools(llmRequest, response)
    if (unknown.length > 0) report(llmRequest, { type: 'unknown-tools', names: unknown })
    if (!isOfRun(llmRequest)) refuseEndlessMisses(llmRequest, unknown, `${this.provider.id}/${this.model}`)
    return response
  }

  /** Says in receipts what of an answer is missing. `at`: its place after the messages that it answers. */
  #reportLeftOut(llmRequest: LlmRequest, { leftOut }: ResponseAccumulator, at: number): void {
    if (!leftOut) return
    const { calls = 0, cutAt } = leftOut
    const repairs: Repair[] = []
    if (calls > 0) {
      const detail = `${calls} tool calls were left out: one answer may have ${this.#options.maxCallsPerAnswer ?? MOST_CALLS} at most.`
      repairs.push({ step: 'limit-answer', kind: 'drop-calls', at, detail })
    }
    if (cutAt !== undefined) {
      const detail = `The answer was ended after ${cutAt} characters, the most that one may have.`
      repairs.push({ step: 'limit-answer', kind: 'shorten', at, detail })
    }
    report(llmRequest, { type: 'receipts', repairs })
  }

  /** The event itself, or what of its text an answer may still hold. */
  #bounded(event: StreamEvent, answer: ResponseAccumulator): StreamEvent {
    if (event.type !== 'text-delta' && event.type !== 'reasoning-delta') return event
    const left = (this.#options.maxAnswerLength ?? MOST_CHARACTERS) - answer.length
    return event.text.length <= left ? event : { ...event, text: event.text.slice(0, left) }
  }

  #requestParts(llmRequest: LlmRequest): RequestParts {
    const { config } = llmRequest
    const messages = convertMessages(this.#contentsOf(llmRequest))
    return {
      system: systemMessage(config),
      // Within a lane a request extends the one before: a message that was sent does not grow.
      messages: laneOf(llmRequest) ? messages : joinNeighbours(messages),
      tools: convertTools(config),
      maxOutputTokens: optionsFor(llmRequest).maxOutputTokens,
    }
  }

  /** As ADK's own models do, a request that ends with the model's words gets a turn of the user. */
  #contentsOf(llmRequest: LlmRequest): Content[] {
    const request = { ...llmRequest, contents: [...llmRequest.contents] }
    const { length } = request.contents
    this.maybeAppendUserContent(request)
    return request.contents.map((content, at) => (at < length ? content : markWrittenBy(content, 'program')))
  }

  async #plan(
    llmRequest: LlmRequest,
    request: RequestParts,
    { refused, historyTokens }: { refused: Refused; historyTokens?: number | undefined },
  ): Promise<PlannedRequest> {
    const { budgetTokens, calibration, model } = this.#options
    const lane = laneOf(llmRequest)
    const planned = planRequest(request, lane?.last?.decided, {
      budgetTokens,
      model: this.provider.describeModel(model),
      scale: calibration?.scale(model) ?? 1,
      isStored: lane !== undefined,
      historyTokens,
      refused,
      hasMemory: lane?.memory !== undefined,
    })
    const { leftOutSeq } = planned
    const notes = leftOutSeq === undefined ? undefined : await lane?.memory?.(leftOutSeq)
    return notes === undefined ? planned : withMemory(planned, notes)
  }

  #toSend(
    llmRequest: LlmRequest,
    { system, tools, decided, messages: planned }: PlannedRequest,
    messages: readonly ProviderMessage[],
  ): GenerateRequest {
    const { repairMode, model } = this.#options
    const options = optionsFor(llmRequest)
    const serverTools = convertServerTools(llmRequest.config)
    const answered = answeredMessages(planned, `${this.provider.id}/${model}`)
    return {
      model,
      messages: system ? [system, ...messages] : messages,
      ...(tools.length > 0 ? { tools } : {}),
      ...(serverTools.length > 0 ? { serverTools } : {}),
      ...(Object.keys(options).length > 0 ? { options } : {}),
      ...(repairMode === undefined ? {} : { repairMode }),
      ...(decided.refused?.limits === 'strict' ? { mediaLimits: 'strict' } : {}),
      ...(answered > 0 ? { answered: answered + (system ? 1 : 0) } : {}),
    }
  }

  /** After an overflow: what the history may cost now. What the provider counted also corrects later estimates. */
  #smaller(fitted: PlannedRequest['fitted'], failure: AgentError): number | undefined {
    if (failure.code !== 'context-overflow') return undefined
    const counts = overflowCounts(failure.message)
    if (counts.counted !== undefined) {
      this.#options.calibration?.observe(this.model, fitted.requestTokens, counts.counted)
    }
    return refitTokens(fitted, counts)
  }

  #reportCut(llmRequest: LlmRequest, { fitted: { cut } }: PlannedRequest): void {
    const reported = JSON.stringify([cut?.messages ?? 0, cut?.shortened ?? []])
    for (const { listener, scope } of subscriptionsOf(llmRequest)) {
      const changed = this.#reportedCuts.get(scope) !== reported
      this.#reportedCuts.set(scope, reported)
      if (cut && changed) listener({ type: 'cut', cut })
    }
  }

  #observe(
    llmRequest: LlmRequest,
    usage: Extract<ModelReport, { type: 'usage' }>['usage'],
    { fitted }: PlannedRequest,
  ): void {
    const estimatedTokens = fitted.requestTokens
    this.#options.calibration?.observe(this.model, estimatedTokens, usage.inputTokens)
    report(llmRequest, { type: 'usage', usage, estimatedTokens })
  }
}

/** Several times what any model writes; a server that never ends its answer is stopped there. */
const MOST_CHARACTERS = 4 * 1024 * 1024

/** More calls than any model makes in earnest. */
const MOST_CALLS = 128

/** How often a request is sent at most, once it was too long. */
const MOST_SENDS = 4

function refusedBefore(lane: RequestLane | undefined): Refused {
  return joinRefused(lane?.last?.decided.refused ?? NOTHING_REFUSED, lane?.refused ?? NOTHING_REFUSED)
}

function callIdsOf(messages: readonly ProviderMessage[]): string[] {
  return messages.flatMap(message =>
    message.parts.flatMap(part => (part.type === 'tool-call' ? [part.id] : [])),
  )
}

function resendReason(error: AgentError, attempt: number): 'context-overflow' | 'malformed-call' | undefined {
  if (error.code === 'context-overflow') return attempt < MOST_SENDS ? 'context-overflow' : undefined
  return attempt === 1 && error.details.reason === MALFORMED_CALL ? 'malformed-call' : undefined
}

function toAgentError(error: unknown): AgentError {
  if (error instanceof AgentError) return error
  return new AgentError('internal', `The provider failed: ${messageOf(error)}`, { cause: error })
}

/** What a request asks for: by ADK's configuration, and by the code that routes it. */
function optionsFor(llmRequest: LlmRequest): GenerationOptions {
  const options = convertOptions(llmRequest.config)
  const chosen = chosenOptions(llmRequest)
  return chosen ? withChosen(options, chosen) : options
}

/** The system instruction as one message: its texts joined by newlines. `undefined` when there is none. */
function systemMessage(config: GenerateContentConfig | undefined): ProviderMessage | undefined {
  const texts = textsOf(config?.systemInstruction)
  if (texts.length === 0) return undefined
  return { role: 'system', parts: [{ type: 'text', text: texts.join('\n') }] }
}

/** ADK sends a string; its type also allows a part, a list of parts or texts, and a content. */
function textsOf(instruction: GenerateContentConfig['systemInstruction']): string[] {
  if (!instruction) return []
  if (typeof instruction === 'string') return [instruction]
  if (Array.isArray(instruction)) return instruction.flatMap(textsOf)
  if ('parts' in instruction) return (instruction.parts ?? []).flatMap(part => textsOf(part))
  const { text } = instruction as Part
  return text ? [text] : []
}
