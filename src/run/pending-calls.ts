import type { Event, FunctionCall } from '../adk/sdk.js'

interface PendingCall {
  id: string
  name: string
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
  private readonly calls = new Map<string, PendingCall>()

  observe(event: Event): void {
    if (event.partial) return
    const longRunning = new Set(event.longRunningToolIds ?? [])
    for (const { functionCall, functionResponse } of event.content?.parts ?? []) {
      if (functionResponse?.id) this.calls.delete(nameOf(functionResponse.id, event.branch))
      const waiting = functionCall && waitingCall(functionCall)
      if (waiting !== undefined) this.calls.delete(nameOf(waiting, event.branch))
      if (functionCall?.id && !longRunning.has(functionCall.id)) {
        this.calls.set(nameOf(functionCall.id, event.branch), {
          id: functionCall.id,
          name: functionCall.name ?? '',
          author: event.author ?? '',
          invocationId: event.invocationId,
          ...(event.branch === undefined ? {} : { branch: event.branch }),
        })
      }
    }
  }

  /** Answers to every open call: one per agent, invocation and branch, as ADK would have written them. */
  close(reason: string): ClosingAnswer[] {
    const answers = new Map<string, ClosingAnswer>()
    for (const { id, name, ...identity } of this.calls.values()) {
      const group = JSON.stringify(identity)
      const answer = answers.get(group) ?? { ...identity, parts: [] }
      answer.parts.push({ functionResponse: { id, name, response: { error: `${INTERRUPTED} ${reason}` } } })
      answers.set(group, answer)
    }
    this.calls.clear()
    return [...answers.values()]
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

/** Agents that work side by side may use the same ids. */
function nameOf(id: string, branch = ''): string {
  return `${branch}\n${id}`
}
