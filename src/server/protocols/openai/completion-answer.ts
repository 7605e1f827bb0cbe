/** Completions as OpenAI writes them, whole or in chunks. */
import type { RunUsage } from '../../chat-protocol.js'
import type { CompletionFinish, CompletionRun } from './completion-run.js'

/** What stands in every chunk and in the whole answer. */
function identity(run: CompletionRun, created: number) {
  return { id: `chatcmpl-${run.started.runId}`, created, model: run.model }
}

export interface WholeAnswer {
  created: number
  text: string
  reasoning: string
  finish: CompletionFinish
  usage: RunUsage
}

/** The answer to a request that does not stream. */
export function toCompletion(run: CompletionRun, answer: WholeAnswer): object {
  const { created, text, reasoning, finish, usage } = answer
  const message = {
    role: 'assistant',
    content: text,
    refusal: null,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
  }
  return {
    ...identity(run, created),
    object: 'chat.completion',
    choices: [{ index: 0, message, logprobs: null, finish_reason: finish }],
    usage: toUsage(usage),
  }
}

export interface ChunkOptions {
  created: number
  /** Whether a last chunk tells the usage; then all others say that they do not. */
  includeUsage: boolean
}

/** Makes the chunks of one streamed answer. */
export class ChunkWriter {
  constructor(
    private readonly run: CompletionRun,
    private readonly options: ChunkOptions,
  ) {}

  first(): object {
    return this.#chunk({ role: 'assistant', content: '' })
  }

  text(text: string): object {
    return this.#chunk({ content: text })
  }

  /** The name that most compatible servers use for what a model thinks. */
  reasoning(text: string): object {
    return this.#chunk({ reasoning_content: text })
  }

  end(finish: CompletionFinish, usage: RunUsage): object[] {
    const last = this.#chunk({}, finish)
    if (!this.options.includeUsage) return [last]
    return [last, { ...this.#chunk({}), choices: [], usage: toUsage(usage) }]
  }

  #chunk(delta: object, finish: CompletionFinish | null = null): object {
    return {
      ...identity(this.run, this.options.created),
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
      ...(this.options.includeUsage ? { usage: null } : {}),
    }
  }
}

function toUsage(usage: RunUsage): object {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.totalTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedInputTokens },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  }
}
