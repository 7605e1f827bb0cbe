import { AgentError } from '../../errors.js'
import { BaseLlm, type BaseLlmConnection, type LlmRequest, type LlmResponse } from '../sdk.js'

/** How one request of ADK's is served. */
export interface ModelRoute {
  model: BaseLlm
  /** Hears every response before ADK does. */
  observe?(response: LlmResponse): void
}

/**
 * A model that is chosen request by request: a run may use another model than its agents name, and agents are
 * shared by runs that go on at the same time.
 */
export class RoutedModel extends BaseLlm {
  constructor(
    reference: string,
    private readonly route: (request: LlmRequest) => ModelRoute,
  ) {
    super({ model: reference })
  }

  override async *generateContentAsync(
    request: LlmRequest,
    stream?: boolean,
    signal?: AbortSignal,
  ): AsyncGenerator<LlmResponse, void> {
    const { model, observe } = this.route(request)
    for await (const response of model.generateContentAsync(request, stream, signal)) {
      observe?.(response)
      yield response
    }
  }

  override connect(request: LlmRequest): Promise<BaseLlmConnection> {
    return this.route(request).model.connect(request)
  }
}

/** Stands in for the model of a nested agent when the run has no turns left: it only says so. */
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
