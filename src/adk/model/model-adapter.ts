import { AgentError, messageOf } from '../../errors.js'
import type { GenerateRequest, Provider, ProviderMessage, RepairMode } from '../../provider/provider.js'
import { BaseLlm, type BaseLlmConnection, type LlmRequest, type LlmResponse } from '../sdk.js'
import { convertMessages } from './convert-messages.js'
import { convertTools } from './convert-tools.js'
import { type FittedRequest, fitRequest, fitTo, type RequestParts } from './fit-request.js'
import { generationOptions } from './generation-options.js'
import { MALFORMED_CALL, noAnswer } from './no-answer.js'
import { type ModelReport, subscriptionsOf } from './request-reports.js'
import { ResponseAccumulator } from './response-accumulator.js'
import { systemMessage } from './system-message.js'
import { answerUnknownTools } from './unknown-tool.js'

export interface ModelAdapterOptions {
  provider: Provider
  /** The model's name without the provider's prefix. */
  model: string
  /** How much history a request may hold. 0 or absent: 32,000. `'off'`: what the model's window holds. */
  budgetTokens?: number | 'off' | undefined
  /** What to do with a history that the model would refuse. Default `repair`. */
  repairMode?: RepairMode | undefined
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
 * Any provider as a model of ADK's. Streaming or not, the provider's events are gathered once: partial answers
 * are yielded only if asked for, and the last answer is always whole. Errors are thrown as the provider made
 * them. Before each call the history is fitted to its budget again.
 *
 * @spec ModelAdapter.GenerateContent
 */
export class ModelAdapter extends BaseLlm {
  readonly provider: Provider
  readonly #options: ModelAdapterOptions
  /** The cut that was told last, by scope. */
  readonly #toldCuts = new WeakMap<object, string>()

  constructor(options: ModelAdapterOptions) {
    super({ model: options.model })
    this.provider = options.provider
    this.#options = options
  }

  override async *generateContentAsync(
    llmRequest: LlmRequest,
    stream = false,
    abortSignal?: AbortSignal,
  ): AsyncGenerator<LlmResponse, void> {
    const request = this.#requestParts(llmRequest)
    let fitted = this.#fit(request)
    for (let attempt = 1; ; attempt += 1) {
      this.#reportCut(llmRequest, fitted)
      const answer = new ResponseAccumulator(callIdsOf(request.messages))
      try {
        yield* this.#answer(llmRequest, request, fitted, answer, stream, abortSignal)
        return
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

  async *#answer(
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
      const partial = answer.add(event)
      if (stream && partial) yield partial
      if (event.type === 'done') break
    }
    const failure = noAnswer(answer, `${this.provider.id}/${this.model}`)
    if (failure) throw failure
    const response = { ...answer.complete(), modelVersion: `${this.provider.id}/${this.model}` }
    const unknown = answerUnknownTools(llmRequest, response)
    if (unknown.length > 0) report(llmRequest, { type: 'unknown-tools', names: unknown })
    yield response
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
    const told = JSON.stringify([cut?.messages ?? 0, cut?.shortened ?? []])
    for (const { listener, scope } of subscriptionsOf(llmRequest)) {
      const changed = this.#toldCuts.get(scope) !== told
      this.#toldCuts.set(scope, told)
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
