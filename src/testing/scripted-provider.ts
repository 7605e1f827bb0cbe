import { AgentError, checkOptions } from '../errors.js'
import type { GenerateRequest, ModelInfo, Origin, Provider } from '../provider/provider.js'
import type { FinishReason, StreamEvent } from '../provider/stream-event.js'
import type { Usage } from '../session/usage.js'

/** One answer of the model: reasoning, then text, then calls, then usage. All parts may be left out. */
export interface ScriptStep {
  /** One text delta. */
  text?: string
  /** Several text deltas, in order. */
  deltas?: readonly string[]
  /** Thoughts, before any text. */
  reasoning?: string | { text: string; signature?: string; origin?: Origin; redacted?: boolean }
  toolCalls?: readonly ScriptedCall[]
  usage?: Partial<Usage>
  /** Ends the answer with this error, after whatever text the step has. */
  error?: AgentError
  finishReason?: FinishReason
  /** Exactly these events instead of all above; `request` is still sent first. */
  events?: readonly StreamEvent[]
}

export interface ScriptedCall {
  name: string
  args?: Record<string, unknown>
  /** Absent: the provider gives none, as some servers do. */
  id?: string
  signature?: string
  origin?: Origin
}

/** The answers in order, or a function that decides by the request; `index` counts the calls from 0. */
export type Script =
  | readonly ScriptStep[]
  | ((request: GenerateRequest, index: number) => ScriptStep | Promise<ScriptStep>)

export interface ScriptedProviderOptions {
  id?: string
  /** What `describeModel` says of every model. */
  model?: Partial<ModelInfo>
}

/**
 * A model that answers from a script and records the requests.
 *
 * ```ts
 * import { createRuntime } from 'lango'
 * import { ScriptedProvider } from 'lango/testing'
 *
 * const script = new ScriptedProvider([{ text: 'Mild.' }])
 * const runtime = await createRuntime({ store: 'memory:', providers: { script }, agent: { model: 'script/any' } })
 * await runtime.runAndCollect({ text: 'How is the weather?' })
 * console.log(script.requests.length) // 1
 * ```
 */
export class ScriptedProvider implements Provider {
  readonly id: string
  /** Every request so far, copied when it came in. */
  readonly requests: GenerateRequest[] = []
  readonly #script: Script
  readonly #model: Partial<ModelInfo>

  constructor(script: Script, options: ScriptedProviderOptions = {}) {
    checkOptions(options, 'new ScriptedProvider')
    this.id = options.id ?? 'scripted'
    this.#script = script
    this.#model = options.model ?? {}
  }

  describeModel(model: string): ModelInfo {
    return {
      id: model,
      contextWindow: 1_000_000,
      outputLimit: 64_000,
      profile: 'openai-chat',
      // A script costs nothing: it is called also where there is a budget.
      price: { input: 0, output: 0 },
      known: true,
      ...this.#model,
    }
  }

  async *generate(request: GenerateRequest, signal?: AbortSignal): AsyncIterable<StreamEvent> {
    const index = this.requests.length
    this.requests.push(structuredClone(request))
    yield {
      type: 'request',
      model: request.model,
      profile: this.describeModel(request.model).profile,
      repairs: [],
      mappedIds: {},
      body: structuredClone({ messages: request.messages, tools: request.tools ?? [] }),
    }
    for (const event of eventsOf(await this.#step(request, index))) {
      if (signal?.aborted) {
        yield { type: 'error', error: new AgentError('aborted', 'The model call was aborted.') }
        return
      }
      yield event
    }
  }

  async #step(request: GenerateRequest, index: number): Promise<ScriptStep> {
    if (typeof this.#script === 'function') return this.#script(request, index)
    const step = this.#script[index]
    if (step) return step
    const message = `The script has ${this.#script.length} steps, but the model was called ${index + 1} times.`
    return { error: new AgentError('invalid-argument', `${message} Add a step or stop the run earlier.`) }
  }
}

function eventsOf(step: ScriptStep): readonly StreamEvent[] {
  if (step.events) return step.events
  const reasoning = typeof step.reasoning === 'string' ? { text: step.reasoning } : step.reasoning
  const deltas = [...(step.text === undefined ? [] : [step.text]), ...(step.deltas ?? [])]
  const calls = step.toolCalls ?? []
  const events: StreamEvent[] = [
    ...(reasoning ? [{ type: 'reasoning-delta' as const, ...reasoning }] : []),
    ...deltas.map(text => ({ type: 'text-delta' as const, text })),
    ...calls.map(({ args = {}, id = '', ...call }) => ({ type: 'tool-call' as const, ...call, id, args })),
  ]
  if (step.error) return [...events, { type: 'error', error: step.error }]
  const finishReason = step.finishReason ?? (calls.length > 0 ? 'tool-calls' : 'stop')
  const usage: StreamEvent[] = step.usage ? [{ type: 'usage', usage: completeUsage(step.usage) }] : []
  return [...events, ...usage, { type: 'done', finishReason }]
}

function completeUsage(usage: Partial<Usage>): Usage {
  const { inputTokens = 0, outputTokens = 0 } = usage
  return { totalTokens: inputTokens + outputTokens, ...usage, inputTokens, outputTokens }
}
