/** The agent of the fleet benchmark, made of a given copy of ADK: one tool call, then an answer. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { LlmRequest, LlmResponse } from '@google/adk'
import { z } from 'zod'

type Adk = Pick<typeof import('@google/adk'), 'BaseLlm' | 'FunctionTool' | 'LlmAgent'>

export function agentOf({ BaseLlm, FunctionTool, LlmAgent }: Adk, delayMs: () => number) {
  class PacedModel extends BaseLlm {
    override async *generateContentAsync(request: LlmRequest): AsyncGenerator<LlmResponse, void> {
      if (delayMs() > 0) await sleep(delayMs())
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
  return new LlmAgent({
    name: 'agent',
    model: new PacedModel({ model: 'paced' }),
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
