import type { Calibration } from '../adk/model/model-adapter.js'
import { messageOf } from '../errors.js'
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
