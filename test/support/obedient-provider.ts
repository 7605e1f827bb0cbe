// A model that does what the user's last message says, as slowly as it says. Used where a run must last.
//   say 20           twenty words, at once
//   slow 20 5        twenty words, one every 5 ms
//   hang             one word, then nothing until it is stopped
//   danger           calls the tool `danger`, then reports its result
//   search           calls the tool `search`, then reports its result
import { setTimeout as sleep } from 'node:timers/promises'
import { AgentError } from '../../src/errors.js'
import type { GenerateRequest, ModelInfo, Provider } from '../../src/provider/provider.js'
import type { StreamEvent } from '../../src/provider/stream-event.js'
import { defineTool } from '../../src/tool.js'

/** Needs approval before it runs. */
export const dangerTool = defineTool({
  name: 'danger',
  description: 'Does something that somebody must allow.',
  parameters: { type: 'object', properties: {} },
  needsApproval: true,
  execute: () => ({ done: true }),
})

export const obedientProvider: Provider = {
  id: 'play',
  describeModel: (id: string): ModelInfo => ({
    id,
    contextWindow: 1_000_000,
    outputLimit: 64_000,
    profile: 'openai-chat',
    known: true,
  }),
  async *generate(request: GenerateRequest, signal?: AbortSignal): AsyncIterable<StreamEvent> {
    yield {
      type: 'request',
      model: request.model,
      profile: 'openai-chat',
      repairs: [],
      mappedIds: {},
      body: structuredClone({ messages: request.messages }),
    }
    try {
      yield* obey(request, signal)
    } catch (error) {
      if (!signal?.aborted) throw error
      yield { type: 'error', error: new AgentError('aborted', 'The model call was aborted.') }
    }
  },
}

async function* obey(request: GenerateRequest, signal: AbortSignal | undefined): AsyncIterable<StreamEvent> {
  const last = request.messages.at(-1)
  const result = last?.parts.find(part => part.type === 'tool-result')
  const said = last?.parts.map(part => (part.type === 'text' ? part.text : '')).join('') ?? ''
  const [order = '', count = '1', pauseMs = '0'] = result ? ['say', '3'] : said.trim().split(/\s+/)
  if (order === 'danger' || order === 'search') {
    yield { type: 'tool-call', id: `call-${order}`, name: order, args: { query: 'x' } }
    yield { type: 'done', finishReason: 'tool-calls' }
    return
  }
  const words = order === 'say' || order === 'slow' ? Number(count) : 1
  for (let index = 1; index <= words; index++) {
    if (order === 'slow') await sleep(Number(pauseMs), undefined, signal ? { signal } : {})
    yield { type: 'text-delta', text: `word${index} ` }
  }
  if (order === 'hang') await sleep(3_600_000, undefined, signal ? { signal } : {})
  yield { type: 'usage', usage: { inputTokens: 10, outputTokens: words, totalTokens: 10 + words } }
  yield { type: 'done', finishReason: 'stop' }
}
