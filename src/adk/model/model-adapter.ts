import { isRecord } from '../../base/is-record.js'
import { letOthersRun } from '../../base/pause.js'
import { AgentError, checkArgument, messageOf } from '../../errors.js'
import type {
  GenerateRequest,
  GenerationOptions,
  Provider,
  ProviderMessage,
  RepairMode,
} from '../../provider/provider.js'
import type { RequestEvent, StreamEvent } from '../../provider/stream-event.js'
import type { HistoryCut } from '../../session/message.js'
import type { Usage } from '../../session/usage.js'
import { acceptsSilence, withoutInheritedNames } from '../adk-quirks.js'
import {
  BaseLlm,
  type BaseLlmConnection,
  BaseTool,
  type GenerateContentConfig,
  type LlmRequest,
  type LlmResponse,
  type Part,
} from '../sdk.js'
import { convertMessages, convertToolChoice, convertTools, toJsonSchema } from './convert-messages.js'
import { type FittedRequest, fitRequest, fitTo, type RequestParts } from './fit-request.js'
import { MALFORMED_CALL, noAnswer, ResponseAccumulator } from './response-accumulator.js'

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
  /** What was learnt about the model's tokens. */
  calibration?: Calibration | undefined
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
 * once more; the usage of both attempts is that of the answer.
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
    let fitted = this.#fit(request)
    await letOthersRun()
    let spent: Usage | undefined
    for (let attempt = 1; ; attempt += 1) {
      this.#reportCut(llmRequest, fitted)
      const answer = new ResponseAccumulator(callIdsOf(request.messages), spent)
      try {
        yield* this.#stream(llmRequest, request, fitted, answer, stream, abortSignal)
        if (attempt > 1 || !answer.isEmpty || acceptsSilence(llmRequest) || abortSignal?.aborted) {
          yield await this.#complete(llmRequest, answer)
          return
        }
        spent = answer.usage
        report(llmRequest, { type: 'resend', reason: 'empty-answer' })
      } catch (error) {
        const failure = toAgentError(error)
        const again = attempt === 1 && !answer.hasOutput ? resendReason(failure) : undefined
        if (!again) {
          report(llmRequest, { type: 'error', error: failure })
          throw failure
        }
        report(llmRequest, { type: 'resend', reason: again, error: failure })
        if (again === 'context-overflow') fitted = fitTo(request, fitted.historyTokens * OVERFLOW_SHARE)
      }
    }
  }

  override async connect(): Promise<BaseLlmConnection> {
    const message = `Live connections to ${this.provider.id}/${this.model} are not supported. Use runAsync.`
    throw new AgentError('invalid-argument', message)
  }

  /** Gathers one answer of the provider, and yields its parts if they are wanted. */
  async *#stream(
    llmRequest: LlmRequest,
    request: RequestParts,
    fitted: FittedRequest,
    answer: ResponseAccumulator,
    stream: boolean,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<LlmResponse, void> {
    for await (const event of this.provider.generate(this.#toSend(llmRequest, request, fitted), signal)) {
      if (event.type === 'error') throw event.error
      if (event.type === 'request') {
        const { given: history, cut } = fitted
        report(llmRequest, { type: 'request', request: event, history, ...(cut ? { cut } : {}) })
      }
      if (event.type === 'usage') this.#observe(llmRequest, event.usage, fitted)
      const bounded = this.#bounded(event, answer)
      const partial = answer.add(bounded)
      if (stream && partial) yield partial
      if (bounded !== event) {
        answer.add({ type: 'done', finishReason: 'length' })
        report(llmRequest, { type: 'answer-cut', length: answer.length })
        break
      }
      if (event.type === 'done') break
    }
  }

  async #complete(llmRequest: LlmRequest, answer: ResponseAccumulator): Promise<LlmResponse> {
    await letOthersRun()
    const failure = noAnswer(answer, `${this.provider.id}/${this.model}`)
    if (failure) throw failure
    const response = { ...answer.complete(), modelVersion: `${this.provider.id}/${this.model}` }
    const unknown = answerUnknownTools(llmRequest, response)
    if (unknown.length > 0) report(llmRequest, { type: 'unknown-tools', names: unknown })
    return response
  }

  /** The event itself, or what of its text an answer may still hold. */
  #bounded(event: StreamEvent, answer: ResponseAccumulator): StreamEvent {
    if (event.type !== 'text-delta' && event.type !== 'reasoning-delta') return event
    const left = (this.#options.maxAnswerLength ?? MOST_CHARACTERS) - answer.length
    return event.text.length <= left ? event : { ...event, text: event.text.slice(0, left) }
  }

  #requestParts(llmRequest: LlmRequest): RequestParts {
    const { config, contents } = llmRequest
    return {
      system: systemMessage(config),
      messages: convertMessages(contents),
      tools: convertTools(config),
      maxOutputTokens: config?.maxOutputTokens,
    }
  }

  #fit(request: RequestParts): FittedRequest {
    const { budgetTokens, calibration, model } = this.#options
    const scale = calibration?.scale(model) ?? 1
    return fitRequest(request, { budgetTokens, model: this.provider.describeModel(model), scale })
  }

  #toSend(llmRequest: LlmRequest, request: RequestParts, fitted: FittedRequest): GenerateRequest {
    const { repairMode, model } = this.#options
    const options = generationOptions(llmRequest.config)
    return {
      model,
      messages: request.system ? [request.system, ...fitted.messages] : fitted.messages,
      ...(request.tools.length > 0 ? { tools: request.tools } : {}),
      ...(Object.keys(options).length > 0 ? { options } : {}),
      ...(repairMode === undefined ? {} : { repairMode }),
    }
  }

  #reportCut(llmRequest: LlmRequest, { cut }: FittedRequest): void {
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
    fitted: FittedRequest,
  ): void {
    const estimatedTokens = fitted.requestTokens
    this.#options.calibration?.observe(this.model, estimatedTokens, usage.inputTokens)
    report(llmRequest, { type: 'usage', usage, estimatedTokens })
  }
}

/** Several times what any model writes; a server that never ends its answer is stopped there. */
const MOST_CHARACTERS = 4 * 1024 * 1024

/** After an overflow the estimate was wrong by an unknown amount; this share of it is tried once. */
const OVERFLOW_SHARE = 0.7

function report(llmRequest: LlmRequest, message: ModelReport): void {
  for (const { listener } of subscriptionsOf(llmRequest)) listener(message)
}

function callIdsOf(messages: readonly ProviderMessage[]): string[] {
  return messages.flatMap(message =>
    message.parts.flatMap(part => (part.type === 'tool-call' ? [part.id] : [])),
  )
}

function resendReason(error: AgentError): 'context-overflow' | 'malformed-call' | undefined {
  if (error.code === 'context-overflow') return 'context-overflow'
  return error.details.reason === MALFORMED_CALL ? 'malformed-call' : undefined
}

function toAgentError(error: unknown): AgentError {
  if (error instanceof AgentError) return error
  return new AgentError('internal', `The provider failed: ${messageOf(error)}`, { cause: error })
}

/** The options of ADK's configuration that every provider may get. */
function generationOptions(config: GenerateContentConfig | undefined): GenerationOptions {
  if (!config) return {}
  const { temperature, topP, topK, seed, maxOutputTokens, stopSequences } = config
  const schema = config.responseJsonSchema ?? toJsonSchema(config.responseSchema)
  const thinking = thinkingOptions(config)
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(topK === undefined ? {} : { topK }),
    ...(seed === undefined ? {} : { seed }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(stopSequences?.length ? { stopSequences } : {}),
    ...(typeof schema === 'object' && schema !== null
      ? { responseSchema: schema as Record<string, unknown> }
      : {}),
    ...convertToolChoice(config),
    ...(thinking ? { thinking } : {}),
  }
}

function thinkingOptions(config: GenerateContentConfig): GenerationOptions['thinking'] {
  const { thinkingBudget, thinkingLevel, includeThoughts } = config.thinkingConfig ?? {}
  const effort = EFFORTS.find(name => name === String(thinkingLevel).toLowerCase())
  const thinking = {
    // A negative budget leaves the choice to the model, which is what saying nothing does.
    ...(thinkingBudget === undefined || thinkingBudget < 0 ? {} : { budgetTokens: thinkingBudget }),
    ...(effort === undefined ? {} : { effort }),
    ...(includeThoughts === undefined ? {} : { includeThoughts }),
  }
  return Object.keys(thinking).length > 0 ? thinking : undefined
}

const EFFORTS = ['minimal', 'low', 'medium', 'high'] as const

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

/**
 * Answers a call to a tool that does not exist with the names of those that do. ADK would end the step with an
 * error, leave every call of the batch unanswered and ask the model again without telling it anything.
 */
class UnknownTool extends BaseTool {
  readonly #problem: string
  readonly #known: readonly string[]

  constructor(name: string, problem: string, known: readonly string[]) {
    super({ name, description: '' })
    this.#problem = problem
    this.#known = known
  }

  override async runAsync(): Promise<unknown> {
    const list =
      this.#known.length > 0 ? `Available tools: ${this.#known.join(', ')}.` : 'There are no tools.'
    return { error: `${this.#problem} ${list}` }
  }
}

/**
 * Sees to it that every call of an answer has a tool to go to, and returns the names that had none. A call
 * without a name gets one, because neither ADK nor a provider that sees it again accepts it.
 */
export function answerUnknownTools(llmRequest: LlmRequest, response: LlmResponse): string[] {
  // ADK always sets it; a caller without ADK may not.
  llmRequest.toolsDict ??= {}
  const tools = withoutInheritedNames(llmRequest.toolsDict)
  const known = Object.keys(tools)
  const calls = (response.content?.parts ?? []).flatMap(part => part.functionCall ?? [])
  const standIn = freeName(tools)
  const unknown = new Set<string>()
  for (const call of calls) {
    const isNameless = !call.name
    const name = call.name || standIn
    call.name = name
    if (Object.hasOwn(tools, name)) continue
    const problem = isNameless ? 'The call names no tool.' : `Tool "${name}" does not exist.`
    tools[name] = new UnknownTool(name, problem, known)
    unknown.add(name)
  }
  return [...unknown]
}

/** A name that no tool has: a call to nothing must not reach something. */
function freeName(tools: LlmRequest['toolsDict']): string {
  let name = 'unknown_tool'
  for (let number = 2; Object.hasOwn(tools, name); number += 1) name = `unknown_tool_${number}`
  return name
}

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
    }
  /** The answer was longer than allowed and ends with so many characters. */
  | { type: 'answer-cut'; length: number }
  /** The call is made once more: before anything of the answer was seen, or because the answer was empty. */
  | {
      type: 'resend'
      reason: 'context-overflow' | 'malformed-call' | 'empty-answer'
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

/** The listeners of a request. */
function subscriptionsOf(llmRequest: LlmRequest): readonly ModelReportSubscription[] {
  return subscriptions.get(llmRequest) ?? []
}
