/**
 * Models that were made in code may give several complete answers in one call; those of Lango's give one. Each answer is
 * an event of its own, so a process may end between two of them. A resumed run is given the recorded ones, and where more
 * were to come the model is asked again, for those that are missing.
 *
 * - The model is wrapped in place, once, and finds the call of each request by itself.
 * - An answer is held until the model goes on or ends, so that its record says whether another one follows.
 */
import type { BaseLlm, Event, LlmRequest, LlmResponse } from '../adk/sdk.js'

/** One call of a model, as its run follows it. */
export interface ModelCall {
  /** The next recorded answer; `undefined` where the record ends. */
  recorded(): { event: Event; hasMore: boolean } | undefined
  /** The model is about to be asked. Called once the record has ended. */
  ask(): Promise<void> | undefined
  /** An answer is about to be passed on. */
  answered(hasMore: boolean): void
}

type Answers = AsyncGenerator<LlmResponse, void>
type Generate = BaseLlm['generateContentAsync']

const wrapped = new WeakSet<object>()
const calls = new WeakMap<object, ModelCall>()

/** Follows the call of a request that a model is about to be asked. */
export function followCall(model: BaseLlm, request: LlmRequest, call: ModelCall): void {
  calls.set(request, call)
  if (!wrapped.has(model)) wrap(model)
}

function wrap(model: BaseLlm): void {
  const generate: Generate = model.generateContentAsync.bind(model)
  const value: Generate = (request, ...rest) => {
    const call = calls.get(request)
    calls.delete(request)
    return call ? answers(call, () => generate(request, ...rest)) : generate(request, ...rest)
  }
  wrapped.add(model)
  Object.defineProperty(model, 'generateContentAsync', { value, configurable: true, writable: true })
}

async function* answers(call: ModelCall, generate: () => Answers): Answers {
  let given = 0
  for (let answer = call.recorded(); answer; answer = call.recorded()) {
    given += 1
    yield answer.event
    if (!answer.hasMore) return
  }
  const asked = call.ask()
  if (asked) await asked
  const isNew = (response: LlmResponse, hasMore: boolean) => {
    if (isAnswer(response)) {
      given -= 1
      if (given < 0) call.answered(hasMore)
    }
    // What was recorded is not given twice, and neither are its parts.
    return given < 0 || (given === 0 && !isAnswer(response))
  }
  /** An answer and what is ignored after it, until it is known whether another answer, or a part of one, follows. */
  const held: LlmResponse[] = []
  try {
    for await (const response of generate()) {
      if (!isIgnored(response)) for (const each of held.splice(0)) if (isNew(each, true)) yield each
      if (isAnswer(response) || held.length > 0) held.push(response)
      else if (isNew(response, true)) yield response
    }
  } catch (error) {
    for (const each of held.splice(0)) if (isNew(each, true)) yield each
    throw error
  }
  for (const each of held.splice(0)) if (isNew(each, false)) yield each
}

function isAnswer(response: LlmResponse): boolean {
  return response.partial !== true && !isIgnored(response)
}

/** ADK makes no event of a response that says nothing. */
function isIgnored({ content, errorCode, interrupted, usageMetadata }: LlmResponse): boolean {
  if (errorCode || interrupted) return false
  return content ? content.parts?.length === 0 : !usageMetadata
}
