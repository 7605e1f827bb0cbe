/** A model call that goes to the next model while the one before it cannot answer. Loaded where there is such a model. */
import type { LlmResponse } from '../adk/sdk.js'
import { AgentError, type AgentErrorCode } from '../errors.js'
import { providerHealth } from '../money/provider-health.js'
import type { Provider } from '../provider/provider.js'
import type { RequestPlace } from '../run/run-event.js'
import type { RunScope } from '../run/run-scope.js'

export interface FallbackParts {
  /** The model to ask, and those to ask instead, in order. */
  references: readonly string[]
  resolve(reference: string): { provider: Provider; model: string }
  ask(reference: string): Promise<AsyncIterable<LlmResponse>>
  signal: AbortSignal | undefined
  scope?: RunScope
  place?: RequestPlace | undefined
  /** The answer that takes back what was seen of another; absent where that is not possible. */
  takeBack?: (() => LlmResponse) | undefined
}

/** The answer of the first model that gives a complete one. What was seen of another is taken back. */
export async function* answerByFirst(parts: FallbackParts): AsyncGenerator<LlmResponse, void> {
  const { references, resolve, ask, signal, takeBack } = parts
  const resting: string[] = []
  const failed = new Set<Provider>()
  let failure: AgentError | undefined
  let reason: AgentErrorCode | undefined
  for (const [at, reference] of [...references, ...references].entries()) {
    const { provider, model } = resolve(reference)
    // In the second round those are asked that have failed before: there is no other model.
    const isSecond = at >= references.length
    if (isSecond && !resting.includes(reference)) continue
    const against = isSecond ? undefined : providerHealth.reasonAgainst(provider, model)
    if (against !== undefined) {
      reason ??= against
      if (!failed.has(provider)) resting.push(reference)
      continue
    }
    let isSeen = false
    try {
      tellSwitch(parts, reference, reason)
      for await (const response of await ask(reference)) {
        isSeen = true
        yield response
      }
      providerHealth.answered(provider, model)
      return
    } catch (error) {
      if (signal?.aborted || !(error instanceof AgentError)) throw error
      if (isSeen && !(takeBack && error.retryable)) throw error
      if (!providerHealth.failed(provider, model, error)) throw error
      if (isSeen && takeBack) yield takeBack()
      failed.add(provider)
      failure = error
      reason = error.code
    }
  }
  throw failure ?? new AgentError('internal', 'No model was asked.')
}

/** By run, and by who asks: the model that was asked last. */
const lastAsked = new WeakMap<object, Map<string, string>>()

function tellSwitch(
  { references, scope, place }: FallbackParts,
  to: string,
  reason: AgentErrorCode | undefined,
): void {
  if (!scope) return
  // The options are those of the run's input: one object for as long as this process works on the run.
  const asked = lastAsked.get(scope.options) ?? new Map<string, string>()
  lastAsked.set(scope.options, asked)
  const name = JSON.stringify([place?.app, place?.agent, place?.branch])
  const from = asked.get(name) ?? references[0] ?? to
  asked.set(name, to)
  if (from === to) return
  scope.notify({
    type: 'model-switch',
    from,
    to,
    reason: to === references[0] ? 'recovered' : (reason ?? 'recovered'),
  })
}
