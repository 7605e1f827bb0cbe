import { BaseLlm, type BaseLlmConnection, type LlmRequest, type LlmResponse } from '@google/adk'
import type { Content, Part } from '@google/genai'

/** What the model answers to its n-th request (from 0): parts of one content, or a whole response. */
export type Answer = (contents: readonly Content[], index: number) => Part[] | LlmResponse

/** A bare ADK model without Lango's adapter: it records the bytes of every request that ADK makes. */
export class RecordingModel extends BaseLlm {
  /** The JSON of the contents of each request. */
  readonly requests: string[] = []
  readonly #answer: Answer

  constructor(answer: Answer, model = 'recording') {
    super({ model })
    this.#answer = answer
  }

  get last(): Content[] {
    return JSON.parse(this.requests.at(-1) ?? '[]') as Content[]
  }

  override async *generateContentAsync(request: LlmRequest): AsyncGenerator<LlmResponse, void> {
    const index = this.requests.length
    this.requests.push(JSON.stringify(request.contents))
    const answer = this.#answer(request.contents, index)
    yield Array.isArray(answer) ? { content: { role: 'model', parts: answer } } : answer
  }

  override async connect(): Promise<BaseLlmConnection> {
    return Promise.reject(new TypeError('not a live model'))
  }
}
