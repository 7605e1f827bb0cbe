/**
 * Model calls of runs that have a budget or have reached a limit: who pays for them, and what stands for an answer that
 * nobody pays for. Loaded by the first such call.
 */
import { BaseLlm, type BaseLlmConnection, type LlmRequest, type LlmResponse } from '../adk/sdk.js'
import { AgentError } from '../errors.js'
import { type Payer, paidProvider } from '../money/paid-provider.js'
import type { Provider } from '../provider/provider.js'
import type { BudgetState } from '../run/run-event.js'
import { spoken } from '../run/run-plugin.js'
import { type RunScope, runScope } from '../run/run-scope.js'
import type { SpendingStore } from '../session/spending.js'

export interface PaidCallParts {
  spending: SpendingStore
  scale(model: string): number
  /** The calls are made beside the run and not by its agents: the observer's. */
  isBeside: boolean
}

/** The provider, with calls that are held to the budget of the current run. */
export function paidCalls(provider: Provider, { spending, scale, isBeside }: PaidCallParts): Provider {
  return paidProvider(provider, { spending, scale, payer: () => payerOf(runScope.getStore(), isBeside) })
}

function payerOf(scope: RunScope | undefined, isBeside: boolean): Payer | undefined {
  const budget = scope?.budget
  if (!scope || !budget) return undefined
  const { key, runId, hasActed, wrapUpGranted: isLast } = scope
  if (isBeside) return { key, runId, budget, hasActed: false, isLast, cutShort: () => {} }
  return { key, runId, budget, hasActed, isLast, cutShort: () => scope.cutShort() }
}

/**
 * A model whose provider is paid. A call that cannot be paid for becomes the last one of its run, with a request that
 * says so; where that cannot be paid for either, or an agent inside a tool makes it, a text stands for the answer.
 */
export class PaidModel extends BaseLlm {
  readonly #model: BaseLlm
  readonly #scope: RunScope

  constructor(model: BaseLlm, scope: RunScope) {
    super({ model: model.model })
    this.#model = model
    this.#scope = scope
  }

  override async *generateContentAsync(
    request: LlmRequest,
    stream?: boolean,
    signal?: AbortSignal,
  ): AsyncGenerator<LlmResponse, void> {
    try {
      yield* this.#model.generateContentAsync(request, stream, signal)
    } catch (error) {
      // Nothing was answered: the error comes before the call is sent, or before it is sent again.
      const text = await this.#makeLast(request, error)
      if (text === undefined) yield* this.#lastAnswer(request, stream, signal)
      else yield spoken(text)
    }
  }

  async *#lastAnswer(
    request: LlmRequest,
    stream: boolean | undefined,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<LlmResponse, void> {
    try {
      yield* this.#model.generateContentAsync(request, stream, signal)
    } catch (error) {
      yield spoken((await this.#makeLast(request, error)) ?? '')
    }
  }

  /** See `RunScope.budgetSpent`. Throws any other error. */
  async #makeLast(request: LlmRequest, error: unknown): Promise<string | undefined> {
    if (!(error instanceof AgentError) || error.code !== 'budget-spent') throw error
    // The error was made with these details.
    return this.#scope.budgetSpent(request, error.details as unknown as BudgetState)
  }

  override connect(request: LlmRequest): Promise<BaseLlmConnection> {
    return this.#model.connect(request)
  }
}

/** Replaces the model of a nested agent when the run has no turns left: its answer says so. */
export class SpentModel extends BaseLlm {
  constructor() {
    super({ model: 'lango/spent' })
  }

  override async *generateContentAsync(): AsyncGenerator<LlmResponse, void> {
    const text = '[The turn limit of this run is reached. Nothing more was done here.]'
    yield { content: { role: 'model', parts: [{ text }] }, partial: false, turnComplete: true }
  }

  override connect(): Promise<BaseLlmConnection> {
    return Promise.reject(new AgentError('invalid-argument', 'Live connections are not supported.'))
  }
}
