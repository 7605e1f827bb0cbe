import type { Event, FunctionCall } from '../adk/sdk.js'
import { type CallItem, pairCalls } from '../session/pair-calls.js'

/** A call or an answer, and who made it. */
type SeenItem = CallItem & { identity: Identity }

interface Identity {
  author: string
  invocationId: string
  branch?: string
}

/** What a call is answered with when its run ends before the tool does. */
const INTERRUPTED = '[no response available]'

/** The parts that answer the open calls of one agent in one branch. */
export interface ClosingAnswer {
  author: string
  invocationId: string
  branch?: string
  parts: { functionResponse: { id: string; name: string; response: Record<string, unknown> } }[]
}

/** Remembers which calls of a run have no answer yet, so that a run never ends with an open call. */
export class PendingCalls {
  /** Agents that work side by side may use the same ids, so calls are paired within their branch. */
  readonly #branches = new Map<string, SeenItem[]>()
  /** Calls that are answered after the run: by a long-running tool, or by a person. */
  readonly #waiting = new Set<CallItem>()
  #events = 0

  observe(event: Event): void {
    if (event.partial) return
    const { author = '', invocationId, branch, content } = event
    const identity = { author, invocationId, ...(branch === undefined ? {} : { branch }) }
    const longRunning = new Set(event.longRunningToolIds ?? [])
    const seen = this.#branches.get(branch ?? '') ?? []
    this.#branches.set(branch ?? '', seen)
    this.#events += 1
    for (const { functionCall, functionResponse } of content?.parts ?? []) {
      const { id, name } = functionCall ?? functionResponse ?? {}
      if (id === undefined) continue
      const waiting = functionCall && waitingCall(functionCall)
      const asked = seen.findLast(item => item.kind === 'call' && item.id === waiting)
      if (asked) this.#waiting.add(asked)
      const item: SeenItem = {
        kind: functionCall ? 'call' : 'answer',
        id,
        name,
        at: this.#events,
        turn: 0,
        identity,
      }
      seen.push(item)
      if (functionCall && longRunning.has(id)) this.#waiting.add(item)
    }
  }

  /** Answers to every open call: one per agent, invocation and branch, as ADK would have written them. */
  close(reason: string): ClosingAnswer[] {
    const answers = new Map<string, ClosingAnswer>()
    for (const { id = '', name = '', identity } of this.#open()) {
      const group = JSON.stringify(identity)
      const answer = answers.get(group) ?? { ...identity, parts: [] }
      answer.parts.push({ functionResponse: { id, name, response: { error: `${INTERRUPTED} ${reason}` } } })
      answers.set(group, answer)
    }
    this.#branches.clear()
    this.#waiting.clear()
    return [...answers.values()]
  }

  #open(): SeenItem[] {
    return [...this.#branches.values()].flatMap(seen => {
      const answered = new Set(pairCalls(seen).map(pair => pair?.call))
      return seen.filter(
        (item, index) => item.kind === 'call' && !answered.has(index) && !this.#waiting.has(item),
      )
    })
  }
}

/** ADK's questions to a person name the call that waits for the answer: it is run by the next message, not closed. */
function waitingCall({ name, args }: FunctionCall): string | undefined {
  if (!name?.startsWith('adk_request_')) return undefined
  const original = args?.originalFunctionCall
  const id =
    typeof original === 'object' && original !== null
      ? Reflect.get(original, 'id')
      : (args?.function_call_id ?? args?.functionCallId)
  return typeof id === 'string' ? id : undefined
}
