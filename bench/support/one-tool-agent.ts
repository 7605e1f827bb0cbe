/** The agent of several benchmarks: one tool call, then an answer, from a model that takes a given time. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { LlmRequest, LlmResponse } from '@google/adk'
import { BaseLlm, FunctionTool, LlmAgent } from '@google/adk'
import { z } from 'zod'

export class PacedModel extends BaseLlm {
  readonly #delayMs: number

  constructor(delayMs: number) {
    super({ model: 'paced' })
    this.#delayMs = delayMs
  }

  /** Calls the tool when it is asked, answers when it has the result. */
  override async *generateContentAsync(request: LlmRequest): AsyncGenerator<LlmResponse, void> {
    if (this.#delayMs > 0) await sleep(this.#delayMs)
    const answered = request.contents.at(-1)?.parts?.some(part => part.functionResponse)
    const call = { functionCall: { name: 'look', args: { place: 'the second drawer from the top' } } }
    const text = { text: 'It is in the second drawer from the top, under the envelopes.' }
    const usageMetadata = { promptTokenCount: 100, candidatesTokenCount: 20, totalTokenCount: 120 }
    yield { content: { role: 'model', parts: [answered ? text : call] }, usageMetadata }
  }

  override connect(): Promise<never> {
    return Promise.reject(new TypeError('not a live model'))
  }
}

export function oneToolAgent(delayMs = 0): LlmAgent {
  return new LlmAgent({
    name: 'agent',
    model: new PacedModel(delayMs),
    instruction: 'You help people find things.',
    tools: [
      new FunctionTool({
        name: 'look',
        description: 'Looks somewhere',
        parameters: z.object({ place: z.string() }),
        execute: ({ place }) => ({ place, found: ['stamps', 'envelopes', 'a key'], at: 'the back' }),
      }),
    ],
  })
}

export const QUESTION = 'Where is the key that I put away last week?'
