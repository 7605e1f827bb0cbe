import type { Calibration } from '../adk/model/model-adapter.js'
import { BaseLlm, type BaseLlmConnection, type LlmRequest, type LlmResponse } from '../adk/sdk.js'
import { AgentError, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { CalibrationStore } from '../session/session-store.js'

const BYTES_PER_ESTIMATED_TOKEN = 4
/** Fewer tokens than this say more about a request's frame than about the model's tokenizer. */
const LEAST_TOKENS = 2_000
const SCALE_LIMITS = { least: 0.5, most: 3 }

/**
 * Learns how many tokens a model counts where we estimate one, and keeps it in the store. Reading is
 * synchronous, because a model call must not wait for it: until the store has answered, the estimate stands.
 */
export class CalibratedTokens implements Calibration {
  readonly #known = new Map<string, { bytes: number; tokens: number }>()
  readonly #asked = new Set<string>()

  constructor(
    private readonly store: CalibrationStore,
    private readonly logger: Logger,
  ) {}

  scale(model: string): number {
    this.#load(model)
    const known = this.#known.get(model)
    if (!known || known.tokens < LEAST_TOKENS) return 1
    const scale = known.tokens / (known.bytes / BYTES_PER_ESTIMATED_TOKEN)
    return Math.min(SCALE_LIMITS.most, Math.max(SCALE_LIMITS.least, scale))
  }

  observe(model: string, estimatedTokens: number, countedTokens: number): void {
    if (estimatedTokens <= 0 || countedTokens <= 0) return
    const bytes = Math.round(estimatedTokens * BYTES_PER_ESTIMATED_TOKEN)
    const known = this.#known.get(model) ?? { bytes: 0, tokens: 0 }
    this.#known.set(model, { bytes: known.bytes + bytes, tokens: known.tokens + countedTokens })
    void this.store.record(model, bytes, countedTokens).catch(error => this.#failed(error))
  }

  #load(model: string): void {
    if (this.#asked.has(model)) return
    this.#asked.add(model)
    void this.store
      .read(model)
      .then(stored => {
        const known = this.#known.get(model)
        if (stored && stored.bytes > (known?.bytes ?? 0)) this.#known.set(model, stored)
      })
      .catch(error => this.#failed(error))
  }

  #failed(error: unknown): void {
    this.logger.debug('The calibration of token counts could not be read or kept', {
      error: messageOf(error),
    })
  }
}

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
